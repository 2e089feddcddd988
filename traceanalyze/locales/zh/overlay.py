"""Texts of what is drawn over a trace, and of the commands that do it."""

from __future__ import annotations

TERMS = {
    "overlay_steps": "步",
    "overlay_phases": "阶段",
    "overlay_gaps": "设备空闲（按原因）",
    "overlay_syncs": "同步点",
    "overlay_path": "关键路径",
    "overlay_collectives": "集合通信的组成",
    "overlay_transfer": "传输",
    "overlay_wait": "等待其他 Rank",
    "overlay_queue": "队列深度",
    "overlay_utilisation": "设备利用率",
    "overlay_memory": "显存",
    "overlay_recompute": "重计算",
    "overlay_zero_grad": "zero_grad",
    "overlay_finding": "问题",
    "overlay_thread": "线程",
    "overlay_device": "设备",
    "overlay_stream": "流",
    "overlay_events": "事件",
    "overlay_requested": "申请量，MiB",
    "overlay_allocated": "已分配，MiB",
    "overlay_reserved": "预留，MiB",
    "overlay_arg_idle": "整个区间，ms",
    "overlay_arg_next": "设备上的下一任务",
    "overlay_arg_op": "算子",
    "overlay_arg_frame": "源码行",
    "overlay_arg_call": "运行时调用",
    "overlay_arg_idle_caused": "造成空闲，ms",
    "overlay_arg_complete": "完整步",
    "overlay_arg_saving": "每步可节省，ms",
    "overlay_arg_bound": "每步至多可节省，ms",
    "overlay_arg_sentence": "问题描述",
    "overlay_arg_advice": "如何处理",
    "overlay_arg_name": "事件",
}
REASONS = {"no_event_times": "快照未记录事件时间（torch 2.1 及更早版本、NPU）"}
MESSAGES = {
    "overlay_missing": "未画出：{track}（未测得：{reason}）",
    "overlay_no_windows": "有 {count} 个问题没有时间位置，未画出",
    "overlay_alone_damaged": "{path}：文件已损坏，因此只写出叠加内容，不含原 trace",
    "overlay_alone_not_json": "{path}：不是 JSON trace，因此只写出叠加内容，不含原 trace",
    "overlay_merged": "一个文件中合并了 {count} 个 Rank。进程号为重新编号，时钟为各自采集时的时钟",
    "overlay_aligned": "一个文件中合并了 {count} 个 Rank。进程号为重新编号，时钟最多平移 {most}，使集合通信同时结束",
    "open_url": "请在本机浏览器中打开：{url}",
    "open_served": "查看器已加载该 trace。",
    "open_viewer": "浏览器从 ui.perfetto.dev 加载查看器，因此需要联网；trace 只从本机传到浏览器。按 Ctrl-C 结束。",
    "open_no_display": "本机没有显示器。请在自己的电脑上运行 `{command}`，再打开上面的地址。",
    "open_other_port": "ui.perfetto.dev 只能从 9001 端口读取；使用端口 {port} 时请用自己的查看器",
}

REASONS = {"no_event_times": "快照没有给出事件的时间（torch 2.1 及更早、NPU）"}
