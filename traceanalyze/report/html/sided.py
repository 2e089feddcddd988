"""Headings of tables with columns of two sides: which side it is stands once, above its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.report.html.text import element, safe
from traceanalyze.report.side_headings import side_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.locales import Texts
    from traceanalyze.report.model import Column


def sides_above(columns: Sequence[Column], texts: Texts, *, more: int = 0) -> str:
    """A line of headings over those of the columns; empty where no side has several columns beside each other.

    Args:
        columns: Those shown, left to right.
        texts: Words of the language.
        more: Columns after these that no side has.
    """
    runs = side_runs(columns)
    if not any(side is not None and count > 1 for side, count in runs):
        return ""
    cells = [
        element("td", "", colspan=str(count))
        if side is None
        else element("th", safe(texts.messages[side]), scope="colgroup", colspan=str(count), class_=f"side {side}")
        for side, count in [*runs, *([(None, more)] if more else [])]
    ]
    return f"<tr>{''.join(cells)}</tr>"
