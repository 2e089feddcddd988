from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from traceanalyze.model.table import NotMeasured

US = 1_000


def paths(trace):
    table = trace.analyze().tables["call_paths"]
    assert table.absent is None
    return {row.call_path: row for row in table.records()}


def numbers(row):
    return row.calls, row.host_self_ns, row.host_total_ns, row.device_self_ns, row.device_total_ns, row.launched


def model():
    """Two layers of one operator each with another inside; one kernel by the inner, one by the outer; µs."""
    trace = TraceBuilder()
    trace.step(1, 0, 1000)
    trace.python("nn.Module: Net_0", 0, 500)
    trace.python("train.py(3): forward", 5, 400)
    for at, layer in ((10, "Linear_0"), (210, "Linear_1")):
        trace.python(f"nn.Module: {layer}", at, 100)
        trace.op("aten::linear", at + 10, 80)
        trace.op("aten::mm", at + 20, 40)
        trace.launch(at + 30, 5, at + 40, 30)
        trace.launch(at + 65, 5, at + 75, 7)
    trace.op("aten::mm", 600, 40)
    trace.launch(610, 5, 650, 11)
    trace.launch(700, 5, 750, 13)
    trace.device(800, 17)
    return trace


def test_every_path_by_modules_and_operators():
    found = paths(model())
    inner = found["Net_0;Linear_1;aten::linear;aten::mm"]
    assert numbers(inner) == (1, 40 * US, 40 * US, 30 * US, 30 * US, 1)
    assert numbers(found["Net_0;Linear_0;aten::linear"]) == (1, 40 * US, 80 * US, 7 * US, 37 * US, 1)
    assert numbers(found["Net_0"]) == (1, 300 * US, 500 * US, 0, 74 * US, 0)
    assert numbers(found["aten::mm"]) == (1, 40 * US, 40 * US, 11 * US, 11 * US, 1)
    assert (found["<outside operators>"].device_self_ns, found["<unlinked>"].device_self_ns) == (13 * US, 17 * US)
    assert sum(row.device_self_ns for row in found.values()) == (2 * 37 + 11 + 13 + 17) * US


def test_equal_paths_of_threads_are_one():
    trace = model()
    trace.op("aten::mm", 100, 30, tid=2)
    trace.launch(110, 5, 900, 19, tid=2, stream=9)
    assert numbers(paths(trace)["aten::mm"]) == (2, 70 * US, 70 * US, 30 * US, 30 * US, 2)


def test_an_operator_inside_itself_is_a_path_of_its_own():
    trace = TraceBuilder()
    trace.step(1, 0, 100)
    trace.op("aten::to", 0, 50)
    trace.op("aten::to", 10, 20)
    trace.launch(15, 2, 20, 5)
    found = paths(trace)
    assert found["aten::to"].host_self_ns + found["aten::to;aten::to"].host_self_ns == 50 * US
    assert found["aten::to"].device_total_ns == found["aten::to;aten::to"].device_self_ns == 5 * US


def test_semicolons_in_names_do_not_split_them():
    trace = TraceBuilder()
    trace.step(1, 0, 100)
    trace.op("a;b", 0, 50)
    assert list(paths(trace)) == ["a,b"]


def test_another_process_is_kept_apart():
    trace = model()
    trace.event("cpu_op", "aten::add", 0, 50, pid=200, tid=1)
    trace.event("cuda_runtime", "cudaLaunchKernel", 10, 5, pid=200, tid=1, correlation=9000)
    trace.device(20, 3, correlation=9000, stream=9)
    found = paths(trace)
    assert "aten::add" not in found
    assert found["<other processes>"].device_self_ns == 3 * US


def test_modules_of_an_unidentified_thread_are_those_of_the_step():
    trace = model()
    for event in trace.events:
        if event["cat"] == "python_function":
            event["pid"] = event["tid"] = 0
    assert paths(trace) == paths(model())


def test_calls_outside_of_the_steps_do_not_count():
    trace = model()
    trace.op("aten::late", 5000, 40)
    assert "aten::late" not in paths(trace)


def test_nothing_to_walk():
    trace = TraceBuilder()
    trace.event("unknown", "x", 0, 10)
    assert trace.analyze().tables["call_paths"].absent == NotMeasured("no_host_ops")
    trace.device(0, 10)
    assert trace.analyze().tables["call_paths"].absent == NotMeasured("no_host_ops")


REAL = [
    "hta/trace_diff/test/test",
    "hta/trace_diff/control/control",
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005",
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005",
    "tracelens/h100/gaunernst_bert-small-uncased__1016001",
    "tracelens/mi300/gaunernst_bert-small-uncased__1016001",
    "kineto_tb/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace",
]


@pytest.mark.parametrize("file", REAL)
def test_device_time_of_real_traces_is_all_there(shared_traces, file):
    from traceanalyze import analyze

    found = analyze(shared_traces / "kineto" / f"{file}.json.gz").analyses[0]
    rows = list(found.records("call_paths"))
    whole = sum(row.device_self_ns for row in found.records("operators"))
    assert sum(row.device_self_ns for row in rows) == whole
    assert min(row.host_self_ns for row in rows if isinstance(row.host_self_ns, int)) >= 0
    roots = [row for row in rows if ";" not in row.call_path]
    assert sum(row.device_total_ns for row in roots) == whole
    # Only operators have rows of their own in the operator table, so these agree name by name.
    operators = {
        row.op: row.calls if isinstance(row.calls, int) else 0
        for row in found.records("operators")
        if not row.op.startswith("<")
    }
    by_name: dict[str, int] = {}
    for row in rows:
        name = row.call_path.rpartition(";")[2]
        by_name[name] = by_name.get(name, 0) + (row.calls if isinstance(row.calls, int) else 0)
    assert {name: by_name.get(name.replace(";", ",")) for name in operators} == operators
