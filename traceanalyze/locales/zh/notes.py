"""What reading says in passing, in Simplified Chinese."""

from __future__ import annotations

NOTES = {
    "of_base": "基准：{note}",
    "of_candidate": "比对：{note}",
    "missing_ranks": "共 {all} 个 Rank，缺少 {missing} 个：{which}",
    "ranks_by_order": "文件没有给出 Rank，按 Host 与进程的顺序编号",
    "ranks_apart": "部分 Rank 与其他 Rank 在时间上没有重叠：不是同一次采集，或时钟不同",
    "several_recordings": "{folder} 中有多次采集，分别分析；这是第 {number} 次",
    "same_content": "{path} 与 {other} 内容相同，已略过",
    "failed": "未读取：{error}",
    "passed_over": "略过的文件：{files}",
    "filtered": "已筛选：{all} 个事件中有 {count} 个未计入，按未采集处理",
    "no_operator_table": "无法读取 operator_memory.csv（{reason}）：没有显存曲线",
    "no_kernel_table": "缺少 kernel_details.csv：没有 Kernel 的算子类型、核类型、Shape 与计数器",
    "rows_cut": "kernel_details.csv：有 {count} 行不完整，已略过",
    "times_lost": "kernel_details.csv：部分开始时间不是精确数值（是否用表格软件保存过？），这些行无法与时间线对应",
    "no_operator_memory": "缺少 operator_memory.csv：不知道显存由哪个算子申请",
    "no_memory_record": "缺少 memory_record.csv：只有算子申请时的总量，没有整个进程的显存",
    "no_step_times": "缺少 step_trace_time.csv：没有采集数据自带的步耗时可供对照",
    "no_profiler_info": "缺少 profiler_info.json：不知道采集选项，可能也不知道 Rank",
    "no_metadata": "缺少 profiler_metadata.json：不知道通信域与环境变量",
    "unreadable_because": "无法读取 {name}（{reason}），已略过",
    "unreadable": "无法读取 {name}，已略过",
    "too_large": "{name} 有 {size} 字节，超过 {most}：未与时间线核对",
    "export_not_compared": "未与另一种导出核对：{reason}",
    "table_not_compared": "无法读取 {name}（{reason}），未核对",
    "parts_lost": "有 {count} 个集合通信子任务没有对应的带时间的任务，已略过",
    "kernels_lost": "COMPUTE_TASK_INFO 中有 {count} 行没有对应的带时间的任务，已略过",
    "no_kernel_rows": "缺少 COMPUTE_TASK_INFO：只能按任务类型识别 Kernel",
    "tables_missing": "db 中没有（未采集或已丢失）：{tables}",
}
