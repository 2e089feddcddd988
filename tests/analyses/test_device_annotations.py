"""User annotations on the device, on hand-made traces."""

from tests.builder import TraceBuilder
from traceanalyze.model.table import NotMeasured


def test_annotations_by_name():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.device(10, 5)
    for name, at, dur in (("forward", 10, 30), ("forward", 60, 10), ("loss", 45, 5), ("outside", 300, 5)):
        b.event("gpu_user_annotation", name, at, dur, pid=0, tid=7)
    found = [(row.name, row.count, row.device_time_ns, row.mean_event_ns) for row in b.rows("device_annotations")]
    assert found == [("forward", 2, 40_000, 20_000), ("loss", 1, 5_000, 5_000)]


def test_without_annotations_there_is_no_table():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.device(10, 5)
    assert b.table("device_annotations").absent == NotMeasured("no_device_annotations")
