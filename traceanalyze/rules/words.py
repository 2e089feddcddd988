"""English that several rules share: advice, and what their evidence is called."""

ADVICE = {
    "set_workers": (
        "DataLoader(num_workers=4 or more, pin_memory=True, persistent_workers=True); then tune the number of workers "
        "and prefetch_factor."
    ),
    "cheaper_samples": "Decode and augment more cheaply, or beforehand.",
    "local_data": "Keep the data on a local NVMe disk, in few large files.",
    "bucket_lengths": "Bucket samples by length, keep the tokens of a batch constant, or pad to few sizes.",
    "fewer_kernels": "Launch fewer, larger kernels: torch.compile or fused operators; in training a fused optimizer.",
    "fewer_kernels.ascend": (
        "Launch fewer, larger kernels: fused operators (torch_npu.npu_*); in training a fused optimizer."
    ),
    "graphs.cuda": 'Replay CUDA graphs: torch.compile(mode="reduce-overhead") or make_graphed_callables.',
    "graphs.ascend": (
        "Raise the task queue to TASK_QUEUE_ENABLE=2, bind cores (CPU_AFFINITY_CONF=1), or use graph mode."
    ),
    "larger_batch": "Raise the batch size, if memory and training, or the latency of requests, allow it.",
    "create_on_device": "Create tensors on the device (device=…) instead of copying them there.",
    "set_to_none": "optimizer.zero_grad(set_to_none=True).",
    "expandable_segments.cuda": (
        "PYTORCH_ALLOC_CONF=expandable_segments:True (before torch 2.9 PYTORCH_CUDA_ALLOC_CONF)."
    ),
    "expandable_segments.ascend": (
        "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True (HDK 23.0 or newer; not with max_split_size_mb or "
        "garbage_collection_threshold)."
    ),
    "less_memory": "A smaller micro-batch, activation checkpointing, a sharded optimizer (ZeRO-1, FSDP).",
    "contiguous_buffer": "One buffer with views in place of many tiny tensors.",
    "diff_ranks": (
        "Compare that rank with another one (traceanalyze compare OTHER LATE) and fix what takes longer; check its "
        "clock rates and its host."
    ),
    "balance_batches": (
        "Give every rank the same number of tokens: bucket or sort by length; experts: balance loss, capacity."
    ),
    "profiler_warmup": "Let the profiler warm up: schedule(wait=1, warmup=1, active=5).",
}
"""Key, `key.cuda` or `key.ascend` → what to do."""
EVIDENCE = {
    "variation": ("variation", "NUMBER"),
    "share": ("share of the step", "SHARE"),
    "longest": ("longest", "DURATION"),
    "what": ("what", "PLACE"),
    "line": ("line", "NAME"),
    "median": ("median launch call", "DURATION"),
    "busy": ("busy", "SHARE"),
    "blocked": ("host blocked", "DURATION"),
    "place": ("of it at", "DURATION"),
    "request": ("request", "MEMORY"),
    "free": ("free inside segments", "MEMORY"),
    "hole": ("largest free piece", "MEMORY"),
    "amount": ("amount", "MEMORY"),
    "peak": ("peak of allocated memory", "MEMORY"),
    "capacity": ("device memory", "MEMORY"),
    "of_peak": ("share of the peak", "SHARE"),
    "of_capacity": ("share of the device's memory", "SHARE"),
    "time": ("time a step", "DURATION"),
    "part": ("part of compute", "SHARE"),
    "shape": ("shapes", "TEXT"),
    "left": ("memory left", "SHARE"),
    "kernels": ("kernels", "COUNT"),
    "regions": ("compiled regions", "COUNT"),
    "host": ("host time", "DURATION"),
    "idle": ("idle time", "DURATION"),
    "exposed": ("exposed", "DURATION"),
    "last_bucket": ("last bucket, exposed in any case", "DURATION"),
    "size": ("median size", "MEMORY"),
    "lost": ("lost", "DURATION"),
    "slower": ("slower by", "SHARE"),
    "group": ("group", "NAME"),
    "expected": ("expected (GB/s)", "NUMBER"),
    "wait": ("wait of the others", "DURATION"),
    "rank": ("rank", "TEXT"),
    "most": ("most", "DURATION"),
    "least": ("least", "DURATION"),
    "bandwidth": ("bandwidth (GB/s)", "NUMBER"),
    "ranks": ("ranks", "COUNT"),
    "variable": ("variable", "NAME"),
    "setting": ("set to", "TEXT"),
    "count": ("number", "COUNT"),
    "checks": ("checks", "TEXT"),
    "steps": ("complete steps", "COUNT"),
}
"""Label → words, and name of its kind (see `Evidence.kind`)."""
