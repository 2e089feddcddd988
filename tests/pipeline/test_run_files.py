"""What tells recordings of different jobs apart, at its boundaries."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from traceanalyze.pipeline.run_files import _contradiction, _difference, _shared, _Traits

YEAR_2026 = 1_767_225_600 * 10**9


def recorded(**changes):
    made = {
        "run": SimpleNamespace(ranks=(0, 1)),
        "kind": ("kineto", 2, "H100"),
        "libraries": {"torch": "2.9"},
        "begin": YEAR_2026,
        "end": YEAR_2026 + 100,
        "work": {"gemm": 60, "relu": 40},
        "talks": False,
    }
    return _Traits(**made | changes)


LATER = {"begin": YEAR_2026 + 100, "end": YEAR_2026 + 200}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (LATER, None),
        (LATER | {"kind": ("kineto", 4, "H100")}, "apart_kind"),
        (LATER | {"libraries": {"torch": "2.8"}}, "apart_libraries"),
        (LATER | {"libraries": {"cann": "8.1"}}, None),
        ({}, "apart_same_time"),
        ({"begin": YEAR_2026 + 99, "end": YEAR_2026 + 200}, "apart_same_time"),
        ({"begin": YEAR_2026 - 100, "end": YEAR_2026}, None),
        ({"begin": YEAR_2026 - 100, "end": YEAR_2026 + 1}, "apart_same_time"),
        ({"talks": True}, None),
        ({"run": SimpleNamespace(ranks=(2, 3))}, None),
        ({"run": SimpleNamespace(ranks=(1, 2))}, "apart_same_time"),
        ({"begin": 5}, None),
        ({"begin": 10**18}, None),
    ],
)
def test_what_contradicts_that_two_recordings_are_of_one_job(changes, reason):
    assert _contradiction(recorded(**changes), recorded()) == reason
    assert _contradiction(recorded(), recorded(**changes)) == reason


@pytest.mark.parametrize(
    ("work", "other", "share"),
    [
        ({"a": 3, "b": 1}, {"a": 1}, 0.75),
        ({"a": 3}, {"b": 1}, 0),
        ({}, {"a": 1}, 1),
        ({"a": 1}, {}, 1),
        ({"a": 2, "b": 2}, {"a": 9, "b": 9}, 1),
    ],
)
def test_the_share_of_the_time_in_what_the_other_has_too(work, other, share):
    assert _shared(work, other) == share


@pytest.mark.parametrize(
    ("work", "other", "reason"),
    [
        ({"a": 60, "b": 40}, {"a": 60, "c": 40}, None),
        ({"a": 59, "b": 41}, {"a": 59, "c": 41}, "apart_work"),
        ({"a": 1}, {"a": 1, "b": 99}, None),
        ({"a": 1, "b": 99}, {"a": 1}, None),
    ],
)
def test_programs_are_alike_from_three_fifths_of_the_time_of_one_of_them_on(work, other, reason):
    assert _difference(recorded(work=work, **LATER), [recorded(work=other)]) == reason


def test_a_job_holds_what_is_like_any_of_its_recordings_and_contradicts_none():
    training, evaluation = recorded(work={"a": 1}), recorded(work={"b": 1}, **LATER)
    one = recorded(work={"b": 1}, begin=YEAR_2026 + 300, end=YEAR_2026 + 400)
    assert _difference(one, [training]) == "apart_work"
    assert _difference(one, [training, evaluation]) is None
    assert _difference(one, [training, recorded(kind=("ascend", 2, ""), **LATER)]) == "apart_kind"
