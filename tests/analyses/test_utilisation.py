"""Device use over time on hand-made traces: a step of 30 µs has chunks of 1 µs."""

from hypothesis import given
from hypothesis import strategies as st

from tests.builder import TraceBuilder
from tests.examples import examples
from traceanalyze.analyses.kernels import use as utilisation


def chunks_of(b):
    return b.rows("utilisation")


def times(chunks, share):
    """Time behind a share of every chunk, ns."""
    return [round(getattr(each, share) * each.length_ns) for each in chunks]


def lengths(chunks):
    return [each.length_ns for each in chunks]


def test_chunks_of_a_step_and_what_runs_in_them():
    b = TraceBuilder()
    b.step(1, 0, 30)
    b.launch(0, 0.1, 0, 2.5)
    b.launch(1, 0.1, 2, 2, name="ncclDevKernel_AllReduce", stream=9)
    b.copy(2, 0.1, 3.5, 1.75)
    b.launch(3, 0.1, 29, 1)
    chunks = chunks_of(b)
    assert [each.chunk for each in chunks] == list(range(1, 31))
    assert lengths(chunks) == [1000] * 30
    assert times(chunks, "compute_share") == [1000, 1000, 500] + [0] * 26 + [1000]
    assert times(chunks, "communication_share") == [0, 0, 500, 1000] + [0] * 26
    assert times(chunks, "busy_share") == [1000, 1000, 1000, 1000, 1000, 250] + [0] * 23 + [1000]


def test_neighbours_with_little_use_are_one_stretch():
    b = TraceBuilder()
    b.step(1, 0, 30)
    b.launch(0, 0.1, 0, 10.25)
    b.launch(1, 0.1, 11.5, 0.5)  # half a chunk is not little
    b.launch(2, 0.1, 29, 1)
    long, short = b.rows("low_utilisation")
    assert (long.start_ns, long.length_ns, long.busy_share) == (12_000, 17_000, 0)
    assert (short.start_ns, short.length_ns, short.busy_share) == (10_000, 1000, 0.25)


def test_a_stretch_may_run_on_into_the_next_step():
    b = TraceBuilder()
    for step, at in enumerate((0, 30, 60)):
        b.step(step, at, 30)
    b.launch(0, 1, 0, 20)
    b.launch(31, 1, 45, 15)
    b.launch(60, 1, 60, 30)
    (only,) = b.rows("low_utilisation")
    assert (only.step, only.start_ns, only.length_ns) == ("0", 20_000, 25_000)


def test_a_step_of_few_nanoseconds_has_fewer_chunks():
    b = TraceBuilder()
    b.device(0, 0.004)
    chunks = chunks_of(b)
    assert lengths(chunks) == [1] * 4
    assert times(chunks, "busy_share") == [1] * 4
    assert b.rows("low_utilisation") == []


@examples(20)
@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 40), st.integers(1, 3)), min_size=1, max_size=8))
def test_chunks_sum_to_the_partition(events):
    b = TraceBuilder()
    b.step(1, 10, 37)
    b.step(2, 50, 41)
    for at, dur, stream in events:
        b.device(at, dur, stream=stream)
    found = b.analyze()
    chunks, part = list(found.records("utilisation")), found.partitions[0]
    assert sum(times(chunks, "busy_share")) == part.busy.sum()
    assert sum(times(chunks, "compute_share")) == part.compute.sum()
    assert sum(lengths(chunks)) == found.steps.time.sum()


def test_many_steps_have_fewer_chunks_each(monkeypatch):
    monkeypatch.setattr(utilisation, "_MOST", 20)
    b = TraceBuilder()
    for number in range(4):
        b.step(number, 30 * number, 30)
        b.device(30 * number, 6)
    chunks = chunks_of(b)
    assert [each.chunk for each in chunks] == [1, 2, 3, 4, 5] * 4
    assert "".join(each.step for each in chunks) == "00000111112222233333"
    assert times(chunks, "busy_share") == [6000, 0, 0, 0, 0] * 4
