"""Which sheets the workbook of a comparison has: named as in msprof-analyze, where that has them."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyze.frozen import frozen
from traceanalyze.locales import Texts
from traceanalyze.model.table import NotMeasured, Table
from traceanalyze.report.format import Formatter
from traceanalyze.report.model import CompareReport
from traceanalyze.report.view import distinct_names
from traceanalyze.report.xlsx.plan import MAX_ROWS, Sheet
from traceanalyze.report.xlsx.text import SheetNames

SUMMARY = "Summary"
IN_SUMMARY = ("step_difference", "memory_peak", "link_rates")
IN_PARAMETERS = ("compare_sides", "compare_options")
_FIRST = ("causes",)


@frozen
class ComparePlan:
    """The workbook."""

    sheets: tuple[Sheet, ...]
    """In their order, those that have nothing to show among them, without a name."""
    in_summary: tuple[Sheet, ...]
    in_parameters: tuple[Sheet, ...]
    columns: str
    parameters: str

    def sheet(self, key: str) -> Sheet | None:
        """Sheet of a table, if it is there and has rows."""
        every = (*self.sheets, *self.in_summary, *self.in_parameters)
        return next((sheet for sheet in every if sheet.table.key == key and sheet.rows), None)

    @property
    def listed(self) -> Iterator[tuple[Sheet, str]]:
        """Every table that has rows, with the sheet that shows it."""
        for sheets, where in ((self.in_summary, SUMMARY), (self.sheets, ""), (self.in_parameters, self.parameters)):
            yield from ((sheet, sheet.name or where) for sheet in sheets if sheet.rows)


def compare_plan(report: CompareReport, texts: Texts) -> ComparePlan:
    """Names and contents of all sheets."""
    names, formatter = SheetNames(), Formatter(texts, report.resolution_ns)
    names.take(SUMMARY)
    columns, parameters = names.take("Columns"), names.take("Parameters")
    groups = tuple(
        (side, texts.messages[f"group_{side}"].format(path=path))
        for side, path in zip(("base", "candidate"), distinct_names(*report.paths), strict=True)
    )
    elsewhere = {*IN_SUMMARY, *IN_PARAMETERS}
    order = sorted(report.listing, key=lambda table: table.key not in _FIRST)
    return ComparePlan(
        tuple(_sheet(table, formatter, groups, names) for table in order if table.key not in elsewhere),
        tuple(_sheet(table, formatter, groups, None) for table in order if table.key in IN_SUMMARY),
        tuple(_sheet(table, formatter, groups, None) for table in order if table.key in IN_PARAMETERS),
        columns,
        parameters,
    )


def _sheet(table: Table, formatter: Formatter, groups: tuple[tuple[str, str], ...], names: SheetNames | None) -> Sheet:
    if isinstance(table.rows, NotMeasured) or not table.rows:
        return Sheet(table, formatter, None, ())
    name = names.take(_camel(table.key)) if names is not None else None
    return Sheet(table, formatter, name, table.rows[:MAX_ROWS], max(len(table.rows) - MAX_ROWS, 0), groups)


def _camel(key: str) -> str:
    """`operator_compare_statistic` as msprof-analyze writes it."""
    return "".join(word.capitalize() for word in key.split("_"))
