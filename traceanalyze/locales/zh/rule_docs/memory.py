"""Documents of the rules about memory and its allocator (MEM)."""

from __future__ import annotations

DOCS = {
    "MEM101": """每一步都向设备申请显存又归还。

发现什么
    第一步之后有两步或更多步出现设备显存的申请与释放调用（`cudaMalloc`、
    `cudaFree`、`cuMemMap` 等）。
为什么耗时
    缓存分配器正是为了让各步不需要这些调用。每次调用最长可达数毫秒，释放时还要等
    待设备。
如何测量
    大部分被这类调用占据的空闲间隙中由 Host 造成的部分，或去掉它们之后重放下发所
    得的收益，取较大者。第一步可以申请。
怎么办
    `expandable_segments:True`；让大小保持一致，复用缓冲区，远离显存上限。

参考
    Understanding CUDA memory usage；CUDA semantics；torch_npu 分配器设置。""",
    "MEM102": """程序在循环内清空分配器的缓存。

发现什么
    第一步之后各步中的 `empty_cache` 调用，以及由此引起的设备显存申请。
为什么耗时
    所有缓存的显存都归还给设备，而设备要等正在执行的任务全部完成；下一步又得重新
    申请。
如何测量
    同 MEM101，限于采集了 Python 函数、且其中有 `empty_cache` 的数据。
怎么办
    删除该调用；它释放的显存，程序自己本来都能复用。

参考
    Understanding CUDA memory usage；msprof-analyze advisor。""",
    "MEM103": """程序运行在设备显存的上限。

发现什么
    第一步之后，在设备显存几乎全部被预留时归还显存；或快照的历史中有遇到设备已满
    的申请。
为什么耗时
    放不下的申请会使分配器等待设备、归还缓存，然后重试。
如何测量
    这类步中的释放调用，且记录到的最高预留达到设备显存的 90 % 或以上；代价同
    MEM101。在快照中：同一次调用内，归还之后又增长，或归还之后失败
    （memory-snapshot 规格，D2）。
怎么办
    减小 micro-batch、激活重计算、切分优化器；
    `garbage_collection_threshold:0.8`。

参考
    Understanding CUDA memory usage；昇腾大模型调优指南。""",
    "MEM104": """空闲显存足够，预留仍在增长。

发现什么
    申请比当时的空闲显存小，但空闲片都太小、放不下它，预留因此增长。
为什么耗时
    设备显存过早占满；到达上限时，分配器要等待设备再重试。
如何测量
    在每次增长处重放快照的历史（memory-snapshot 规格，D4）；绝不以导出快照的时刻
    为准，健康的程序在那时空闲最多。
怎么办
    `expandable_segments:True`；先分配长期存活的张量。

参考
    Understanding CUDA memory usage；CUDA semantics。""",
    "MEM105": """申请逐步变大，预留也随之增长。

发现什么
    某一源码行在第一步之后的三步或更多步中，申请都比此前任何一次大，且每次都要向
    设备新取显存。
为什么耗时
    之前各步的块太小，无法复用：预留一块一块地增长，到达设备显存上限时，分配器要
    等待设备再重试。
如何测量
    快照的历史中，申请大于同一调用栈此前全部申请的增长与重试。第一步在任何程序里
    都会申请，不计入。
怎么办
    先运行一个最大尺寸的 batch；对长度分桶或填充；`expandable_segments:True`。

参考
    Performance tuning guide（输入长度可变时预先分配显存）；CUDA semantics。""",
    "MEM106": """空闲块过大而无法使用。

发现什么
    为大于 `max_split_size_mb` 的申请而增加预留，而当时有空闲块比申请大 20 MiB
    以上。
为什么耗时
    这类块从不切分，只会整块交给大小相近的申请；因此它们闲置着，而设备显存逐渐占
    满。
如何测量
    在每次增长处，将快照历史中的空闲块与申请相比。没有 `max_split_size_mb` 时块
    会切分，也就无问题可言。
怎么办
    调大 `max_non_split_rounding_mb`（默认 20），或不设置 `max_split_size_mb`。

参考
    CUDA semantics：memory management。""",
    "MEM107": """峰值显存的大部分是激活。

发现什么
    在触及上限的程序中，激活占峰值的一半或更多。
为什么耗时
    batch 无法增大，或申请失败。
如何测量
    峰值时各块的类别（memory-snapshot 规格），同时有重试、申请失败或余量很少。
怎么办
    对重算开销小的部分做激活重计算；卸载（offload）到 Host。

参考
    Understanding CUDA memory usage；CUDA semantics。""",
    "MEM108": """每一步都留下显存。

发现什么
    同一源码行分配、每一步都有留存的块。
为什么耗时
    显存逐渐占满，直到申请失败。
如何测量
    所有完整步结束后仍存活的块，按调用栈归类；每步恒定，且等于各步之间在用显存的
    增量（memory-snapshot 规格，D6）。
怎么办
    保存 `.item()` 或 `.detach()` 的结果，不要保存带计算图的张量；每步结束时解除
    引用。

参考
    Understanding CUDA memory usage；CUDA semantics。""",
    "MEM109": """设备显存余量很少。

发现什么
    已分配显存的峰值超过设备显存的 90 %；有快照时，预留达到 95 %。
为什么耗时
    目前还没有代价；更长的序列或碎片会导致重试（MEM103）或申请失败。
如何测量
    记录到的分配器总量的最大值与设备显存之比；任一未知时不判断。
怎么办
    激活重计算、降低精度、切分优化器；昇腾上减少通信缓冲区或将其调小。

参考
    Understanding CUDA memory usage；CANN HCCL 环境变量。""",
    "MEM110": """其他流用过的显存释放得晚。

发现什么
    每步查询事件超过 500 次。
为什么耗时
    另一条流用过的块，分配器要保留到事件表明其已用完，并在每次申请时查询：显存因
    此预留得更久。集合通信的 watchdog 也会查询。
如何测量
    每步 `*EventQuery` 的调用次数。
怎么办
    torch 2.8 之前：`TORCH_NCCL_AVOID_RECORD_STREAMS=1`；昇腾：
    `MULTI_STREAM_MEMORY_REUSE=1`。

参考
    torch.distributed；torch_npu 环境变量。""",
    "MEM111": """每个张量都直接向设备申请。

发现什么
    在所有步中，几乎每个算子都有一次设备显存申请。
为什么耗时
    没有缓存，每次申请都要调用设备的分配器，每次释放都要等待设备。
如何测量
    设备显存申请调用，每步 50 次或以上，且达到 Kernel 数的 30 % 或以上；代价同
    MEM101。
怎么办
    取消设置 `PYTORCH_NO_CUDA_MEMORY_CACHING`（昇腾：
    `PYTORCH_NO_NPU_MEMORY_CACHING`）；它只用于调试。

参考
    CUDA semantics；torch_npu 环境变量。""",
    "MEM112": """显存申请失败。

发现什么
    失败的申请，以及当时有哪些空闲。
为什么耗时
    程序结束，或减量后重试。
如何测量
    重放历史到申请失败时的状态（memory-snapshot 规格，D5）：有空闲但已碎片化，空
    闲属于其他流或内存池，设备上有空闲，或完全没有空闲。
怎么办
    依失败的种类而定：可扩展段、大张量只用一条流，或减少显存占用。

参考
    Understanding CUDA memory usage；CUDA semantics。""",
    "MEM113": """在步内申请锁页内存。

发现什么
    第一步之后各步中的 `cudaHostAlloc` 及类似调用。
为什么耗时
    锁页要逐页进行，并占住驱动的一把锁，而下发也需要这把锁。
如何测量
    同 MEM101，对象是申请或释放锁页内存的调用。
怎么办
    保留锁页缓冲区并复用；使用分配器的后台锁页设置。

参考
    CUDA semantics。""",
    "MEM114": """短时块构成峰值。

发现什么
    峰值中有五分之一或更多是随即释放的块。
为什么耗时
    峰值决定 batch 能有多大；softmax、cat、one-hot 或类型转换的临时张量会在一瞬
    间抬高它。
如何测量
    峰值时存活、在随后的几次分配之内释放的块（memory-snapshot 规格，D7）。
怎么办
    分块计算、原地计算，或使用融合算子。

参考
    Understanding CUDA memory usage；CUDA semantics。""",
    "MEM115": """长期存活的小块使显存无法归还设备。

发现什么
    一千个或更多小于 1 MiB、几乎始终存活的块，分散在仅由它们占住的段里。
为什么耗时
    段只能整段归还设备，而且只供小块使用：其中空闲的部分就浪费了；成千上万的张量
    还会让 Host 每一步都多花时间。
如何测量
    峰值时的块中，存活时间达到快照历史 90 % 的那些，以及仅由它们占住的段中的空闲
    字节：达到预留峰值的 1 % 或以上。
怎么办
    一块连续缓冲区加视图：展平的参数与梯度、`gradient_as_bucket_view`、foreach
    缓冲区。

参考
    CUDA semantics：memory management；DistributedDataParallel。""",
    "MEM116": """设备有一半时间空闲，大量显存却没有使用。

发现什么
    工作太少的步（HST110），其最高预留只有设备显存的 60 % 或更少。
为什么耗时
    更大的 batch 可以分摊每步的其他开销。
如何测量
    记录到的最高预留与设备显存之比；忙碌时间与单步之比。设备上的其他进程看不到。
怎么办
    增大 batch、减少重计算、增大 bucket、增加预取。

参考
    PyTorch Performance Tuning Guide。""",
    "MEM117": """梯度一直保留到下一次前向之中。

发现什么
    下一次前向达到峰值时仍存活的梯度字节数。
为什么耗时
    它们叠加在激活之上，使峰值高于应有的水平。
如何测量
    在梯度累积中分配、到下一个峰值时仍存活的块（memory-snapshot 规格，D12）。
怎么办
    在 `step()` 之后立即调用 `zero_grad(set_to_none=True)`；梯度累积期间不要这样
    做。

参考
    Understanding CUDA memory usage；CUDA semantics。""",
    "MEM118": """优化器造成峰值。

发现什么
    在第一步之后的某一步中，显存峰值出现在 `optimizer.step` 之下。
为什么耗时
    峰值决定 batch 能有多大；同时存在的全部参数副本会在一瞬间抬高它。
如何测量
    峰值的位置：有快照时按其标注，否则按记录到的总量与单步的各阶段。第一步要创建
    优化器状态，不能说明问题。
怎么办
    `fused=True`，或 `foreach=False`；切分优化器（ZeRO-1、FSDP）。

参考
    torch.optim；Understanding CUDA memory usage。""",
    "MEM119": """分配器的设置不起作用，或互相排斥。

发现什么
    `max_split_size_mb` 与可扩展段同用；设置了 `garbage_collection_threshold` 却
    没有设置显存比例。
为什么耗时
    这些设置的本意没有实现。
如何测量
    快照中保存的设置（memory-snapshot 规格，D11）。
怎么办
    按问题中给出的处理。

参考
    Understanding CUDA memory usage；CUDA semantics。""",
    "MEM120": """块明显大于实际申请。

发现什么
    许多张量的大小刚刚超过分配器取整的一档。
为什么耗时
    浪费的显存谁也用不了。
如何测量
    导出快照时块字节数超出申请字节数的比例（memory-snapshot 规格，D10），5 % 或
    以上；真实程序很少超过 3 %。
怎么办
    用一块缓冲区加视图代替许多很小的张量；调低 `roundup_power2_divisions`。

参考
    Understanding CUDA memory usage；CUDA semantics。""",
}
