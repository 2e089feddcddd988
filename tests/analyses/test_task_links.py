"""What a task of a collective went over is told by its link or its transport, in any case of letters."""

from __future__ import annotations

import pytest

from tests.ascend_builder import AscendBuilder
from traceanalyze.analyses.communication.parts import NETWORK, ON_DEVICE, went_over
from traceanalyze.analyses.context import Context
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
