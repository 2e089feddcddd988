"""What the script that makes mutants changes, and what it leaves alone."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests import mutants

RULE = Path("traceanalyze/rules/kernel/wave_tail.py")


def test_operators_numbers_and_returned_values_change_one_at_a_time():
    made = [(one.before, one.after) for one in mutants.mutants_of(RULE)]
    assert ("waves > 1", "(waves >= 1)") in made
    assert ("0.2", "1.2") in made
    assert ("waves / np.ceil(waves)", "(waves * np.ceil(waves))") in made


def test_annotations_and_texts_stay():
    parsed = [ast.parse(one.before, mode="eval").body for one in mutants.mutants_of(RULE)]
    assert not [one for one in parsed if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    assert not [one for one in mutants.mutants_of(RULE) if one.line == 25 or "Findings" in one.before]


def test_every_mutant_can_be_compiled():
    source = (mutants.ROOT / RULE).read_bytes()
    for one in mutants.mutants_of(RULE):
        compile(source[: one.start] + one.after.encode() + source[one.end :], str(RULE), "exec")


def test_equivalents_are_mutants_of_today_with_a_reason_and_few():
    known = mutants.equivalents()
    files = {Path(name.partition(":")[0]) for name in known}
    made = [one.name for file in files for one in mutants.mutants_of(file)]
    assert set(known) <= set(made)
    assert all(known.values())
    for room, count in Counter(file.parts[1] for file in (Path(name.partition(":")[0]) for name in known)).items():
        inside = [path.relative_to(mutants.ROOT) for path in (mutants.ROOT / "traceanalyze" / room).rglob("*.py")]
        assert count <= 0.05 * sum(1 for path in inside for _ in mutants.mutants_of(path))


def test_tests_that_name_a_rule_or_whose_cases_do_come_first():
    near, others = mutants.tests_of(RULE)
    assert "tests/rules/test_cases.py" in near
    assert "tests/rules/test_registry.py" in others
    assert mutants.words_of(RULE)[0] == "KRN103"
