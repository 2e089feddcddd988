"""What makes two sides of a comparison unlike; `locales/zh/__init__.py` adds these texts to the others."""

from __future__ import annotations

MESSAGES = {
    "no_device_on_either": "两侧都没有采集设备数据：只比较 Host 耗时。",
    "no_device_on_one": "{side}侧没有设备事件：只能比较步耗时。",
    "devices_differ": "设备不同：基准 {base}，比对 {candidate}。",
    "idle_as_one": "{side}侧没有运行时调用，空闲原因无法区分：空闲时间合并为一项比较，运行时调用不做比较。",
    "outside_calls_as_one": (
        "{side}侧没有 Host 算子：运行时调用之外的空闲时间（数据加载、算子、等待其他进程、未记录）合并为一项比较。"
    ),
    "levels_differ": "采集级别不同：基准 {base}，比对 {candidate}；只有较高级别才采集的内容不可比。",
    "levels_differ_in_calls": (
        "采集级别不同：基准 {base}，比对 {candidate}。Level0 不采集大部分运行时调用和集合通信的内部任务："
        "Host 算子、下发与同步造成的空闲合并为一项比较；运行时调用和等待其他 Rank 的时间不可比。"
    ),
    "whole_trace_on_one": "{side}侧没有步标记：其全部设备任务按一步计，每步耗时不可比。",
    "whole_traces": "没有步标记：首个到最后一个设备事件按一步计；请只比较工作量相同的采集数据。",
    "steps_differ": "两侧选步方式不同：基准 {base}，比对 {candidate}。",
    "world_sizes_differ": "两次运行规模不同：基准 {base} 个 Rank，比对 {candidate} 个。",
    "rank_counts_differ": "采集到的 Rank 数不同：基准 {base}，比对 {candidate}。",
    "ranks_differ": "比较的是不同的 Rank：基准 Rank {base}，比对 Rank {candidate}。",
    "coverage_differs": (
        "能对应到算子的计算耗时，基准侧占 {base_share}，比对侧占 {candidate_share}："
        "算子之间的差异有一部分来自采集差异，因此计算部分按 Kernel 类别比较。"
    ),
    "clocks_differ": (
        "时钟精度不同：基准 {base_ns}，比对 {candidate_ns}；精度低的一侧，短 Kernel 的耗时会偏大，或显示为 0。"
    ),
    "api_on_one": "{side}侧没有运行时调用：不做比较。",
    "host_ops_on_one": "{side}侧没有 Host 算子：不做比较。",
    "shapes_on_one": "{side}侧没有 Shape：无法按 Shape 匹配。",
    "modules_on_one": "{side}侧没有模块信息：不做比较。",
    "stacks_on_one": "{side}侧没有 Python 调用栈：只有另一侧能给出源码行。",
    "memory_on_one": "{side}侧没有显存记录：不比较显存。",
    "options_differ": (
        "会拖慢 Host 的采集选项只在一侧开启：基准 {base}，比对 {candidate}；那一侧的 Host 耗时也会因此变长。"
    ),
    "side_truncated": "{side}侧的文件不完整：后面的内容缺失。",
    "side_salvaged": "{side}侧文件中有损坏，未计入：{count} 处或个事件。",
    "side_left_out": "{side}侧有不完整的步，未计入：{steps} 步。",
}

TERMS = {
    "base": "基准",
    "candidate": "比对",
    "h2d": "Host 到设备",
    "d2h": "设备到 Host",
    "d2d": "设备内部",
    "p2p": "设备到设备",
    "h2h": "Host 到 Host",
    "unknown": "方向未知",
    "fill": "填充",
    "peak_recorded": "记录到的分配减去释放",
}

REASONS = {
    "needs_all_ranks": "需要所有 Rank 的采集数据",
}
