"""What advice on recording is keyed by."""

from __future__ import annotations

import pytest

from traceanalyze.analyses.results import Check
from traceanalyze.model.table import Column, Kind, Table
from traceanalyze.model.vocabulary import Level
from traceanalyze.report.contents.quality import HOST_COMPUTES, doubts, hints

COLUMNS = (Column("count", Kind.COUNT),)
TABLES = (
    *(Table("t", COLUMNS).missing(why) for why in ("no_api", "no_shapes", "no_device_events", "no_shapes")),
    Table("t", COLUMNS).fill(count=[1]),
)


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ((), ("no_api", "no_shapes", "no_device_events")),
        (("no_steps",), ("no_api", "no_shapes", "no_device_events", "no_steps")),
        # What a program without a device cannot record is not asked for.
        (("no_steps", HOST_COMPUTES), ("no_shapes", "no_steps", HOST_COMPUTES)),
    ],
)
def test_each_reason_is_named_once_and_only_what_can_be_recorded(checks, expected):
    told = tuple(Check("Q05", Level.INFO, key) for key in checks)
    assert hints(TABLES, told) == expected
    assert hints(TABLES, told, ascend=True) == tuple(f"{key}.ascend" for key in expected)


def test_checks_are_shown_worst_first_with_the_kinds_of_their_values():
    values = (("time_ns", 5), ("size_bytes", 6), ("share", 1), ("count", 7), ("ratio", 2), ("name", "x"))
    found = doubts(
        (Check("Q09", Level.INFO, "b"), Check("Q02", Level.WARN, "a", values), Check("Q01", Level.INFO, "c"))
    )
    assert [(one.id, one.level.name) for one in found] == [("Q02", "WARN"), ("Q01", "INFO"), ("Q09", "INFO")]
    kinds = [kind for _, kind, _ in found[0].message.values]
    assert kinds == [Kind.DURATION, Kind.BYTES, Kind.SHARE, Kind.COUNT, Kind.RATIO, Kind.TEXT]
