"""Pictures and pages of small hand-made tables, to the last coordinate, as they were looked at: `pictures/`.

After a change that is meant, `python -m tests.report.test_pictures` draws them anew; open them and look before you
commit. Numbers of the tables are round, so that lengths can be checked by eye: an axis of 10 ms, halves and quarters.
"""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import openpyxl
import pytest

import traceanalyze
from tests.causes.make import write_run
from tests.report.make import analysis, table_of_rows
from tests.report.make_compare import build_compare, comparison
from tests.report.test_gate_formats import result
from tests.report.test_timeline import RANKS, STEPS
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import MIB, Allocator
from tests.simulate.allocator.programs import Loop, train
from traceanalyze.analyses.excerpt import Box, Excerpt, Lane, LaneKind, Launch, Place
from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind, Layout, NotMeasured, Quantity, Word
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline.memory import memory
from traceanalyze.report import ci, console, flame, html, json, markdown, xlsx
from traceanalyze.report.console.style import Style
from traceanalyze.report.contents import build_report
from traceanalyze.report.contents.gate import build_gate
from traceanalyze.report.format import Formatter
from traceanalyze.report.html.curve import curve_html
from traceanalyze.report.html.ranks import heat_map, rank_chart, step_chart
from traceanalyze.report.html.timeline import timeline_html
from traceanalyze.report.model import FindingExcerpt, Report
from traceanalyze.report.view import View
from traceanalyze.version import __version__

LOOKED_AT = Path(__file__).with_name("pictures")
MS = 1_000_000
TITLES = {"kinds": "All kinds", "record": "A record", "levels": "Levels", "ranked": "Ranked"}
WORDS = texts()._replace(tables={**texts().tables, **TITLES, "absent": "What is not there"})
FORMAT = Formatter(WORDS)
ABSENT = NotMeasured("no_host_events")


def curve() -> str:
    """Reserved memory over allocated memory, which reaches the top for half of the time."""
    columns = (
        Column("time_ns", Kind.DURATION),
        Column("reserved_bytes", Kind.MEMORY),
        Column("allocated_bytes", Kind.MEMORY),
        Column("blocks", Kind.COUNT),
    )
    rows = ((0, 0, 0, 0), (2 * MS, 40 << 20, 10 << 20, 3), (6 * MS, 40 << 20, 40 << 20, 4), (8 * MS, 20 << 20, 0, None))
    table = table_of_rows("memory_timeline", columns, rows, plot=("reserved_bytes", "allocated_bytes"), title="Memory")
    return curve_html(table, FORMAT)


def slope(*, unicode: bool) -> str:
    """From nothing to the top in 64 steps: every part of a character, under a reserve of three quarters and more."""
    columns = (Column("at", Kind.COUNT), Column("reserved", Kind.MEMORY), Column("used", Kind.MEMORY))
    rows = [(at, max(at, 48) << 20, at << 20) for at in range(65)]
    table = table_of_rows("slope", columns, rows, plot=("reserved", "used"))
    return "\n".join(console.curve_lines(table, FORMAT, Style(width=80, unicode=unicode)))


def bands() -> str:
    """Three groups on top of each other; the second is empty throughout."""
    columns = (Column("time_ns", Kind.DURATION), *(Column(f"group_{n}_bytes", Kind.MEMORY) for n in range(3)))
    rows = ((0, 100, 0, 0), (MS, 100, 0, 300), (4 * MS, 0, 0, 390))
    stack = tuple(f"group_{n}_bytes" for n in range(3))
    return curve_html(table_of_rows("memory_timeline", columns, rows, stack=stack, title="Groups"), FORMAT)


def bars(ranks: int) -> str:
    """Ranks of 10, 9, 8 … ms; a quarter is communication, the first has an unknown part."""
    rows = [(str(n), 3, (10 - n % 10) * MS, 0.5, ABSENT if n == 0 else 0.25, 0.25) for n in range(ranks)]
    return rank_chart(table_of_rows("ranks", RANKS, rows), FORMAT)


def heat(ranks: int, steps: int) -> str:
    """Rank 1 is half as slow again at each other step; rank 0 has no first step."""
    rows = [
        (
            f"{step}",
            f"{rank}",
            10 * MS,
            ABSENT if rank == step == 0 else 1.5 if rank == 1 and step % 2 else 1.0,
            0,
            "compute",
            8 * MS if rank else None,
        )
        for step in range(steps)
        for rank in range(ranks)
    ]
    return heat_map(table_of_rows("rank_steps", STEPS, rows), FORMAT)


