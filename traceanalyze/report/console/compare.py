"""A comparison as a page of text: verdict, both sides, the overall table, the causes, how far to trust them."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyze.locales import Texts
from traceanalyze.model.table import Table
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console import Printer
from traceanalyze.report.console.style import Style, display_width, padded
from traceanalyze.report.console.tables import WIDE
from traceanalyze.report.format import Formatter, printable
from traceanalyze.report.model import CompareReport
from traceanalyze.report.view import (
    OF_WEIGHT,
    OVERVIEW,
    View,
    distinct_names,
    halves,
    overview,
    shallow,
    with_columns,
)

_BRIEF = {
    "communication_compare": (
        "collective group size_bytes base_total_ns candidate_total_ns diff_ns ratio exposed_diff_ns base_calls "
        "candidate_calls"
    ),
    "module_compare_statistic": (
        "module op base_self_ns candidate_self_ns self_diff_ns ratio base_total_ns direction_of_pass"
    ),
    "module_compare": "module base_op base_self_ns candidate_self_ns self_diff_ns ratio candidate_op direction_of_pass",
    "operator_compare_statistic": "op base_device_ns candidate_device_ns diff_ns ratio base_calls candidate_calls",
    "operator_compare": "order base_op candidate_op base_device_ns candidate_device_ns diff_ns ratio",
    "memory_compare_statistic": "op base_bytes candidate_bytes diff_bytes ratio base_calls candidate_calls",
    "memory_compare": "order base_op base_size_bytes candidate_op candidate_size_bytes diff_size_bytes ratio",
    "api_compare": "api base_self_ns candidate_self_ns self_diff_ns self_ratio base_calls candidate_calls",
    "kernel_compare": (
        "kernel base_total_ns candidate_total_ns diff_ns total_ratio base_calls candidate_calls work shapes"
    ),
    "kernel_type_compare": "kernel_type base_total_ns candidate_total_ns diff_ns total_ratio work",
}
"""Columns that tell most; the others are in the workbook and in JSON."""
_NEVER = ("compare_sides", "compare_options", "causes")


def render(report: CompareReport, texts: Texts, style: Style, view: View | None = None) -> str:
    """The comparison as text, ending in a newline."""
    formatter = Formatter(texts, report.resolution_ns, parts=2 if style.width >= WIDE else 1)
    return "\n\n".join(_blocks(report, Printer(formatter, style, view or View()))) + "\n"


def _blocks(report: CompareReport, printer: Printer) -> Iterator[str]:
    formatter = printer.formatter
    yield printer.verdict(report.verdict)
    if printer.view.detail == Detail.QUIET:
        return
    notes = [printer.style.wrap(printable(formatter.message(note))) for note in report.notes]
    yield "\n".join([*_sides(report, printer), *notes])
    yield from _tables(report, printer)
    yield from printer.listed("advice", [formatter.message(each) for each in report.advice])
    yield from printer.listed("not_compared", formatter.absent(report.listing))
    yield from printer.listed("caveats", [formatter.message(each) for each in report.caveats], "yellow")
    yield from printer.listed("quality", [formatter.message(each) for each in report.quality])


def _sides(report: CompareReport, printer: Printer) -> Iterator[str]:
    """Base and candidate, a line each."""
    words, style = printer.formatter.texts.messages, printer.style
    width = max(display_width(words["base"]), display_width(words["candidate"]))
    names = distinct_names(*report.paths)
    for key, path, pieces in zip(("base", "candidate"), names, report.sides, strict=True):
        name = style.shorten(printable(path), style.width // 2)
        rest = [printer.formatter.message(piece) for piece in pieces if piece.key != "side_path"]
        label = f"{padded(words[key], width)}  "
        text = style.wrap(printable(" · ".join([name, *rest])), " " * display_width(label), first=label)
        yield "\n".join(style.paint(line, "dim") for line in text.splitlines())


def _tables(report: CompareReport, printer: Printer) -> Iterator[str]:
    tables, everything = report.tables, printer.view.detail == Detail.VERBOSE
    first = overview(tables)
    for table in first:
        yield printer.table(table if everything else shallow(table))
    # Slower and faster apart; nothing is said of causes where nothing differs.
    for half in halves(tables["causes"], least=0 if everything else OF_WEIGHT):
        if half.weighty:
            yield printer.table(half.table, half.first(printer.view.top))
        else:
            yield printer.formatter.texts.messages[f"no_{half.key}"]
    shown = {*OVERVIEW, *_NEVER, first[0].key}
    for table in report.listing if everything else ():
        if table.key not in shown and len(table):
            yield printer.table(_brief(table))


def _brief(table: Table) -> Table:
    """The columns that tell most."""
    chosen = [table.keys.index(key) for key in _BRIEF.get(table.key, "").split()]
    return with_columns(table, chosen) if chosen else table
