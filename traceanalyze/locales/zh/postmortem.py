"""Words of the post-mortem of a run, in Chinese."""

from __future__ import annotations

from traceanalyze.locales.zh import rules

TABLES = {
    "run_causes": "限制本次运行的因素",
    "cause_evidence": "各因素的依据",
    "cause_trend": "各因素在每次采集中的开销",
    "capture_causes": "关于采集本身",
    "actions": "先做什么",
    "recordings": "按时间排列的各次采集（占每步）",
    "memory_files": "显存快照与显存时间线",
    "not_judged": "未能判断的内容，以及如何采集才能看到",
    "run_files": "文件",
}

COLUMNS = {
    "position": "#",
    "gain_ns": "可缩短",
    "on_ranks": "Rank",
    "since": "出现于",
    "since_step": "步",
    "part_of": "属于",
    "affected": "步数",
    "largest_ns": "最大",
    "mean_saving_ns": "各 Rank 均值",
    "because": "起因",
    "recording": "采集",
    "since_recording": "所在采集",
    "advice": "做法",
    "deciding_rank": "决定步耗时的 Rank",
    "file_kind": "类型",
    "fate": "处理结果",
    "why": "原因",
    "rules": "规则数",
    "because_of": "原因",
    "record_with": "如何采集",
    "rule_ids": "哪些规则",
    "findings": "问题数",
}

_GAIN = "消除它之后整个运行每步缩短多少：以自身耗时最长的 Rank 为准"

COLUMN_MEANINGS = {
    "position": "按整个运行的收益排列的序号",
    "run_causes.severity": "按整个运行的收益：占每步 20 % 起为高，5 % 起为中；显存问题按其类型",
    "run_causes.finding": "发现了什么",
    "gain_ns": _GAIN,
    "run_causes.share": "收益占每步平均耗时的比例",
    "run_causes.amount_bytes": "涉及的显存",
    "run_causes.where": "算子、调用、Kernel 或源码行",
    "on_ranks": "在哪些 Rank 上成立",
    "since": "在已采集的哪些步中占每步 1 % 以上",
    "since_step": "其中的第一步或最后一步；否则为多少步中的多少步",
    "part_of": "与其为同一段时间的因素的序号：两者不可相加",
    "affected": "出现的步数与总步数",
    "largest_ns": "单个 Rank 每步最多节省",
    "mean_saving_ns": "所有 Rank 每步平均节省",
    "run_causes.total_ns": "对所有 Rank 与已采集的步求和",
    "because": "解释它的因素的序号",
    "recording": "按时间排列的采集序号",
    "run_causes.recording": "开销最大的一次采集；数值取自其中",
    "since_recording": "该步所在的采集",
    "capture_causes.severity": "对数值的影响程度",
    "capture_causes.finding": "发现了什么",
    "capture_causes.share": "无",
    "capture_causes.amount_bytes": "无",
    "capture_causes.where": "涉及的对象",
    "capture_causes.total_ns": "无",
    "cause_evidence.evidence": "测得的内容",
    "cause_evidence.duration_ns": "取值（为时间时）",
    "cause_evidence.share": "取值（为比例时）",
    "cause_evidence.figure": "取值（为数字时）",
    "cause_evidence.bytes": "取值（为大小时）",
    "cause_evidence.start_ns": "在 trace 中查看的位置：开始",
    "cause_evidence.end_ns": "在 trace 中查看的位置：结束",
    "cause_evidence.source_line": "程序的源码行",
    "cause_trend.finding": "发现了什么",
    "cause_trend.share": "收益占该次采集每步平均耗时的比例",
    "actions.finding": "所消除的因素",
    "actions.share": "收益占每步平均耗时的比例",
    "actions.amount_bytes": "涉及的显存",
    "advice": "做法",
    "recordings.name": "文件或文件夹名",
    "recordings.steps": "完整步的编号，没有编号时为步数",
    "recordings.step_ns": "所有 Rank 的平均步耗时",
    "deciding_rank": "除去等待其他 Rank 后自身耗时最长的 Rank；占比取自该 Rank",
    "run_files.path": "文件或文件夹",
    "memory_files.path": "文件",
    "file_kind": "按内容判断的文件类型",
    "fate": "数值是否用到它",
    "why": "未使用或跳过的原因，或其中无法读取的部分",
    "run_files.steps": "完整步的编号，没有编号时为步数",
    "memory_files.peak_bytes": "任一时刻 block 的最大字节数",
    "memory_files.severity": "最严重的问题",
    "findings": "问题总数，含提示",
    "rules": "因此未能判断的规则数",
    "because_of": "缺少什么",
    "record_with": "采集选项，或需要给出的其他内容",
    "rule_ids": "规则编号；`traceanalyze rule ID` 给出说明",
}

