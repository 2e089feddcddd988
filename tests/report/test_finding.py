"""The finding that every output has: made by hand, in each of them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import openpyxl
import pytest

import traceanalyze
from tests.report.make import MS, analysis, in_workbook
from traceanalyze.locales import texts
from traceanalyze.pipeline import parts
from traceanalyze.pipeline.recordings import KEPT_INTERVALS as KEPT
from traceanalyze.pipeline.recordings import AnalysedRank, bounded
from traceanalyze.report import folder, html, markdown, xlsx
from traceanalyze.report import json as json_report
from traceanalyze.report.console import Style, render
from traceanalyze.report.contents import build_report
from traceanalyze.report.finding import MOST_INTERVALS, Saving
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Outcome, Scope, Severity, measured

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
LINE = "train.py(12): main"
RANGE = Finding(
    rule="DAT101",
    slug="loader-wait",
    saving=12 * MS,
    low=10 * MS,
    bound=14 * MS,
    cost=20 * MS,
    evidence=(Evidence("idle", 20 * MS, "DURATION", 5 * MS, 25 * MS, LINE), *measured(share=0.1)),
    advice=("cheaper_samples",),
    scope=Scope((3,), ops=("aten::copy_", LINE)),
    intervals=np.array([[5 * MS, 25 * MS]], np.int64),
    severity=Severity.MEDIUM,
    confidence=Confidence.MEDIUM,
    count=4,
)
WAITING = Finding(
    rule="own",
    slug="waits for rank 5",
    text="Ranks wait.",
    cost=98 * MS,
    severity=Severity.HIGH,
    confidence=Confidence.LOW,
)
ONCE = Finding(
    rule="first", slug="capture", text="Graphs are captured.", cost=40 * MS, once=True, severity=Severity.INFO
)
SURE = Finding(
    rule="plain",
    slug="a plain thing",
    text="It is slow.",
    saving=5 * MS,
    bound=5 * MS,
    severity=Severity.LOW,
    confidence=Confidence.HIGH,
)
ALL = RANGE, WAITING, SURE, ONCE
TOGETHER = 13 * MS, 15 * MS, 16 * MS


def report(*found, together=None):
    """Steps of 177.67 ms on the mean."""
    ordered = tuple(sorted(found, key=lambda one: one.order))
    return build_report("run", [analysis(rank=3)], version="0", outcomes=[Outcome(ordered, (), together)])


def console(width, *found, together=None, language="en"):
    """The lines about the findings."""
    text = render(report(*found, together=together), texts(language), Style(width=width, unicode=False))
    return next(part for part in text.split("\n\n") if part.startswith(("Findings", "问题"))).splitlines()


def test_a_narrow_page_tells_cost_saving_range_and_certainty():
    assert console(80, *ALL, together=TOGETHER) == [
        "Findings",
        "severity         rule    finding                      saving   cost  share",
        "                                                          ms     ms      %",
        "--------------------------------------------------------------------------",
        "high, uncertain  own     waits for rank 5                n/m  98.00   55.2",
        "medium, likely   DAT101  waiting for the data loader   10–14  20.00    6.8",
        "low              plain   a plain thing                  5.00           2.8",
        "note             first   capture                              40.00",
        "n/m: not measured (what removing it saves cannot be replayed)",
        "own: Ranks wait.",
        "It costs 98.00 ms a step (55 %); what removing it saves was not measured.",
        "DAT101: The device waits for the data loader 20.00 ms a step (10 % of the time).",
        "At train.py(12): main.",
        "It costs 20.00 ms a step; removing it saves 10–14 ms.",
        "→ Decode and augment more cheaply, or beforehand.",
        "plain: It is slow.",
        "first: Graphs are captured.",
        "It is done once: later steps do without it, so there is no saving.",
        "Together they save 13–16 ms a step (8.4 %): less than one by one, as one hides",
        "behind another.",
    ]


WIDE_PAGE = """\
severity        rule    finding                      saving   cost  share  at most  where        count
                                                         ms     ms      %       ms
