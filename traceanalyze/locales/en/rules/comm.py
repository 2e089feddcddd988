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
    "COM109": "transfers of odd sizes",
    "COM110": "messages larger than the buffer",
    "COM111": "network settings",
    "COM112": "parameters gathered late",
    "COM113": "nn.DataParallel",
    "COM114": "collectives of gloo",
    "COM115": "waiting in the pipeline",
    "COM116": "parallel groups across machines",
    "COM117": "level of sharding",
    "COM118": "synchronised batch normalisation",
    "COM119": "low bandwidth of large messages",
}

SENTENCES = {
    "COM101": (
        "For {exposed} {per} ({share} of it) communication runs with no compute beside it; {overlap} of the "
        "communication is hidden. Part of it may be waiting for other ranks."
    ),
    "COM101_waiting": (
        "For {exposed} {per} ({share} of it) communication runs with no compute beside it; {overlap} of the "
        "communication is hidden. {wait_exposed} of it is waiting for other ranks, which overlap does not remove."
    ),
    "COM102": (
        "Gradients are reduced in each of {micro_steps} micro-steps: {exposed} {per} of exposed all-reduces "
        "is for nothing."
    ),
    "COM103": (
        "DistributedDataParallel searches for unused parameters, {host} {per} on the host; the device has no "
        "work for {idle} of it."
    ),
    "COM104": "Small messages ({size} in the middle, {count} in all) take {time} {per}, {part} of the communication.",
    "COM105": (
        "The last of {buckets} buckets of gradients is exposed for {exposed} {per}, {part} of all exposed "
        "communication."
    ),
    "COM106": "all_gather into lists of tensors ({count} call(s) in all) costs {time} {per} in {copies} copies.",
    "COM107": (
        "Compute waits for collectives ({count} in all) right after they are asked for: {exposed} {per} "
        "exposed, of which compute that follows could hide {hideable}, if it does not need the result."
    ),
    "COM108": "Kernels take {slower} longer while communication runs beside them, {lost} {per}.",
    "COM108_sdma": (
        "{count} transfer(s) between devices reach {bandwidth} GB/s beside matrix products, where {expected} GB/s are "
        "usual: both share the memory's bandwidth."
    ),
    "COM109": (
        "{count} transfer(s) between devices have sizes that are no multiple of 512 bytes ({size} in the middle): "
        "{time} {per}, {part} of the time of all transfers inside the machine."
    ),
    "COM110": "{count} message(s), the largest of {largest}, exceed the buffer of {buffer}; they take {time} {per}.",
    "COM111": (
        "{count} transfer(s) of 1 MB or more over the network reach {bandwidth} GB/s together, below {expected} GB/s; "
        "they take {time} {per}."
    ),
    "COM111_repeated": (
        "{count} transfer(s) over the network took more than 4 s, {time} {per}: they were lost and sent again."
    ),
    "COM111_invalid": "{variable}={setting} is not a value that the communication library allows.",
    "COM112": (
        "{count} all-gather(s) of parameters are launched only when the compute before them is over: "
        "{exposed} {per} exposed."
    ),
    "COM113": "One process drives {devices} devices by nn.DataParallel.",
    "COM114": "Collectives of gloo ({count} in all) leave the device without work {idle} {per}.",
    "COM115": "Sending to and receiving from neighbours takes {exposed} {per} ({share}) with no compute beside it.",
    "COM116": (
        "Group {group} ({role}) spans machines; its collectives take {exposed} {per} ({share}) with no compute beside "
        "them."
    ),
    "COM117": (
        "All-gathers of sharded parameters are exposed {exposed} {per} ({part} of their time), and {left} of the "
        "device's memory is never used."
    ),
    "COM117_replicated": (
        "DistributedDataParallel keeps the optimizer's state on every rank, and {used} of the device's memory "
        "({capacity}) is used."
    ),
    "COM118": (
        "Synchronised batch normalisation communicates {count} time(s) in all, {usual} each: {exposed} {per} exposed."
    ),
    "COM119": (
        "Large messages of group {group} ({count} in all) reach {bandwidth} GB/s, where {expected} GB/s are usual; "
        "they are exposed {exposed} {per}."
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
    "align_messages": "Pad tensors so that the part of each rank is a multiple of 512 bytes.",
    "rdma_settings": (
        "Set HCCL_RDMA_TC (0 to 255, a multiple of 4) and HCCL_RDMA_SL (0 to 7) as the switches are configured (PFC, "
        "DSCP); HCCL_INTRA_ROCE_ENABLE=1 only with HCCL_INTRA_PCIE_ENABLE=0; leave HCCL_ALGO unset."
    ),
    "groups_inside_node": (
        "Tensor and expert parallel groups inside one machine; pipeline stages and data parallel groups across them."
    ),
    "shard_less": (
        "reshard_after_forward=False (FSDP2), ShardingStrategy.SHARD_GRAD_OP or ZeRO-2: parameters stay after the "
        "forward and are gathered once a step."
    ),
    "shard_more": (
        "Shard the optimizer: ZeroRedundancyOptimizer (ZeRO-1) or FSDP with SHARD_GRAD_OP; full sharding only where "
        "parameters do not fit, either."
    ),
    "check_topology.cuda": (
        "nvidia-smi topo -m: do all links work, and does NCCL use them (NCCL_DEBUG=INFO)? Between machines look at "
        "NCCL_IB_HCA, NCCL_IB_TC, NCCL_IB_GID_INDEX and GPUDirect; try a newer NCCL."
    ),
    "check_topology.ascend": (
        "npu-smi info -t topo and hccn_tool: do all HCCS links and ports work? Leave HCCL_ALGO unset; between machines "
        "check HCCL_RDMA_TC and HCCL_RDMA_SL against the switches."
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
    "wait_exposed": "of it waiting",
    "last_bucket": "last bucket, exposed in any case",
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
    "group": "group",
    "role": "kind of group",
    "expected": "expected (GB/s)",
    "used": "memory used",
}
