"""Headings of columns that belong to a side of a comparison, for tables that name the side apart."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.locales import Texts
    from traceanalyze.report.model import Column


def side_runs(columns: Sequence[Column]) -> list[tuple[str | None, int]]:
    """Sides of neighbouring columns and how many there are of each, left to right; None: of no side."""
    return [(side, len(list(run))) for side, run in groupby(columns, key=lambda column: column.side)]


def below_side(column: Column, texts: Texts) -> str:
    """Heading of a column without its side; empty where it is nothing else."""
    heading = texts.columns[column.key]
    return heading if column.side is None else heading.removeprefix(texts.messages[column.side]).strip()
