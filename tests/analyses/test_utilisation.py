"""Device use over time on hand-made traces: a step of 30 µs has chunks of 1 µs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builder import TraceBuilder
from traceanalyze.analyses.kernels import use as utilisation


def use(b):
    return b.analyze().device_work.utilisation


def test_chunks_of_a_step_and_what_runs_in_them():
    b = TraceBuilder()
    b.step(1, 0, 30)
    b.launch(0, 0.1, 0, 2.5)
    b.launch(1, 0.1, 2, 2, name="ncclDevKernel_AllReduce", stream=9)
    b.copy(2, 0.1, 3.5, 1.75)
    b.launch(3, 0.1, 29, 1)
    chunks = use(b).chunks
    assert chunks.number.tolist() == list(range(30))
    assert (chunks.end - chunks.start).tolist() == [1000] * 30
    assert chunks.compute.tolist() == [1000, 1000, 500] + [0] * 26 + [1000]
    assert chunks.comm.tolist() == [0, 0, 500, 1000] + [0] * 26
    assert chunks.busy.tolist() == [1000, 1000, 1000, 1000, 1000, 250] + [0] * 23 + [1000]


def test_neighbours_with_little_use_are_one_stretch():
    b = TraceBuilder()
    b.step(1, 0, 30)
    b.launch(0, 0.1, 0, 10.25)
    b.launch(1, 0.1, 11.5, 0.5)  # half a chunk is not little
    b.launch(2, 0.1, 29, 1)
    long, short = use(b).low
    assert (long.start, long.length, long.busy) == (12_000, 17_000, 0)
    assert (short.start, short.length, short.busy) == (10_000, 1000, 250)


def test_a_stretch_may_run_on_into_the_next_step():
    b = TraceBuilder()
    for step, at in enumerate((0, 30, 60)):
        b.step(step, at, 30)
    b.launch(0, 1, 0, 20)
    b.launch(31, 1, 45, 15)
    b.launch(60, 1, 60, 30)
    (only,) = use(b).low
    assert (only.step, only.start, only.length) == (0, 20_000, 25_000)


def test_a_step_of_few_nanoseconds_has_fewer_chunks():
    b = TraceBuilder()
    b.device(0, 0.004)
    chunks = use(b).chunks
    assert (chunks.end - chunks.start).tolist() == [1] * 4
    assert chunks.busy.tolist() == [1] * 4
    assert use(b).low == ()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 40), st.integers(1, 3)), min_size=1, max_size=8))
def test_chunks_sum_to_the_partition(events):
    b = TraceBuilder()
    b.step(1, 10, 37)
    b.step(2, 50, 41)
    for at, dur, stream in events:
        b.device(at, dur, stream=stream)
    found = b.analyze()
    chunks, part = found.device_work.utilisation.chunks, found.partitions[0]
    assert chunks.busy.sum() == part.busy.sum()
    assert chunks.compute.sum() == part.compute.sum()
    assert (chunks.end - chunks.start).sum() == found.steps.time.sum()


def test_many_steps_have_fewer_chunks_each(monkeypatch):
    monkeypatch.setattr(utilisation, "_MOST", 20)
    b = TraceBuilder()
    for number in range(4):
        b.step(number, 30 * number, 30)
        b.device(30 * number, 6)
    chunks = use(b).chunks
    assert chunks.number.tolist() == [0, 1, 2, 3, 4] * 4
    assert chunks.step.tolist() == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 5
    assert chunks.busy.tolist() == [6000, 0, 0, 0, 0] * 4
