"""Work that found no partner on the other side, with its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Message, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.comparison.results import Comparison, Unmatched
    from traceanalyze.report.assembly.compare.per_step import PerStep

_COLUMNS = (
    Column("section", Kind.TERM),
    Column("side", Kind.TERM),
    Column("number", Kind.NUMBER),
    Column("unmatched_ns", Kind.DURATION),
    Column("of_ns", Kind.DURATION),
    Column("unmatched_share", Kind.SHARE),
)


def unmatched_table(comparison: Comparison, per: PerStep) -> Table:
    """One row a section and side."""
    rows = tuple(
        (
            f"section_{row.section}",
            f"side_{row.side}",
            per.base_number(row.count) if row.side == "base" else per.candidate_number(row.count),
            per.base(row.time) if row.side == "base" else per.candidate(row.time),
            per.base(row.of_time) if row.side == "base" else per.candidate(row.of_time),
            row.time / row.of_time if row.of_time else 0.0,
        )
        for row in comparison.unmatched
    )
    return table_of_rows("unmatched", _COLUMNS, rows, detail=True)


def matched_sentences(comparison: Comparison) -> Iterator[Message]:
    """Of every section how much of both sides' time found its partner."""
    by_section: dict[str, dict[str, Unmatched]] = {}
    for row in comparison.unmatched:
        by_section.setdefault(row.section, {})[row.side] = row
    for section, sides in by_section.items():
        shares = {side: 1 - row.time / row.of_time for side, row in sides.items() if row.of_time}
        if set(shares) == {"base", "candidate"}:
            foreign = section == "kernels" and comparison.base.vendor != comparison.candidate.vendor
            yield Message(
                "compare_matched_by_name" if foreign else "compare_matched",
                (
                    ("section", Kind.TERM, f"section_{section}"),
                    ("base", Kind.SHARE, shares["base"]),
                    ("candidate", Kind.SHARE, shares["candidate"]),
                ),
            )
