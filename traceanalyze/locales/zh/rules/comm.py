"""Texts of the rules about communication (COM)."""

from __future__ import annotations

TITLES = {
    "COM101": "未掩盖通信",
    "COM102": "每个 micro-step 都归约梯度",
    "COM103": "查找未使用的参数",
    "COM104": "小消息通信",
    "COM105": "最后一个梯度 bucket",
    "COM106": "all_gather 到列表",
    "COM107": "发起集合通信后立即等待",
    "COM108": "Kernel 被通信拖慢",
    "COM109": "传输大小未对齐",
    "COM110": "消息大于缓冲区",
    "COM111": "网络设置",
    "COM112": "参数聚合下发过晚",
    "COM113": "使用 nn.DataParallel",
    "COM114": "gloo 集合通信",
    "COM115": "流水线等待",
    "COM116": "并行组跨节点",
    "COM117": "切分级别",
    "COM118": "同步批归一化",
    "COM119": "大消息带宽低",
}

SENTENCES = {
    "COM101": (
        "{per}有 {exposed}（占单步 {share}）只在通信而没有计算；通信的 {overlap} 被掩盖。"
        "其中可能有一部分是在等待其他 Rank。"
    ),
    "COM101_waiting": (
        "{per}有 {exposed}（占单步 {share}）只在通信而没有计算；通信的 {overlap} 被掩盖。"
        "其中 {wait_exposed} 是在等待其他 Rank，通算并行无法消除。"
    ),
    "COM102": "{micro_steps} 个 micro-step 每个都归约梯度：{per}有 {exposed} 未掩盖的 all-reduce 是多余的。",
    "COM103": "DistributedDataParallel 在查找未使用的参数，Host {per}耗时 {host}，其中设备有 {idle} 没有任务。",
    "COM104": "小消息（中位数 {size}，共 {count} 次）{per}耗时 {time}，占通信 {part}。",
    "COM105": "{buckets} 个梯度 bucket 中的最后一个{per}有 {exposed} 未掩盖，占全部未掩盖通信的 {part}。",
    "COM106": "all_gather 到张量列表（共 {count} 次调用）{per}多出 {copies} 次拷贝，耗时 {time}。",
    "COM107": (
        "集合通信（共 {count} 次）一发起，计算就在等待其结果：{per}未掩盖 {exposed}；"
        "如果之后的计算不需要该结果，其中 {hideable} 可以被掩盖。"
    ),
    "COM108": "与通信并行时 Kernel 耗时变长 {slower}，{per}损失 {lost}。",
    "COM108_sdma": (
        "{count} 次卡间传输在与矩阵乘并行时只达到 {bandwidth} GB/s，通常为 {expected} GB/s：两者争用显存带宽。"
    ),
    "COM109": (
        "{count} 次卡间传输的大小不是 512 字节的整数倍（中位数 {size}）：{per}耗时 {time}，"
        "占节点内全部传输时间的 {part}。"
    ),
    "COM110": "{count} 条消息超过缓冲区大小 {buffer}，最大的为 {largest}；{per}耗时 {time}。",
    "COM111": "网络上 {count} 次 1 MB 以上的传输合计只达到 {bandwidth} GB/s，低于 {expected} GB/s；{per}耗时 {time}。",
    "COM111_repeated": "{count} 次网络传输超过 4 s，{per} {time}：数据丢失后被重传。",
    "COM111_invalid": "{variable}={setting} 不是通信库允许的取值。",
    "COM112": "{count} 次参数 all-gather 在前面的计算结束之后才下发：{per}未掩盖 {exposed}。",
    "COM113": "一个进程用 nn.DataParallel 驱动 {devices} 个设备。",
    "COM114": "gloo 集合通信（共 {count} 次）使设备{per}有 {idle} 没有任务。",
    "COM115": "与相邻 Stage 的收发{per}有 {exposed}（{share}）没有计算与之并行。",
    "COM116": "通信域 {group}（{role}）跨节点；其集合通信{per}有 {exposed}（{share}）没有计算与之并行。",
    "COM117": "切分参数的 all-gather {per}未掩盖 {exposed}（占其耗时 {part}），而设备显存始终有 {left} 没有用到。",
    "COM117_replicated": (
        "DistributedDataParallel 在每个 Rank 上都保存完整的优化器状态，而设备显存（{capacity}）已用到 {used}。"
    ),
    "COM118": "同步批归一化共通信 {count} 次，每次 {usual}：{per}未掩盖 {exposed}。",
    "COM119": (
        "通信域 {group} 的大消息（共 {count} 次）只达到 {bandwidth} GB/s，通常为 {expected} GB/s；"
        "{per}未掩盖 {exposed}。"
    ),
}

