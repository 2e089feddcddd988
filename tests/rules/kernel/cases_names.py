"""Kernels judged by their names, as shapes and types were not recorded: id → programs.

In public recordings without shapes the float32 products of whole programs went unnamed.
"""

from __future__ import annotations

from tests.rules.make import Fires
from tests.rules.sequences import A100, POINTWISE, Run, steps

T4 = {"id": 0, "name": "Tesla T4"}
V100 = {"id": 0, "name": "Tesla V100-SXM2-16GB"}
P100 = {"id": 0, "name": "Tesla P100-PCIE-16GB"}
MI300 = {"id": 0, "name": "AMD Instinct MI300X", "computeMajor": 9, "computeMinor": 4}
PRODUCT = {"low": 0, "severity": "MEDIUM", "count": 4, "ops": ("aten::addmm",), "draws": "compute", "each": 2000}
FIRST = {"first": (100, 2100), "look": (100, 2100)}


def product(kernel, time=2000):
    return Run("aten::addmm", time, kernel=kernel)


def of(saving, bound, part=1.0, **more):
    return {"saving": saving, "bound": bound, "evidence": {"time": 2000, "part": part, "count": 4}} | more


def sparse(shape, *, op="aten::linear", kernel="ampere_bf16_s16816gemm_bf16"):
    return Run(op, 1500, shape, None, kernel, device={"blocks per SM": 0.3, "grid": [1]})


def without_steps(runs):
    b = steps(runs)
    b.events = [event for event in b.events if not event["name"].startswith("ProfilerStep")]
    return b


def cooperative():
    b = steps([sparse(None)])
    for event in b.events:
        event["name"] = event["name"].replace("cudaLaunchKernel", "cudaLaunchCooperativeKernel")
    return b


