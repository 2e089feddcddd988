"""Modules and Python functions on hand-made traces (definitions §11)."""

import pytest

from tests.builder import HOST, TraceBuilder
from traceanalyze.model.phases import hierarchy
from traceanalyze.model.table import NotMeasured


def modules(b):
    return {row.module: row for row in b.analyze().tables["modules"].records()}


def device(row):
    return row.forward_self_ns, row.forward_total_ns, row.backward_self_ns, row.backward_total_ns


def model(first=1):
    """Net holds two layers; the forward operators of both have a backward operator on thread 2."""
    b = TraceBuilder()
    b.step(1, 0, 1000)
    b.python("nn.Module: Net_0", 10, 80)
    b.python("train.py(7): forward", 11, 78)
    b.python("nn.Module: Linear_0", 20, 20)
    b.op("aten::linear", 22, 10, **{"Sequence number": first})
    b.op("aten::addmm", 24, 6, **{"Sequence number": first})
    b.launch(25, 2, 200, 10)
    b.python("nn.Module: Linear_1", 50, 20)
    b.op("aten::linear", 52, 10, **{"Sequence number": 2})
    b.launch(55, 2, 220, 20)
    b.op("aten::add", 75, 5, **{"Sequence number": 3})
    b.launch(76, 2, 250, 3)
    return b


def backward(b, sequence, at, device_at, dur, **more):
    args = {"Sequence number": sequence, "Fwd thread id": 1}
    b.op("autograd::engine::evaluate_function: AddmmBackward0", at, 20, tid=2, **args)
    b.op("AddmmBackward0", at + 2, 16, tid=2, **args)
    b.op("aten::mm", at + 4, 10, tid=2)
    b.launch(at + 5, 2, device_at, dur, tid=2, **more)


def test_forward_work_belongs_to_the_innermost_module():
    found = modules(model())
    assert {path: device(row)[:2] for path, row in found.items()} == {
        "Net_0": (3_000, 33_000),
        "Net_0/Linear_0": (10_000, 10_000),
        "Net_0/Linear_1": (20_000, 20_000),
    }
    net = found["Net_0"]
    assert (net.module_class, net.calls, net.host_total_ns, net.host_self_ns) == ("Net", 1, 80_000, 40_000)


@pytest.mark.parametrize("first", [0, 1])
def test_backward_work_belongs_to_the_module_of_the_forward_operator(first):
    """Numbers of operators begin with 0."""
    b = model(first)
    backward(b, 2, 300, 400, 40)
    backward(b, first, 330, 450, 30)
    found = modules(b)
    assert {path: device(row)[2:] for path, row in found.items()} == {
        "Net_0": (0, 70_000),
        "Net_0/Linear_0": (30_000, 30_000),
        "Net_0/Linear_1": (40_000, 40_000),
    }


def test_backward_work_of_an_unknown_forward_operator_is_shown():
    b = model()
    backward(b, 77, 300, 400, 40)
    assert device(modules(b)["<backward, module unknown>"]) == (0, 0, 40_000, 40_000)


