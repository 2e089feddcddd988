"""The workbook, opened again."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from datetime import datetime
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.make import MS, analysis, empty, host_only, table_of_rows, whole_trace
from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind, Layout, Table
from traceanalyze.report.contents import Scope, build_report
from traceanalyze.report.contents.whatif import SPLIT_THEN, WHATIF
from traceanalyze.report.model import formatter_over
from traceanalyze.report.xlsx import MAX_RANKS, MAX_ROWS, render
from traceanalyze.report.xlsx.formats import SheetNames, clean, lines, readable, width
from traceanalyze.report.xlsx.plan import _THEMES, MAX_SHEETS

# openpyxl does not know the solid bars of Excel 2010 and says so.
pytestmark = pytest.mark.filterwarnings("ignore:.* extension is not supported")
HEADER = 4
SHARED = {theme.name for theme in _THEMES}
HOSTILE = (
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2",
    "@SUM(A1)",
    "{=1}",
    "https://example.org/x",
    "internal:'Summary'!A1",
    "12345",
    "007",
    "a\x00b\x0bc\ufffe",
    "lone \ud800 half",
    "two\r\nlines\tand tabs",
    "x" * 40_000,
    "中文算子",
    "_x0041_",
)
_COLUMNS = (
    Column("name", Kind.NAME),
    Column("time_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("count", Kind.COUNT),
    Column("file_bytes", Kind.BYTES, heading="size"),
    Column("concurrency", Kind.RATIO, heading="parallel"),
    Column("base_ns", Kind.COUNT, machine=True),
    Column("frame", Kind.NAME, heading="Python frame", minor=True),
)


def report_of(*analyses, every_rank=False):
    return build_report("run", analyses or [analysis()], version="1.2.3", scope=Scope(every_rank=every_rank))


def with_table(table, report=None):
    """A report with one more table, which the renderer has never heard of."""
    report = report or report_of()
    rank = report.ranks[0]
    return replace(report, ranks=(replace(rank, tables=(*rank.tables, table)),))


def opened(*reports):
    return openpyxl.load_workbook(io.BytesIO(render(reports, words())))


def words():
    known = texts()
    return known._replace(tables={**known.tables, "extra": "A table of another kind"})


def values(sheet):
    return [[cell.value for cell in row] for row in sheet.iter_rows()]


def links(sheet):
    return [cell.hyperlink for row in sheet.iter_rows() for cell in row if cell.hyperlink]


def column(sheet, heading):
    headings = [cell.value for cell in sheet[HEADER]]
    cells = sheet[openpyxl.utils.get_column_letter(headings.index(heading) + 1)][HEADER:]
    return [cell.value for cell in cells]


def row_of(time=1, *, name="kernel", share=0.5, count=1, size=10, ratio=1.5):
    return (name, time, share, count, size, ratio, 1_767_225_600_000_000_000, None)


@pytest.fixture
def book():
    return opened(report_of())


def test_summary_comes_first_then_tables_then_columns_and_capture(book):
    assert book.sheetnames[0] == "Summary"
    assert book.sheetnames[-2:] == ["Columns", "Capture"]
    assert {"Idle causes", "Gaps", "Classification", "Parts of the step"} <= set(book.sheetnames)


WHOLE = report_of(analysis(rank=0), analysis(rank=1))
EVERY = report_of(*(analysis(rank=rank) for rank in range(MAX_RANKS + 2)), every_rank=True)


@pytest.mark.parametrize("reports", [[report_of()], [WHOLE], [EVERY], [WHOLE, report_of()], [report_of()] * 4])
def test_every_table_is_one_click_away_in_at_most_fifteen_sheets(reports):
    book = opened(*reports)
    assert len(book.sheetnames) <= MAX_SHEETS
    assert {sheet.sheet_state for sheet in book} == {"visible"}
    colours = {sheet.sheet_properties.tabColor.rgb for sheet in book}
    assert len(colours) > len(book.sheetnames) // 4
    for number, report in enumerate(reports, start=1):
        several, summary = len(reports) > 1, book["Summary" if len(reports) == 1 else f"Summary {number}"]
        targets = [link.location for link in links(summary)]
        assert {target.rpartition("!")[0].strip("'") for target in targets} <= set(book.sheetnames)
        prefix = f"{number} " if several else ""
        ranked = [(f"r{at} " if len(report.focus) > 1 else "", report.ranks[at]) for at in report.focus[:MAX_RANKS]]
        tables = [("", report.summary), *((label, rank.tables) for label, rank in ranked)]
        known = {row[0].value: row[0].hyperlink for row in summary.iter_rows()}
        for label, table in [(label, each) for label, group in tables for each in group if len(each)]:
            if table.key == "files" and len(table) <= 3:
                continue
            name, _, cell = known[prefix + label + readable(table.key)].location.rpartition("!")
            at = book[name.strip("'")][cell]
            assert at.value == formatter_over(report, texts()).title(table)
            # Rows lie below the title: after a header, and the last row has no other table in it.
            first = at.row + 1 if cell != "A1" else HEADER
            if table.layout != Layout.RECORD:
                shown = [row[0].value for row in at.parent.iter_rows(min_row=first, max_row=first + len(table))]
                assert None not in shown[:1]
                assert at.parent.max_row >= first + min(len(table), MAX_ROWS)


def test_every_link_leads_to_a_cell_with_text():
    book = opened(WHOLE, report_of())
    found = [link for sheet in book for link in links(sheet)]
    assert len(found) > 2 * len(book.sheetnames)
    for one in found:
        name, _, cell = one.location.rpartition("!")
        assert book[name.strip("'")][cell].value
    assert {link.target for link in found} == {None}


def test_headers_are_frozen_filtered_and_repeated_in_print(book):
    for sheet in book:
        if sheet.title in {"Summary", "Capture"}:
            continue
        shared = sheet.title in SHARED
        assert sheet.freeze_panes == ("B3" if shared else f"B{HEADER + 1}")
        assert shared or sheet.auto_filter.ref.startswith(f"A{HEADER}:")
        assert sheet.print_title_rows == (None if shared else f"${HEADER}:${HEADER}")
    assert SHARED & set(book.sheetnames)
    for sheet in book:
        assert sheet.page_setup.orientation == "landscape"
        assert sheet.sheet_properties.pageSetUpPr.fitToPage
        assert sheet.page_setup.fitToHeight == 0


def test_totals_are_outside_the_filter(book):
    sheet = book["Split"]
    assert sheet.auto_filter.ref == "A4:C11"
    assert [cell.value for cell in sheet[12]] == [None] * 3
    assert [cell.value for cell in sheet[13]] == ["step", pytest.approx(177.666667), 1.0]


def test_values_are_those_of_the_report_in_the_unit_of_the_header():
    report = report_of()
    split = report.tables["split"]
    sheet = opened(report)["Split"]
    assert [cell.value for cell in sheet[HEADER]] == ["part", "time (ms)", "share"]
    times = column(sheet, "time (ms)")[: len(split.rows)]
    assert times == pytest.approx([ns / MS for ns in split.column("mean_ns")], abs=1e-9)
    assert column(sheet, "share")[: len(split.rows)] == pytest.approx(list(split.column("share")))
    assert sheet["B5"].number_format == "#,##0.00"
    assert sheet["C5"].number_format == "0.0%"


def test_rows_stay_in_the_order_of_the_table():
    report = report_of()
    lengths = [ns / MS for ns in report.tables["gaps"].column("length_ns")]
    assert column(opened(report)["Gaps"], "length (ms)") == pytest.approx(lengths)


def test_numbers_of_every_kind_have_their_format():
    table = table_of_rows(
        "extra", _COLUMNS, (row_of(1_234_567, count=12_345, size=3_500_000_000), row_of(999, ratio=2.0))
    )
    sheet = opened(with_table(table))["Extra"]
    assert [cell.value for cell in sheet[HEADER]] == [
        "name",
        "time (ms)",
        "share",
        "count",
        "size (GB)",
        "parallel",
        "Python frame",
    ]
    assert [cell.value for cell in sheet[5]] == ["kernel", 1.234567, 0.5, 12_345, 3.5, 1.5, None]
    formats = [cell.number_format for cell in sheet[5]]
    assert formats[1:6] == ["#,##0.000", "0.0%", "#,##0", "#,##0.00", "#,##0.00"]
    assert sheet["B6"].value == 0.000999
    assert sheet["A1"].value == "A table of another kind"


def test_short_times_beside_long_ones_are_not_shown_as_zero():
    table = table_of_rows("extra", _COLUMNS, (row_of(123_456_789), row_of(4_000)))
    sheet = opened(with_table(table))["Extra"]
    assert (sheet["B4"].value, sheet["B6"].value, sheet["B6"].number_format) == ("time (ms)", 0.004, "#,##0.000")


def test_columns_of_low_value_are_grouped_and_empty_ones_hidden():
    sheet = opened(with_table(table_of_rows("extra", _COLUMNS, (row_of(),))))["Extra"]
    assert sheet.column_dimensions["G"].outlineLevel == 1
    assert sheet.column_dimensions["G"].hidden


def test_main_columns_have_bars(book):
    rules = {str(item.sqref): item.rules[0].type for item in book["Split"].conditional_formatting}
    assert rules == {"B5:B11": "dataBar", "C5:C11": "dataBar"}


def test_steps_are_numbers_and_sort_as_such(book):
    assert column(book["Steps"], "step")[:3] == [5, 6, 7]
    assert column(book["Steps"], "step")[-1] == "mean"


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["0", "7", "123456789"], True),
        (["7", "1234567890"], False),
        (["7", "007"], False),
        (["7", "-3"], False),
        (["7", "\u0663"], False),
        (["7", "a"], False),
        (["7", None], True),
    ],
)
def test_texts_are_numbers_where_all_are_whole_short_and_without_leading_zeros(texts, numbers):
    table = Table("extra", (Column("name", Kind.TEXT), Column("at", Kind.COUNT))).fill(name=texts, at=range(len(texts)))
    shown = column(opened(with_table(table))["Extra"], "name")
    assert shown == [int(text) if text and numbers else text for text in texts]


@pytest.mark.parametrize(
    ("numbers", "digits"),
    [([3.0, 7.0], 0), ([100.5, 1.0], 1), ([99.99, -1.0], 2), ([-100.5], 1), ([1.0, 0.5], 2), ([0.999, -0.5], 4)],
)
def test_plain_numbers_have_more_decimals_where_the_largest_is_small(numbers, digits):
    table = Table("extra", (Column("at", Kind.COUNT), Column("value", Kind.NUMBER)))
    sheet = opened(with_table(table.fill(at=range(len(numbers)), value=numbers)))["Extra"]
    assert sheet["B5"].number_format == ("#,##0." + "0" * digits if digits else "#,##0")


def test_columns_of_a_record_are_as_wide_as_what_they_hold(book):
    width = [round(book["Launches"].column_dimensions[name].width) for name in "ABCD"]
    assert (width[0] > width[1] > width[2], width[3] > width[0]) == (True, True)
    assert len(set(width)) == 4


def test_a_record_is_a_list_of_quantities(book):
    sheet = book["Launches"]
    assert [cell.value for cell in sheet[HEADER]] == ["quantity", "value", "unit", "meaning"]
    rows = {row[0].value: [cell.value for cell in row[1:3]] for row in sheet.iter_rows(min_row=HEADER + 1)}
    assert rows["device events linked to their launch"] == [9096, None]
    assert rows["wait in the queue, median"] == [pytest.approx(9.492), "ms"]
    assert rows["idle time with nothing queued"] == [0.93, "%"]


def test_what_was_not_measured_says_why(book):
    sheet = book["Sync points"]
    assert column(sheet, "idle caused (ms)")[:2] == [2.0, "n/m"]
    assert any("n/m: not measured (what came after the last wait of the trace" in str(row[0]) for row in values(sheet))
    alone = opened(report_of(host_only(1.0, 2.0)))
    assert "Sync points" not in alone.sheetnames
    missing = with_table(Table("extra", _COLUMNS).missing("no_api"))
    for name in ("Summary", "Capture"):
        text = "\n".join(str(cell) for row in values(opened(missing)[name]) for cell in row if cell)
        assert "A table of another kind" in text
        assert "no runtime calls recorded" in text


@pytest.mark.parametrize("where", [0, 7])
def test_hostile_names_stay_text(where):
    rows = tuple(tuple(name if index == where else value for index, value in enumerate(row_of())) for name in HOSTILE)
    data = render([with_table(table_of_rows("extra", _COLUMNS, rows))], words())
    for part, content in parts(data).items():
        assert b"<f>" not in content, part
        assert b"TargetMode" not in content, part
    sheet = openpyxl.load_workbook(io.BytesIO(data))["Extra"]
    cells = [row[6 if where else 0] for row in sheet.iter_rows(min_row=HEADER + 1, max_row=HEADER + len(HOSTILE))]
    assert {cell.data_type for cell in cells} == {"s"}
    found = [cell.value for cell in cells]
    assert found[:9] == list(HOSTILE[:9])
    assert found[9:12] == ["abc", "lone  half", "two lines and tabs"]
    assert len(found[12]) == 32_767
    assert found[13] == "中文算子"


def test_a_hostile_run_name_and_path_do_no_harm():
    report = report_of()
    evil = replace(report, name="=1+1\x01/\\?*[]:'", ranks=(replace(report.ranks[0], path="a\x02/=b.json"),))
    book = opened(evil)
    assert book["Summary"]["A1"].value == "traceanalyze · =1+1/\\?*[]:'"
    assert all(cell.data_type != "f" for sheet in book for row in sheet.iter_rows() for cell in row)


def test_numbers_that_are_none_are_empty_and_large_ones_exact():
    rows = (row_of(share=float("nan"), ratio=float("inf")), row_of(count=1_767_225_600_000_000_001))
    sheet = opened(with_table(table_of_rows("extra", _COLUMNS, rows)))["Extra"]
    assert (sheet["C5"].value, sheet["F5"].value) == (None, None)
    assert sheet["D6"].value == "1767225600000000001"


def test_long_tables_are_capped_and_say_so():
    table = table_of_rows("extra", _COLUMNS, tuple(row_of(number) for number in range(MAX_ROWS + 3)))
    book = opened(with_table(table))
    sheet = book["Extra"]
    assert sheet.max_row == HEADER + MAX_ROWS
    assert sheet["B2"].value == "The first 5,000 of 5,003 rows; -o DIR/ writes all of them."
    rows = {row[0].value: row[1].value for row in book["Summary"].iter_rows()}
    assert rows["Extra"] == MAX_ROWS + 3


def test_the_same_report_gives_the_same_bytes():
    report = report_of(analysis(rank=0), analysis(rank=1))
    assert render([report], texts()) == render([report], texts())


def test_properties_name_tool_version_and_input(book):
    assert book.properties.creator == "traceanalyze 1.2.3"
    assert book.properties.title == "traceanalyze · run"
    assert book.properties.subject == "sample.pt.trace.json"
    assert book.properties.created == datetime(1980, 1, 1)


def test_the_summary_has_verdict_split_figures_quality_and_a_chart(book):
    sheet = book["Summary"]
    text = [str(cell) for row in values(sheet) for cell in row if cell is not None]
    assert text[1].startswith("Step 177.7 ms: the device is idle 44 % of it")
    for part in ("Where the step's time went (mean of 3 complete steps)", "Key figures", "warning Q03", "Sheets"):
        assert part in text
    (chart,) = sheet._charts
    names = [series.val.numRef.f for series in chart.series]
    assert names[0] == "Steps!$C$5:$C$7"
    assert chart.grouping == "stacked"
    assert chart.y_axis.scaling.min == 0
    assert len(names) == 6


def test_what_would_change_is_on_the_first_sheet_with_a_chart_and_its_sheet_has_the_range():
    supposed = {"supposed": "without", "subject": "idle", "rule_id": None, "factor": None, "share": 0.6}
    ends = {"gain_ns": 6 * MS, "low_ns": 5 * MS, "high_ns": 7 * MS, "then_ns": 4 * MS}
    limits = {"limit": "device", "limit_share": 0.5, "largest_part": "compute"}
    tables = (
        WHATIF.fill_records([{**supposed, **ends, **limits}]),
        SPLIT_THEN.fill(
            part=["compute", "idle"],
            now_ns=[4 * MS, 6 * MS],
            now_share=[0.4, 0.6],
            then_ns=[3 * MS, MS],
            then_share=[0.75, 0.25],
        ),
    )
    report = report_of()
    book = opened(replace(report, summary=tables, ranks=(replace(report.ranks[0], tables=()),)))
    headings, row = values(book["Whatif"])[HEADER - 1 :][:2]
    shown = dict(zip(headings, row, strict=True))
    assert [shown[f"{name} (ms)"] for name in ("gain", "at least", "at most")] == [6, 5, 7]
    (chart,) = book["Summary"]._charts
    drawn = [book["Summary"][series.val.numRef.f.partition("!")[2].replace("$", "")] for series in chart.series]
    assert [[cell.value for (cell,) in area] for area in drawn] == [[4, 6], [3, 1]]


def test_the_column_dictionary_explains_every_column_of_every_sheet(book):
    rows = [row[:5] for row in values(book["Columns"])[HEADER:]]
    assert all(row[3] for row in rows)
    for sheet in book:
        if sheet.freeze_panes and sheet.title not in {"Columns", *SHARED} and sheet["A4"].value != "quantity":
            headings = {str(cell.value).split(" (")[0] for cell in sheet[HEADER]}
            assert headings == {row[1] for row in rows if row[0] == sheet.title}
    assert ["Gaps", "length", "ms", "length of the idle interval", "length_ns"] in rows


def test_the_capture_sheet_has_files_and_checks(book):
    rows = [[cell for cell in row if cell is not None] for row in values(book["Capture"])]
    assert ["file", "sample.pt.trace.json"] in rows
    assert ["size (MB)", pytest.approx(12.345678)] in rows
    assert ["profiler options", "record_shapes"] in rows
    assert ["note Q05", "No Python stacks: source lines are not named."] in rows


def test_several_ranks_share_a_sheet_and_those_in_detail_have_their_own():
    book = opened(report_of(analysis(rank=0), analysis(rank=1), every_rank=True))
    assert book.sheetnames[:2] == ["Summary", "Ranks"]
    assert {"r0 Split", "r1 Split", "r0 Idle causes"} <= {row[0] for row in values(book["Summary"])}
    assert len(book["Summary"]._charts) == 2


def test_many_ranks_are_capped_and_say_so():
    book = opened(EVERY)
    named = {row[0] for row in values(book["Summary"])}
    assert (f"r{MAX_RANKS - 1} Split" in named, f"r{MAX_RANKS} Split" in named) == (True, False)
    assert f"of {MAX_RANKS} of {MAX_RANKS + 2} ranks" in str(values(book["Summary"]))
    assert {row[0]: row[1] for row in values(book["Summary"])}["Files"] == MAX_RANKS + 2


def test_several_runs_have_a_summary_each():
    book = opened(report_of(), report_of())
    assert book.sheetnames[:2] == ["Summary 1", "Summary 2"]
    for number in (1, 2):
        assert f"{number} Split" in {row[0] for row in values(book[f"Summary {number}"])}


@pytest.mark.parametrize("one", [whole_trace(), host_only(1.0, 2.0), empty()])
def test_every_kind_of_trace_gives_a_workbook(one):
    assert opened(report_of(one)).sheetnames[0] == "Summary"


def test_a_record_with_many_rows_is_a_table():
    table = table_of_rows("extra", _COLUMNS, tuple(row_of(n) for n in range(9)), layout=Layout.RECORD)
    assert opened(with_table(table))["Extra"]["A4"].value == "name"


def test_sheet_names_are_unique_short_and_legal():
    names = SheetNames()
    given = [names.take(wanted) for wanted in ("Steps", "steps", "a/b[c]:*?", "History", "x" * 40, "x" * 40, "''", "")]
    assert given == [
        "Steps",
        "steps (2)",
        "a_b_c____",
        "History (2)",
        "x" * 31,
        "x" * 27 + " (2)",
        "Sheet",
        "Sheet (2)",
    ]


@given(st.text())
def test_any_text_becomes_legal_xml_and_stays_as_it_is(text):
    once = clean(text)
    ET.fromstring(f"<t>{escape(once)}</t>".encode())
    assert clean(once) == once
    assert not set("\t\r\n") & set(once)


@given(st.text(alphabet="ab 中 "), st.integers(1, 20))
def test_wrapped_text_has_room_in_its_lines(text, room):
    assert width(" ".join(text.split())) <= lines(text, room) * (room + 1)


def test_formats_are_made_once():
    styles = parts(render([report_of()], texts()))["xl/styles.xml"]
    assert styles.count(b"<xf ") < 60


def parts(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
