"""Laws of the critical path on real traces, and that those without the evidence are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import traceanalyze
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.steps.critical_path import PathKind, PathSegments, critical_path, critical_path_tables
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from pathlib import Path

_RESNET = "kineto/kineto_tb/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz"
_MULTI = "kineto/hta/critical_path/cuda_event_sync_multi_stream/event_sync_trace.json.gz"
MEASURED = (
    _RESNET,
    _MULTI,
    "kineto/tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "kineto/tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "kineto/tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "kineto/hta/critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz",
)
REFUSED = {
    "kineto/hta/trace_diff/control/control.json.gz": "no_stream_waits",
    "kineto/hta/trace_diff/test/test.json.gz": "few_linked_launches",
}
ON_DEVICE = [PathKind.COMPUTE, PathKind.COMM, PathKind.MEM]


def _context(folder: Path, name: str) -> Context:
    if not (folder / name).exists():
        pytest.skip(f"{name} is not among the shared traces")
    (trace,) = traceanalyze.load(folder / name).traces
    return Context(trace, Options())


def _path(context: Context) -> PathSegments:
    path = context.once(critical_path)
    assert isinstance(path, PathSegments)
    return path


@pytest.mark.parametrize("name", MEASURED)
def test_segments_tile_every_step_and_device_segments_lie_in_busy_time(shared_traces: Path, name: str) -> None:
    context = _context(shared_traces, name)
    path, steps = _path(context), context.steps
    assert path.end[-1] == steps.end[-1]
    for step in range(len(steps)):
        mine = np.flatnonzero(path.step == step)
        start, end = path.start[mine], path.end[mine]
        assert start[0] == steps.start[step]
        assert end.tolist() == [*start[1:].tolist(), int(steps.end[step])]
    on_path = path.by_step(len(steps))[:, ON_DEVICE].sum(axis=1)
    found = analyze_context(context)
    assert (on_path <= found.partitions[0].busy).all()
    assert sum(place.time_ns for place in found.records("critical_path_work")) == int(steps.time.sum())


@pytest.mark.parametrize(("name", "reason"), REFUSED.items())
def test_traces_without_the_evidence_are_refused(shared_traces: Path, name: str, reason: str) -> None:
    assert critical_path(_context(shared_traces, name)) == NotMeasured(reason)


def test_a_loader_that_starves_the_device_is_on_the_path_for_all_of_that_time(shared_traces: Path) -> None:
    """Published (definitions §16): the device is idle for 352,401 µs because of the loader."""
    context = _context(shared_traces, _RESNET)
    by_step = _path(context).by_step(len(context.steps))
    assert by_step[:, PathKind.DATA_LOADING].sum() / 1000 == pytest.approx(352_401, abs=100)


def test_only_the_kernel_that_the_host_waits_for_is_on_the_path(
    shared_traces: Path,
) -> None:
    """Three streams, one kernel each; the host is far behind the first two and waits for the last."""
    _, work = critical_path_tables(_context(shared_traces, _MULTI))
    kernels = {place.name: place.count for place in work.records() if place.part == "compute"}
    assert kernels == {"ampere_sgemm_128x64_nn": 1}
