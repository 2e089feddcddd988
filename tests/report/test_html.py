"""The HTML report, parsed again, and opened in a browser where there is one."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.report.browser import dump_dom, evaluated
from tests.report.make import MS, analysis, empty, host_only, table_of_rows, whole_trace
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import MIB, Allocator
from tests.simulate.allocator.programs import Loop, frame, train
from traceanalyze.locales import texts
from traceanalyze.model import units
from traceanalyze.model.snapshot import CATEGORIES, MemoryTimeline
from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.pipeline.memory import memory
from traceanalyze.report import json as json_report
from traceanalyze.report.contents import Scope, build_report
from traceanalyze.report.contents.snapshot import of_timeline
from traceanalyze.report.html import _ON_CARDS, MAX_RANKS, MAX_ROWS, render
from traceanalyze.report.html.frame import sentence
from traceanalyze.report.html.tables import FIRST_ROWS

VOID = {"meta", "link", "br", "img", "input", "hr", "base"}
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"' onmouseover=alert(1) x='",
    "<!--",
    "]]>&lt;&amp;",
    "a\x00b\x0bc\x1b[31m",
    "lone \ud800 half",
    "right \u202e to left",
    "two\r\nlines",
    "中文算子",
)
in_browser = pytest.mark.usefixtures("needs_browser")


class Page(HTMLParser):
    """Elements with their attributes and text; an end tag without its begin is an error."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.errors = [], [], []
        self.feed(html)
        self.close()
        self.errors += [f"not closed: {tag}" for tag, _, _ in self.open]

    def handle_starttag(self, tag, attrs):
        node = (tag, dict(attrs), [])
        self.elements.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.errors.append(f"not open: {tag}")
        else:
            self.open.pop()

    def handle_data(self, data):
        for _, _, content in self.open:
            content.append(data)

    def find(self, tag, **attributes):
        return [
            node for node in self.elements
            if node[0] == tag and all(node[1].get(key.rstrip("_")) == value for key, value in attributes.items())
        ]  # fmt: skip

    def text(self):
        return "".join(self.find("body")[0][2])


def report_of(*analyses, every_rank=False):
    return build_report("run", analyses or [analysis()], version="1.2.3", scope=Scope(every_rank=every_rank))


def with_table(table, report=None):
    report = report or report_of()
    rank = report.ranks[0]
    return replace(report, ranks=(replace(rank, tables=(*rank.tables, table)),))


def words():
    known = texts()
    return known._replace(tables={**known.tables, "extra": "A table of another kind"})


def snapshot(folder, allocator, name="snapshot.pickle"):
    path = folder / name
    path.write_bytes(pickle.dumps(dump(allocator)))
    return memory(path)


@pytest.fixture
def leaking(tmp_path):
    return snapshot(tmp_path, train(Loop(steps=12, leak=40 * MIB), Allocator()))


def timeline():
    amounts = np.arange(4 * len(CATEGORIES), dtype=np.int64).reshape(4, -1) * MIB
    return MemoryTimeline(path="t.json", rows=4, time=np.array([0, 5, 9, 20], np.int64) * 1000, bytes=amounts)


def table_of(page, key, at="run-0"):
    """Cells of the body of a table by its place: (text, data-value), and its headings."""
    start = next(i for i, node in enumerate(page.elements) if node[1].get("id") == f"{at}-{key}")
    inside = page.elements[start + 1 :]
    stop = next(
        (
            i
            for i, node in enumerate(inside)
            if node[0] in {"section", "article", "footer"} or node[1].get("class") == "table"
        ),
        len(inside),
    )
    rows, heads, foot = [], [], None
    for tag, attributes, content in inside[:stop]:
        if tag == "tfoot":
            foot = len(rows)
        elif tag == "tr":
            rows.append([])
        elif tag == "th":
            heads.append("".join(content))
        elif tag == "td":
            rows[-1].append(("".join(content), attributes.get("data-value")))
        elif tag == "script" and "rows" in (packed := json.loads("".join(content))):
            foot = len(rows) if foot is None else foot
            rows[foot:foot] = [[unpacked(cell) for cell in row] for row in packed["rows"]]
    return heads, [row for row in rows if row]


