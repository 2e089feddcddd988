from __future__ import annotations

import io
import warnings
import zipfile

import openpyxl
import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.report.make_compare import MS, allocated, build_compare, comparison, itself, kernels, measured
from traceanalyze.comparison.results import Pair
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.report.xlsx import render
from traceanalyze.report.xlsx.plan import MAX_ROWS

GREEN, YELLOW = "FFE2EFDA", "FFFFF2CC"
GROUP, HEADER, FIRST = 3, 4, 5
"""Rows of the groups, of the headings, and the first of values, counted as Excel does."""


def content(found=None):
    return render([build_compare(found or comparison(), version="0", options={"--base-step": "5"})], texts())


def opened(found=None):
    with warnings.catch_warnings():
        # openpyxl does not know the solid bars of Excel 2010 and says so.
        warnings.simplefilter("ignore")
        return openpyxl.load_workbook(io.BytesIO(content(found)))


@pytest.fixture(scope="module")
def book():
    return opened()


def headings(sheet):
    return [cell.value for cell in sheet[HEADER]]


def column(sheet, heading):
    at = headings(sheet).index(heading) + 1
    return [sheet.cell(row, at) for row in range(FIRST, sheet.max_row + 1)]


def lines(sheet):
    return [str(cell.value) for row in sheet.iter_rows() for cell in row if cell.value is not None]


def test_headings_have_the_same_units_whatever_the_values_are(tmp_path):
    found = []
    for times in (1, 1000):
        trace = TraceBuilder()
        for at in range(3):
            trace.step(at, at * 9000 * times, 9000 * times)
            trace.op("aten::mm", at * 9000 * times + 10, 30)
            trace.launch(at * 9000 * times + 15, 5, at * 9000 * times + 100, 3 * times, name="gemm")
        path = trace.write(tmp_path / f"{times}.json")
        book = openpyxl.load_workbook(io.BytesIO(render([traceanalyze.compare(path, path)], texts())))
        found.append({sheet.title: headings(sheet) for sheet in book if sheet.title not in {"Summary", "Columns"}})
    assert "base mean (µs)" in found[0]["KernelCompare"]
    assert found[0] == found[1]


def test_sheets_have_the_names_that_users_know(book):
    assert book.sheetnames == [
        "Summary",
        "Causes",
        "OverallMetrics",
        "CommunicationCompare",
        "ModuleCompareStatistic",
        "ModuleCompare",
        "OperatorCompareStatistic",
        "OperatorCompare",
        "MemoryCompareStatistic",
        "MemoryCompare",
        "ApiCompare",
        "KernelCompare",
        "KernelTypeCompare",
        "Parameters",
        "Columns",
    ]


VENDOR = {
    "OverallMetrics": (
        "Index, Duration(ms), Duration Ratio, Number, Duration(ms), Duration Ratio, Number, "
        "Diff Duration(ms), Diff Ratio"
    ),
    "OperatorCompareStatistic": (
        "Top, Operator Name, Base Device Duration(ms), Base Operator Number, Comparison Device Duration(ms), "
        "Comparison Operator Number, Diff Duration(ms), Diff Ratio"
    ),
    "OperatorCompare": (
        "Order Id, Operator Name, Input Shape, Input Type, Kernel Details, Device Duration(us), Operator Name, "
        "Input Shape, Input Type, Kernel Details, Device Duration(us), Diff Duration(us), Diff Ratio"
    ),
    "ModuleCompareStatistic": (
        "Order Id, Module Class, Module Level, Module Name, Operator Name, Kernel Details, "
        "Device Self Time(ms), Number, "
        "Device Total Time(ms), Kernel Details, Device Self Time(ms), Number, Device Total Time(ms), "
        "Device Total Time Diff, Device Self Time Diff, Diff Total Ratio, Base Call Stack, Comparison Call Stack"
    ),
    "MemoryCompareStatistic": (
        "Top, Operator Name, Base Allocated Duration(ms), Base Allocated Memory(MB), Base Operator Number, "
        "Comparison Allocated Duration(ms), Comparison Allocated Memory(MB), Comparison Operator Number, "
        "Diff Memory(MB), Diff Ratio"
    ),
    "MemoryCompare": (
        "Order Id, Operator Name, Input Shape, Input Type, Allocated Details, Size(KB), Operator Name, Input Shape, "
        "Input Type, Allocated Details, Size(KB), Diff Size(KB), Diff Ratio"
    ),
    "ApiCompare": (
        "Order Id, api name, Total Duration(ms), Self Time(ms), Avg Duration(ms), Calls, Total Duration(ms), "
        "Self Time(ms), Avg Duration(ms), Calls, Diff Total Ratio, Diff Self Ratio, Diff Avg Ratio, Diff Calls Ratio"
    ),
    "KernelCompare": (
        "Order Id, Kernel, Input Shape, Total Duration(us), Avg Duration(us), Max Duration(us), "
        "Min Duration(us), Calls, "
        "Total Duration(us), Avg Duration(us), Max Duration(us), Min Duration(us), Calls, "
        "Diff Total Ratio, Diff Avg Ratio"
    ),
    "KernelTypeCompare": (
        "Order Id, Kernel Type, Core Type, Total Duration(us), Avg Duration(us), Max Duration(us), Min Duration(us), "
        "Calls, Total Duration(us), Avg Duration(us), Max Duration(us), Min Duration(us), Calls, "
        "Diff Total Ratio, Diff Avg Ratio"
    ),
}


