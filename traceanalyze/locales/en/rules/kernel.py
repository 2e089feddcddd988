"""Texts of the rules about kernels (KRN)."""

from __future__ import annotations

TITLES = {
    "KRN101": "float32 products without tensor cores",
    "KRN102": "products with sizes that do not fit",
    "KRN103": "last wave nearly empty",
    "KRN104": "attention that is not fused",
    "KRN105": "operators that have a fused kernel",
    "KRN106": "chains of element-wise operators",
    "KRN107": "changes of layout",
    "KRN108": "convolutions without autotuner",
    "KRN109": "bias before batch norm",
    "KRN110": "conversions of type",
    "KRN111": "too few blocks for the device",
    "KRN112": "gathers by index_select",
    "KRN113": "running sums without matrix units",
    "KRN114": "recomputation although memory is left",
    "KRN115": "loops over slices",
    "KRN116": "operators on the AI CPU",
    "KRN117": "computing in float64",
    "KRN118": "one rank computes more slowly",
    "KRN119": "operators far from their roofline",
}

SENTENCES = {
    "KRN101": "Matrix products in float32 take {time} {per} ({part} of compute) without tensor cores.",
    "KRN101_volta": (
        "Matrix products in float32 take {time} {per} ({part} of compute) without tensor cores, which this "
        "device has for float16 only."
    ),
    "KRN102": (
        "Matrix products with sizes that do not fit the matrix units take {time} {per} ({part} of compute), "
        "such as {shape}."
    ),
    "KRN103": "Products whose last wave of blocks is nearly empty take {time} {per} ({part} of compute).",
    "KRN104": (
        "Attention is computed operator by operator ({count} time(s) in all, {part} of compute): what a fused "
        "kernel would not do takes {time} {per}."
    ),
    "KRN104_host": (
        "Attention is computed operator by operator ({count} time(s) in all): what lies between its products takes "
        "{time} {per} ({share} of it)."
    ),
    "KRN105": (
        "{pattern} run one after the other ({count} time(s) in all), {time} {per} ({part} of compute), where "
        "one fused kernel would do."
    ),
    "KRN106": (
        "{chains} chain(s) of element-wise kernels on tensors of one size take {time} {per} ({part} of "
        "compute), each kernel reading and writing memory."
    ),
    "KRN107": "Kernels that only change the layout of tensors take {time} {per} ({part} of compute).",
    "KRN108": (
        "Convolutions of fixed sizes take {time} {per} ({part} of compute), and no algorithms were tried for them in "
        "the first step."
    ),
    "KRN109": "{count} convolution(s) add a bias that batch norm takes away again, {time} {per}.",
    "KRN110_on_host": (
        "{count} tensor(s) are filled on the host and then copied to the device: {time} {per} nothing but these "
        "copies runs."
    ),
    "KRN110": "Conversions between element types take {time} {per} ({part} of compute).",
    "KRN111": (
        "Kernels with fewer blocks than the device has room for take {time} {per} ({part} of compute); they "
        "fill {filled} of it."
    ),
    "KRN112": "Gathers of rows with index_select take {time} {per} ({part} of compute), their backward {backward}.",
    "KRN113": "Running sums of short rows take {time} {per} ({part} of compute).",
    "KRN114": "Recomputation takes {time} {per} ({share} of it), and {left} of the device's memory is never used.",
    "KRN115": "Loops over slices (up to {repeats} in a row) take {time} {per} in small kernels.",
    "KRN116": "Operators on the AI CPU take {time} {per} ({part} of compute), the longest {longest}.",
    "KRN117": "Operators in float64 take {time} {per} ({part} of compute).",
    "KRN117_host": "Operators in float64 work for {time} {per} ({share} of it).",
    "KRN118": (
        "On rank {rank} the same kernels ({kernels} of them) take {slower} longer than on the others, {lost} "
        "{per}: its clock is lower, or something else uses the device."
    ),
    "KRN119": "{op} with {shape} takes {time} {per} ({part} of compute) and reaches {reached} of the device's limit.",
}