def unpacked(cell):
    """A cell as the script makes it: text, data-value."""
    if isinstance(cell, str):
        return cell, None
    return cell[0], None if cell[1] is None else repr(cell[1])


@pytest.mark.parametrize(
    "reports",
    [
        [report_of()],
        [report_of(analysis(rank=0), analysis(rank=1), every_rank=True), report_of(whole_trace())],
        [report_of(host_only(3.0, 4.0))],
        [report_of(empty())],
        [of_timeline(timeline()).report],
    ],
)
def test_every_page_is_well_formed_with_unique_ids_and_links_that_lead_somewhere(reports):
    page = Page(render(reports, texts()))
    assert page.errors == []
    ids = [node[1]["id"] for node in page.elements if "id" in node[1]]
    assert len(ids) == len(set(ids))
    links = [node[1]["href"] for node in page.find("a")]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_the_verdict_comes_first_and_every_table_with_rows_is_there():
    report = report_of()
    page = Page(render([report], texts()))
    verdict = "".join(page.find("p", class_="verdict")[0][2]).replace("\xa0", " ")
    assert verdict.startswith("Step 177.7 ms")
    ids = {node[1].get("id") for node in page.elements}
    for table in report.ranks[0].tables:
        has_rows = bool(table.rows) and not isinstance(table.rows, NotMeasured)
        assert (f"run-0-{table.key}" in ids) == (has_rows and table.key not in _ON_CARDS), table.key


def test_reasons_checks_and_advice_are_said():
    text = Page(render([report_of()], texts())).text().replace("\xa0", " ")
    assert "warning Q03" in text
    assert texts().hints["no_python"] in text
    missing = Table("extra", (Column("name", Kind.NAME),)).missing("no_host_events")
    nothing = table_of_rows("extra", (Column("name", Kind.NAME),), ())
    for table, reason in ((missing, texts().reasons["no_host_events"]), (nothing, texts().messages["no_rows"])):
        text = Page(render([with_table(table)], words())).text()
        assert f"A table of another kind: {reason}" in text[text.rindex(texts().messages["not_measured"]) :]


def has_something(column, truth):
    rows = [*truth["rows"], truth.get("total") or {}]
    return any(row.get(column.key) is not None or f"{column.key}_reason" in row for row in rows)


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_numbers_are_those_of_json():
    report = report_of()
    page = Page(render([report], texts()))
    tables = json.loads(json_report.render([report], texts()))["reports"][0]["ranks"][0]["tables"]
    compared = 0
    for table in report.ranks[0].tables:
        truth = tables[table.key]
        if not truth["rows"] or table.layout != "rows":
            continue
        shown = [column.key for column in table.columns if not column.machine and has_something(column, truth)]
        _, rows = table_of(page, table.key)
        assert len(rows) == len(truth["rows"]) + ("total" in truth)
        for cells, row in zip(rows, truth["rows"], strict=False):
            for key in shown:
                if is_number(row[key]):
                    assert json.loads(cells[shown.index(key)][1]) == row[key], (table.key, key)
                    compared += 1
    assert compared > 100


def test_headings_have_units_and_cells_have_none():
    heads, rows = table_of(Page(render([report_of()], texts())), "split")
    assert heads[:3] == ["part", "time ms", "share %"]
    assert rows[0][0] == ("compute", None)
    assert rows[0][1][0] == "97.72"
    assert rows[-1][1][0] == "177.67"


def test_long_tables_stop_and_say_so():
    columns = (Column("name", Kind.NAME), Column("count", Kind.COUNT))
    table = table_of_rows("extra", columns, tuple((f"kernel {n}", n) for n in range(MAX_ROWS + 7)))
    page = Page(render([with_table(table)], words()))
    _, rows = table_of(page, "extra")
    assert len(rows) == MAX_ROWS
    assert f"The first {MAX_ROWS} of {MAX_ROWS + 7} rows; -o DIR/ writes all of them." in page.text()


def test_many_ranks_are_limited_and_said_to_be():
    report = report_of(*(analysis(rank=rank) for rank in range(MAX_RANKS + 2)), every_rank=True)
    page = Page(render([report], texts()))
    assert len(page.find("h2", class_="rank")) == MAX_RANKS
    assert f"The page has {MAX_RANKS} of {MAX_RANKS + 2} ranks" in page.text()


