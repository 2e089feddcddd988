"""Texts of the rules about memory and its allocator (MEM)."""

from __future__ import annotations

TITLES = {
    "MEM101": "显存反复申请与归还",
    "MEM102": "循环内清空缓存",
    "MEM103": "触及设备显存上限",
    "MEM104": "显存空闲但已碎片化",
    "MEM105": "申请逐步变大",
    "MEM106": "空闲块过大而无法使用",
    "MEM107": "激活构成峰值",
    "MEM108": "每一步都留下显存",
    "MEM112": "显存申请失败",
    "MEM114": "短时块构成峰值",
    "MEM115": "大量长期存活的小块",
    "MEM117": "梯度保留到前向",
    "MEM118": "优化器造成峰值",
    "MEM119": "分配器设置不起作用",
    "MEM120": "取整浪费显存",
    "MEM109": "设备显存余量很少",
    "MEM110": "事件查询过多",
    "MEM111": "分配器的缓存被关闭",
    "MEM113": "在步内申请锁页内存",
    "MEM116": "大量显存未使用",
}

_CALLS = "共 {count} 次分配器调用，{per}耗时 {time}，造成设备空闲 {idle}。"

SENTENCES = {
    "MEM101": f"各步反复向设备申请又归还显存：{_CALLS}",
    "MEM102": f"循环内调用了 empty_cache()：{_CALLS}",
    "MEM103": f"分配器为腾出空间而归还显存：{_CALLS}",
    "MEM103_snapshot": "{count} 次申请遇到设备已满：归还并重新申请了 {amount}。",
    "MEM104": "为申请 {request} 而增加了预留，尽管当时有 {free} 空闲，其中最大的一片是 {hole}；可节省 {amount}。",
    "MEM105": (
        "有 {growing_steps} 步的申请比此前都大（{first_request}，最后为 {last_request}），预留因此增长，共 {amount}。"
    ),
    "MEM106": (
        "为 {request} 之类的申请增加了 {count} 次预留，共 {amount}；当时有整片 {hole} 空闲，但因过大而不能分配。"
    ),
    "MEM115": (
        "{blocks} 个小于 1 MiB 的块（占存活块的 {of_live}）始终存活；仅由它们占住的段有 {segments} 个，"
        "其中空闲 {amount}。"
    ),
    "MEM107": "激活占峰值的 {of_peak}（{amount}）。",
    "MEM108": "每一步都在 {line} 留下 {amount}（共 {steps} 步）。",
    "MEM112": "申请 {request} 失败，当时有 {free} 空闲，其中最大的一片是 {hole}：{kind}。",
    "MEM114": "随即释放的块占峰值的 {of_peak}（{amount}）。",
    "MEM117": "{amount} 的梯度（占峰值 {of_peak}）一直保留到下一次前向。",
    "MEM118": "显存占用最高（{peak}）时处于优化器的 step 中。",
    "MEM119": "不起作用：{setting}。",
    "MEM120": "块比实际申请大 {waste}。",
    "MEM109": "峰值时已分配 {peak}，设备共 {capacity}（{of_capacity}）。",
    "MEM109_snapshot": "预留最多 {reserved}，设备共 {capacity}（{of_capacity}）。",
    "MEM110": "Host {per}查询事件是否完成 {queries} 次。",
    "MEM111": f"几乎每个张量都直接向设备申请：{_CALLS}",
    "MEM113": "在步内申请锁页内存：共 {count} 次调用，{per}耗时 {time}。",
    "MEM116": "最多只预留了设备显存的 {of_capacity}，而设备有单步的 {busy} 在忙碌。",
}

ADVICE = {
    "expandable_segments.cuda": (
        "设置 PYTORCH_ALLOC_CONF=expandable_segments:True（torch 2.9 之前为 PYTORCH_CUDA_ALLOC_CONF）。"
    ),
    "expandable_segments.ascend": (
        "设置 PYTORCH_NPU_ALLOC_CONF=expandable_segments:True（HDK 23.0 或更新；"
        "不能与 max_split_size_mb 或 garbage_collection_threshold 同用）。"
    ),
    "reuse_buffers": "让各步的大小保持一致，并复用缓冲区。",
    "no_empty_cache.cuda": "从循环中删除 torch.cuda.empty_cache()。",
    "no_empty_cache.ascend": "从循环中删除 torch_npu.npu.empty_cache()。",
    "less_memory": "减小 micro-batch、激活重计算、切分优化器（ZeRO-1、FSDP）。",
    "lean_optimizer": "设置 fused=True 或 foreach=False，同时存在的副本更少；或使用分片优化器（ZeRO-1、FSDP）。",
    "gc_threshold": "garbage_collection_threshold:0.8 会在触及上限之前释放空闲块。",
    "gc_threshold.ascend": (
        "torch_npu.npu.set_per_process_memory_fraction(0.95) 配合 garbage_collection_threshold:0.95，再逐步调低。"
    ),
    "hccl_buffers.cuda": "在模型允许时降低精度。",
    "hccl_buffers.ascend": "每个通信域占用 2 × HCCL_BUFFSIZE（200 MB）：减少通信域或调小缓冲区。",
    "record_streams.cuda": "torch 2.8 之前：设置 TORCH_NCCL_AVOID_RECORD_STREAMS=1。",
    "record_streams.ascend": "设置 MULTI_STREAM_MEMORY_REUSE=1，并在 wait() 之前保持对张量的引用。",
    "enable_cache.cuda": "取消设置环境变量 PYTORCH_NO_CUDA_MEMORY_CACHING。",
    "enable_cache.ascend": "取消设置环境变量 PYTORCH_NO_NPU_MEMORY_CACHING。",
    "pinned_pool.ascend": "复用锁页缓冲区，不要每步重新申请。",
    "pinned_pool": (
        "复用锁页缓冲区，或在分配器配置中设置 pinned_use_cuda_host_register:True、pinned_num_register_threads:8。"
    ),
    "allocate_first": "先分配长期存活的张量。",
    "checkpointing": "对重算开销小的部分（注意力、MLP）做激活重计算。",
    "drop_references": "保存 .item() 或 .detach() 的结果，不要保存带计算图的张量；每步结束后解除引用。",
    "smaller_temporaries": "分块计算、原地计算，或使用融合算子。",
    "settings_together": "删除该设置，或补上它所需的设置：阈值需要 set_per_process_memory_fraction。",
    "contiguous_buffer": "用一块缓冲区加视图代替许多很小的张量。",
    "gradient_views": "DistributedDataParallel(gradient_as_bucket_view=True)：梯度成为通信桶的视图。",
    "longest_first": "先运行一个最大尺寸的 batch，其显存块可供之后所有 batch 复用。",
    "non_split_rounding": "调大 max_non_split_rounding_mb（默认 20），或不设置 max_split_size_mb。",
    "use_memory": "增大 batch、减少重计算、增大 bucket、增加预取。",
}

EVIDENCE = {
    "request": "申请量",
    "free": "段内空闲",
    "hole": "最大空闲片",
    "amount": "涉及量",
    "kind": "种类",
    "setting": "设置",
    "peak": "已分配显存峰值",
    "capacity": "设备显存",
    "queries": "每步查询次数",
    "reserved": "预留显存峰值",
    "of_peak": "占峰值的比例",
    "of_capacity": "占设备显存的比例",
    "waste": "超出申请的比例",
    "first_request": "首次变大的申请",
    "last_request": "最后一次变大的申请",
    "growing_steps": "申请变大的步数",
    "blocks": "块数",
    "of_live": "占存活块的比例",
    "segments": "段数",
}
