"""Documents of the rules about kernels (KRN)."""

from __future__ import annotations

DOCS = {
    "KRN101": """float32 矩阵乘与卷积没有使用 Tensor Core。

发现什么
    在具有 Tensor Core 的设备上，用不使用 Tensor Core 的 Kernel 计算 float32 矩
    阵乘的算子。
为什么耗时
    Tensor Core 的矩阵乘比 float32 单元快数倍，用 TF32 如此，用 bfloat16 更快。
如何测量
    统计首个张量为 float32、且其 Kernel 确知没有使用矩阵单元（definitions §13）
    的矩阵乘与卷积的设备耗时；从名称看不出的 Kernel 一律不计。可节省时间按规格书
    上 TF32 加速比的 0.4 计算（至少为 2）；上界按最快的 16 位类型的全部加速比计
    算，再加上其他 float32 Kernel 的一半，因为它们要搬运的字节数减半。
怎么办
    混合精度（`torch.autocast`，使用 bfloat16）；或使用 TF32：
    `torch.set_float32_matmul_precision("high")` 与
    `torch.backends.cudnn.allow_tf32 = True`。

参考
    PyTorch Performance Tuning Guide；torch.amp；TensorBoard Profiler 插件。""",
    "KRN102": """矩阵乘的尺寸与矩阵单元不匹配。

发现什么
    有一维不是 8（float16、bfloat16）、16（int8）、4（TF32）或 2（float64）的倍
    数的矩阵乘；在 Ascend 上则是内轴不是 256 的倍数。
为什么耗时
    起始位置不是 16 字节整数倍的行只能分成更小的块加载，或者矩阵乘落到更慢的单元
    上；末尾的 tile 要补上无用的数据。
如何测量
    统计有这样一维、且 Kernel 耗时在 20 µs 及以上的 `mm`、`addmm`、`bmm` 与
    `baddbmm` 的设备耗时；Shape 以采集数据所记为准。能省多少取决于算子库：估计值
    取其 0.3，至多 0.5。
怎么办
    把词表、隐藏层或 batch 补齐到 64（至少 8）的倍数。

参考
    NVIDIA Deep Learning Performance Guide；PyTorch Performance Tuning Guide；
    msprof-analyze advisor。""",
    "KRN103": """最后一个 wave 的 block 只用到设备的一小部分。

发现什么
    每个 SM 的 block 数略多于整数的矩阵乘与卷积。
为什么耗时
    所有 SM 按 wave 工作；最后一个 wave 的 block 很少，耗时却与满的 wave 一样。
如何测量
    采集到的每个 SM 的 block 数大于 1 且小数部分小于 0.2，并且占计算的十分之一或
    更多。可节省时间按最后一个 wave 缺少的 block 计算；一个 SM 可能同时运行多个
    block，Kernel 也可能自行分配 block，因此这只是提示。
怎么办
    选择能填满整个 wave 的 batch 与隐藏层大小，或换用其他 tile 大小。

参考
    NVIDIA Deep Learning Performance Guide。""",
    "KRN104": """注意力由多个算子逐个计算。

发现什么
    依次出现的批量矩阵乘、缩放与掩码、softmax、dropout，以及第二个批量矩阵乘。
为什么耗时
    分数矩阵在每个注意力头上都是序列长度乘以序列长度，每个算子都要把它写入显存再
    读出。融合的注意力把它留在片上。
如何测量
    按下发次序查找这样的算子序列。可节省时间是序列中除矩阵乘之外全部的设备耗时，
    反向中则是 softmax 的反向及其前后算子的设备耗时，再加上矩阵乘的三分之一；至
    多为整个序列的时间。由 Host 计算时：取矩阵乘之间的时间的 0.8，并按每个算子
    0.6 µs 扣除 Profiler 自身的开销；其余部分是融合的注意力比矩阵乘多用的时间。
怎么办
    使用 `torch.nn.functional.scaled_dot_product_attention` 或 FlashAttention；
    在 Ascend 上使用 `npu_fusion_attention`。既不是因果掩码也不是填充掩码的掩
    码，可能使最快的 Kernel 无法选用。

参考
    scaled_dot_product_attention；msprof-analyze advisor。""",
    "KRN105": """有融合 Kernel 可用的算子在逐个执行。

发现什么
    用 Python 写出的常见序列：RMS norm（pow、mean、rsqrt、mul）、旋转位置编码
    （neg、cat、mul、add）、SwiGLU（silu、mul）、GeGLU（gelu、mul）、接 SiLU 的
    group norm、接 layer norm 的 add；在 Ascend 上还包括矩阵乘之后接加法，以及按
    专家对 Token 排序（sort、gather）。
为什么耗时
    每个算子都要从显存读入输入、再写回结果；一个 Kernel 只需读写一次。
如何测量
    按同一线程上的下发次序查找这样的算子序列，其间没有其他下发 Kernel 的算子。每
    个序列可节省的是除最长 Kernel 之外的 Kernel 耗时；至多为全部 Kernel 的耗时。
怎么办
    对该模块使用 `torch.compile`，或使用融合的归一化、激活函数与旋转位置编码
    Kernel；在 Ascend 上使用 `npu_rms_norm`、`npu_rotary_mul`、`npu_swiglu`、
    `npu_geglu`、`npu_group_norm_silu`、`npu_add_layer_norm`，以及 MindSpeed 的
    `npu_matmul_add` 与 `npu_moe_token_permute`（视 CANN 版本而定）。

参考
    msprof-analyze advisor；昇腾大模型调优指南；torch.compiler。""",
    "KRN106": """只读写显存的 Kernel 在同样大小的张量上接连执行。

发现什么
    同一条流上接连四个或更多逐元素算子或归约，且它们最大的张量大小相同。
为什么耗时
    每个 Kernel 都从显存读入输入、再把结果写回显存，尽管下一个 Kernel 立即就要
    用。融合 Kernel 只读写一次。
如何测量
    取一条流上相继的计算 Kernel，按所做的计算（definitions §13）以及采集到的算子
    Shape 分组；编译生成的 Kernel 不计在内。一条链可节省的是除最长 Kernel 之外的
    耗时。
怎么办
    对包含它们的函数使用 `torch.compile`；使用融合算子；原地（in-place）版本没有
    帮助，因为读写量相同。

参考
    PyTorch Performance Tuning Guide；torch.compiler。""",
    "KRN107": """张量被反复转换为另一种格式。

发现什么
    只搬移元素的 Kernel：转置、NCHW 与 NHWC 之间的转换、`.contiguous()`、
    `TransData`。
为什么耗时
    它们读写整个张量却不做任何计算；Tensor Core 上的卷积需要 channels last，每次
    都靠这样的 Kernel 转换。
如何测量
    统计名称如此的 Kernel，以及 `aten::contiguous` 与 `aten::clone` 之下的拷贝
    Kernel 的设备耗时，从占计算的 5 % 起计。保持一种格式时，格式转换可以完全省
    去；其余部分取一半作为可节省时间，至多为全部。
怎么办
    模型与输入都使用 `channels_last`，并配合混合精度；用视图即可之处去掉
    `.contiguous()`；在 Ascend 上保持一种格式（`allow_internal_format`）。

参考
    PyTorch Performance Tuning Guide；msprof-analyze advisor。""",
    "KRN108": """尺寸固定的卷积没有自动选择算法。

发现什么
    占计算 10 % 或更多、各步之间 Shape 不变的卷积，而采集从程序的第一步开始，其
    中没有试选算法的迹象。
为什么耗时
    cuDNN 与 MIOpen 对每种卷积都有多种算法；不试选时只凭经验规则选一种。
如何测量
    开启自动选择时，每个 Shape 第一次运行会下发所有算法的 Kernel，数量是之后的许
    多倍。第一步由其中的设备显存申请识别；较晚开始的采集无法判断。最优算法能省多
    少也无法得知。
怎么办
    设置 `torch.backends.cudnn.benchmark = True`，仅适用于固定尺寸：每个新尺寸都
    要重新试选。

参考
    PyTorch Performance Tuning Guide。""",
    "KRN109": """卷积加上的偏置随后又被批归一化减掉。

发现什么
    带偏置的 `aten::conv2d`，紧接着是 `aten::batch_norm`。
为什么耗时
    偏置由单独的 Kernel 相加，其梯度在反向中还要求和；批归一化减去均值，也就减掉
    了偏置。
如何测量
    这些卷积内部加法的设备耗时。偏置的梯度代价大致相同，因此至多为该时间的两倍。
    评估时使用滑动统计量，偏置就有作用，但可以折叠进去。
怎么办
    后面接批归一化的卷积设置 `bias=False`。

参考
    PyTorch Performance Tuning Guide；PyTorch Profiler pattern matcher。""",
    "KRN110": """张量被反复转换为另一种数据类型。

发现什么
    `aten::_to_copy` 下发的 Kernel，即元素类型之间的转换；以及在 Host 上填充、再
    由下一个算子搬到设备的张量。
为什么耗时
    转换要读写整个张量，却不做任何计算。
如何测量
    统计这些算子之下计算 Kernel 的设备耗时，从占计算的 5 % 起计。有些转换是混合
    精度的一部分，因此取一半作为可节省时间，至多为全部。对于在 Host 上生成的张
    量，取只在执行其拷贝的时间。
怎么办
    直接用正确的 `dtype=` 与 `device=` 创建张量；每步都要转换的参数，按使用时的
    类型保存；其余转换交给 `torch.compile` 融合。

参考
    PyTorch Performance Tuning Guide；torch.amp。""",
    "KRN111": """Kernel 的 block 数少于设备的 SM 数。

发现什么
    耗时 10 µs 及以上、因 block 太少而用不满整个设备的 Kernel。
为什么耗时
    没有 block 的 SM 在其他 SM 工作时无事可做。
如何测量
    采集到的每个 SM 的 block 数小于 1；在 Ascend 上则是 block dim 小于核数。其耗
    时乘以设备中没有 block 的比例，即至多可省的时间；估计值取其一半。
怎么办
    增大 Shape 或 batch，用批量算子代替单个算子，使用 split-K 矩阵乘；在第二条流
    上安排任务。

参考
    NVIDIA Deep Learning Performance Guide；msprof-analyze advisor。""",
    "KRN112": """用 index_select 从表中取行，其反向很慢。

发现什么
    对浮点二维表做的 `index_select`（或 `table[rows]`），且有反向。
为什么耗时
    反向用原子操作逐行累加，或先对索引排序；embedding 的反向就是为这种情况设计
    的。
如何测量
    统计这类取行的前向与反向的设备耗时，从占计算的 1 % 起计，且两者都要有。估计
    值取反向的一半；至多为反向的全部。
怎么办
    使用 `torch.nn.functional.embedding(rows, table)`；两种方式都测一测。

参考
    pytorch_geometric issue 95；torch.nn.functional.embedding。""",
    "KRN113": """半精度短行的累加求和没有使用矩阵单元。

发现什么
    对 float16 或 bfloat16 张量做的 `aten::cumsum`，其最后一维至多为 4096。
为什么耗时
    扫描是标量单元上的一串加法；写成与元素全为一的三角矩阵的乘法，就能在矩阵单元
    上执行。
如何测量
    统计这类算子的设备耗时，从占计算的 1 % 起计。估计值取其一半。
怎么办
    乘以 `torch.ones(n, n).triu()`，用 float32 累加，并实测：行较长时反而更慢，
    而且该矩阵要占用显存。

参考
    candle pull request 3700。""",
    "KRN114": """显存还有余量，却有大量计算执行两次。

发现什么
    激活重计算占单步 15 % 或更多，而设备显存始终有 20 % 没有用到。
为什么耗时
    重计算以时间换显存：每个 block 的前向在反向中要再执行一次。
如何测量
    重计算的设备耗时（definitions §10）；预留显存的最高值与设备显存相比。有一部
    分 block 可以不做重计算，因此估计值取重计算的一半；至多为全部。
怎么办
    减少重计算的 block，或用选择性策略只重计算开销小的部分（注意力、激活函数）。

参考
    PyTorch Performance Tuning Guide；昇腾大模型调优指南。""",
    "KRN115": """Python 循环逐个处理张量的切片。

发现什么
    同一个父算子之下，`aten::select` 之后接同一个算子，接连出现十次或更多。
为什么耗时
    每个切片都要执行自己的算子与 Kernel，而这些 Kernel 太小，填不满设备。
如何测量
    从这一串算子的第一个到最后一个，其 Kernel 的设备耗时。对整个张量执行一个算
    子，至少与其中一个耗时相同：其余即为可节省时间。循环神经网络本来就要循环。
怎么办
    对整个张量使用一个算子、批量算子（`bmm`）或 `torch.vmap`。

参考
    PyTorch Profiler pattern matcher；PyTorch Performance Tuning Guide。""",
    "KRN116": """算子在 AI CPU 上执行。

发现什么
    由于该算子或其元素类型没有 AI Core 实现，而由设备的标量处理器执行的 Kernel。
为什么耗时
    AI CPU 比 AI Core 慢许多倍，而 AI Core 还要等待它。
如何测量
    核类型为 `AI_CPU` 的 Kernel 的设备耗时，前提是其中最长的达到 20 µs。
怎么办
    换用其他元素类型（int64 或 float64 换为 int32 或 float32）；用其他算子代替
    `index*`、`nonzero`、`argmin` 等。

参考
    msprof-analyze advisor。""",
    "KRN117": """Kernel 用 float64 计算。

发现什么
    首个张量为 float64 的算子，这往往是无意的：numpy 默认生成 float64。
为什么耗时
    访存量是 float32 的两倍，而在大多数设备上，算力只是它的一小部分。
如何测量
    统计这类算子的 Kernel 的设备耗时，从占计算的 1 % 起计。由于字节数加倍，取一
    半作为可节省时间；矩阵乘与卷积能省得更多，在 float64 单元少的设备上可达
    31/32。由 Host 计算时：取这类算子自身耗时中超出单次调用 2 µs 的部分的一半。
怎么办
    在输入进入程序处就转换为 float32。科学计算的代码可能需要 float64。

参考
    NVIDIA Deep Learning Performance Guide。""",
    "KRN118": """相同的 Kernel 在一个 Rank 上比在其他 Rank 上耗时更长。

发现什么
    名称、Shape 与启动配置都相同的 Kernel，耗时比其他 Rank 上多 10 % 的 Rank。
为什么耗时
    其他 Rank 在下一次集合通信中等待它。同样的工作耗时更长，说明主频偏低（功耗、
    温度）或设备上有其他进程，而不是程序的问题。
如何测量
    每个 Kernel 在该 Rank 上的耗时中位数，与其他 Rank 各自中位数的中位数之比；再
    对这些比值取按时间加权的中位数。短于 5 µs、执行不足三次，或与通信并行的
    Kernel 不计在内。至多可省的是这些 Kernel 多出的全部耗时；它对整个运行的代价
    由 RNK101 给出。
怎么办
    检查主频与降频原因（`nvidia-smi -q -d PERFORMANCE,CLOCK`、`rocm-smi`、
    `npu-smi info`）、散热与功耗限制，以及设备上的其他进程。

参考
    msprof-analyze advisor，AI Core 频率。""",
    "KRN119": """算子的耗时是设备最少所需时间的两倍以上。

发现什么
    占计算 5 % 或更多、达不到其 Roofline 一半的、具有特定 Shape 的算子。
为什么耗时
    设备本可以用不到一半的时间完成同样多的计算，或搬运同样多的字节：Kernel 或
    Shape 与设备不匹配。
如何测量
    由公式得出的浮点运算量与字节数（见有计算公式的算子表），除以设备的峰值速率；
    短于 20 µs 的调用不计在内。估计值是把该算子提升到其 Roofline 的一半，融合注
    意力则提升到好的 Kernel 能达到的三分之一；至多为完全达到。
怎么办
    换用其他格式与尺寸、更新的算子库，或融合的、专用的 Kernel。

参考
    NVIDIA Deep Learning Performance Guide；msprof-analyze advisor。""",
}