@pytest.mark.parametrize("name", VENDOR)
def test_columns_of_msprof_come_first_in_its_order(book, name):
    mapped = {
        (row[0].value, row[1].value): row[5].value
        for row in book["Columns"].iter_rows(min_row=FIRST)
        if row[0].value == name
    }
    bare = [heading.partition(" (")[0] for heading in headings(book[name])]
    known = [mapped[name, heading] for heading in bare if mapped[name, heading]]
    expected = VENDOR[name].split(", ")
    assert known[: len(expected)] == expected
    first_own = next(index for index, heading in enumerate(bare) if not mapped[name, heading])
    assert first_own >= len(expected)


def test_columns_of_the_sides_are_green_and_yellow(book):
    sheet = book["OperatorCompareStatistic"]
    assert sheet["C3"].value == "Base: before.json"
    assert sheet["E3"].value == "Candidate: after.json"
    assert {"C3:D3", "E3:F3"} <= {str(merged) for merged in sheet.merged_cells.ranges}
    assert [sheet[cell].fill.fgColor.rgb for cell in ("C3", "C4", "D4")] == [GREEN] * 3
    assert [sheet[cell].fill.fgColor.rgb for cell in ("E3", "E4", "F4")] == [YELLOW] * 3


def test_headers_stay_in_sight_and_differences_can_be_filtered(book):
    for name in book.sheetnames[1:-2]:
        sheet = book[name]
        assert sheet.freeze_panes == "B5"
        last = openpyxl.utils.get_column_letter(len(headings(sheet)))
        assert sheet.auto_filter.ref.startswith("A4:")
        assert sheet.auto_filter.ref.partition(":")[2].startswith(last)


def test_numbers_are_numbers(book):
    cells = column(book["OverallMetrics"], "diff (ms)")
    assert [cell.value for cell in cells[:3]] == [2, 0, 2]
    assert cells[0].number_format == "+#,##0.00;-#,##0.00;#,##0.00"
    ratios = [cell.value for cell in column(book["OverallMetrics"], "ratio")]
    assert ratios[0] == pytest.approx(62 / 60)
    assert ratios[2] is None
    for sheet in book:
        for row in sheet.iter_rows():
            for cell in row:
                assert cell.data_type in {"n", "s"}
                assert "inf" not in str(cell.value).lower().split()


def test_rows_that_lie_inside_others_are_indented_and_fold(book):
    sheet = book["OverallMetrics"]
    names = {sheet.cell(row, 1).value: row for row in range(FIRST, sheet.max_row + 1)}
    assert sheet.cell(names["matrix products"], 1).alignment.indent == 2
    assert sheet.row_dimensions[names["matrix products"]].outlineLevel == 1
    assert sheet.row_dimensions[names["compute"]].outlineLevel == 0


def test_worse_is_red_and_better_green_whatever_the_sign(book):
    sheet = book["OverallMetrics"]
    rules = {}
    for area in sheet.conditional_formatting:
        for rule in area.rules:
            if rule.type == "expression":
                colour = rule.dxf.font.color.rgb
                rules.setdefault(str(area.sqref).partition(":")[0], {})[rule.formula[0]] = colour
    diff = openpyxl.utils.get_column_letter(headings(sheet).index("diff (ms)") + 1)
    ratio = openpyxl.utils.get_column_letter(headings(sheet).index("ratio") + 1)
    assert rules[f"{diff}5"] == {
        f"AND(ISNUMBER(${diff}5),${diff}5>0)": "FFC00000",
        f"AND(ISNUMBER(${diff}5),${diff}5<0)": "FF2E7D32",
    }
    assert set(rules[f"{ratio}5"]) == {
        f"AND(ISNUMBER(${ratio}5),${ratio}5>1)",
        f"AND(ISNUMBER(${ratio}5),${ratio}5<1)",
    }


def test_names_are_never_formulas_and_hold_no_breaks(book):
    sheet = book["OperatorCompare"]
    cell = column(sheet, "candidate operator")[0]
    assert (cell.value, cell.data_type) == ("=cmd|'/C calc'!A0", "s")
    archive = zipfile.ZipFile(io.BytesIO(content()))
    for name in archive.namelist():
        text = archive.read(name).decode(errors="replace")
        assert "_x000D_" not in text
        assert "<f>" not in text or name.startswith("xl/charts")


