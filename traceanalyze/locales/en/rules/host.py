"""Texts of the rules about the host and dispatch (HST)."""

from __future__ import annotations

TITLES = {
    "HST101": "the host launches too slowly",
    "HST102": "kernels shorter than their launch",
    "HST103": "many gaps between queued kernels",
    "HST104": "pauses of the garbage collector",
    "HST105": "debugging tools switched on",
    "HST106": "launches wait for their kernels",
    "HST107": "host work outside of operators",
    "HST108": "launch calls of uneven speed",
    "HST109": "many small copies",
    "HST110": "too little work at a time",
    "HST111": "optimizer that is not fused",
    "HST112": "gradients filled with zeros",
}

SENTENCES = {
    "HST101_first_use": (
        "The device waits {idle} {per} ({share} of it), up to {longest} at a time, for work of the host that does not "
        "come back, as when libraries are loaded, kernels compiled or graphs captured for the first time."
    ),
    "HST101": (
        "The device waits {idle} {per} for the host to prepare and launch work; {late} of its gaps end with work that "
        "was launched too late."
    ),
    "HST102": (
        "{share} of the kernels take less time than the calls that launch them; the device is idle for {idle} {per} "
        "right after these."
    ),
    "HST103": "Between queued kernels the device is idle for {idle} {per}, in {count} gap(s).",
    "HST104": (
        "Python's garbage collector ran {count} time(s) for 1 ms or more, {longest} at most; the device is idle for "
        "{idle} {per} meanwhile."
    ),
    "HST104_host": (
        "Python's garbage collector ran {count} time(s) for 1 ms or more, {longest} at most; it takes {time} {per}."
    ),
    "HST104_suspected": (
        "Every launching thread stands still {count} time(s), {longest} at most, as if Python collected garbage; the "
        "device is idle for {idle} {per} meanwhile."
    ),
    "HST105": "Debugging tools run inside the steps, {count} time(s): {what}.",
    "HST106": "After {share} of the launches the host waits for the device, as under launch blocking.",
    "HST107": (
        "The device waits {idle} {per} for host work that the trace does not show; the longest stretch is {longest}."
    ),
    "HST107_lines": (
        "The device waits {idle} {per} for host work outside of operators, most of it around {line}; the longest "
        "stretch is {longest}."
    ),
    "HST107_host": (
        "The host spends {time} {per} on work that the trace does not show, in stretches of 1 ms or more; the longest "
        "is {longest}."
    ),
    "HST107_host_lines": (
        "The host spends {time} {per} outside of operators, in stretches of 1 ms or more, most of it around {line}; "
        "the longest is {longest}."
    ),
    "HST108": "Half of the launch calls take up to {median}, but a tenth {slow} or more.",
    "HST109": "{each} copies {per} go between host and device, half of them below {bytes}; they cost {time} {per}.",
    "HST110": "The device is busy {busy} of the step.",
    "HST110_host": (
        "Operators outside of the optimizer do so little each that calling them takes {time} {per} ({share} of it, "
        "without what recording adds)."
    ),
    "HST111": "The optimizer runs {kernels} kernels one by one, {time} {per}.",
    "HST111_foreach": "The optimizer runs in {kernels} kernels over lists of tensors, {time} {per}.",
    "HST111_host": "The optimizer runs {operators} operators one by one, {time} {per}.",
    "HST111_host_foreach": "The optimizer runs {operators} operators for lists of tensors, {time} {per}.",
    "HST112": "zero_grad fills gradients with zeros, {count} time(s): {time} {per}.",
}

ADVICE = {
    "fewer_kernels": "Launch fewer, larger kernels: torch.compile or fused operators, a fused optimizer.",
    "fewer_kernels.ascend": "Launch fewer, larger kernels: fused operators (torch_npu.npu_*), a fused optimizer.",
    "graphs.cuda": 'Replay CUDA graphs: torch.compile(mode="reduce-overhead") or make_graphed_callables.',
    "graphs.ascend": (
        "Raise the task queue to TASK_QUEUE_ENABLE=2, bind cores (CPU_AFFINITY_CONF=1), or use graph mode."
    ),
    "record_later": "Record later steps: schedule(wait=…, warmup=…), or run the code a few times before recording.",
    "larger_batch": "Raise the batch size, if memory and training allow it.",
    "compile_host": "torch.compile makes fewer, larger operators of many.",
    "host_light_run": "Stacks and shapes slow the host down while recording: confirm with a recording without them.",
    "freeze_gc": "gc.freeze() once after the set-up, and higher thresholds: gc.set_threshold(100_000, 50, 100).",
    "collect_together": "Or gc.disable() and gc.collect() every N steps, in the same step on all ranks.",
    "no_debugging": "Switch debugging tools off in production runs.",
    "unset_launch_blocking.cuda": "Unset CUDA_LAUNCH_BLOCKING.",
    "unset_launch_blocking.ascend": "Unset ASCEND_LAUNCH_BLOCKING; it switches the task queue off as well.",
    "move_python": "Move this work to the data loader's workers or to another thread, or do it every N steps only.",
    "record_stacks": "Record with_stack=True once to see which lines they are.",
    "bind_cores.cuda": (
        "Bind each process to the socket of its device: torchrun --numa-binding=node, or numactl --cpunodebind "
        "--membind."
    ),
    "bind_cores.ascend": "Bind cores: CPU_AFFINITY_CONF=1 (or 2); npu-smi info -t topo shows which are near.",
    "pack_copies": "Pack small tensors into one pinned buffer and copy it once.",
    "create_on_device": "Create tensors on the device (device=…) instead of copying them there.",
    "fused_optimizer.cuda": "Give the optimizer fused=True; where it has none, foreach=True.",
    "fused_optimizer.ascend": "Use the fused optimizers of torch_npu.optim (NpuFusedAdamW, NpuFusedSGD, …).",
    "fused_optimizer_host": "Give the optimizer fused=True (CPU: torch 2.4 or newer); foreach=True is hardly faster.",
    "set_to_none": "optimizer.zero_grad(set_to_none=True).",
}

EVIDENCE = {
    "late": "gaps ended by late launches",
    "depth": "median queue depth",
    "longest": "longest",
    "what": "what",
    "line": "line",
    "median": "median launch call",
    "slow": "90th percentile",
    "each": "copies a step",
    "bytes": "median size",
    "time": "time a step",
    "busy": "busy",
    "kernels": "kernels a step",
    "operators": "operators a step",
}
