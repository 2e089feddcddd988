"""Tables of device use over time, of recurring kernels and of memory over time."""

from tests.builder import TraceBuilder
from traceanalyze.model.table import NotMeasured
from traceanalyze.report.contents import build_report


def tables(b):
    return build_report("run", [b.analyze()], version="0").tables


def record(table, index=0):
    return dict(zip((column.key for column in table.columns), table.rows[index], strict=True))


def test_chunks_have_shares_and_their_place_in_the_step():
    b = TraceBuilder()
    b.step(4, 0, 30)
    b.step(5, 30, 30)
    b.launch(0, 1, 0, 30)
    b.launch(30, 1, 30, 0.5)
    b.launch(31, 1, 31, 29)
    table = tables(b)["utilisation"]
    assert len(table.rows) == 60
    assert record(table, 30) == {
        "step": "5",
        "at_ns": 0,
        "start_ns": 30_000,
        "chunk": 1,
        "length_ns": 1000,
        "busy_share": 0.5,
        "compute_share": 0.5,
        "communication_share": 0.0,
    }
    assert record(table, 31)["at_ns"] == 1000


def test_stretches_with_little_use():
    b = TraceBuilder()
    b.step(4, 0, 30)
    b.launch(0, 1, 0, 20.25)
    b.launch(1, 1, 22, 8)
    table = tables(b)["low_utilisation"]
    assert table.rows == (("4", 20_000, 20_000, 2000, 0.125),)


def test_sequences_show_plain_names_first():
    b = TraceBuilder()
    b.step(1, 0, 100)
    names = ("void at::native::(anonymous namespace)::softmax<float, 4>(int)", "triton_poi_fused_add_and_a_long_tail")
    for at in (0, 30):
        for place, name in enumerate(names):
            b.device(at + 10 * place, 5, name=name)
        b.device(at + 20, 5, name=f"<{at}>")
    assert record(tables(b)["kernel_sequences"]) == {
        "sequence": "softmax f32 → triton_poi_fused_add_and_a_long…",
        "kernel_names": " → ".join(names),
        "kernels_each": 2,
        "count": 2,
        "fewer_launches": 2,
        "device_time_ns": 20_000,
        "share": 0.2,
        "between_ns": 10_000,
        "mean_kernel_ns": 5000,
        "all_short": True,
    }


def test_memory_over_time():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 5)
    b.memory(20, 7, allocated=70, reserved=100)
    b.memory(30, -5, kind=0, device=-1)
    unknown = NotMeasured("no_memory_totals")
    assert tables(b)["memory_curve"].rows == (
        ("memory_of_device", 0, 20_000, 70, 100, False),
        ("memory_of_host", None, 30_000, -5, unknown, True),
    )
    b.events = [event for event in b.events if event["name"] != "[memory]"]
    assert tables(b)["memory_curve"].rows == NotMeasured("no_memory_records")
