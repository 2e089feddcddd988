"""What the product finds in Ascend files is what the simulation knows, in text and database, of every era."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import astuple, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.simulate.compare import measured
from tests.simulate.compare_npu import npu_analysis, npu_expected, npu_trace, tables
from tests.simulate.simulate import simulate
from tests.simulate.strategies import ascend_layouts, npu_workloads
from tests.simulate.truth.host import modules, operators, phases
from tests.simulate.truth.summary import truth
from tests.simulate.truth.tables import kernels, memory_peak, transfers
from tests.simulate.truth.windows import windows
from tests.simulate.two_npus import TWO_NPUS
from tests.simulate.workload import Script, Workload
from tests.simulate.writers.ascend_layouts import AscendLayout, every_era
from traceanalyze.analyses.kernels.ascend import matrix_cycles
from traceanalyze.model import intervals

if TYPE_CHECKING:
    from traceanalyze.model.trace import Trace

_FEW = examples(6)
RANKS = simulate(TWO_NPUS)


@_FEW
@given(workload=npu_workloads(), layout=ascend_layouts())
def test_numbers_of_every_rank_are_the_truth(workload: Workload, layout: AscendLayout) -> None:
    for schedule in simulate(workload):
        assert measured(npu_analysis(schedule, layout)) == npu_expected(schedule)


@_FEW
@given(workload=npu_workloads(), layout=ascend_layouts())
def test_text_and_database_say_the_same(workload: Workload, layout: AscendLayout) -> None:
    schedule = simulate(workload)[-1]
    assert tables(npu_analysis(schedule, layout, "text")) == tables(npu_analysis(schedule, layout, "db"))


@_FEW
@given(workload=npu_workloads(), layout=ascend_layouts())
def test_tables_are_the_truth(workload: Workload, layout: AscendLayout) -> None:
    schedule = simulate(workload)[0]
    steps = windows(schedule)
    found = tables(npu_analysis(schedule, layout))
    names = {
        name.removesuffix("_1") if name.startswith("hcom") and layout.era == "2023" else name: row
        for name, row in kernels(schedule, steps).items()
    }
    assert found.kernels == names
    known = {name: astuple(row) for name, row in operators(schedule, steps).items()}
    assert found.operators == known
    ran = phases(schedule, steps)
    assert {name: row for name, row in found.phases.items() if any(row) and name not in {"recompute", "zero_grad"}} == {
        name: tuple(row.get(name, 0) for row in ran) for name in {name for row in ran for name in row}
    }
    assert found.memory == ((*memory_peak(schedule), len(schedule.memory)),)
    if workload.recording.stacks:
        paths, _ = modules(schedule, steps)
        assert found.modules == {
            "/".join(name.removeprefix("nn.Module: ") for name in path): astuple(row) for path, row in paths.items()
        }


@pytest.mark.parametrize("form", ["text", "db"])
def test_every_era_says_the_same(form: str) -> None:
    every = [tables(npu_analysis(RANKS[0], layout, form)) for layout in every_era()]
    for found in every[1:]:
        assert found.numbers == every[0].numbers
        assert found.operators == every[0].operators
        assert found.collectives == every[0].collectives
        assert sorted(found.kernels.values()) == sorted(every[0].kernels.values())


def moved(trace: Trace) -> list[tuple[str, int, int]]:
    """Name, transfer and wait of each collective, from its parts on all planes."""
    events, strings = trace.events, trace.strings
    part_of, names = events.fields["part_of"], ("Memcpy", "Reduce_Inline")
    rows = []
    for row in sorted(set(part_of.value[part_of.value >= 0].tolist()), key=lambda row: events.ts[row]):
        parts = part_of.row[part_of.value == row].astype(np.int64)
        moving = np.array([part for part in parts if strings.text(int(events.name[part])) in names])
        time = intervals.total(intervals.merge(events.ts[moving], events.ts[moving] + events.dur[moving]))
        rows.append((strings.text(int(events.name[row])), time, int(events.dur[row]) - time))
    return rows


@pytest.mark.parametrize("form", ["text", "db"])
def test_transfer_and_wait_come_from_all_planes(form: str) -> None:
    for schedule in RANKS:
        known = [(each.name, each.transfer, each.wait) for each in transfers(schedule)]
        assert moved(npu_trace(schedule, AscendLayout("8.3"), form)) == known
    waits = [sum(each.wait for each in transfers(schedule)) for schedule in RANKS]
    assert waits[0] > waits[1]


@_FEW
@given(workload=npu_workloads(), layout=ascend_layouts(), form=st.sampled_from(("text", "db")))
def test_wait_and_transfer_of_collectives(workload: Workload, layout: AscendLayout, form: str) -> None:
    """Old exports do not say how many ranks a group has, so that some sizes are not known."""
    sized = layout.number > 1
    for schedule in simulate(replace(workload, ranks=replace(workload.ranks, count=2))):
        known: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
        works = [work for work in schedule.works if work.collective is not None]
        for work, each in zip(works, transfers(schedule), strict=True):
            if work.collective is not None:
                row = known[work.collective.type, work.collective.bytes if sized else 0]
                row[0] += each.transfer
                row[1] += each.wait
                row[2] += each.exposed_wait
        found: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
        analysis = npu_analysis(schedule, layout, form)
        assert analysis.measured("collectives")
        for each in analysis.records("collectives"):
            assert isinstance(each.size_bytes, int) or not sized
            row = found[each.collective, each.size_bytes if sized else 0]
            for place, time in enumerate((each.transfer_ns, each.wait_ns, each.exposed_wait_ns)):
                row[place] += time
        assert found == known


@pytest.mark.parametrize("form", ["text", "db"])
def test_the_first_rank_waits_for_the_slow_one(form: str) -> None:
    found = npu_analysis(RANKS[0], AscendLayout("8.3"), form).records("collectives")
    assert {row.waited_for for row in found} == {1}


def test_without_planes_wait_is_not_measured() -> None:
    found = npu_analysis(RANKS[0], AscendLayout(planes=False)).tables["collectives"]
    assert len(found)
    assert "wait_ns" not in found.keys


@pytest.mark.parametrize("damage", ["open", "comma", "cut"])
def test_a_damaged_timeline_loses_no_number(damage: str) -> None:
    """What is cut off is the last arrow."""
    whole, damaged = (npu_analysis(RANKS[0], AscendLayout(damage=each)) for each in ("", damage))
    assert measured(damaged) == measured(whole)


@pytest.mark.parametrize("form", ["text", "db"])
def test_level_0_keeps_steps_and_parts(form: str) -> None:
    """Without the calls of CANN the time of the device is the same."""
    workload = replace(TWO_NPUS, script=Script(items=0), faults=())
    for schedule in simulate(workload):
        known, found = truth(schedule), measured(npu_analysis(schedule, AscendLayout(level=0), form))
        assert found["steps"] == [step.time for step in known.steps]
        assert found["parts"] == list(known.parts)


@pytest.mark.parametrize("form", ["text", "db"])
def test_counters_tell_the_clock_and_the_device(form: str) -> None:
    """Cycles are those of all blocks, and the table's use of the cube that of 24 cores at 1.8 GHz: a 910B2."""
    trace = npu_trace(RANKS[0], AscendLayout("8.3", 2), form)
    events = trace.events
    rows = events.fields["core_clock"].row.astype(np.int64)
    clock, blocks = (events.numbers(field, rows) for field in ("core_clock", "block_dim"))
    assert len(rows) > 30
    assert set(clock.tolist()) <= {1799, 1800, 1801}
    # Two vector cores to a cube core.
    assert set(blocks.tolist()) <= {*range(1, 49)}
    assert matrix_cycles(trace) == pytest.approx(24 * 1800, rel=1e-4)


def test_the_vendors_own_numbers_are_read() -> None:
    trace = npu_trace(RANKS[0], AscendLayout("8.3"))
    assert trace.vendor is not None
    assert [step.step for step in trace.vendor.steps] == [3, 4]
    whole = sum(work.end - work.start for work in RANKS[0].works if work.kind == "comm")
    assert sum(step.communication or 0 for step in trace.vendor.steps) == whole


def test_rank_level_and_options() -> None:
    trace = npu_trace(RANKS[1], AscendLayout("8.3", level=2, shapes=False))
    assert (trace.origin.format, trace.origin.form, trace.origin.level) == ("ascend", "text", "Level2")
    assert trace.origin.rank == 1
    assert not trace.options["record_shapes"]
    assert trace.options["profile_memory"]
    assert trace.versions["cann"] == "8.3.RC1"