TERMS = {
    "cause_waiting": "各 Rank 相互等待",
    "cause_waiting_unrecorded": "等待未采集的 Rank",
    "cause_host_loading": "等待数据（未采集设备）",
    "apart_kind": "格式、Rank 数或设备不同",
    "apart_libraries": "所用库的版本不同",
    "apart_same_time": "同一个 Rank 不可能同时被采集两次",
    "apart_work": "所执行的 Kernel 或算子不同",
    "since_every": "每一步",
    "since_from": "从该步起",
    "since_until": "到该步止",
    "since_some": "部分步",
    "file_trace": "trace 文件",
    "file_ascend_profile": "Ascend 采集数据",
    "file_snapshot": "显存快照",
    "file_memory_timeline": "显存时间线",
    "file_run_list": "文件列表",
    "file_statistics": "分配器统计",
    "file_other": "其他文件",
    "fate_used": "已使用",
    "fate_salvaged": "已使用可读取的部分",
    "fate_repeated": "未使用：重复文件",
    "fate_not_chosen": "未使用：--ranks 未选中",
    "fate_left_out": "未使用",
    "fate_passed_over": "已跳过",
    "do_record_that_rank.cuda": "在相同的步中采集所有 Rank，至少采集其他 Rank 所等待的那个。",
    "do_record_that_rank.ascend": "在相同的步中采集所有 Rank，至少采集其他 Rank 所等待的那个。",
}

