"""What ranks ran over all of them, and sends with their receives; against plain Python over hand-made ranks."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import mean, stdev

import numpy as np
import pytest

import traceanalyze
from tests.ascend_builder import AscendBuilder
from tests.builder import TraceBuilder
from tests.ranks.make import rank
from tests.real import SHARED
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.results import Experts, Group, Ran
from traceanalyze.ranks.sends import between, sends
from traceanalyze.ranks.spread import MOST, POINTS, ran, spread_tables, times

NOTHING = times([], np.zeros(0, np.int64), np.zeros(0, np.int64))


def summed(durations):
    """Times of single durations by name."""
    names = sorted(durations)
    of = [code for code, name in enumerate(names) for _ in durations[name]]
    return times(
        names, np.array(of, np.int64), np.array([each for name in names for each in durations[name]], np.int64)
    )


def a_rank(number, operators=None, *, calls=None, clock=None, experts=(0, None), collectives=(), **more):
    known = Ran(summed(operators or {}), summed(calls or {}), clock, Experts(*experts))
    return replace(rank(number, *collectives, **more), ran=known)


def tables(*ranks):
    return {table.key: table for table in spread_tables(ranks)}


def quantile(values, share):
    """Linear between the values in order."""
    ordered, place = sorted(values), share * (len(values) - 1)
    low = int(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def test_operators_and_calls_against_every_single_duration():
    chance = random.Random(5)
    names = ["MatMul", "Add", "Cast"]
    each = [
        {name: [chance.randrange(100, 10_000) for _ in range(chance.randrange(1, 9))] for name in names[: 3 - at % 2]}
        for at in range(5)
    ]
    found = tables(*(a_rank(at, durations, calls={"launch": [7, 9]}) for at, durations in enumerate(each)))
    rows = {(row.what, row.name): row for row in found["rank_spread"].records()}
    assert [row.name for row in rows.values() if row.what == "operator"] == sorted(
        names, key=lambda name: -sum(sum(one.get(name, [])) for one in each)
    )
    for name in names:
        row, own = rows["operator", name], [one[name] for one in each if name in one]
        every = [time for one in own for time in one]
        assert (row.ranks, row.calls, row.time_ns) == (len(own), len(every), sum(every))
        assert (row.mean_ns, row.std_ns) == (round(mean(every)), round(stdev(every)))
        assert (row.min_ns, row.max_ns) == (min(every), max(every))
        assert min(each[int(row.min_rank)][name]) == row.min_ns
        assert max(each[int(row.max_rank)][name]) == row.max_ns
        assert [row.q1_ns, row.median_ns, row.q3_ns] == [round(quantile(every, at / 4)) for at in (1, 2, 3)]
    assert (rows["call", "launch"].calls, rows["call", "launch"].mean_ns, rows["call", "launch"].std_ns) == (10, 8, 1)


def test_of_many_calls_quartiles_are_right_to_a_part_of_their_number():
    chance = random.Random(7)
    each = [{"Add": [chance.randrange(1_000_000) for _ in range(number)]} for number in (POINTS, 2_000, 5_000)]
    table = tables(*(a_rank(at, durations) for at, durations in enumerate(each)))["rank_spread"]
    assert [note.key for note in table.notes] == ["spread_quartiles"]
    (row,) = table.records()
    every = sorted(time for one in each for time in one["Add"])
    assert (row.min_ns, row.max_ns, row.calls) == (every[0], every[-1], 7_000 + POINTS)
    for at, found in ((1, row.q1_ns), (2, row.median_ns), (3, row.q3_ns)):
        below = sum(time < found for time in every)
        assert abs(below - at / 4 * len(every)) <= len(every) / (POINTS - 1)


def test_collectives_of_steps_that_count():
    first = a_rank(0, collectives=[(0, "all_reduce", 64, 0, 100), (0, "all_gather", 64, 100, 150)])
    second = a_rank(1, collectives=[(0, "all_reduce", 64, 20, 100), (-1, "all_reduce", 64, 200, 900)])
    rows = {row.name: row for row in tables(first, second)["rank_spread"].records()}
    assert [(row.calls, row.time_ns, row.ranks) for row in rows.values()] == [(2, 180, 2), (1, 50, 1)]
    row = rows["all_reduce"]
    assert (row.min_ns, row.min_rank, row.max_ns, row.max_rank) == (80, "1", 100, "0")
    assert (row.q1_ns, row.median_ns, row.q3_ns) == (85, 90, 95)


def test_of_many_names_those_of_most_time_are_kept():
    kept = summed({f"op{number:03}": [1000 + number] for number in range(MOST + 10)})
    assert len(kept.names) == MOST
    assert (kept.names[0], kept.names[-1]) == ("op265", "op010")
    # What is not kept is told, as other ranks may have kept it.
    other = a_rank(1, {"op003": [50]})
    table = tables(replace(a_rank(0), ran=Ran(kept, NOTHING, None, Experts(0, None))), other)["rank_spread"]
    (note,) = table.notes
    assert [value for _, _, value in note.values] == [MOST, sum(1000 + number for number in range(10))]
    assert not tables(other, other)["rank_spread"].notes
    assert NOTHING.names == ()


def test_the_clock_of_each_rank_where_it_is_told():
    found = tables(a_rank(0, clock=1800.0), a_rank(1, clock=900.0), a_rank(2))["core_clocks"]
    assert [(row.rank, row.clock, row.of_highest) for row in found.records()][:2] == [("0", 1800, 1), ("1", 900, 0.5)]
    assert [row.clock for row in found.records()][2] == NotMeasured("no_core_counters")
    assert tables(a_rank(0), a_rank(1))["core_clocks"].absent == NotMeasured("no_core_counters")


def test_load_of_experts_by_tokens_else_by_what_is_sent():
    found = tables(a_rank(0, experts=(4, 300)), a_rank(1, experts=(4, 100)))["expert_load"]
    assert [(row.tokens, row.of_mean) for row in found.records()] == [(300, 1.5), (100, 0.5)]
    unknown = tables(a_rank(0, experts=(4, None)), a_rank(1, experts=(4, 100)))["expert_load"]
    assert [row.tokens for row in unknown.records()] == [NotMeasured("no_shapes"), 100]
    sent = [a_rank(at, collectives=[(0, "all_to_all", size, 0, 10)]) for at, size in enumerate((96, 32))]
    assert [(row.sent_bytes, row.of_mean) for row in tables(*sent)["expert_load"].records()] == [(96, 1.5), (32, 0.5)]
    even = [a_rank(at, collectives=[(0, "all_to_all", 64, 0, 10)]) for at in (0, 1)]
    assert tables(*even)["expert_load"].absent == NotMeasured("no_experts")


def test_a_rank_without_its_device_has_no_load_of_experts():
    b = TraceBuilder()
    b.step(1, 0, 1000)
    b.op("aten::_grouped_mm", 10, 10)
    host = ran(Context(b.trace(), Options()))
    rows = list(tables(a_rank(0, experts=(4, 300)), replace(a_rank(1), ran=host))["expert_load"].records())
    assert [row.calls for row in rows] == [4, NotMeasured("no_device_events")]
    assert [row.of_mean for row in rows] == [1, None]


def test_what_a_rank_ran_in_a_trace():
    b = TraceBuilder()
    b.step(1, 0, 1000)
    b.op("aten::_grouped_mm", 10, 10, **{"Input Dims": [[96, 64], [8, 64, 64]]})
    b.launch(12, 2, 30, 50, name="grouped_gemm_kernel")
    b.op("aten::add", 40, 10)
    b.launch(42, 4, 100, 20, name="add_kernel")
    b.launch(48, 2, 130, 30, name="add_kernel")
    found = ran(Context(b.trace(), Options()))
    assert dict(zip(found.operators.names, found.operators.total.tolist(), strict=True)) == {
        "aten::_grouped_mm": 50_000,
        "aten::add": 50_000,
    }
    assert (found.calls.names, found.calls.calls.tolist(), found.calls.total.tolist()) == (
        ("cudaLaunchKernel",),
        [3],
        [8_000],
    )
    assert (found.clock, found.experts) == (None, Experts(1, 96))


def test_types_of_operators_and_the_clock_of_an_ascend_profile(tmp_path):
    made = AscendBuilder()
    made.step(1, 0, 1000)
    cycles = {"aic_total_cycles": "3600000", "Block Dim": "20", "aicore_time(us)": "100"}
    made.kernel(
        "aclnnGmm_GroupedMatmul", 100, 100, op_type="GroupedMatmul", **cycles, **{"Input Shapes": '"80,64;8,64,64"'}
    )
    made.kernel("aclnnAdd_Add", 300, 40, op_type="Add", core="AI_VECTOR_CORE")
    (trace,) = traceanalyze.load(made.write(tmp_path / "rank0_ascend_pt")).traces
    found = ran(Context(trace, Options()))
    assert found.operators.names == ("GroupedMatmul", "Add")
    assert found.clock == pytest.approx(1800)
    assert found.experts == Experts(1, 80)


@pytest.mark.parametrize("lists", [False, True])
def test_load_of_experts_is_that_of_the_routing(tmp_path, lists):
    """Tokens that chance sends to the experts of two ranks; one tensor for all of a rank's experts, or one for each."""
    chance, hidden, own = random.Random(3), 64, 4
    truth = [0, 0]
    for at in (0, 1):
        made = AscendBuilder()
        made.step(1, 0, 3000)
        for layer in range(5):
            # Those of the first rank are asked for twice as often.
            to = [0] * own
            for _ in range(200):
                expert = chance.randrange(own * 3)
                if (expert >= 2 * own) == (at == 1):
                    to[expert % own] += 1
            truth[at] += sum(to)
            given = [f"{count},{hidden}" for count in to] if lists else [f"{sum(to)},{hidden}"]
            weights = [f"{hidden},{2 * hidden}"] * own if lists else [f"{own},{hidden},{2 * hidden}"]
            shapes = ";".join([*given, *weights, str(own)])
            made.kernel(
                "aclnnGmm_GroupedMatmul",
                100 + layer * 200,
                90,
                op_type="GroupedMatmul",
                **{"Input Shapes": f'"{shapes}"'},
            )
        made.write(tmp_path / f"rank{at}_ascend_pt", rank=at)
    rows = list(traceanalyze.analyze(tmp_path).tables["expert_load"].records())
    assert [(row.calls, row.tokens) for row in rows] == [(5, tokens) for tokens in truth]
    assert [row.of_mean for row in rows] == pytest.approx([2 * tokens / sum(truth) for tokens in truth])


