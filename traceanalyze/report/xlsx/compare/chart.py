"""The parts of both steps side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.report.xlsx.compare.plan import SUMMARY
from traceanalyze.report.xlsx.fields import fields_of
from traceanalyze.report.xlsx.formats import DIM, SIDE_COLOURS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlsxwriter.chart_column import ChartColumn

    from traceanalyze.report.xlsx.page import Book
    from traceanalyze.report.xlsx.plan import Sheet

HEIGHT, ROW_PIXELS = 260, 20
_CHAR_PIXELS, _CELL_PADDING = 7, 5


def parts_chart(book: Book, parts: Sheet, first: int, widths: Sequence[int]) -> ChartColumn:
    """Two columns a part, drawn from the table of parts that begins in row `first` of the summary."""
    fields = fields_of(parts.table, parts.rows, parts.formatter)
    last = first + len(parts.rows) - 1
    chart = book.workbook.add_chart({"type": "column"})
    unit = ""
    for col, field in enumerate(fields):
        if field.column.side is not None:
            unit = field.unit
            chart.add_series(
                {
                    "name": book.words[field.column.side],
                    "categories": [SUMMARY, first, 0, last, 0],
                    "values": [SUMMARY, first, col, last, col],
                    "gap": 60,
                    "fill": {"color": SIDE_COLOURS[field.column.side]},
                }
            )
    chart.set_title({"name": book.words["compare_chart"], "name_font": {"size": 11, "bold": True}})
    chart.set_y_axis(
        {
            "name": unit,
            "min": 0,
            "name_font": {"bold": False, "color": DIM, "rotation": -90},
            "num_format": "#,##0.###",
            "major_gridlines": {"visible": True, "line": {"color": "#E0E0E0"}},
            "line": {"none": True},
        }
    )
    chart.set_legend({"position": "bottom"})
    chart.set_size({"width": sum(width * _CHAR_PIXELS + _CELL_PADDING for width in widths), "height": HEIGHT})
    return chart