ADVICE = {
    "autocast": (
        'Mixed precision: torch.autocast(device_type="cuda", dtype=torch.bfloat16) (float16 with a gradient '
        "scaler on devices without bfloat16)."
    ),
    "autocast.ascend": (
        'Mixed precision: torch.autocast(device_type="npu", dtype=torch.bfloat16) (float16 with a gradient scaler on '
        "devices without bfloat16)."
    ),
    "tf32.ascend": "Or HF32: torch.npu.matmul.allow_hf32 = True (and torch.npu.conv.allow_hf32).",
    "tf32": 'Or TF32: torch.set_float32_matmul_precision("high") and torch.backends.cudnn.allow_tf32 = True.',
    "pad_sizes": "Pad vocabulary, hidden size, heads or batch to a multiple of 64 (of 8 at least).",
    "pad_sizes.ascend": "Pad the inner axes of products to a multiple of 256, those of attention to 128.",
    "fill_waves": "Try batch or hidden sizes that fill whole waves, or other tile sizes.",
    "fused_attention.cuda": (
        "torch.nn.functional.scaled_dot_product_attention (is_causal=True in place of a mask, where that is "
        "meant), or FlashAttention."
    ),
    "fused_attention_host": (
        "torch.nn.functional.scaled_dot_product_attention (is_causal=True in place of a mask, where that is meant)."
    ),
    "fused_attention.ascend": "torch_npu.npu_fusion_attention.",
    "fused_operators.cuda": (
        "torch.compile on the module, or fused norm, activation and rotary kernels (torch.nn.RMSNorm, Liger, Apex)."
    ),
    "fused_operators.ascend": (
        "torch_npu.npu_rms_norm, npu_rotary_mul, npu_swiglu, npu_geglu, npu_group_norm_silu, npu_add_layer_norm; "
        "MindSpeed npu_matmul_add, npu_moe_token_permute."
    ),
    "compile_region": "torch.compile on the function around these operators fuses them.",
    "compile_region.ascend": "Fused operators of torch_npu for these chains; or try TORCH_NPU_LAZY_FUSION=True.",
    "one_layout": (
        "Keep one layout: model and input .to(memory_format=torch.channels_last) with mixed precision; drop "
        ".contiguous() where a view will do."
    ),
    "one_layout.ascend": (
        "Keep one format: torch_npu.npu.config.allow_internal_format decides whether private formats are "
        "used; drop .contiguous() where a view will do."
    ),
    "right_type": (
        "Create tensors with the right dtype= and device=; keep weights that are cast in every step in the "
        "type they are used in."
    ),
    "more_parallelism": "Larger shapes or batches, batched operators, or a second stream beside these kernels.",
    "more_parallelism.ascend": "Larger shapes or batches, batched operators; tune them with AOE.",
    "cudnn_benchmark": "torch.backends.cudnn.benchmark = True, as the sizes do not change.",
    "check_clock.cuda": (
        "Look at clocks and reasons for throttling (nvidia-smi -q -d PERFORMANCE,CLOCK; rocm-smi), at cooling and "
        "power limits, and at other processes on the device."
    ),
    "check_clock.ascend": (
        "Look at frequency, temperature and power (npu-smi info -t common -i ID), at cooling, and at other processes "
        "on the device."
    ),
    "no_conv_bias": "bias=False in convolutions that batch norm follows.",
    "vectorise": "One operator on the whole tensor in place of the loop, or torch.vmap.",
    "use_embedding": "torch.nn.functional.embedding(rows, table) in place of index_select; measure both.",
    "cumsum_as_matmul": "Multiply with a triangular matrix of ones, accumulating in float32, and measure.",
    "less_checkpointing": "Checkpoint fewer blocks, or only what is cheap to compute again (selective checkpointing).",
    "off_aicpu": (
        "Use int32 or float32 in place of int64 or float64, and operators that the AI Core has in place of "
        "index*, nonzero, argmin."
    ),
    "float32_inputs": "Cast inputs to float32 where they come into the program (numpy makes float64 by default).",
    "better_shapes": "Try other layouts and sizes, a newer library, or a fused kernel for this operator.",
}

EVIDENCE = {
    "time": "time a step",
    "part": "part of compute",
    "shape": "shapes",
    "repeats": "in a row",
    "pattern": "operators",
    "chains": "chains",
    "filled": "device filled",
    "backward": "backward",
    "left": "memory left",
    "reached": "reached of the roofline",
    "op": "operator",
    "kernels": "kernels",
    "kernel": "kernel",
}