PAIR = Group("0-1", (0, 1), 2)


def told(ranks):
    cluster = compare_ranks(ranks)
    return list(sends(cluster, between(cluster.ranks, cluster.rows)).records())


def test_sends_meet_receives_in_their_order():
    first = rank(
        0, (0, "send", 64, 0, 50), (0, "send", 64, 100, 130), (0, "recv", 32, 200, 240), (0, "send", 64, 300, 310)
    )
    second = rank(1, (0, "recv", 64, 40, 60), (0, "recv", 64, 90, 150), (0, "send", 32, 230, 240))
    rows = told([first, second])
    assert [(row.sender, row.receiver, row.sends, row.receives, row.paired, row.unpaired) for row in rows] == [
        ("0", "1", 3, 2, 2, 1),
        ("1", "0", 1, 1, 1, 0),
    ]
    there, back = rows
    # 20 of 50 and 20, and 30 of 30 and 60; back 10 of 10 and 40.
    assert (there.bytes, there.transfer_ns, there.sender_wait_ns, there.receiver_wait_ns) == (128, 50, 30, 30)
    assert (back.bytes, back.transfer_ns, back.sender_wait_ns, back.receiver_wait_ns) == (32, 10, 0, 30)


def test_pairs_end_where_sizes_differ_and_batches_pair_too():
    first = rank(0, (0, "send", 64, 0, 50), (0, "send", 8, 60, 70), (0, "send_recv", -1, 80, 90))
    second = rank(1, (0, "recv", 64, 0, 50), (0, "recv", 9, 60, 70), (0, "send_recv", -1, 80, 95))
    one, both = told([first, second])
    assert (one.paired, one.unpaired) == (1, 2)
    assert (both.paired, both.bytes, both.receiver_wait_ns) == (1, NotMeasured("no_bytes"), 5)


