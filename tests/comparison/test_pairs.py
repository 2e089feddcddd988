"""Sums of two sides per step, ranks of rows and the texts of kernels, each at its boundary; answers on paper."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from traceanalyze.comparison.columns import diff
from traceanalyze.comparison.compare import unmatched_table
from traceanalyze.comparison.modules import ALL_OPERATORS, OUTSIDE_MODULES
from traceanalyze.comparison.pairs import (
    NAMED,
    PARTS_CANCEL,
    PerStep,
    how_changed,
    kernel_details,
    partners,
    ranked,
    section,
)
from traceanalyze.comparison.reasons import Reason, causes_table, effects
from traceanalyze.comparison.results import Pair
from traceanalyze.model.table import Column, Kind, NotMeasured

PER = PerStep(base_steps=2, candidate_steps=3, change=600)
"""The base has two steps, the candidate three, and its step takes 100 ns longer."""


def test_sums_are_shown_per_step_of_their_side():
    assert (PER.base(300), PER.candidate(300)) == (150, 100)
    assert (PER.base(301), PER.candidate(301), PER.candidate(302)) == (151, 100, 101)
    assert (PER.exact(300, 600), PER.diff(300, 600)) == (300, 50)
    assert (PER.diff(600, 300), PER.diff(300, 450)) == (-200, 0)


def test_ratios_compare_means():
    assert PER.ratio(200, 600) == 2
    assert PER.ratio(200, 150) == 0.5
    assert (PER.ratio(0, 0), PER.ratio(0, 5), PER.ratio(1, 0)) == (1.0, None, 0.0)


def test_shares_are_of_the_change_of_the_step():
    assert PER.share(0, 150) == 0.5
    assert PER.share(300, 0) == -1.5
    assert PER.share(2, 3) == 0.0
    assert PER._replace(change=0).share(0, 150) is None


def test_where_parts_cancel_there_is_no_share_of_the_small_rest():
    assert PER._replace(even=True).share(0, 150) == PARTS_CANCEL
    assert PER.share(302, 0) == PARTS_CANCEL, "above 150 %"
    assert PER.over([(0, 300), (200, 0), (2, 3)]).share(0, 150) == 0.5, "200 % in sum"
    assert PER.over([(0, 300), (202, 0), (2, 3)]).share(0, 150) == PARTS_CANCEL


@pytest.mark.parametrize(("times", "even"), [((1000, 999), True), ((999, 1000), True), ((1000, 998), False)])
def test_steps_are_even_up_to_a_thousandth(times, even):
    one, other = (SimpleNamespace(count=1, step_time=time) for time in times)
    per = PerStep.of(one, other)
    assert (per.even, per.change) == (even, times[1] - times[0])


def test_steps_of_a_side_without_any_count_as_one():
    found = PerStep.of(SimpleNamespace(count=0, step_time=0), SimpleNamespace(count=4, step_time=400))
    assert found == PerStep(1, 4, 400, even=False)
    assert PerStep.of(*[SimpleNamespace(count=2, step_time=time) for time in (2000, 1990)]).even is False


def test_amounts_have_all_that_is_made_of_them():
    assert PER.amounts(200, 600) == {
        "base_time_ns": 100,
        "candidate_time_ns": 200,
        "base_sum_ns": 200,
        "candidate_sum_ns": 600,
        "diff_ns": 100,
        "ratio": 2.0,
        "step_change_share": 1.0,
    }
    unknown = NotMeasured("no_device_events")
    missing = dict.fromkeys(("diff_ns", "ratio", "step_change_share"), unknown)
    one_sided = {"base_time_ns": unknown, "candidate_time_ns": 200, "base_sum_ns": unknown, "candidate_sum_ns": 600}
    assert PER.amounts(unknown, 600) == one_sided | missing


def test_of_which_differences_more_is_slower():
    assert "slower" in diff().meaning
    assert "slower" not in diff("diff_bytes").meaning
    assert (diff().kind, diff("diff_bytes").kind) == (Kind.CHANGE, Kind.BYTES_CHANGE)


def test_equal_neighbours_among_kernels_are_named_once():
    assert kernel_details([]) is None
    assert kernel_details([("a", 1500), ("b", 250), ("b", 750), ("a", 1)]) == (
        "a [1.500 µs]; b [1.000 µs, 2 times]; a [0.001 µs]"
    )
    assert kernel_details([("a", 1500), ("b", 4500)], 3) == "a [0.500 µs]; b [1.500 µs]"


@pytest.mark.parametrize(("more", "end"), [(0, "k19 [1.000 µs]"), (1, "; … 1 more"), (3, "; … 3 more")])
def test_so_many_kernels_are_named(more, end):
    found = kernel_details([(f"k{number}", 1000) for number in range(NAMED + more)])
    assert found.startswith("k0 [1.000 µs]; k1 [1.000 µs]; ")
    assert found.count("µs") == NAMED == 20
    assert found.endswith(end)


def pair(name, base, candidate):
    """A pair with (time, calls) of both sides."""
    sides = [None if side is None else {"total_ns": side[0], "calls": side[1]} for side in (base, candidate)]
    return Pair({"name": name}, *sides)


ROWS = [
    pair("same", (60, 2), (90, 3)),
    pair("less", (100, 2), None),
    pair("more", (40, 2), (90, 3)),
    pair("fewer", (40, 2), (90, 9)),
]


def test_rows_are_ranked_by_change_per_step_and_then_by_the_next_amount():
    found = ranked(ROWS, PER, "total_ns", "calls")
    # 90·2 − 60·3 = 0; −300; 90·2 − 40·3 = 60 twice, of which one also changes its calls by 12.
    shown = [(row.place, row.pair.shared["name"], row.share) for row in found]
    assert shown == [(1, "less", -300 / 420), (2, "fewer", 60 / 420), (3, "more", 60 / 420), (4, "same", 0.0)]
    assert [row.share for row in ranked(ROWS[:1], PER, "total_ns")] == [None]


def test_a_section_fills_sums_per_step_and_what_is_made_of_both_sides():
    names = ("place", "name", "base_total_ns", "candidate_total_ns", "base_calls", "candidate_calls")
    kinds = (Kind.COUNT, Kind.TEXT, Kind.DURATION, Kind.DURATION, Kind.NUMBER, Kind.NUMBER)
    more = {
        **dict.fromkeys(("base_avg_ns", "candidate_avg_ns"), Kind.DURATION),
        "avg_ratio": Kind.RATIO,
        "match": Kind.TERM,
        "diff_ns": Kind.CHANGE,
        "ratio": Kind.RATIO,
        "change_share": Kind.SHARE,
        "step_change_share": Kind.SHARE,
        "calls_ratio": Kind.RATIO,
    }
    columns = [Column(key, kind, key) for key, kind in (*zip(names, kinds, strict=True), *more.items())]
    found = section("example", "Example", *columns, by=("total_ns", "calls")).fill(ROWS, PER)
    both = 90 * 2 / (40 * 3)
    assert found.rows == (
        (1, "less", 50, None, 1.0, None, 50, None, None, "only_base", -50, 0.0, -300 / 420, -0.5, 0.0),
        (2, "fewer", 20, 30, 1.0, 3.0, 20, 10, 0.5, "both_sides", 10, both, 60 / 420, 0.1, 3.0),
        (3, "more", 20, 30, 1.0, 1.0, 20, 30, 1.5, "both_sides", 10, both, 60 / 420, 0.1, 1.0),
        (4, "same", 30, 30, 1.0, 1.0, 30, 30, 1.0, "both_sides", 0, 1.0, 0.0, 0.0, 1.0),
    )
    single = section("example", "Example", *columns, by="total_ns", per_call=True).fill(ROWS[:1], PER)
    assert single.rows[0][2:6] == (60, 90, 2.0, 3.0)


@pytest.mark.parametrize(
    ("times", "counts", "expected"),
    [
        # Two steps against three: one call a step of 100 becomes two of 150; by number (100 + 150) / 2.
        ((200, 900), (2, 6), (125, 75)),
        # Three calls a step of 150 become two thirds of one of 100: less than a call of 125 each.
        ((900, 200), (6, 2), (-292, -91)),
        ((0, 300), (0, 3), (100, 0)),
        ((200, 0), (2, 0), (-100, 0)),
        ((200, 300), (0, 0), (0, 0)),
        ((200, 600), (0, 0), (0, 100)),
        ((200, 600), (2, 3), (0, 100)),
    ],
)
def test_a_difference_is_made_of_the_number_of_calls_and_of_the_time_of_each(times, counts, expected):
    found = effects(*times, counts, PER)
    assert found == expected
    assert sum(found) == PER.diff(*times)


@pytest.mark.parametrize(
    ("base", "candidate", "change"),
    [
        ((0, 0), (100, 1), "change_new"),
        ((0, 1), (100, 1), "change_longer"),
        ((100, 1), (0, 0), "change_vanished"),
        ((100, 1), (0, 1), "change_shorter"),
        ((100, 1), (200, 2), "change_more"),
        ((200, 2), (100, 1), "change_fewer"),
        # By number (13 + 11) / 2 of 15, just four fifths; then 12 of 16.
        ((11, 1), (26, 2), "change_more"),
        ((11, 1), (27, 2), "change_both"),
        ((26, 2), (11, 1), "change_fewer"),
        # By number (26 + 10) / 2 of 90, so that four fifths are by each; then 67 of 85.
        ((40, 4), (130, 5), "change_longer"),
        ((40, 4), (125, 5), "change_both"),
        ((130, 5), (40, 4), "change_shorter"),
    ],
)
def test_what_changed_is_that_which_makes_most_of_it(base, candidate, change):
    sides = tuple({("compute", "operator", "aten::mm"): Reason(*side, None, None)} for side in (base, candidate))
    table = causes_table(sides, PerStep(1, 1, 100))
    assert table.column("change") == (change,)


def test_causes_are_ordered_by_their_change_and_sum_to_it():
    """Two steps against three."""
    keys = {name: ("compute", "operator", name) for name in "abcd"}
    base = {
        keys["a"]: Reason(200, 2, "m", "x.py(1): f"),
        keys["b"]: Reason(20, 2, None, None),
        keys["d"]: Reason(2, 2, None, None),
    }
    candidate = {
        keys["a"]: Reason(600, 6, "m", None),
        keys["c"]: Reason(90, 3, "n", "y.py(2): g"),
        keys["d"]: Reason(3, 3, None, None),
    }
    table = causes_table((base, candidate), PER)
    columns = (
        "place",
        "contribution",
        "base_time_ns",
        "candidate_time_ns",
        "diff_ns",
        "base_number",
        "candidate_number",
    )
    more = ("base_each_ns", "candidate_each_ns", "change", "number_effect_ns", "each_effect_ns", "module", "frame")
    rows = list(zip(*(table.column(key) for key in (*columns, *more)), strict=True))
    assert rows == [
        (1, "a", 100, 200, 100, 1.0, 2.0, 100, 100, "change_more", 100, 0, "m", "x.py(1): f"),
        (2, "c", 0, 30, 30, 0.0, 1.0, None, 30, "change_new", 30, 0, "n", "y.py(2): g"),
        (3, "b", 10, 0, -10, 1.0, 0.0, 10, None, "change_vanished", -10, 0, None, None),
    ]
    totals = table.totals
    assert (totals["base_sum_ns"], totals["candidate_sum_ns"], totals["diff_ns"]) == (220, 690, 120)


def test_modules_without_a_partner_count_once_without_their_operators_and_what_is_in_none():
    def row(module, op, base, candidate):
        sides = [None if time is None else {"self_ns": time} for time in (base, candidate)]
        return Pair({"module": module, "op": op}, *sides)

    modules = [
        row("a", ALL_OPERATORS, 30, None),
        row("a", "aten::mm", 30, None),
        row("b", ALL_OPERATORS, 10, 60),
        row(OUTSIDE_MODULES, ALL_OPERATORS, 7, None),
    ]
    (table,) = unmatched_table({"modules": modules}, PER)
    assert table.rows == (
        ("section_modules", "side_base", 0.5, 15, 20, 0.75),
        ("section_modules", "side_candidate", 0.0, 0, 20, 0.0),
    )


def test_partners_meet_at_the_first_place_that_both_have():
    base, candidate = ["a1", "b2", "b3", "c4"], ["b3", "a5", "d6"]
    found = list(partners(base, candidate, lambda one: one, lambda one: one[0]))
    assert found == [("b3", "b3"), ("a1", "a5"), ("b2", None), ("c4", None), (None, "d6")]


@pytest.mark.parametrize(
    ("base", "candidate", "how"),
    [
        (None, 5, "new"),
        (5, None, "gone"),
        (100, 110, "same"),
        (100, 112, "grown"),
        (112, 100, "shrunk"),
        (0, 0, "same"),
    ],
)
def test_a_cost_changes_by_more_than_a_tenth_of_the_larger(base, candidate, how):
    assert how_changed(base, candidate) == f"finding_{how}"
