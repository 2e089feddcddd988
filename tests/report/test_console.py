from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from tests.report.make import MS, analysis, empty, gaps_of, host_only, table_of_rows, whole_trace, with_table
from traceanalyze.analyses.idle.idle import IDLE_CAUSES
from traceanalyze.analyses.idle.syncs import SYNC_POINTS
from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console import Style, curve_lines, render, render_all, style_for
from traceanalyze.report.console.style import NARROW, display_width
from traceanalyze.report.console.tables import Field, fit
from traceanalyze.report.contents import Scope, build_report
from traceanalyze.report.format import Formatter
from traceanalyze.report.view import View

WORLD = [analysis(rank=rank, times=(100.0 + 5 * rank,), comm=0.2, hidden=0.1) for rank in range(3)]
CASES = {
    "steps": [analysis()],
    "one step": [analysis(times=(1234.5,))],
    "long run": [analysis(times=tuple(100.0 + n for n in range(500)))],
    "whole trace": [whole_trace()],
    "host": [host_only(10.0, 20.0)],
    "empty": [empty()],
    "ranks": WORLD,
}


def show(analyses, *, width=80, detail=Detail.NORMAL, top=5, scope=None, **style):
    report = build_report("run", analyses, version="0", notes=["1 rank is missing: 3"], scope=scope)
    return render(report, texts(), Style(width=width, **style), View(detail, top))


def test_idle_causes_that_were_not_measured_say_why():
    text = show([with_table(analysis(), IDLE_CAUSES.missing("no_api"))])
    assert "- Why the device was idle: no runtime calls recorded" in text


@pytest.mark.parametrize("detail", list(Detail))
@pytest.mark.parametrize("width", [60, 80, 160])
@pytest.mark.parametrize("case", CASES)
def test_no_line_is_wider_than_the_terminal(case, width, detail):
    text = show(CASES[case], width=width, detail=detail)
    assert max(wcswidth(line) for line in text.splitlines()) <= width
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_the_verdict_comes_first_and_quality_last():
    text = show([analysis()])
    order = [
        "Step 177.7 ms: the device is idle 44 %",
        "sample.pt.trace.json · device 0",
        "Where the step's time went",
        "Why the device was idle",
        "Where the host waited",
        "Longest idle intervals",
        "How work reached the device (but for steps that are left out)",
        "Step by step",
        "How far to trust",
        "To measure more",
    ]
    places = [text.index(title) for title in order]
    assert places == sorted(places)


def test_numbers_stand_under_each_other():
    lines = show([analysis()]).splitlines()
    start = lines.index("part             time  share")
    ends = {re.match(r".*?\d+\.\d\d(?= )", line).end() for line in lines[start + 3 : start + 10]}
    assert len(ends) == 1


def test_causes_of_zero_are_left_out_but_the_sum_is_there():
    text = show([analysis()])
    assert "dispatch: allocation" not in text
    assert re.search(r"^idle +78\.17 +44\.0 +100\.0$", text, re.MULTILINE)
    assert "dispatch: allocation" in show([analysis()], detail=Detail.VERBOSE)


def test_bars_have_the_length_of_their_share():
    style = Style()
    assert style.bar(0.5, 40) == "█" * 20
    assert style.bar(1.0, 40) == "█" * 40
    assert style.bar(0, 40) == ""
    assert Style(unicode=False).bar(0.5, 40) == "#" * 20


def test_plain_output_has_no_escape_codes():
    assert "\033" not in show([analysis()])
    assert "\033[1m" in show([analysis()], colour=True)