def test_what_was_not_measured_is_never_zero():
    columns = (Column("name", Kind.NAME), Column("time_ns", Kind.DURATION))
    table = table_of_rows(
        "extra", columns, (("a", NotMeasured("no_host_events")), ("b", 0), ("c", None), ("d", 5 * MS))
    )
    page = Page(render([with_table(table)], words()))
    _, rows = table_of(page, "extra")
    assert [row[1] for row in rows] == [("n/m", None), ("0.000", "0"), ("", None), ("5.000", "5000000")]
    assert f"n/m: not measured ({texts().reasons['no_host_events']})" in page.text()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name):
    columns = (Column("name", Kind.NAME), Column("step", Kind.TEXT), Column("count", Kind.COUNT))
    report = with_table(table_of_rows("extra", columns, ((name, name, 1), ("other", "x", 2))))
    report = replace(report, name=name, ranks=(replace(report.ranks[0], path=f"/tmp/{name}"),))
    plain, html = Page(render([report_of()], words())), render([report], words())
    page = Page(html)
    assert page.errors == []
    assert html.encode("utf-8")
    assert {node[0] for node in page.elements} == {node[0] for node in plain.elements}
    assert len(page.find("script")) == len(plain.find("script"))
    assert not [key for node in page.elements for key in node[1] if key.startswith("on")]
    shown = "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in name)
    assert table_of(page, "extra")[1][0][:2] == [(shown, None), (shown, None)]


def test_hostile_lines_of_a_snapshot_stay_text(tmp_path):
    allocator = train(Loop(), Allocator())
    for name in HOSTILE:
        if name.isascii():
            allocator.malloc(900 * MIB, [frame(name, f"/home/me/{name}.py", 3)])
    html = render([snapshot(tmp_path, allocator)], texts())
    page = Page(html)
    assert page.errors == []
    assert not page.find("img")
    assert [node[1].get("type") for node in page.find("script")].count(None) == 1
    curves = [json.loads("".join(node[2])) for node in page.find("script", type="application/json")]
    assert "<script>alert(1)</script>" in json.dumps(curves)


