"""The registry of formats: every entry leads to a renderer, and lists are made of it."""

from __future__ import annotations

import inspect

import pytest

from traceanalyze.report.formats import FORMATS, TABLES, endings, names, renderer


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_its_renderer(name):
    given = ("table",) if name in TABLES else ("reports", "texts", *FORMATS[name].takes)
    assert tuple(inspect.signature(renderer(name)).parameters)[: len(given)] == given


def test_no_two_formats_have_one_ending():
    known = [each.ending for each in FORMATS.values() if each.ending]
    assert len(set(known)) == len(known)


def test_every_command_offers_every_format_but_those_of_another():
    common = ("console", "json", "xlsx", "csv", "parquet", "html", "markdown", "brief")
    for command in ("compare", "memory", "postmortem", "whatif"):
        assert names(command) == common
    assert names("analyze") == (
        "console",
        "json",
        "xlsx",
        "csv",
        "parquet",
        "svg",
        "html",
        "markdown",
        "brief",
        "openmetrics",
    )
    assert names("gate") == (*common, "junit", "github", "sarif")
    assert TABLES == ("csv", "parquet")


def test_endings_are_listed():
    assert endings("memory") == ".xlsx, .html, .md, .json, .txt"
    assert endings("memory", first="html") == ".html, .xlsx, .md, .json, .txt"
    assert endings("analyze", choice=True) == ".xlsx, .html, .md, .json, .svg, .txt or .prom"
