"""Every busy instant belongs to one event: against a count nanosecond by nanosecond, and against the partition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.builder import TraceBuilder
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.kernels.events import DeviceEvents
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.steps.partition import class_sets, exclusive_time, partition
from traceanalyze.model import intervals
from traceanalyze.model.vocabulary import DeviceClass

events = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 25), st.sampled_from(list(DeviceClass)), st.integers(0, 1)),
    max_size=12,
)
windows = st.lists(st.tuples(st.integers(0, 70), st.integers(0, 30)), min_size=1, max_size=3)


def table(rows):
    """Device events in order of start; only what exclusive times depend on."""
    rows = sorted(rows, key=lambda row: row[0])
    column = {name: np.array([row[i] for row in rows], np.int64) for i, name in enumerate(("at", "dur", "klass", "on"))}
    nothing = np.zeros(len(rows), np.int64)
    return DeviceEvents(
        row=nothing,
        start=column["at"],
        end=column["at"] + column["dur"],
        device=column["on"],
        stream=nothing,
        name=nothing.astype(np.int32),
        klass=column["klass"].astype(np.uint8),
        kind=nothing.astype(np.uint8),
        rule=nothing.astype(np.int32),
        rules=(),
        repaired=0,
        removed=0,
    )


def by_the_nanosecond(found, device, chosen):
    time = [0] * len(found)
    for t in range(120):
        if not any(start <= t < end for start, end in zip(chosen.start, chosen.end, strict=True)):
            continue
        running = [i for i in range(len(found)) if found.device[i] == device and found.start[i] <= t < found.end[i]]
        if running:
            time[min(running, key=lambda i: (found.klass[i], found.start[i], i))] += 1
    return time


@given(events, windows)
def test_each_instant_counts_for_the_first_event_of_the_first_class(rows, edges):
    found = table(rows)
    chosen = intervals.merge(np.array([a for a, _ in edges]), np.array([a + n for a, n in edges]))
    for device in (0, 1):
        assert exclusive_time(found, device, chosen).tolist() == by_the_nanosecond(found, device, chosen)


@given(events, windows)
def test_classes_sum_to_the_rows_of_the_partition(rows, edges):
    found = table(rows)
    chosen = intervals.merge(np.array([a for a, _ in edges]), np.array([a + n for a, n in edges]))
    part = partition(found, 0, class_sets(found, 0), chosen.start, chosen.end)
    time = exclusive_time(found, 0, chosen)
    by_class = [int(time[found.klass == klass].sum()) for klass in DeviceClass]
    assert by_class == [int(part.compute.sum()), int(part.comm_exposed.sum()), int(part.mem_exposed.sum())]
    assert int(time.sum()) == int(part.busy.sum())


def test_an_event_that_outlasts_a_later_one_keeps_the_rest():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 1, 10, 50)  # 10-60
    b.launch(1, 1, 20, 20, stream=8)  # 20-40, all of it inside
    b.launch(2, 1, 50, 30, stream=9)  # 50-80, the last 20 of it alone
    b.launch(3, 1, 70, 25, stream=20, name="ncclDevKernel_AllReduce_Sum_f32")  # 70-95, the last 15 of it alone
    context = Context(b.trace(), Options())
    steps = context.steps
    time = exclusive_time(context.device, 0, intervals.merge(steps.start, steps.end))
    assert time.tolist() == [50_000, 0, 20_000, 15_000]