@pytest.mark.parametrize("case", CASES)
def test_colour_moves_nothing(case):
    coloured = show(CASES[case], colour=True, detail=Detail.VERBOSE)
    plain = re.sub(r"\033\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in plain.splitlines()] == show(CASES[case], detail=Detail.VERBOSE).splitlines()


def test_ascii_terminals_get_ascii_drawing():
    assert show([whole_trace()], unicode=False).replace("·", "").replace("…", "").replace("µ", "").isascii()


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_colour_is_for_terminals_and_not_with_no_color(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert style_for(Terminal()).colour
    assert not style_for(io.StringIO()).colour
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert style_for(io.StringIO()).colour
    monkeypatch.setenv("NO_COLOR", "1")
    assert not style_for(Terminal()).colour


def test_the_width_is_that_of_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "123")
    assert style_for(io.StringIO()).width == 123
    monkeypatch.setenv("COLUMNS", "7")
    assert style_for(io.StringIO()).width == 60


def gap_named(name):
    return [with_table(analysis(), gaps_of([("5", 5 * MS, name)]))]


def test_names_cannot_steer_the_terminal():
    text = show(gap_named("kernel\033[31m\nred\x07"))
    assert "\033" not in text
    assert "\x07" not in text
    assert "kernel\N{REPLACEMENT CHARACTER}[31m" in text


def test_wide_characters_count_twice():
    text = show(gap_named("矩阵乘法算子" * 20))
    assert max(wcswidth(line) for line in text.splitlines()) <= 80
    assert "矩阵" in text


def test_long_names_are_shortened_in_the_middle():
    assert Style().shorten("void at::native::add<float>", 12) == "void a…loat>"


def test_what_was_not_measured_is_never_a_zero():
    text = show([analysis()])
    assert re.search(r"cudaDeviceSynchronize +1 +3\.000 +n/m", text)
    assert "n/m: not measured (what came after the last wait of the trace was not" in text
    missing = show([with_table(analysis(), SYNC_POINTS.missing("no_api"))])
    assert "Where the host waited for the device (sum over the analysed steps): no runtime calls recorded" in " ".join(
        missing.split()
    )


def test_long_runs_show_the_slowest_steps():
    text = show(CASES["long run"])
    assert "Step by step: the 5 slowest of 500; -v shows all" in text
    assert "599.00" in text
    assert len(show(CASES["long run"], detail=Detail.VERBOSE).splitlines()) > 500


def test_top_limits_ranked_tables():
    text = show([analysis()], top=2)
    assert "and 7 more; --top 9 shows them" in text
    texts = {"op": "aten::item", "call": "cudaEventSynchronize", "kind": None}
    rows = [{**dict.fromkeys(SYNC_POINTS.keys, 1), **texts}] * 1_200
    text = show([with_table(analysis(), SYNC_POINTS.fill_records(rows))], top=2)
    assert "and 1,198 more; --top 1200 shows them" in text


def test_chosen_ranks_are_shown_one_after_another():
    text = show(WORLD, scope=Scope(every_rank=True))
    assert text.count("Where the time went") == 3
    assert "Details below" not in text


def test_notes_are_counted_and_shown_on_request():
    assert "Notes that change no number: 1" in show([analysis()])
    assert "note Q05" in show([analysis()], detail=Detail.VERBOSE)
    assert "warning Q03  No launch record for 4 of 9,100 device events, 6.1 % of" in show([analysis()])


def test_several_runs_have_titles():
    report = build_report("first", [analysis()], version="0")
    for view in (View(), View(whole=True)):
        assert render_all([report, report], texts(), Style(), view).count("══ first") == 2


@given(
    st.lists(st.tuples(st.integers(1, 60), st.booleans(), st.booleans()), min_size=1, max_size=12), st.integers(60, 200)
)
def test_columns_always_fit(shapes, width):
    fields = tuple(
        Field("x", "", ("x" * natural,), natural=natural, flexible=flexible, idle=idle)
        for natural, flexible, idle in shapes
    )
    fitted = fit(fields, width)
    assert sum(fitted.widths) + fitted.gap * (len(fitted.fields) - 1) <= width
    assert fitted.fields[0] == fields[0]


def test_what_is_known_to_be_narrow_is():
    narrow = [chr(code) for code in range(0x20, 0x2600) if NARROW.fullmatch(chr(code))]
    assert len(narrow) > 800
    assert {wcswidth(text) for text in narrow} == {1}
    assert display_width("\033[36m██\033[0m 12 µs 时间") == 2 + 7 + 4


def test_a_curve_whose_rows_are_all_at_one_time_stands_in_its_first_column():
    columns = (Column("at", Kind.COUNT), Column("reserved", Kind.MEMORY), Column("used", Kind.MEMORY))
    table = table_of_rows("curve", columns, [(7, 8, 8), (7, 8, 4)], plot=("reserved", "used"))
    lines = curve_lines(table, Formatter(texts()), Style(width=12, unicode=False))
    # Full up to the highest value of that time, then its last one goes on: half used, all reserved.
    assert [line.partition("|")[2] for line in lines] == ["#......"] * 4 + ["#######"] * 4
