"""Texts of the rules about kernels (KRN)."""

from __future__ import annotations

TITLES = {
    "KRN101": "float32 矩阵乘没有使用 Tensor Core",
    "KRN102": "矩阵乘的尺寸不对齐",
    "KRN103": "最后一个 wave 几乎是空的",
    "KRN104": "注意力没有融合",
    "KRN105": "有融合 Kernel 可用的算子",
    "KRN106": "逐元素算子链",
    "KRN107": "数据格式转换",
    "KRN108": "卷积没有自动选择算法",
    "KRN109": "批归一化之前的偏置",
    "KRN110": "数据类型转换",
    "KRN111": "block 太少，填不满设备",
    "KRN112": "用 index_select 取行",
    "KRN113": "累加求和没有使用矩阵单元",
    "KRN114": "显存有余却在重计算",
    "KRN115": "对切片的循环",
    "KRN116": "算子落在 AI CPU 上",
    "KRN117": "用 float64 计算",
    "KRN118": "一个 Rank 计算更慢",
    "KRN119": "远未达到 Roofline 的算子",
}

SENTENCES = {
    "KRN101": "float32 矩阵乘没有使用 Tensor Core，{per}耗时 {time}（占计算 {part}）。",
    "KRN101_volta": (
        "float32 矩阵乘没有使用 Tensor Core，{per}耗时 {time}（占计算 {part}）；该设备的 Tensor Core 只支持 float16。"
    ),
    "KRN102": "尺寸与矩阵单元不对齐的矩阵乘{per}耗时 {time}（占计算 {part}），例如 {shape}。",
    "KRN103": "最后一个 wave 几乎为空的矩阵乘{per}耗时 {time}（占计算 {part}）。",
    "KRN104": (
        "注意力由多个算子逐个完成（共 {count} 次，占计算 {part}）：其中融合 Kernel 可以省去的部分{per}耗时 {time}。"
    ),
    "KRN104_host": (
        "注意力由多个算子逐个完成（共 {count} 次）：两次矩阵乘之间的算子{per}耗时 {time}（占单步 {share}）。"
    ),
    "KRN105": "{pattern} 逐个执行（共 {count} 次），{per}耗时 {time}（占计算 {part}）；用一个融合 Kernel 即可完成。",
    "KRN106": (
        "{chains} 条由同尺寸张量的逐元素 Kernel 组成的算子链{per}耗时 {time}（占计算 {part}），"
        "每个 Kernel 都要读写一遍显存。"
    ),
    "KRN107": "只改变张量格式的 Kernel {per}耗时 {time}（占计算 {part}）。",
    "KRN108": "尺寸固定的卷积{per}耗时 {time}（占计算 {part}），而首步没有为其试选算法。",
    "KRN109": "{count} 个卷积加上的偏置随后又被批归一化减掉，{per}耗时 {time}。",
    "KRN110_on_host": "{count} 个张量先在 Host 上填充再拷到设备：{per}有 {time} 只在执行这些拷贝。",
    "KRN110": "数据类型转换{per}耗时 {time}（占计算 {part}）。",
    "KRN111": "block 数填不满设备的 Kernel {per}耗时 {time}（占计算 {part}）；只用到设备的 {filled}。",
    "KRN112": "用 index_select 取行{per}耗时 {time}（占计算 {part}），其反向耗时 {backward}。",
    "KRN113": "短行的累加求和{per}耗时 {time}（占计算 {part}）。",
    "KRN114": "重计算{per}耗时 {time}（占单步 {share}），而设备显存始终有 {left} 没有用到。",
    "KRN115": "对切片的循环（最多连续 {repeats} 次）由小 Kernel 组成，{per}耗时 {time}。",
    "KRN116": "落在 AI CPU 上的算子{per}耗时 {time}（占计算 {part}），最长的一个为 {longest}。",
    "KRN117": "float64 算子{per}耗时 {time}（占计算 {part}）。",
    "KRN117_host": "float64 算子{per}耗时 {time}（占单步 {share}）。",
    "KRN118": (
        "Rank {rank} 上相同的 Kernel（{kernels} 个）比其他 Rank 慢 {slower}，{per}多 {lost}："
        "其主频偏低，或设备上有其他任务。"
    ),
    "KRN119": "{op}（{shape}）{per}耗时 {time}（占计算 {part}），只达到设备上限的 {reached}。",
}

