"""Operators of two sides: all device time is there once, and equal calls meet in order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.comparison.calls import Program, told
from tests.comparison.make import amounts, side_from
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.comparison.operators import EXTRA_STEPS, operator_pairs, operator_totals
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.table import NotMeasured

OPTIONS = CompareOptions()


def pairs(base, candidate, **options):
    return operator_pairs(base.context, candidate.context, CompareOptions(**options))


def totals(base, candidate, **options):
    found = operator_totals(base.context, candidate.context, CompareOptions(**options))
    return {row.shared["op"]: tuple(time / 1000 for time in amounts(row, "device_ns")) for row in found}


def counts(base, candidate):
    found = operator_totals(base.context, candidate.context, OPTIONS)
    return {row.shared["op"]: amounts(row, "calls") for row in found}


def test_work_of_every_kind_counts_once():
    one = Program().step().op("aten::linear", inside=[("aten::addmm", 30, 2)]).launch(5).unlinked(7)
    assert totals(one, one) == {
        "aten::addmm": (32, 32),
        "<outside operators>": (5, 5),
        "<unlinked>": (7, 7),
    }
    assert counts(one, one) == {"aten::addmm": (1, 1), "<outside operators>": (1, 1), "<unlinked>": (1, 1)}
    assert told(pairs(one, one)) == [
        (("aten::linear", 32.0),) * 2,
        (("<unlinked>", 7.0),) * 2,
        (("<outside operators>", 5.0),) * 2,
    ]


def test_parent_and_child_that_start_together_count_their_kernel_once():
    one = Program().step()
    one.builder.op("aten::linear", 10, 10)
    one.builder.op("aten::addmm", 10, 10)
    one.builder.launch(12, 1, 100, 30)
    assert totals(one, one) == {"aten::addmm": (30, 30)}


def test_stream_zero_and_driver_launches_are_work_like_any_other():
    one = Program().step()
    one.builder.op("aten::mm", 10, 10)
    one.builder.launch(12, 1, 100, 30, stream=0)
    one.builder.launch(14, 1, 140, 20, api="cuLaunchKernelEx")
    assert totals(one, one) == {"aten::mm": (50, 50)}


def test_largest_change_per_step_comes_first():
    base = Program().step().op("aten::mm", 30).op("aten::add", 10).op("aten::mul", 5)
    candidate = Program().step().op("aten::mm", 32).op("aten::add", 20).op("aten::mul", 5)
    found = compare_sides(side_from(base.builder), side_from(candidate.builder))
    assert found.tables["operator_compare_statistic"].column("op") == ("aten::add", "aten::mm", "aten::mul")


def test_forward_and_backward_of_an_operator_meet_their_like_whatever_the_library():
    base = Program().step().op("aten::conv2d", inside=[("aten::cudnn_convolution", 10)])
    base.op(
        "autograd::engine::evaluate_function: ConvolutionBackward0",
        inside=[("ConvolutionBackward0", [("aten::convolution_backward", 20)])],
        tid=2,
    )
    candidate = Program().step().op("aten::conv2d", inside=[("aten::miopen_convolution", 11)])
    candidate.op("CudnnConvolutionBackward", inside=[("aten::cudnn_convolution_backward_weight", 21)])
    assert totals(base, candidate) == {"aten::convolution": (10, 11), "aten::convolution (backward)": (20, 21)}
    assert told(pairs(base, candidate)) == [
        (("aten::conv2d", 10.0), ("aten::conv2d", 11.0)),
        (("aten::convolution_backward", 20.0), ("aten::cudnn_convolution_backward_weight", 21.0)),
    ]


def test_a_wrapper_around_the_model_does_not_swallow_it():
    base = Program().step().op("aten::mm", 10).op("aten::add", 20)
    candidate = Program().step().op("DistributedDataParallel.forward", 3, inside=[("aten::mm", 10), ("aten::add", 20)])
    assert told(pairs(base, candidate)) == [
        (None, ("DistributedDataParallel.forward", 3.0)),
        (("aten::mm", 10.0), ("aten::mm", 10.0)),
        (("aten::add", 20.0), ("aten::add", 20.0)),
    ]


def test_launch_records_of_cann_count_for_the_operator_around_them():
    base = Program().step().op("aten::mul", 10)
    candidate = Program().step().op("aten::mul", inside=[("aclnnMuls", 12)])
    assert totals(base, candidate) == {"aten::mul": (10, 12)}
    assert counts(base, candidate) == {"aten::mul": (1, 1)}


def test_a_function_without_an_operator_around_it_counts_for_itself():
    one = Program().step().op("DistributedDataParallel.forward", inside=[("MyFunction", 10)])
    assert totals(one, one) == {"MyFunction": (10, 10)}


def test_a_name_tells_the_backward_pass_where_no_node_does():
    one = Program().step().op("aten::silu", 2).op("aten::silu_backward", 3)
    assert totals(one, one) == {"aten::silu": (2, 2), "aten::silu (backward)": (3, 3)}


def test_an_inserted_operator_moves_no_other():
    base = Program().step().op("aten::mm", 1).op("aten::mm", 2).op("aten::mm", 3)
    candidate = Program().step().op("aten::mm", 1).op("aten::add", 9).op("aten::mm", 2).op("aten::mm", 3)
    assert [(a and a[1], b and b[1]) for a, b in told(pairs(base, candidate))] == [(1, 1), (None, 9), (2, 2), (3, 3)]


def test_an_operator_that_moved_still_has_its_partner():
    base = Program().step().op("aten::mm", 1).op("aten::add", 2).op("aten::mul", 3)
    candidate = Program().step().op("aten::mul", 3).op("aten::mm", 1).op("aten::add", 2)
    assert all(a is not None and b is not None and a == b for a, b in told(pairs(base, candidate)))


def test_steps_are_matched_one_by_one_and_extra_steps_are_not_lost():
    base, candidate = Program(), Program()
    for length in (1, 2):
        base.step().op("aten::mm", length)
    for length in (1, 2, 3):
        candidate.step().op("aten::mm", length)
    assert told(pairs(base, candidate)) == [
        (("aten::mm", 1.0), ("aten::mm", 1.0)),
        (("aten::mm", 2.0), ("aten::mm", 2.0)),
        (None, (EXTRA_STEPS, 3.0)),
    ]


def test_threads_are_paired_by_role_not_by_number():
    base = Program().step().op("aten::mm", 10).op("aten::sum", 3, tid=77)
    candidate = Program().step().op("aten::mm", 10, tid=5).op("aten::sum", 3, tid=4)
    assert all(a == b for a, b in told(pairs(base, candidate)))


def test_of_several_threads_the_one_with_most_device_time_meets_its_like():
    base = Program().step().op("aten::mm", 100, tid=1).op("aten::mm", 1, tid=2)
    candidate = Program().step().op("aten::mm", 1, tid=1).op("aten::mm", 100, tid=2)
    assert sorted(pair[0][1] - pair[1][1] for pair in told(pairs(base, candidate))) == [0, 0]


def test_calls_without_device_work_are_left_out():
    one = Program().step().op("aten::view").op("aten::mm", 10)
    assert told(pairs(one, one)) == [(("aten::mm", 10.0),) * 2]


def test_a_call_that_launches_on_one_side_only_is_matched_with_the_one_that_does_not():
    base, candidate = Program().step().op("aten::contiguous", 4), Program().step().op("aten::contiguous")
    candidate.op("aten::mm", 1)
    assert told(pairs(base, candidate))[0] == (("aten::contiguous", 4.0), ("aten::contiguous", 0.0))


def test_large_calls_give_way_to_the_calls_inside():
    def program(extra):
        inside = [("aten::mm", 1), ("aten::add", 2), *([("aten::mul", 3)] if extra else [])]
        return Program().step().op("aten::linear", 5, inside=inside)

    base, candidate = program(extra=False), program(extra=True)
    assert told(pairs(base, candidate)) == [(("aten::linear", 8.0), ("aten::linear", 11.0))]
    assert told(pairs(base, candidate, max_kernel_num=4)) == told(pairs(base, candidate))
    assert told(pairs(base, candidate, max_kernel_num=3)) == [
        (("aten::linear", 5.0), ("aten::linear", 5.0)),
        (("aten::mm", 1.0), ("aten::mm", 1.0)),
        (("aten::add", 2.0), ("aten::add", 2.0)),
        (None, ("aten::mul", 3.0)),
    ]


def test_a_large_call_with_nothing_inside_on_one_side_stays_whole():
    base = Program().step().op("aten::linear", inside=[("aten::mm", 1), ("aten::add", 2)])
    candidate = Program().step().op("aten::linear", 4)
    assert told(pairs(base, candidate, max_kernel_num=1)) == [(("aten::linear", 3.0), ("aten::linear", 4.0))]


SHAPED = {"Input Dims": [[2, 3], [3, 4]]}


def test_shapes_tell_calls_apart_only_when_asked():
    other = {"Input Dims": [[5, 3], [3, 4]]}
    base = Program().step().op("aten::mm", 1, **SHAPED)
    candidate = Program().step().op("aten::mm", 2, **other)
    assert told(pairs(base, candidate)) == [(("aten::mm", 1.0), ("aten::mm", 2.0))]
    assert told(pairs(base, candidate, use_input_shape=True)) == [
        (("aten::mm", 1.0), None),
        (None, ("aten::mm", 2.0)),
    ]
    found = operator_totals(base.context, candidate.context, CompareOptions(use_input_shape=True))
    assert {row.shared["shapes"] for row in found} == {"[[2, 3], [3, 4]]", "[[5, 3], [3, 4]]"}


def test_shapes_are_equal_however_they_are_printed():
    one = Program().step().op("aten::mm", 1, **SHAPED)
    two = Program().step().op("aten::mm", 2, **{"Input Dims": "[\n  [\n    2,\n    3\n  ],\n  [3,4]\n]"})
    assert told(pairs(one, two, use_input_shape=True)) == [(("aten::mm", 1.0), ("aten::mm", 2.0))]


def test_the_map_of_the_user_joins_rows_and_calls():
    base = Program().step().op("mylib::gemm", 1).op("mylib::gemm2", 2)
    candidate = Program().step().op("aten::mm", 3).op("aten::mm", 4)
    mine = {"mylib::gemm": "aten::mm", "mylib::gemm2": "aten::mm"}
    assert totals(base, candidate, op_name_map=mine) == {"aten::mm": (3, 7)}
    assert told(pairs(base, candidate, op_name_map=mine)) == [
        (("mylib::gemm", 1.0), ("aten::mm", 3.0)),
        (("mylib::gemm2", 2.0), ("aten::mm", 4.0)),
    ]


def test_without_operators_nothing_is_measured():
    one = Program().step().launch(3)
    assert operator_totals(one.context, one.context, OPTIONS) == NotMeasured("no_host_ops")
    assert operator_pairs(one.context, one.context, OPTIONS) == NotMeasured("no_host_ops")


def test_kernels_of_a_call_are_named_in_order():
    one = Program().step().op("aten::linear", 1, inside=[("aten::mm", 2)])
    (row,) = pairs(one, one)
    assert row.base["kernels"] == (("kernel_of_aten::linear", 1000), ("kernel_of_aten::mm", 2000))
    assert row.base["start_ns"] == 1000


NAMES = ["aten::mm", "aten::add", "aten::mul"]


def program(names):
    made = Program().step()
    for place, name in enumerate(names):
        made.op(name, 1 + place % 7)
    return made


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=60), st.integers(0, 2**32))
def test_operators_inserted_into_a_copy_leave_all_others_matched(names, seed):
    rng = random.Random(seed)
    more = list(names)
    for _ in range(rng.randrange(1, 20)):
        more.insert(rng.randrange(len(more) + 1), rng.choice([*NAMES, "aten::new"]))
    found = pairs(program(names), program(more))
    assert all(pair.candidate is not None for pair in found)
    assert sum(pair.base is not None for pair in found) == len(names)


@given(st.lists(st.sampled_from(NAMES), max_size=30), st.lists(st.sampled_from(NAMES), max_size=30))
def test_times_sum_to_all_device_time_and_swapping_the_sides_swaps_the_rows(a, b):
    base, candidate = program(["aten::mm", *a]).unlinked(3), program([*b, "aten::mul"]).launch(2)
    info = side_from(base.builder).info, side_from(candidate.builder).info
    rows = operator_totals(base.context, candidate.context, OPTIONS)
    sums = tuple(map(sum, zip(*(amounts(row, "device_ns") for row in rows), strict=True)))
    assert sums == tuple(each.device_time for each in info)
    found, swapped = pairs(base, candidate), pairs(candidate, base)
    assert sum(pair.base["device_ns"] for pair in found if pair.base) == info[0].device_time
    assert sum(pair.candidate["device_ns"] for pair in found if pair.candidate) == info[1].device_time

    def key(side):
        return None if side is None else (side["op"], side["start_ns"])

    def in_order(rows):
        return sorted(rows, key=str)

    assert in_order((key(p.base), key(p.candidate)) for p in found) == in_order(
        (key(p.candidate), key(p.base)) for p in swapped
    )


@pytest.mark.parametrize("count", [1, 2])
def test_a_side_against_itself_has_no_difference(count):
    made = Program()
    for _ in range(count):
        made.step().op("aten::mm", 3).op("CompiledFunction", 2, inside=[("aten::add", 1)]).unlinked(1)
    assert all(one == other for one, other in told(pairs(made, made)))
    assert all(one == other for one, other in totals(made, made).values())


def test_calls_of_all_threads_stand_in_the_order_of_time_also_new_ones():
    def one(first, *names):
        found = Program().step()
        for at, name in enumerate(names):
            found.builder.op(name, first + 100 * at, 10)
            found.builder.launch(first + 100 * at + 1, 1, 5000 + 100 * at, 90)
        found.builder.op("aten::other", 0, 10, tid=2)
        found.builder.launch(2, 1, 6000, 10, tid=2)
        return found

    assert told(pairs(one(100, "aten::mm"), one(0, "aten::new", "aten::mm"))) == [
        (None, ("aten::new", 90.0)),
        (("aten::other", 10.0),) * 2,
        (("aten::mm", 90.0),) * 2,
    ]
    later = one(0.001, "aten::mm")
    assert told(pairs(later, later)) == [(("aten::other", 10.0),) * 2, (("aten::mm", 90.0),) * 2]
