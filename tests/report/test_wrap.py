"""Text broken at a width in columns; Chinese characters take two."""

from __future__ import annotations

import re
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from traceanalyze.report.console.style import Style, filled, joined, padded

CHINESE = (
    "设备每步等待 Host 准备并下发任务 1.234 ms（占单步 58 %），主要在 aten::_local_scalar_dense 附近；其余 6 步正常。"
)
WORDS = st.lists(
    st.text("设备等待主机步，。（）：；", min_size=1, max_size=30) | st.text("abc_:.(", min_size=1, max_size=90),
    min_size=1,
    max_size=12,
).map(" ".join)


@given(WORDS, st.sampled_from(["", "- ", "基准  "]), st.integers(20, 90))
def test_no_line_is_wider_than_asked_and_nothing_is_lost(text, first, width):
    lines = filled(text, width, first, "  ").splitlines()
    assert all(wcswidth(line) <= width for line in lines)
    assert all(line == line.rstrip() or line == first for line in lines)
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", first + text)


@given(st.text("ab cd- .,", max_size=200), st.integers(20, 60))
def test_latin_text_breaks_as_ever(text, width):
    ours = filled(text, width, "- ", "  ")
    assert ours == textwrap.fill(text, width, initial_indent="- ", subsequent_indent="  ")


@pytest.mark.parametrize("width", range(24, 100, 3))
def test_marks_and_units_stay_with_what_they_belong_to(width):
    lines = Style(width=width).wrap(CHINESE).splitlines()
    assert not any(line[0] in "，。；）：" for line in lines)
    assert not any(line[-1] == "（" for line in lines)
    text = "\n".join(lines)
    for whole in ("1.234 ms", "58 %", "6 步", "Host"):
        assert whole in text


@pytest.mark.parametrize("width", range(60, 100))
def test_chinese_lines_are_full(width):
    """Breaks are possible nearly anywhere: but for the long Latin name no line leaves more than a few columns."""
    lines = Style(width=width).wrap(CHINESE.replace("aten::_local_scalar_dense", "训练循环") * 4).splitlines()
    assert all(wcswidth(line) > width - 10 for line in lines[:-1])


def test_indents_count_in_columns():
    lines = Style(width=40).wrap("差异的原因" * 20, " " * 6, first="基准  ").splitlines()
    assert lines[0].startswith("基准  差异")
    assert all(re.match(" {6}[^ ]", line) for line in lines[1:])
    assert max(map(wcswidth, lines)) == 40


def test_padding_counts_in_columns():
    assert padded("基准", 6) + "|" == "基准  |"
    assert padded("base", 6) + "|" == "base  |"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["in the training", "loop itself"], "in the training loop itself"),
        (["设备在", "空闲"], "设备在空闲"),
        (["拷贝到设备，", "`pin_memory`", "（见下）", "之后"], "拷贝到设备，`pin_memory`（见下）之后"),
        (["等待 Host", "下发", "Kernel"], "等待 Host 下发 Kernel"),
    ],
)
def test_lines_of_a_paragraph_are_joined_as_their_language_is_written(lines, text):
    assert joined(lines) == text
