"""Documents of the rules about the host and dispatch (HST)."""

from __future__ import annotations

DOCS = {
    "HST101": """设备因 Host 下发太慢而空闲。

发现什么
    队列被取空的步：设备已经空闲之后，下一个 Kernel 才下发。
为什么耗时
    每个算子都要在 Python、torch 与运行时中花掉 Host 数微秒。Kernel 比这还短时，
    设备就要等 Host，换更快的设备也没有用。
如何测量
    下发与 Host 算子中的设备空闲时间（definitions §5），占单步 10 % 起报告，同时
    五分之一的间隙以间隙期间才下发的任务结束，或队列深度的中位数为 1 或更小。可
    节省时间是这些空闲时间加上算子之间的 Python（短于 1 ms 的区段），减去其他问
    题已解释的部分。达到 10 ms 或以上、长度达到间隙中位数的一百倍、且不再重复的
    间隙不算下发慢：那是首次使用时加载库、编译 Kernel。它们单独列出，不给可节省
    时间；图的捕获也是如此。
怎么办
    减少 Kernel 数量、增大单个 Kernel：融合、`torch.compile`、融合优化器；CUDA
    graph；更大的 batch；循环里少一些 Python。采集 Python 调用栈与 Shape 会拖慢
    Host：请用轻量采集加以确认。

参考
    PyTorch Performance Tuning Guide；Holistic Trace Analysis；MindStudio 通用性
    能问题。""",
    "HST102": """Kernel 比下发它们的调用还短。

发现什么
    有许多 Kernel 工作量很小、下发它们反而更久的程序。
为什么耗时
    设备再快，执行的 Kernel 也不会多过 Host 下发的。
如何测量
    已关联、有自己的 Launch 调用、且该调用比 Kernel 更长的 Kernel，占下发的 30 %
    起；以及由 Host 造成、从这类 Kernel 结束处开始的空闲时间，占单步的 5 % 起。
    图中的 Kernel 共用一次下发，不计入。
怎么办
    把它们融合，把多个小张量合成一次处理（`_foreach_*`），重放 CUDA graph，增大
    batch。

参考
    Holistic Trace Analysis；PyTorch Performance Tuning Guide。""",
    "HST103": """设备在大量已排队的 Kernel 之间切换。

发现什么
    Kernel 之间通常只有一微秒左右的间隔，累积起来却占比可观的步。
为什么耗时
    即使已在排队，启动一个 Kernel 也要花设备一些时间；Kernel 极多时就很明显。
如何测量
    已排队的 Kernel 之间的空闲时间，间隙至多 10 µs（definitions §5），占单步 3 %
    起报告，且队列深度的中位数为 2 或以上。放进图里大约能省掉一半，融合则能全部
    省掉。时钟以整微秒为单位时不判断。
怎么办
    减少 Kernel 数量（融合、`torch.compile`），使用 CUDA graph。

参考
    Holistic Trace Analysis。""",
    "HST104": """Python 的垃圾回收使程序停住。

发现什么
    已记录的 1 ms 或以上的回收；没有记录垃圾回收时，则是两段或更多 10 ms 或以上
    的区段，其间所有下发线程都停住，设备空闲，而 trace 中看不出原因。
为什么耗时
    回收会占住解释器，因此什么也不下发。多个 Rank 时，各自在不同的时刻回收，每次
    集合通信都要等最慢的那个。
如何测量
    停顿期间以及直到 Host 重新领先为止的设备空闲时间。在算子之外写 checkpoint 或
    做评估，看起来也像疑似停顿；几乎不使用设备的程序也是如此，因此不计入。
    由 Host 计算时：已记录的 1 ms 或以上的回收的时长。
怎么办
    初始化之后调用 `gc.freeze()`，调高阈值；或关闭自动回收，每 N 步在所有 Rank
    上同时回收。

参考
    Python `gc`；msprof-analyze advisor。""",
    "HST105": """步内有调试工具在运行。

发现什么
    `detect_anomaly`、`emit_nvtx`、`gradcheck` 与 `set_sync_debug_mode` 的
    Python 函数与区间。
为什么耗时
    它们检查或标记每一个算子，有些还会等待设备。
如何测量
    在所分析的步内按名称识别。其代价无法从采集数据得知。
怎么办
    不调试时请关闭。

参考
    PyTorch Performance Tuning Guide。""",
    "HST106": """每次下发都等待 Kernel 完成。

发现什么
    多数下发之后都会等待流的程序，如同设置了 `CUDA_LAUNCH_BLOCKING=1`。
为什么耗时
    Host 与设备轮流工作，而不是同时工作。昇腾上任务队列也随之关闭。
如何测量
    在同一线程上紧接着就有同步调用的 Launch 调用，占全部下发的一半起。可节省时间
    是去掉这些同步调用之后重放下发所得的收益。
怎么办
    取消设置该环境变量；它只用于调试。

参考
    CUDA semantics；torch_npu 环境变量；msprof-analyze advisor。""",
    "HST107": """Host 在做 trace 中看不到的事，设备在等待。

发现什么
    没有任何下发线程处于算子或运行时调用中时的设备空闲时间：预处理、分词、写日志
    等 Python 代码，或进程没有在运行。
为什么耗时
    期间什么也不下发。
如何测量
    原因为「未记录」的空闲时间（definitions §5），减去其他问题已解释的部分。采集
    了 Python 函数时，会给出其中大部分时间所在的程序源码行。由 Host 计算时：未记
    录时间中每段 1 ms 或以上、且其他线程不在集合通信中的部分；更短的是 Python 从一
    个算子走到下一个算子。
怎么办
    把这些工作移到 DataLoader 或其他线程。没有调用栈时：请采集
    （`with_stack=True`）。

参考
    无。""",
    "HST108": """Launch 调用的耗时相差很大。

发现什么
    Host 跟不上、且 Launch 调用时快时慢的程序。
为什么耗时
    在多路 CPU 的机器上，进程若运行在较远的那一路，或在核之间迁移，下发就更慢。
如何测量
    同 HST101，且 Launch 调用的 90 分位达到中位数的 4 倍或以上。采集数据没有给出
    是否绑核，因此这只是提示。
怎么办
    把每个进程绑定到其设备所在的那一路 CPU。

参考
    torch elastic NUMA 绑定；PyTorch Performance Tuning Guide。""",
    "HST109": """Host 与设备之间有许多小拷贝。

发现什么
    每步有超过 10 次从 Host 或到 Host 的拷贝，或它们占单步的 5 %，且大小中位数低
    于 64 KiB。
为什么耗时
    每次拷贝都要一次调用与一次传输，其耗时几乎与大小无关。
如何测量
    只有 64 KiB 以下的拷贝在执行的时间，以及其调用期间的空闲时间；打包后，除一次
    拷贝的那一份之外全部省掉。
怎么办
    把张量打包到一块锁页缓冲区，一次拷贝；直接在设备上创建张量。

参考
    pin_memory 与 non_blocking 教程；TraceLens。""",
    "HST110": """设备忙碌的时间不到一半。

发现什么
    下发给设备的工作量太少的步。
为什么耗时
    每步的其他开销（下发、Python、通信）只由少量样本分摊。
如何测量
    忙碌时间不到单步的一半，而等待数据、同步调用、其他进程与未记录的工作所解释的
    空闲时间不到一半。增大 batch 有多少收益无法从采集数据得知。Host 下发太慢时，
    只由 HST101 给出。由 Host 计算时：单步有五分之二或以上花在调用算子上，即数据加
    载、优化器以及 1 ms 以上没有算子的区段之外的时间，按每个算子 0.6 µs 扣除
    Profiler 自身的开销，再减去算子自身超出 2 µs 的耗时。
怎么办
    增大 batch（并相应调整学习率）。单请求推理时可能本来就是如此。

参考
    PyTorch Performance Tuning Guide。""",
    "HST111": """优化器逐个参数（或按参数列表）更新，没有使用融合 Kernel。

发现什么
    由大量短 Kernel 组成、没有 `_foreach_*` 或 `_fused_*` 算子的优化器步；以及由
    `_foreach_*` 算子组成的优化器步，后者收益较小。
为什么耗时
    每个基本运算都要把它的全部张量再读写一遍，而且各自都要下发一次。
如何测量
    在优化器阶段下发的设备事件（definitions §10）：每步 100 个 Kernel 起且中位数
    低于 10 µs，或有 `_single_tensor_*` 的 Python 函数。可节省时间是它们之前的空
    闲时间，以及它们的设备耗时减去一个融合 Kernel 所需的部分。由 Host 计算时：取
    有融合实现的优化器的 `Optimizer.step#…` 区间，每个 100 个算子起。算子自身超
    出 2 µs 的耗时是它的工作，按融合实现与逐个执行读写张量的遍数之比保留；其余时
    间按每个算子 0.6 µs 扣除 Profiler 自身的开销后，保留五分之一。
怎么办
    `fused=True`，否则 `foreach=True`；昇腾上用 `torch_npu.optim` 的优化器。
    `foreach` 的列表要多占一份参数大小的显存；在 Host 上它也是循环。

参考
    torch.optim；torch_npu.optim；PyTorch pattern matcher。""",
    "HST112": """用零填充梯度，而不是丢弃梯度。

发现什么
    在 `zero_grad` 内下发的填充。
为什么耗时
    每个梯度都要多写一遍，下一次反向则要累加到它上面，而不是直接写入。
如何测量
    在 `Optimizer.zero_grad` 区间内下发的填充执行、且没有其他任务执行的设备耗
    时，以及每次填充之前的空闲时间；由 Host 计算时，是填充的耗时。
怎么办
    `zero_grad(set_to_none=True)`，torch 2.0 起为默认。

参考
    PyTorch Performance Tuning Guide。""",
}
