"""What could not be judged, and which option of the profiler would show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.causes.parts import spans
from traceanalyze.model.table import Column, Kind, Message, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.causes.results import Postmortem
    from traceanalyze.model.table import Row

OPTIONS = frozenset(
    {
        "no_device_events",
        "no_api",
        "no_cann_calls",
        "no_host_ops",
        "no_python",
        "no_shapes",
        "no_memory_records",
        "no_snapshot",
        "no_collective_metadata",
        "no_environment",
        "no_launch_configuration",
        "no_other_ranks",
        "ranks_missing",
        "few_steps_for_stragglers",
        "no_common_steps",
        "unknown_capacity",
        "no_recorded_pauses",
    }
)
"""Reasons for which there is something to record or to say."""
_COLUMNS = (
    Column("rules", Kind.COUNT),
    Column("because_of", Kind.TERM),
    Column("record_with", Kind.TERM),
    Column("on_ranks", Kind.TEXT, minor=True),
    Column("rule_ids", Kind.NAME, minor=True),
)


def unjudged_table(found: Postmortem, platform: str) -> Table:
    """One row a reason, that which hides most first."""
    rows = tuple(
        (
            len(one.rules),
            f"reason_{one.reason}",
            f"option_{one.reason}.{platform}" if one.reason in OPTIONS else None,
            spans([label for label in one.ranks if not label.startswith("?")]) or None,
            ", ".join(one.rules),
        )
        for one in found.unjudged
    )
    return table_of_rows("not_judged", _COLUMNS, rows, notes=tuple(map(_note, rows)), told=True)


def _note(row: Row) -> Message:
    count, reason, option = row[:3]
    values = ("count", Kind.COUNT, count), ("reason", Kind.TERM, reason)
    if option is None:
        return Message("not_judged", values)
    return Message("not_judged_show", (*values, ("option", Kind.TERM, option)))
