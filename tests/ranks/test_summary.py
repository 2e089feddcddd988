"""What the comparison needs of one rank, from hand-made traces; answers on paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.model.collectives import TYPES
from traceanalyze.pipeline import parts
from traceanalyze.pipeline.recordings import rank_summary
from traceanalyze.ranks.results import Group
from traceanalyze.ranks.summary import LEAST_RUNS, MOST, summarize
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.sources import expand

SHAPES = {"Input Dims": [[2, 3], [3, 4]]}


def summary(b, options=None):
    context = Context(b.trace(), options or Options())
    return summarize(context, analyze_context(context))


def collective(b, at, start, length, kind, stream, **more):
    """A collective of 1000 floats that rank 1 of two asks for at a time of the host."""
    told = {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Group size": 2} | more
    told = {name: value for name, value in told.items() if value is not None}
    numbers = {"In msg nelems": 1000, "Out msg nelems": 2000, "dtype": "Float"}
    b.op(f"nccl:{kind}", at, 20)
    b.launch(
        at + 1, 2, start, length, name=f"nccl_{kind}", stream=stream, **{"Collective name": kind}, **numbers, **told
    )


def test_without_a_device_a_rank_tells_how_long_its_host_waits_for_others():
    b = TraceBuilder()
    for step in range(2):
        b.step(step, 1000 * step, 1000)
        b.op("aten::mm", 1000 * step + 10, 100)
        b.op("c10d::barrier", 1000 * step + 200, 50 + step)
    assert summary(b).parts["peer_wait"].tolist() == [50_000, 51_000]


def training(steps=3, **more):
    """Steps of 1000 µs: a matrix product, two collectives of which one runs on while a kernel hides it, a copy."""
    b = TraceBuilder()
    b.header = {
        "distributedInfo": {"rank": 1, "world_size": 2, "backend": "nccl"},
        "deviceProperties": [{"id": 0, "name": "Example GPU"}],
        "with_stack": 0,
    }
    for step in range(steps):
        at = 1000 * step
        b.step(step + 1, at, 1000)
        b.op("aten::mm", at + 10, 10, **SHAPES)
        b.launch(at + 12, 2, at + 20, 200 + step, name="gemm", grid=[4, 1, 1])
        collective(b, at + 30, at + 650, 100, "allgather", 13, **more)
        collective(b, at + 60, at + 250, 400, "allreduce", 14, **more)
        b.op("aten::add", at + 82, 5, **SHAPES)
        b.launch(at + 83, 2, at + 600, 60, name="cover", grid=[4, 1, 1])
        b.copy(at + 90, 5, at + 800, 50)
    return b


def test_steps_parts_and_names():
    found = summary(training())
    assert (found.rank, found.label, found.world_size, found.device) == (1, "1", 2, "Example GPU")
    assert (found.steps, found.marked) == (("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"), True)
    assert found.counted.tolist() == [True] * 3
    assert found.step_time.tolist() == [1_000_000] * 3
    parts = {key: found.parts[key].tolist() for key in ("compute", "communication", "memory_ops")}
    # From 250 to 750 without the 60 that compute hides.
    assert parts == {"compute": [260_000, 261_000, 262_000], "communication": [440_000] * 3, "memory_ops": [50_000] * 3}
    idle = [key for key in found.parts if key not in {*parts, "gc", "pause"}]
    assert sum(found.parts[key] for key in idle).tolist() == [250_000, 249_000, 248_000]
    assert found.parts["gc"].tolist() == [0, 0, 0]
    assert found.recorded == {"with_stack": "off", "record_shapes": "on", "profile_memory": "off"}
    assert (found.host_computes, found.links, found.networked) == (False, (), None)


def test_recorded_pauses_are_a_part_of_their_step():
    b = training()
    b.annotation("gc.collect", 1_900, 1_050)
    found = summary(b)
    # Idle in it: the last 100 of step 2, in which it begins, and of step 3 before, between and after the work 198.
    assert found.parts["gc"].tolist() == [0, 298_000, 0]


def test_collectives_are_in_the_order_of_the_program():
    found = summary(training())
    own = found.collectives
    assert [TYPES[kind] for kind in own.kind] == ["all_gather", "all_reduce"] * 3
    assert own.step.tolist() == [0, 0, 1, 1, 2, 2]
    assert own.start.tolist()[:4] == [650_000, 250_000, 1_650_000, 1_250_000]
    assert own.end.tolist()[:4] == [750_000, 650_000, 1_750_000, 1_650_000]
    assert own.exposed.tolist() == [90_000, 350_000] * 3
    assert [each.itemsize for each in (own.group, own.kind, own.step, own.exposed, own.moved)] == [1, 1, 1, 4, 1]
    assert own.bytes.tolist() == [8000, 4000] * 3
    assert own.group.tolist() == [0] * 6
    assert own.moved.tolist() == own.waited_for.tolist() == [-1] * 6
    assert found.groups == (Group("0-1", (0, 1), 2),)


def test_only_the_steps_that_count_have_collectives_of_their_own():
    found = summary(training(), Options(steps=lambda steps: steps.start == 1_000_000))
    assert found.steps == ("ProfilerStep#2",)
    assert found.collectives.step.tolist() == [-1, -1, 0, 0, -1, -1]


def test_without_markers_the_whole_trace_is_the_step():
    b = training()
    b.events = [event for event in b.events if not event["name"].startswith("ProfilerStep")]
    found = summary(b)
    assert (found.marked, found.collectives.step.tolist()) == (False, [0] * 6)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"Process Group Ranks": "[0, 1, 2, 3]", "Group size": 4}, Group("0-3", range(4), 4)),
        ({"Process Group Ranks": "[1, 3]", "Group size": 2}, Group("1, 3", (1, 3), 2)),
        ({"Process Group Ranks": None, "Process Group Name": "tp", "Group size": 8}, Group("tp", (), 8)),
    ],
)
def test_groups_by_their_ranks_or_their_name(told, expected):
    assert summary(training(**told)).groups == (expected,)


def test_usual_times_of_kernels_that_run_alone():
    found = summary(training()).kernels
    assert list(zip(found.names, found.runs, found.time, found.median, strict=True)) == [("gemm", 3, 603_000, 201_000)]
    assert summary(training(steps=LEAST_RUNS - 1)).kernels.names == ()


def kernels(*times, name="k", **more):
    """Kernels of µs, each launched by an operator."""
    b = TraceBuilder()
    b.step(1, 0, 100_000)
    at = 0
    for time in times:
        b.op("aten::mm", at, 10, **more)
        b.launch(at + 1, 2, at + 20, time, name=name, grid=[4, 1, 1])
        at += 30 + time
    return b


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((5, 5, 5), (3, 15_000, 5_000)),
        ((5, 5, 4.999), None),
        ((5, 5, 4.999, 7), (3, 17_000, 5_000)),
        ((9, 5, 7, 6), (4, 27_000, 7_000)),
    ],
)
def test_a_usual_time_needs_three_runs_of_five_microseconds(times, expected):
    found = summary(kernels(*times)).kernels
    told = list(zip(found.runs, found.time, found.median, strict=True))
    assert told == ([expected] if expected else [])


def test_shapes_and_grids_tell_what_is_the_same_work():
    b = TraceBuilder()
    b.step(1, 0, 10_000)
    for at in range(0, 3000, 500):
        b.op("aten::mm", at, 10, **{"Input Dims": [[at % 1000, 3]]})
        b.launch(at + 1, 2, at + 20, 100, name="k", grid=[4, 1, 1])
        b.launch(at + 5, 2, at + 200, 50 + at / 100, name="k", grid=[8, 1, 1])
        b.device(at + 450, 20, name="of nothing")
    found = summary(b).kernels
    assert list(zip(found.names, found.what, found.runs, found.time, strict=True)) == [
        ("k", "[[0, 3]] [4, 1, 1]", 3, 300_000),
        ("k", "[[500, 3]] [4, 1, 1]", 3, 300_000),
        ("k", "[[500, 3]] [8, 1, 1]", 3, 195_000),
        ("k", "[[0, 3]] [8, 1, 1]", 3, 180_000),
    ]


def test_the_longest_kernels_are_kept():
    b = TraceBuilder()
    b.step(1, 0, 100_000)
    for number in range(MOST + 1):
        for run in range(3):
            at = 100 * (3 * number + run)
            b.launch(at, 2, at + 10, 6 + number / 10, name=f"k{number}", grid=[4, 1, 1])
    found = summary(b).kernels
    assert found.names == tuple(f"k{number}" for number in range(MOST, 0, -1))


SAMPLES = Path(__file__).parents[2] / "sample_traces"
SHARED = ["kineto/param/dlrm_8rank", "pairs/torchrec_ladder/sst_long_a2a_optimizer_3", "kineto/tracelens/mi300"]


def summed_up(source, *, brief):
    trace = read_trace(source, brief=brief)
    found = rank_summary(trace, Options())
    told = found.analysis._replace(trace=None)
    return trace, parts.dumps((found.compared, told, trace.read, trace.origin))


def same_in_brief(folder):
    for source in expand([str(folder)]).sources:
        (whole, expected), (brief, found) = (summed_up(source, brief=each) for each in (False, True))
        assert found == expected
        if whole.origin.format != "ascend":
            assert brief.events.fields.keys() < whole.events.fields.keys()


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*pu_*")))
def test_a_summary_misses_nothing_that_is_not_read_for_it(name):
    same_in_brief(SAMPLES / name)


@pytest.mark.parametrize("name", SHARED)
def test_nor_does_that_of_a_public_trace(name, shared_traces):
    same_in_brief(shared_traces / name)