def test_arrows_tell_which_thread_ran_forward():
    b = model()
    # Another thread uses the same sequence numbers, and most backward operators are its own.
    b.python("nn.Module: Other_0", 500, 50, tid=5)
    b.op("aten::linear", 510, 10, tid=5, **{"Sequence number": 1})
    backward(b, 1, 600, 700, 40)
    b.events += [
        {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": HOST, "tid": 5, "ts": 510},
        {"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": HOST, "tid": 2, "ts": 602, "bp": "e"},
    ]
    assert modules(b)["Other_0"].backward_self_ns == 40_000


def test_equal_modules_at_different_places_are_different():
    b = TraceBuilder()
    b.step(1, 0, 100)
    for at, outer in ((0, "A_0"), (20, "B_0"), (40, "A_0")):
        b.python(f"nn.Module: {outer}", at, 15)
        b.python("nn.Module: Relu_0", at + 2, 5)
    b.op("aten::relu", 3, 3)
    b.launch(4, 1, 60, 5)
    found = modules(b)
    assert {path: row.calls for path, row in found.items()} == {"A_0": 2, "B_0": 1, "A_0/Relu_0": 2, "B_0/Relu_0": 1}


def test_optimizer_work_belongs_to_no_module():
    b = model()
    b.python("nn.Module: Net_0", 800, 50)
    b.annotation("Optimizer.step#SGD.step", 810, 20)
    b.launch(812, 2, 900, 50)
    assert modules(b)["Net_0"].forward_total_ns == 33_000


def test_python_functions_of_an_unidentified_thread_are_those_of_the_only_one():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.event("python_function", "nn.Module: Net_0", 10, 40, pid=0, tid=0)
    b.op("aten::mul", 20, 10)
    b.launch(21, 2, 60, 5)
    assert device(modules(b)["Net_0"])[0] == 5_000


def test_operators_may_name_their_module():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 10, 10, **{"Module Hierarchy": "TOP(Net)::forward.fc1(Linear)::forward"})
    b.launch(11, 2, 60, 5)
    found = modules(b)
    assert {path: (row.module_class, row.calls, device(row)[:2]) for path, row in found.items()} == {
        "TOP": ("Net", None, (0, 5_000)),
        "TOP/fc1": ("Linear", None, (5_000, 5_000)),
    }


def test_annotations_of_layers_stand_in_for_modules():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.annotation("## forward ##", 5, 50)
    b.annotation("## mlp ##", 10, 20)
    b.op("aten::mm", 12, 10)
    b.launch(13, 2, 60, 5)
    assert {path: device(row)[:2] for path, row in modules(b).items()} == {
        "## forward ##": (0, 5_000),
        "## forward ##/## mlp ##": (5_000, 5_000),
    }


def test_hierarchies_as_profilers_write_them():
    assert hierarchy("TOP(Net)::forward.layer1(Sequential)::forward.0(Block)::forward") == (
        ("TOP", "Net"),
        ("layer1", "Sequential"),
        ("0", "Block"),
    )
    assert hierarchy("") == ()


def lines(b):
    return {row.line: row for row in b.analyze().tables["source_lines"].records()}


def test_source_lines_without_and_with_library_code():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.python("train.py(1): main", 0, 100)
    b.python("train.py(9): step", 10, 50)
    b.python("/x/site-packages/torch/nn/modules/linear.py(5): forward", 20, 30)
    b.op("aten::mm", 25, 10)
    b.launch(26, 2, 120, 5)
    b.op("aten::add", 70, 5)
    found = lines(b)
    assert set(found) == {"train.py(1): main", "train.py(9): step"}
    main, step = found["train.py(1): main"], found["train.py(9): step"]
    assert (main.calls, main.host_total_ns, main.host_self_ns, main.with_library_ns) == (1, 100_000, 45_000, 50_000)
    assert (step.calls, step.host_total_ns, step.host_self_ns, step.with_library_ns) == (1, 50_000, 20_000, 50_000)


def test_idle_time_belongs_to_the_innermost_line():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.python("train.py(1): main", 0, 100)
    b.launch(0, 1, 1, 9)
    b.python("train.py(5): prepare", 20, 40)
    b.launch(70, 2, 80, 10)  # idle 10-80, the host prepares until 72
    found = lines(b)
    assert found["train.py(5): prepare"].device_idle_ns == 40_000
    assert found["train.py(1): main"].device_idle_ns == 1_000 + 10_000 + 12_000 + 10_000


def test_without_python_functions_there_are_no_lines():
    b = model()
    b.events = [event for event in b.events if event["cat"] != "python_function"]
    assert b.analyze().tables["source_lines"].absent == NotMeasured("no_python")
    assert b.analyze().tables["modules"].absent == NotMeasured("no_modules")


def classes(b):
    return {row.modules_of: row for row in b.analyze().tables["module_classes"].records()}


