"""Small choices that pipelines make: names of jobs, whose snapshot is nearest, where a picture begins, what is old."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest

from tests.regression.make import run as sample_of
from tests.report.make import trace
from traceanalyze.errors import Apart, UsageError
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.pipeline import postmortem
from traceanalyze.pipeline.compare import CompareChoices, SideChoices, compare, name_map
from traceanalyze.pipeline.gate import _old
from traceanalyze.pipeline.memory_files import _best, _uses, nearness
from traceanalyze.pipeline.perfetto import Rank, _missing, _worst
from traceanalyze.regression.baseline import Baseline
from traceanalyze.rules.finding import Finding


def job(*names):
    return SimpleNamespace(runs=[SimpleNamespace(name=name, traces=()) for name in names])


def test_jobs_go_by_their_only_run_or_by_what_was_named():
    assert postmortem._names(["a/", "b"], [job("one")]) == ["one"]
    assert postmortem._names(["a/", "b"], [job("one", "two"), job("three")]) == ["a, b", "three"]
    assert postmortem._names(["a"], [job("x"), job("y"), job("x")]) == ["x (job 1)", "y", "x (job 3)"]


def test_remarks_are_told_once_and_with_the_name_where_there_are_several_runs():
    one = SimpleNamespace(name="a", notes=("n", "n", Apart("it holds several recordings, analysed apart")))
    other = SimpleNamespace(name="b", notes=("n",))
    assert postmortem._notes([one]) == (("", "n"),)
    assert postmortem._notes([one, other]) == (("a", "n"), ("b", "n"))


def test_the_nearest_file_shares_most_of_its_folders():
    assert nearness("/job/run/a.pickle", "/job/run/b.json") == len("/job/run")
    assert nearness("/job/run/a.pickle", "/job/other/b.json") == len("/job")
    near, far = (job("x") for _ in range(2))
    near.runs[0].traces = [SimpleNamespace(origin=SimpleNamespace(path="/job/b/t.json"))]
    far.runs[0].traces = [SimpleNamespace(origin=SimpleNamespace(path="/job/a/t.json"))]
    files = [SimpleNamespace(path=path) for path in ("/job/b/s", "/job/a/s", "/job/s")]
    shares = postmortem._memory_of_jobs([far, near], files)
    assert [[one.path for one in share] for share in shares] == [["/job/a/s", "/job/s"], ["/job/b/s"]]


def placed(*, calls, outside=0, inside=(False,)):
    return SimpleNamespace(all_calls=calls, outside=outside, inside=inside)


def test_of_several_recordings_of_a_rank_the_one_that_ran_at_the_peak_counts():
    none, few, many = NotMeasured("x"), placed(calls=5), placed(calls=9, outside=3)
    peak = placed(calls=1, inside=(False, True))
    assert _best([none, few]) is few
    assert _best([few, many, none]) is many
    assert _best([placed(calls=9, outside=5), few]) is few
    assert _best([many, peak, few]) is peak


def test_uses_of_snapshots_are_told_by_kind_and_a_few_by_name():
    analysis = object()
    used = SimpleNamespace(path="u", kind="snapshot", analyses=(analysis,))
    others = [SimpleNamespace(path=f"s{number}", kind="snapshot", analyses=(object(),)) for number in range(4)]
    line = SimpleNamespace(path="t", kind="memory_timeline", analyses=())
    found = {
        one.key: {name: value for name, _, value in one.values} for one in _uses([used, *others, line], {id(analysis)})
    }
    assert found == {
        "snapshot_used": {"count": 1, "path": "u"},
        "snapshot_unused": {"count": 4, "path": "s0, s1, s2, …"},
        "timeline_unused": {"count": 1, "path": "t"},
    }
    (three,) = _uses(others[:3], set())
    assert three.values[1][2] == "s0, s1, s2"


def test_a_picture_begins_half_the_time_of_the_worst_place_before_it():
    spans = np.array([[0, 10], [100, 140], [200, 240]], np.int64)
    found = [Finding(rule="a"), Finding(rule="b", intervals=spans[:0]), Finding(rule="c", intervals=spans)]
    assert _worst(found) == (80, 160)
    assert _worst(found[:2]) is None


def test_what_is_missing_everywhere_is_told_once():
    def rank(path, *missing):
        return SimpleNamespace(
            tracks=SimpleNamespace(missing=[(title, NotMeasured("no_api")) for title in missing]),
            trace=SimpleNamespace(origin=SimpleNamespace(path=path)),
        )

    notes = _missing([rank("a", "queue", "sync"), rank("b", "queue")], texts())
    assert len(notes) == 2
    assert "queue" in notes[0]
    assert not notes[0].startswith("a: ")
    assert notes[1].startswith("a: ")
    assert "sync" in notes[1]


def drawn(base, *, ahead=0, kind="kineto", worst=None):
    one = trace()
    origin = one.origin._replace(format=kind)
    return Rank(SimpleNamespace(origin=origin, base_ns=base), None, None, worst, ahead)


def test_ranks_are_drawn_on_the_clock_of_the_earliest_zero():
    one, other = drawn(1_000, worst=(5, 9)), drawn(1_500, ahead=200, worst=(5, 9))
    assert (one.text_base_ns, other.text_base_ns, drawn(1_000, ahead=3, kind="ascend").text_base_ns) == (
        1_000,
        1_300,
        -3,
    )
    assert one.place([one, other]) == (5, 9)
    assert other.place([one, other]) == (305, 309)
    assert drawn(7).place([one]) is None
    assert (one.clock(0).offset_ns, one.clock(0).quoted, drawn(5, kind="ascend").clock(0).quoted) == (
        1_000,
        False,
        True,
    )


@pytest.mark.parametrize(("days", "goes"), [(None, [True] * 4), (10, [False] * 4), (5, [True, False, False, False])])
def test_runs_are_old_by_the_newest(days, goes):
    newest = datetime(2026, 5, 20, tzinfo=UTC)
    times = [(newest - timedelta(days=ago)).isoformat() for ago in (6, 5, 0)]
    runs = [sample_of(number) for number in range(4)]
    dated = tuple(replace(one, time=time) for one, time in zip(runs, [*times, ""], strict=True))
    old = _old(Baseline(dated, created=""), days)
    assert [old(one) for one in dated] == goes
    assert _old(Baseline((), created=""), 5)(dated[0]) is False


@pytest.mark.parametrize("text", ['{"npu::a": "aten::b"}', "{'npu::a': 'aten::b'}", "  {'npu::a': 'aten::b'}\n"])
def test_names_of_operators_in_any_braces(text, tmp_path):
    assert name_map(text) == {"npu::a": "aten::b"}
    (tmp_path / "map").write_text(text)
    assert name_map(str(tmp_path / "map")) == {"npu::a": "aten::b"}


@pytest.mark.parametrize("given", ["no such file", [("a", "b")], 5])
def test_python_is_told_how_names_of_operators_are_given(given, tmp_path):
    with pytest.raises(UsageError, match="op_name_map="):
        compare(tmp_path, tmp_path, op_name_map=given)


@pytest.mark.parametrize("text", ["{", "{1: 2}", '{"a": 1}', "no such file"])
def test_what_is_no_map_of_names_is_said(text):
    with pytest.raises(UsageError, match="op_name_map="):
        name_map(text)


def test_options_in_effect_are_listed_by_their_names():
    sides = SideChoices("base", "a", steps="5"), SideChoices("candidate", "b", rank=0)
    found = CompareChoices(*sides, op_name_map="{}").listed()
    assert found["--base-step"] == "5"
    assert found["--comparison-rank"] == "0"
    assert "--base-rank" not in found
    assert "--disable-details" not in found
    assert found["--op-name-map"] == "{}"
