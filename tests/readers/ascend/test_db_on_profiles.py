"""Two real databases of one run (CANN 8.0): figures that were worked out apart from this program."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ascend_db_builder import read_profile
from traceanalyze.model import intervals

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from traceanalyze.model.trace import Trace

TRANSFERS = {"Memcpy", "Reduce_Inline"}
# Computing, communication, uncovered communication, uncovered waiting (ms); vendor: free, stage, preparing (ns).
FIGURES = {
    0: ((8.9034, 102.1081, 98.0719, 94.0055), (25_258_144, 132_233_522, 18_055_693)),
    1: ((8.9156, 98.5902, 94.5561, 90.4539), (25_840_499, 129_312_183, 17_512_827)),
}
STEPS = {0: (1736410576386409710, 1736410576538298460), 1: (1736410576389878870, 1736410576538144290)}
WINDOWS = pytest.mark.parametrize("rank", [0, 1])


@pytest.fixture
def profiles(shared_traces: Path) -> Path:
    folder = shared_traces / "ascend" / "msinsight_2rank_torch" / "db" / "level1"
    if not folder.is_dir():
        pytest.skip("the databases are not here")
    return folder


def texts(trace: Trace, codes: NDArray[np.int32]) -> NDArray[np.str_]:
    return np.array([trace.strings.text(int(code)) for code in codes])


def column(trace: Trace, field: str) -> NDArray[np.int64]:
    values = np.full(len(trace.events), -1, np.int64)
    values[trace.events.fields[field].row] = trace.events.fields[field].value
    return values


def busy(trace: Trace, member: NDArray[np.bool_]) -> intervals.Intervals:
    start = trace.events.ts[member]
    return intervals.merge(start, start + trace.events.dur[member])


@WINDOWS
def test_compute_communication_and_waiting(profiles: Path, rank: int) -> None:
    trace = read_profile(profiles / f"rank{rank}_ascend_pt")
    cat, name = texts(trace, trace.events.cat), texts(trace, trace.events.name)
    grouped = column(trace, "group") >= 0
    compute, communication = busy(trace, (cat == "kernel") & ~grouped), busy(trace, grouped)
    uncovered = intervals.subtract(communication, compute)
    transfer = busy(trace, (cat == "hccl_task") & np.isin(name, list(TRANSFERS)))
    found = (compute, communication, uncovered, intervals.subtract(uncovered, transfer))
    assert [intervals.total(part) / 1e6 for part in found] == pytest.approx(FIGURES[rank][0], abs=1e-4)


@WINDOWS
def test_every_compute_task_has_its_operator(profiles: Path, rank: int) -> None:
    trace = read_profile(profiles / f"rank{rank}_ascend_pt")
    cat = texts(trace, trace.events.cat)
    compute = (cat == "kernel") & (column(trace, "group") < 0)
    assert compute.sum() == 187
    flows = trace.flows
    linking = texts(trace, flows.cat) == "async_npu"
    ends = linking & (flows.phase == ord("f"))
    reached = set(zip(flows.track[ends].tolist(), flows.ts[ends].tolist(), strict=True))
    events = set(zip(trace.events.track[compute].tolist(), trace.events.ts[compute].tolist(), strict=True))
    assert len(events) == 187
    assert events <= reached
    begins = linking & (flows.phase == ord("s"))
    ops = cat == "cpu_op"
    known = set(zip(trace.events.track[ops].tolist(), trace.events.ts[ops].tolist(), strict=True))
    assert set(zip(flows.track[begins].tolist(), flows.ts[begins].tolist(), strict=True)) <= known


@WINDOWS
def test_what_was_recorded(profiles: Path, rank: int) -> None:
    trace = read_profile(profiles / f"rank{rank}_ascend_pt")
    cat = texts(trace, trace.events.cat).tolist()
    counts = {kind: cat.count(kind) for kind in ("cpu_op", "python_function", "task_queue_runtime", "hccl_task")}
    assert counts == {"cpu_op": 860, "python_function": 1282, "task_queue_runtime": 318, "hccl_task": 296}
    assert (cat.count("kernel"), cat.count("gpu_memcpy")) == (191, 24)
    assert trace.read.counts == {}
    assert [note.partition(" ")[0] for note in trace.read.notes] == ["profiler_metadata.json"]
    assert (trace.origin.rank, trace.origin.format, trace.origin.form) == (rank, "ascend", "db")
    assert [(device.id, device.name) for device in trace.devices] == [(rank, "Ascend910B")]


@WINDOWS
def test_the_step(profiles: Path, rank: int) -> None:
    trace = read_profile(profiles / f"rank{rank}_ascend_pt")
    step = np.flatnonzero(texts(trace, trace.events.name) == "ProfilerStep#50")
    assert len(step) == 1
    start = trace.base_ns + int(trace.events.ts[step[0]])
    assert (start, start + int(trace.events.dur[step[0]])) == STEPS[rank]
    assert trace.vendor is not None
    (said,) = trace.vendor.steps
    assert (said.step, said.bubble) == (50, 0)
    assert (said.free, said.stage, said.preparing) == FIGURES[rank][1]


@WINDOWS
def test_nothing_is_written_and_no_address_is_kept(profiles: Path, rank: int) -> None:
    folder = profiles / f"rank{rank}_ascend_pt"
    files = [path for path in folder.rglob("*") if path.is_file()]
    before = {path: sha256(path.read_bytes()).digest() for path in files}
    trace = read_profile(folder)
    assert {path: sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()} == before
    assert b"%enp" not in trace.strings.blob.tobytes()