def columns_of_steps(steps: int) -> str:
    """Steps of 10 ms, half of it compute; the last is incomplete and has a long name."""
    keys = ("compute_ns", "idle_ns")
    columns = (Column("step", Kind.TEXT), *(Column(key, Kind.DURATION) for key in keys), Column("complete", Kind.FLAG))
    names = [*map(str, range(steps - 1)), "warm-up 12"]
    rows = [(name, 5 * MS, 5 * MS if name != "1" else 0, name != "warm-up 12") for name in names]
    split = table_of_rows("split", (Column("part", Kind.TERM),), [("compute",), ("sync",), ("idle",)])
    return step_chart(split, table_of_rows("steps", columns, rows), FORMAT)


def timeline() -> str:
    """A millisecond: 900 units wide, from 150 on. An operator with a call in it launches a kernel; then idle time."""
    unit = 100_000
    merged = Box(7 * unit, 9 * unit, "aten::relu", "host_op", 12, unit)
    lanes = (
        Lane(LaneKind.STEPS, "steps", (Box(0, 10 * unit, "7", "step"),)),
        Lane(LaneKind.OPS, "python 81", (Box(unit, 4 * unit, "aten::linear", "host_op"), merged), track=0),
        Lane(LaneKind.OPS, "python 81", (Box(unit, 2 * unit, "aten::addmm", "host_op"),), track=0, depth=1, hidden=2),
        Lane(LaneKind.CALLS, "python 81", (Box(unit, unit + 10, "cudaLaunchKernel", "api_launch"),), track=0),
        Lane(LaneKind.CALLS, "thread 82", (Box(5 * unit, 6 * unit, "cudaMemcpyAsync", "api_copy"),), track=1),
        Lane(LaneKind.STREAM, "7", (Box(3 * unit, 8 * unit, "void at::native::gemm<float>(int)", "compute"),)),
        Lane(LaneKind.STREAM, "-1", (Box(9 * unit, 10 * unit, "hcom_allReduce_", "communication"),)),
        Lane(LaneKind.IDLE, "idle", (Box(8 * unit, 9 * unit, "", "data_loading", 3, unit // 2),)),
    )
    found = Excerpt(0, 10 * unit, lanes, Launch(unit, 3 * unit, 3, 5), hidden_threads=1, hidden_streams=3)
    place = Place(found, 8 * unit, 9 * unit, 3 * unit, 0, 0, 20 * unit, unit, "data_loading", None)
    return timeline_html(FindingExcerpt("DAT101", "rule_DAT101", (), place), FORMAT)


def call_paths() -> str:
    """1 ms: a half, in it a quarter; a quarter with a long name; the rest; and one too narrow to be drawn."""
    times = (("outer", MS // 4), ("outer;inner", MS // 4), ("long_name_" * 9, MS // 4), ("rest", MS // 4), ("x", 10))
    rows = [(path, 0, time) for path, time in times]
    columns = (Column("call_path", Kind.NAME), Column("host_self_ns", Kind.DURATION))
    table = table_of_rows("call_paths", (*columns, Column("device_self_ns", Kind.DURATION)), rows)
    made = report()
    drawn = flame.render([replace(made, ranks=(replace(made.ranks[0], tables=(table,)),))], WORDS)
    return drawn.partition("<script>")[0]


KINDS = table_of_rows(
    "kinds",
    (
        Column("name", Kind.NAME),
        Column("file", Kind.NAME, cut_start=True),
        Column("duration_ns", Kind.DURATION),
        Column("change_ns", Kind.CHANGE, par=0),
        Column("share", Kind.SHARE),
        Column("ratio", Kind.RATIO, par=1.0),
        Column("count", Kind.COUNT),
        Column("number", Kind.NUMBER),
        Column("size_bytes", Kind.BYTES),
        Column("memory_bytes", Kind.MEMORY, minor=True),
        Column("grown_bytes", Kind.MEMORY_CHANGE, minor=True),
        Column("flag", Kind.FLAG),
        Column("quantity", Kind.QUANTITY),
        Column("parts", Kind.BREAKDOWN, minor=True),
        Column("id", Kind.TEXT, machine=True),
        Column("silent", Kind.COUNT),
    ),
    [
        (
            "aten::" + "long_" * 12 + "name",
            "/home/user/project/train/loop.py:41",
            1500000,
            250000,
            0.5,
            1.25,
            1234,
            12.5,
            1500000,
            3 << 20,
            1 << 20,
            True,
            Quantity(2.5, "GB/s"),
            (("compute", MS), ("sync", MS // 2)),
            "a",
            0,
        ),
        (
            "乘法算子",
            "loop.py:7",
            20000,
            -20000,
            0.123,
            0.8,
            5,
            ABSENT,
            900,
            100,
            -(1 << 10),
            False,
            Word("compute"),
            (),
            "b",
            0,
        ),
        ("none", None, 0, 0, ABSENT, 1.0, 0, 0.0, 0, None, 0, None, Quantity(-3, "ns", change=True), None, "c", 0),
    ],
    bar="share",
    totals={"duration_ns": 1_520_000, "share": 0.623},
)
RECORD = table_of_rows(
    "record",
    (
        Column("linked", Kind.COUNT),
        Column("delay_ns", Kind.DURATION),
        Column("late", Kind.COUNT, minor=True),
        Column("missing", Kind.SHARE),
        Column("nothing", Kind.TEXT),
    ),
    [(9096, 9_492_000, 0, ABSENT, None)],
    layout=Layout.RECORD,
)
LEVELS = table_of_rows(
    "levels",
    (Column("path", Kind.NAME), Column("time_ns", Kind.DURATION), Column("depth", Kind.COUNT, machine=True)),
    [("/data/run/a.json", 3 * MS, 0), ("/data/run/b.json", 2 * MS, 1), ("/data/run/c.json", MS, 2)],
    level="depth",
)
RANKED = table_of_rows(
    "ranked",
    (Column("name", Kind.NAME), Column("count", Kind.COUNT)),
    [(f"k{n}", 100 - n) for n in range(30)],
    ranked=True,
)


@cache
def report() -> Report:
    made = build_report("run", [analysis()], version="0")
    (rank,) = made.ranks
    tables = (*(table for table in rank.tables if table.key in {"split", "steps"}), KINDS, RECORD, LEVELS, RANKED)
    tables = (*tables, replace(LEVELS, key="absent").missing("no_host_events"))
    return replace(made, ranks=(replace(rank, tables=tables),))


def page(width: int, detail: Detail = Detail.NORMAL, *, colour: bool = False, unicode: bool = True) -> str:
    style = Style(width=width, colour=colour, unicode=unicode)
    return console.render(report(), WORDS, style, View(detail=detail)).replace("\033", "␛")


@cache
def compared() -> Report:
    return build_compare(comparison(), version="0")


@cache
def judged() -> Report:
    return build_gate(result())


@cache
def of_memory() -> Report:
    """A loop that leaves 40 MiB behind at each step."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "leak.pickle")
        path.write_bytes(pickle.dumps(dump(train(Loop(leak=40 * MIB), Allocator()))))
        return memory(str(path), capacity="1GiB")


def of_run() -> str:
    """Three ranks, of which the second is late by 40 ms in each of four steps; without a line for every other rule."""
    with TemporaryDirectory() as folder:
        write_run(Path(folder, "run"), [[0] * 4, [40] * 4, [0] * 4])
        found = traceanalyze.postmortem(Path(folder, "run"))
        text = console.render(found, WORDS, Style(width=160), View(Detail.VERBOSE)).replace(folder, "")
    return re.sub(r"(?m)^ *[0-9]+ rules?: .*\n|^.*not evaluated.*\n", "", text)


def as_json(one: Report) -> str:
    return json.render([one], WORDS).replace(__version__, "VERSION")


def html_page(one: Report) -> str:
    whole = html.render([one], WORDS)
    return whole[whole.index("<nav>") : whole.index("<footer")]


def look(cell: Any) -> str:
    """Format of a cell of a workbook, and where it leads."""
    font, at, fill, border = cell.font, cell.alignment, cell.fill.fgColor.rgb, cell.border
    marks = [cell.number_format, at.horizontal, at.indent and f"indent {at.indent:g}", at.wrap_text and "wrap"]
    marks += [font.b and "bold", font.i and "italic", font.sz != 11 and font.sz]
    marks += [font.color and font.color.type == "rgb" and font.color.rgb, fill != "00000000" and fill]
    marks += [border.top.style, border.bottom.style, cell.hyperlink and cell.hyperlink.location]
    return " ".join(str(one) for one in marks if one)


def workbook(one: Report) -> str:
    """Every cell with its format, and how the sheets are set up."""
    lines = []
    with warnings.catch_warnings():
        # It passes over extensions.
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(BytesIO(xlsx.render([one], WORDS)))
    for sheet in book.worksheets:
        wide = {key: round(one.width, 2) for key, one in sheet.column_dimensions.items()}
        hidden = [key for key, one in sheet.column_dimensions.items() if one.hidden or one.outlineLevel]
        high = {key: one.height for key, one in sheet.row_dimensions.items() if one.height}
        folded = [key for key, one in sheet.row_dimensions.items() if one.outlineLevel]
        merged = sorted(str(one) for one in sheet.merged_cells.ranges)
        lines += [f"== {sheet.title}", f"widths {wide} hidden {hidden} heights {high} folded {folded} merged {merged}"]
        page, margins = sheet.page_setup, sheet.page_margins
        printed = page.orientation, page.paperSize, page.fitToWidth, page.fitToHeight, margins.left, margins.bottom
        lines.append(f"frozen {sheet.freeze_panes} filter {sheet.auto_filter.ref} {sheet.print_title_rows} {printed}")
        for area in sheet.conditional_formatting:
            for rule in area.rules:
                shown = rule.operator, rule.formula, rule.dxf and rule.dxf.font.color.rgb
                shown += tuple(each.val for each in rule.dataBar.cfvo) if rule.dataBar else ()
                shown += tuple(each.rgb for each in rule.colorScale.color) if rule.colorScale else ()
                lines.append(f"{area.sqref} {rule.type} {shown}")
        lines += [f"{one.anchor._from.row} {one.anchor._from.col} {one.title and 'chart'}" for one in sheet._charts]
        before = ""
        for row in sheet:
            filled = [cell for cell in row if cell.value is not None]
            looks = "; ".join(f"{cell.column_letter}: {look(cell)}" for cell in filled)
            lines += [f"  {looks}"] if looks not in {"", before} else []
            lines += [f"{filled[0].row}: {' | '.join(str(cell.value) for cell in filled)}"] if filled else []
            before = looks or before
    return "\n".join(lines)


PICTURES: dict[str, Callable[[], str]] = {
    "curve.html": curve,
    "curve.txt": lambda: slope(unicode=True),
    "curve_ascii.txt": lambda: slope(unicode=False),
    "bands.html": bands,
    "bars.html": lambda: bars(2),
    "bars_many.html": lambda: bars(17),
    "heat.html": lambda: heat(2, 3),
    "heat_of_many_steps.html": lambda: heat(2, 41),
    "heat_of_many_ranks.html": lambda: heat(17, 2),
    "steps.html": lambda: columns_of_steps(4),
    "steps_many.html": lambda: columns_of_steps(101),
    "timeline.html": timeline,
    "flame.svg": call_paths,
    "console_60.txt": lambda: page(60),
    "console_80_ascii.txt": lambda: page(80, unicode=False),
    "console_110_colour.txt": lambda: page(110, colour=True),
    "console_160_verbose.txt": lambda: page(160, Detail.VERBOSE),
    "page.html": lambda: html_page(report()),
    "workbook.txt": lambda: workbook(report()),
    "compare.json": lambda: as_json(compared()),
    "compare.html": lambda: html_page(compared()),
    "compare_workbook.txt": lambda: workbook(compared()),
    "compare_console.txt": lambda: console.render(compared(), WORDS, Style(width=160), View(Detail.VERBOSE)),
    "gate.json": lambda: as_json(judged()),
    "gate.html": lambda: html_page(judged()),
    "gate_workbook.txt": lambda: workbook(judged()),
    "gate_console.txt": lambda: console.render(judged(), WORDS, Style(width=160), View(Detail.VERBOSE)),
    "gate.md": lambda: markdown.render([judged()], WORDS),
    "gate_junit.xml": lambda: ci.junit([judged()], WORDS),
    "gate_github.txt": lambda: ci.github([judged()], WORDS),
    "memory.txt": lambda: console.render(of_memory(), WORDS, Style(width=160), View(Detail.VERBOSE)),
    "postmortem.txt": of_run,
    "page.md": lambda: markdown.render([report()], WORDS, View()),
}


def drawn(name: str) -> str:
    """With an element a line, so that differences can be read."""
    picture = PICTURES[name]()
    return f"{picture if name.endswith(('.md', '.txt', '.json')) else picture.replace('><', '>' + chr(10) + '<')}\n"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_as_it_was_looked_at(name: str) -> None:
    assert drawn(name) == (LOOKED_AT / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    LOOKED_AT.mkdir(exist_ok=True)
    for each in PICTURES:
        (LOOKED_AT / each).write_text(drawn(each), encoding="utf-8")
