"""When the workers of a loader have the batches that the loop fetches."""

from tests.builder import TraceBuilder
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.replay.host import fetches

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def ready(*calls):
    """Of calls that begin at some ms and take some: when each batch is ready, in ms."""
    b = TraceBuilder()
    for number, (at, length) in enumerate(calls):
        b.step(number, at * 1000, 10_000)
        b.annotation(LOADER, at * 1000, length * 1000)
        b.op("aten::mm", at * 1000 + length * 1000 + 10, 20)
    context = Context(b.trace(), Options())
    begin = context.trace.events.ts.min()
    return ((context.once(fetches).ready - begin) / 1e6).round(3).tolist()


def test_a_call_that_waited_tells_when():
    assert ready((0, 4), (10, 4)) == [4, 14]


def test_half_a_millisecond_more_than_the_shortest_call_is_waiting():
    """Fetching what is ready takes 20 µs here, and 500 µs there: what takes 600 waits in the one recording only."""
    waited = ((6, 0.6), (12, 0.6), (18, 0.6))
    assert ready((0, 0.02), *waited) == [6.6, 12.6, 18.6]
    assert ready((0, 0.5), *waited) == []


def test_between_two_waits_batches_are_made_one_after_the_other():
    """Batches every 9 ms: 4, 13, 22, 31, 40; the one that is fetched at 30 ms was waited for by nobody."""
    assert ready((0, 4), (10, 3), (20, 2), (35, 0.1), (37, 3)) == [4, 13, 22, 31, 40]


def test_after_the_last_wait_they_are_as_fast():
    assert ready((0, 4), (10, 3), (20, 2), (33, 0.1)) == [4, 13, 22, 31]


def test_no_batch_is_ready_after_it_was_fetched():
    assert ready((0, 4), (10, 3), (20, 2), (25, 0.1)) == [4, 13, 22, 25.1]


def test_a_wait_by_itself_begins_when_the_loop_comes():
    """As workers that start anew do: it moves with the loop."""
    assert ready((0, 0.1), (10, 0.1), (20, 30), (60, 0.1), (70, 0.1)) == []
