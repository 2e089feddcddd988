"""Texts of the rules about the recording itself (CAP)."""

from __future__ import annotations

TITLES = {
    "CAP101": "采集在第一步中开始",
    "CAP102": "部分内容没有采集",
    "CAP103": "设备事件没有下发记录",
    "CAP104": "文件损坏",
    "CAP105": "Rank 缺失或混杂",
    "CAP106": "各 Rank 设置不一致",
    "CAP107": "Profiler 拖慢了 Host",
    "CAP108": "时钟精度低或不一致",
    "CAP109": "没有标记步",
    "CAP110": "采集的步太少",
    "CAP111": "快照缺少历史开头",
}

_CHECK = "见采集质量中的 {checks}。"

SENTENCES = {
    "CAP101": "第一步耗时是通常的 {ratio} 倍；采集可能是在这一步中开始的。",
    "CAP102": "没有采集 {what}，因此有些问题无法发现。",
    "CAP103": f"设备事件没有下发记录；{_CHECK}",
    "CAP104": f"文件已损坏或含有不可能的数值；{_CHECK}",
    "CAP105": f"有 Rank 缺失或混杂；{_CHECK}",
    "CAP106": (
        "各 Rank 的采集选项不同（{settings}）；其中第一项在 Rank {ranks} 上为 {setting}，在其他 Rank 上为 {elsewhere}："
        "它们的耗时不完全可比。"
    ),
    "CAP106_environment": (
        "各 Rank 的环境变量不同（{settings}）；其中第一项在 Rank {ranks} 上为 {setting}，在其他 Rank 上为 {elsewhere}。"
    ),
    "CAP107": f"采集明细拖慢了 Host，其占比只是上限；{_CHECK}",
    "CAP108": f"时钟精度低或不一致；{_CHECK}",
    "CAP109": "没有标记步：{time} 的 trace 作为一个窗口。",
    "CAP110": "完整步只有 {steps} 个：中位数与规律不够确定。",
    "CAP111": "快照的 {events} 个事件缺少开头：首个事件之前已有 {before} 在用，峰值可能高于 {peak}。",
}

ADVICE = {
    "profiler_warmup": "让 Profiler 先预热：schedule(wait=1, warmup=1, active=5)。",
    "record_more.cuda": "再采一次，开启 record_shapes、with_stack 或 profile_memory；它们会拖慢 Host。",
    "record_more.ascend": (
        "再采一次，开启 profiler_level=Level1、aic_metrics、record_shapes、with_stack 或 profile_memory。"
    ),
    "write_whole": "等 Profiler 写完再结束程序。",
    "file_per_rank": "每个 Rank 写一个文件：tensorboard_trace_handler(folder, worker_name=…)。",
    "same_options": "所有 Rank 用同样的选项与 schedule 采集。",
    "same_environment": "所有机器使用同样的环境变量；网络与 HCCL 的设置必须一致。",
    "light_recording": "关于 Host 的问题，请用不采集调用栈、Shape 与显存的数据确认。",
    "newer_torch": "较新的 torch（2.3 及以后）以纳秒记录。",
    "newer_torch.ascend": "较新的驱动与 torch_npu 时钟对得更准；耗时本身始终正确。",
    "mark_steps": "标记步：profile(schedule=…)，并在每步之后调用 prof.step()。",
    "more_steps": "多采几步：schedule(…, active=5)。",
    "longer_history": '在程序开始时调用 _record_memory_history(max_entries=1000000, stacks="python")。',
}

EVIDENCE = {
    "ratio": "第一步与中位数之比",
    "checks": "检查项",
    "steps": "完整步数",
    "settings": "不同之处",
    "elsewhere": "其他 Rank 上",
    "events": "事件数",
    "before": "首个事件之前在用",
}
