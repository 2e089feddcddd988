"""Reports in Chinese, as they look."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from wcwidth import wcswidth

import traceanalyze
from tests.declared import said
from tests.report.make import analysis
from tests.report.test_console import CASES
from traceanalyze.locales import texts
from traceanalyze.model.table import Kind, Message
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console import Style, render
from traceanalyze.report.contents import build_report
from traceanalyze.report.format import Formatter
from traceanalyze.report.html import render as render_page
from traceanalyze.report.view import View
from traceanalyze.report.xlsx.formats import lines

SAMPLES = Path(__file__).parents[2] / "sample_traces"
WORDS = texts("zh")
WIDTHS = pytest.mark.parametrize("width", [60, 80, 160])
DETAILS = pytest.mark.parametrize("detail", list(Detail))


@pytest.fixture(scope="module")
def compared():
    return traceanalyze.compare(SAMPLES / "gpu_healthy", SAMPLES / "gpu_data_loading")


@pytest.fixture(scope="module")
def leak():
    return traceanalyze.memory(SAMPLES / "memory" / "leak")


def assert_fits(text, width):
    assert [line for line in text.splitlines() if wcswidth(line) > width] == []
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


@DETAILS
@WIDTHS
@pytest.mark.parametrize("case", CASES)
def test_no_line_of_a_report_is_wider_than_the_terminal(case, width, detail):
    report = build_report("run", CASES[case], version="0")
    assert_fits(render(report, WORDS, Style(width=width), View(detail, 5)), width)


@DETAILS
@WIDTHS
def test_no_line_of_a_comparison_is_wider_than_the_terminal(compared, width, detail):
    assert_fits(render(compared, WORDS, Style(width=width), View(detail, 5)), width)


@DETAILS
@WIDTHS
def test_no_line_of_a_memory_report_is_wider_than_the_terminal(leak, width, detail):
    assert_fits(render(leak, WORDS, Style(width=width), View(detail, 5)), width)


def test_a_comparison_names_its_sides_in_chinese():
    found = traceanalyze.compare(SAMPLES / "cpu_training", SAMPLES / "gpu_sync")
    text = render(found, WORDS, Style(width=80), View())
    assert "基准侧没有设备事件：只能比较步耗时。" in text
    assert "base" not in text


def test_columns_stand_below_each_other():
    """Right-aligned numbers end where their heading ends, in columns of the terminal."""
    text = render(build_report("run", [analysis()], version="0"), WORDS, Style(width=80))
    heading, unit, _, *rows = text[text.index("组成 ") :].splitlines()[:6]
    end = wcswidth(heading[: heading.index("耗时") + 2])
    assert wcswidth(unit[: unit.index("ms") + 2]) == end
    for row in rows:
        assert wcswidth(re.match(r"\S+ +[\d.]+", row)[0]) == end


def test_values_of_a_record_begin_in_one_column():
    text = render(build_report("run", [analysis()], version="0"), WORDS, Style(width=80))
    record = text[text.index(WORDS.tables["launches"]) :].splitlines()[1:4]
    names = [WORDS.columns[key] for key in ("linked", "unlinked", "unlinked_ns")]
    for name, line in zip(names, record, strict=True):
        assert line.startswith(name)
    starts = {wcswidth(line) - wcswidth(line[len(name) :].lstrip()) for name, line in zip(names, record, strict=True)}
    assert len(starts) == 1


def test_sentences_follow_each_other_without_spaces():
    both = [Message(said("cut_short")), Message(said("nothing_to_analyse"))]
    told = Formatter(WORDS).sentences(both)
    assert "。没有可分析的内容" in told
    assert ". There is nothing" in Formatter(texts()).sentences(
        [Message(said("cut_short")), Message(said("nothing_to_analyse"))]
    )


def test_numbers_leave_chinese_words_alone():
    note = Message("more_notes", (("count", Kind.COUNT, 1),))
    assert Formatter(WORDS).message(note) == "不影响数值的提示：1 条（用 -v 显示）"


def test_the_page_says_its_language():
    report = build_report("run", [analysis()], version="0")
    assert '<html lang="zh-CN">' in render_page([report], WORDS)
    assert '<html lang="en">' in render_page([report], texts())


def test_contents_of_the_page_are_short():
    page = render_page([build_report("run", [analysis()], version="0")], WORDS)
    contents = page[page.index("<nav") : page.index("</nav>")]
    assert "单步时间花在哪里<" in contents
    assert "完整步的均值" not in contents


def test_rows_of_a_sheet_are_as_high_as_chinese_needs():
    assert lines("设" * 50, 100) == 1
    assert lines("设" * 51, 100) == 2
    assert lines("ab " + "设" * 49 + " ab", 100) == 2
