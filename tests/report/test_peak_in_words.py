"""The sentence on the peak with what a trace tells about its place."""

from __future__ import annotations

import pytest

from tests.declared import said
from traceanalyze.analyses.memory.in_trace import PLACES, InTrace
from traceanalyze.model.table import Kind, Message, NotMeasured, Table
from traceanalyze.report.contents.snapshot import _single, with_places

SIZES = (("requested", Kind.MEMORY, 5), ("reserved", Kind.MEMORY, 6))
STEP = ("step", Kind.TEXT, "3")
PEAK = Message(said("memory_peak_step"), (*SIZES, STEP))
KEYS = ("memory", "memory_moments", "free_memory", "memory_at_peak")
OTHER = Message(said("memory_state"), SIZES)


def verdict(sentence, found):
    rank = _single("x.pickle", "about_snapshot", 2, (sentence, OTHER), (PLACES, PLACES)).ranks[0]
    object.__setattr__(rank, "tables", tuple(Table(key, ()) for key in KEYS))
    made = with_places(rank, found)
    assert [table.key for table in made.tables] == [*KEYS[:2], PLACES.key, *KEYS[2:]]
    assert made.verdict_messages[1] is OTHER
    return made.verdict_messages[0].key, made.verdict_messages[0].values


def placed(inside=True, moment="moment_peak", **place):
    row = dict.fromkeys(PLACES.keys) | {"moment": moment, "count": 1} | place
    return InTrace("absolute", 0, PLACES.fill_records([row]), (inside,), 0, 0)


@pytest.mark.parametrize(
    ("place", "key", "told"),
    [
        (
            {"step": "3", "phase": "phase_forward", "op": "aten::mm"},
            "step_phase_op",
            ("3", "phase_forward", "aten::mm"),
        ),
        ({"step": "3", "phase": "phase_recompute"}, "step_phase", ("3", "phase_backward")),
        ({"phase": "phase_zero_grad", "op": "aten::mm"}, "phase_op", ("phase_optimizer", "aten::mm")),
        ({"phase": "phase_other", "op": "aten::mm"}, "op", ("aten::mm",)),
        ({"step": "3", "phase": "phase_unknown"}, "step", ("3",)),
    ],
)
def test_the_peak_is_told_with_step_phase_and_operator_as_far_as_known(place, key, told):
    found, values = verdict(PEAK, placed(**place))
    assert found == f"memory_peak_at_{key}"
    assert values[:2] == SIZES
    assert tuple(value for _, _, value in values[2:]) == told


@pytest.mark.parametrize(
    "found",
    [
        NotMeasured("clocks_do_not_meet"),
        placed(),
        placed(phase="phase_other"),
        placed(inside=False, op="aten::mm"),
        placed(moment="moment_oom", op="aten::mm"),
        InTrace("absolute", 0, PLACES.fill_records([]), (), 0, 0),
    ],
)
def test_without_a_place_the_sentence_stays(found):
    assert verdict(PEAK, found) == (PEAK.key, PEAK.values)


def test_another_sentence_stays():
    other = Message(said("timeline_peak"), SIZES)
    assert verdict(other, placed(op="aten::mm")) == (other.key, SIZES)
