"""Texts about the ranks of a run side by side, and of the post-mortem of a run."""

from traceanalyze.locales.en import named

TERMS = {
    **named("file_", "trace memory_timeline"),
    **named("fate_", "used left_out"),
    "cause_host_loading": "waiting for data (no device recorded)",
    "apart_kind": "format, number of ranks or device differ",
    "apart_libraries": "the versions of its libraries differ",
    "apart_same_time": "the same rank cannot be recorded twice at one time",
    "apart_work": "it runs other kernels or operators",
    "since_every": "every step",
    "since_from": "from step",
    "since_until": "until step",
    "since_some": "some steps",
    "file_ascend_profile": "Ascend profile",
    "file_snapshot": "memory snapshot",
    "file_run_list": "list of files",
    "file_statistics": "statistics of the allocator",
    "file_other": "other file",
    "fate_passed_over": "skipped",
    "fate_salvaged": "used, as far as it can be read",
    "fate_repeated": "left out: a copy",
    "fate_not_chosen": "left out: --ranks",
    "compute_and_host": "compute, data loading, host work",
    "gc": "garbage collection",
    "role_tensor": "tensor parallel",
    "role_pipeline": "pipeline",
    "role_data": "data parallel",
    "role_expert": "expert parallel",
    "role_context": "context parallel",
    "by_host": "machine",
    "by_stage": "pipeline stage",
    "why_slowest": "slowest of all",
    "why_straggler": "others wait for it",
    "why_last": "last to collectives most often",
    "why_kernels": "its kernels take unusually long or short",
    "why_group": "slowest of its group",
    "why_typical": "typical",
    "late_compute": "its compute is longer",
    "late_memory_ops": "its copies and fills are longer",
    "late_data_loading": "it waits longer for data",
    "late_dispatch": "its host launches work more slowly",
    "late_sync": "it waits longer at synchronisation points",
    "late_device_gap": "its device is idle longer between launched work",
    "late_untraced": "its device is idle longer while nothing is recorded on the host",
    "late_gc": "its garbage collector pauses it",
    "late_pause": "its program stands still at the same places of every step",
}

MESSAGES = {
    "fail_on": "finding of severity {severity}: {finding}",
}

_LEVEL1 = "_ExperimentalConfig(profiler_level=ProfilerLevel.Level1)"
_THAT_RANK = "Record all ranks in the same steps, at least the one that others wait for."
_EVERY_RANK = "every rank, in the same steps"
_OPTIONS = {
    "no_device_events": (
        "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
        "torch_npu.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU])",
    ),
    "no_api": ("profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])", _LEVEL1),
    "no_cann_calls": _LEVEL1,
    "no_host_ops": "profile(activities=[ProfilerActivity.CPU, …])",
    "no_python": "profile(with_stack=True)",
    "no_shapes": "profile(record_shapes=True)",
    "no_memory_records": "profile(profile_memory=True)",
    "no_snapshot": (
        "torch.cuda.memory._record_memory_history(), then _dump_snapshot()",
        "torch_npu.npu.memory._record_memory_history(), then _dump_snapshot()",
    ),
    "no_collective_metadata": ("profile(record_shapes=True) of torch 2.1 or later", _LEVEL1),
    "no_environment": "traceanalyze record, which keeps the settings",
    "no_launch_configuration": (
        "profile() of torch 1.9 or later, which writes grid and block of every kernel",
        "_ExperimentalConfig(profiler_level=ProfilerLevel.Level1, aic_metrics=AiCMetrics.PipeUtilization)",
    ),
    "no_other_ranks": _EVERY_RANK,
    "ranks_missing": _EVERY_RANK,
    "few_steps_for_stragglers": "schedule(wait=…, warmup=1, active=5) and prof.step() after each step",
    "no_common_steps": "prof.step() in the same steps on every rank",
    "unknown_capacity": ("--capacity 80GiB", "--capacity 64GiB"),
    "no_recorded_pauses": ("profile(with_stack=True)", "_ExperimentalConfig(gc_detect_threshold=…)"),
}
"""What would make a reason go away: one text, or those for GPU and NPU."""

REASONS = {
    "rule_not_judged": "the rule could not be judged in that recording",
    "no_matched_collectives": "the ranks share no collectives for which waiting is defined",
    "ranks_missing": "not all ranks of any group are known to be recorded",
    "few_steps_for_stragglers": "needs at least 3 steps that all ranks recorded completely",
    "no_common_steps": "the ranks recorded no step in common",
    "no_rank_groups": "the recordings tell neither machines nor process groups",
    "clocks_too_uneven": "the clocks of the ranks cannot be aligned well enough",
    "no_recorded_pauses": "not every rank tells about its garbage collector",
}

for _place, _platform in enumerate(("cuda", "ascend")):
    TERMS |= {
        f"option_{key}.{_platform}": text if isinstance(text, str) else text[_place] for key, text in _OPTIONS.items()
    }
    TERMS[f"do_record_that_rank.{_platform}"] = _THAT_RANK
    MESSAGES[f"advice_record_that_rank.{_platform}"] = f"→ {_THAT_RANK}"
