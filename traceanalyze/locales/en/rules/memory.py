"""Texts of the rules about memory and its allocator (MEM)."""

from __future__ import annotations

TITLES = {
    "MEM101": "device memory taken and given back",
    "MEM102": "cache emptied in the loop",
    "MEM103": "at the limit of device memory",
    "MEM104": "memory free only in pieces",
    "MEM105": "requests grow from step to step",
    "MEM106": "free blocks too large to be used",
    "MEM107": "activations make the peak",
    "MEM108": "memory left behind by every step",
    "MEM112": "a request for memory failed",
    "MEM114": "short-lived blocks make the peak",
    "MEM115": "small long-lived blocks",
    "MEM117": "gradients kept through the forward pass",
    "MEM118": "the optimizer makes the peak",
    "MEM119": "allocator settings without effect",
    "MEM120": "memory lost by rounding",
    "MEM109": "little device memory left",
    "MEM110": "many queries of events",
    "MEM111": "allocator's cache switched off",
    "MEM113": "pinned memory allocated in steps",
    "MEM116": "much device memory unused",
}

_CALLS = "{count} allocator call(s) in all take {time} {per}, and leave the device idle for {idle}."

SENTENCES = {
    "MEM101": f"Steps take memory from the device and give it back: {_CALLS}",
    "MEM102": f"empty_cache() runs in the loop: {_CALLS}",
    "MEM103": f"The allocator gives memory back to make room: {_CALLS}",
    "MEM103_snapshot": "{count} request(s) found the device full: {amount} were given back and taken again.",
    "MEM104": (
        "The reserve grew for a request of {request} although {free} were free, the largest piece {hole}; "
        "{amount} could "
        "be saved."
    ),
    "MEM107": "Activations are {of_peak} of the peak ({amount}).",
    "MEM105": (
        "In {growing_steps} steps a request was larger than any before ({first_request}, at last {last_request}), and "
        "the reserve grew: "
        "{amount} in all."
    ),
    "MEM106": (
        "The reserve grew {count} times for requests such as {request} although {hole} lay free in one piece, too "
        "large to be given away: {amount} in all."
    ),
    "MEM108": "Every step leaves {amount} behind at {line} (seen over {steps} steps).",
    "MEM112": "A request of {request} failed with {free} free, the largest piece {hole}: {kind}.",
    "MEM114": "Blocks that are freed again at once are {of_peak} of the peak ({amount}).",
    "MEM115": (
        "{blocks} blocks below 1 MiB ({of_live} of all live ones) live throughout; alone they keep {segments} segments "
        "with {amount} free."
    ),
    "MEM117": "{amount} of gradients ({of_peak} of the peak) live through the next forward pass.",
    "MEM118": "Memory is highest ({peak}) inside the optimizer's step.",
    "MEM119": "No effect: {setting}.",
    "MEM120": "Blocks are {waste} larger than what was asked for.",
    "MEM109": "At its peak {peak} of {capacity} are allocated ({of_capacity}).",
    "MEM109_snapshot": "At most {reserved} of {capacity} are reserved ({of_capacity}).",
    "MEM110": "The host asks {queries} times {per} whether an event has happened.",
    "MEM111": f"Nearly every tensor is allocated by the device: {_CALLS}",
    "MEM113": "Pinned memory is allocated in the steps: {count} call(s) in all take {time} {per}.",
    "MEM116": "At most {of_capacity} of the device's memory is reserved, and the device is busy {busy} of the step.",
}

ADVICE = {
    "expandable_segments.cuda": (
        "PYTORCH_ALLOC_CONF=expandable_segments:True (before torch 2.9 PYTORCH_CUDA_ALLOC_CONF)."
    ),
    "expandable_segments.ascend": (
        "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True (HDK 23.0 or newer; not with max_split_size_mb or "
        "garbage_collection_threshold)."
    ),
    "reuse_buffers": "Keep sizes alike from step to step, and use buffers again.",
    "no_empty_cache.cuda": "Remove torch.cuda.empty_cache() from the loop.",
    "no_empty_cache.ascend": "Remove torch_npu.npu.empty_cache() from the loop.",
    "less_memory": "A smaller micro-batch, activation checkpointing, a sharded optimizer (ZeRO-1, FSDP).",
    "lean_optimizer": "fused=True, or foreach=False: fewer copies at once; or a sharded optimizer (ZeRO-1, FSDP).",
    "gc_threshold": "garbage_collection_threshold:0.8 frees blocks before the limit is reached.",
    "gc_threshold.ascend": (
        "torch_npu.npu.set_per_process_memory_fraction(0.95) with garbage_collection_threshold:0.95, then lower."
    ),
    "hccl_buffers.cuda": "Lower precision where the model allows it.",
    "hccl_buffers.ascend": "Each communicator takes 2 × HCCL_BUFFSIZE (200 MB): fewer groups or smaller buffers.",
    "record_streams.cuda": "torch before 2.8: TORCH_NCCL_AVOID_RECORD_STREAMS=1.",
    "record_streams.ascend": "MULTI_STREAM_MEMORY_REUSE=1, and keep references to tensors until wait().",
    "enable_cache.cuda": "Unset PYTORCH_NO_CUDA_MEMORY_CACHING.",
    "enable_cache.ascend": "Unset PYTORCH_NO_NPU_MEMORY_CACHING.",
    "pinned_pool.ascend": "Use pinned buffers again instead of making new ones in each step.",
    "pinned_pool": (
        "Use pinned buffers again, or pinned_use_cuda_host_register:True, pinned_num_register_threads:8 in the "
        "allocator's settings."
    ),
    "allocate_first": "Allocate long-lived tensors first.",
    "checkpointing": "Activation checkpointing of blocks that are cheap to compute again (attention, MLP).",
    "drop_references": "Keep .item() or .detach() instead of tensors with their graph; drop references after the step.",
    "smaller_temporaries": "Compute in pieces, in place, or with a fused operator.",
    "settings_together": "Remove the setting, or set what it needs: set_per_process_memory_fraction for the threshold.",
    "contiguous_buffer": "One buffer with views in place of many tiny tensors.",
    "gradient_views": "DistributedDataParallel(gradient_as_bucket_view=True): gradients are views of the buckets.",
    "longest_first": "Run one batch of the largest size first: its blocks serve all later ones.",
    "non_split_rounding": "Raise max_non_split_rounding_mb (default 20), or leave max_split_size_mb out.",
    "use_memory": "A larger batch, less checkpointing, larger buckets, more prefetching.",
}

EVIDENCE = {
    "request": "request",
    "free": "free inside segments",
    "hole": "largest free piece",
    "amount": "amount",
    "kind": "kind",
    "setting": "setting",
    "peak": "peak of allocated memory",
    "capacity": "device memory",
    "queries": "queries a step",
    "reserved": "peak of reserved memory",
    "of_peak": "share of the peak",
    "of_capacity": "share of the device's memory",
    "waste": "more than asked for",
    "first_request": "first larger request",
    "last_request": "last larger request",
    "growing_steps": "steps with larger requests",
    "blocks": "blocks",
    "of_live": "share of live blocks",
    "segments": "segments",
}
