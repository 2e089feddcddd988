"""Texts of the rules about communication (COM)."""

from __future__ import annotations

TITLES = {
    "COM101": "communication that nothing hides",
    "COM102": "gradients reduced in every micro-step",
    "COM103": "search for unused parameters",
    "COM104": "communication in small messages",
    "COM105": "last bucket of gradients",
    "COM106": "all_gather into a list",
    "COM107": "collectives waited for at once",
    "COM108": "kernels slowed by communication",
    "COM110": "messages larger than the buffer",
    "COM112": "parameters gathered late",
    "COM113": "nn.DataParallel",
    "COM114": "collectives of gloo",
    "COM115": "waiting in the pipeline",
    "COM118": "synchronised batch normalisation",
}

SENTENCES = {
    "COM101": (
        "For {exposed} a step ({share} of it) communication runs with no compute beside it; {overlap} of the "
        "communication is hidden. Part of it may be waiting for other ranks."
    ),
    "COM102": (
        "Gradients are reduced in each of {micro_steps} micro-steps: {exposed} a step of exposed all-reduces "
        "is for nothing."
    ),
    "COM103": (
        "DistributedDataParallel searches for unused parameters, {host} a step on the host; the device has no "
        "work for {idle} of it."
    ),
    "COM104": "Small messages ({size} in the middle, {count} in all) take {time} a step, {part} of the communication.",
    "COM105": (
        "The last of {buckets} buckets of gradients is exposed for {exposed} a step, {part} of all exposed "
        "communication."
    ),
    "COM106": "all_gather into lists of tensors ({count} call(s) in all) costs {time} a step in {copies} copies.",
    "COM107": (
        "Compute waits for collectives ({count} in all) right after they are asked for: {exposed} a step "
        "exposed, of which compute that follows could hide {hideable}, if it does not need the result."
    ),
    "COM108": "Kernels take {slower} longer while communication runs beside them, {lost} a step.",
    "COM110": "{count} message(s), the largest of {largest}, exceed the buffer of {buffer}; they take {time} a step.",
    "COM112": (
        "{count} all-gather(s) of parameters are launched only when the compute before them is over: "
        "{exposed} a step exposed."
    ),
    "COM113": "One process drives {devices} devices by nn.DataParallel.",
    "COM114": "Collectives of gloo ({count} in all) leave the device without work {idle} a step.",
    "COM115": "Sending to and receiving from neighbours takes {exposed} a step ({share}) with no compute beside it.",
    "COM118": (
        "Synchronised batch normalisation communicates {count} time(s) in all, {usual} each: {exposed} a step exposed."
    ),
}

ADVICE = {
    "overlap_communication": (
        "First compare the ranks: waiting for a late one is no matter of overlap. Then tune DDP "
        "(bucket_cap_mb, static_graph=True, gradient_as_bucket_view=True) or prefetching in FSDP, or raise "
        "the batch."
    ),
    "no_sync": "with ddp.no_sync(): around all micro-steps but the last; FSDP2: set_requires_gradient_sync(False).",
    "no_unused_search": (
        "find_unused_parameters=False, or static_graph=True if the same parameters are used in every step."
    ),
    "larger_buckets": (
        "Larger buckets (bucket_cap_mb), coalesced collectives, gradient accumulation; ZeRO-2 or ZeRO-1 "
        "instead of ZeRO-3."
    ),
    "tune_buckets": "Try bucket_cap_mb (25 by default) at half and at twice its value; the more ranks, the larger.",
    "gather_into_tensor": (
        "torch.distributed.all_gather_into_tensor and reduce_scatter_tensor with one tensor, without torch.cat."
    ),
    "async_collective": (
        "async_op=True, then work that does not need the result, then work.wait() where it is needed first."
    ),
    "limit_channels": "Give NCCL fewer multiprocessors (NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS) and compare the step time.",
    "limit_channels.ascend": (
        "Compare the step time with overlap off; communication shares the memory's bandwidth with compute."
    ),
    "hccl_buffsize": (
        "HCCL_BUFFSIZE in MB at least the size of the largest message; each communicator takes twice as much memory."
    ),
    "prefetch_parameters": (
        "Prefetch: FSDP(forward_prefetch=True, backward_prefetch=BACKWARD_PRE), FSDP2 set_modules_to_forward_prefetch."
    ),
    "use_ddp": "torch.nn.parallel.DistributedDataParallel with one process a device (torchrun).",
    "device_backend.cuda": 'init_process_group("nccl") for tensors on devices.',
    "device_backend.ascend": 'init_process_group("hccl") for tensors on devices.',
    "more_micro_batches": "More micro-batches, an interleaved schedule, stages of equal time.",
    "plain_batchnorm": "Plain batch norm if each rank has 16 samples or more; or convert fewer layers.",
}

EVIDENCE = {
    "exposed": "exposed",
    "overlap": "communication hidden",
    "micro_steps": "micro-steps",
    "size": "median size",
    "buckets": "buckets",
    "copies": "copies",
    "hideable": "compute could hide",
    "lost": "lost",
    "slower": "slower by",
    "largest": "largest",
    "buffer": "buffer",
    "devices": "devices",
    "usual": "median time",
}
