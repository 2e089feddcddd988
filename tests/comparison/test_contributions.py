"""Reasons for a difference: rows that sum to their part, named so that the same work meets on both sides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.builder import TraceBuilder
from tests.comparison.calls import Program
from tests.comparison.make import reason_rows, side_from, training
from traceanalyze.comparison.attribution import parts
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.comparison.noise import half_width
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.reasons import Reason, causes_table, chance_of_parts, reasons
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.table import Word

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


rows = reason_rows


def causes(base, candidate):
    """Rows of the table, which has only reasons that differ."""
    found = reasons(base, candidate, CompareOptions())
    return list(causes_table(found, PerStep.of(base.info, candidate.info)).records())


def told(found, part):
    """Rows of a part: kind, name, µs and number of both sides."""
    return [
        (row.what, row.name, (row.base / 1000, row.candidate / 1000), (row.base_count, row.candidate_count))
        for row in found
        if row.part == part
    ]


def test_largest_change_per_step_comes_first():
    base, candidate = side_from(training(wait=40)), side_from(training(kernel=50, steps=3))
    found = rows(base, candidate)
    assert told(found, "data_loading") == [("data_loading", "DataLoader", (80.0, 0.0), (2, 0))]
    assert told(found, "compute") == [("operator", "aten::mm", (60.0, 150.0), (2, 3))]
    assert told(found, "memory_ops") == [("copy", "h2d", (10.0, 15.0), (2, 3))]
    # Per step: -40, +20; the copy takes 5 on both sides.
    assert [row.part for row in causes(base, candidate)[:2]] == ["data_loading", "compute"]
    assert found[-1].base * candidate.info.count == found[-1].candidate * base.info.count


def test_idle_time_is_laid_to_what_the_host_did_or_to_the_operator_whose_work_ended_it():
    found = rows(*[side_from(training())] * 2)
    # Host operator 8-10, then its launch call 10-12, then 2 µs until the kernel runs.
    assert told(found, "host_op") == [("in_op", "aten::mm", (4.0, 4.0), (2, 2))]
    assert told(found, "dispatch_latency") == [("next_op", "aten::mm", (4.0, 4.0), (2, 2))]
    # At the end of the step nothing follows within it.
    assert ("rest", "rest", (11.0, 11.0), (1, 1)) in told(found, "untraced")


def waiting(*, read: bool):
    """Two kernels; between them a region works for 100 µs on the host, after that a value may be read from the device.

    The second kernel waits for 60 µs of Python that come after, and the launch of an operator.
    """
    b = TraceBuilder()
    b.step(0, 0, 300)
    b.op("aten::mm", 0, 6)
    b.launch(2, 2, 6, 10, name="volta_sgemm_128x64_nn")
    b.op("Torch-Compiled Region", 10, 106)
    if read:
        b.op("aten::item", 118, 12)
        b.op("aten::_local_scalar_dense", 119, 10)
        b.copy(120, 1, 121, 3, name="Memcpy DtoH (Device -> Pinned)")
        b.api("cudaStreamSynchronize", 122, 6)
    b.op("aten::fill_", 190, 6)
    b.launch(192, 2, 196, 104, name="void at::native::vectorized_elementwise_kernel<4, FillFunctor>")
    return side_from(b)


def test_idle_time_is_called_after_the_operator_the_host_is_in_not_after_the_one_that_launches_next():
    # The device is idle from 16 on: to 116 the host is in the region, to 190 it shows nothing.
    found = rows(*[waiting(read=False)] * 2)
    assert ("in_op", "Torch-Compiled Region", (100.0, 100.0), (1, 1)) in told(found, "host_op")
    assert told(found, "untraced")[0] == ("next_op", "aten::fill", (74.0, 74.0), (1, 1))


def test_what_a_wait_for_the_device_holds_up_is_called_after_it():
    found = rows(waiting(read=False), waiting(read=True))
    # The copy ends at 124 while the host waits until 128; until 130 it is in the operators, until 190 in Python.
    assert told(found, "sync") == [("in_op", "aten::local_scalar_dense", (0.0, 4.0), (0, 1))]
    assert ("in_op", "aten::local_scalar_dense", (0.0, 60.0), (0, 1)) in told(found, "untraced")
    assert ("next_op", "aten::fill", (74.0, 0.0), (1, 0)) in told(found, "untraced")


def test_waits_in_no_operator_are_called_after_the_call():
    def one(call):
        b = training(steps=1)
        b.api(call, 20, 34)
        b.op("aten::relu", 56, 2)
        b.launch(56, 1, 58, 2, name="void at::native::elementwise_kernel<512, 1>")
        return side_from(b)

    sides = one("cudaDeviceSynchronize"), one("hipDeviceSynchronize")
    # The copy ends at 49, the wait at 54.
    assert told(rows(*sides), "sync") == [("in_op", "DeviceSynchronize", (5.0, 5.0), (1, 1))]
    table = compare_sides(*sides).tables["sync_compare"]
    told_of = [(row.op, row.change, row.base_calls, row.candidate_calls) for row in table.records()]
    assert told_of == [("DeviceSynchronize", "finding_same", 1, 1)]
    table = compare_sides(sides[0], sides[0]).tables["sync_compare"]
    assert [row.op for row in table.records()] == ["cudaDeviceSynchronize"]


def test_work_of_no_operator_goes_by_what_it_is_for():
    b = training()
    b.device(55, 3, name="void at::native::elementwise_kernel<512, 1>", stream=9)
    found = rows(*[side_from(b)] * 2)
    assert ("kernels", "elementwise", (3.0, 3.0), (1, 1)) in told(found, "compute")


def test_kernels_that_lost_their_operator_are_no_gain():
    base, candidate = training(steps=1), training(steps=1, ops=False)
    found = rows(side_from(base), side_from(candidate))
    assert told(found, "compute") == [("kernels", "matmul", (30.0, 30.0), (1, 1))]


def named(*ops):
    """One kernel of 10 µs under each operator."""
    b = TraceBuilder()
    b.step(0, 0, 100)
    for place, name in enumerate(ops):
        b.op(name, 20 * place, 4)
        b.launch(20 * place + 1, 1, 20 * place + 5, 10)
    return side_from(b)


def test_operators_meet_under_one_name_with_their_direction():
    base = named("aten::cudnn_convolution", "autograd::engine::evaluate_function: CudnnConvolutionBackward0")
    candidate = named("aten::miopen_convolution", "autograd::engine::evaluate_function: ConvolutionBackward0")
    assert sorted(told(rows(base, candidate), "compute")) == [
        ("operator", "aten::convolution", (10.0, 10.0), (1, 1)),
        ("operator", "aten::convolution (backward)", (10.0, 10.0), (1, 1)),
    ]


def test_the_users_map_of_names_joins_operators():
    options = CompareOptions(op_name_map={"mine::norm": "aten::layer_norm"})
    found = rows(named("mine::norm"), named("aten::layer_norm"), options)
    assert [row[2:] for row in told(found, "compute")] == [((10.0, 10.0), (1, 1))]
    assert len(told(rows(named("mine::norm"), named("aten::layer_norm")), "compute")) == 2


def test_the_same_operator_forward_and_idle_before_it_are_different_rows():
    found = rows(*[side_from(training())] * 2)
    assert len({(row.part, row.what, row.name) for row in found}) == len(found)


def reducing(*, groups, kernel=ALL_REDUCE):
    b = TraceBuilder()
    b.step(0, 0, 200)
    b.launch(0, 1, 5, 10)
    for place, ranks in enumerate(groups):
        more = {"Collective name": "allreduce", "Process Group Ranks": ranks} if ranks else {}
        b.launch(20 + place, 1, 30 + 20 * place, 12, name=kernel, stream=20, **more)
    return side_from(b)


def test_the_one_group_of_each_side_is_compared_whatever_its_ranks():
    found = rows(reducing(groups=["[0, 1, 2, 3]"]), reducing(groups=["[0, 1]"]))
    assert told(found, "communication") == [("collective", "all_reduce", (12.0, 12.0), (1, 1))]


def test_several_groups_are_told_apart():
    found = rows(reducing(groups=["[0, 1]", "[0, 2]"]), reducing(groups=["[0, 1]"]))
    assert told(found, "communication") == [
        ("collective", "all_reduce 0, 2", (12.0, 0.0), (1, 0)),
        ("collective", "all_reduce 0-1", (12.0, 12.0), (1, 1)),
    ]


def test_the_source_line_is_that_of_the_longest_piece_and_of_the_candidate():
    def stacked(long_line, short_line, longest=30):
        b = TraceBuilder()
        b.step(0, 0, 100)
        for at, line, length in ((1, short_line, 5), (20, long_line, longest)):
            b.python(f"train.py({line}): step", at, 6)
            b.op("aten::mm", at + 1, 4)
            b.launch(at + 2, 1, at + 10, length)
        return side_from(b)

    (row,) = (row for row in causes(stacked(7, 8), stacked(17, 18, 31)) if row.part == "compute")
    assert row.frame == "train.py(17): step"
    (row,) = (row for row in causes(stacked(7, 8), side_from(training())) if row.part == "compute")
    assert row.frame == "train.py(7): step"


def with_modules(*calls, length=20):
    """One kernel in each call of a module."""
    b = TraceBuilder()
    b.step(0, 0, 300)
    for place, name in enumerate(calls):
        at = 5 + 50 * place
        b.python("nn.Module: Net_0", at, 30)
        b.python(f"nn.Module: {name}", at + 1, 20)
        b.op("aten::mm", at + 2, 10)
        b.launch(at + 3, 2, at + 8, length)
    return side_from(b)


def test_the_module_is_named_where_all_the_work_lies_in_it():
    def module(base, candidate):
        (row,) = (row for row in causes(base, candidate) if row.part == "compute")
        return row.module

    one, two = with_modules("Linear_0", "Linear_0"), with_modules("Linear_0", "Linear_1")
    one_longer = with_modules("Linear_0", "Linear_0", length=21)
    two_longer = with_modules("Linear_0", "Linear_1", length=21)
    assert module(one, one_longer) == "Net_0/Linear_0"
    assert module(two, two_longer) is None
    assert module(one, two_longer) is None
    assert module(one, side_from(training())) is None


def host_program(*, pause, inner, outer=30):
    """Two steps of a pause, and an operator of which another takes `inner` µs; the first step is 5 µs longer."""
    b = TraceBuilder()
    for number in range(2):
        at = 1000 * number
        b.step(number, at, pause + outer + 5 * (1 - number))
        b.op("aten::linear", at + pause, outer)
        b.op("aten::addmm", at + pause + 4, inner)
    return side_from(b)


def test_without_a_device_what_the_host_does_makes_the_difference():
    base, candidate = host_program(pause=20, inner=10), host_program(pause=26, inner=18)
    found = {(row.part, row.what, row.contribution): row.diff_ns for row in causes(base, candidate)}
    assert found == {
        ("host_op", "operator", "aten::addmm"): 8_000,
        ("host_op", "operator", "aten::linear"): -8_000,
        ("untraced", "next_op", "aten::linear"): 6_000,
    }
    for part in parts(base, candidate):
        own = [row for row in rows(base, candidate) if row.part == part.key]
        assert (sum(row.base for row in own), sum(row.candidate for row in own)) == (part.base, part.candidate)
    # What only one side recorded a device of has no causes.
    assert causes(base, side_from(training())) == []


works = st.lists(
    st.tuples(
        st.integers(0, 150),
        st.integers(0, 40),
        st.sampled_from(["gemm", ALL_REDUCE, "Memcpy DtoD (Device -> Device)"]),
        st.integers(1, 3),
        st.sampled_from(["aten::mm", "aten::add", None]),
        st.booleans(),
    ),
    min_size=1,
    max_size=10,
)


def random_side(items, steps):
    b = TraceBuilder()
    for n in range(steps):
        b.step(n, n * 90, 90)
    for i, (at, dur, name, stream, op, linked) in enumerate(items):
        cat = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        where = {"name": name, "stream": stream, "cat": cat}
        if op:
            b.op(op, 3 * i, 2)
        if linked:
            b.launch(3 * i + 0.5, 0.5, at + 0.25, dur, **where)
        else:
            b.device(at + 0.25, dur, **where)
    return side_from(b)


@given(works, st.integers(1, 3), works, st.integers(1, 3))
def test_rows_sum_to_their_part_and_swapping_the_sides_swaps_them(one, one_steps, two, two_steps):
    base, candidate = random_side(one, one_steps), random_side(two, two_steps)
    there, back = rows(base, candidate), rows(candidate, base)
    for part in parts(base, candidate):
        sums = [sum(getattr(row, side) for row in there if row.part == part.key) for side in ("base", "candidate")]
        # What cannot be told apart has no rows: its time is in the rows of untraced idle time.
        assert sums == [time if isinstance(time, int) else 0 for time in (part.base, part.candidate)]
    assert {(r.part, r.what, r.name, r.base, r.candidate) for r in there} == {
        (r.part, r.what, r.name, r.candidate, r.base) for r in back
    }
    told_of = [
        (r.part, r.candidate_sum_ns * base.info.count - r.base_sum_ns * candidate.info.count)
        for r in causes(base, candidate)
    ]
    changes = [abs(change) for _, change in told_of]
    assert changes == sorted(changes, reverse=True)
    for part in {r.part for r in there}:
        own = [r.candidate * base.info.count - r.base * candidate.info.count for r in there if r.part == part]
        assert sum(change for of, change in told_of if of == part) == sum(own)


def test_work_that_moves_from_one_name_to_another_is_one_row():
    """5 + 40 µs of two operators become 30 µs of a third: their part changes by -15 µs; one that only takes longer
    keeps its row."""

    def side_of_work(**lengths):
        made = Program().step()
        for op, length in lengths.items():
            made.op(f"aten::{op}", length)
        return side_from(made.builder)

    base, candidate = side_of_work(a=5, b=40, c=10), side_of_work(c=14, d=30)
    found = [row for row in causes(base, candidate) if row.part == "compute"]
    assert [(row.contribution, row.diff_ns, row.base_number, row.candidate_number) for row in found] == [
        ("aten::b → aten::d", -15_000, 2, 1),
        ("aten::c", 4_000, 1, 1),
    ]
    # Where the largest is less than half of its end, others are counted.
    more = causes(side_of_work(a=16, b=17, e=7), side_of_work(d=30))
    assert [row.contribution for row in more if row.part == "compute"] == ["aten::b + 2 → aten::d"]
    # What takes less than half of it back is a cause of its own.
    few = [row for row in causes(side_of_work(a=5, b=40, c=10), side_of_work(c=14, d=20)) if row.part == "compute"]
    assert [row.contribution for row in few] == ["aten::b", "aten::d", "aten::a", "aten::c"]


def test_what_varies_from_step_to_step_comes_after_what_has_changed():
    def program(varying, steady):
        made = Program()
        for length in varying:
            made.step().op("aten::a", length).op("aten::b", steady)
        return side_from(made.builder)

    found = causes(program((20, 80, 20, 80), 30), program((80, 20, 80, 60), 34))
    compute = [(row.contribution, row.change, row.diff_ns) for row in found if row.part == "compute"]
    assert compute == [("aten::b", "change_longer", 4_000), ("aten::a", "change_noise", 10_000)]

    # A part that has changed beyond noise has causes: what alternates between two names is no noise of theirs.
    def idle(pause):
        b = TraceBuilder()
        for number, name in enumerate(("aten::a", "aten::b") * 2):
            at = number * (100 + pause)
            b.step(number, at, 100 + pause)
            b.op(name, at + 20 + pause, 10)
            b.launch(at + 22 + pause, 2, at + 30 + pause, 50)
        return side_from(b)

    before = causes(idle(0), idle(40))
    assert {row.change for row in before if row.part == "untraced"} == {"change_longer"}
    assert sum(row.diff_ns for row in before) == 40_000
    # Two steps a side tell no noise.
    few = causes(program((20, 80), 30), program((80, 40), 34))
    assert [row.contribution for row in few if row.part == "compute"] == ["aten::a", "aten::b"]


def test_a_part_varies_as_the_sum_of_its_causes_does():
    """One operator takes 20 µs more in the steps in which the other takes 20 less: 50 + 14 a step, never more."""

    def program(third):
        made = Program()
        for first in (20, 40, 20, 40):
            made.step().op("aten::a", first).op("aten::b", 60 - first).op("aten::c", third)
        return side_from(made.builder)

    found = compare_sides(program(4), program(6))
    rows = {row.contribution: (row.change, row.noise_ns) for row in found.tables["causes"].records()}
    assert rows["aten::c"] == ("change_longer", 0)
    (compute,) = (row for row in found.tables["step_difference"].records() if row.part == "compute")
    assert (compute.diff_ns, compute.noise_ns) == (2_000, 0)


@given(works, works)
def test_what_may_be_chance_in_a_part_is_that_of_its_time_in_each_step(one, two):
    base, candidate = random_side(one, 4), random_side(two, 3)
    found = reasons(base, candidate, CompareOptions())
    chance = chance_of_parts(found, {}, PerStep.of(base.info, candidate.info), (1, 1))
    for part, noise in chance.items():
        sums = []
        for side, rows_of in zip((base, candidate), found, strict=True):
            sums.append(
                [sum(row.steps[at] for key, row in rows_of.items() if key[0] == part) for at in range(side.info.count)]
            )
        assert noise == half_width(*sums)


def test_one_odd_step_hides_no_difference_of_sides_whose_steps_lie_apart():
    """Five of six steps are 10 longer, the first 50; chance stays where they overlap or are few."""
    usual, odd = [40, 41, 42, 43, 44, 45], [90, 50, 51, 52, 53, 54]
    means = sum(odd) / 6 - sum(usual) / 6
    assert half_width(usual, odd) == half_width(odd, usual) == int(means - 5) < 20
    assert half_width(usual, [*odd[:5], 44]) == 17
    assert half_width(usual[:3], odd[:3]) == 56


def test_waiting_that_moves_to_before_other_work_is_named_in_words():
    """2 µs of waiting before one operator, and as much at the end of the step instead."""
    before = {("untraced", "next_op", "aten::a"): Reason(2_000, 1, None, None)}
    after = {("untraced", "rest", "rest"): Reason(3_000, 1, None, None)}
    table = causes_table((before, after), PerStep(1, 1, 1_000))
    (only,) = table.records()
    assert (only.contribution, only.what, only.diff_ns) == (Word("aten::a → rest"), "moved", 1_000)
    assert isinstance(only.contribution, Word)
