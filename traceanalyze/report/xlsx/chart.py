"""The split of every step as stacked columns, drawn from the sheet of the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.report.xlsx.fields import fields_of
from traceanalyze.report.xlsx.formats import DIM, PARTS
from traceanalyze.report.xlsx.rows import HEADER

if TYPE_CHECKING:
    from xlsxwriter.chart_column import ChartColumn

    from traceanalyze.report.xlsx.page import Book
    from traceanalyze.report.xlsx.plan import Sheet

HEIGHT = 260


def step_chart(book: Book, split: Sheet, steps: Sheet, wide: int) -> ChartColumn | None:
    """A chart of the parts named in the split; None where no step has any."""
    fields = fields_of(steps.table, steps.rows, steps.formatter)
    by_key = {field.column.key: col for col, field in enumerate(fields)}
    first, last = HEADER + 1, HEADER + len(steps.rows)
    chart = book.workbook.add_chart({"type": "column", "subtype": "stacked"})
    drawn = 0
    for part in split.table.column("part"):
        col = by_key.get(f"{part}_ns")
        if col is None or not any(row[fields[col].index] for row in steps.rows):
            continue
        drawn += 1
        colour = PARTS.get(str(part))
        chart.add_series(
            {
                "name": book.texts.terms.get(str(part), str(part)),
                "categories": [steps.name, first, 0, last, 0],
                "values": [steps.name, first, col, last, col],
                "gap": 40,
                **({"fill": {"color": colour}} if colour else {}),
            }
        )
    if not drawn:
        return None
    unit = next((field.unit for field in fields if field.column.key.endswith("_ns")), "")
    chart.set_title({"name": book.words["step_chart"], "name_font": {"size": 11, "bold": True}})
    chart.set_x_axis({"name": fields[0].heading, "name_font": {"bold": False, "color": DIM}})
    chart.set_y_axis(
        {
            "name": unit,
            "min": 0,
            "name_font": {"bold": False, "color": DIM, "rotation": -90},
            "num_format": "#,##0",
            "major_gridlines": {"visible": True, "line": {"color": "#E0E0E0"}},
            "line": {"none": True},
        }
    )
    chart.set_legend({"position": "bottom"})
    chart.set_size({"width": wide, "height": HEIGHT})
    return chart