def test_the_summary_says_it_all(book):
    found = lines(book["Summary"])
    assert found[0] == "traceanalyze · Comparison"
    assert found[1].startswith("The candidate is 20.00 ms (20 %) faster per step")
    assert "runs/before.json · rank 0 · Tesla V100 · 100.0 ms, mean of 2 complete steps (median 100.0 ms)" in found
    for text in (
        "data loading",
        "Slower in the candidate (per step)",
        "aten::conv2d",
        "DataLoader",
        "PyTorch's allocator: allocated",
        "Work without a partner on the other side (per step)",
    ):
        assert text in found
    assert "The two profiles have different levels." in found
    assert len(book["Summary"]._charts) == 1


def links(sheet):
    return {cell.hyperlink.location for row in sheet.iter_rows() for cell in row if cell.hyperlink}


def test_every_sheet_is_linked_and_links_back(book):
    assert {f"'{name}'!A1" for name in book.sheetnames[1:]} <= links(book["Summary"])
    for name in book.sheetnames[1:]:
        assert "'Summary'!A1" in links(book[name])


def test_the_chart_draws_both_sides_from_the_table_of_parts(book):
    sheet = book["Summary"]
    drawn = [series.val.numRef.f for series in sheet._charts[0].series]
    values = [[cell.value for (cell,) in sheet[area.partition("!")[2].replace("$", "")]] for area in drawn]
    assert values == [[60, 0, 2, 30, 5, 3], [62, 0, 2, 0, 10, 6]]


def test_the_summary_is_printed_as_wide_as_its_tables(book):
    summary = book["Summary"]
    assert summary.print_area.replace("$", "") == f"'Summary'!{summary.dimensions}"


def test_parameters_inputs_and_caveats_have_a_sheet(book):
    found = lines(book["Parameters"])
    for text in ("runs/before.json", "runs/after.json", "--base-step", "The two profiles have different levels."):
        assert text in found


def test_a_section_without_data_is_named_once_with_the_reason():
    found = comparison()._replace(memory=NotMeasured("no_memory_records"), kernels=())
    book = opened(found)
    assert "MemoryCompareStatistic" not in book.sheetnames
    assert "KernelCompare" not in book.sheetnames
    summary = lines(book["Summary"])
    assert [line for line in summary if line.endswith(": no memory records")] == [
        "Device memory allocated by operators (per step): no memory records"
    ]
    assert sum(line.endswith(": nothing recorded") for line in summary) == 1


def test_a_long_sheet_says_what_it_leaves_out():
    rows = tuple(
        kernels(f"k{number}", "other", measured("k", 1, (number + 1) * 1000), None) for number in range(MAX_ROWS + 7)
    )
    book = opened(comparison()._replace(kernels=rows))
    sheet = book["KernelCompare"]
    assert sheet["B2"].value == "The first 5,000 of 5,007 rows; -o DIR/ writes all of them."
    assert sheet.cell(FIRST, 2).value == f"k{MAX_ROWS + 6}"


def test_a_comparison_with_itself_makes_a_workbook():
    book = opened(itself())
    assert lines(book["Summary"])[1] == "No difference: both sides take 100.0 ms per step, part by part."
    assert "Causes" not in book.sheetnames


def test_the_same_comparison_gives_the_same_bytes():
    assert content() == content()


def test_units_fit_the_sheet(book):
    assert "base mean (µs)" in headings(book["KernelCompare"])
    assert column(book["KernelCompare"], "diff (ms)")[0].value == pytest.approx(2 * MS / MS)


def test_both_sides_are_shown_in_one_unit_with_as_many_decimals():
    found = comparison()
    peaks = tuple(
        row._replace(base=708_000_000, candidate=2_210_000_000) if row.kind == "bytes" else row for row in found.overall
    )
    sides = allocated(4, 8_000, 10 * MS), allocated(8, 32_000_000_000, NotMeasured("no_frees"))
    memory = (Pair({"op": "aten::empty"}, *sides),)
    sheets = opened(found._replace(overall=peaks, memory=memory))
    assert {"base (MB)", "candidate (MB)"} <= set(lines(sheets["Summary"]))
    row = next(row for row in sheets["Summary"].iter_rows() if row[0].value == "PyTorch's allocator: allocated")
    assert [cell.value for cell in row[1:3]] == [708, 2210]
    assert row[1].number_format == row[2].number_format
    assert {"base bytes (MB)", "candidate bytes (MB)"} <= set(headings(sheets["MemoryCompareStatistic"]))


def test_the_summary_says_what_to_check(book):
    found = lines(book["Summary"])
    at = found.index("Where to look")
    assert found[at + 1].startswith("dispatch +5.000 ms (largest: aten::conv2d +5.000 ms): look at")
    assert at > found.index("Faster in the candidate (per step)")
