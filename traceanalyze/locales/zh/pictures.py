"""Texts of pictures: the trace around a finding, ranks step by step, the parts of each rank's step."""

from __future__ import annotations

TERMS = {
    "annotation": "标注",
    "instance": "最长的一处",
    "launched_by": "从下发到执行",
}
MESSAGES = {
    "excerpt_title": "{rule} {finding}：最长的一处",
    "excerpt_links": "时间线：",
    "excerpt_in_step": "耗时 {time}，始于第 {step} 步开始后 {since}。",
    "excerpt_at_step": "耗时 {time}，始于第 {step} 步的起点。",
    "excerpt_in_trace": "耗时 {time}，始于首个事件之后 {since}。",
    "excerpt_idle": "其间设备空闲 {idle}，主要原因：{cause}。",
    "excerpt_idle_throughout": "其间设备一直空闲，主要原因：{cause}。",
    "excerpt_doing": "同时 Host 在执行 {name}。",
    "excerpt_from": "图从首个事件之后 {start} 开始，时长 {length}。",
    "excerpt_merged": "{count} 个事件太短，无法单独画出，与相邻事件合为一框；框内填充的高度表示忙碌的比例。",
    "excerpt_hidden_events": "另有 {count} 个更深层的算子未画出。",
    "excerpt_hidden_threads": "另有 {count} 个线程未画出。",
    "excerpt_hidden_streams": "另有 {count} 条流未画出。",
    "excerpt_several": "{count} 个事件，忙碌 {busy}；最长：{name}",
    "excerpt_several_unnamed": "{count} 段，合计 {busy}",
    "excerpt_ends_outside": "这一处在图的右端之后仍在继续。",
    "excerpt_stream": "流 {name}",
    "excerpt_calls": "运行时调用",
    "excerpt_idle_lane": "设备空闲",
    "excerpt_host": "Host",
    "excerpt_device": "设备",
    "heat_map": "各 Rank 每步自身耗时与该步全部 Rank 均值之比",
    "heat_cell": "Rank {rank}，第 {step} 步：均值的 {ratio} 倍",
    "heat_cell_unknown": "Rank {rank}，第 {step} 步：n/m",
    "heat_longest": "最长部分：{part}，{time}",
    "heat_faster": "更快",
    "heat_slower": "慢于均值",
    "heat_cut": "共 {all_steps} 步、{all_ranks} 个 Rank，图中是差异最大的 {steps} 步、{ranks} 个 Rank。",
    "rank_chart": "各 Rank 平均步耗时的组成",
    "rank_chart_cut": "共 {count} 个 Rank，图中是最慢的 {kept} 个。",
}