DEPTHWISE = [[8, 64, 56, 56], [64, 1, 7, 7]]
BACKWARD = Run("aten::mm", 100, under="autograd::engine::evaluate_function: MmBackward0")
MATMUL_4BIT = "MatMul4Bit"
DEQUANTISE = Run(MATMUL_4BIT, 400, kernel="void kDequantizeBlockwise<__half, 512, 64, 8, 2>(float*)")
ANTI_QUANT = Run("npu::npu_anti_quant", 400, kernel="aclnnAscendAntiQuant_AscendAntiQuantAiCore_AscendAntiQuant")
SCALES = Run(MATMUL_4BIT, 20, kernel="void kDequantizeBlockwise<float, 512, 64, 8, 0>(float*)")
OFFSET = Run("aten::add_", 20, kernel=POINTWISE, under=MATMUL_4BIT)
CAST = Run("aten::copy_", 440, kernel="void at::native::unrolled_elementwise_kernel<direct_copy_kernel_cuda>")
GEMM = Run("aten::mm", 800, kernel="ampere_bf16_s16816gemm_bf16_256x128")
SILU = Run("aten::silu", 40, kernel=POINTWISE)
FEW = {"severity": "MEDIUM", "count": 4, "ops": ("ampere_bf16_s16816gemm_bf16",), "draws": "compute", "each": 1500}
FIRES = {
    # 15.1 ms with bitsandbytes, 8.8 ms with one kernel for both; conversions of type alone were told.
    "KRN120": [
        Fires(
            steps([SILU, SCALES, OFFSET, DEQUANTISE, CAST, GEMM, SILU]),
            saving=660,  # But half of the conversion.
            severity="MEDIUM",
            sentence="cast",
            count=16,
            evidence={"time": 880, "part": 0.5, "cast": 440, "count": 16},
            ops=(CAST.kernel, DEQUANTISE.kernel, POINTWISE),
            draws="compute",
            each=880,
            first=(140, 1020),
            look=(140, 1020),
            options={"share": (0.02, 0.5, 0.51)},
            prices={"fused": (0.5, 0.25, 770)},
        ),
        *(
            Fires(
                steps([unpacks, GEMM, SILU]),
                saving=200,
                severity="MEDIUM",
                count=4,
                evidence={"time": 400, "part": 0.322581, "count": 4},
                ops=(unpacks.kernel,),
                draws="compute",
                each=400,
                first=(100, 500),
                look=(100, 500),
            )
            for unpacks in (DEQUANTISE, ANTI_QUANT)
        ),
    ],
    "KRN111": [
        Fires(
            steps(runs),
            saving=525,
            bound=1050,
            evidence={"time": 1500, "part": part, "filled": 0.3, "count": 4},
            **FEW,
            first=(100, 1600),
            look=(100, 1600),
        )
        for runs, part in (
            ([sparse([[2, 64, 64], [64, 64]])], 1),
            ([sparse([[1, 64, 64], [64, 64]]), BACKWARD], 0.9375),
        )
    ],
    "KRN101": [
        # 156 over 19.5 TFLOPS by the data sheet, of which a quarter is taken; 16 times in 16 bits.
        Fires(
            steps([product("ampere_sgemm_128x64_tn")]),
            confidence="MEDIUM",
            **of(1000, 1875),
            **PRODUCT,
            **FIRST,
        ),
        Fires(
            steps([product("cutlass_80_simt_sgemm_256x128_8x4_tn_align1"), Run("aten::add", 500, kernel=POINTWISE)]),
            confidence="MEDIUM",
            **of(1000, 1875, 0.8),
            **PRODUCT,
            **FIRST,
        ),
        # 125 over 15.7 TFLOPS, of which a quarter would be less than 2.
        Fires(
            steps([product("volta_sgemm_128x64_nn")], device=V100),
            confidence="MEDIUM",
            **of(1000, 1748.8, sentence="volta", advice=("autocast_float16",)),
            **PRODUCT,
            **FIRST,
        ),
        Fires(
            # 65 over 8.1 TFLOPS.
            steps([product("volta_scudnn_128x64_relu_interior_nn_v1")], device=T4),
            confidence="MEDIUM",
            **of(1003.077, 1750.769, sentence="volta", advice=("autocast_float16",)),
            **PRODUCT,
            **FIRST,
        ),
        # 653.7 over 163.4 TFLOPS, of which 0.4 would be less than twice as fast; 1307.4 in 16 bits.
        Fires(
            steps([product("Cijk_Ailk_Bljk_SB_MT128x128x16_MI16x16x4x1_SN")], device=MI300),
            confidence="MEDIUM",
            **of(1000, 1750.038, sentence="matrix", advice=("autocast",)),
            **PRODUCT,
            **FIRST,
        ),
        # Nor where the types are recorded: these matrix units multiply float32 in full.
        Fires(
            steps(
                [Run("aten::addmm", 2000, [[64, 64]], ["float"] * 2, "Cijk_Ailk_Bljk_S_B_MT128x128x16_SN")],
                device=MI300,
            ),
            confidence="MEDIUM",
            **of(1000, 1750.038, sentence="matrix", advice=("autocast",)),
            **PRODUCT,
            **FIRST,
        ),
    ],
}
SILENT = {
    "KRN120": [
        steps([CAST, GEMM, SILU]),
        steps([Run(MATMUL_4BIT, 400, kernel="kgemm_4bit_dequantize_naive"), GEMM]),
        steps([SCALES, GEMM]),
        steps([DEQUANTISE, Run("aten::sum", 100, kernel="reduce_kernel"), GEMM]),  # No weight of that product.
    ],
    # One request at a time, and persistent kernels.
    "KRN111": [
        steps([sparse([[1, 64, 64], [64, 64]])]),
        steps([sparse([[1, 64, 64], [64, 64]]), sparse([[12, 64, 64]], op="aten::bmm")]),
        without_steps([sparse(None)]),
        steps([sparse(None, kernel="sm90_gemm_warpspecialized_persistent")]),
        steps([sparse(None, kernel="void RNN_blockPersist_fp_LSTM<__half, __half, __half, 512, 8, 1, 2>")]),
        cooperative(),
    ],
    "KRN101": [
        steps([product("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn")]),
        steps([product("volta_sgemm_fp16_128x64_nn")], device=V100),
        steps([product("cutlass_80_simt_dgemm_64x64")]),
        # Memory may limit what has few rows, and does limit depthwise convolutions.
        steps([product("ampere_sgemm_32x32_sliced1x4_tn")], device=A100),
        steps([Run("aten::cudnn_convolution", 2000, DEPTHWISE, ["float"] * 2, "convolve_sgemm")]),
        steps([product("Cijk_Ailk_Bljk_BBS_BH_MT128x128x16_MI16x16x4x1_SN")], device=MI300),
        steps(
            [Run("aten::mm", 2000, [[64, 64]], ["float"] * 2, "Cijk_Ailk_Bljk_S_MX_B_MT128x128x16_SN")], device=MI300
        ),
        steps([product("maxwell_sgemm_128x64_nn")], device=P100),
        steps([product("ampere_sgemm_128x64_tn", 200), product("ampere_bf16_s16816gemm_bf16_128x128", 1801)]),
        # The type of the tensors goes before the name.
        steps([Run("aten::mm", 2000, [[64, 64]], ["c10::Half"], "ampere_sgemm_128x64_tn")], device=A100),
    ],
}