def test_modules_of_a_class_are_one_row():
    b = model()
    backward(b, 1, 300, 400, 40)
    backward(b, 2, 350, 450, 30)
    found = classes(b)
    assert {name: device(row) for name, row in found.items()} == {
        "Linear ×2": (30_000, 30_000, 70_000, 70_000),
        "Net": (3_000, 33_000, 0, 70_000),
    }
    assert [(row.module_class, row.modules, row.calls) for row in found.values()] == [("Linear", 2, 2), ("Net", 1, 1)]
    assert {name: row.host_self_ns for name, row in found.items()} == {"Linear ×2": 40_000, "Net": 40_000}


def test_what_is_inside_a_module_of_the_same_class_counts_once():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.python("nn.Module: Sequential_0", 0, 50)
    b.python("nn.Module: Sequential_1", 10, 20)
    b.op("aten::relu", 12, 5)
    b.launch(13, 1, 60, 8)
    (row,) = classes(b).values()
    assert row.modules_of == "Sequential ×2"
    assert device(row) == (8_000, 8_000, 0, 0)
    assert (row.host_self_ns, row.host_total_ns) == (50_000, 50_000)


def test_unknown_backward_work_and_what_lacks_modules_say_so_by_class_too():
    b = model()
    backward(b, 77, 300, 400, 40)
    assert device(classes(b)["<backward, module unknown>"]) == (0, 0, 40_000, 40_000)
    without = TraceBuilder()
    without.step(1, 0, 100)
    without.device(10, 5)
    assert without.analyze().tables["module_classes"].absent == NotMeasured("no_modules")


def test_kernels_of_a_graph_that_name_their_modules_count_there():
    """torch ≥ 2.12: the host only launches the graph; `module_fqn`, `annotation` or `name` stands on the kernels."""
    b = TraceBuilder()
    b.step(1, 0, 1000)
    b.api("cudaGraphLaunch", 10, 5, correlation=7)
    for at, (dur, args) in enumerate(
        [
            (10, {"module_fqn": "layers.0.attention.wq"}),
            (20, {"module_fqn": "layers.0.norm"}),
            (30, {"module_fqn": "layers.1.norm"}),
            (40, {"annotation": "layers.1.norm"}),
            (50, {}),
            (60, {"annotation": "two words"}),
            # Scopes of `mark_kernels` inside each other: the one that is a module counts, wherever it stands.
            (70, {"name": "warmup", "module_fqn": "layers.0.norm"}),
            (80, {"module_fqn": "layers.0.norm", "name": "warmup"}),
            (90, {"name": "layers.2"}),
        ]
    ):
        b.device(100 * (at + 1), dur, correlation=7)
        b.events[-1]["args"] |= {"graph node id": at + 1, **args}
    found = modules(b)
    assert {path: device(row)[:2] for path, row in found.items() if row.forward_total_ns} == {
        "layers": (0, 340_000),
        "layers/0": (0, 180_000),
        "layers/0/attention": (0, 10_000),
        "layers/0/attention/wq": (10_000, 10_000),
        "layers/0/norm": (170_000, 170_000),
        "layers/1": (0, 70_000),
        "layers/1/norm": (70_000, 70_000),
        "layers/2": (90_000, 90_000),
    }
    assert {row.calls for row in found.values()} == {None}
    classes = {row.module_class: (row.modules, row.forward_self_ns) for row in b.rows("module_classes")}
    assert classes["layers.*.norm"] == (2, 240_000)
    assert classes["layers.*.attention.wq"] == (1, 10_000)


def test_modules_of_kernels_come_to_those_of_the_host():
    b = model()
    b.api("cudaGraphLaunch", 85, 2, correlation=900)
    b.device(400, 7, correlation=900, **{"graph node id": 3, "module_fqn": "head"})
    found = modules(b)
    assert device(found["head"])[:2] == (7_000, 7_000)
    assert device(found["Net_0"])[:2] == (3_000, 33_000)
