"""Labels of kernels: what the names of each family say, that all fit, and that no two of a table are equal."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from traceanalyze.model.kernel_names import LONGEST, labels, meaning_of
from traceanalyze.model.vocabulary import ARROW

ELEMENTS = "void at::native::vectorized_elementwise_kernel<4, {}, std::array<char*, 3ul> >(int, {}, char*)"
COPY = (
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const"
    "::{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1}"
)


def label(name: str) -> str:
    return labels([name])[name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # ATen: the functor inside its wrappers, the dtype of the innermost lambda.
        (ELEMENTS.format(*["at::native::CUDAFunctor_add<c10::BFloat16>"] * 2), "add bf16"),
        (ELEMENTS.format(*["at::native::FillFunctor<double>"] * 2), "fill f64"),
        (ELEMENTS.format(COPY, COPY), "copy bf16"),
        (
            (
                "void at::native::elementwise_kernel<128, 2, "
                "at::native::gpu_kernel_impl_nocast<at::native::BUnaryFunctor<"
                "c10::Half, c10::Half, c10::Half, at::native::binary_internal::DivFunctor<c10::Half> > >"
                "(at::TensorIteratorBase&, int const&)::{lambda(int)#1}>(int, long)"
            ),
            "div f16",
        ),
        (
            (
                "void at::native::unrolled_elementwise_kernel<at::native::BinaryFunctor<long, long, bool, at::native::"
                "(anonymous namespace)::CompareEqFunctor<long> >, std::array<char*, 3ul>, 4>(int)"
            ),
            "eq i64",
        ),
        (
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
                "namespace)::where_kernel_impl("
                "at::TensorIterator&)::'lambda'()::operator()() const::'lambda7'()::operator()() const::"
                "'lambda'(bool, double, double), char*>(int)"
            ),
            "where f64",
        ),
        (
            (
                "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
                "at::native::sum_functor<float, float, "
                "float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, "
                "unsigned int, float, 4> >(int)"
            ),
            "sum f32",
        ),
        (
            "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>()",
            "argmax f32",
        ),
        (
            (
                "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::TensorListMetadata<3>, "
                "at::native::BinaryOpListAlphaFunctor<float, 3, 2, 2>, std::minus<float>, float>(int)"
            ),
            "foreach sub f32",
        ),
        (
            (
                "void at::native::multi_tensor_apply_kernel<at::native::FusedOptimizerTensorListMetadata<4>, "
                "at::native::FusedAdamMathFunctor<float, 4>, float>(int)"
            ),
            "fused_adam f32",
        ),
        (
            "void cunn_SoftMaxForward<4, c10::Half, float, c10::Half, at::native::LogSoftMaxForwardEpilogue>(int)",
            "log_softmax fwd f16",
        ),
        ("void softmax_warp_backward<float, float, float, 9, false, false>(float*)", "softmax bwd f32"),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)", "layer_norm f32"),
        ("void at::native::GammaBetaBackwardCUDAKernel<c10::Half, float>(long)", "layer_norm weights bwd f16"),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<bool, unsigned int, 2, 64, 64>(bool*)", "cat b8"),
        (
            (
                "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::"
                "index_put_kernel_impl<at::native::OpaqueType<2> "
                ">(at::TensorIterator&)::{lambda(char*, long)#1}> >(int)"
            ),
            "index_put 2B",
        ),
        # Matrix products and convolutions.
        ("ampere_fp16_s1688gemm_fp16_256x64_ldg8_relu_f2f_stages_32x1_nt", "gemm f16 256×64×32 nt"),
        ("maxwell_sgemm_128x128_tn", "gemm f32 128×128 tn"),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x256_16x4_tn_align4>(cutlass_80_x::Params)",
            "gemm tf32 64×256×16 tn",
        ),
        (
            "void cutlass_cudnn::Kernel<cutlass_tensorop_f16_s16816wgrad_optimized_f16_64x64_32x5_nhwc_align8>(P)",
            "conv wgrad f16 64×64×32 nhwc",
        ),
        (
            "sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize256x128x64_warpgroupsize1x1x1_kernel__5x_cublas",
            "gemm f16 256×128×64 nn",
        ),
        (
            "sm80_xmma_dgrad_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize64x32x64_stage3_warp",
            "conv dgrad bf16 64×32×64 nhwc",
        ),
        ("ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v0", "conv winograd f32 128×128 nt"),
        ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_TNT", "gemm f16 256×128×64"),
        # cuBLAS names e5m2 × e4m3 the other way round.
        ("nvjet_qrtst_64x128_128x6_2x1_v_bz_splitK_TNN", "gemm e5m2·e4m3 64×128×128 splitK"),
        ("Cijk_Ailk_Bjlk_HHS_BH_Bias_HA_S_SAV_UserArgs_MT96x64x32_MI16x16x1_SN_LDSB0", "rocm gemm f16 96×64×32 nt"),
        ("Cijk_Alik_Bljk_SB_MT64x64x16_SE_K1.kd", "rocm gemm f32 64×64×16 tn"),
        ("igemm_wrw_gtcx3_nhwc_fp16_bx0_ex1_bt64x64x32_wt32x32x8_ws1x1", "conv wgrad f16 64×64×32 nhwc"),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, true>(P)", "gemv f32"),
        # Attention.
        (
            (
                "void flash_fwd_kernel<Flash_fwd_kernel_traits<96, 64, 128, 4, false, false, "
                "cutlass::half_t, int>, true>(P)"
            ),
            "flash_fwd f16 hdim96 64×128",
        ),
        (
            (
                "void "
                "cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloop"
                "FwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1>>, cute::tuple<cute::C<128>, cute::C<112>, "
                "cute::C<192>>, cutlass::bfloat16_t>>>>(P)"
            ),
            "flash_fwd bf16 hdim192 128×112",
        ),
        ("fmha_cutlassB_f16_aligned_64x64_k64_sm80(P)", "fmha bwd f16 64×64"),
        ("fmhaSm100aKernel_QkvE4m3OE4m3H128PagedKvCausalP32VarSeqQ128", "fmha e4m3 hdim128 causal"),
        # Triton: operators by weight, the number last.
        ("triton_red_fused_add_gelu_native_layer_norm_view_10", "triton red layer_norm+gelu #10"),
        ("triton_per_fused__softmax__to_copy_7_0d1d2de", "triton per softmax #7"),
        ("triton_poi_fused_clone_permute_3", "triton poi clone+permute #3"),
        ("triton_tem_fused__scaled_mm_relu_12", "triton tem scaled_mm+relu #12"),
        ("triton__0d1d2d3de", "triton__0d1d2d3de"),
        ("triton_", "triton_"),
        ("_my_rotary_kernel_0d1d2de", "my_rotary"),
        # Communication: no reduction, ring or protocol, which need not be true.
        ("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)", "nccl all_reduce bf16"),
        ("ncclDevKernel_Broadcast_RING_LL(int)", "nccl broadcast"),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclDevComm*, unsigned long)", "nccl reduce_scatter f16"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*)", "nccl all_gather"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "nccl send_recv"),
        ("hcom_allReduce__123_4_1", "hccl allReduce"),
        # Ascend.
        ("aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3 (Matmul)"),
        ("aclnnSoftmaxBackward_CastAiCore_Cast", "Cast bwd (SoftmaxBackward)"),
        ("aclnnTanh_TanhAiCore_Tanh", "Tanh"),
        ("Gradients/Default/net-Net/fc2-Dense/gradMatMul-expand/MatMul-op77", "MatMul bwd fc2-Dense"),
        ("Default/AllReduce-op534_0", "hccl AllReduce"),
        ("trans_TransData_5", "TransData"),
        # A running number cannot be told from the digits of a type.
        ("GatherV2", "GatherV2"),
        ("LpNormReduceV2166", "LpNormReduceV2166"),
        # Mangled, and marks of the ROCm profiler.
        ("_ZN5aiter21rms_norm_quant_kernelIDF16bLi64EEEvPT_", "rms_norm_quant"),
        ("_ZN2ck12_GLOBAL__N_117kernel_batch_gemmINS_3FooEEEvv", "batch_gemm"),
        ("void my::scale_kernel<float>(float*) [clone .kd]", "scale f32"),
        # Wrappers and what says nothing.
        (
            "void rocprim::ROCPRIM_1_NS::detail::trampoline_kernel<detail::scan_config_selector<int>, long>(P)",
            "rocprim scan i32",
        ),
        ("Memcpy DtoH (Device -> Pinned)", "Memcpy DtoH (Device → Pinned)"),
        ("Memset (Device)", "Memset (Device)"),
        ("Kernel", "Kernel"),
        ("", ""),
    ],
)
def test_labels_say_what_a_kernel_is(name, expected):
    assert label(name) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            [ELEMENTS.format("at::native::AbsFunctor<float>", "x").replace("<4,", f"<{width},") for width in (2, 4)],
            ["abs f32 v2", "abs f32 v4"],
        ),
        ([ELEMENTS.format(COPY.replace("#12", f"#{at}"), "x") for at in (7, 9)], ["copy bf16 λ3.7", "copy bf16 λ3.9"]),
        (
            [f"cutlass_80_tensorop_s1688gemm_64x64_16x{stages}_nn_align1" for stages in (3, 6)],
            ["gemm tf32 64×64×16 nn 3st", "gemm tf32 64×64×16 nn 6st"],
        ),
        (
            [f"cutlass_80_tensorop_s1688gemm_64x64_16x3_nn_align{letters}" for letters in (1, 4)],
            ["gemm tf32 64×64×16 nn align1", "gemm tf32 64×64×16 nn align4"],
        ),
        (
            ["Cijk_Alik_Bljk_BBS_MT64x64x64_AFC0_LDSB1", "Cijk_Alik_Bljk_BBS_MT64x64x64_AFC1_LDSB1"],
            ["rocm gemm bf16 64×64×64 tn AFC0", "rocm gemm bf16 64×64×64 tn AFC1"],
        ),
        ([f"hcom_allGather__{group}_0_1" for group in (111, 222)], ["hccl allGather 111", "hccl allGather 222"]),
        (["Default/MemSet-op5", "Default/MemSet-op6"], ["MemSet op5", "MemSet op6"]),
    ],
)
def test_equal_labels_get_what_tells_them_apart(names, expected):
    assert list(labels(names).values()) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        # Marks that a reader knows: which operand is a number, what the template holds, what attention skips.
        (
            [
                ELEMENTS.format(f"at::native::{functor}_add<float>", "x")
                for functor in ("CUDAFunctor", "CUDAFunctorOnOther", "CUDAFunctorOnSelf")
            ],
            ["add f32", "add f32 scalar first", "add f32 scalar"],
        ),
        ([f"void own::f<float, {size}, false>()" for size in (2, 4)], ["f f32 <2>", "f f32 <4>"]),
        ([f"void own::f<float, {flag}>()" for flag in ("false", "true")], ["f f32 <false>", "f f32 <true>"]),
        (
            [
                f"void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::half_t>, {flags}>(P)"
                for flags in ("false, true, false, true, false, false", "false, false, false, false, true, false")
            ],
            ["flash_fwd f16 hdim64 causal", "flash_fwd f16 hdim64 128×128"],
        ),
        # One mark more only where the first one leaves names alike.
        (
            [
                f"volta_scudnn_128x128_stridedB_{words}_nn_v1"
                for words in ("medium", "small", "splitK_medium", "splitK_small")
            ],
            [
                "conv f32 128×128 nn medium",
                "conv f32 128×128 nn small",
                "conv f32 128×128 medium splitK",
                "conv f32 128×128 nn small splitK",
            ],
        ),
        # Words of the name where there is no mark: as they are written, types as labels have them, parts of words.
        (["void own::f<float>(float*)", "void own::f<float>(float const*)"], ["f f32", "f f32 const"]),
        (
            [f"void cub::DeviceScanKernel<int, cub::Policy<{dtype}> >(int)" for dtype in ("float", "double")],
            ["scan i32", "scan i32 f64"],
        ),
        (
            [
                "void at::native::ComputeBackwardFusedParamsCUDAKernel<float>(int)",
                "void at::native::ComputeInternalGradientsCUDAKernel<float>(int)",
            ],
            ["group_norm params bwd f32 Fused", "group_norm params bwd f32"],
        ),
        (
            ["triton_per_fused_sum_1", "triton_per_fused_sum_transpose_1"],
            ["triton per sum #1", "triton per sum #1 transpose"],
        ),
        (["Cast", "aclnnCast_CastAiCore_Cast"], ["Cast", "Cast aclnnCast"]),
        (
            [f"_ZN5aiter16add_quant_kernelIDF16bLi{size}ELb0EEEvPT_" for size in (256, 64)],
            ["add_quant <256>", "add_quant <64>"],
        ),
        # Nothing else is left: neither ring nor tree is known to be true.
        (
            [f"ncclDevKernel_AllReduce_Sum_f32_{algorithm}_LL()" for algorithm in ("RING", "TREE")],
            ["nccl all_reduce f32", "nccl all_reduce f32 (2)"],
        ),
        (["own::f(int )", "own::f(int)"], ["f", "f (2)"]),
    ],
)
def test_names_without_such_a_mark_get_words_that_the_others_lack(names, expected):
    assert [labels(names)[name] for name in names] == expected


def test_long_names_that_say_nothing_more_are_shortened():
    name = "a_" + "very_" * 12 + "long_kernel"
    assert label(name).endswith("…")
    assert len(label(name)) <= LONGEST


def test_where_there_are_other_names_only_kernels_have_labels():
    operators = ["aten::linear", "train.py(12): a_function_with_a_name_of_many_letters", "MatMul", "cudaMemcpyAsync"]
    kernel = "void own::relu_kernel<float>(int)"
    found = labels([*operators, kernel], mixed=True)
    assert [found[name] for name in operators] == operators
    assert found[kernel] == "relu f32"
    # An operator keeps its name, also where a kernel would have it.
    both = labels(["relu f32", kernel], mixed=True)
    assert both["relu f32"] == "relu f32"
    assert both[kernel] == "relu f32 (2)"


WORDS = """void |at::native::|(|)|<|>|,|{|}|[|]|::| |float|c10::BFloat16|4|kernel|Kernel|{lambda(|)#1}|operator()|->
|'lambda1'(|gemm|_128x64_|volta_s|triton_poi_fused_|_3|nccl|DevKernel_|Cijk_Alik_Bljk_|B|_MT1x2x3|-op7|aclnn|_ZN5
|ReduceOp|func_wrapper_t|elementwise_kernel|reduce_kernel|multi_tensor_apply_kernel|softmax_warp_|flash_fwd|nvjet_tst_
|é|_|1"""
PIECES = st.sampled_from(WORDS.replace("\n", "").split("|"))
NAMES = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))


@examples(300)
@given(st.lists(NAMES, max_size=12), st.randoms())
def test_any_text_has_a_label_of_its_own(names, random):
    found = labels(names)
    assert set(found) == set(names)
    assert all(len(text) <= LONGEST for text in found.values())
    assert len(set(found.values())) == len(set(names))
    shuffled = names.copy()
    random.shuffle(shuffled)
    assert labels(shuffled) == found
    assert len(set(labels(names, mixed=True).values())) == len(set(names))


@examples(50)
@given(st.lists(st.sampled_from(["float", "double", "c10::Half", "long"]), min_size=1, max_size=4), st.integers(0, 40))
def test_labels_stay_apart_when_many_differ_little(dtypes, count):
    names = [f"void own::axpy_kernel<{dtype}, {number}>(int)" for dtype in dtypes for number in range(count)]
    assert len(set(labels(names).values())) == len(set(names))


def test_real_names(shared_traces):
    path = shared_traces.parent / "data" / "kernel_names.tsv"
    if not path.exists():
        pytest.skip("the list of real names is not here")
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    time, told = defaultdict[str, float](float), defaultdict[str, float](float)
    for name, vendor, _, _, total, *_ in rows:
        device = "npu" if vendor == "Ascend" else "gpu"
        time[device] += float(total)
        told[device] += float(total) if meaning_of(name) is not None else 0
    assert all(told[device] >= 0.95 * time[device] for device in time)
    found = labels(name for name, *_ in rows)
    assert len(set(found.values())) == len(found) == len(rows)
    assert max(map(len, found.values())) <= LONGEST
    # What need not be true is never said.
    said = [text for name, text in found.items() if name.startswith("ncclDevKernel")]
    assert said
    assert not any(word in text.lower() for text in said for word in (" sum", "ring", "tree", " ll"))


def test_two_names_of_which_one_became_the_other_have_their_labels_and_an_arrow():
    known = labels(["ampere_sgemm_128x64_tn", "aten::mm"], mixed=True)
    joined = f"ampere_sgemm_128x64_tn{ARROW}aten::mm"
    found = labels([joined, "ampere_sgemm_128x64_tn"], mixed=True)
    assert found[joined] == f"{known['ampere_sgemm_128x64_tn']} → aten::mm"
    assert found["ampere_sgemm_128x64_tn"] == known["ampere_sgemm_128x64_tn"] != "ampere_sgemm_128x64_tn"
