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
    "late_untraced": "it spends longer in what is not recorded on its host",
    "late_gc": "its garbage collector pauses it",
    "late_pause": "its program stands still at the same places of every step",
}

_INCIDENT = {
    "hang": "hang",
    "crash": "crash",
    "oom": "device memory full",
    "host_oom": "host memory full",
    "desync": "desynchronised collectives",
    "nan": "NaN or infinite loss",
    "loss": "loss",
    "norm": "norm of the gradients",
    "hardware": "hardware",
    "slow_host": "slow host",
    "link": "network link",
    "straggler": "straggler",
    "data": "waiting for data",
    "pipeline": "imbalance of pipeline stages",
    "checkpoint": "checkpoint stall",
    "cancelled": "stopped from outside",
    "unexplained": "stopped, not explained",
    "do_ask_scheduler": "find out who stopped it (time limit, preemption, a person)",
    "do_record": "keep what is missing here next time",
    "do_replace_node": "replace the node",
    "do_memory": "make it hold less (smaller batch, recomputed activations), and look at its memory snapshot",
    "do_fragmentation": "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, as much of what is reserved is unused",
    "do_end_others": "end the other processes on this device",
    "do_shared_memory": "give the container more shared memory (--shm-size), or use fewer loader workers",
    "do_fragmentation_npu": (
        "set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, as much of what is reserved is unused"
    ),
    "do_host_memory": "raise the memory limit, or use fewer loader workers",
    "do_same_collectives": "look for a branch in the program that depends on the rank or its data",
    "do_fix_error": "fix this error",
    "do_find_killer": "find out why it ended (exit code, kernel log, scheduler, memory limit of the container)",
    "do_core_dump": "look at its core dump, or run with PYTHONFAULTHANDLER=1",
    "do_own_code": "look at this code",
    "do_look_at_rank": "look at its log, and take its stack (py-spy dump) next time",
    "do_storage": "check the storage, and save checkpoints asynchronously",
    "do_loader": "give its loader more workers or faster storage",
    "do_check_link": "take the node out, and check cable, port and switch",
    "do_nan": "look at the batch and the learning rate of that step, and go back before it",
    "do_cool_device": "take the device out, and check its cooling and power",
    "do_cool_host": "take the host out, and check the cooling and power of its CPUs",
    "do_balance_stages": "give this stage fewer layers",
}
"""Causes, and what to do first."""
_EVENTS = {
    "timeout": "collective timed out",
    "group_status": "state of a group",
    "dump_signal": "dump asked for",
    "watchdog_stuck": "watchdog stuck",
    "desync": "collectives differ",
    "comm_error": "communication error",
    "store_error": "store unreachable",
    "oom": "device memory full",
    "host_oom": "host memory full",
    "device_error": "device error",
    "device_assert": "assertion in a kernel",
    "exception": "exception",
    "nan": "NaN or infinite",
    "overflow": "overflow",
    "checkpoint_begin": "checkpoint begun",
    "checkpoint_end": "checkpoint saved",
    "loader": "data loader",
    "restart": "restart",
    "exit": "process ended",
    "signal": "signal",
    "cancelled": "cancelled",
    "xid": "Xid",
    "sxid": "SXid",
    "ecc": "memory error (ECC)",
    "throttle": "throttling",
    "link_error": "link error",
    "device_lost": "device lost",
    "device_health": "health of a device",
    "host_fault": "fault of the host",
    "segfault": "segmentation fault",
    "mark": "mark",
    "step": "training step",
}
"""Events of a timeline."""
_SOURCES = {
    "flight_recorder": (
        "flight-recorder dumps",
        "which collective each rank reached, and from which line",
        "TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_DUMP_ON_TIMEOUT=1; keep <prefix><rank> of every host",
    ),
    "process_log": (
        "logs of the ranks",
        "errors, timeouts, losses and times of steps",
        "torchrun --log-dir DIR --redirects 3, or a file for each rank",
    ),
    "stacks": (
        "stacks of the ranks",
        "what each rank was doing",
        "py-spy dump --pid PID > stacks_rank$RANK.txt of each rank, before the job is ended",
    ),
    "kernel_log": (
        "kernel messages",
        "Xid, ECC, processes killed for memory, links",
        "dmesg -T > dmesg_$(hostname).txt on every host",
    ),
    "device_state": (
        "states of the devices",
        "clocks, throttling, temperature, ECC over time",
        (
            "nvidia-smi --query-gpu=timestamp,index,pci.bus_id,clocks.sm,clocks_event_reasons.active,temperature.gpu "
            "--format=csv -l 5 > nvidia-smi_$(hostname).csv"
        ),
    ),
    "launcher": (
        "output of the launcher",
        "which rank failed first, and its exit code",
        "keep what torchrun or srun print; @record on the main function",
    ),
}
"""What would have told of an incident, what, and how to record it."""
TERMS |= {
    **{f"incident_{key}": text for key, text in _INCIDENT.items()},
    **{f"what_{key}": text for key, text in _EVENTS.items()},
    **{
        f"{kind}_{key}": text
        for key, texts in _SOURCES.items()
        for kind, text in zip(("source", "tells", "record"), texts, strict=True)
    },
    "diverges_missing": "ranks did not come",
    "diverges_unrecorded": "ranks have no dump",
    "diverges_operation": "another operation",
    "diverges_size": "another size",
    "diverges_order": "another order",
    "diverges_stuck": "all are in, none is out",
    "stack_waiting": "waits for others",
    "stack_starved": "waits for data",
    "stack_checkpoint": "writes a checkpoint",
    "stack_own": "in its own code",
    "stack_unknown": "unknown",
    "file_flight_recorder": "flight-recorder dump",
    "file_process_log": "log of processes",
    "file_kernel_log": "kernel messages",
    "file_launcher_error": "error file of the launcher",
    "file_kubernetes": "state of a pod",
    "file_nvidia_smi": "state of GPUs (nvidia-smi)",
    "file_dcgm": "state of GPUs (DCGM)",
    "file_npu_smi": "state of NPUs (npu-smi)",
    "file_stacks": "stacks",
    "file_tensorboard": "TensorBoard scalars",
}

MESSAGES = {
    "fail_on": "finding of severity {severity}: {finding}",
}

_LEVEL1 = "_ExperimentalConfig(profiler_level=ProfilerLevel.Level1)"
_THAT_RANK = "Record all ranks in the same steps, and look at all, at least at the one that others wait for."
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
    "ranks_missing": "not all ranks of any group are known to be here",
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
