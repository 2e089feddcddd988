"""The flame graph: valid XML whatever the names, widths that sum, nothing from outside."""

from __future__ import annotations

import re
import subprocess
from xml.etree import ElementTree as ET

import pytest

from tests.analyses.test_call_paths import model
from tests.builder import TraceBuilder
from tests.needs import BROWSER
from tests.report.make import analysis
from traceanalyze.locales import texts
from traceanalyze.report import flame
from traceanalyze.report.contents import build_report

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*traces):
    return flame.render([build_report("run", [trace.analyze() for trace in traces], version="0")], texts())


def boxes(svg):
    """(name, depth, x, width in pixels, title) of each box."""
    found = []
    for g in ET.fromstring(svg.encode()).iter(f"{SVG}g"):
        rect = g.find(f"{SVG}rect")
        depth = (int(rect.get("y")) - flame.TOP) // flame.ROW
        box = (g.get("data-n"), depth, float(rect.get("x")), float(rect.get("width")), g.find(f"{SVG}title").text)
        found.append(box)
    return found


def test_widths_are_device_times_and_sum():
    found = boxes(drawn(model()))
    inner = flame.WIDTH - 2 * flame.MARGIN
    roots = [box for box in found if box[1] == 0]
    assert sum(box[3] for box in roots) == pytest.approx(inner, abs=0.1)
    widths = {box[0]: box[3] for box in roots}
    assert widths["Net_0"] == pytest.approx(inner * 74 / 115, abs=0.01)
    assert ("Net_0", 0, "Net_0: 74 µs, 64 %") in [(box[0], box[1], box[4]) for box in found]
    for name, depth, x, width, _ in found:
        inside = [box for box in found if box[1] == depth + 1 and x <= box[2] < x + width - 1e-6]
        assert sum(box[3] for box in inside) <= width + 0.05, name


def test_inner_boxes_lie_below_outer_ones():
    found = boxes(drawn(model()))
    for name, depth, x, width, _ in found:
        above = [box for box in found if box[1] == depth - 1]
        assert depth == 0 or any(box[2] <= x + 0.01 and x + width <= box[2] + box[3] + 0.02 for box in above), name


def test_without_a_device_widths_are_host_times():
    trace = TraceBuilder()
    trace.op("a", 0, 30)
    trace.op("b", 40, 10)
    svg = drawn(trace)
    assert "Host time by call path: 40 µs" in svg
    inner = flame.WIDTH - 2 * flame.MARGIN
    assert [(box[0], box[3]) for box in boxes(svg)] == [("a", 0.75 * inner), ("b", 0.25 * inner)]


NASTY = [
    "<b>&\"'",
    "a\x00\x1b[31m\x85b",
    "]]>",
    "\ud800",
    "\uffff\ufffe",
    "</svg><script>alert(1)</script>",
    "{x} 中文",
]


@pytest.mark.parametrize("name", NASTY)
def test_any_name_can_be_drawn(name):
    trace = TraceBuilder()
    trace.op(name, 0, 30)
    svg = drawn(trace)
    (box,) = boxes(svg)
    kept = re.sub("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd]", "\N{REPLACEMENT CHARACTER}", name)
    # Undecodable bytes are replaced when read, one by one.
    shown, wanted = (text.replace("\N{REPLACEMENT CHARACTER}", "").replace(" ", "") for text in (box[0], kept))
    assert shown == wanted
    assert svg.count("<script>") == 1


def test_no_name_can_turn_the_text_around():
    trace = TraceBuilder()
    trace.op("a\u202eb\u2066c\u200fd", 0, 30)
    assert not re.search("[\u200e\u200f\u202a-\u202e\u2066-\u2069]", drawn(trace))


def test_it_needs_nothing_from_outside():
    svg = drawn(model())
    assert re.findall(r"https?://[^\s\"']+", svg) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"\b(href|src|@import|url\()", svg)


def test_narrow_boxes_are_counted():
    trace = TraceBuilder()
    trace.op("long", 0, 1_000_000)
    for number in range(3):
        trace.op(f"short {number}", 2_000_000 + 10 * number, 5)
    svg = drawn(trace)
    assert [box[0] for box in boxes(svg)] == ["long"]
    assert "Too narrow to draw: 3 paths, &lt;0.1 % of the time." in svg


def test_equal_inputs_give_equal_pictures():
    assert drawn(model()) == drawn(model())


def test_nothing_to_draw_is_said():
    trace = TraceBuilder()
    trace.device(0, 10)
    svg = drawn(trace)
    assert boxes(svg) == []
    assert "not measured: no host operators" in svg
    assert "not measured" in flame.render([build_report("run", [analysis()], version="0")], texts())


@pytest.mark.usefixtures("needs_node")
def test_the_script_is_valid(tmp_path):
    script = ET.fromstring(drawn(model()).encode()).find(f"{SVG}script").text
    (tmp_path / "script.js").write_text(script)
    subprocess.run(["node", "--check", tmp_path / "script.js"], check=True, capture_output=True, timeout=60)


@pytest.mark.usefixtures("needs_browser")
def test_a_browser_opens_it_without_complaint(tmp_path):
    (tmp_path / "flame.svg").write_text(drawn(model()), encoding="utf-8")
    picture = tmp_path / "flame.png"
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--screenshot={picture}"]
    run = subprocess.run(
        [BROWSER, *arguments, (tmp_path / "flame.svg").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in run.stderr
    assert picture.stat().st_size > 1000
