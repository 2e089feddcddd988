"""Documents of the rules about the Ascend environment (NPU)."""

from __future__ import annotations

DOCS = {
    "NPU101": """训练过程中在编译算子。

发现什么
    所分析的步中有 20 次或更多编译算子的调用。
为什么耗时
    使用在线（JIT）编译时，每个新 Shape 第一次出现都要编译；设备在等待。
如何测量
    `aclopCompileAndExecute` 与 `OpCompile` 执行期间设备的空闲时间；至多为这些调
    用的 Host 时间。在最初几步中出现是正常的。
怎么办
    设置 `torch_npu.npu.set_compile_mode(jit_compile=False)`、
    `torch_npu.npu.config.allow_internal_format = False`、
    `ACL_OP_COMPILER_CACHE_MODE=enable`。

参考
    msprof-analyze advisor；torch_npu 环境变量。""",
    "NPU102": """Host 太慢，而任务队列只用了第一级。

发现什么
    算子已经过任务队列，Host 仍来不及让设备忙碌，而没有设置
    `TASK_QUEUE_ENABLE=2` 的程序。
为什么耗时
    级别 1 时，下发的全部工作由第二个线程完成；级别 2 把更多工作移出程序的线程，
    并分配得更均衡。
如何测量
    与 HST101 相同，同时队列线程（`Dequeue@…`）在单步的大部分时间里忙碌。采集数
    据记有环境变量时，会查看级别。能省多少无法从采集数据得知。
怎么办
    设置 `TASK_QUEUE_ENABLE=2`。它占用更多显存，要求算子已经编译好，在
    `ASCEND_LAUNCH_BLOCKING` 开启时不起作用。

参考
    torch_npu 环境变量。""",
    "NPU103": """Host 太慢，而其线程没有绑核。

发现什么
    Host 来不及让设备忙碌、而环境中没有设置 `CPU_AFFINITY_CONF` 的程序。
为什么耗时
    在各核之间迁移的线程，或在离设备较远的核上运行的线程，下发更慢。
如何测量
    与 HST101 相同；环境变量以采集数据所记为准。绑核能省多少无法从采集数据得知，
    线程也可能已用其他方式绑核。
怎么办
    设置 `CPU_AFFINITY_CONF=2`（或 `1` 并加 `npu_affine:1`；容器中用
    `force:1`）；`npu-smi info -t topo` 可查看哪些核离设备近；或使用 `numactl`。

参考
    torch_npu 环境变量；MindStudio 常见性能问题。""",
    "NPU104": """各组件库在打印低于 error 级别的日志。

发现什么
    `ASCEND_GLOBAL_LOG_LEVEL` 设为 0、1 或 2（debug、info、warning）。
为什么耗时
    每条日志都在下发线程上生成并写出。
如何测量
    该变量以采集数据所记为准。其代价无法从采集数据得知。
怎么办
    不调试时设置 `ASCEND_GLOBAL_LOG_LEVEL=3`。

参考
    msprof-analyze advisor。""",
    "NPU105": """Shape 逐步变化，而算子缓存为默认大小。

发现什么
    Shape 种类多、Host 来不及让设备忙碌，而没有设置 `ACLNN_CACHE_LIMIT` 或
    `HOST_CACHE_CAPACITY` 的程序。
为什么耗时
    缓存中的条目被淘汰后，每个带新 Shape 的算子都要重新准备。
如何测量
    Shape 只在一步中出现的算子，占全部带 Shape 的算子四分之一以上时计入；其余与
    HST101 相同。其代价无法从采集数据得知。
怎么办
    设置 `ACLNN_CACHE_LIMIT=100000`、`HOST_CACHE_CAPACITY=20`。

参考
    msprof-analyze advisor。""",
    "NPU106": """逐元素算子链没有使用惰性融合。

发现什么
    在 Ascend 上，逐元素算子占计算的十分之一或更多，而没有设置
    `TORCH_NPU_LAZY_FUSION`。
为什么耗时
    每个算子都要从显存读写其张量，而融合 Kernel 只需一次。
如何测量
    逐元素 Kernel 的设备耗时；环境变量以采集数据所记为准。算子链本身的代价由
    KRN106 给出。
怎么办
    尝试 `TORCH_NPU_LAZY_FUSION=True`，它是试验特性，并且需要任务队列。

参考
    torch_npu 环境变量。""",
    "NPU107": """torch_npu 有融合优化器，却使用了 torch 的优化器。

发现什么
    某个优化器的 `Optimizer.step` 下发许多 Kernel，而 torch_npu 有与之对应的
    `NpuFused…`。
为什么耗时
    普通优化器为每个参数下发多个 Kernel；融合优化器把所有参数放在一块缓冲区中。
如何测量
    这类优化器的 `Optimizer.step#…` 区间内下发的 Kernel（每步 100 个及以上）及其
    设备耗时。融合的注意力与归一化由 KRN104 与 KRN105 给出。
怎么办
    使用 `torch_npu.optim.NpuFusedAdamW` 等（SGD、Adam、AdamP、Adadelta、Lamb、
    RMSprop、RMSpropTF、BertAdam）。

参考
    torch_npu.optim；msprof-analyze advisor。""",
    "NPU108": """设置了通常会增加耗时的环境变量。

发现什么
    `HCCL_ALGO`（会关闭按大小选择算法）、阻塞等待（`HCCL_BLOCKING_WAIT`、
    `TORCH_HCCL_BLOCKING_WAIT`）、`ASCEND_LAUNCH_BLOCKING`，或
    `MULTI_STREAM_MEMORY_REUSE=0`。
为什么耗时
    Host 会等待每个算子或每次集合通信，所有大小都使用同一种算法，或其他流的显存
    被一直占着。
如何测量
    各变量以采集数据所记为准。其代价无法从采集数据得知。
怎么办
    除非清楚为什么要设置，否则请逐一取消。

参考
    msprof-analyze advisor；CANN HCCL 环境变量；torch_npu 环境变量。""",
}