MESSAGES = {
    "limited_alone": "限制本次运行的首要因素：{finding}。",
    "limited_all": "限制本次运行的首要因素：{finding}，涉及全部 {count} 个 Rank。",
    "limited_some": "限制本次运行的首要因素：{finding}，涉及 {count} 个 Rank 中的 Rank {ranks}。",
    "limited_one": "限制本次运行的首要因素：{finding}，涉及 {count} 个 Rank 中的 Rank {ranks}。",
    "limited_run": "限制本次运行的首要因素：{finding}。",
    "limited_by_rank": "Rank {ranks} 限制了本次运行。",
    "costs": "每步 {step} 中占 {gain}（{share}）。",
    "costs_trace": "{step} 中占 {gain}（{share}）。",
    "costs_others": "它使其他 Rank 在每步 {step} 中损失 {gain}（{share}）。",
    "costs_others_trace": "它使其他 Rank 在 {step} 中损失 {gain}（{share}）。",
    "told_since_every": "已采集的 {steps} 步中每一步都是如此。",
    "told_since_from": "从第 {step} 步起如此，共 {steps} 步中的 {affected} 步。",
    "told_since_from_recording": "从采集 {recording} 的第 {step} 步起如此，共 {steps} 步中的 {affected} 步。",
    "told_since_until": "到第 {step} 步止如此，共 {steps} 步中的 {affected} 步。",
    "told_since_until_recording": "到采集 {recording} 的第 {step} 步止如此，共 {steps} 步中的 {affected} 步。",
    "told_grew": "到采集 {recording} 时从{per} {before} 增至 {after}。",
    "told_since_some": "已采集的 {steps} 步中有 {affected} 步如此。",
    "cause_because": "其起因：{finding}（该 Rank {per} {saving}）。",
    "cause_because_known": "其起因：{finding}。",
    "late_because": "其原因是{phase}（{per} {excess}）。",
    "do_first": "处理方法：{text}",
    "do_next": "其处理方法：{text}",
    "limits_next": "其次：{finding}，{gain}（{share}）。",
    "limits_then": "再次：{finding}，{gain}（{share}）。",
    "ran_out": "本次运行耗尽了显存。",
    "ran_out_rank": "本次运行在 Rank {rank} 上耗尽了显存。",
    "will_run_out": "本次运行即将耗尽显存。",
    "will_run_out_rank": "本次运行即将在 Rank {rank} 上耗尽显存。",
    "healthy": "没有发现占每步（{step}）1 % 以上的问题。",
    "healthy_trace": "没有发现占总时间（{step}）1 % 以上的问题。",
    "healthy_hint": "或可一试：{finding}（{gain}）。",
    "healthy_unjudged": "{rules} 条规则中有 {count} 条未能判断：请看如何采集才能看到更多。",
    "cause_host_loading": "训练线程{per}等待数据 {wait}（{share}）。",
    "cause_waiting": "各 Rank 在集合通信中相互等待，{per}比必要的多 {wait}（{share}）。",
    "cause_waiting_uneven_compute": (
        "各 Rank 在集合通信中相互等待，{per}比必要的多 {wait}（{share}）；负载不均：Rank {rank} {per}计算 {most}，"
        "最少的为 {least}。"
    ),
    "cause_waiting_uneven_compute_and_host": (
        "各 Rank 在集合通信中相互等待，{per}比必要的多 {wait}（{share}）；负载不均：Rank {rank} {per}的计算、数据加载"
        "与 Host 耗时为 {most}，最少的为 {least}。"
    ),
    "cause_waiting_absent": (
        "已采集的 Rank {per}在集合通信中等待 {wait}（{share}），主要等待组内未采集的 Rank {rank}。"
    ),
    "cause_waiting_alone": "该 Rank {per}在集合通信中等待其他 Rank {wait}（{share}），它们没有被采集。",
    "cause_waiting_missing": (
        "已采集的 Rank {per}在集合通信中至少等待 {wait}（{share}）；未采集的 Rank {ranks} 可能是较慢的一方。"
    ),
    "advice_record_that_rank.cuda": "→ 在相同的步中采集所有 Rank，至少采集其他 Rank 所等待的那个。",
    "advice_record_that_rank.ascend": "→ 在相同的步中采集所有 Rank，至少采集其他 Rank 所等待的那个。",
    "why_waiting_uneven_compute": "负载不均：Rank {rank} {per}计算 {most}，最少的为 {least}。",
    "why_waiting_uneven_compute_and_host": (
        "负载不均：Rank {rank} {per}的计算、数据加载与 Host 耗时为 {most}，最少的为 {least}。"
    ),
    "why_waiting_absent": "主要等待组内的 Rank {rank}。",
    "why_waiting_alone": "只采集了这一个 Rank；它在等什么，要看其他 Rank。",
    "why_waiting_missing": "Rank {ranks} 可能是较慢的一方。",
    "cause_appears": "{finding}：从采集 {recording} 起出现，{per} {after}。",
    "cause_grows": "{finding}：到采集 {recording} 时从{per} {before} 增至 {after}。",
    "step_grew": "步耗时从采集 {before} 的 {first} 增至采集 {after} 的 {last}（{factor} 倍）。",
    "step_shrank": "步耗时从采集 {before} 的 {first} 降至采集 {after} 的 {last}（{factor} 倍）。",
    "action_for": "{number}. {finding}：",
    "action_for_gain": "{number}. {finding}：{per} {gain}。",
    "not_judged_show": "{count} 条规则：{reason}。→ {option}",
    "not_judged": "{count} 条规则：{reason}。",
    "files_lost": "{count} 个文件无法使用：见文件表（控制台用 -v 显示）。",
    "files_cut": "{count} 个文件只能使用一部分：见文件表（控制台用 -v 显示）。",
    "recording_note": "{name}：{text}",
    "job_together": "{count} 次采集按时间顺序视为同一个作业：设备、Rank 数与所执行的任务相同。",
    "job_apart": "与输入中的其他采集不属于同一个作业：{reason}。",
    "details_of_recording": "下面的明细取自采集 {recording}。",
    "details_of_both": "下面的明细取自采集 {recording} 中的 Rank {rank}；可用 --ranks 选择其他 Rank。",
    "fail_on": "严重程度为{severity}的问题：{finding}",
}

