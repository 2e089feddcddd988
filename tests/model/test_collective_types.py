"""Canonical names of collectives, element sizes, bus bandwidth; peak rates of devices."""

import pytest

from traceanalyze.model.collectives import bus_factor, collective_type, element_bytes
from traceanalyze.model.device_peaks import PEAKS, peaks_of


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
    assert bus_factor("all_reduce", 1) is None


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("Tesla V100-SXM2-16GB", "V100 SXM2"),
        ("NVIDIA GeForce RTX 2080 Ti", "GeForce RTX 2080 Ti"),
        ("NVIDIA GeForce RTX 3060 Ti", "GeForce RTX 3060 Ti"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("NVIDIA B200", "B200"),
        ("AMD Instinct MI300X VF", "MI300X"),
        ("AMD Instinct MI325X", "MI325X"),
        ("AMD Instinct MI250X", "MI250X (one die)"),
    ],
)
def test_peaks_of_known_devices(name, device):
    found = peaks_of(name)
    assert found is not None
    assert found.device == device


def test_unknown_devices_have_no_peaks():
    assert peaks_of("") is None
    assert peaks_of("AMD Radeon Graphics") is None


def test_every_row_of_the_table_is_plausible():
    for peaks in PEAKS:
        assert peaks.source
        assert peaks.rate("fp16") > peaks.rate("fp32") > 0
        assert peaks.rate("fp4") is None
        assert 400 < peaks.bandwidth < 10_000
