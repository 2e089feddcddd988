"""Where the defaults of the rules' options come from, by the English wording that the rules give."""

from __future__ import annotations

SOURCES = {
    "Adam: 7 passes over the tensors (4 read, 3 written) in one kernel, 15 in the five kernels of a loop": (
        "Adam：一个 Kernel 要遍历张量 7 遍（读 4、写 3），循环中的五个 Kernel 要 15 遍"
    ),
    "CANN: HCCL_BUFFSIZE where it is not set": "CANN：未设置时的 HCCL_BUFFSIZE",
    "FlashAttention-3 paper: what FlashAttention-2 reaches on an H100": (
        "FlashAttention-3 论文：FlashAttention-2 在 H100 上达到的水平"
    ),
    "HTA: a fifth of the gaps end with work that was launched too late": "HTA：五分之一的间隙以下发过晚的任务结束",
    "HTA: kernels shorter than their launch, of all launches": "HTA：比下发还短的 Kernel 占全部下发的比例",
    "PyTorch pattern matcher: convolutions a step": "PyTorch pattern matcher：每步卷积数",
    "PyTorch pattern matcher: slices in a row": "PyTorch pattern matcher：连续的切片数",
    "TensorBoard plugin and PyTorch pattern matcher, rounded: products from a tenth of compute on": (
        "TensorBoard 插件与 PyTorch pattern matcher，取整：矩阵乘占计算的十分之一起"
    ),
    "TensorBoard plugin: a loader above 5 % of the step is a bottleneck": (
        "TensorBoard 插件：数据加载超过单步的 5 % 即为瓶颈"
    ),
    "TensorBoard plugin: exposed communication from a tenth of the step on": (
        "TensorBoard 插件：未掩盖通信占单步的十分之一起"
    ),
    "TensorBoard plugin: peak of allocated memory over the capacity": "TensorBoard 插件：已分配显存峰值与显存容量之比",
    "TensorBoard plugin: utilisation below 50 %": "TensorBoard 插件：利用率低于 50 %",
    "TraceLens: copies a step": "TraceLens：每步拷贝数",
    "TraceLens: of the step; without marked steps the count tells nothing": (
        "TraceLens：占单步的比例；没有标记步时，次数说明不了问题"
    ),
    "TraceLens: the median copy is smaller than 64 KiB": "TraceLens：拷贝大小的中位数低于 64 KiB",
    "as DAT101": "同 DAT101",
    "as HST101": "同 HST101",
    "as HST110": "同 HST110",
    "as HST111: kernels a step": "同 HST111：每步 Kernel 数",
    "as KRN114: of the device's memory": "同 KRN114：占设备显存的比例",
    "as MEM109: peak of allocated memory over the capacity": "同 MEM109：已分配显存峰值与显存容量之比",
    "as MEM109: reserved memory over the capacity": "同 MEM109：预留显存与显存容量之比",
    "as all rules": "与所有规则相同",
    "as kernels, where the host computes": "同 kernels，由 Host 计算时",
    "memory-snapshot specification, D8: peak of reserved memory over the capacity": (
        "memory-snapshot 规格，D8：预留显存峰值与显存容量之比"
    ),
    "msprof-analyze advisor: 10 ms a step": "msprof-analyze advisor：每步 10 ms",
    "msprof-analyze advisor: GB/s of a transfer between devices of one machine": (
        "msprof-analyze advisor：同一机器内设备间传输的 GB/s"
    ),
    "msprof-analyze advisor: a pause this long is severe": "msprof-analyze advisor：这么长的停顿为严重",
    "msprof-analyze advisor: a transfer of so many seconds was sent again": (
        "msprof-analyze advisor：达到这么多秒的传输发生了重传"
    ),
    "msprof-analyze advisor: bytes; smaller transfers are not judged": (
        "msprof-analyze advisor：字节数；更小的传输不判断"
    ),
    "msprof-analyze advisor: compilations in the recording": "msprof-analyze advisor：采集中的编译次数",
    "msprof-analyze advisor: from 20 µs on": "msprof-analyze advisor：20 µs 起",
    "msprof-analyze advisor: launches that a sync follows": "msprof-analyze advisor：随后有同步的下发",
    "msprof-analyze advisor: layers a step": "msprof-analyze advisor：每步的层数",
    "msprof-analyze advisor: of compute": "msprof-analyze advisor：占计算的比例",
    "msprof-analyze advisor: of it, beside matrix products": "msprof-analyze advisor：与矩阵乘并行时达到它的比例",
    "msprof-analyze advisor: of the communication time": "msprof-analyze advisor：占通信时间的比例",
    "msprof-analyze advisor: small between machines": "msprof-analyze advisor：机器之间的小消息",
    "msprof-analyze advisor: small inside a machine": "msprof-analyze advisor：机器内的小消息",
    "msprof-analyze advisor: smaller messages inside a machine are limited by latency": (
        "msprof-analyze advisor：机器内更小的消息受限于时延"
    ),
    "msprof-analyze advisor: smaller packets do not reach the bandwidth of the network": (
        "msprof-analyze advisor：更小的包达不到网络带宽"
    ),
    "msprof-analyze: advisor, slow link": "msprof-analyze：advisor，慢链路",
    "msprof-analyze: advisor, slow rank": "msprof-analyze：advisor，慢卡",
    "own measurement, torch 2.13 on the host: 0.6 to 1.0 of the time between the products goes": (
        "自测，torch 2.13，由 Host 计算：矩阵乘之间的时间可去掉 0.6 到 1.0"
    ),
    "own measurement, torch 2.13 on the host: what is left of the time around the work": (
        "自测，torch 2.13，由 Host 计算：实际工作之外的时间中保留的部分"
    ),
    "own, of the reserved peak: as the avoidable bytes of MEM104": "自定，占预留峰值的比例：同 MEM104 的可节省字节数",
    "own: 90th percentile of launch calls over their median": "自定：Launch 调用的 90 分位与中位数之比",
    "own: GB/s of a port of 100 Gbit/s": "自定：100 Gbit/s 端口的 GB/s",
    "own: Python needs less than this between two operators": "自定：Python 在两个算子之间所需的时间少于此值",
    "own: device allocations a step": "自定：每步向设备申请显存的次数",
    "own: device allocations in the first step of a recording that begins with the program": (
        "自定：从程序开始时采集的数据中，第一步向设备申请显存的次数"
    ),
    "own: device allocations over kernels": "自定：向设备申请显存的次数与 Kernel 数之比",
    "own: eager kernels a step between two graphs, fewer come from the training loop itself": (
        "自定：每步在两个图之间的 eager Kernel 数，更少的来自训练循环自身"
    ),
    "own: element-wise kernels a step": "自定：每步逐元素 Kernel 数",
    "own: fewer tell nothing": "自定：更少则说明不了问题",
    "own: findings, costliest first": "自定：问题数，代价大的在前",
    "own: kernels a step over lists of tensors; a fused optimizer needs one or two, too": (
        "自定：每步处理张量列表的 Kernel 数；融合优化器也需要一两个"
    ),
    "own: kernels a step, below which there is little to capture": "自定：每步 Kernel 数，低于此值没有多少可入图",
    "own: kernels of the first run of a shape, as a multiple of the usual number": (
        "自定：某个 Shape 首次运行的 Kernel 数为通常的几倍"
    ),
    "own: launches a step; a loop over a single kernel is no pattern": (
        "自定：每步下发数；只对一个 Kernel 的循环算不上规律"
    ),
    "own: launches of graphs over calls of compiled code, above which graphs are on": (
        "自定：图下发次数与编译后代码的调用次数之比，高于此值即已启用图"
    ),
    "own: messages": "自定：消息数",
    "own: nanoGPT's vocabulary padded from 50257 to 50304 made its products about a third shorter": (
        "自定：nanoGPT 的词表从 50257 填充到 50304，矩阵乘缩短约三分之一"
    ),
    "own: occurrences a step; a single one is no pattern of a model": "自定：每步出现次数；只有一次算不上模型的规律",
    "own: of compute": "自定：占计算的比例",
    "own: of that bandwidth": "自定：达到该带宽的比例",
    "own: of the calls have shapes of one step only": "自定：Shape 只在一步中出现的调用所占比例",
    "own: of the exposed time of all-gathers, from such as were launched late": (
        "自定：all-gather 未掩盖的时间中，来自下发过晚者的比例"
    ),
    "own: of the rank's recorded kernel time that other ranks have, too": (
        "自定：该 Rank 所记录的 Kernel 耗时中，其他 Rank 也有的部分所占比例"
    ),
    "own: of the reader's loading that the others spend in the broadcast": (
        "自定：读取者的加载时间中，其他 Rank 花在 broadcast 上的比例"
    ),
    "own: of the step": "自定：占单步的比例",
    "own: of the step, below which buckets are not worth tuning": "自定：占单步的比例，低于此值 bucket 不值得调优",
    "own: of the step, from which the queue's thread counts as saturated": (
        "自定：占单步的比例，达到此值即认为队列线程已饱和"
    ),
    "own: of the step, in exposed all-gathers": "自定：未掩盖的 all-gather 占单步的比例",
    "own: of the step, in exposed collectives of these groups": "自定：这些通信域未掩盖的集合通信占单步的比例",
    "own: a step; fewer are no training": "自定：每步的数目；更少就不是训练",
    "own: of the step without what recording adds, where the host computes": (
        "自定：占单步扣除采集开销后的比例，由 Host 计算时"
    ),
    "own: of the step; a device that is hardly used waits for the program as a whole": (
        "自定：占单步的比例；几乎不用的设备等待的是整个程序"
    ),
    "own: of the time of all transfers between devices": "自定：占设备间全部传输耗时的比例",
    "own: of the time of convolutions, in shapes that come back in half of the steps": (
        "自定：卷积耗时中，在一半的步里重复出现的 Shape 所占比例"
    ),
    "own: part of a gap that goes where kernels follow each other inside a graph": (
        "自定：Kernel 在图内相接时，间隙可消除的比例"
    ),
    "own: part of the data sheets' speed-up that real products gain": "自定：实际矩阵乘获得的加速占规格书的比例",
    (
        "own: part of the products that goes: their matrix of scores is limited by memory, a fused kernel by "
        "arithmetic; FlashAttention-2 tells 5 to 9 times for the whole"
    ): ("自定：可消除的矩阵乘比例：其分数矩阵受限于访存，融合 Kernel 受限于计算；FlashAttention-2 称整体为 5 至 9 倍"),
    "own: ranks of larger groups are on several machines": "自定：更大的通信域的 Rank 分布在多台机器上",
    "own: reserved memory over the capacity, from which on frees are retries": (
        "自定：预留显存与显存容量之比，达到此值时释放即为重试"
    ),
    "own: saving over the step; a model has some such operators in any case": (
        "自定：可节省时间占单步的比例；任何模型都有少量这类算子"
    ),
    "own: share of the step that a pause must take": "自定：停顿至少占单步的比例",
    "own: shorter calls are limited by their launch": "自定：更短的调用受限于下发",
    "own: shorter kernels scatter by more": "自定：更短的 Kernel 波动更大",
    "own: shorter kernels wait for their launch, not for room": "自定：更短的 Kernel 等的是下发，而不是空位",
    "own: shorter products wait for other things than alignment": "自定：更短的矩阵乘，瓶颈不在对齐",
    "own: small messages a step; fewer cannot be joined to much effect": "自定：每步小消息数；更少时合并收效不大",
    "own: smaller transfers do not reach it in any case": "自定：更小的传输本来就达不到",
    "own: steps after the first; random lengths set a new record ever more rarely": (
        "自定：第一步之后的步数；长度随机时，刷新最大值会越来越少见"
    ),
    "own: the first may be a change of phase": "自定：第一次可能是阶段变化",
    "own: transfers": "自定：传输数",
    "own; msprof-analyze advisor: 0.05": "自定；msprof-analyze advisor：0.05",
    "own; real snapshots have at most 2.95 %": "自定；真实快照至多 2.95 %",
    "reached by pinned copies over PCIe 3.0 x16; newer links are faster": (
        "锁页拷贝在 PCIe 3.0 x16 上达到的速度；更新的链路更快"
    ),
    "rules specification, own": "规则规范，自定",
    "rules specification, own: compute that follows, over the time of the collective": (
        "规则规范，自定：随后的计算与该集合通信耗时之比"
    ),
    "rules specification, own: dispatch and host operators from 10 % of the step on": (
        "规则规范，自定：下发与 Host 算子占单步的 10 % 起"
    ),
    "rules specification, own: event queries a step": "规则规范，自定：每步事件查询次数",
    "rules specification, own: kernels a step in the optimizer": "规则规范，自定：每步优化器中的 Kernel 数",
    "rules specification, own: kernels in a row": "规则规范，自定：连续的 Kernel 数",
    "rules specification, own: last third over first third": "规则规范，自定：后三分之一与前三分之一之比",
    "rules specification, own: of compute": "规则规范，自定：占计算的比例",
    "rules specification, own: of the device's memory": "规则规范，自定：占设备显存的比例",
    "rules specification, own: of the exposed communication": "规则规范，自定：占未掩盖通信的比例",
    "rules specification, own: of the nominal bandwidth, and of other groups": (
        "规则规范，自定：达到标称带宽以及其他通信域带宽的比例"
    ),
    "rules specification, own: of the peak": "规则规范，自定：占峰值的比例",
    "rules specification, own: of the roofline": "规则规范，自定：达到 Roofline 的比例",
    "rules specification, own: of the step": "规则规范，自定：占单步的比例",
    "rules specification, own: of the steps' compute time": "规则规范，自定：各步计算耗时的波动",
    "rules specification, own: peak of reserved memory over the capacity": "规则规范，自定：预留显存峰值与显存容量之比",
    "rules specification, own: share of the live blocks": "规则规范，自定：占存活块的比例",
    "rules specification, own: standard deviation of the waits over their mean": (
        "规则规范，自定：等待时间的标准差与均值之比"
    ),
    "rules specification, own: steps after the first with such calls": "规则规范，自定：第一步之后有这类调用的步数",
    "rules specification, own: the longest wait over the median": "规则规范，自定：最长等待与中位数之比",
    "rules specification, own: their median": "规则规范，自定：其中位数",
    "rules specification, own: untraced idle time from 10 % of the step on": (
        "规则规范，自定：未记录的空闲时间占单步的 10 % 起"
    ),
    "rules specification: data, sync, peers and untraced explain less than half of the idle time": (
        "规则规范：数据、同步、其他进程与未记录所解释的空闲时间不到一半"
    ),
    "rules specification: first step over the median": "规则规范：第一步与中位数之比",
    "rules specification: kernels under communication against the same without": (
        "规则规范：同样的 Kernel，有通信并行时与没有时相比"
    ),
    "rules specification: medians of fewer are shaky": "规则规范：更少时中位数不可靠",
    "rules specification: more than one graph": "规则规范：多于一个图",
    "rules specification: of a wave, NVIDIA deep learning performance guide": (
        "规则规范：占一个 wave 的比例，NVIDIA 深度学习性能指南"
    ),
    "rules specification: of compute": "规则规范：占计算的比例",
    "rules specification: of the step": "规则规范：占单步的比例",
    "rules specification: of the time of all-gathers": "规则规范：占 all-gather 耗时的比例",
    "rules specification: same kernel and shape on one rank": "规则规范：某个 Rank 上同样的 Kernel 与 Shape",
    "rules specification: share of the step idle right after them": "规则规范：紧随其后的空闲占单步的比例",
    "rules specification: suspected pauses recur": "规则规范：疑似停顿反复出现",
    "rules specification: the queue is not empty": "规则规范：队列不空",
    "the same of foreach": "同上，foreach 时",
}
