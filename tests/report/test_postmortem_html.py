"""The page of a post-mortem, in a browser where there is one."""

from __future__ import annotations

import pytest

import traceanalyze
from tests.causes.make import write_run
from tests.report.browser import dump_dom, evaluated
from traceanalyze.locales import texts
from traceanalyze.report.html import render

in_browser = pytest.mark.usefixtures("needs_browser")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_run(folder / "run", [[0] * 4, [40] * 4, [0] * 4])
    return render([traceanalyze.postmortem(folder / "run")], texts())


def test_the_page_fetches_nothing(page):
    assert "default-src 'none'" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_the_verdict_the_causes_and_what_to_do_come_first(page):
    places = [page.index(text) for text in ("Rank 1 limited this run", 'id="run-run_causes"', 'id="run-actions"')]
    assert places == sorted(places)
    assert page.index('id="run-actions"') < page.index('id="run-rank_steps"')


@in_browser
def test_it_opens_without_an_error_and_its_tables_sort(page, tmp_path):
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    dom, console = dump_dom(tmp_path / "page.html")
    assert console == []
    assert "one rank makes the others wait" in dom
    script = """
        var table = document.querySelector('#run-run_causes table'), head = table.querySelectorAll('th')[1];
        var names = function () {
            return Array.from(table.tBodies[0].rows).map(function (row) { return row.cells[1].textContent; });
        };
        var before = names();
        head.click();
        head.click();
        return [before, names()];
    """
    before, after = evaluated(page, tmp_path, script)
    assert before[0] == "one rank makes the others wait"
    assert before != sorted(before, reverse=True)
    assert after == sorted(before, reverse=True)
