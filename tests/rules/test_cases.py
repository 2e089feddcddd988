"""Every rule fires on what it is about and is silent on what looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.make import Silent, answer, busy, case_modules, finding, judged, known, program, said, us
from traceanalyze.rules.across_ranks import RANKS
from traceanalyze.rules.finding import Severity
from traceanalyze.rules.registry import every_rule
from traceanalyze.rules.rule import FAMILIES

CASES = case_modules()
BY_ID = {rule.id: rule for rule in every_rule()}
FIRES = [
    (rule, place, trace) for cases in CASES for rule, all_ in cases.FIRES.items() for place, trace in enumerate(all_)
]
SILENT = [
    (rule, place, trace) for cases in CASES for rule, all_ in cases.SILENT.items() for place, trace in enumerate(all_)
]


def label(value):
    return str(value) if isinstance(value, str | int) else ""


@pytest.mark.parametrize(("rule", "place", "case"), FIRES, ids=label)
def test_a_rule_says_what_it_is_about_and_what_it_costs_and_where(rule, place, case):
    facts = known(case.program)
    found = said(facts, rule, case.given)
    assert found is not None
    assert found.rule == rule
    assert found.bound is None or (found.saving or 0) <= found.bound
    expected = {key: getattr(case, key) for key in answer(facts, found)}
    assert answer(facts, found) == expected
    is_silent_from_its_thresholds_on(facts, rule, case)


def is_silent_from_its_thresholds_on(facts, rule, case):
    """One fires just at it and is silent just beyond; what an option changes of the price, it changes as told."""
    defaults = BY_ID[rule].defaults()
    for name, (default, fires, silent) in case.options.items():
        assert defaults[name] == default
        assert said(facts, rule, {**case.given, name: fires}) is not None, f"{name} = {fires}"
        assert said(facts, rule, {**case.given, name: silent}) is None, f"{name} = {silent}"
    for name, (default, other, price) in case.prices.items():
        assert defaults[name] == default
        found = said(facts, rule, {**case.given, name: other})
        assert found is not None
        assert us(found.bound if found.saving is None else found.saving) == price


@pytest.mark.parametrize(("rule", "place", "case"), SILENT, ids=label)
def test_a_rule_is_silent_on_what_looks_like_it(rule, place, case):
    if isinstance(case, Silent):
        assert said(known(case.program), rule, case.options) is None
    else:
        assert finding(case, rule) is None


def test_every_rule_of_a_family_with_cases_has_some_in_both_directions():
    families = {Path(cases.__file__).parent.name for cases in CASES}
    # Rules about ranks have a test in `rank/test_run_rules.py`.
    wanted = {rule.id for rule in every_rule() if FAMILIES[rule.family] in families and RANKS not in rule.needs}
    for side in ("FIRES", "SILENT"):
        assert {key for cases in CASES for key in getattr(cases, side)} == wanted


def test_every_option_of_a_rule_has_a_case_on_both_sides():
    # Of attention no hand-made trace has what its formula asks for.
    # What new workers cost is the low end of a range.
    # What kernels without matrix units reach is bounded by a roofline, which no hand-made product is far from.
    others = {("KRN119", "attention"), ("DAT101", "workers"), ("KRN102", "reached")}
    shown = {(rule, name) for rule, _, case in FIRES for name in (*case.options, *case.prices)}
    wanted = {(rule.id, name) for rule in every_rule() if RANKS not in rule.needs for name in rule.options}
    assert wanted - shown == others


def test_a_healthy_program_has_no_finding_above_a_note():
    assert [one.rule for one in judged(program(busy)).findings if one.severity > Severity.INFO] == []
