"""Files of every layout are what the profiler of that time would have written."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.oracle.report import numbers
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import truth
from tests.simulate.workload import US, Fault, Model, Ranks, Recording, Script, Workload
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import CPU_ONLY, GRAPHS, LAYOUTS, TODAY, YEAR_2021, Layout
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.modules import modules
from traceanalyze.analyses.options import Options
from traceanalyze.readers.kineto import read_text

if TYPE_CHECKING:
    from pathlib import Path

FAULTS = (Fault("item_sync", 1), Fault("pageable_copy", 3), Fault("unlinked", 7), Fault("late_launch", 3))
WORKLOAD = Workload(
    model=Model(layers=2),
    script=Script(optimizer="foreach"),
    ranks=Ranks(2),
    recording=Recording(clock_offset=US),
    faults=FAULTS,
    tick=US,
)
RANKS = simulate(WORKLOAD)
by_layout = pytest.mark.parametrize("layout", [*LAYOUTS, CPU_ONLY], ids=lambda layout: layout.name)


@by_layout
def test_nothing_is_lost_in_reading(layout: Layout) -> None:
    text = write(RANKS[1], layout)
    read = read_text(text)
    listed = json.loads(text)["traceEvents"]
    assert not any(read.read.counts.values())
    assert not read.read.truncated
    assert len(read.events) == sum(event["ph"] in {"X", "B"} for event in listed)
    assert len(read.instants.ts) == (len(RANKS[1].memory) if layout.with_device else 0)


@by_layout
def test_categories_and_clock(layout: Layout) -> None:
    trace = json.loads(write(RANKS[0], layout))
    categories = {event["cat"] for event in trace["traceEvents"] if event["ph"] == "X"}
    assert ("Kernel" in categories) == (layout is YEAR_2021)
    assert ("kernel" in categories) == (layout.with_device and layout is not YEAR_2021)
    assert ("python_function" in categories) == layout.python
    times = [event["ts"] for event in trace["traceEvents"]]
    assert all(isinstance(time, int) for time in times) == (not layout.relative)
    assert ("baseTimeNanoseconds" in trace) == layout.relative


def test_ranks_know_who_they_are_and_have_their_own_clocks() -> None:
    traces = [read_text(write(each, TODAY)) for each in RANKS]
    assert [trace.origin.rank for trace in traces] == [0, 1]
    assert [trace.origin.world_size for trace in traces] == [2, 2]
    assert traces[1].base_ns - traces[0].base_ns == US
    assert traces[0].groups == {"0": (0, 1)}


def test_the_ranks_of_a_long_group_are_those_of_the_header() -> None:
    text = write(RANKS[0], replace(TODAY, world=64))
    assert b"28, ..., 29, ...]" in text
    trace = read_text(text)
    assert trace.origin.world_size == 64
    assert trace.groups == {"0": tuple(range(64))}
    every = trace.events.fields["group_ranks"]
    assert {trace.strings.text(code) for code in every.value.tolist()} == {str(list(range(64)))}


def test_kernels_of_a_graph_are_work_of_the_modules_they_name() -> None:
    run = Workload(model=Model(layers=1, hidden=128, sequence=64), script=Script(graph="before"))
    (rank,) = simulate(run)
    context = Context(read_text(write(rank, GRAPHS)), Options())
    windows = [(step.start, step.end) for step in truth(rank).steps]
    known: Counter[str] = Counter()
    for work in rank.recorded:
        if work.call is not None and work.call.name == "cudaGraphLaunch":
            inside = sum(max(0, min(work.end, end) - max(work.start, start)) for start, end in windows)
            known[f"model/{work.phase}/{work.family}"] += inside
    table = modules(context)
    assert {row.module: row.forward_self_ns + row.backward_self_ns for row in table.records()}.items() >= known.items()


def test_whole_microseconds_need_a_schedule_of_them() -> None:
    with pytest.raises(ValueError, match="whole microseconds"):
        write(simulate(replace(WORKLOAD, tick=1))[0], YEAR_2021)


@pytest.mark.parametrize("layout", LAYOUTS[:4], ids=lambda layout: layout.name)
def test_the_oracle_knows_the_truth_too(layout: Layout, tmp_path: Path) -> None:
    """The reference that reads the file agrees with the schedule, without the product."""
    (tmp_path / "trace.json").write_bytes(write(RANKS[0], layout))
    found, known = numbers(tmp_path / "trace.json"), truth(RANKS[0])
    (parts,) = found["partitions"].values()
    assert [step["end"] - step["start"] for step in found["steps"]] == [step.time for step in known.steps]
    assert [{name: row[name] for name in known.parts[0]} for row in parts] == list(known.parts)
    assert found["idle"] == list(known.idle)
