"""What every kind of page keeps to: elements, bytes, sheets of paper, width, and what axe-core has to say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import traceanalyze
from tests.causes.make import write_run
from tests.needs import AXE as AXE_FILE
from tests.report.browser import evaluated, sheets
from tests.report.test_html import Page, in_browser
from traceanalyze.locales import texts
from traceanalyze.report.html import render

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
MAX_BYTES, MAX_NODES, MAX_SHEETS = 300_000, 5_000, 8
KINDS = ("one", "ranks", "compare", "memory", "postmortem", "gate", "whatif")
_CLOSED = re.compile("<noscript>.*?</noscript>", re.DOTALL)
_DATA = re.compile(r'<script type="application/json".*?</script>', re.DOTALL)


def report_of(kind, folder):
    match kind:
        case "one":
            return traceanalyze.analyze(SAMPLES / "gpu_sync")
        case "ranks":
            return traceanalyze.analyze(SAMPLES / "gpu_two_ranks", ranks="0,1")
        case "compare":
            return traceanalyze.compare(SAMPLES / "gpu_launch_bound", SAMPLES / "gpu_healthy")
        case "memory":
            return traceanalyze.memory(SAMPLES / "memory" / "churn")
        case "postmortem":
            write_run(folder / "run", [[0] * 4, [40] * 4, [0] * 4])
            return traceanalyze.postmortem(folder / "run")
        case "gate":
            return traceanalyze.gate(SAMPLES / "gpu_sync", baseline=SAMPLES / "gpu_healthy")
        case _:
            return traceanalyze.whatif(SAMPLES / "gpu_sync", without="sync")


@pytest.fixture(scope="module", params=[*KINDS, "one zh"])
def page(request, tmp_path_factory):
    kind, _, language = request.param.partition(" ")
    return render([report_of(kind, tmp_path_factory.mktemp(kind))], texts(language or "en"))


def test_it_is_small_but_for_its_data_and_says_most_without_a_script(page):
    assert len(_DATA.sub("", page).encode()) <= MAX_BYTES
    parsed = Page(page)
    assert parsed.errors == []
    # What is closed has none until it is opened; nothing closed is within another, of which the first end would be its.
    assert not any("<noscript" in part[1:] for part in _CLOSED.findall(page))
    assert len(Page(_CLOSED.sub("", page)).elements) <= MAX_NODES
    assert parsed.find("h1")
    assert [node for node in parsed.elements if "verdict" in node[1].get("class", "").split()]


@in_browser
@pytest.mark.parametrize("wide", [500, 2000])
def test_it_has_few_elements_and_fits_any_window(page, tmp_path, wide):
    script = "return [document.querySelectorAll('*').length,document.documentElement.scrollWidth-innerWidth];"
    count, over = evaluated(page, tmp_path, script, options=(f"--window-size={wide},1200",))
    assert count <= MAX_NODES
    assert over <= 0


@in_browser
def test_it_is_printed_on_few_sheets(page, tmp_path):
    assert sheets(page, tmp_path) <= MAX_SHEETS


AXE = """
function violations() {
  return axe.run().then(function (found) {
    return found.violations.map(function (one) {
      return [one.id, one.nodes.length, one.nodes[0].html.slice(0, 300), one.nodes[0].failureSummary];
    });
  });
}
return violations().then(function (closed) {
  document.querySelectorAll('details').forEach(function (part) { part.open = true; });
  return new Promise(function (done) { setTimeout(done, 100); }).then(violations).then(function (all) {
    return closed.concat(all);
  });
});
"""


@in_browser
@pytest.mark.usefixtures("needs_axe")
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_closed_or_opened(page, tmp_path, dark):
    axe = Path(AXE_FILE).read_text(encoding="utf-8").replace("</script", "<\\/script")
    options = ("--window-size=1400,1200", *(("--blink-settings=preferredColorScheme=0",) if dark else ()))
    assert evaluated(page, tmp_path, AXE, more=axe, options=options) == []