def test_nothing_comes_from_outside(leaking):
    for html in (render([report_of()], texts()), render([leaking], texts())):
        page = Page(html)
        assert not [node for node in page.elements if node[0] in {"link", "img", "iframe", "object", "embed", "base"}]
        assert not [
            key for node in page.elements for key in node[1] if key in {"src", "srcset", "action", "xlink:href"}
        ]
        assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(|https?://", html)
        policy = page.find("meta", **{"http-equiv": "Content-Security-Policy"})[0][1]["content"]
        assert policy.startswith("default-src 'none'")


def curves(page):
    """What stands behind the curves, without the words of the script and the rows of tables."""
    every = [json.loads("".join(node[2])) for node in page.find("script", type="application/json")]
    return [one for one in every if "bands" in one]


def test_the_curves_hold_the_numbers_of_the_tables(leaking):
    (memory_curve,) = curves(Page(render([leaking], texts())))
    table = leaking.tables["allocator_curve"]
    assert memory_curve["at"] == list(table.column("event"))
    shown = {column["name"]: column["values"] for column in memory_curve["shown"]}
    for key in ("requested_bytes", "block_bytes", "reserved_bytes"):
        assert shown[texts().heading(table, table[key])] == list(table.column(key))


def heights(path):
    """Height of an area at each turn, in units of the picture."""
    found = [0]
    for _, down in re.findall(r"(h-?\d+)?v(-?\d+)", path):
        found.append(found[-1] - int(down))
    return found


def test_areas_are_as_high_as_their_values(leaking):
    page = Page(render([leaking], texts()))
    table = leaking.tables["allocator_curve"]
    top = max(table.column("reserved_bytes"))
    for css, key in (("outer", "reserved_bytes"), ("inner", "block_bytes")):
        (path,) = [node[1]["d"] for node in page.find("path", class_=css)]
        values = [round(1000 * value / top) for value in table.column(key)]
        changes = [value for value, before in zip(values, [0, *values], strict=False) if value != before]
        assert heights(path)[1:] == changes
    page = Page(render([of_timeline(timeline()).report], texts()))
    bands = [node for node in page.find("path") if "data-band" in node[1]]
    # Painted from the highest to the lowest, so that the first one outlines all of them.
    assert [int(node[1]["data-band"]) for node in bands] == list(reversed(range(len(bands))))
    assert max(heights(bands[0][1]["d"])) == 1000


def test_categories_of_a_timeline_are_stacked():
    (found,) = curves(Page(render([of_timeline(timeline()).report], texts())))
    assert [band["values"] for band in found["bands"]] == timeline().bytes.T.tolist()
    assert found["kind"] == "time"


def test_steps_are_drawn_part_by_part():
    report = report_of()
    page = Page(render([report], texts()))
    (picture,) = page.find("svg", class_="steps")
    titles = [node[1]["data-tip"] for node in page.find("rect", class_="over")]
    assert len(titles) == 3
    assert titles[0].splitlines()[0] == "5"
    assert "compute: 99.00 ms" in titles[0]
    parts = [node[1] for node in page.find("path") if "--part-" in node[1].get("style", "")]
    assert "--part-compute" in parts[0]["style"]
    assert all(part["d"].count("M") == 3 for part in parts)
    first = [re.search(r"M[\d.]+,([\d.]+)h[\d.]+V([\d.]+)", part["d"]).groups() for part in parts]
    high = sum(float(low) - float(up) for low, up in first)
    assert picture
    # The first step is the longest: its column is as high as the picture's inside.
    assert high == pytest.approx(206, abs=0.1)


def test_many_points_and_groups_stay_below_a_megabyte(tmp_path):
    allocator = Allocator()
    for index in range(6000):
        name = f"layer_{index % 25}"
        stack = [frame(name, f"/home/me/project/package/{name}.py", 10 + index % 25) for _ in range(12)]
        allocator.malloc((1 + index % 7) * MIB // 16, stack)
    report = snapshot(tmp_path, allocator)
    assert len(report.tables["allocator_group_curve"].stack) == 21
    html = render([report], texts())
    assert len(report.tables["allocator_curve"].column("event")) > 400
    assert len(html.encode()) < 1_000_000


def test_the_same_report_gives_the_same_page():
    assert render([report_of()], texts()) == render([report_of()], texts())


@in_browser
def test_a_browser_opens_it_without_a_word_and_asks_nobody(tmp_path, leaking):
    for number, reports in enumerate(([report_of()], [leaking, report_of(analysis(rank=0), analysis(rank=1))])):
        html = render(reports, texts())
        page = tmp_path / f"page{number}.html"
        page.write_text(html, encoding="utf-8")
        dom, console = dump_dom(page)
        assert console == []
        assert 'class="scripted"' in dom
        assert evaluated(html, tmp_path, "return performance.getEntriesByType('resource').length") == 0


@in_browser
def test_other_scripts_do_not_run(tmp_path):
    page = tmp_path / "page.html"
    html = render([report_of()], texts())
    page.write_text(html.replace("</body>", "<script>document.title='taken'</script></body>"), encoding="utf-8")
    dom, console = dump_dom(page)
    assert "<title>taken</title>" not in dom
    assert any("Content Security Policy" in line for line in console)


@in_browser
def test_headings_sort_numbers_as_numbers_and_the_missing_last(tmp_path):
    columns = (Column("name", Kind.NAME), Column("time_ns", Kind.DURATION))
    rows = (("a", 9_000), ("b", 10_000_000), ("c", NotMeasured("no_host_events")), ("d", 800))
    html = render([with_table(table_of_rows("extra", columns, rows))], words())
    script = (
        "var table=document.querySelector('#run-0-extra table'),head=table.tHead.rows[0].cells[1],out=[];"
        "for(var i=0;i<3;i++){head.click();"
        "out.push(Array.from(table.tBodies[0].rows,function(r){return r.cells[0].textContent}).join(''));}return out;"
    )
    assert evaluated(html, tmp_path, script) == ["badc", "dabc", "abcd"]


HOVER = """
var room = document.querySelectorAll('.room')[%d], box = room.getBoundingClientRect();
function at(kind, x, y) {
  var place = {clientX: box.left + box.width * x, clientY: box.top + box.height * y, button: 0};
  room.dispatchEvent(new PointerEvent(kind, place));
}
function told() { return Array.from(document.querySelector('.tip').children, function (e) { return e.textContent; }); }
"""


def when_open(script):
    """What it returns once all that is closed was opened, and so is made."""
    return (
        "document.querySelectorAll('details').forEach(function(each){each.open=true;});return new Promise("
        f"function(done){{setTimeout(function(){{done((function(){{{script}}})());}},200);}});"
    )


@in_browser
def test_the_pointer_is_told_the_values_of_the_event(tmp_path, leaking):
    html = render([leaking], texts())
    table = leaking.tables["allocator_curve"]
    row = dict(zip((column.key for column in table.columns), table.rows[-1], strict=True))
    told = evaluated(html, tmp_path, when_open(HOVER % 0 + "at('pointermove', 1, 0.5); return told();"))
    assert told == [
        f"event: {row['event']:,}",
        f"time: {units.duration(row['since_start_ns'], 1000)}",
        f"requested: {units.memory(row['requested_bytes'])}",
        f"in blocks: {units.memory(row['block_bytes'])}",
        f"reserved: {units.memory(row['reserved_bytes'])}",
    ]


@in_browser
def test_the_pointer_over_a_band_is_told_whose_it_is(tmp_path):
    html = render([of_timeline(timeline()).report], texts())
    told = evaluated(html, tmp_path, HOVER % 0 + "at('pointermove', 1, 0.999); return told();")
    assert told[-2:] == ["parameters", units.memory(timeline().bytes[-1, 0])]


@in_browser
def test_dragging_zooms_and_a_double_click_goes_back(tmp_path, leaking):
    script = HOVER % 0 + (
        "var svg=room.querySelector('svg'),out=[];function note(){out.push(svg.getAttribute('viewBox'));}note();"
        "at('pointerdown',0.25,0.5);at('pointermove',0.5,0.5);at('pointerup',0.5,0.5);note();"
        "at('pointermove',0,0.5);out.push(told()[0]);at('dblclick',0.5,0.5);note();return out;"
    )
    first, zoomed, told, back = evaluated(render([leaking], texts()), tmp_path, when_open(script))
    assert first == back == "0 0 100000 1000"
    left, _, width, _ = map(float, zoomed.split())
    assert (left, width) == pytest.approx((25_000, 25_000), abs=200)
    events = leaking.tables["allocator_curve"].column("event")
    at = events[-1] * left / 100_000
    assert int(told.removeprefix("event: ").replace(",", "")) == max(event for event in events if event <= at)


@in_browser
def test_sizes_and_times_are_written_as_everywhere_else(tmp_path):
    sizes = [0, 1, 512, 1023, 1024, 10 * 1024, 10 * 1024 + 512, 612 * MIB + MIB // 2, 613 * MIB + MIB // 2, 1024 * MIB,
             10 * 1024 * MIB + 51 * MIB, 123_456_789_012]  # fmt: skip
    times = [0, 999, 1000, 12_345, 999_999, 1_234_567, 987_654_321, 61_000_000_000, 5_400_000_000_000]
    columns = (Column("since_start_ns", Kind.DURATION), Column("block_bytes", Kind.MEMORY))
    rows = tuple(zip([*times, *range(6_000_000_000_000, 6_000_000_000_003)], sizes, strict=True))
    table = table_of_rows("extra", columns, rows, plot=("block_bytes", "block_bytes"))
    # A picture for each, as the first point of a picture is hit for certain.
    parts = [with_table(table.take([at, at + 1])) for at in range(len(rows) - 1)]
    one = f"function one(i){{{HOVER.replace('%d', 'i')}at('pointermove',0,0.5);return told();}}"
    script = (
        "document.querySelectorAll('details').forEach(function(part){part.open=true;});"
        "return new Promise(function(done){setTimeout(done,50);}).then(function(){"
        f"var out=[];for(var i=0;i<{len(parts)};i++)out.push(one(i));return out;}});"
    )
    found = evaluated(render(parts, words()), tmp_path, one + script)
    assert found == [[f"since start: {units.duration(t)}", f"block: {units.memory(size)}"] for t, size in rows[:-1]]


ROWS = (*((f"gemm {n}", 1_000_000 * n) for n in range(40)), *((f"relu {n}", 10 * n) for n in range(20)))


def sixty():
    """A table of sixty rows, in the order of their names' numbers."""
    return table_of_rows("extra", (Column("name", Kind.NAME), Column("time_ns", Kind.DURATION)), ROWS)


TABLE = """
var part = document.querySelector('#run-0-extra'), body = part.querySelector('tbody');
function names() { return Array.from(body.rows, function (row) { return row.cells[0].textContent; }); }
function ask(text, column) {
  var find = part.querySelector('.find input'), choice = part.querySelector('.find select');
  find.value = text;
  if (column !== undefined) { choice.value = column; }
  find.dispatchEvent(new Event('input'));
  return [names().length, names()[0], part.querySelector('.find output').textContent];
}
"""


def test_first_rows_need_no_script_and_the_others_are_packed():
    html = render([with_table(sixty())], words())
    page = Page(html)
    assert f"The first {FIRST_ROWS} of {len(ROWS)} rows" in page.text()
    _, rows = table_of(page, "extra")
    assert [(name, json.loads(value)) for (name, _), (_, value) in rows] == list(ROWS)
    plain = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert f">gemm {FIRST_ROWS - 1}<" in plain
    assert f"gemm {FIRST_ROWS}" not in plain


@in_browser
def test_the_other_rows_come_when_asked_for_and_are_found(tmp_path):
    script = TABLE + (
        "var before=names().length;part.querySelector('.cut button').click();"
        "return [before,names().length,ask('relu 1'),ask('> 38'),ask('<1',1),ask('gemm 3',0),ask('gemm 3',1),ask('')];"
    )
    found = evaluated(render([with_table(sixty())], words()), tmp_path, script)
    assert found == [
        FIRST_ROWS,
        60,
        [11, "relu 1", "11 of 60 rows"],
        [1, "gemm 39", "1 of 60 rows"],
        [21, "gemm 0", "21 of 60 rows"],
        [11, "gemm 3", "11 of 60 rows"],
        [0, None, "0 of 60 rows"],
        [60, "gemm 0", ""],
    ]


@in_browser
def test_sorting_takes_all_rows_and_keeps_what_was_searched_for(tmp_path):
    script = TABLE + (
        "var head=part.querySelectorAll('th')[1];head.click();var first=names()[0],all=names().length;"
        "var found=ask('relu');head.click();return [first,all,found,names().slice(0,2)];"
    )
    found = evaluated(render([with_table(sixty())], words()), tmp_path, script)
    assert found == ["gemm 39", 60, [20, "relu 19", "20 of 60 rows"], ["relu 0", "relu 1"]]


@in_browser
def test_what_is_closed_is_made_when_it_is_opened_or_led_to(tmp_path):
    table = replace(sixty(), detail=True)
    script = (
        "var part=document.querySelector('#run-0-extra'),before=part.querySelectorAll('*').length;"
        "location.hash='#run-0-extra';return new Promise(function(done){setTimeout(function(){"
        "done([before,part.open,part.querySelectorAll('tbody tr').length]);},50);});"
    )
    before, is_open, rows = evaluated(render([with_table(table)], words()), tmp_path, script)
    assert (before < 6, is_open, rows) == (True, True, len(ROWS))


@in_browser
def test_on_a_narrow_screen_what_a_row_is_about_stays_in_sight(tmp_path):
    script = (
        "var wide=Array.from(document.querySelectorAll('.wide')).find(function(each){"
        "return each.scrollWidth>each.clientWidth+60&&each.querySelector('thead');});wide.scrollLeft=60;"
        "return [wide.scrollLeft].concat(['thead th','tbody td'].map(function(cell){"
        "return wide.querySelector(cell).getBoundingClientRect().left-wide.getBoundingClientRect().left;}));"
    )
    assert evaluated(render([report_of()], texts()), tmp_path, script, options=("--window-size=500,900",)) == [60, 0, 0]


def test_options_do_not_break_at_their_dashes():
    assert sentence("use --rank-anyway, or -- not") == 'use <span class="option">--rank-anyway</span>, or -- not'
