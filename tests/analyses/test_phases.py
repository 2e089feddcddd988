"""Phases of a step on hand-made traces (definitions §10)."""

import pytest

from tests.builder import HOST, TraceBuilder
from traceanalyze.model.vocabulary import Phase


def phases(b):
    found = b.analyze()
    rows = {row.phase: ([], [], row.device_events) for row in found.records("phases")}
    for row in found.records("step_phases"):
        device, host, _ = rows[row.phase]
        device.append(row.device_ns)
        host.append(row.host_ns)
    return {Phase[name.removeprefix("phase_").upper()]: row for name, row in rows.items()}


def around(kind, name, **args):
    """A step with one kernel of 10 µs, launched by `aten::x` inside an event of 20 µs."""
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.event(kind, name, 10, 20, **args)
    b.op("aten::x", 15, 10)
    b.launch(16, 2, 50, 10)
    return b


@pytest.mark.parametrize(
    ("kind", "name", "phase"),
    [
        ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", Phase.DATA_LOADING),
        ("user_annotation", "Optimizer.step#SGD.step", Phase.OPTIMIZER),
        ("cpu_op", "Optimizer.step#SGD.step", Phase.OPTIMIZER),
        ("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", Phase.BACKWARD),
        ("cpu_op", "torch::autograd::AccumulateGrad", Phase.BACKWARD),
        ("cpu_op", "CudnnConvolutionBackward", Phase.BACKWARD),
        ("cpu_op", "MulBackward0", Phase.BACKWARD),
        ("cpu_op", "CompiledFunctionBackward", Phase.BACKWARD),
        ("python_function", "nn.Module: Linear_0", Phase.FORWARD),
        ("user_annotation", "DistributedDataParallel.forward", Phase.FORWARD),
        ("cpu_op", "DistributedDataParallel.forward", Phase.FORWARD),
        ("cpu_op", "aten::threshold_backward", Phase.OTHER),
        ("user_annotation", "my range", Phase.OTHER),
    ],
)
def test_the_name_around_decides(kind, name, phase):
    assert phases(around(kind, name))[phase][0] == [10_000]


def test_an_operator_that_autograd_recorded_is_forward_with_all_inside():
    found = phases(around("cpu_op", "aten::linear", **{"Sequence number": 5}))
    assert found == {Phase.FORWARD: ([10_000], [20_000], 1)}


def test_the_first_rule_wins():
    b = around("user_annotation", "Optimizer.step#SGD.step")
    b.op("MulBackward0", 12, 16, **{"Sequence number": 5})
    assert set(phases(b)) == {Phase.OPTIMIZER}


def test_zero_grad_is_part_of_the_optimizer():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.annotation("Optimizer.zero_grad#SGD.zero_grad", 10, 5)
    b.launch(11, 2, 20, 10)
    b.annotation("Optimizer.step#SGD.step", 30, 10)
    b.launch(31, 2, 50, 20)
    assert phases(b) == {
        Phase.OPTIMIZER: ([30_000], [15_000], 2),
        Phase.ZERO_GRAD: ([10_000], [5_000], 1),
    }


def test_the_target_of_an_arrow_from_forward_is_backward():
    b = around("cpu_op", "MyNode")
    b.events += [
        {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": HOST, "tid": 1, "ts": 1},
        {"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": HOST, "tid": 1, "ts": 10, "bp": "e"},
    ]
    assert phases(b)[Phase.BACKWARD][0] == [10_000]


def test_an_optimizer_without_annotation_is_known_by_its_operators_and_frames():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.python("/x/site-packages/torch/optim/adamw.py(190): step", 10, 50)
    b.op("aten::_foreach_add_", 20, 10)
    b.launch(21, 2, 100, 10)
    b.op("aten::_foreach_norm", 80, 10)  # gradient clipping, outside of the optimizer
    b.launch(81, 2, 120, 7)
    found = phases(b)
    assert (found[Phase.OPTIMIZER][0], found[Phase.OTHER][0]) == ([10_000], [7_000])


def test_recomputation_is_part_of_backward_and_its_own_backward_is_not_recomputation():
    b = TraceBuilder()
    b.step(1, 0, 300)
    b.op("autograd::engine::evaluate_function: CheckpointFunctionBackward", 10, 100)
    b.op("CheckpointFunctionBackward", 15, 90)
    b.op("aten::mm", 20, 10, **{"Sequence number": 9})
    b.launch(21, 2, 120, 10)
    b.op("autograd::engine::evaluate_function: MmBackward0", 50, 20)
    b.launch(51, 2, 140, 30)
    found = phases(b)
    assert (found[Phase.BACKWARD][0], found[Phase.RECOMPUTE][0]) == ([40_000], [10_000])
    assert Phase.FORWARD not in found


def test_a_recompute_frame_is_recomputation():
    found = phases(around("python_function", "torch/utils/checkpoint.py(1100): recompute_fn"))
    assert (found[Phase.BACKWARD][0], found[Phase.RECOMPUTE][0]) == ([10_000], [10_000])


def test_work_without_launch_record_is_of_no_known_phase():
    b = around("cpu_op", "aten::linear", **{"Sequence number": 5})
    b.device(70, 5)
    assert phases(b)[Phase.UNKNOWN] == ([5_000], [0], 1)


def test_overlapping_work_of_a_phase_counts_once_and_steps_are_apart():
    b = TraceBuilder()
    for number, at in ((1, 0), (2, 100)):
        b.step(number, at, 100)
        b.op("MulBackward0", at + 10, 20)
        b.launch(at + 11, 2, at + 40, 20)
        b.launch(at + 15, 2, at + 50, 20, stream=9)
    assert phases(b)[Phase.BACKWARD] == ([30_000, 30_000], [20_000, 20_000], 4)


def test_host_time_is_that_of_all_threads_of_the_process():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("MulBackward0", 10, 20, tid=2)
    b.op("MulBackward0", 20, 30, tid=3)
    b.op("MulBackward0", 20, 30, tid=3)
    b.launch(11, 2, 60, 5, tid=2)
    assert phases(b)[Phase.BACKWARD][1] == [40_000]


@pytest.mark.parametrize(
    ("second", "expected"),
    [("MulBackward0", ["gemm bwd f32 64×32 nn", "conv wgrad f32", "nccl all_reduce f32"]), ("aten::mm", None)],
)
def test_labels_say_bwd_of_compute_that_the_backward_pass_alone_launches(second, expected):
    names = [
        "volta_sgemm_64x32_nn",
        "void cudnn::wgrad_alg0_engine<float>(int)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL()",
    ]
    b = TraceBuilder()
    b.step(1, 0, 200)
    for at, (op, name) in enumerate([("AddmmBackward0", name) for name in names] + [(second, names[0])]):
        b.op(op, 10 * at, 8)
        b.launch(10 * at + 1, 2, 40 + 10 * at, 9 - at, name=name)
    column = b.table("kernels")["name"]
    labels = [column.labels[name] for name in names]
    assert labels == (expected or ["gemm f32 64×32 nn", "conv wgrad f32", "nccl all_reduce f32"])
