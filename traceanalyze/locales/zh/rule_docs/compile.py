"""Documents of the rules about compilation and graphs (CGR)."""

from __future__ import annotations

DOCS = {
    "CGR101": """编译后的代码被拆成多个图，其间夹着 eager 算子。

发现什么
    一步内有多个属于不同函数的 `Torch-Compiled Region`，它们之间有自行下发
    Kernel 的算子。
为什么耗时
    每次打断都要回到 Python，无法跨越打断处融合，夹在中间的部分以 eager 方式执
    行。
如何测量
    按函数编号（`0/0` 中的第一个数）区分编译区域；统计同一线程在一个区域之后、另
    一函数的下一个区域之前下发的 Kernel。可节省时间是 Host 处于这些区域之间时设
    备的空闲时间；跨越打断处融合能省多少无法得知。
怎么办
    `TORCH_LOGS=graph_breaks` 会指出位置，`fullgraph=True` 会将其变为报错；把
    print、依赖数据的分支与不支持的调用移出被编译的函数。有意逐个编译的区域不算
    打断。

参考
    torch.compiler 文档。""",
    "CGR102": """训练过程中函数被重新编译。

发现什么
    所分析的步内有编译器的工作（Dynamo、Inductor、自动调优）。
为什么耗时
    编译期间 Host 停住，往往长达数秒，什么也不下发。同一函数编译 8 次之后 Dynamo
    放弃，该函数改以 eager 方式执行。
如何测量
    编译器的区间与 Python 函数执行期间设备的空闲时间；只有 Host 数据时，取它们的
    耗时。最初几步的编译是正常的：请在其后采集。
怎么办
    `TORCH_LOGS=recompiles` 会指出失败的 guard；尺寸会变时用 `dynamic=True` 或
    `mark_dynamic`；学习率与计数器用张量传入。

参考
    torch.compiler 文档。""",
    "CGR103": """编译后的代码逐个下发 Kernel，而 Host 太慢。

发现什么
    虽已编译、但 Host 仍无法让队列不空，且没有使用 CUDA graph 下发的程序。
为什么耗时
    编译后 Kernel 变少，但每个仍要下发一次；而图可以一次下发全部。
如何测量
    同 HST101，但只计 Host 处于编译区域内时的空闲时间。
怎么办
    `torch.compile(mode="reduce-overhead")` 或 `"max-autotune"`；输入的 Shape 与
    地址保持不变，不要有 CPU 上的输入，也不要原地修改输入；图本身也要占显存。

参考
    torch.compiler 文档；PyTorch Performance Tuning Guide。""",
    "CGR104": """每一步都逐个下发同样的 Kernel，而 Host 太慢。

发现什么
    至少三步以同样的顺序执行同样的 Kernel，步内 Host 几乎不等待设备，同时 Host
    又无法让队列不空。
为什么耗时
    明明什么都没变，Host 却要再次为每个下发付出代价。捕获过一次的图，一次调用即
    可下发。
如何测量
    每个完整步按下发顺序排列的 Kernel 名；其余同 HST101，空闲时间的代价由它给
    出。
怎么办
    `torch.compile(mode="reduce-overhead")`，或
    `torch.cuda.make_graphed_callables`；昇腾上用图模式（torchair、aclgraph）。
    Shape 不能变化；通信部分可能需要留在图外。

参考
    CUDA semantics，CUDA graphs；torch_npu 环境变量。""",
    "CGR105": """整个编译后的反向结束之后才归约梯度。

发现什么
    使用 DistributedDataParallel，反向被编译为一个图，而 all-reduce 在其结束之后
    才发起。
为什么耗时
    梯度从一个图中一次性全部产出，因此没有归约能与反向重叠。
如何测量
    每步一个 `CompiledFunctionBackward`，且没有 all-reduce 在其结束之前下发。可
    节省时间是 all-reduce 未掩盖的时间。
怎么办
    先用 DistributedDataParallel 包装模块，再编译包装后的模块：这样图会在 bucket
    填满处拆开（`torch._dynamo.config.optimize_ddp`）。

参考
    DistributedDataParallel；torch.compiler 文档。""",
}
