"""Pictures of the trace around findings, of ranks, and of ranks step by step, as a reader of the page has them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.declared import said
from tests.report.browser import dump_dom, evaluated
from tests.report.make import table_of_rows
from tests.report.test_html import HOSTILE, Page
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.excerpt import MAX_LANES, MOST_BOXES, LaneKind, place, whole
from traceanalyze.analyses.options import Options
from traceanalyze.locales import rule_doc, texts
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.pipeline.recordings import MAX_PLACES, places_of
from traceanalyze.report.format import Formatter
from traceanalyze.report.html import render, timeline
from traceanalyze.report.html.curve import ticks
from traceanalyze.report.html.ranks import MAX_CELLS, MAX_RANKS, fitted, heat_map, rank_chart, shade
from traceanalyze.report.html.timeline import timeline_html
from traceanalyze.report.model import FindingExcerpt
from traceanalyze.rules.finding import Evidence, Finding, Outcome, intervals_of
from traceanalyze.rules.registry import every_rule

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
MAX_BYTES = 40_000
in_browser = pytest.mark.usefixtures("needs_browser")


def crowded(name):
    """One step of 60 ms with 60 events in every lane there is room for, all called the same."""
    b = TraceBuilder()
    b.step(1, 0, 60_000)
    for at in range(0, 60_000, 1_000):
        for depth in range(4):
            b.op(name, at + depth, 900 - 2 * depth)
        b.launch(at + 10, 400, at + 500, 300, name=name, stream=0)
        b.launch(at + 450, 400, at + 500, 300, name=name, stream=1, tid=2)
        for stream in range(2, 9):
            b.device(at + 500, 300, name=name, stream=stream)
    return Context(b.trace(), Options())


def excerpt_of(context, start, end, rule="DAT101"):
    told = (Message(said("excerpt_at_step"), (("time", Kind.DURATION, end - start), ("step", Kind.TEXT, "1"))),)
    return FindingExcerpt(rule, f"rule_{rule}", told, place(context, start, end))


def formatter():
    return Formatter(texts())


@pytest.fixture(scope="module")
def loading():
    return traceanalyze.analyze(SAMPLES / "gpu_data_loading")


@pytest.fixture(scope="module")
def two_ranks():
    return traceanalyze.analyze(SAMPLES / "gpu_two_ranks")


def figures(html):
    return re.findall(r'<figure class="timeline"[^>]*>.*?</figure>', html, re.DOTALL)


def packed(figure):
    """What a picture gives to the script: its numbers, and each lane with its boxes by name."""
    (script,) = Page(f"<body>{figure}</body>").find("script")
    found = json.loads("".join(script[2]))
    lanes = []
    for lane in found["lanes"]:
        flat = lane["boxes"]
        boxes = [flat[at : at + 6] for at in range(0, len(flat), 6)]
        lanes.append(
            [(found["names"][one[2]][-1], found["kinds"][one[3]][0], one[0], one[1], *one[4:]) for one in boxes]
        )
    return found, lanes


def cards(html):
    return re.findall(r'<section id="([^"]*-finding-\d+)" class="card[^>]*>(.*?)</section>', html, re.DOTALL)


def test_a_card_shows_the_trace_where_its_finding_is_worst(loading):
    (found,) = [one for one in loading.ranks[0].excerpts if one.rule == "DAT101"]
    html = render([loading], texts())
    (card,) = [card for _, card in cards(html) if "<small>DAT101</small>" in card]
    (figure,) = figures(card)
    page = Page(f"<body>{figure}</body>")
    assert page.errors == []
    said = page.text().replace("\xa0", " ")
    assert "DAT101 waiting for the data loader: where it is longest" in said
    (finding,) = [one for one in loading.ranks[0].findings if one.rule == "DAT101"]
    longest = int((finding.intervals[:, 1] - finding.intervals[:, 0]).max())
    assert found.place.length == longest
    assert f"It takes {formatter().value(Kind.DURATION, longest)} and begins" in said
    assert "The device is idle throughout (mainly data loading)." in said
    assert f"Meanwhile the host is in {LOADER}." in said
    data, lanes = packed(figure)
    assert data["instance"][1] - data["instance"][0] == longest
    assert LOADER in {box[0] for lane in lanes for box in lane}
    # Below where the time went, above the next table.
    assert html.index('id="run-0-split"') < html.index('class="timeline"') < html.index('id="run-0-idle_causes"')


def test_a_card_says_what_it_saves_what_to_do_and_how_to_get_there(loading):
    html = render([loading], texts())
    (one,) = [one for one in loading.findings if one.rule == "DAT101"]
    (card,) = [card for _, card in cards(html) if "<small>DAT101</small>" in card]
    page = Page(f"<body>{card}</body>")
    said = page.text().replace("\xa0", " ")
    assert one.sentence in said
    assert all(text in said for text in (*one.advice, *(each.text for each in one.evidence)))
    (bar,) = page.find("span", class_="amount")
    at, low, high = (float(value) for value in re.findall(r":([\d.]+)", bar[1]["style"]))
    assert at == pytest.approx(one.share, abs=1e-4)
    assert low == pytest.approx(one.share * one.saving.low_ns / one.saving.ns, abs=1e-4)
    assert high == pytest.approx(one.share * one.saving.high_ns / one.saving.ns, abs=1e-4)
    # Since the first event of the trace, as `open --at` takes it.
    longest = max(one.intervals.tolist(), key=lambda span: span[1] - span[0])
    begin = loading.ranks[0].timeline.excerpt.start
    ((command, since, until),) = re.findall(r"<code>(.*?) --at (\d+)ns-(\d+)ns</code>", card)
    assert command == f"traceanalyze open {loading.ranks[0].path}"
    assert [int(since) + begin, int(until) + begin] == longest
    (place,) = page.find("a", class_="place")
    assert place[1]["data-span"] == f"{longest[0]},{longest[1]}"
    assert f'id="{place[1]["href"].removeprefix("#")}"' in html
    (rule,) = (each for each in every_rule() if each.id == "DAT101")
    assert (rule_doc("en", "DAT101") or rule.doc).split() == "".join(page.find("pre")[0][2]).split()


def test_the_timeline_holds_all_of_the_trace_and_every_instance(loading):
    rank = loading.ranks[0]
    html = render([loading], texts())
    (section,) = re.findall(r'<section id="run-0-timeline" class="script">(.*?)</section>', html, re.DOTALL)
    data, lanes = packed(figures(section)[0])
    assert data["start"] == rank.timeline.excerpt.start
    assert data["length"] == rank.timeline.excerpt.length
    steps = [box for lane, boxes in zip(data["lanes"], lanes, strict=True) if lane["kind"] == "steps" for box in boxes]
    assert [box[3] for box in steps] == sorted(box[3] for box in steps)
    assert {lane["kind"] for lane in data["lanes"]} == {"steps", "ops", "calls", "stream", "idle"}
    for mark, one in zip(data["marks"], loading.findings_of(rank.rank) if rank.rank is not None else (), strict=False):
        assert len(mark["times"]) == min(len(one.intervals), 200)
    ids = {node[1].get("id") for node in Page(html).elements}
    assert {mark["at"] for mark in data["marks"]} <= ids


def test_instances_that_the_timeline_does_not_mark_are_counted(loading, monkeypatch):
    monkeypatch.setattr(timeline, "_MARKS", 2)
    found = [len(one.intervals) for one in loading.findings]
    html = render([loading], texts())
    (section,) = re.findall(r'<section id="run-0-timeline" class="script">(.*?)</section>', html, re.DOTALL)
    data, _ = packed(figures(section)[0])
    assert [len(mark["times"]) for mark in data["marks"]] == [min(each, 2) for each in found]
    left = sum(max(each - 2, 0) for each in found)
    assert left > 1
    assert f"Not marked: {left} shorter instances of findings." in section
    monkeypatch.setattr(timeline, "_MARKS", max(found))
    assert "Not marked" not in render([loading], texts())


def test_findings_about_all_ranks_lead_to_the_cards_of_a_rank(two_ranks):
    focus = two_ranks.focus[0]
    (found,) = two_ranks.ranks[focus].excerpts
    of_rank = [one for one in two_ranks.ranks[focus].said if one.found.rule == found.rule]
    html = render([replace(two_ranks, said=(*two_ranks.said, *(one._replace() for one in of_rank)))], texts())
    at = f"run-{focus}-finding-{[one.found.rule for one in two_ranks.ranks[focus].said].index(found.rule)}"
    assert html.count(f'<a href="#{at}">COM101 communication that nothing hides</a>') == 1
    assert html.count(f'id="{at}"') == 1


def test_boxes_are_where_their_events_are():
    b = TraceBuilder()
    b.step(1, 0, 1_000)
    b.launch(100, 50, 200, 300, name="gemm")
    b.launch(560, 40, 750, 250, name="relu")
    one = excerpt_of(Context(b.trace(), Options()), 0, 1_000_000)
    data, lanes = packed(timeline_html(one, formatter()))
    drawn = {box[0]: box[1:4] for lane in lanes for box in lane}
    assert data["length"] == 1_000_000
    assert drawn["gemm"] == ("compute", 200_000, 500_000)
    assert drawn["relu"] == ("compute", 750_000, 1_000_000)


@pytest.mark.parametrize("name", ["void at::native::" + "long_" * 60 + "<int>(int)", "算子" * 90])
def test_a_crowded_picture_is_small_and_says_what_it_merges(name):
    one = excerpt_of(crowded(name), 0, 60_000_000)
    assert len(one.place.excerpt.lanes) == MAX_LANES
    assert sum(len(lane.boxes) for lane in one.place.excerpt.lanes) > 500
    figure = timeline_html(one, formatter())
    assert len(figure.encode()) <= MAX_BYTES
    merged = one.place.excerpt.merged_events
    assert merged > 300
    assert f"{merged:,} events too short to be seen alone share boxes" in figure
    page = Page(f"<body>{figure}</body>")
    assert page.errors == []
    assert len(page.elements) < 60
    _, lanes = packed(figure)
    assert [len(lane) for lane in lanes] == [len(lane.boxes) for lane in one.place.excerpt.lanes]


def test_a_whole_trace_has_few_boxes_that_lose_no_event_and_no_time():
    b = TraceBuilder()
    b.step(1, 0, 100_000)
    for at in range(0, 100_000, 10):
        b.launch(at, 2, at + 3, 4, name=f"k{at % 7}")
    found = whole(Context(b.trace(), Options()))
    (stream,) = [lane for lane in found.lanes if lane.kind == LaneKind.STREAM]
    # So many that one sees inside the row, though every event joins the one before.
    assert MOST_BOXES // 4 < len(stream.boxes) <= MOST_BOXES
    assert sum(box.count for box in stream.boxes) == 10_000
    assert sum(box.busy for box in stream.boxes) == 10_000 * 4_000
    assert max(box.end - box.start for box in stream.boxes) < found.length / 100


@pytest.mark.parametrize("name", [*HOSTILE, "</svg><script>alert(1)</script>", "</title><rect onload=x>"])
def test_hostile_names_stay_text_in_pictures(name):
    b = TraceBuilder()
    b.step(1, 0, 1_000)
    b.op(name, 0, 900)
    b.launch(100, 50, 200, 300, name=name, api=name)
    figure = timeline_html(excerpt_of(Context(b.trace(), Options()), 0, 1_000_000), formatter())
    page = Page(f"<body>{figure}</body>")
    assert page.errors == []
    assert [node[1] for node in page.find("script")] == [{"type": "application/json"}]
    assert not page.find("img")
    assert not [key for node in page.elements for key in node[1] if key.startswith("on")]
    assert {node[0] for node in page.elements} <= {
        "body", "figure", "figcaption", "strong", "canvas", "script", "ul", "li", "b", "span", "i", "p",
    }  # fmt: skip
    assert figure.encode()


def test_what_a_picture_leaves_out_is_said():
    b = TraceBuilder()
    b.step(1, 0, 1_000)
    for depth in range(6):
        b.op(f"level {depth}", depth, 900 - 2 * depth)
    for stream in range(9):
        b.launch(100, 1, 200, 100, stream=stream)
    for tid in (2, 3, 4):
        b.op("elsewhere", 100, 50, tid=tid)
    said = timeline_html(excerpt_of(Context(b.trace(), Options()), 0, 1_000_000), formatter())
    assert "Not drawn: 2 deeper operators." in said
    assert "Not drawn: 4 further streams." in said
    assert "Not drawn: 3 further threads." in said


def test_communication_without_a_stream_is_named_so():
    b = TraceBuilder()
    b.step(1, 0, 1_000)
    b.launch(100, 50, 200, 300, stream=-1000, name="hcom_allReduce_")
    data, _ = packed(timeline_html(excerpt_of(Context(b.trace(), Options()), 200_000, 500_000), formatter()))
    assert [lane["name"] for lane in data["lanes"]] == ["step", "1", "communication", "device idle"]


def test_places_are_the_longest_instances_and_no_more_than_six():
    b = TraceBuilder()
    b.step(1, 0, 1_000)
    b.launch(100, 50, 200, 300)
    context = Context(b.trace(), Options())
    times = intervals_of(np.array([0, 300_000]), np.array([100_000, 700_000]))
    proof = (Evidence("place", 1, "COUNT", 10_000, 20_000), Evidence("place", 2, "COUNT", 50_000, 90_000))
    found = [Finding(rule=f"X{n}", intervals=times) for n in range(4)]
    found += [Finding(rule="none")]
    found += [Finding(rule=f"Y{n}", evidence=proof) for n in range(4)]
    places = places_of(context, Outcome(tuple(found)))
    assert [rule for rule, *_ in places] == ["X0", "X1", "X2", "X3", "Y0", "Y1"]
    assert len(places) == MAX_PLACES
    assert {each.length for (rule, *_), each in places.items() if rule[0] == "X"} == {400_000}
    assert {each.length for (rule, *_), each in places.items() if rule[0] == "Y"} == {40_000}


def test_pictures_of_real_traces_are_small(shared_traces):
    paths = sorted(shared_traces.glob("kineto/hta/trace_diff/*/*.json.gz"))
    paths += sorted(shared_traces.glob("kineto/param/resnet_kineto.json.gz"))
    if not paths:
        pytest.skip("these traces are not here")
    drawn = [timeline_html(one, formatter()) for path in paths for one in traceanalyze.analyze(path).ranks[0].excerpts]
    assert len(drawn) >= 3
    assert max(len(figure.encode()) for figure in drawn) <= MAX_BYTES
    assert all(Page(f"<body>{figure}</body>").errors == [] for figure in drawn)


def test_names_are_shortened_to_what_tells_them_apart():
    b = TraceBuilder()
    b.step(1, 0, 1_000)
    kernel = "void at::native::(anonymous namespace)::softmax_forward_kernel<4, at::Add<float>>(int, char*)"
    b.op("autograd::engine::evaluate_function: MulBackward0", 0, 500)
    b.launch(100, 50, 200, 300, name=kernel)
    data, _ = packed(timeline_html(excerpt_of(Context(b.trace(), Options()), 0, 1_000_000), formatter()))
    assert ["softmax fwd", kernel] in data["names"]
    assert ["MulBackward0", "autograd::engine::evaluate_function: MulBackward0"] in data["names"]
    assert fitted("aten::linear", 1_000) == "aten::linear"
    assert fitted("aten::linear", 60).endswith("…")
    assert fitted("aten::linear", 15) == ""
    assert len(fitted("中文算子中文算子", 70)) < len(fitted("abcdefghabcdefgh", 70))


@pytest.mark.parametrize("length", [1, 7, 999, 5_000, 1_234_567, 1_999_999_999, 4_500_000_000, 3_600_000_000_000])
def test_axes_have_few_round_times(length):
    marks = ticks(length, 8)
    assert 2 <= len(marks) <= 9
    steps = {after - before for (before, _), (after, _) in pairwise(marks)}
    assert len(steps) == 1
    assert str(steps.pop()).rstrip("0") in {"1", "2", "5"}
    assert marks[-1][0] <= length


STEPS = (
    Column("step", Kind.TEXT),
    Column("rank", Kind.TEXT),
    Column("time_ns", Kind.DURATION),
    Column("of_mean", Kind.RATIO),
    Column("wait_ns", Kind.DURATION),
    Column("longest_part", Kind.TERM),
    Column("longest_ns", Kind.DURATION),
)


def steps_table(ranks, steps, ratio):
    rows = tuple(
        (str(step), str(rank), 10_000_000, ratio(rank, step), 0, "compute", 8_000_000)
        for step in range(steps)
        for rank in range(ranks)
    )
    return table_of_rows("rank_steps", STEPS, rows)


def cells(picture):
    return dict(re.findall(r'<rect class="(?:\w+)"[^>]* data-tip="(rank \d+, step \d+): ([^"&]*)', picture))


def test_the_heat_map_has_a_cell_for_each_rank_and_step():
    picture = heat_map(steps_table(4, 6, lambda rank, step: 1.3 if (rank, step) == (2, 4) else 0.99), formatter())
    found = cells(picture)
    assert len(found) == 24
    assert found["rank 2, step 4"] == "1.30 of the mean"
    assert set(found.values()) == {"1.30 of the mean", "0.99 of the mean"}
    assert picture.count('class="slow4" x=') == 1
    assert "longest part: compute, 8.000 ms" in picture
    assert "Drawn are" not in picture
    assert Page(f"<body>{picture}</body>").errors == []


@pytest.mark.parametrize(
    ("ratio", "css"),
    [(1.0, "h0"), (1.019, "h0"), (1.03, "slow1"), (0.97, "fast1"), (1.07, "slow2"), (1.15, "slow3"), (0.75, "fast4"),
     (1.5, "slow5"), (3.0, "slow5"), (0.2, "fast5")],
)  # fmt: skip
def test_colours_say_how_far_from_the_mean(ratio, css):
    assert shade(ratio) == css


def test_a_large_heat_map_keeps_what_differs_most_and_says_so():
    odd = {(7, 150), (90, 299)}
    picture = heat_map(steps_table(100, 300, lambda *at: 2.0 if at in odd else 1.0), formatter())
    found = cells(picture)
    assert len(found) <= MAX_CELLS
    assert found["rank 7, step 150"] == found["rank 90, step 299"] == "2.00 of the mean"
    assert "Drawn are 25 of 300 steps and 64 of 100 ranks, those that differ most." in picture
    assert len(picture.encode()) < 1_000_000


def test_what_was_not_measured_has_no_colour_in_the_heat_map():
    table = steps_table(2, 2, lambda rank, step: None if rank else 1.0)
    assert heat_map(table, formatter()).count('class="unknown"') == 2
    assert cells(heat_map(table, formatter()))["rank 1, step 0"] == "n/m"


@pytest.mark.parametrize(("ranks", "steps"), [(1, 5), (5, 1)])
def test_one_rank_or_one_step_is_no_map(ranks, steps):
    assert heat_map(steps_table(ranks, steps, lambda *_: 1.0), formatter()) == ""
    assert heat_map(Table("rank_steps", STEPS).missing("no_common_steps"), formatter()) == ""


RANKS = (
    Column("rank", Kind.TEXT),
    Column("steps", Kind.COUNT),
    Column("step_ns", Kind.DURATION),
    Column("compute_share", Kind.SHARE),
    Column("sync_share", Kind.SHARE),
    Column("idle_share", Kind.SHARE),
)


def test_bars_of_ranks_are_as_long_as_their_steps_and_parts():
    rows = (("0", 3, 10_000_000, 0.75, NotMeasured("no_host_events"), 0.25), ("1", 3, 5_000_000, 1.0, 0.0, 0.0))
    picture = rank_chart(table_of_rows("ranks", RANKS, rows), formatter())
    assert Page(f"<body>{picture}</body>").errors == []
    drawn = re.findall(r'<rect x="([\d.]+)" y="(\d+)" width="([\d.]+)"[^>]*fill:var\(--part-(\w+)', picture)
    assert [(part, float(x), float(wide)) for x, _, wide, part in drawn] == [
        ("compute", 60.0, 615.0),
        ("idle", 675.0, 205.0),
        ("compute", 60.0, 410.0),
    ]
    assert "0: 10.00 ms&#10;compute: 75 %&#10;idle (rest): 25 %" in picture


def test_of_many_ranks_the_slowest_are_drawn_and_it_is_said():
    rows = tuple((str(n), 1, 1_000_000 + 1_000 * n, 0.5, 0.0, 0.5) for n in range(MAX_RANKS + 10))
    picture = rank_chart(table_of_rows("ranks", RANKS, rows), formatter())
    titles = re.findall(r'data-tip="(\d+): ', picture)
    assert titles == [str(n) for n in range(10, MAX_RANKS + 10)]
    assert f"Drawn are the {MAX_RANKS} slowest of {MAX_RANKS + 10} ranks." in picture


def test_one_rank_has_no_bars():
    assert rank_chart(table_of_rows("ranks", RANKS, (("0", 1, 1_000_000, 1.0, 0.0, 0.0),)), formatter()) == ""


def test_several_ranks_have_bars_and_a_map_and_one_rank_has_neither(loading, two_ranks):
    html = render([two_ranks], texts())
    assert html.count('<figure class="ranks">') == html.count('<figure class="heat">') == 1
    assert len(cells(html)) == len(two_ranks.tables["rank_steps"].rows)
    html = render([loading], texts())
    assert html.count('<figure class="ranks">') == html.count('<figure class="heat">') == 0


@in_browser
def test_a_browser_draws_the_pictures_and_asks_nobody(tmp_path, loading, two_ranks):
    html = render([two_ranks, loading], texts("zh"))
    page = tmp_path / "page.html"
    page.write_text(html, encoding="utf-8")
    _, console = dump_dom(page)
    assert console == []
    script = (
        "return ['timeline', 'heat', 'ranks'].map(function (name) {"
        "  var box = document.querySelector('figure.' + name + ' :is(canvas, svg)').getBoundingClientRect();"
        "  return box.width > 300 && box.height > 50;"
        "}).concat(performance.getEntriesByType('resource').length);"
    )
    assert evaluated(html, tmp_path, script) == [True, True, True, 0]


TIMELINE = """
var figure = document.querySelector('#run-0-timeline figure'), canvas = figure.querySelector('canvas');
function view() { return canvas.dataset.view.split(',').map(Number); }
function press(key) { canvas.dispatchEvent(new KeyboardEvent('keydown', {key: key, bubbles: true})); return view(); }
"""


@in_browser
def test_the_timeline_moves_and_zooms_by_keys_buttons_and_pointer(tmp_path, loading):
    script = TIMELINE + (
        "var whole=press('Home'),near=press('+'),right=press('ArrowRight'),left=press('ArrowLeft'),far=press('-');"
        "figure.querySelector('.keys button').click();var clicked=view();"
        "var box=canvas.getBoundingClientRect();function at(kind,x){canvas.dispatchEvent(new PointerEvent(kind,"
        "{clientX:box.left+x,clientY:box.top+60,button:0}));}"
        "at('pointerdown',600);at('pointermove',500);at('pointerup',500);"
        "return [whole,near,right,left,far,clicked,view()];"
    )
    whole, near, right, left, far, clicked, dragged = evaluated(render([loading], texts()), tmp_path, script)
    length = loading.ranks[0].timeline.excerpt.length
    assert whole == [0, length]
    assert near == pytest.approx([length / 4, 3 * length / 4], abs=1)
    assert right == pytest.approx([0.35 * length, 0.85 * length], abs=1)
    assert left == pytest.approx(near, abs=1)
    assert far == whole
    assert clicked == pytest.approx(near, abs=1)
    assert dragged[0] > clicked[0]
    assert dragged[1] - dragged[0] == pytest.approx(length / 2, abs=2)


@in_browser
def test_from_a_finding_to_its_place_and_back(tmp_path, loading):
    script = TIMELINE + (
        "var link=document.querySelector('a.place'),card=link.closest('.card').id;link.click();"
        "var there=view(),focus=document.activeElement===canvas,back=figure.querySelector('.keys a');"
        "var shown=!back.hidden&&back.getAttribute('href')==='#'+card;location.hash='';press('Enter');"
        "return [link.dataset.span.split(',').map(Number),there,focus,shown,location.hash==='#'+card];"
    )
    span, there, focus, shown, back = evaluated(render([loading], texts()), tmp_path, script)
    begin = loading.ranks[0].timeline.excerpt.start
    start, end = span[0] - begin, span[1] - begin
    assert there[0] == pytest.approx(max(2 * start - end, 0), abs=1)
    assert there[0] <= start < end <= there[1]
    assert there[1] - there[0] == pytest.approx(3 * (end - start), rel=0.01)
    assert (focus, shown, back) == (True, True, True)
