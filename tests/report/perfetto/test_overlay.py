"""Tracks say what the analyses say, to the nanosecond; figures of a trace made by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyze
from tests.builder import HOST, TraceBuilder
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.communication.parts import collective_parts
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Cause, DeviceClass
from traceanalyze.report.contents.words import Setting, said
from traceanalyze.report.perfetto import finding_tracks, overlay, queue_counter, sync_tracks, utilisation_counter
from traceanalyze.report.perfetto.events import (
    FIRST_PID,
    Clock,
    Overlay,
    Process,
    Slices,
    free_pid,
    microseconds,
    overlay_events,
)
from traceanalyze.rules.finding import Evidence, Finding


def two_steps():
    """Two steps of 100 µs; in each 40 µs of data loading, two kernels, a sync after the second."""
    trace = TraceBuilder()
    for number, at in enumerate((1000.0, 1100.0)):
        trace.step(number, at, 100)
        trace.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 40)
        trace.op("aten::mm", at + 41, 12)
        trace.launch(at + 42, 3, at + 50, 10)
        trace.launch(at + 46, 3, at + 60, 20.125)
        trace.op("aten::item", at + 70, 25)
        trace.api("cudaStreamSynchronize", at + 71, 20)
        trace.memory(at + 45, 1 << 20, allocated=3 << 20, reserved=8 << 20)
    return trace


def made(trace, findings=()):
    context = Context(trace.trace(), Options())
    analysis = analyze_context(context)
    return overlay(context, analysis, tuple(findings), texts()), analysis


def track(found, title):
    (one,) = [each for each in found.slices if each.title.startswith(title)]
    return one


def counter(found, title):
    (one,) = [each for each in found.counters if each.title.startswith(title)]
    return one


def test_steps_are_the_windows_of_the_analysis():
    found, analysis = made(two_steps())
    steps = track(found, "steps")
    assert steps.name == ["ProfilerStep#0", "ProfilerStep#1"]
    assert steps.start.tolist() == analysis.steps.start.tolist() == [1_000_000, 1_100_000]
    assert steps.end.tolist() == analysis.steps.end.tolist()


def test_idle_pieces_sum_to_the_idle_causes_of_every_step():
    found, analysis = made(two_steps())
    gaps, words = track(found, "idle device"), texts().terms
    for row, (begin, end) in enumerate(zip(analysis.steps.start, analysis.steps.end, strict=True)):
        inside = np.minimum(gaps.end, end) - np.maximum(gaps.start, begin)
        for cause in Cause:
            mine = np.array([name == words[cause.name.lower()] for name in gaps.name]) & (inside > 0)
            assert inside[mine].sum() == analysis.idle.by_step[row, cause], cause
    assert analysis.idle.by_step[0, Cause.DATA_LOADING] == 40_000


def test_an_idle_piece_tells_what_came_next():
    found, _ = made(two_steps())
    gaps = track(found, "idle device")
    first = {key: values[0] for key, values in gaps.args.items()}
    assert gaps.name[0] == "data loading"
    assert (gaps.start[0], gaps.end[0]) == (1_000_000, 1_040_000)
    assert first["next on the device"] == "kernel"
    assert first["operator"] == "aten::mm"
    assert first["whole interval, ms"] == 0.05


def test_a_sync_point_tells_its_call_and_what_it_cost():
    found, analysis = made(two_steps())
    syncs = track(found, "sync points")
    assert syncs.name == ["aten::item", "aten::item"]
    assert syncs.start.tolist() == [1_071_000, 1_171_000]
    assert (syncs.end - syncs.start).tolist() == [20_000, 20_000]
    # Nothing is launched after the second one, so it costs nothing that could be told.
    assert analysis.tables["sync_points"].column("idle_caused_ns") == (29_875, NotMeasured("terminal_sync"))
    assert syncs.args["idle caused, ms"] == [0.029875, None]


def test_the_critical_path_tiles_the_steps():
    found, analysis = made(two_steps())
    path = track(found, "critical path")
    assert path.start[0] == analysis.steps.start[0]
    assert path.end[-1] == analysis.steps.end[-1]
    assert (path.start[1:] == path.end[:-1]).all()


def test_queue_depth_counts_what_was_launched_and_has_not_begun():
    found, _ = made(two_steps())
    queue = counter(found, "queue depth")
    at = dict(zip(queue.t.tolist(), queue.values["events"].tolist(), strict=True))
    assert {t: at[t] for t in (1_042_000, 1_046_000, 1_050_000, 1_060_000)} == {
        1_042_000: 1,
        1_046_000: 2,
        1_050_000: 1,
        1_060_000: 0,
    }


def test_utilisation_weighted_by_time_is_the_busy_time():
    found, analysis = made(two_steps())
    use = counter(found, "device utilisation")
    length = np.diff(use.t)
    assert (use.values["%"][:-1] * length / 100).sum() == pytest.approx(analysis.partitions[0].busy.sum())
    assert use.values["%"][-1] == 0


def test_memory_is_shown_in_mebibytes():
    memory = counter(made(two_steps())[0], "memory")
    assert memory.values["allocated, MiB"].tolist() == [3.0, 3.0]
    assert memory.values["reserved, MiB"].tolist() == [8.0, 8.0]


def test_memory_of_a_device_without_a_number_is_that_of_device_minus_one():
    trace = two_steps()
    trace.memory(1046, 1 << 20, device=-1, allocated=5 << 20)
    titles = [each.title for each in made(trace)[0].counters if each.title.startswith("memory")]
    assert sorted(titles) == ["memory · device -1", "memory · device 0"]


def test_a_finding_is_drawn_where_its_time_is():
    spans = np.array([[1_100_000, 1_140_000], [1_000_000, 1_040_000]], np.int64)
    one = Finding(rule="DAT101", slug="loader-wait", text="waits", saving=40_000, intervals=spans)
    mine = track(made(two_steps(), [one])[0], "finding DAT101")
    assert list(zip(mine.start.tolist(), mine.end.tolist(), strict=True)) == [
        (1_000_000, 1_040_000),
        (1_100_000, 1_140_000),
    ]
    assert mine.args["saving, ms a step"] == [0.04, 0.04]


def test_a_finding_without_time_of_its_own_is_drawn_where_its_evidence_is():
    places = (Evidence("count", 1, "COUNT", 5, 9), Evidence("count", 2, "COUNT", 7, 12), Evidence("count", 3, "COUNT"))
    one = Finding(rule="X", slug="x", text="x", evidence=places)
    found, _ = made(two_steps(), [one, Finding(rule="Y", slug="y", text="y")])
    drawn = [
        (a, b)
        for each in found.slices
        if each.title.startswith("finding X")
        for a, b in zip(each.start, each.end, strict=True)
    ]
    assert drawn == [(5, 9), (7, 12)]
    assert found.unplaced == 1


def test_without_a_device_what_is_missing_is_named_and_not_drawn():
    trace = TraceBuilder()
    trace.step(0, 0, 10)
    trace.op("aten::mm", 1, 5)
    found, _ = made(trace)
    assert next(each.title for each in found.slices) == "steps"
    assert ("critical path", NotMeasured("no_device_events")) in found.missing
    assert found.counters == ()


def test_collectives_are_tiled_by_transfer_and_waiting(shared_traces):
    profile = shared_traces / "ascend" / "msinsight_2rank_torch" / "text" / "level1" / "rank0_ascend_pt"
    (recording,) = traceanalyze.load(profile).traces
    context = Context(recording, Options())
    found = overlay(context, analyze_context(context), (), texts())
    device, parts = context.device, context.once(collective_parts)
    told = np.flatnonzero(parts.recorded & (device.klass == DeviceClass.COMM))
    length = {"transfer": 0, "wait for other ranks": 0}
    tracks = [each for each in found.slices if each.title.startswith("parts of collectives")]
    for each in tracks:
        for name, time in zip(each.name, (each.end - each.start).tolist(), strict=True):
            length[name] += time
    assert length["transfer"] == (parts.end - parts.start)[np.isin(parts.event, told)].sum() > 0
    assert sum(length.values()) == (device.end - device.start)[told].sum()


def test_without_communication_nothing_about_it_is_missing():
    assert "parts of collectives" not in [title for title, _ in made(two_steps())[0].missing]


def test_slices_of_a_track_never_overlap():
    for each in made(two_steps())[0].slices:
        assert (each.start[1:] >= each.end[:-1]).all(), each.title
        assert (each.end > each.start).all(), each.title


@pytest.mark.parametrize(
    ("ns", "text"), [(0, "0.000"), (1, "0.001"), (-1, "-0.001"), (1736408883686740710, "1736408883686740.710")]
)
def test_times_are_exact_decimal_microseconds(ns, text):
    assert microseconds(ns) == text


def test_events_are_written_on_the_clock_of_the_text():
    found, _ = made(two_steps())
    written = json.loads(
        b"[" + b"".join(overlay_events(found, Process(FIRST_PID, "t"), Clock(10**18, quoted=True))) + b"]"
    )
    step = next(event for event in written if event["ph"] == "X" and event["name"] == "ProfilerStep#1")
    assert step["ts"] == "1000000000001100.000"
    assert {event["pid"] for event in written} == {FIRST_PID}
    assert {event["cat"] for event in written} == {"traceanalyze_overlay"}


def test_threads_of_every_process_of_the_overlay_are_its_own_and_whole_numbers():
    found, _ = made(two_steps())
    threads = []
    for number in range(3):
        text = b"".join(overlay_events(found, Process(FIRST_PID + number, "t"), Clock()))
        tids = [event["tid"] for event in json.loads(b"[" + text + b"]") if event["name"] == "thread_name"]
        assert all(type(tid) is int for tid in tids)
        assert tids == list(range(tids[0], tids[0] + len(found.slices)))
        threads += tids
    assert len(set(threads)) == 3 * len(found.slices) > 3


def test_phases_are_drawn_on_the_threads_of_the_program_and_not_of_other_processes():
    trace = two_steps()
    for tid, pid in ((2, HOST), (3, 999)):
        for at in (1000.0, 1100.0):
            trace.event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", at + 50, 20, pid=pid, tid=tid)
            trace.event("cpu_op", "MmBackward0", at + 51, 10, pid=pid, tid=tid)
    found, _ = made(trace)
    titles = [each.title for each in found.slices if each.title.startswith("phases")]
    assert len(titles) == 2
    assert [title.rpartition(" ")[2] for title in titles] == ["1", "2"]


def read_by_the_viewer(us: str) -> int:
    """Times as Perfetto v52 read them, in ns; seen there for every form of fraction."""
    value = float(us)
    return int(value) * 1000 if value == int(value) else int(value * 1000)


@given(
    st.lists(st.integers(1, 5000), min_size=2, max_size=60),
    st.integers(1_600_000_000_000_000_000, 1_900_000_000_000_000_000),
)
def test_slices_that_touch_do_not_overlap_for_a_viewer_that_rounds_absolute_times(lengths, zero):
    """Perfetto drops slices that overlap the one before."""
    end = np.cumsum(lengths)
    track = Slices("t", end - lengths, end, ["x"] * len(end), {})
    text = b"".join(overlay_events(Overlay((track,), ()), Process(FIRST_PID, "t"), Clock(zero, quoted=True)))
    drawn = [event for event in json.loads(b"[" + text + b"]", parse_float=Decimal) if event["ph"] == "X"]
    start = [read_by_the_viewer(event["ts"]) for event in drawn]
    length = [int(event["dur"] * 1000) for event in drawn]
    assert [int(Decimal(event["ts"]) * 1000) - zero for event in drawn] == (end - lengths).tolist()
    assert all(at + long <= following for at, long, following in zip(start, length, start[1:], strict=False))
    assert all(abs(long - true) <= 512 for long, true in zip(length, lengths, strict=True))


def test_names_of_tracks_are_written_in_utf_8_as_perfetto_shows_escapes_as_they_stand():
    context = Context(two_steps().trace(), Options())
    found = overlay(context, analyze_context(context), (), texts("zh"))
    text = b"".join(overlay_events(found, Process(FIRST_PID, "t"), Clock()))
    assert b"\\u" not in text
    assert texts("zh").terms["overlay_path"].encode() in text


def test_a_process_id_of_the_trace_is_not_taken():
    assert free_pid(["2000000000", "2000000001"]) == 2_000_000_002


def test_a_finding_without_any_time_has_no_track():
    none = np.zeros((0, 2), np.int64)
    proof = (Evidence("count", 1, "COUNT", 5, 5), Evidence("count", 2, "COUNT", 5), Evidence("count", 3, "COUNT", 7, 9))
    drawn, unplaced = tracks_of(Finding(rule="X", text="x", intervals=none, evidence=proof))
    assert [(each.start.tolist(), each.end.tolist()) for each in drawn] == [([7], [9])]
    assert unplaced == 0
    empty = np.array([[3, 3]], np.int64)
    assert tracks_of(Finding(rule="X", text="x", intervals=empty)) == ((), 1)


def tracks_of(one):
    return finding_tracks([each.in_words(texts()) for each in said([one], Setting(10_000_000))], texts().terms)


def test_a_finding_tells_what_it_saves():
    spans = np.array([[0, 5]], np.int64)
    one = Finding(rule="own", slug="s", text="mine", saving=2_000_000, bound=3_000_000, intervals=spans)
    ((mine,), _) = tracks_of(one)
    assert (mine.title, mine.name) == ("finding own: s", ["s"])
    assert list(mine.args.values()) == [["note"], ["mine"], [None], [2.0], [3.0], [None]]
    ((bare,), _) = tracks_of(replace(one, saving=None, bound=None, cost=2_000_000))
    price = "It costs 2.000 ms a step (20 %); what removing it saves was not measured."
    assert list(bare.args.values()) == [["note"], ["mine"], [price], [None], [None], [None]]


def test_without_calls_there_are_neither_sync_points_nor_a_queue():
    trace = TraceBuilder()
    trace.step(0, 0, 100)
    trace.device(10, 50)
    context = Context(trace.trace(), Options())
    assert sync_tracks(context, texts().terms) == NotMeasured("no_api")
    assert queue_counter(context, texts().terms) == NotMeasured("no_api")


def test_utilisation_is_told_chunk_by_chunk_and_ends_at_zero():
    trace = TraceBuilder()
    trace.step(0, 0, 100)
    trace.step(1, 100, 100)
    trace.launch(0, 2, 10, 50)
    trace.launch(101, 2, 120, 80)
    context = Context(trace.trace(), Options())
    found = utilisation_counter(context, texts().terms)
    assert (found.t[1:] > found.t[:-1]).all()
    (values,) = found.values.values()
    assert values[-1] == 0
    assert ((values >= 0) & (values <= 100)).all()
    assert (values[:-1] * np.diff(found.t)).sum() / 100 == 130_000


def test_findings_are_drawn_right_below_the_steps():
    spans = np.array([[1_000_000, 1_040_000]], np.int64)
    one = Finding(rule="DAT101", slug="loader-wait", text="waits", saving=40_000, intervals=spans)
    first, second, *others = (each.title for each in made(two_steps(), [one])[0].slices)
    assert (first, second.partition(":")[0]) == ("steps", "finding DAT101")
    assert [title.partition(" ·")[0] for title in others] == [
        *("phases", "idle device, by cause", "sync points", "critical path"),
    ]
