"""What a task of a collective went over is told by its link or its transport, in any case of letters."""

from __future__ import annotations

from functools import partial

import pytest

from tests.ascend_builder import PID, QUEUE_THREAD, AscendBuilder
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.communication.parts import NETWORK, ON_DEVICE, collective_parts, went_over
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.links import enqueuing_calls
from traceanalyze.analyses.options import Options

PART = (0, "Memcpy", 10.0, 5.0, 1)


@pytest.mark.parametrize(
    ("link", "transport", "network", "on_device"),
    [
        ("ROCE", "RDMA", True, False),
        ("INVALID_TYPE", "RDMA", True, False),
        ("RoCE", "", True, False),
        ("HCCS", "SDMA", False, False),
        ("ON_CHIP", "LOCAL", False, True),
        ("ON_CHIP", "SDMA", False, True),
    ],
)
def test_link_and_transport_tell(link, transport, network, on_device):
    b = AscendBuilder()
    b.collective("hcom_allReduce__1", 0, 20, [PART])
    for event in b.events:
        if event.get("name") == "Memcpy" and "link type" in event.get("args", {}):
            event["args"] |= {"link type": link, "transport type": transport}
    context = Context(b.trace(), Options())
    rows = context.trace.events.fields["part_of"].row.astype("int64")
    assert went_over(context, rows, NETWORK).tolist() == [network]
    assert went_over(context, rows, ON_DEVICE).tolist() == [on_device]


@pytest.mark.parametrize("queue_first", [True, False])
def test_what_runs_inside_an_entry_of_the_queue_was_asked_for_where_it_was_put_in(queue_first):
    """Whatever stands first in the file."""
    b = AscendBuilder()
    put = partial(b.event, "Enqueue", PID, PID, 10, 2, "enqueue", correlation_id=1)
    if not queue_first:
        put()
    b.event("Dequeue@aclnnMul", PID, QUEUE_THREAD, 20, 30, "dequeue", correlation_id=1)
    b.call("Node@launch", 25, 1, tid=QUEUE_THREAD)
    if queue_first:
        put()
    context = Context(b.trace(), Options())
    names = list(context.trace.strings.texts(context.calls.name))
    behind = dict(zip(names, enqueuing_calls(context.trace, context.calls).tolist(), strict=True))
    assert (behind["Node@launch"], behind["Enqueue"]) == (names.index("Enqueue"), -1)


def test_the_longest_wait_of_a_collective_and_the_rank_it_was_for():
    """Also where the collective is the first event of all."""
    b = AscendBuilder()
    parts = [(0, "Notify_Wait", 1, 5, 1), (1, "Notify_Wait", 2, 9, 2), (0, "Memcpy", 12, 5, 1)]
    b.collective("hcom_allReduce__1", 0, 30, parts)
    context = Context(b.trace(), Options())
    found = context.once(collective_parts)
    assert (context.device.row[0], found.recorded.tolist()) == (0, [True])
    assert (found.start.tolist(), found.end.tolist()) == ([12_000], [17_000])
    assert (found.longest_wait.tolist(), found.waited_for.tolist()) == ([9_000], [2])
    (row,) = analyze_context(context).records("collectives")
    assert (row.wait_ns, row.transfer_ns, row.waited_for) == (25_000, 5_000, 2)