ADVICE = {
    "overlap_communication": (
        "先比较各 Rank：等待慢 Rank 的时间无法靠掩盖消除。再调整 DDP（bucket_cap_mb、static_graph=True、"
        "gradient_as_bucket_view=True）或 FSDP 的预取，或增大 batch。"
    ),
    "no_sync": "除最后一个 micro-step 外都放在 with ddp.no_sync(): 中；FSDP2 用 set_requires_gradient_sync(False)。",
    "no_unused_search": "设置 find_unused_parameters=False；若每步使用的参数相同，可设 static_graph=True。",
    "larger_buckets": "增大 bucket（bucket_cap_mb）、合并集合通信、梯度累积；用 ZeRO-2 或 ZeRO-1 代替 ZeRO-3。",
    "tune_buckets": "把 bucket_cap_mb（默认 25）分别设为一半和两倍试试；Rank 越多，取值应越大。",
    "gather_into_tensor": (
        "用单个张量调用 torch.distributed.all_gather_into_tensor 与 reduce_scatter_tensor，省去 torch.cat。"
    ),
    "async_collective": "用 async_op=True 发起，先做不依赖结果的计算，在首次需要结果处再调用 work.wait()。",
    "limit_channels": "减少 NCCL 占用的 SM（NCCL_MAX_CTAS、NCCL_MAX_NCHANNELS），并比较步耗时。",
    "limit_channels.ascend": "关闭通算并行比较步耗时；通信与计算共用显存带宽。",
    "hccl_buffsize": "HCCL_BUFFSIZE（单位 MB）至少设为最大消息的大小；每个通信域会占用其两倍的显存。",
    "align_messages": "填充张量，使每个 Rank 的部分是 512 字节的整数倍。",
    "rdma_settings": (
        "按交换机配置（PFC、DSCP）设置 HCCL_RDMA_TC（0 到 255，4 的倍数）与 HCCL_RDMA_SL（0 到 7）；"
        "HCCL_INTRA_ROCE_ENABLE=1 只能与 HCCL_INTRA_PCIE_ENABLE=0 同用；不要设置 HCCL_ALGO。"
    ),
    "groups_inside_node": "TP 与 EP 组放在单个节点内；PP 各 Stage 与 DP 组跨节点。",
    "shard_less": (
        "FSDP2 设 reshard_after_forward=False，或用 ShardingStrategy.SHARD_GRAD_OP、ZeRO-2："
        "前向之后保留参数，每步只聚合一次。"
    ),
    "shard_more": (
        "切分优化器状态：ZeroRedundancyOptimizer（ZeRO-1）或 FSDP 的 SHARD_GRAD_OP；参数也放不下时才完全切分。"
    ),
    "check_topology.cuda": (
        "nvidia-smi topo -m：链路是否全部正常，NCCL 是否用上（NCCL_DEBUG=INFO）？跨节点时检查 NCCL_IB_HCA、NCCL_IB_TC、"
        "NCCL_IB_GID_INDEX 与 GPUDirect；尝试更新的 NCCL。"
    ),
    "check_topology.ascend": (
        "npu-smi info -t topo 与 hccn_tool：HCCS 链路与端口是否全部正常？不要设置 HCCL_ALGO；"
        "跨节点时核对 HCCL_RDMA_TC、HCCL_RDMA_SL 与交换机配置。"
    ),
    "prefetch_parameters": (
        "预取：FSDP(forward_prefetch=True, backward_prefetch=BACKWARD_PRE)，FSDP2 用 set_modules_to_forward_prefetch。"
    ),
    "use_ddp": "改用 torch.nn.parallel.DistributedDataParallel，每个设备一个进程（torchrun）。",
    "device_backend.cuda": '设备上的张量请用 init_process_group("nccl")。',
    "device_backend.ascend": '设备上的张量请用 init_process_group("hccl")。',
    "more_micro_batches": "增加 micro-batch 数、使用交错流水调度、让各 Stage 耗时相近。",
    "plain_batchnorm": "每个 Rank 有 16 个以上样本时用普通批归一化；或减少转换的层数。",
}

EVIDENCE = {
    "exposed": "未掩盖",
    "overlap": "被掩盖的通信",
    "wait_exposed": "其中等待",
    "last_bucket": "最后一个梯度桶（无法被掩盖）",
    "micro_steps": "micro-step 数",
    "size": "大小中位数",
    "buckets": "bucket 数",
    "copies": "拷贝数",
    "hideable": "计算可掩盖",
    "lost": "损失",
    "slower": "变慢",
    "largest": "最大",
    "buffer": "缓冲区",
    "devices": "设备数",
    "usual": "耗时中位数",
    "group": "通信域",
    "role": "通信域种类",
    "expected": "应达到（GB/s）",
    "used": "显存占用",
}
