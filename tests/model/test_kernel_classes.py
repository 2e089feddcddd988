"""What kernels compute and whether on matrix units, by names as real traces have them."""

import pytest

from traceanalyze.model.kernel_classes import KernelGroup, TensorCore, group_of_kernel, group_of_op, tensor_core_use

M, A, C, N = KernelGroup.MATMUL, KernelGroup.ATTENTION, KernelGroup.CONVOLUTION, KernelGroup.NORMALIZATION
E, R = KernelGroup.ELEMENTWISE, KernelGroup.REDUCTION
YES, NO, UNKNOWN = TensorCore.YES, TensorCore.NO, TensorCore.UNKNOWN

KERNELS = [
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize256x128x64_warpgroupsize2x1x1_kernel", M, YES),
    ("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT", M, YES),
    ("bmm_Bfloat16_E2m1E2m1_Fp32_t128x32x512u2_s6_et128x32_m256x32x64_cga2x1x1_16dp256b", M, UNKNOWN),
    ("fmhaSm100aKernel_QkvE4m3OE4m3H128PagedKvDenseP32VarSeqQ8Kv128StaticSwapsAbForGen", A, UNKNOWN),
    ("ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn", M, YES),
    ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8>", M, YES),
    ("ampere_sgemm_128x64_nn", M, NO),
    ("volta_sgemm_64x64_tn", M, NO),
    ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>", M, NO),
    ("void gemvNSP_kernel<float, float, float, float, 1, 32, 4, 1024>", M, NO),
    ("void splitKreduce_kernel<32, 16, int, float, float>(cublasSplitKParams<float>)", M, NO),
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1", M, YES),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", M, UNKNOWN),
    ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128>>", A, YES),
    ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<>)", A, YES),
    ("attn_fwd", A, UNKNOWN),
    ("bwd_kernel_dk_dv", A, UNKNOWN),
    ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw", C, YES),
    ("volta_scudnn_128x64_relu_interior_nn_v1", C, NO),
    ("void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false>", C, NO),
    ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>", C, NO),
    ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>", C, NO),
    ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>", N, NO),
    ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>", N, NO),
    ("void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>", N, NO),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 5>", KernelGroup.SOFTMAX, NO),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", E, NO),
    ("vectorized_elementwise_kernel<4, at::native::sqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}>", E, NO),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>", E, NO),
    (
        "elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>",
        KernelGroup.LAYOUT,
        NO,
    ),
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>", KernelGroup.LAYOUT, NO),
    ("void fbgemm_gpu::permute_2D_lengths_kernel<int>", KernelGroup.LAYOUT, NO),
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<>>>", R, NO),
    ("void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel", KernelGroup.EMBEDDING, NO),
    ("void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<>>", KernelGroup.INDEXING, NO),
    ("void at::native::vectorized_gather_kernel<16, long>", KernelGroup.INDEXING, NO),
    ("void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>", KernelGroup.POOLING, NO),
    (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>>",
        KernelGroup.OPTIMIZER,
        NO,
    ),
    ("triton_poi_fused__scaled_mm__to_copy_0", KernelGroup.COMPILED, NO),
    ("triton__0d1d2d3de4de", KernelGroup.COMPILED, UNKNOWN),
    ("triton_tem_fused_mm_3", M, UNKNOWN),
    ("SubTensorOpWithScalar1d", None, UNKNOWN),
]


@pytest.mark.parametrize(("name", "group", "use"), KERNELS)
def test_kernel(name, group, use):
    assert group_of_kernel(name) == group
    assert tensor_core_use(name, KernelGroup.OTHER if group is None else group) == use


@pytest.mark.parametrize(
    ("op", "group"),
    [
        ("aten::addmm", M),
        ("aten::_scaled_mm", M),
        ("aten::cudnn_convolution", C),
        ("aten::convert", KernelGroup.OTHER),
        ("aten::native_layer_norm", N),
        ("aten::normal_", E),
        ("aten::add_", E),
        ("aten::gelu_backward", E),
        ("aten::_foreach_add_", KernelGroup.OPTIMIZER),
        ("aten::embedding_dense_backward", KernelGroup.EMBEDDING),
        ("aten::_flash_attention_forward", A),
        ("aten::copy_", KernelGroup.LAYOUT),
        ("aten::index_select", KernelGroup.INDEXING),
        ("aten::sum", R),
        ("aten::log_softmax", KernelGroup.SOFTMAX),
        ("my::op", KernelGroup.OTHER),
    ],
)
def test_operator(op, group):
    assert group_of_op(op) == group


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("void kDequantizeBlockwise<__nv_bfloat16, 512, 64, 8, 2>(float*, unsigned char*)", KernelGroup.LAYOUT),
        ("dequantize_weights(int*, __half*, int*)", KernelGroup.LAYOUT),
        ("void unpack_int4_kernel<4>(int const*, signed char*)", KernelGroup.LAYOUT),
        ("void dequant_gemm_kernel<float>(float*)", KernelGroup.MATMUL),
        ("void at::native::packed_kernel<4>()", None),
    ],
)
def test_to_quantise_or_unpack_weights_is_no_product_whatever_asks_for_it(name, group):
    assert group_of_kernel(name) == group
