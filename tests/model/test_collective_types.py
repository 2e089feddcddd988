"""Canonical names of collectives, element sizes, bus bandwidth."""

import pytest

from traceanalyze.model.collectives import bus_factor, collective_type, element_bytes


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("allreduce", "all_reduce"),
        ("allreduce_coalesced", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("all_gather_into_tensor_out", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("c10d::alltoall_base_", "all_to_all"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "all_reduce"),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_half", "reduce_scatter"),
        ("ncclKernel_Reduce_RING_LL_Sum_float", "reduce"),
        ("ncclDevKernel_SendRecv", "send_recv"),
        ("nccl:broadcast", "broadcast"),
        ("nccl:recv 0<-1", "recv"),
        ("nccl:send 0->1", "send"),
        ("hcom_allReduce__123_0", "all_reduce"),
        ("void vllm::cross_device_reduce_1stage<half>", "all_reduce"),
        ("void deep_ep::internode::combine<4>", "all_to_all"),
        ("c10d::barrier", "barrier"),
        ("gather", "gather"),
        ("scatter", "scatter"),
        ("ncclDevKernel_Generic", None),
    ],
)
def test_type(name, kind):
    assert collective_type(name) == kind


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("BFloat16", 2),
        ("c10::Half", 2),
        ("float", 4),
        ("Float", 4),
        ("long int", 8),
        ("unsigned char", 1),
        ("c10::Float8_e4m3fn", 1),
        ("c10::complex<float>", 8),
        ("ComplexFloat", 8),
        ("c10::complex<double>", 16),
        ("ComplexDouble", 16),
        ("ComplexHalf", 4),
        ("complex<mystery>", None),
        ("double", 8),
        ("", None),
        ("Scalar", None),
    ],
)
def test_element_bytes(dtype, size):
    assert element_bytes(dtype) == size


def test_bus_factors():
    assert bus_factor("all_reduce", 8) == 1.75
    assert bus_factor("all_gather", 8) == bus_factor("all_to_all", 8) == 0.875
    assert bus_factor("broadcast", 8) == 1.0
    assert bus_factor("barrier", 8) is None
    assert bus_factor("all_reduce", 2) == 1
    assert bus_factor("all_reduce", 1) is None
