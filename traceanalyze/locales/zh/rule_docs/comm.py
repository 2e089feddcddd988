"""Documents of the rules about communication (COM)."""

from __future__ import annotations

DOCS = {
    "COM101": """通信时没有计算与之并行。

发现什么
    有十分之一或更多的时间只在通信、没有任何计算与之并行的步。
为什么耗时
    设备只是在等待其他 Rank 的数据。
如何测量
    取时间组成中的未掩盖通信（definitions §4）。它可以由目前没有与通信并行的计算
    来掩盖，因此可节省时间取两者中较小的一个；至多为全部未掩盖通信。梯度只能由产
    生它的反向计算来掩盖，而最后一个 25 MB 的 bucket 要到反向结束时才就绪，无法
    掩盖。这段时间包含等待晚到的 Rank，这部分靠通算并行无法消除：请先比较各
    Rank。采集了集合通信的子任务时（Ascend），没有任何子任务在传输数据的时间算作
    等待，不计入可节省时间。
怎么办
    数据并行：DDP 的各项默认设置（`bucket_cap_mb`、`static_graph`、
    `gradient_as_bucket_view`），FSDP 的预取，更大的 batch。张量并行的
    all-reduce 位于关键路径上，很难掩盖。

参考
    DistributedDataParallel；FSDP；TensorBoard Profiler 插件。""",
    "COM102": """每个 micro-step 都归约梯度。

发现什么
    使用 DistributedDataParallel、在优化器更新之前经多次前向累积梯度，却在每次之
    后都做归约的程序。
为什么耗时
    需要的只是总和：N 次归约中有 N - 1 次是多余的。
如何测量
    统计两次优化器更新之间的各次前向，以及每次前向之后、下一次前向之前发起的
    all-reduce。可节省时间是除最后一次之外各次 all-reduce 的未掩盖时间；至多为它
    们的全部时间。
怎么办
    前 N - 1 个 micro-step 放在 `with ddp.no_sync():` 中（FSDP2：
    `set_requires_gradient_sync(False)`）。使用切分策略时，尚未归约的梯度会占用
    显存。

参考
    PyTorch Performance Tuning Guide；DistributedDataParallel。""",
    "COM103": """DistributedDataParallel 每步都在查找未使用的参数。

发现什么
    由 `find_unused_parameters=True` 引起的、每次前向之后对输出与计算图的遍历。
为什么耗时
    反向开始之前，Host 要遍历整个 autograd 图，还要多做一次 all-reduce，让各
    Rank 知道哪些参数被用到。
如何测量
    DDP 的 `_find_tensors` 执行期间设备的空闲时间，只有开启该选项时才会执行它；
    至多为这些调用的 Host 时间。
怎么办
    如果每步所有参数都参与计算，设置 `find_unused_parameters=False`。MoE 以及带
    分支的模型可能需要它；此时设置 `static_graph=True` 就只查找一次。

参考
    DistributedDataParallel；PyTorch Performance Tuning Guide。""",
    "COM104": """大量通信是小消息。

发现什么
    小于 16 MB（超过 8 个 Rank 的通信域为 1 MB）、且占通信时间 20 % 的集合通信。
为什么耗时
    每次集合通信都有固定开销，与大小无关；小消息永远达不到链路的带宽。
如何测量
    大小取自采集数据。小消息的未掩盖时间能省多少，由该 Rank 上较大消息的带宽推
    算；没有较大消息时取一半。至多为全部未掩盖时间。
怎么办
    增大 bucket、合并调用、梯度累积；用 ZeRO-2 或 ZeRO-1 代替 ZeRO-3。张量并行的
    decode 本来就发送小消息。

参考
    msprof-analyze advisor；DistributedDataParallel。""",
    "COM105": """最后一个梯度 bucket 归约时，已没有计算可以掩盖它。

发现什么
    使用 DistributedDataParallel、有多次 all-reduce，且其中最后一次占未掩盖通信
    一半或更多的步。
为什么耗时
    最后一个 bucket 要到反向结束时才就绪。它越大，所有 Rank 等它的时间越长。
如何测量
    每步最后一次 all-reduce 的未掩盖时间。估计值取其一半，相当于 bucket 减半；至
    多为全部。
怎么办
    尝试不同的 `bucket_cap_mb`（默认 25；大集群上每个 bucket 的时延更高，可取 50
    到 100 及以上），并减小第一个 bucket（`dist._DEFAULT_FIRST_BUCKET_BYTES`）。

参考
    DistributedDataParallel。""",
    "COM106": """all_gather 写入张量列表，因而需要多余的拷贝。

发现什么
    以张量列表调用的 `all_gather`（以及 `reduce_scatter`）。
为什么耗时
    通信库先聚合到一个缓冲区，再把各部分拷贝到对应的张量；之后往往又用
    `torch.cat` 把它们拼起来。缓冲区还要占用两倍的显存。
如何测量
    该算子除集合通信之外所下发任务的设备耗时，加上同一线程上在其后 1 ms 内开始的
    `aten::cat` 的设备耗时。
怎么办
    使用 `torch.distributed.all_gather_into_tensor` 与 `reduce_scatter_tensor`，
    省去 `cat`。大小不同的张量仍需要列表。

参考
    torch.distributed；pytorch issue 33924（速度为 4.6 倍）；DeepSpeed pull
    request 4705。""",
    "COM107": """程序发起集合通信后立即等待其完成。

发现什么
    这样的集合通信：其所在线程紧接着就等待它，或让计算流等待它，而在本步的下一次
    集合通信之前，还有至少相当于其耗时一半的计算。
为什么耗时
    `async_op=False` 是默认值，此时之后下发的一切都要等集合通信结束才开始。
如何测量
    统计这类集合通信的未掩盖时间：同一线程下发它之后，在下发任何其他任务之前，就
    让某条流等待（`cudaStreamWaitEvent`）或自己等待；由 autograd 发起的，以及紧
    接着就是优化器的，不计在内。之后的计算可能需要其结果，采集数据无法说明：估计
    值取计算可掩盖时间的一半，至多为全部。
怎么办
    使用 `async_op=True`，先做不需要结果的工作，在首次需要结果处再调用
    `work.wait()`；或在 `torch.compile` 下使用函数式集合通信。

参考
    torch.distributed。""",
    "COM108": """与通信并行时，Kernel 耗时变长。

发现什么
    与通信重叠时比不重叠时耗时多 20 % 的 Kernel。
为什么耗时
    通信 Kernel 占用 SM 与显存带宽，留给计算的就少了。
如何测量
    比较相同的 Kernel（名称、grid、算子的 Shape 都相同），耗时在 20 µs 及以上，
    其中至少三次有一半以上的时间与通信重叠，至少三次完全没有重叠。可节省时间是前
    者超出后者中位数的部分；通算并行总有代价，因此估计值取其一半。在 Ascend 上还
    包括：同一节点内卡间 1 MB 及以上的传输，在与矩阵乘并行时达不到 18 GB/s 的 80
    %，且比没有矩阵乘时低五分之一；至多可省的是它们比按 18 GB/s 计算多出的耗时。
怎么办
    减少 NCCL 的通道数或 block 数（`NCCL_MAX_CTAS`、`NCCL_MAX_NCHANNELS`）；改用
    拷贝引擎做拷贝；与关闭通算并行时比较。

参考
    NCCL；msprof-analyze advisor。""",
    "COM109": """卡间传输的大小不是 512 字节的整数倍。

发现什么
    集合通信在节点内链路上的传输中，大于 512 字节且不是其整数倍、并占这类传输全
    部时间 5 % 或更多的部分。
为什么耗时
    拷贝引擎以 512 字节的块搬运数据；剩余部分走更慢的方式。
如何测量
    集合通信各子任务的大小，Level 1 及以上的采集数据中有记录。设备内部的拷贝与经
    网络的传输不计在内。对齐能省多少无法从采集数据得知；至多为这些传输的时间。
怎么办
    填充张量，使每个 Rank 的部分是 512 字节的整数倍。

参考
    msprof-analyze advisor，字节对齐。""",
    "COM110": """消息大于通信库的缓冲区。

发现什么
    大小超过 `HCCL_BUFFSIZE` 的集合通信。
为什么耗时
    它们要分成几块，一块接一块地发送。
如何测量
    采集到的大小与该变量相比，未设置时按 200 MB。增大缓冲区能省多少无法从采集数
    据得知。
怎么办
    设置 `HCCL_BUFFSIZE`（单位 MB）：micro-batch × 序列长度 × 隐藏层大小 × 每个
    元素的字节数 / 2²⁰，向上取整。每个通信域会占用其两倍的显存。

参考
    CANN HCCL 环境变量。""",
    "COM111": """网络传输慢或被重传，或者其设置不合法。

发现什么
    耗时超过 4 s、即发生了重传的 RDMA 传输；多次 1 MB 及以上、合计达不到 100
    Gbit/s 端口带宽一半的 RDMA 传输；`HCCL_RDMA_TC`、`HCCL_RDMA_SL` 与
    `HCCL_INTRA_ROCE_ENABLE` 的不合法取值。
为什么耗时
    网卡的流量类别与交换机的队列不匹配时，报文会被丢弃并重传。
如何测量
    集合通信的子任务取自 Level 1 及以上的采集数据；环境变量以采集数据所记为准。
    至多可省的是这些传输比按端口带宽一半计算多出的时间。
怎么办
    按交换机的配置（PFC、DSCP）设置 `HCCL_RDMA_TC`（0 到 255，4 的倍数，默认
    132）与 `HCCL_RDMA_SL`（0 到 7，默认 4）；`HCCL_INTRA_ROCE_ENABLE=1` 只在产
    品支持时使用，并同时设置 `HCCL_INTRA_PCIE_ENABLE=0`；不要设置 `HCCL_ALGO`。

参考
    CANN HCCL 环境变量；msprof-analyze advisor，通信重传。""",
    "COM112": """设备已没有任务时才开始聚合参数。

发现什么
    切分参数的 all-gather，下发时其前面的计算已经结束。
为什么耗时
    参数未到，下一个 block 就无法开始；如果提前一个 block 下发，聚合就能被掩盖。
如何测量
    下发晚于其前最后一个计算结束时刻的 all-gather 的未掩盖时间，前提是它们占未掩
    盖 all-gather 的大部分，且达到单步的 5 %。
怎么办
    前向与反向预取（`forward_prefetch=True`、
    `set_modules_to_forward_prefetch`）；检查 `limit_all_gathers`；显存允许时，
    前向之后保留参数。

参考
    FSDP。""",
    "COM113": """一个进程用 nn.DataParallel 驱动多个设备。

发现什么
    由一个进程向多个设备下发任务，并且每步都把模块拷贝到各设备的程序。
为什么耗时
    所有设备共用一个 Python 解释器；每次前向都要广播模块，结果又汇聚到一个设备
    上。
如何测量
    在向多个设备下发任务的进程中，出现 `DataParallel.forward`，或广播、分发、汇
    聚模块的算子。其代价无法从采集数据得知。
怎么办
    使用 `DistributedDataParallel`，每个设备一个进程。

参考
    DistributedDataParallel；PyTorch Performance Tuning Guide；TensorBoard
    Profiler 插件。""",
    "COM114": """张量由 CPU 的通信后端发送。

发现什么
    gloo 的集合通信（barrier 除外），其间设备空闲。
为什么耗时
    gloo 从 Host 内存发送：张量要拷贝到 Host 再拷贝回来，而且用不上任何高速链
    路。
如何测量
    名称为 `gloo:…` 的区间内设备的空闲时间；至多为这些区间的全部时间。
怎么办
    设备上的张量使用 `init_process_group("nccl")`（Ascend 上用 `hccl`）；Host 上
    的对象才适合用 gloo。

参考
    torch.distributed。""",
    "COM115": """流水线的一个 Stage 在等待相邻的 Stage。

发现什么
    有十分之一或更多的时间只在与单个 Rank 收发、没有计算与之并行的步。
为什么耗时
    每步的开头与结尾，在其他 Stage 把 micro-batch 传过来之前，该 Stage 无事可
    做；各 Stage 耗时不均时，中间也要等待。
如何测量
    `send` 与 `recv` 的未掩盖时间，其中包含等待。估计值取一半，相当于
    micro-batch 数加倍；至多为全部。
怎么办
    增加 micro-batch 数，使用交错流水调度，让各 Stage 耗时相同。

参考
    昇腾大模型调优指南；torch.distributed.pipelining。""",
    "COM116": """张量并行组或专家并行组跨节点。

发现什么
    名称表明是张量并行或专家并行、而其各 Rank 不在同一节点上，或其子任务经过网络
    的通信域，且其未掩盖的集合通信占单步 5 % 或更多。
为什么耗时
    这些集合通信位于层与层之间，很难掩盖；节点之间的链路比节点内部慢许多倍。
如何测量
    节点名称以采集数据所记为准，在 Ascend 上还看各子任务所走的链路；该通信域集合
    通信的未掩盖时间即至多可省的时间。放到节点内部需要多久，无法得知。
怎么办
    张量并行放在节点内；流水线各 Stage 跨节点；数据并行的归约与反向并行。张量并
    行度不要超过显存所需。

参考
    昇腾大模型调优指南。""",
    "COM117": """参数的切分超出显存所需，或者优化器的切分不够。

发现什么
    完全切分的训练（FSDP、ZeRO-3）中，all-gather 有 20 % 以上的时间未掩盖，而设
    备显存始终有 20 % 没有用到；或者 DistributedDataParallel 在每个 Rank 上都保
    存优化器的全部状态，而显存峰值达到设备显存的 90 %。
为什么耗时
    切分的参数每步聚合两次，前向一次，反向又一次；前向之后保留的参数只聚合一次。
    各 Rank 重复保存的优化器状态，占去了增大 batch 所需的显存。
如何测量
    all-gather 的未掩盖时间；估计值取其一半，即反向的那些，至多为全部。用预留的
    最高值（后一种情况为已分配显存的峰值）与设备显存相比。是否切分由 FSDP 与
    DeepSpeed 的区间与函数识别。
怎么办
    显存有余：`reshard_after_forward=False`（FSDP2）、
    `ShardingStrategy.SHARD_GRAD_OP`、ZeRO-2 或 ZeRO-1。显存不足：ZeRO-1
    （`ZeroRedundancyOptimizer`）或 SHARD_GRAD_OP；参数也放不下时才完全切分。

参考
    FSDP；昇腾大模型调优指南。""",
    "COM118": """同步批归一化在每一层都要通信。

发现什么
    单步中 SyncBatchNorm 的集合通信超过 20 次。
为什么耗时
    每一层在前向与反向中都要从所有 Rank 聚合少量数值；该层立即需要结果，因此这些
    集合通信无法与计算并行。
如何测量
    `SyncBatchNorm` 及其反向所下发的集合通信的未掩盖时间。
怎么办
    每个 Rank 的 batch 足够大时（16 个样本及以上）使用普通批归一化；或减少转换的
    层数。

参考
    torch.nn.SyncBatchNorm；msprof-analyze advisor。""",
    "COM119": """大消息慢于链路应有的速率，或慢于同类的其他通信域。

发现什么
    16 MB 及以上的集合通信达不到设备间链路带宽的一半、并且达不到同类同规模的其他
    通信域一半的通信域。
为什么耗时
    每次集合通信的耗时都是应有的两倍。
如何测量
    由传输时间，即各 Rank 中最短的耗时，计算总线带宽（definitions §12）；只看所
    有 Rank 都已采集的通信域，否则这段时间会包含等待。NVIDIA 与 AMD 的板卡在单个
    节点内的链路带宽是已知的；有两个或更多通信域时与其他通信域相比。两者至少要知
    道一个，两者都知道时必须一致。估计值是把这些集合通信的未掩盖时间降到通常速率
    的一半；至多为完全达到通常速率。
怎么办
    检查拓扑（`nvidia-smi topo -m`、`npu-smi info -t topo`），检查通信库选用了哪
    些链路与算法（`NCCL_DEBUG=INFO`）及其版本，跨节点时检查网络设置。

参考
    NCCL；CANN HCCL。""",
}