_GPU_AND_NPU = {
    "no_device_events": (
        "采集 Host 与设备：profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
        "采集 Host 与设备：torch_npu.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU])",
    ),
    "no_api": (
        "采集 Host 与设备：profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
        "采集级别：_ExperimentalConfig(profiler_level=ProfilerLevel.Level1)",
    ),
    "no_cann_calls": (
        "采集级别：_ExperimentalConfig(profiler_level=ProfilerLevel.Level1)",
        "采集级别：_ExperimentalConfig(profiler_level=ProfilerLevel.Level1)",
    ),
    "no_host_ops": (
        "采集 Host：profile(activities=[ProfilerActivity.CPU, …])",
        "采集 Host：profile(activities=[ProfilerActivity.CPU, …])",
    ),
    "no_python": ("采集调用栈：profile(with_stack=True)", "采集调用栈：profile(with_stack=True)"),
    "no_shapes": ("采集 Shape：profile(record_shapes=True)", "采集 Shape：profile(record_shapes=True)"),
    "no_memory_records": ("采集显存：profile(profile_memory=True)", "采集显存：profile(profile_memory=True)"),
    "no_snapshot": (
        "显存快照：torch.cuda.memory._record_memory_history()，之后 _dump_snapshot()",
        "显存快照：torch_npu.npu.memory._record_memory_history()，之后 _dump_snapshot()",
    ),
    "no_collective_metadata": (
        "torch 2.1 或更新版本的 profile(record_shapes=True)",
        "采集级别：_ExperimentalConfig(profiler_level=ProfilerLevel.Level1)",
    ),
    "no_environment": ("用 traceanalyze record 采集，会保存设置", "用 traceanalyze record 采集，会保存设置"),
    "no_launch_configuration": (
        "torch 1.9 或更新版本的 profile()，其中有每个 Kernel 的 grid 与 block",
        "采集级别：_ExperimentalConfig(profiler_level=ProfilerLevel.Level1, aic_metrics=AiCMetrics.PipeUtilization)",
    ),
    "no_other_ranks": ("在相同的步中采集所有 Rank", "在相同的步中采集所有 Rank"),
    "ranks_missing": ("在相同的步中采集所有 Rank", "在相同的步中采集所有 Rank"),
    "few_steps_for_stragglers": (
        "采集更多步：schedule(wait=…, warmup=1, active=5)，每步之后调用 prof.step()",
        "采集更多步：schedule(wait=…, warmup=1, active=5)，每步之后调用 prof.step()",
    ),
    "no_common_steps": ("所有 Rank 在相同的步中调用 prof.step()", "所有 Rank 在相同的步中调用 prof.step()"),
    "unknown_capacity": ("给出显存容量：--capacity 80GiB", "给出显存容量：--capacity 64GiB"),
    "no_recorded_pauses": (
        "采集调用栈：profile(with_stack=True)",
        "采集垃圾回收：_ExperimentalConfig(gc_detect_threshold=…)",
    ),
}

REASONS = {"rule_not_judged": "该规则在那次采集中未能判断"}

TERMS |= {f"do_{key[7:]}": text[2:] for key, text in rules.MESSAGES.items() if key.startswith("advice_")}
TERMS |= {f"option_{key}.cuda": cuda for key, (cuda, _) in _GPU_AND_NPU.items()}
TERMS |= {f"option_{key}.ascend": ascend for key, (_, ascend) in _GPU_AND_NPU.items()}
