"""Texts of the rules about synchronisation points (SYN)."""

from __future__ import annotations

TITLES = {
    "SYN101": "values read from the device",
    "SYN102": "shapes that depend on data",
    "SYN103": "explicit synchronisation",
    "SYN104": "copies to the host inside the step",
    "SYN105": "copies from pageable memory",
    "SYN106": "norm of the gradients read",
    "SYN107": "gradient scaler waits",
    "SYN108": "host waits for collectives",
}

_AHEAD = " Without them the host would be ahead of the device afterwards, too, which the saving counts."

_PLAIN = {
    "SYN101": "Reading values from the device ({count} time(s) in all) leaves it without work {idle} {per}.",
    "SYN102": (
        "Operators whose shapes depend on data ({count} sync(s) in all) leave the device without work {idle} {per}."
    ),
    "SYN103": (
        "Waiting for the device outside of operators ({count} time(s) in all) leaves it without work {idle} {per}."
    ),
    "SYN104": "Copies to the host ({count} sync(s) in all) leave the device without work {idle} {per}.",
    "SYN105": (
        "Copies to the device hold the host up or come from pageable memory ({count} in all): {idle} {per} the device "
        "has no work, {exposed} nothing but these copies runs."
    ),
    "SYN106": (
        "Reading the norm of the gradients ({count} sync(s) in all) leaves the device without work {idle} {per}."
    ),
    "SYN107": "The gradient scaler ({count} sync(s) in all) leaves the device without work {idle} {per}.",
    "SYN108": "The host waits for collectives ({count} sync(s) in all): {idle} {per} the device has no work.",
}
SENTENCES = _PLAIN | {f"{rule}_ahead": text + _AHEAD for rule, text in _PLAIN.items()}

ADVICE = {
    "read_rarely": "Read values every N steps only, or sum them on the device (detach()) and read the sum.",
    "sync_debug_mode.cuda": 'torch.cuda.set_sync_debug_mode("warn") names the lines.',
    "sync_debug_mode.ascend": 'torch_npu.npu.set_sync_debug_mode("warn") names the lines.',
    "fixed_shapes": "Use torch.where or masks, a fixed capacity, output_size= where the operator takes it.",
    "fixed_shapes.ascend": (
        "Use torch.where or masks, a fixed capacity, output_size= where the operator takes it; such operators may also "
        "run on the AI CPU."
    ),
    "device_events.cuda": "Remove the calls; take times with torch.cuda.Event.",
    "device_events.ascend": "Remove the calls; take times with torch_npu.npu.Event.",
    "keep_on_device": "Keep the computation on the device.",
    "read_late": "Copy results once, at the end of the step, into pinned memory with non_blocking=True and an event.",
    "pin_memory": (
        "pin_memory=True in the DataLoader and .to(device, non_blocking=True); neither helps without the other."
    ),
    "prefetch_copy": "Copy the next batch ahead, on a side stream.",
    "norm_on_device": "Keep the norm on the device (error_if_nonfinite=False) and log it rarely.",
    "bf16_no_scaler": "bfloat16 needs no gradient scaler.",
    "fused_scaler": "A fused optimizer (fused=True) takes the scaler's flag on the device.",
    "fused_scaler.ascend": "torch_npu.optim.NpuFused* optimizers take the scaler's flag on the device.",
    "unset_blocking_wait.cuda": "Unset TORCH_NCCL_BLOCKING_WAIT; remove barriers that only serve timing.",
    "unset_blocking_wait.ascend": "Unset TORCH_HCCL_BLOCKING_WAIT; remove barriers that only serve timing.",
}

EVIDENCE = {
    "count": "sync calls",
    "blocked": "host blocked",
    "place": "of it at",
    "exposed": "exposed copies",
}