ADVICE = {
    "autocast": (
        '混合精度：torch.autocast(device_type="cuda", dtype=torch.bfloat16)；'
        "设备不支持 bfloat16 时用 float16 加梯度缩放器。"
    ),
    "autocast.ascend": (
        '混合精度：torch.autocast(device_type="npu", dtype=torch.bfloat16)；'
        "设备不支持 bfloat16 时用 float16 加梯度缩放器。"
    ),
    "tf32.ascend": "或使用 HF32：torch.npu.matmul.allow_hf32 = True（以及 torch.npu.conv.allow_hf32）。",
    "tf32": '或使用 TF32：torch.set_float32_matmul_precision("high") 与 torch.backends.cudnn.allow_tf32 = True。',
    "pad_sizes": "把词表、隐藏层、注意力头或 batch 的大小补齐到 64（至少 8）的倍数。",
    "pad_sizes.ascend": "把矩阵乘的内轴补齐到 256 的倍数，注意力的内轴补齐到 128 的倍数。",
    "fill_waves": "尝试能填满整个 wave 的 batch 或隐藏层大小，或换用其他 tile 大小。",
    "fused_attention.cuda": (
        "使用 torch.nn.functional.scaled_dot_product_attention（若掩码就是因果掩码，用 is_causal=True 代替），"
        "或 FlashAttention。"
    ),
    "fused_attention_host": (
        "使用 torch.nn.functional.scaled_dot_product_attention（若掩码就是因果掩码，用 is_causal=True 代替）。"
    ),
    "fused_attention.ascend": "使用 torch_npu.npu_fusion_attention。",
    "fused_operators.cuda": (
        "对该模块使用 torch.compile，"
        "或使用融合的归一化、激活函数与旋转位置编码 Kernel（torch.nn.RMSNorm、Liger、Apex）。"
    ),
    "fused_operators.ascend": (
        "使用 torch_npu.npu_rms_norm、npu_rotary_mul、npu_swiglu、npu_geglu、npu_group_norm_silu、npu_add_layer_norm；"
        "以及 MindSpeed 的 npu_matmul_add、npu_moe_token_permute。"
    ),
    "compile_region": "对包含这些算子的函数使用 torch.compile 即可融合。",
    "compile_region.ascend": "用 torch_npu 的融合算子替换这些算子链；或尝试 TORCH_NPU_LAZY_FUSION=True。",
    "one_layout": (
        "保持一种格式：混合精度下模型与输入都用 .to(memory_format=torch.channels_last)；"
        "视图即可满足时去掉 .contiguous()。"
    ),
    "one_layout.ascend": (
        "保持一种格式：torch_npu.npu.config.allow_internal_format 决定是否使用私有格式；"
        "视图即可满足时去掉 .contiguous()。"
    ),
    "right_type": "创建张量时直接指定 dtype= 与 device=；每步都要转换类型的权重，请直接以使用时的类型保存。",
    "more_parallelism": "增大 Shape 或 batch，合并为批量算子，或用另一条流与这些 Kernel 并行。",
    "more_parallelism.ascend": "增大 Shape 或 batch，合并为批量算子；用 AOE 调优。",
    "use_embedding": "用 torch.nn.functional.embedding(rows, table) 代替 index_select；两种都实测一下。",
    "cumsum_as_matmul": "改为与全 1 的三角矩阵相乘（以 float32 累加），并实测比较。",
    "less_checkpointing": "减少重计算的层数，或只重计算开销小的部分（选择性重计算）。",
    "off_aicpu": "用 int32 或 float32 代替 int64 或 float64，用 AI Core 支持的算子代替 index*、nonzero、argmin。",
    "float32_inputs": "在数据进入程序时转换为 float32（numpy 默认生成 float64）。",
    "vectorise": "用一个作用于整个张量的算子代替循环，或使用 torch.vmap。",
    "cudnn_benchmark": "尺寸固定时设 torch.backends.cudnn.benchmark = True。",
    "check_clock.cuda": (
        "查看主频与降频原因（nvidia-smi -q -d PERFORMANCE,CLOCK；rocm-smi）、散热与功耗限制，以及设备上的其他进程。"
    ),
    "check_clock.ascend": "查看频率、温度与功耗（npu-smi info -t common -i ID）、散热，以及设备上的其他进程。",
    "no_conv_bias": "后面接批归一化的卷积设 bias=False。",
    "better_shapes": "尝试其他格式与尺寸、更新的算子库，或为该算子使用融合 Kernel。",
}

EVIDENCE = {
    "time": "每步耗时",
    "part": "占计算",
    "shape": "Shape",
    "pattern": "算子",
    "chains": "算子链数",
    "filled": "设备填充率",
    "backward": "反向",
    "left": "剩余显存",
    "reached": "达到 Roofline",
    "op": "算子",
    "kernels": "Kernel 数",
    "kernel": "Kernel",
    "repeats": "连续次数",
}
