"""A comparison as a page of text: verdict, both sides, the overall table, the causes, how far to trust them."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyze.frozen import frozen
from traceanalyze.locales import Texts
from traceanalyze.model.table import Message, NotMeasured, Table
from traceanalyze.report.console.style import Style, display_width, padded, printable
from traceanalyze.report.console.tables import WIDE, pick, table_lines
from traceanalyze.report.format import Formatter
from traceanalyze.report.model import CompareReport
from traceanalyze.report.view import OF_WEIGHT, Detail, View, distinct_names, halves, shallow, with_columns

_FIRST = ("overall_metrics", "memory_peak", "link_rates")
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
    return _Page(report, formatter, style, view or View()).text()


@frozen
class _Page:
    report: CompareReport
    formatter: Formatter
    style: Style
    view: View

    def text(self) -> str:
        report = self.report
        verdict = self.formatter.sentences(report.verdict)
        blocks = [self._painted(verdict, "bold")]
        if self.view.detail > Detail.QUIET:
            blocks.append("\n".join([*self._sides(), *(self._sentence(note) for note in report.notes)]))
            blocks += self._tables()
            blocks += self._listed("advice", report.advice, "")
            blocks += self._missing()
            blocks += self._listed("caveats", report.caveats, "yellow")
            blocks += self._listed("quality", report.quality, "")
        return "\n\n".join(blocks) + "\n"

    def _sides(self) -> Iterator[str]:
        """Base and candidate, a line each."""
        words = self.formatter.texts.messages
        width = max(display_width(words["base"]), display_width(words["candidate"]))
        names = distinct_names(*self.report.paths)
        for key, path, pieces in zip(("base", "candidate"), names, self.report.sides, strict=True):
            name = self.style.shorten(printable(path), self.style.width // 2)
            rest = [self.formatter.message(piece) for piece in pieces if piece.key != "side_path"]
            label = f"{padded(words[key], width)}  "
            text = self.style.wrap(printable(" · ".join([name, *rest])), " " * display_width(label), first=label)
            yield "\n".join(self.style.paint(line, "dim") for line in text.splitlines())

    def _tables(self) -> Iterator[str]:
        tables = self.report.tables
        first = [tables[key] for key in _FIRST if key in tables and _has_rows(tables[key])]
        if self.view.detail < Detail.VERBOSE:
            first = [shallow(table) for table in first]
        overall = any(table.key == "overall_metrics" for table in first)
        for table in first if overall else (tables["step_difference"], *first):
            yield self._table(table)
        yield from self._causes(tables["causes"])
        if self.view.detail == Detail.VERBOSE:
            shown = {*_FIRST, *_NEVER} | (set() if overall else {"step_difference"})
            for table in self.report.listing:
                if table.key not in shown and _has_rows(table):
                    yield self._table(_brief(table))

    def _causes(self, causes: Table) -> Iterator[str]:
        """Slower and faster apart; nothing is said of causes where nothing differs."""
        everything = self.view.detail == Detail.VERBOSE
        for half in halves(causes, least=0 if everything else OF_WEIGHT):
            if half.weighty:
                yield self._table(half.table, half.first(self.view.top))
            else:
                yield self.formatter.texts.messages[f"no_{half.key}"]

    def _table(self, table: Table, top: int | None = None) -> str:
        picked = pick(table, top or self.view.top, everything=self.view.detail == Detail.VERBOSE)
        words = self.formatter.texts.messages
        lines = [self._painted(self.formatter.title(table), "bold")]
        lines += table_lines(table, picked, self.formatter, self.style)
        if picked.left_out:
            counts = {"count": picked.left_out, "all": len(picked.rows) + picked.left_out}
            lines.append(self._painted(words["more_rows"].format(**counts), "dim"))
        missing = {value.reason: None for row in picked.rows for value in row if isinstance(value, NotMeasured)}
        if missing:
            lines.append(self._painted(self.formatter.legend(missing), "dim"))
        return "\n".join([*lines, *(self._sentence(note) for note in table.notes)])

    def _missing(self) -> Iterator[str]:
        """Sections that cannot be compared, each with its reason, once."""
        texts = self.formatter.texts
        reasons: dict[str, list[str]] = {}
        for table in self.report.listing:
            if isinstance(table.rows, NotMeasured):
                reasons.setdefault(texts.reasons[table.rows.reason], []).append(self.formatter.topic(table))
        if reasons:
            items = [self.formatter.said_of(titles, reason) for reason, titles in reasons.items()]
            yield self._items("not_compared", items, "")

    def _listed(self, title: str, sentences: tuple[Message, ...], colour: str) -> Iterator[str]:
        if sentences:
            yield self._items(title, [printable(self.formatter.message(item)) for item in sentences], colour)

    def _items(self, title: str, items: list[str], colour: str) -> str:
        wrapped = [self.style.wrap(item, "  ", first="- ") for item in items]
        lines = [self.style.paint(line, colour) for item in wrapped for line in item.splitlines()]
        return "\n".join([self.style.paint(self.formatter.texts.messages[title], "bold"), *lines])

    def _sentence(self, message: Message) -> str:
        return self.style.wrap(printable(self.formatter.message(message)))

    def _painted(self, text: str, colour: str) -> str:
        lines = self.style.wrap(printable(text)).splitlines()
        return "\n".join(self.style.paint(line, colour) for line in lines)


def _brief(table: Table) -> Table:
    """The columns that tell most."""
    keys = [column.key for column in table.columns]
    chosen = [keys.index(key) for key in _BRIEF.get(table.key, "").split()]
    return with_columns(table, chosen) if chosen else table


def _has_rows(table: Table) -> bool:
    return not isinstance(table.rows, NotMeasured) and bool(table.rows)
