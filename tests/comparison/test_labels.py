"""Names of kernels and runtime calls that mean the same, joined only where they must be."""

from __future__ import annotations

import pytest

from traceanalyze.comparison.collectives import (
    common_labels,
    plain_api,
    plain_collective,
    plain_kernel,
    untemplated,
)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("void foo<int, 4>(float*, int)", "foo<int, 4>"),
        ("foo<void (*)(int)>(at::Tensor const&)", "foo<void (*)(int)>"),
        ("triton_poi_fused_add_3", "triton_poi_fused_add"),
        ("Conv2D1", "Conv2D"),
        ("Conv2DBackpropFilter10", "Conv2DBackpropFilter"),
        ("aclnnMatmul_MatMulCommon_MatMulV2", "MatMulV2"),
        ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"),
    ],
)
def test_plain_kernels(name, plain):
    assert plain_kernel(name) == plain


def test_template_arguments_and_arrows():
    assert untemplated("void at::foo<bar<int>, 4>::run<2>(int)") == "at::foo::run"
    assert untemplated("Memcpy HtoD (Pageable -> Device)") == "Memcpy HtoD"


def test_collectives_of_hccl_lose_their_numbers():
    assert plain_collective("hcom_allReduce__586_0_1") == "hcom_allReduce"
    assert plain_collective("ncclDevKernel_AllReduce_Sum") == "ncclDevKernel_AllReduce_Sum"


@pytest.mark.parametrize(
    ("names", "plain"),
    [
        (("cudaLaunchKernel", "hipLaunchKernel", "hipModuleLaunchKernel", "cuLaunchKernelEx"), "LaunchKernel"),
        (("cudaStreamSynchronize", "AscendCL@aclrtSynchronizeStreamWithTimeout"), "StreamSynchronize"),
        (("cudaMemcpyAsync", "hipMemcpyAsync", "aclrtMemcpyAsync"), "MemcpyAsync"),
        (("aten::mm",), "aten::mm"),
    ],
)
def test_runtime_calls_of_all_vendors(names, plain):
    assert {plain_api(name) for name in names} == {plain}


def test_equal_names_are_not_joined_with_others():
    label = common_labels(["add_1", "add_2"], ["add_1", "add_3"], (plain_kernel, True))
    assert label == {"add_1": "add_1", "add_2": "add", "add_3": "add"}


def test_what_has_no_partner_keeps_its_name():
    assert common_labels(["a_1", "b"], ["c_1"], (plain_kernel, True)) == {"a_1": "a_1", "b": "b", "c_1": "c_1"}


def test_template_arguments_are_dropped_only_where_one_kernel_can_be_meant():
    ways = ((plain_kernel, True), (untemplated, False))
    assert common_labels(["f<1>"], ["f<2>"], *ways) == {"f<1>": "f", "f<2>": "f"}
    names = ["f<1>", "f<3>"], ["f<2>"]
    assert common_labels(*names, *ways) == {name: name for side in names for name in side}
