"""Work without a partner is counted with its time, by section and side."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from tests.comparison.calls import Program
from tests.comparison.make import side_from, unmatched_rows
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.table import NotMeasured


def told(base, candidate, **options):
    found = compare_sides(side_from(base.builder), side_from(candidate.builder), CompareOptions(**options))
    return {
        (row.section, row.side): (row.count, row.time / 1000, row.of_time / 1000)
        for row in unmatched_rows(found)
        if row.section in {"operators", "calls", "kernels"}
    }


BASE = Program().step().op("aten::mm", 10).op("aten::add", 3).op("aten::add", 4).unlinked(50)
CANDIDATE = Program().step().op("aten::mm", 12).op("aten::add", 3).op("aten::mul", 6)


def test_operators_are_told_by_name_and_calls_one_by_one():
    found = told(BASE, CANDIDATE)
    assert found["operators", "base"] == (0, 0.0, 17.0)
    assert found["operators", "candidate"] == (1, 6.0, 21.0)
    assert found["calls", "base"] == (1, 4.0, 17.0)
    assert found["calls", "candidate"] == (1, 6.0, 21.0)
    assert found["kernels", "base"] == (1, 50.0, 67.0)
    assert found["kernels", "candidate"] == (1, 6.0, 21.0)
    assert told(BASE, CANDIDATE, details=False) == {key: row for key, row in found.items() if key[0] != "calls"}


def test_a_side_against_itself_leaves_nothing():
    assert all(row[:2] == (0, 0.0) for row in told(BASE, BASE).values())


def test_sections_that_were_not_asked_for_are_not_counted():
    assert set(told(BASE, CANDIDATE, sections=frozenset({"kernel"}))) == {("kernels", "base"), ("kernels", "candidate")}


def test_a_side_may_have_called_no_operator_in_its_steps():
    b = TraceBuilder()
    b.op("aten::empty", 0, 5)
    b.step(0, 100, 50)
    b.device(110, 20, name="graph")
    found = compare_sides(side_from(BASE.builder), side_from(b), CompareOptions())
    lacking = {(row.section, row.side): row.count for row in unmatched_rows(found)}
    assert lacking["operators", "base"] == 3
    assert lacking["operators", "candidate"] == 0


def said(found):
    """Shares of both sides where they are said to do other work."""
    values = [dict(one.values) for one in found.caveats if one.key == "work_unmatched"]
    return [(each["base_share"], each["candidate_share"]) for each in values]


@pytest.mark.parametrize("swapped", [False, True])
def test_what_any_model_has_does_not_make_models_the_same(swapped):
    """Most of the time of both together is of `add`: of 101 µs 1, of 210 µs 200."""

    def compared(*programs):
        sides = [side_from(program.builder) for program in programs]
        return said(compare_sides(*sides[:: -1 if swapped else 1], CompareOptions()))

    def of(name, length, added):
        return Program().step().op(name, length).op("aten::add", added)

    found = compared(of("x::a", 100, 1), of("x::b", 10, 200))
    shares = 1 / 101, 200 / 210
    assert found == [pytest.approx(shares[::-1] if swapped else shares)]
    # All that one side does, the other does, too, and more: a difference of theirs, unless their modules are others.
    less, more = of("aten::mm", 10, 5), of("aten::mm", 10, 5).op("x::b", 14).op("x::c", 4)
    assert compared(less, more) == []
    less.builder.python("nn.Module: Net_0", 1, 100)
    more.builder.python("nn.Module: Net_0", 1, 100)
    assert compared(less, more) == []
    other = of("aten::mm", 10, 5).op("x::b", 14).op("x::c", 4)
    other.builder.python("nn.Module: Other_0", 1, 100)
    assert compared(less, other) == [pytest.approx((15 / 33, 1) if swapped else (1, 15 / 33))]


def model(*classes, op="aten::mm"):
    """A step of one operator inside modules, one in the other, as deep as there are classes."""
    program = Program().step().op(op, 10)
    for depth, name in enumerate(classes):
        program.builder.python(f"nn.Module: {name}_0", 1 + depth, 98 - 2 * depth)
    return side_from(program.builder)


def test_models_of_which_hardly_a_module_is_common_are_others_whatever_their_operators():
    def told(*sides):
        found = compare_sides(*sides, CompareOptions())
        return [(each.key, dict(each.values)) for each in found.caveats if each.key.startswith("work_")]

    switch, vit = ("Switch", "SwitchStack", "SwitchBlock", "Linear"), ("ViT", "Sequential", "ViTLayer", "Linear")
    others = [("work_modules", {"base": "Switch", "candidate": "ViT"})]
    assert told(model(*switch), model(*vit)) == others
    # The same model in a wrapper, with one layer of another class, as one module, and a renamed one of one module.
    assert told(model(*switch), model("DistributedDataParallel", *switch)) == []
    assert told(model("OptimizedModule", *switch), model(*switch)) == []
    assert told(model(*switch), model(*switch[:2], "Faster", "Linear")) == []
    assert told(model(*switch), model("OptimizedModule")) == []
    assert told(model("Net", "Linear"), model("Other", "Linear")) == []
    # Parts that annotations mark are no modules, so operators tell; those of any model do not make it the same.
    for more, shares in ((0, []), (11, [("work_unmatched", {"base_share": 1.0, "candidate_share": 10 / 21})])):
        parts = Program().step().op("aten::mm", 10).op("x::more", more) if more else Program().step().op("aten::mm", 10)
        for depth, name in enumerate(switch):
            parts.builder.annotation(f"## {name} ##", 1 + depth, 98 - 2 * depth)
        assert told(model(*switch), side_from(parts.builder)) == shares


CHOICES = (
    {},
    {"details": False},
    {"modules": False},
    {"sections": frozenset()},
    {"sections": frozenset({"profiling"}), "details": False},
)


@pytest.mark.parametrize(("name", "same"), [("x::a", True), ("x::b", False)])
def test_whether_the_work_is_the_same_depends_on_no_choice_of_what_is_shown(name, same):
    """All 50 µs, or 10 of 50, are of operators of names that both have; three of the base's calls have no partner."""

    def program(module, *ops):
        made = Program().step()
        for op, length in (*ops, ("x::last", 10)):
            made.op(op, length, kernel=f"{module}_{op}")
        made.builder.python(f"nn.Module: {module}_0", 1, 98)
        return side_from(made.builder)

    base, candidate = program("Net", *4 * [("x::a", 10)]), program("Other", (name, 40))
    found = [compare_sides(base, candidate, CompareOptions(**chosen)) for chosen in CHOICES]
    assert [said(each) for each in found] == [[] if same else [(0.2, 0.2)]] * len(CHOICES)
    assert {each.tables["causes"].absent is None for each in found} == {same}
    alone = {row.side: row.count for row in unmatched_rows(found[0]) if row.section == "calls"}
    assert alone == {"base": 3 if same else 4, "candidate": 0 if same else 1}


@pytest.mark.parametrize("details", [True, False])
def test_work_of_which_less_than_half_has_a_partner_is_other_work(details):
    """10 + 20 of 57 µs are of an operator that both sides have; 10 + 12 of 49 are less than half."""

    def compared(length, around=("x::one", "x::other"), **more):
        base = Program().step().op("aten::mm", 10).op(around[0], inside=[("x::a", 15)])
        candidate = Program().step().op("aten::mm", length).op(around[1], inside=[("x::b", 12)])
        options = CompareOptions(details=details, **more)
        found = compare_sides(side_from(base.builder), side_from(candidate.builder), options)
        return said(found), found.tables["causes"]

    shares, causes = compared(20)
    assert shares == []
    assert len(causes)
    shares, causes = compared(12)
    assert shares == [(10 / 25, 12 / 24)]
    assert (len(causes), causes.absent) == (0, NotMeasured("other_work"))
    shares, causes = compared(12, rank_anyway=True)
    assert len(shares) == 1
    assert len(causes)
    # Two ways to do what one operator is called for are the same work.
    assert compared(12, around=("x::whole", "x::whole"))[0] == []
