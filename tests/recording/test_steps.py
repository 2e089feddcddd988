"""Which step of which optimizer ends a step of the loop."""

from __future__ import annotations

import gc

import pytest

from traceanalyze.recording import bootstrap as steps
from traceanalyze.recording import context
from traceanalyze.recording.options import RecordOptions

pytestmark = pytest.mark.usefixtures("needs_torch")


@pytest.fixture
def marked():
    """Marks so far, counted from the first optimizer on."""
    marks = []
    end = steps.mark_steps(lambda: marks.append(1))
    yield marks
    end()


@pytest.fixture
def optimizer():
    def make():
        import torch

        weight = torch.nn.Parameter(torch.ones(2))
        weight.grad = torch.ones(2)
        return torch.optim.SGD([weight])

    return make


def test_every_step_is_one_mark(marked, optimizer):
    loop = optimizer()
    for count in range(1, 4):
        loop.step()
        assert len(marked) == count


def test_of_two_optimizers_the_first_counts(marked, optimizer):
    generator, critic = optimizer(), optimizer()
    for _ in range(3):
        generator.step()
        critic.step()
    assert len(marked) == 3


def test_a_dropped_optimizer_hands_on(marked, optimizer):
    first, second = optimizer(), optimizer()
    first.step()
    second.step()
    del first
    gc.collect()
    second.step()
    second.step()
    assert len(marked) == 3


def test_a_step_kept_from_before_counts_too(marked, optimizer):
    loop = optimizer()
    kept = loop.step
    for _ in range(3):
        kept()
    assert len(marked) == 3


def test_the_step_keeps_its_result_and_its_errors(marked, optimizer):
    loop = optimizer()
    loop.step()
    assert loop.step(lambda: 7) == 7

    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop.step(broken)
    assert len(marked) == 2
    loop.step()
    assert len(marked) == 3


def test_a_scheduler_made_later_does_not_complain(marked, optimizer):
    import torch

    loop = optimizer()
    loop.step()
    schedule = torch.optim.lr_scheduler.StepLR(loop, 1)
    loop.step()
    schedule.step()  # a warning is an error in these tests
    assert len(marked) == 2


def test_after_the_end_nothing_is_marked(optimizer):
    marks = []
    end = steps.mark_steps(lambda: marks.append(1))
    loop = optimizer()
    loop.step()
    end()
    loop.step()
    assert len(marks) == 1


def test_the_snapshot_of_the_first_failed_request_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setattr(context, "dump_snapshot", lambda path: path.write_text("x") > 0)
    recording = context.Recording(tmp_path, RecordOptions())
    recording._out_of_memory()
    recording._out_of_memory()
    assert recording.snapshots == ["snapshot_rank2_oom.pickle"]
    recording.finish()
    assert recording.snapshots == ["snapshot_rank2_oom.pickle", "snapshot_rank2.pickle"]


def test_a_snapshot_that_fails_is_said_and_costs_nothing_else(monkeypatch, tmp_path):
    def failing(_path):
        raise RuntimeError("no room")

    monkeypatch.setattr(context, "dump_snapshot", failing)
    recording = context.Recording(tmp_path, RecordOptions())
    recording.finish()
    assert recording.troubles == ["no snapshot_rank0.pickle: RuntimeError: no room"]
    assert (tmp_path / "run.json").exists()
