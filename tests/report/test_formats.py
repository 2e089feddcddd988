"""The registry of formats: every entry leads to a renderer, and lists are made of it."""

from __future__ import annotations

import inspect

import pytest

from traceanalyze.report.formats import COMPARE, FORMATS, GATE, REPORT, TABLE, TABLES, endings, names, renderer


@pytest.mark.parametrize(
    ("name", "what"), [(each.name, what) for each in FORMATS.values() for what in each.renderers], ids=str
)
def test_every_format_has_its_renderers(name, what):
    render, takes = renderer(name, what)
    parameters = list(inspect.signature(render).parameters)
    assert parameters[1 if what == TABLE else 2 :][: len(takes)] == list(takes)


def test_no_two_formats_have_one_ending():
    known = [each.ending for each in FORMATS.values() if each.ending]
    assert len(set(known)) == len(known)


def test_commands_offer_what_there_is_a_renderer_for():
    assert names(REPORT, TABLE) == ("console", "json", "xlsx", "csv", "parquet", "html", "markdown")
    assert names(REPORT, TABLE, traces=True) == ("console", "json", "xlsx", "csv", "parquet", "svg", "html", "markdown")
    assert names(COMPARE) == ("console", "json", "xlsx", "html", "markdown")
    assert names(GATE) == ("console", "json", "markdown", "junit", "github", "sarif")
    assert TABLES == ("csv", "parquet")


def test_endings_are_listed():
    assert endings(REPORT) == ".xlsx, .html, .md, .json, .txt"
    assert endings(REPORT, first="html") == ".html, .xlsx, .md, .json, .txt"
    assert endings(REPORT, traces=True, last=" or ") == ".xlsx, .html, .md, .json, .svg or .txt"
