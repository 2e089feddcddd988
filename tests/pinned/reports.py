"""What the pins of reports and post-mortems are made of beside samples: reports made by hand, gates, runs."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

Parts = Iterator[tuple[str, object]]
Case = Callable[[], Parts]
AGED = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)
"""Parts of pages that are the same in all."""


def formats(report: Any, before: str = "") -> Parts:
    """A report in every format."""
    import openpyxl

    from traceanalyze.locales import texts
    from traceanalyze.model.vocabulary import Detail
    from traceanalyze.report import folder as csv_report
    from traceanalyze.report import html, markdown, xlsx
    from traceanalyze.report import json as json_report
    from traceanalyze.report.console import Style, render, render_all
    from traceanalyze.report.view import View

    words = texts()
    yield f"{before}console 80 QUIET", render_all([report], words, Style(), View(Detail.QUIET))
    for width in (80, 140):
        yield f"{before}screen {width}", render_all([report], words, Style(width), View())
    for width, detail in ((60, Detail.VERBOSE), (100, Detail.NORMAL), (160, Detail.VERBOSE)):
        yield f"{before}console {width} {detail.name}", render(report, words, Style(width), View(detail))
    yield f"{before}console top", render(report, words, Style(100), View(Detail.NORMAL, 2))
    yield f"{before}markdown", markdown.render([report], words, View())
    yield f"{before}html", AGED.sub("", html.render([report], words))
    yield f"{before}json", json_report.render([report], words)
    tables = [*report.summary, *(table for rank in report.ranks for table in rank.tables)]
    yield (
        f"{before}csv",
        [list(csv.reader(io.StringIO(csv_report.csv(table).decode("utf-8-sig")))) for table in tables],
    )
    with warnings.catch_warnings(action="ignore"):
        book = openpyxl.load_workbook(io.BytesIO(xlsx.render([report], words)))
    for sheet in book:
        cells = [
            (cell.coordinate, cell.value, cell.number_format, cell.hyperlink and cell.hyperlink.location)
            for row in sheet.iter_rows()
            for cell in row
            if cell.value is not None
        ]
        widths = sorted((key, one.width, one.hidden) for key, one in sheet.column_dimensions.items())
        yield f"{before}sheet {sheet.title}", (cells, widths, sheet.freeze_panes, sheet.dimensions)


def _made() -> Parts:
    from tests.report import make
    from traceanalyze.report.contents import build_report

    analyses: dict[str, list[Any]] = {
        "one": [make.analysis()],
        "one step": [make.analysis(times=(99.5,))],
        "slow step": [make.analysis(times=(100.0, 100.0, 100.0, 400.0))],
        "incomplete": [make.analysis(complete=[False, True, True])],
        "none complete": [make.analysis(complete=[False] * 3)],
        "communication": [make.analysis(comm=0.3, hidden=0.2, compute=0.3)],
        "busy": [make.analysis(compute=0.97, causes={"sync": 0.9})],
        "causes": [make.analysis(causes={"sync": 0.5})],
        "ranks": [make.analysis(rank=at, times=(100.0 + at, 110.0 - at, 100.0)) for at in range(5)],
        "even ranks": [make.analysis(rank=at) for at in (0, 3)],
        "whole trace": [make.whole_trace()],
        "host only": [make.host_only(100.0, 250.0)],
        "empty": [make.empty()],
        "rank without device": [make.analysis(rank=0), make.host_only(90.0)],
    }
    for name, found in analyses.items():
        yield from formats(build_report("run", found, version="0"), f"{name}: ")


def _compared(which: str) -> Parts:
    from tests.report import make_compare as make

    found = {"plain": make.comparison, "itself": make.itself, "swapped": make.swapped}
    if which in found:
        yield from formats(make.build_compare(found[which](), version="0"))
        return
    whole = make.comparison()
    for name in ("overall", "operators", "modules", "kernels"):
        yield from formats(make.build_compare(whole._replace(**{name: None}), version="0"), f"{name}: ")


def _gated(first: int) -> Parts:
    """Gates of numbers drawn at random, as the pins of regression have them."""
    from tests.pinned.gates import gates
    from traceanalyze.locales import texts
    from traceanalyze.report import ci
    from traceanalyze.report.contents.gate import build_gate

    for seed, found in gates(first, 4):
        if isinstance(found, tuple) and not isinstance(found[0], str):
            report = build_gate(replace(found[0], tool_version="0"))
            yield from formats(report, f"{seed}: ")
            for render in (ci.github, ci.junit, ci.sarif):
                yield f"{seed}: {render.__name__}", render([report], texts())


REPORTS: dict[str, Case] = {
    "made by hand": _made,
    **{f"made to compare: {name}": partial(_compared, name) for name in ("plain", "itself", "swapped", "sections")},
    **{f"gates {first}": partial(_gated, first) for first in (0, 20)},
}


# ------------------------------------------------------------------------------------------------------------- runs


def _runs() -> dict[str, Callable[[], object]]:
    from tests.causes.make import write_run

    def several() -> None:
        write_run(Path("several/a"), [[5, 5, 5], [5, 60, 5]])
        write_run(Path("several/b"), [[50, 5], [5, 5]], at=5000, first=10)

    def missing() -> None:
        (Path("missing") / write_run(Path("missing"), [[5, 5, 5], [5, 60, 5], [5, 5, 5]])[1].name).unlink()

    def damaged() -> None:
        first, *_ = write_run(Path("damaged"), [[5, 5, 5], [30, 30, 30]])
        first.write_bytes(first.read_bytes()[:2000])
        Path("damaged/other.json").write_text("{}")
        Path("damaged/notes.txt").write_text("x")

    return {
        "one": partial(write_run, Path("one"), [[5, 80, 5, 5, 5, 5]]),
        "even": partial(write_run, Path("even"), [[5, 5, 5]] * 3),
        "late": partial(
            write_run, Path("late"), [[5, 5, 5, 5], [5, 40, 40, 40], [5, 5, 5, 5], [5, 5, 5, 5], [90, 5, 5, 5]]
        ),
        "in turn": partial(write_run, Path("in turn"), [[5, 40, 5, 40], [40, 5, 40, 5]]),
        "several": several,
        "missing": missing,
        "damaged": damaged,
    }


RUNS = ("one", "even", "late", "in turn", "several", "missing", "damaged")


def _run_of(name: str, pipeline: str) -> Parts:
    """Reports of a run's folder: their tables, and what they say."""
    import traceanalyze
    from tests.pinned import tables
    from traceanalyze.errors import TraceAnalyzeError
    from traceanalyze.locales import texts
    from traceanalyze.pipeline.choices import Choices
    from traceanalyze.pipeline.postmortem import postmortem_reports
    from traceanalyze.report.format import Formatter

    _runs()[name]()
    try:
        if pipeline == "analyze":
            reports: Sequence[Any] = [traceanalyze.analyze(name)]
        else:
            reports = postmortem_reports([name], Choices())
    except TraceAnalyzeError as error:
        yield "error", str(error)
        return
    formatter = Formatter(texts(), 1)
    for number, report in enumerate(reports):
        yield f"{number}: verdict", [formatter.message(one) for one in report.verdict_messages]
        yield from tables(report.summary, f"{number}: ")
        for at, rank in enumerate(report.ranks):
            yield f"{number}: {at} tables", dict(tables(rank.tables))


CAUSES: dict[str, Case] = {f"made {name}": partial(_run_of, name, "postmortem") for name in RUNS}