def test_partners_that_are_not_told_or_not_here_are_said():
    three = Group("0-2", (0, 1, 2), 3)
    ranks = [rank(at, (0, "send", 64, 0, 50), group=three, world=3) for at in range(3)]
    rows = told(ranks)
    assert [(row.sender, row.sends, row.receives, row.paired) for row in rows] == [
        (str(at), 1, 0, NotMeasured("no_partner")) for at in range(3)
    ]
    gone = [rank(0, (0, "send", 64, 0, 50), group=Group("0-3", (0, 3), 2)), rank(1, group=Group("1-2", (1, 2), 2))]
    (row,) = told(gone)
    assert row.receiver == NotMeasured("no_partner")
    none = compare_ranks([rank(0), rank(1)])
    assert sends(none, between(none.ranks, none.rows)).absent == NotMeasured("no_sends")


def test_transfers_without_a_size_are_counted_beside_the_others(tmp_path):
    for rank_number in (0, 1):
        made = AscendBuilder()
        made.step(1, 0, 1000)
        parts = [(0, "Memcpy", 100 + 20 * at, 10, 1 - rank_number) for at in range(4)]
        made.collective("hcom_allReduce__1_0", 90, 200, parts)
        moved = [event for event in made.events if event.get("name") == "Memcpy"]
        for event in moved:
            event["args"]["src rank"] = rank_number
        del moved[0]["args"]["size(Byte)"]
        made.write(tmp_path / f"rank{rank_number}_ascend_pt", rank=rank_number)
    rows = list(traceanalyze.analyze(tmp_path).tables["links"].records())
    assert [(row.source_rank, row.transfers, row.bytes, row.time_ns, row.unsized) for row in rows] == [
        (0, 3, 192, 30_000, 1),
        (1, 3, 192, 30_000, 1),
    ]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_what_the_recipes_of_msprof_analyze_say_of_the_shared_profiles() -> None:
    report = traceanalyze.analyze(SHARED / "ascend/msinsight_2rank_torch/db/level1")
    rows = {row.name: row for row in report.tables["rank_spread"].records() if row.what != "call"}
    # compute_op_sum and hccl_sum: count, sum, mean, deviation, shortest, quartiles, longest, in ns.
    expected = {
        "ForeachAddList": (6, 3_899_856, 649_976, 36_201, 623_392, 625_392, 629_402, 678_998, 698_074),
        "MatMulV2": (16, 1_934_539, 120_909, 131_967, 16_540, 28_691, 51_381, 170_463, 372_648),
        "all_reduce": (8, 200_698_290, 25_087_286, 38_324_559, 2_179_243, 2_350_982, 5_588_392, 27_885_388, 88_750_993),
    }
    for name, figures in expected.items():
        row = rows[name]
        found = (
            row.calls,
            row.time_ns,
            row.mean_ns,
            row.std_ns,
            row.min_ns,
            row.q1_ns,
            row.median_ns,
            row.q3_ns,
            row.max_ns,
        )
        assert found == pytest.approx(figures, abs=1)
    assert (rows["all_reduce"].min_rank, rows["all_reduce"].max_rank) == ("1", "0")
