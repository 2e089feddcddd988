"""Kernels and calls of Ascend in the tool's words."""

from __future__ import annotations

import pytest

from traceanalyze.analyses.kernels.ascend import cube_use, group_of_type, type_of_name
from traceanalyze.model.classify import api_class
from traceanalyze.model.kernel_classes import KernelGroup, TensorCore
from traceanalyze.model.vocabulary import ApiClass, SyncKind


@pytest.mark.parametrize(
    ("op_type", "group"),
    [
        ("MatMulV2", "MATMUL"),
        ("BatchMatMulV2", "MATMUL"),
        ("GroupedMatmul", "MATMUL"),
        ("FlashAttentionScore", "ATTENTION"),
        ("FlashAttentionScoreGrad", "ATTENTION"),
        ("FusedInferAttentionScore", "ATTENTION"),
        ("Conv2D", "CONVOLUTION"),
        ("Conv2DBackpropFilter", "CONVOLUTION"),
        ("BNTrainingUpdate", "NORMALIZATION"),
        ("AddRmsNorm", "NORMALIZATION"),
        ("LayerNormGradV3", "NORMALIZATION"),
        ("LogSoftmaxV2", "SOFTMAX"),
        ("MaxPoolGradWithArgmaxV1", "POOLING"),
        ("EmbeddingDenseGrad", "EMBEDDING"),
        ("ForeachAddList", "OPTIMIZER"),
        ("ApplyAdamWV2", "OPTIMIZER"),
        ("ApplyRotaryPosEmb", "ELEMENTWISE"),
        ("TransData", "LAYOUT"),
        ("Cast", "LAYOUT"),
        ("ConcatD", "LAYOUT"),
        ("GatherV2", "INDEXING"),
        ("TopKV2", "INDEXING"),
        ("ReduceSum", "REDUCTION"),
        ("NLLLoss", "REDUCTION"),
        ("SoftmaxCrossEntropyWithLogits", "REDUCTION"),
        ("MemSet", "FILL"),
        ("ReluGrad", "ELEMENTWISE"),
        ("SwiGlu", "ELEMENTWISE"),
        ("DSAGenBitMask", "ELEMENTWISE"),
        ("RealDiv", "ELEMENTWISE"),
    ],
)
def test_what_a_type_is_for(op_type, group):
    assert group_of_type(op_type) is KernelGroup[group]


def test_a_type_nobody_knows_is_not_guessed():
    assert group_of_type("HouseholderWhatever") is None


@pytest.mark.parametrize(
    ("name", "op_type"),
    [
        ("aclnnMm_MatMulCommon_MatMulV2", "MatMulV2"),
        ("trans_TransData_12", "TransData"),
        ("ReduceSum7", "ReduceSum"),
        ("Conv2DBackpropFilter10", "Conv2DBackpropFilter"),
        ("aclnnInplaceCopy_TensorMoveAiCore_TensorMove", "TensorMove"),
        ("Default/network-WithLossCell/_backbone-AlexNet/conv4-Conv2d/Cast-op251", "Cast"),
        ("Default/FusionOp_MatMul_Relu-op527", "MatMul_Relu"),
    ],
)
def test_the_type_in_a_kernels_name(name, op_type):
    assert type_of_name(name) == op_type


@pytest.mark.parametrize(
    ("core", "group", "mac_time", "use"),
    [
        ("AI_CORE", KernelGroup.MATMUL, 5, "YES"),
        ("AI_CORE", KernelGroup.ELEMENTWISE, 0, "NO"),
        ("AI_CORE", KernelGroup.ELEMENTWISE, None, "NO"),
        ("MIX_AIC", KernelGroup.ATTENTION, None, "YES"),
        ("AI_VECTOR_CORE", KernelGroup.MATMUL, None, "NO"),
        ("DSA_SQE", None, None, "NO"),
        ("AI_CORE", None, None, "UNKNOWN"),
        ("", KernelGroup.CONVOLUTION, None, "YES"),
    ],
)
def test_use_of_the_cube_unit(core, group, mac_time, use):
    assert cube_use(core, group, mac_time) is TensorCore[use]


@pytest.mark.parametrize(
    ("call", "klass", "sync"),
    [
        ("AscendCL@aclrtSynchronizeStreamWithTimeout", "SYNC", "EXPLICIT"),
        ("AscendCL@aclrtSynchronizeDevice", "SYNC", "EXPLICIT"),
        ("Runtime@StreamSynchronize", "SYNC", "EXPLICIT"),
        ("AscendCL@aclrtMemcpy", "SYNC", "BLOCKING_COPY"),
        ("AscendCL@aclrtMemcpyAsync", "COPY", "NONE"),
        ("AscendCL@aclrtMallocAlign32", "ALLOC", "NONE"),
        ("AscendCL@aclrtFree", "ALLOC", "IMPLICIT"),
        ("Node@launch", "LAUNCH", "NONE"),
        ("AscendCL@aclnnMm", "LAUNCH", "NONE"),
        ("AscendCL@aclopCompileAndExecute", "LAUNCH", "NONE"),
        ("Communication@Launch_Ffts", "LAUNCH", "NONE"),
        ("Hccl@Launch_Ffts", "LAUNCH", "NONE"),
        ("Enqueue", "LAUNCH", "NONE"),
        ("Dequeue@Conv2D", "LAUNCH", "NONE"),
        ("AscendCL@aclnnDivsGetWorkspaceSize", "OTHER", "NONE"),
        ("AscendCL@aclrtQueryEventStatus", "OTHER", "NONE"),
    ],
)
def test_what_a_call_does(call, klass, sync):
    assert api_class(call) == (ApiClass[klass], SyncKind[sync])
