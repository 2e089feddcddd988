"""What CI systems get from the gate."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import openpyxl
import pytest

from tests.regression.make import MS, run, runs
from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind, Quantity
from traceanalyze.regression.baseline import Baseline
from traceanalyze.regression.budget import read_budget
from traceanalyze.regression.results import SideSummary
from traceanalyze.regression.samples import Place
from traceanalyze.regression.verdict import gate
from traceanalyze.report import ci, html, markdown, xlsx
from traceanalyze.report import json as json_report
from traceanalyze.report.console import Style
from traceanalyze.report.console import render as on_console
from traceanalyze.report.contents.gate import build_gate
from traceanalyze.report.contents.gate_metrics import baseline_tables
from traceanalyze.report.xlsx.formats import Field, InUnit
from traceanalyze.report.xlsx.rows import _width as width_of
from traceanalyze.rules.finding import Confidence, Finding, Severity, measured

EXACT = ("kernel.count", "launch.count", "sync.count", "collective.count", "alloc.device_malloc.count")


def result(old=300, new=330, budget="", *, counts=(1, 2), names=EXACT, **how):
    sides = [
        [run(number, time=time, counts=dict.fromkeys(names, count), parts={"compute": time}) for number in range(3)]
        for time, count in zip((old, new), counts, strict=True)
    ]
    rules = read_budget(budget.encode(), "traceanalyze.toml").for_environment({})
    return gate(SideSummary("baseline", tuple(sides[0])), SideSummary("candidate", tuple(sides[1])), rules, **how)


def test_console_puts_the_worst_first_and_keeps_to_the_width():
    for width in (80, 120):
        lines = on_console(build_gate(result()), texts(), Style(width=width)).splitlines()
        first = next(at for at, line in enumerate(lines) if line.startswith("step.time"))
        assert lines[first].split()[-1] == "regression"
        assert lines[first + 1].endswith("regression (warn)")
        assert max(map(len, lines)) <= width
    assert "+10.0 %" in lines[first]
    assert "1.3 %" in lines[first]


def test_no_significant_change_is_a_tilde():
    text = on_console(build_gate(result(300, 301, counts=(1, 1))), texts(), Style(width=100))
    line = next(line for line in text.splitlines() if line.startswith("step.time"))
    assert re.search(r"300\.0 ms +301\.0 ms +~ ", line)


def test_names_of_traces_cannot_steer_the_terminal():
    found = result()
    evil = replace(found.candidate.runs[0], notes=("\x1b[31mred",))
    noted = replace(found, notes=(("input", {"run": evil.name, "text": evil.notes[0]}),))
    text = on_console(build_gate(noted), texts(), Style())
    assert "\x1b" not in text


def test_json_has_every_metric_with_its_samples():
    document = json.loads(json_report.render([build_gate(result())], texts()))
    assert (document["schema_version"], document["verdict"], document["exit_code"]) == (1, "fail", 1)
    step = next(each for each in document["metrics"] if each["metric"] == "step.time")
    assert step["baseline_samples"] == [300e6] * 3
    assert set(step["statistics"]) >= {"e", "h", "p", "p_holm", "T"}
    assert step["verdict"] == "regression"
    assert sum(row["diff_ns"] for row in document["why"]["parts"]) == 30e6


def test_the_page_leads_with_the_verdict_and_has_every_table():
    text = html.render([build_gate(result())], texts())
    assert '<p class="verdict fail">FAIL: step.time +10.0' in text
    assert ">330.0 ms</td>" in text
    for title in ("What was judged", "Why the step takes", "What each run measured", "Runs", "The answer"):
        assert title in text
    found = result()
    evil = replace(found, notes=(("input", {"run": "<script>", "text": "<b>x</b>"}),))
    assert "<script>:" not in html.render([build_gate(evil)], texts())


def test_the_workbook_has_what_was_judged_in_its_summary_and_no_formula():
    found = result()
    evil = replace(found, notes=(("input", {"run": "=1+1", "text": "@SUM(A1)"}),))
    book = openpyxl.load_workbook(io.BytesIO(xlsx.render([build_gate(evil)], texts())))
    rows = [[cell for cell in row if cell is not None] for row in book["Summary"].iter_rows(values_only=True)]
    assert ["FAIL: step.time +10.0 %."] in rows
    (step,) = (row for row in rows if row[:1] == ["step.time"])
    assert (step[0], *step[-2:]) == ("step.time", "5 %", "regression")
    assert step[1:-2] == pytest.approx([300, 330, 0.1, 0.0134], abs=1e-4)
    assert ["=1+1: @SUM(A1)"] in rows
    assert ["~ no significant change; ± smallest change these runs can tell apart"] in rows
    assert {"Metrics", "Samples", "Runs", "Parameters", "Columns"} <= set(book.sheetnames)
    assert all(cell.data_type != "f" for sheet in book for row in sheet.iter_rows() for cell in row)


def test_numbers_of_a_workbook_are_numbers_in_their_unit():
    book = openpyxl.load_workbook(io.BytesIO(xlsx.render([build_gate(result())], texts())))
    shown = {
        row[0].value: [cell.number_format for cell in row[1:5]]
        for row in book["Summary"].iter_rows()
        if row[0].value in {"step.time", "alloc.device_malloc.count"}
    }
    assert shown == {
        "step.time": ['#,##0.0" ms"', '#,##0.0" ms"', "+#,##0.0%;-#,##0.0%;#,##0.0%", "#,##0.0%"],
        "alloc.device_malloc.count": ["#,##0", "#,##0", "+#,##0;-#,##0;#,##0", "@"],
    }
    samples = [row for row in book["Samples"].iter_rows(min_row=5) if row[0].value == "step.time"]
    assert {row[3].value for row in samples} == {300, 330}
    assert book["Samples"].column_dimensions["D"].width >= len("330.0 ms")
    long = Field(Column("value", Kind.QUANTITY), 0, "", number_format="@")
    assert width_of(long, [InUnit.of(Quantity(1023 << 20, "B"))]) >= len("1,023 MiB") + 2
    sheet = book["Metrics"]
    headings = [cell.value for cell in sheet[4]]
    step = dict(zip(headings, (cell.value for cell in sheet[5]), strict=True))
    numbers = ("p", "df", "half width", "threshold", "noise floor", "relative change")
    assert step["relative change"] == pytest.approx(0.1)
    assert all(isinstance(step[name], int | float) for name in numbers)


@pytest.mark.parametrize(
    ("value", "number", "shown"),
    [
        (Quantity(124.3e6, "ns"), 124.3, '#,##0.0" ms"'),
        (Quantity(-2e9, "ns", True), -2, '+#,##0.000" s";-#,##0.000" s";#,##0.000" s"'),
        (Quantity(3 << 30, "B"), 3, '#,##0.00" GiB"'),
        (Quantity(0.303, "%", True), 0.303, "+#,##0.0%;-#,##0.0%;#,##0.0%"),
        (Quantity(37.5, "percent"), 0.375, "#,##0.0%"),
        (Quantity(-2, "points", True), -2, '+#,##0.0" points";-#,##0.0" points";#,##0.0" points"'),
        (Quantity(1478, "count"), 1478, "#,##0"),
        (Quantity(5e6, "count", True), 5e6, "+#,##0;-#,##0;#,##0"),
        (Quantity(0, "ns"), 0, '#,##0" ms"'),
        (Quantity(12.5, "GB/s"), 12.5, '#,##0.0" GB/s"'),
    ],
)
def test_a_number_in_its_unit(value, number, shown):
    made = InUnit.of(value)
    assert (float(made), made.number_format) == (pytest.approx(number), shown)


def test_every_format_says_what_the_user_calls_a_side():
    found = result()
    labelled = build_gate(replace(found, baseline=found.baseline._replace(label="main branch")))
    book = openpyxl.load_workbook(io.BytesIO(xlsx.render([labelled], texts())))
    assert "main branch" in " ".join(str(cell.value) for row in book["Summary"].iter_rows() for cell in row)
    for page in (
        on_console(labelled, texts(), Style()),
        html.render([labelled], texts()),
        markdown.render([labelled], texts()),
        json_report.render([labelled], texts()),
    ):
        assert "main branch" in page


def test_a_page_names_no_table_that_has_nothing_to_say():
    assert "Metrics that were not judged" in html.render([build_gate(result())], texts())
    found = result()
    judged = tuple(each for each in found.metrics if each.verdict != "not_measured")
    page = html.render([build_gate(replace(found, metrics=judged))], texts())
    assert "Metrics that were not judged" not in page
    assert "Not compared" not in page


def test_markdown_leads_with_the_verdict_and_stays_within_its_limit():
    text = markdown.render([build_gate(result())], texts())
    assert text.startswith("### ❌ traceanalyze gate: FAIL: step.time +10.0 %.\n")
    assert not re.search(r"^#{1,2} ", text, re.MULTILINE)
    assert text.count("<details>") == text.count("</details>") > 0
    many = tuple(("input", {"run": "r", "text": "x" * 1000}) for _ in range(2000))
    huge = replace(result(), notes=many)
    cut = markdown.render([build_gate(huge)], texts())
    assert len(cut.encode()) <= markdown.COMMENT_BYTES
    assert cut.count("<details>") == cut.count("</details>")
    assert "was cut" in cut
    # Whoever updates a comment finds it by a line that nobody sees, one a side.
    assert cut.splitlines()[2] == "<!-- traceanalyze gate: candidate -->"
    named = replace(result(), candidate=result().candidate._replace(label="H100 -->"))
    assert "\n<!-- traceanalyze gate: H100 - -->\n" in markdown.render([build_gate(named)], texts())


def test_markdown_keeps_foreign_text_text():
    found = replace(result(), notes=(("input", {"run": "a|b", "text": "<script>`x`</script>\n# head"}),))
    text = markdown.render([build_gate(found)], texts())
    assert "<script>" not in text
    assert "\n# head" not in text
    assert "a\\|b" in text


def test_annotations_are_ten_at_most():
    names = (
        *EXACT,
        "alloc.device_free.count",
        "collective.bytes",
        "memory.allocated_peak",
        "memory.reserved_peak",
        "findings.high",
        "findings.total",
        "compile.recompile.count",
    )
    lines = ci.github([build_gate(result(names=names))], texts()).splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("::error title=traceanalyze gate%3A regression::step.time: +10.0 %25, budget 5 %25: ")
    assert all(line.startswith("::warning title=") for line in lines[1:9])
    assert lines[9] == "::warning::4 more; see the job summary"


def test_annotations_of_findings_that_appeared_have_file_and_line():
    """Not of those that the baseline has, too; the worst metrics keep most of the room."""
    ones = [Finding(rule=rule, slug="x", text="It waits.") for rule in ("DAT101", "SYN101")]
    places = tuple(Place(one, "src/a b,c.py", line, MS, "cuda") for one in ones for line in (3, 4, 5, 6))
    found = result()
    runs = (replace(found.candidate.runs[0], places=places), *found.candidate.runs[1:])
    found = replace(found, candidate=found.candidate._replace(runs=runs), findings={"DAT101": (0, 4), "SYN101": (4, 4)})
    lines = ci.github([build_gate(found)], texts()).splitlines()
    told = [line for line in lines if "file=" in line]
    assert len(lines) == 10
    assert [re.search(r"^::warning file=src/a b%2Cc.py,line=(\d),title=DAT101 ", line)[1] for line in told] == [
        "3",
        "4",
        "5",
    ]
    assert lines[9] == "::warning::1 more; see the job summary"


def schema_of_junit(root):
    """The rules of the schema that Jenkins publishes (jenkins-junit.xsd): names, places and counts."""
    allowed = {
        "testsuites": {"name", "time", "tests", "failures", "errors", "disabled", "skipped"},
        "testsuite": {
            "name",
            "tests",
            "failures",
            "errors",
            "time",
            "disabled",
            "skipped",
            "timestamp",
            "hostname",
            "id",
            "package",
        },
        "testcase": {"name", "assertions", "time", "classname", "status"},
        "failure": {"type", "message"},
        "skipped": {"type", "message"},
        "system-out": set(),
    }
    children = {
        "testsuites": ["testsuite"],
        "testsuite": ["testcase", "system-out"],
        "testcase": ["skipped", "failure", "system-out"],
    }
    for element in root.iter():
        assert set(element.attrib) <= allowed[element.tag], element.tag
        places = [children.get(element.tag, []).index(child.tag) for child in element]
        assert places == sorted(places)
        assert element.tag != "testcase" or element.get("name")
        for name in ("tests", "failures", "errors", "skipped"):
            if element.tag in {"testsuite", "testsuites"}:
                assert int(element.get(name)) >= 0


@pytest.mark.parametrize("how", [{}, {"strict": True}])
def test_junit_is_as_its_schema_wants(how):
    text = ci.junit([build_gate(result(**how))], texts())
    root = ET.fromstring(text)
    schema_of_junit(root)
    suite = root.find("testsuite")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert suite.get("name") == "gate"
    assert int(suite.get("tests")) == len(cases)
    assert int(suite.get("failures")) == len(list(suite.iter("failure"))) == (6 if how else 1)
    assert int(suite.get("skipped")) == len(list(suite.iter("skipped")))
    assert cases["step.time"].find("failure").get("type") == "regression"
    assert "FAIL" in suite.find("system-out").text
    assert all(name in case.find("system-out").text for name, case in cases.items())


def test_junit_survives_control_characters():
    found = replace(result(), notes=(("input", {"run": "r", "text": "\x00\x1b<&\ud800"}),))
    ET.fromstring(ci.junit([build_gate(found)], texts()))


def test_sarif_has_only_findings_with_a_line():
    one = Finding(
        rule="DAT101",
        slug="loader-wait",
        evidence=measured(idle=30 * MS, share=0.3),
        advice=("cheaper_samples",),
        saving=20 * MS,
        low=10 * MS,
        bound=30 * MS,
        cost=30 * MS,
        severity=Severity.HIGH,
        confidence=Confidence.MEDIUM,
    )
    less = replace(one, saving=15 * MS, severity=Severity.MEDIUM)
    found = result()
    places = [Place(each, "train.py", 12, 100 * MS, "cuda") for each in (less, one)]
    candidate = found.candidate._replace(runs=(replace(found.candidate.runs[0], places=tuple(places)),))
    document = json.loads(ci.sarif([build_gate(replace(found, candidate=candidate))], texts()))
    (one,) = document["runs"]
    (only,) = one["results"]
    assert (only["ruleId"], only["level"]) == ("DAT101", "error")
    assert only["message"]["text"] == (
        "waiting for the data loader: The device waits for the data loader 30.00 ms a step (30 % of the time). "
        "Removing it saves 10–30 ms a step. "
        "→ Decode and augment more cheaply, or beforehand."
    )
    assert only["properties"]["saving"] == {"ns": 20 * MS, "low_ns": 10 * MS, "high_ns": 30 * MS}
    assert (only["properties"]["confidence"], only["properties"]["share"]) == ("medium", 0.2)
    where = only["locations"][0]["physicalLocation"]
    assert (where["artifactLocation"]["uri"], where["region"]["startLine"]) == ("train.py", 12)
    assert only["partialFingerprints"]
    assert one["tool"]["driver"]["rules"][0]["helpUri"].startswith("https://")
    assert json.loads(ci.sarif([build_gate(found)], texts()))["runs"][0]["results"] == []


def test_sarif_keeps_to_its_limit():
    one = Finding(rule="DAT101", slug="loader-wait", text="It waits.")
    places = tuple(Place(one, "train.py", line, MS, "cuda") for line in range(1, 5101))
    found = result()
    many = found.candidate._replace(runs=(replace(found.candidate.runs[0], places=places),))
    one = json.loads(ci.sarif([build_gate(replace(found, candidate=many))], texts()))["runs"][0]
    assert (len(one["results"]), one["properties"]["resultsLeftOut"]) == (5000, 100)


def test_missing_and_improved_metrics_are_told():
    old, new = [run(time=300, counts={"kernel.count": 5})], [run(time=200)]
    rules = read_budget(b'[gate]\non_missing = "warn"\n', "x").for_environment({})
    found = gate(SideSummary("baseline", tuple(old)), SideSummary("candidate", tuple(new)), rules)
    text = on_console(build_gate(found), texts(), Style(width=100))
    assert re.search(r"^kernel\.count .* missing \(warn\)$", text, re.MULTILINE)
    assert re.search(r"^step\.time .* improvement$", text, re.MULTILINE)
    assert "not measured in the candidate" in text


def test_every_reason_note_and_verdict_has_a_text():
    words = texts().terms
    from traceanalyze.regression.results import BAD, Verdict

    assert all(f"gate_{verdict}" in words for verdict in Verdict)
    assert all(f"gate_{verdict}_warn" in words for verdict in BAD)
    limited = gate(
        SideSummary("baseline", ()),
        SideSummary("candidate", runs(400)),
        read_budget(b'[gate.metrics."step.time"]\nmin = "500 ms"\n', "x").for_environment({}),
    )
    assert "below the absolute limit 500.0 ms" in json_report.render([build_gate(limited)], texts())


def test_the_runs_of_a_baseline_and_what_is_taken_for_noise():
    """Of the three runs of the last level; five are needed to learn from them."""
    named = {"label": "nightly", "commit": "0123456789abcdef", "environment": {"device": ("A", "B")}}
    old = run(0, time=300, time_of_day="2026-01-02T03:04:05+00:00", id="a", **named)
    new = replace(run(1, time=[330, 331, 340], counts={"kernel.count": 5}, id="b"), accepted="b")
    held, floors = baseline_tables(Baseline((old, run(2, counts={"kernel.count": 5}), new)))
    assert held.rows == (
        ("run0", "2026-01-02 03:04", "nightly", "0123456789", 5, 300 * MS, "A, B", ""),
        ("run2", "", "", "", 5, None, "GPU", ""),
        ("run1", "", "", "", 5, 331 * MS, "GPU", "*"),
    )
    assert floors.rows == (("step.time", 1, Quantity(0.01, "%")),)
