from __future__ import annotations

import pytest

from tests.report.make import analysis, empty, host_only, whole_trace
from traceanalyze.locales import texts
from traceanalyze.report.contents import build_report
from traceanalyze.report.markdown import MAX_ROWS, plain, render


def page(*analyses, name="run"):
    return render([build_report(name, analyses, version="0")], texts())


def tables_of(text):
    """Lines of each table."""
    found = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [lines for lines in found if lines]


@pytest.mark.parametrize("one", [analysis(), whole_trace(), host_only(1.0, 2.0), empty()])
def test_every_table_is_one_to_github(one):
    text = page(one)
    assert text.startswith("# run\n\n**")
    for lines in tables_of(text):
        assert set(lines[1]) <= set("|-: ")
        assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_the_step_is_told_with_its_unit():
    # Three steps of 533 ms together.
    assert "| step | 177.67 | 100.0 |" in page(analysis())


def test_long_tables_stop_and_say_so():
    text = page(analysis(times=tuple(float(n + 1) for n in range(40))))
    assert max(len(lines) for lines in tables_of(text)) <= MAX_ROWS + 3


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a|b", "a\\|b"),
        ("[x](javascript:1)", "\\[x\\](javascript:1)"),
        ("<img src=x>", "\\<img src=x\\>"),
        ("&lt;b&gt;", "&amp;lt;b&amp;gt;"),
        ("https://x.org", "https:<!-- -->//x.org"),
        ("www.x.org", "www<!-- -->.x.org"),
        ("ping @all", "ping @<!-- -->all"),
        ("see #12", "see \\#<!-- -->12"),
        ("two\nlines", "two lines"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("2) item", "2\\) item"),
        ("---", "\\---"),
        ("===", "\\==="),
        ("1.25", "1.25"),
        ("-3.5 ms", "-3.5 ms"),
        ("__init__", "\\_\\_init\\_\\_"),
    ],
)
def test_names_stay_text(name, shown):
    assert plain(name) == shown


def test_the_name_of_a_run_cannot_become_markup():
    assert page(analysis(), name="<b>|x").startswith("# \\<b\\>\\|x\n")
