"""A program that computes on the host is told from one whose device was not recorded."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.computes import host_computes
from traceanalyze.analyses.options import Options
from traceanalyze.model.vocabulary import Mode
from traceanalyze.pipeline import load
from traceanalyze.readers.kineto import read_text

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def training() -> TraceBuilder:
    """Two steps as torch records them on a host: forward, backward and optimizer on one thread."""
    b = TraceBuilder()
    for number in range(2):
        at = number * 1000
        b.step(number, at, 1000)
        b.op("aten::addmm", at + 10, 200)
        b.op("autograd::engine::evaluate_function: AddmmBackward0", at + 300, 300)
        b.annotation("Optimizer.step#AdamW.step", at + 700, 200)
    return b


def alone(b: TraceBuilder) -> bool:
    return host_computes(Context(b.trace(), Options()))


def test_a_training_on_the_host_computes_there() -> None:
    assert alone(training())


@pytest.mark.parametrize(
    "name",
    [
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "gloo:all_reduce",
        "aten::mkldnn_convolution",
        # What torch calls on the host, too, to see whether there is a library: recurrent layers, CTC.
        "aten::cudnn_is_acceptable",
        "aten::_use_cudnn_ctc_loss",
        "aten::_use_miopen_ctc_loss",
    ],
)
def test_operators_of_the_host_are_no_sign_of_a_device(name: str) -> None:
    b = training()
    b.op(name, 20, 10)
    assert alone(b)


@pytest.mark.parametrize(
    "name",
    [
        "aten::cudnn_convolution",
        "aten::miopen_batch_norm",
        "aten::_cudnn_rnn",
        "aten::_cudnn_ctc_loss",
        "aten::pin_memory",
        "aten::_pin_memory",
        "aten::record_stream",
        "aten::native_dropout",
        "aten::_scaled_dot_product_flash_attention",
        "npu::npu_fusion_attention",
        "nccl:all_reduce",
        "hipMemcpyWithStream",
        "Memcpy DtoH (Device -> Pageable)",
        "triton_poi_fused_add_0",
    ],
)
def test_operators_that_only_devices_have_are_a_sign_of_one(name: str) -> None:
    b = training()
    b.op(name, 20, 10)
    assert not alone(b)


def runtime_call(b: TraceBuilder) -> None:
    b.api("cudaLaunchKernel", 20, 5)


def kernel(b: TraceBuilder) -> None:
    b.device(20, 5)


def listed_device(b: TraceBuilder) -> None:
    b.header["deviceProperties"] = [{"id": 0, "name": "NVIDIA A100"}]


def backend(b: TraceBuilder) -> None:
    b.header["distributedInfo"] = {"backend": "nccl", "rank": 0, "world_size": 2}


def argument(b: TraceBuilder) -> None:
    b.op("aten::to", 20, 5, **{"Concrete Inputs": ["", "6", "", "cuda:0"]})


def device_memory(b: TraceBuilder) -> None:
    b.memory(20, 512, kind=1)


def other_thread(b: TraceBuilder) -> None:
    b.op("autograd::engine::evaluate_function: AddmmBackward0", 300, 300, tid=2)


@pytest.mark.parametrize(
    "sign",
    [runtime_call, kernel, listed_device, backend, argument, device_memory, other_thread],
    ids=lambda f: f.__name__,
)
def test_so_are_calls_devices_arguments_memory_and_threads(sign) -> None:
    b = training()
    sign(b)
    assert not alone(b)


def test_the_same_of_the_host_is_none() -> None:
    b = training()
    b.header["deviceProperties"] = []
    b.header["distributedInfo"] = {"backend": "gloo", "rank": 0, "world_size": 2}
    b.op("aten::to", 20, 5, **{"Concrete Inputs": ["", "6", "", "cpu"]})
    b.memory(20, 512, kind=0)
    assert alone(b)


def test_a_thread_of_nothing_but_backward_passes_is_that_of_a_device() -> None:
    """Without steps it may be the busiest thread, so that it is taken for the program's own."""
    b = TraceBuilder()
    b.op("aten::addmm", 0, 10)
    for at in range(100, 1000, 100):
        b.op("autograd::engine::evaluate_function: AddmmBackward0", at, 50, tid=2)
        b.op("aten::mm", at + 10, 30, tid=2)
    assert not alone(b)


_OF_DEVICES = re.compile(r"kernel|mem(cpy|set)|runtime|driver|gpu_user_annotation|cuda_", re.IGNORECASE)


@pytest.mark.parametrize(
    "path",
    [
        "param/linear_kineto.json.gz",
        "kineto_tb/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
        "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
        "hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz",
    ],
)
def test_public_recordings_without_their_device_are_not_taken_for_programs_of_the_host(shared_traces, path) -> None:
    """As if they had been recorded with activities=[CPU], and by a profiler that lists no devices."""
    found = json.loads(gzip.decompress((shared_traces / "kineto" / path).read_bytes()))
    events = [one for one in found["traceEvents"] if not _OF_DEVICES.search(str(one.get("cat")))]
    text = json.dumps({"schemaVersion": 1, "traceEvents": events})
    context = Context(read_text(text.encode()), Options())
    assert context.mode == Mode.HOST_ONLY
    assert not context.once(host_computes)


@pytest.mark.parametrize("name", ["cpu_training", "cpu_slow_loader"])
def test_recordings_of_a_training_on_the_host_are_told_as_such(name: str) -> None:
    (trace,) = load(SAMPLES / name).traces
    assert host_computes(Context(trace, Options()))
