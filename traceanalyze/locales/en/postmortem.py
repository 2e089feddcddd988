"""Texts about the ranks of a run side by side, and of the post-mortem of a run."""

from __future__ import annotations

from traceanalyze.locales.en import named

TERMS = {
    **named("file_", "trace memory_timeline"),
    **named("fate_", "used left_out passed_over"),
    "cause_waiting": "ranks wait for each other",
    "cause_waiting_unrecorded": "waiting for ranks that were not recorded",
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
    "file_other": "something else",
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
    "late_compute": "its compute is longer",
    "late_memory_ops": "its copies and fills are longer",
    "late_data_loading": "it waits longer for data",
    "late_dispatch": "its host launches work more slowly",
    "late_sync": "it waits longer at synchronisation points",
    "late_device_gap": "its device is idle longer between launched work",
    "late_untraced": "its device is idle longer while nothing is recorded on the host",
    "late_gc": "its garbage collector pauses it",
}

MESSAGES = {
    "limited_alone": "What limited this run most: {finding}.",
    "limited_all": "What limited this run most, on each of the {count} ranks: {finding}.",
    "limited_some": "What limited this run most, on ranks {ranks} of {count}: {finding}.",
    "limited_one": "What limited this run most, on rank {ranks} of {count}: {finding}.",
    "limited_run": "What limited this run most: {finding}.",
    "limited_by_rank": "Rank {ranks} limited this run.",
    "costs": "It costs {gain} of each {step} step ({share}).",
    "costs_trace": "It costs {gain} of {step} ({share}).",
    "costs_others": "It costs the others {gain} of each {step} step ({share}).",
    "costs_others_trace": "It costs the others {gain} of {step} ({share}).",
    "told_since_every": "It is there in all {steps} recorded steps.",
    "told_since_from": "It is there from step {step} on, in {affected} of {steps} recorded steps.",
    "told_since_from_recording": (
        "It is there from step {step} of recording {recording} on, in {affected} of {steps} recorded steps."
    ),
    "told_since_until": "It is there until step {step}, in {affected} of {steps} recorded steps.",
    "told_since_until_recording": (
        "It is there until step {step} of recording {recording}, in {affected} of {steps} recorded steps."
    ),
    "told_grew": "It grew from {before} to {after} {per} with recording {recording}.",
    "told_since_some": "It is there in {affected} of {steps} recorded steps.",
    "cause_because": "Behind it: {finding} ({saving} {per} on that rank).",
    "cause_because_known": "Behind it: {finding}.",
    "late_because": "It comes late because {phase} ({excess} {per}).",
    "do_first": "What to do: {text}",
    "do_next": "What to do about it: {text}",
    "limits_next": "Next: {finding}, {gain} ({share}).",
    "limits_then": "Then: {finding}, {gain} ({share}).",
    "ran_out": "The run ran out of memory.",
    "ran_out_rank": "The run ran out of memory on rank {rank}.",
    "will_run_out": "The run is about to run out of memory.",
    "will_run_out_rank": "The run is about to run out of memory on rank {rank}.",
    "healthy": "No problem was found that costs 1 % of the step ({step}) or more.",
    "healthy_trace": "No problem was found that costs 1 % of the time ({step}) or more.",
    "healthy_hint": "Perhaps worth a try: {finding} ({gain}).",
    "healthy_unjudged": "{count} of {rules} rules could not be judged: see what would show more.",
    "cause_host_loading": "The training thread waits for its data {wait} {per} ({share}).",
    "cause_waiting": "Ranks wait for each other in collectives, {wait} {per} ({share}) more than they must.",
    "cause_waiting_uneven_compute": (
        "Ranks wait for each other in collectives, {wait} {per} ({share}) more than they must; their work is uneven: "
        "rank {rank} computes {most} {per}, another one {least}."
    ),
    "cause_waiting_uneven_compute_and_host": (
        "Ranks wait for each other in collectives, {wait} {per} ({share}) more than they must; their work is uneven: "
        "rank {rank} has {most} {per} of compute, data loading and host work, another one {least}."
    ),
    "cause_waiting_absent": (
        "In collectives the recorded ranks wait {wait} {per} ({share}), most of it for rank {rank} of the group, which"
        " was not recorded."
    ),
    "cause_waiting_alone": (
        "In collectives this rank waits {wait} {per} ({share}) for others, which were not recorded."
    ),
    "cause_waiting_missing": (
        "In collectives the recorded ranks wait at least {wait} {per} ({share}); ranks {ranks}, which were not "
        "recorded, may be the late ones."
    ),
    "why_waiting_uneven_compute": "Their work is uneven: rank {rank} computes {most} {per}, another one {least}.",
    "why_waiting_uneven_compute_and_host": (
        "Their work is uneven: rank {rank} has {most} {per} of compute, data loading and host work, another one "
        "{least}."
    ),
    "why_waiting_absent": "Most of it is for rank {rank} of the group.",
    "why_waiting_alone": "Only this rank was recorded: what it waits for is to be seen on the others.",
    "why_waiting_missing": "Ranks {ranks} may be the late ones.",
    "cause_appears": "{finding}: appears with recording {recording}, {after} {per}.",
    "cause_grows": "{finding}: grows from {before} to {after} {per} with recording {recording}.",
    "step_grew": "The step grew from {first} in recording {before} to {last} in recording {after} ({factor} times).",
    "step_shrank": (
        "The step shrank from {first} in recording {before} to {last} in recording {after} ({factor} times)."
    ),
    "action_for": "{number}. {finding}:",
    "action_for_gain": "{number}. {finding}: {gain} {per}.",
    "not_judged_show": "{count} rule(s): {reason}. To see it: {option}",
    "not_judged": "{count} rule(s): {reason}.",
    "files_lost": "{count} file(s) could not be used: see the table of files (console: -v).",
    "files_cut": "{count} file(s) could be used only in part: see the table of files (console: -v).",
    "recording_note": "{name}: {text}",
    "job_together": (
        "{count} recordings are taken as one job, in the order of time: device, number of ranks and work are alike."
    ),
    "job_apart": "A job of its own beside others in this input: {reason}.",
    "details_of_recording": "Details below are those of recording {recording}.",
    "details_of_both": "Details below are those of rank {rank} in recording {recording}; --ranks chooses others.",
    "fail_on": "finding of severity {severity}: {finding}",
    "straggler": "Rank {rank} makes the others wait {wait} a step ({share}).",
    "straggler_because": "Rank {rank} makes the others wait {wait} a step ({share}), because {phase}.",
    "waited_for_absent": (
        "In collectives the recorded ranks wait {wait} a step ({share}), most of it for rank {rank} of the group, which"
        " was not recorded."
    ),
    "waits_bounded": "Ranks {ranks} were not recorded: transfers are upper, waits lower bounds, nobody is blamed.",
    "waits_perhaps_bounded": (
        "Nothing tells whether all ranks are here: transfers are upper bounds, waits lower bounds, nobody is blamed."
    ),
    "matching_stopped_kind": (
        "{count} collectives are not matched: ranks run different types in the same place (steps: {steps})."
    ),
    "matching_stopped_bytes": (
        "{count} collectives are not matched: ranks state different sizes in the same place (steps: {steps})."
    ),
    "matching_stopped_count": ("{count} collectives are not matched: ranks do not have equally many (steps: {steps})."),
    "collectives_outside_steps": "{count} collectives of all ranks lie outside the steps that all ranks recorded.",
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
    "clocks_too_uneven": "the clocks of the ranks cannot be aligned well enough",
    "no_recorded_pauses": "not every rank tells about its garbage collector",
}

for _place, _platform in enumerate(("cuda", "ascend")):
    TERMS |= {
        f"option_{key}.{_platform}": text if isinstance(text, str) else text[_place] for key, text in _OPTIONS.items()
    }
    TERMS[f"do_record_that_rank.{_platform}"] = _THAT_RANK
    MESSAGES[f"advice_record_that_rank.{_platform}"] = f"→ {_THAT_RANK}"
