"""What a replayed step waits for, and what it consists of: answers on paper, and what holds for any recording."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from tests.ranks.simulated import traces, workload
from tests.simulate.workload import MS, Fault
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.model.vocabulary import BUSY_PARTS
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.summary import summarize
from traceanalyze.replay.graph import program
from traceanalyze.replay.limits import path_time, split_then
from traceanalyze.replay.parts import PARTS, part
from traceanalyze.replay.ranks import joint, run_together
from traceanalyze.replay.replay import Change, run_again

NS = 1000
"""Answers are in µs."""


def in_us(times):
    return {key: time / NS for key, time in times.items() if time}


def path_of(builder, change=None):
    context = Context(builder.trace(), Options())
    return in_us(path_time(context, run_again(context.once(program), change or Change())))


def loading(kind):
    """A step of 1000 µs: 600 for a batch, 100 until the launch, a kernel from 705 on, a copy from 907 on."""
    b = TraceBuilder()
    b.step(1, 0, 720)
    b.annotation(f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__", 0, 600)
    b.launch(700, 5, 705, 200)
    b.copy(706, 4, 907, 93)
    return b


def test_the_path_goes_from_the_loader_over_the_host_to_the_device():
    """From 600 on the host, until the kernel begins; 2 between the kernel and the copy."""
    assert path_of(loading("SingleProcess")) == {
        "data_loading": 600,
        "host": 105,
        "compute": 200,
        "between": 2,
        "memory_ops": 93,
    }


def test_what_comes_late_by_itself_is_waited_for():
    """A batch of workers: the thread needs 0.6 ms to fetch what is there, 3.4 ms it waits."""
    b = TraceBuilder()
    b.step(1, 0, 4100)
    b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 4000)
    b.launch(4050, 5, 4060, 500)
    assert path_of(b) == {"data_loading": 4000, "host": 60, "compute": 500}


def test_a_sync_is_the_device():
    """The host waits for the first kernel until 410, then launches the second one."""
    b = TraceBuilder()
    b.step(1, 0, 450)
    b.launch(0, 5, 10, 390)
    b.api("cudaDeviceSynchronize", 20, 390)
    b.launch(420, 5, 430, 100)
    assert path_of(b) == {"host": 10 + 30, "compute": 390 + 100}


def test_without_the_loader_the_path_is_shorter():
    context = Context(loading("SingleProcess").trace(), Options())
    change = part(context, "data_loading")
    gone = change.threads[context.step_track]
    again = run_again(context.once(program), change)
    assert in_us(path_time(context, again, gone)) == {"host": 105, "compute": 200, "between": 2, "memory_ops": 93}
    assert in_us(split_then(context, again)) == {"compute": 200, "memory_ops": 93, "idle": 107}


@pytest.mark.parametrize("name", [None, *PARTS])
def test_path_and_parts_are_the_step(name):
    """Whatever is taken out of a simulated program."""
    context = Context(traces(workload())[0], Options())
    again = run_again(context.once(program), part(context, name) if name else Change())
    counted = context.once(program).counted
    step = int((again.end - again.start)[counted].sum())
    assert sum(path_time(context, again).values()) == pytest.approx(step, abs=1)
    assert sum(split_then(context, again).values()) == step


def test_now_the_parts_are_those_of_the_report():
    context = Context(traces(workload())[0], Options())
    again = run_again(context.once(program), Change())
    split = analyze_context(context).tables["split"]
    known = dict(zip(split.column("part"), split.column("sum_ns"), strict=True))
    found = split_then(context, again)
    assert {key: found[key] for key in BUSY_PARTS} == {key: known[key] for key in BUSY_PARTS}


def test_faster_collectives_move_data_faster_and_wait_as_long():
    slow = workload(Fault("late_host", 3.0), ranks=2)
    contexts = [Context(trace, Options()) for trace in traces(slow)]
    cluster = compare_ranks([summarize(one, analyze_context(one)) for one in contexts])
    run = joint([one.once(program) for one in contexts], cluster)
    changes = {rank: part(context, "communication", 0.5) for rank, context in enumerate(contexts)}
    for rank, again in enumerate(run_together(run, changes)):
        own = run.meetings.rank == rank
        event, known = run.meetings.event[own], run.programs[rank]
        transfer = (known.end - known.start)[event] - run.meetings.wait[own]
        assert run.meetings.wait[own].max() > MS or rank == 1
        assert again.lasted[event] - again.waited[event] == pytest.approx(transfer / 2, abs=2)


def test_of_ranks_the_one_that_is_waited_for_waits_least():
    slow = workload(Fault("late_host", 3.0), ranks=3)
    contexts = [Context(trace, Options()) for trace in traces(slow)]
    cluster = compare_ranks([summarize(one, analyze_context(one)) for one in contexts])
    run = joint([one.once(program) for one in contexts], cluster)
    waiting = {}
    for like_others in ((), (2,)):
        again = run_together(run, {}, like_others)
        paths = [path_time(*each) for each in zip(contexts, again, strict=True)]
        for path, one, context in zip(paths, again, contexts, strict=True):
            counted = context.once(program).counted
            assert sum(path.values()) == pytest.approx(int((one.end - one.start)[counted].sum()), rel=1e-3)
        waiting[like_others] = [path["waiting"] for path in paths]
    assert min(waiting[()][:2]) > 10 * waiting[()][2]
    assert max(waiting[2,][:2]) < 0.2 * min(waiting[()][:2])
