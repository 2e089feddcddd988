"""Names of kernels: people read labels; programs, and who asks for all (`-v`), whole names."""

from __future__ import annotations

import io
import json

import openpyxl
import pytest

from tests.report.make import MS, analysis, gaps_of, with_table
from tests.report.test_html import Page
from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind, Message, Word
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report import folder, html, markdown, xlsx
from traceanalyze.report import json as as_json
from traceanalyze.report.console import Style, render
from traceanalyze.report.contents import build_report
from traceanalyze.report.format import Formatter
from traceanalyze.report.view import View

# openpyxl does not know the solid bars of Excel 2010 and says so.
pytestmark = pytest.mark.filterwarnings("ignore:.* extension is not supported")
NAMES = [
    f"void at::native::vectorized_elementwise_kernel<{width}, at::native::CUDAFunctor_add<float>, char*>(int, char*)"
    for width in (2, 4)
]
LABELS = ["add f32 v2", "add f32 v4"]
GAPS = gaps_of([("5", 5 * MS, NAMES[0]), ("5", 4 * MS, NAMES[1])])


def report():
    return build_report("run", [with_table(analysis(), GAPS)], version="0")


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_console_shows_labels_and_whole_names_when_asked(width):
    text = render(report(), texts(), Style(width=width))
    assert all(label in text for label in LABELS)
    assert not any(name in text for name in NAMES)


def test_asked_for_everything_the_console_shows_whole_names():
    text = render(report(), texts(), Style(width=200), View(Detail.VERBOSE))
    assert all(f"{label}: void at::native::vectorized" in text for label in LABELS)
    assert all(name in text.replace("\n", "").replace(" ", "") for name in (each.replace(" ", "") for each in NAMES))


def test_markdown_shows_labels():
    text = markdown.render([report()], texts())
    assert all(label in text for label in LABELS)
    assert "CUDAFunctor" not in text


def test_pages_show_labels_with_the_name_under_the_pointer():
    page = Page(html.render([report()], texts()))
    cells = {"".join(text): attributes.get("title") for tag, attributes, text in page.elements if tag == "td"}
    assert [cells[label] for label in LABELS] == NAMES


def test_the_workbook_has_a_column_of_labels_and_one_of_names():
    sheet = openpyxl.load_workbook(io.BytesIO(xlsx.render([report()], texts())))["Gaps"]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows(min_row=4)]
    at, whole = (rows[0].index(heading) for heading in ("next on device", "next on device, whole name"))
    assert [(row[at], row[whole]) for row in rows[1:3]] == list(zip(LABELS, NAMES, strict=True))


def test_programs_get_names_only():
    document = json.loads(as_json.render([report()], texts()))
    assert [row["next_event"] for row in document["reports"][0]["ranks"][0]["tables"]["gaps"]["rows"]] == NAMES
    text = folder.csv(GAPS).decode("utf-8-sig")
    assert all(name in text for name in NAMES)
    assert LABELS[0] not in text


def test_among_other_names_only_kernels_have_labels():
    column = Column("where", Kind.PLACE).of([NAMES[0], "aten::linear", "train.py(7): forward", Word("rest"), None])
    formatter = Formatter(texts())
    assert [formatter.label(column, value) for value in column.values] == ["add f32", None, None, None, None]
    assert formatter.cell(column, "train.py(7): forward", None) == "train.py(7): forward"
    # Labels are of the values that a column has.
    assert set(column.of([NAMES[1]]).labels) == {NAMES[1]}


def test_sentences_call_kernels_by_their_labels():
    message = Message("said_of", (("title", Kind.KERNEL, NAMES[0]), ("text", Kind.PLACE, "aten::linear")))
    assert Formatter(texts()).message(message) == "add f32: aten::linear"


@pytest.mark.parametrize(("names", "expected"), [(NAMES, LABELS), (NAMES[:1] * 2, ["add f32", "add f32"])])
def test_kernels_of_one_sentence_have_different_labels(names, expected):
    values = tuple((key, Kind.KERNEL, name) for key, name in zip("ab", names, strict=True))
    assert Formatter(texts()).fill("{a}|{b}", Message("", values)) == "|".join(expected)
