"""A comparison as a page: verdict, both sides, the way from one step to the other, causes, then all tables."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, cast

from traceanalyze.frozen import frozen
from traceanalyze.report.format import Formatter
from traceanalyze.report.html.frame import document
from traceanalyze.report.html.sections import listed, missing, short_title, table_section
from traceanalyze.report.html.tables import rows_of
from traceanalyze.report.html.text import element, safe, sentence
from traceanalyze.report.html.waterfall import waterfall
from traceanalyze.report.model import Kind, Message
from traceanalyze.report.paths import told_apart
from traceanalyze.report.shortened import halves, with_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.locales import Texts
    from traceanalyze.report.html.frame import Place
    from traceanalyze.report.model import CompareReport, Table, Value

MAX_CAUSES = 10
"""Causes shown at once in each direction."""
MAX_TEXT = 300
"""Letters of a name: lists of kernels may be far longer, and nobody reads them."""
_PARTS = 12
_ID = "compare"
_OPEN = ("overall_metrics", "memory_peak", "link_rates")
"""Tables that are read from top to bottom; the others are opened."""
_LAST = ("compare_sides", "compare_options")


def render(report: CompareReport, texts: Texts) -> str:
    """The comparison as one HTML document."""
    formatter = Formatter(texts, report.resolution_ns, _PARTS)
    page = _Page(report, formatter, told_apart(*report.paths))
    body = element("article", "\n".join(page.blocks()))
    title = f"traceanalyze · {page.name}"
    return document(title, body, page.contents, version=f"traceanalyze {report.version}", texts=texts)


@frozen
class _Page:
    report: CompareReport
    formatter: Formatter
    names: tuple[str, str]
    contents: list[Place] = field(default_factory=list)
    """What the page holds, filled while it is written."""

    @property
    def name(self) -> str:
        return " → ".join(self.names)

    def blocks(self) -> Iterator[str]:
        """Everything between the list of contents and the end."""
        report, words = self.report, self.formatter.texts.messages
        yield self._heading("h1", _ID, self.name, 1)
        yield element("p", sentence(self.formatter.sentences(report.verdict)), class_="verdict")
        yield self._sides()
        for note in report.notes:
            yield element("p", sentence(self.formatter.message(note)))
        for caveats in self._sentences("caveats", report.caveats):
            yield element("section", caveats, class_="caveats")
        yield from self._headline()
        yield from self._causes()
        yield from self._sentences("advice", report.advice)
        yield from self._sections()
        sections = [table for table in report.listing if table.key not in {"causes", *_LAST}]
        absent = list(missing(sections, self.formatter))
        if absent:
            yield self._heading("h3", f"{_ID}-missing", words["not_compared"], 3) + listed(absent)
        yield from self._sentences("quality", report.quality)
        for key in _LAST:
            if rows_of(report.tables[key]):
                yield self._table(replace(report.tables[key], detail=True))

    def _sentences(self, key: str, sentences: Sequence[Message]) -> Iterator[str]:
        """Sentences as a list under their heading; nothing where there are none."""
        if sentences:
            heading = self._heading("h3", f"{_ID}-{key}", self.formatter.texts.messages[key], 3)
            yield heading + listed([self.formatter.message(item) for item in sentences])

    def _heading(self, tag: str, at: str, title: str, level: int) -> str:
        self.contents.append((level, at, title))
        return element(tag, safe(title), id=at)

    def _sides(self) -> str:
        """Which is which; the whole path on demand."""
        words = self.formatter.texts.messages
        found = []
        for key, path, name, pieces in zip(
            ("base", "candidate"), self.report.paths, self.names, self.report.sides, strict=True
        ):
            rest = [sentence(self.formatter.message(piece)) for piece in pieces if piece.key != "side_path"]
            label = element("dt", safe(words[key]))
            found.append(label + element("dd", " · ".join([element("strong", safe(name), title=path), *rest])))
        return element("dl", "".join(found), class_="sides")

    def _headline(self) -> Iterator[str]:
        """The way from one step to the other, and the tables that say most."""
        tables = self.report.tables
        parts = tables["step_difference"]
        chart = waterfall(parts, tables["compare_sides"], self.formatter)
        if chart or "overall_metrics" not in tables:
            yield self._table(replace(parts, detail=False), chart)
        for key in _OPEN:
            if key in tables and rows_of(tables[key]):
                yield self._table(replace(tables[key], detail=False))

    def _causes(self) -> Iterator[str]:
        """The largest of each direction, then all of them to be opened."""
        causes = self.report.tables["causes"]
        # One scale for the bars of both directions.
        whole = max((abs(cast("int", diff)) for diff in causes.column("diff_ns")), default=None)
        for half in halves(causes):
            shown = min(MAX_CAUSES, half.weighty)
            if shown:
                yield self._table(_largest(half.table, shown), whole=whole)
            else:
                yield element("p", safe(self.formatter.texts.messages[f"no_{half.key}"]))
        if rows_of(causes):
            yield self._table(replace(_differences_first(causes), detail=True))

    def _sections(self) -> Iterator[str]:
        for table in self.report.listing:
            if table.key not in {"step_difference", "causes", *_OPEN, *_LAST} and rows_of(table):
                yield self._table(replace(_cut(_differences_first(table)), detail=True))

    def _table(self, table: Table, chart: str = "", whole: float | None = None) -> str:
        at = f"{_ID}-{table.key}"
        self.contents.append((3, at, short_title(table, self.formatter)))
        return table_section(table, chart, self.formatter, at, whole)


def _largest(causes: Table, count: int) -> Table:
    """The first causes, by the columns that tell most."""
    kept = [index for index, column in enumerate(causes.columns) if not (column.minor or column.machine)]
    return with_columns(replace(causes, rows=rows_of(causes)[:count], bar="diff_ns"), kept)


def _differences_first(table: Table) -> Table:
    """What differs before the many columns of both sides, which would push it out of sight."""
    columns = table.columns
    sided = [index for index, column in enumerate(columns) if column.side is not None]
    if not sided:
        return table
    judged = [
        index
        for index, column in enumerate(columns)
        if index > sided[0] and (column.par is not None or (column.kind == Kind.SHARE and column.side is None))
    ]
    rest = [index for index in range(sided[0], len(columns)) if index not in judged]
    return with_columns(table, [*range(sided[0]), *judged, *rest])


def _cut(table: Table) -> Table:
    """Without the rest of very long names, which is said."""
    rows = tuple(tuple(_short(value) for value in row) for row in rows_of(table))
    if rows == table.rows:
        return table
    return replace(
        table, rows=rows, notes=(*table.notes, Message("page_texts_cut", (("count", Kind.COUNT, MAX_TEXT),)))
    )


def _short(value: Value) -> Value:
    return f"{value[:MAX_TEXT]}…" if isinstance(value, str) and len(value) > MAX_TEXT else value