------------------------------------------------------------------------------------------------------
medium, likely  DAT101  waiting for the data loader   10–14  20.00    6.8    14.00  aten::copy_      4
low             plain   a plain thing                  5.00           2.8     5.00                   1
"""


def test_a_wide_page_has_room_for_places():
    assert console(160, RANGE, SURE)[1:6] == WIDE_PAGE.splitlines()


def test_one_number_is_told_once():
    same = replace(SURE, cost=5 * MS + 1000, low=5 * MS - 1000)
    assert console(80, same) == console(80, SURE)
    assert "cost" not in console(80, same)[1]


def test_a_range_without_a_cost_of_its_own_is_told_alone():
    assert "Removing it saves 10–14 ms a step." in console(80, replace(RANGE, cost=None))


def test_a_cost_that_the_sentence_has_told_is_not_repeated():
    told = replace(WAITING, evidence=(Evidence("wait", 98 * MS, "DURATION"),))
    assert "What removing it saves was not measured." in console(80, told)


@pytest.mark.parametrize(
    ("found", "replayed", "said"),
    [
        ((RANGE, SURE), (17 * MS, 17 * MS, 17 * MS), ["Together they save 17.00 ms a step (9.6 %)."]),
        (
            (RANGE, SURE),
            (30 * MS, 40 * MS, 50 * MS),
            [
                "Together they save 30–50 ms a step (23 %): more than one by one, as each alone",
                "leaves others in the way.",
            ],
        ),
        ((RANGE, WAITING), (9 * MS, 9 * MS, 9 * MS), []),
        ((RANGE, SURE), None, []),
    ],
)
def test_together_is_what_the_replay_says_and_one_alone_has_no_together(found, replayed, said):
    lines = console(80, *found, together=replayed)
    at = [index for index, line in enumerate(lines) if line.startswith("Together")]
    assert lines[at[0] if at else len(lines) :] == said
    low, saving, high = replayed or (0, 0, 0)
    assert report(*found, together=replayed).ranks[0].together == (Saving(saving, low, high) if said else None)


def test_programs_have_it_whole_and_in_a_language():
    (one,) = report(RANGE).findings
    assert isinstance(one, traceanalyze.Finding)
    assert (one.rule, one.title) == ("DAT101", "waiting for the data loader")
    assert one.sentence == "The device waits for the data loader 20.00 ms a step (10 % of the time)."
    assert one.advice == ("Decode and augment more cheaply, or beforehand.",)
    assert (one.saving, one.cost_ns, one.once) == (Saving(12 * MS, 10 * MS, 14 * MS), 20 * MS, False)
    assert one.share == pytest.approx(12 / 177.6667, abs=1e-5)
    assert (one.severity, one.confidence, one.grade) == ("medium", "medium", "medium, likely")
    assert one.scope == ((3,), ("5",), ("aten::copy_",), (LINE,))
    assert one.evidence[0] == ("idle time", 20 * MS, "nanoseconds", "20.00 ms", 5 * MS, 25 * MS, LINE)
    assert one.evidence[1][:4] == ("share of the step", 0.1, "fraction", "10 %")
    assert (one.link.command, one.link.trace) == ("traceanalyze rule DAT101", "rank3.json")
    assert one.intervals.tolist() == [[5 * MS, 25 * MS]]
    (other,) = report(RANGE).findings_in("zh")
    assert (other.id, other.severity, other.grade) == (one.id, "medium", "中（很可能）")
    assert other.sentence == "设备每步等待数据加载 20.00 ms（占总时间的 10 %）。"


def test_where_it_is_in_every_step_none_is_named_and_an_id_names_one_place():
    everywhere = replace(RANGE, intervals=np.array([[0, 10**12]], np.int64))
    assert report(everywhere).findings[0].scope.steps == ()
    ids = [report(one).findings[0].id for one in (RANGE, everywhere, replace(RANGE, scope=Scope((3,), ops=("other",))))]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize("steps", [slice(0, 1), slice(1, None), slice(None)])
def test_of_many_intervals_those_are_kept_that_a_report_shows(steps):
    own, some = analysis(rank=3), np.random.default_rng(7)
    first, last = own.steps.start[steps].min(), own.steps.end[steps].max()
    start = np.sort(some.integers(first, last - 3000, 20_000))
    spans = np.stack((start, start + some.integers(1, 3000, len(start))), axis=1)
    # In one step all are short; touching pieces, of which none is long, are the longest together.
    spans[start >= own.steps.start[-1], 1] = start[start >= own.steps.start[-1]] + 1
    spans = np.concatenate((spans, first + 90 * np.arange(100)[:, None] + [0, 90]))
    whole = replace(RANGE, intervals=spans)
    few = bounded(AnalysedRank(own, Outcome((whole,)))).outcome.findings[0]
    assert KEPT <= len(few.intervals) <= KEPT + len(own.steps) + 1
    assert few.left_out > 1000
    assert report(few).findings[0].as_json() == report(whole).findings[0].as_json()
    assert report(few).findings[0].as_json(3) == report(whole).findings[0].as_json(3)
    assert len(parts.dumps(few)) < 5000 < 30_000 < len(parts.dumps(whole))


def test_the_order_is_that_of_what_each_is_worth():
    assert [one.rule for one in report(ONCE, SURE, RANGE, WAITING).findings] == ["own", "DAT101", "plain", "first"]


def test_json_has_words_and_no_keys():
    spans = np.array([[at * 10, at * 10 + 1 + at % 2] for at in range(3 * MOST_INTERVALS)], np.int64)
    made = report(*ALL[1:], replace(RANGE, intervals=spans), together=TOGETHER)
    run = json.loads(json_report.render([made], texts()))["reports"][0]
    one = next(each for each in run["findings"] if each["rule"] == "DAT101")
    assert one["saving"] == {"ns": 12 * MS, "low_ns": 10 * MS, "high_ns": 14 * MS}
    assert one["scope"] == {"ranks": [3], "steps": ["5"], "operators": ["aten::copy_"], "source_lines": [LINE]}
    assert len(one["intervals_ns"]) == MOST_INTERVALS
    assert one["intervals_left_out"] == 2 * MOST_INTERVALS
    assert {end - start for start, end in one["intervals_ns"]} == {2}, "the longest"
    assert one["intervals_ns"] == sorted(one["intervals_ns"])
    assert run["ranks"][0]["together"] == {"ns": 15 * MS, "low_ns": 13 * MS, "high_ns": 16 * MS}
    row = next(each for each in run["ranks"][0]["tables"]["findings"]["rows"] if each["rule_id"] == "own")
    assert (row["saving_ns"], row["saving_ns_reason"], row["severity"]) == (
        None,
        "saving_not_replayed",
        "severity_high",
    )
    keys = {"finding_", "advice_", "severity_", "confidence_", "evidence_", "rule_", "price_", "grade_"}
    assert not [text for text in _texts(run["findings"]) if text.startswith(tuple(keys))]


def _texts(value):
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
    elif isinstance(value, str):
        yield value


def test_every_page_has_cost_and_saving():
    made = report(*ALL, together=TOGETHER)
    pages = html.render([made], texts()).replace("&nbsp;", " "), markdown.render([made], texts())
    for text in (page.replace("\u00a0", " ") for page in pages):
        assert "10–14" in text
        assert "removing it saves 10–14 ms" in text
        assert "Together they save 13–16 ms a step" in text
        assert "high, uncertain" in text


@pytest.mark.filterwarnings("ignore:.* extension is not supported")
def test_the_first_sheet_of_the_workbook_tells_what_costs_most():
    book = openpyxl.load_workbook(io.BytesIO(xlsx.render([report(*ALL)], texts())))
    rows = list(book["Summary"].iter_rows())
    (at,) = (place for place, row in enumerate(rows) if row[0].value == "What to do, by what it saves")
    heads = ["what", "saving a step (ms), share", "from–to", "why, and what to do"]
    assert [cell.value for cell in rows[at + 1]] == heads
    (first,) = (place for place, row in enumerate(rows) if row[0].value == "waiting for the data loader")
    told = [[cell.value for cell in row] for row in rows[first : first + 3]]
    assert told[0][1:3] == [12, "10–14"]
    assert told[0][3].endswith(" (10 % of the time). It costs 20.00 ms a step; removing it saves 10–14 ms.")
    assert told[1][:2] == ["medium, likely", pytest.approx(12 / 177.666667, rel=1e-3)]
    advice = "→ Decode and augment more cheaply, or beforehand."
    assert [line[3] for line in told[1:]] == ["In: train.py(12): main.", advice]
    name, _, cell = rows[first][0].hyperlink.location.rpartition("!")
    row = book[name.strip("'")][cell].row
    assert [cell.value for cell in book[name.strip("'")][row]][:2] == ["DAT101", "idle time"]
    sheet, header = in_workbook(book, "Findings")
    head, *listed = sheet.iter_rows(min_row=header, values_only=True)
    shown = dict(zip(head, next(row for row in listed if row[1] == "DAT101"), strict=True))
    assert (shown["at least (ms)"], shown["saving (ms)"], shown["at most (ms)"]) == (10, 12, 14)


def test_files_of_tables_have_one_of_findings_in_words():
    files = folder.files([report(*ALL)], texts("zh"), "csv")
    rows = list(csv.DictReader(io.StringIO(files["findings_in_words.csv"]().decode("utf-8-sig"))))
    assert [row["rule"] for row in rows] == ["own", "DAT101", "plain", "first"]
    one = rows[1]
    assert (one["saving_ns"], one["saving_low_ns"], one["cost_ns"]) == ("12000000", "10000000", "20000000")
    assert (one["severity"], one["grade"], one["title"]) == ("medium", "中（很可能）", "等待数据加载")
    assert (one["ranks"], one["source_lines"], rows[3]["once"]) == ("3", LINE, "true")
    assert "findings_in_words.csv" not in folder.files([report()], texts(), "csv")


def test_what_a_snapshot_tells_is_a_finding_too():
    told = traceanalyze.memory(SAMPLES / "memory" / "leak" / "snapshot.pickle.gz").findings[0]
    assert (told.rule, told.severity, told.saving, told.advice) == ("MEM108", "medium", None, ())
    assert told.sentence.startswith("Every step leaves 24.0 MiB behind at train.py:31 train")
    assert told.scope == ((), (), (), ("train.py:31 train",))
    assert (told.evidence[0].value, told.evidence[0].unit) == (24 << 20, "bytes")


def test_causes_of_a_run_are_its_findings():
    report = traceanalyze.postmortem(SAMPLES / "gpu_two_ranks")
    rows = list(report.tables["run_causes"].records())
    told = report.findings[: len(rows)]
    assert [one.rule for one in told] == [row.rule_id for row in rows]
    assert [one.saving and one.saving.ns for one in told] == [row.gain_ns for row in rows]
    assert told[0].scope.ranks == (0, 1)


def test_a_finding_has_one_id_in_an_analysis_and_a_post_mortem():
    path = SAMPLES / "gpu_data_loading"
    found, told = (
        {one.rule: one.id for one in each(path).findings} for each in (traceanalyze.analyze, traceanalyze.postmortem)
    )
    assert found
    assert {rule: told[rule] for rule in found if rule in told} == {
        rule: one for rule, one in found.items() if rule in told
    }
    assert set(found) & set(told)
