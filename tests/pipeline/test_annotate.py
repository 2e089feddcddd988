"""A trace with the analyses drawn over it: what is read from it is what was read before, and what was drawn is true."""

from __future__ import annotations

import gzip
import json
import shutil
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from traceanalyze.errors import InputError, UsageError
from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.pipeline import perfetto
from traceanalyze.pipeline.perfetto import annotate, annotated
from traceanalyze.report.json import render

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
OF_THE_FILE = {"trace", "path", "name", "file_bytes", "text_bytes", "events"}
"""What a report says of the file itself, which is another one."""


def loop(*, fraction=0.0, rank=None, base=0):
    trace = TraceBuilder()
    trace.header["baseTimeNanoseconds"] = base
    if rank is not None:
        trace.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
    for number, at in enumerate((1000, 1100, 1200)):
        trace.step(number, at, 100)
        trace.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 40)
        trace.op("aten::mm", at + 41, 10)
        trace.launch(at + 42, 3, at + 50, 30 + fraction)
    return trace


def said(path):
    def clean(value):
        if isinstance(value, dict):
            return {key: clean(each) for key, each in value.items() if key not in OF_THE_FILE}
        # Counters that were drawn are counted, as any others.
        return [clean(each) for each in value if not counters(each)] if isinstance(value, list) else value

    def counters(value):
        texts = value.values() if isinstance(value, dict) else [value]
        return any(isinstance(each, str) and "Not read, as" in each for each in texts)

    return clean(json.loads(render([traceanalyze.analyze(path)], texts())))


def events_of(path):
    root = json.loads(
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes(), parse_float=str
    )
    return root if isinstance(root, list) else root["traceEvents"]


def drawn(path):
    return [event for event in events_of(path) if event.get("cat") == "traceanalyze_overlay"]


def slices(path, title):
    events = drawn(path)
    tid = next(e["tid"] for e in events if e["name"] == "thread_name" and e["args"]["name"].startswith(title))
    return [event for event in events if event["ph"] == "X" and event["tid"] == tid]


@pytest.mark.parametrize("case", ["gpu_sync", "gpu_2021_layout", "gpu_data_loading", "cpu_training"])
def test_the_annotated_trace_says_the_same(case, tmp_path):
    source = SAMPLES / case / "trace.json.gz"
    out = tmp_path / "out.json.gz"
    annotate(source, out)
    assert len(drawn(out)) > 10
    assert said(out) == said(source)


def test_an_annotated_ascend_profile_says_the_same(tmp_path):
    profile = shutil.copytree(SAMPLES / "npu_training" / "rank0_ascend_pt", tmp_path / "rank0_ascend_pt")
    before = said(profile)
    annotate(profile, tmp_path / "out.json")
    steps = slices(tmp_path / "out.json", "steps")
    assert all(isinstance(step["ts"], str) for step in steps)
    (view,) = profile.rglob("trace_view.json*")
    text = (tmp_path / "out.json").read_bytes()
    view.write_bytes(gzip.compress(text) if view.suffix == ".gz" else text)
    assert said(profile) == before


@pytest.mark.parametrize("case", ["tracelens/h100", "param/dlrm_8rank", "kineto_tb/samples/resnet50_num_workers_0"])
def test_annotated_real_traces_say_the_same(case, shared_traces, tmp_path):
    source = min((shared_traces / "kineto" / case).rglob("*.gz"))
    # Some tell their rank by the name of the file only.
    out = tmp_path / "annotated" / source.name
    out.parent.mkdir()
    annotate(source, out)
    assert said(out) == said(source)


def test_what_is_drawn_does_not_make_the_clock_finer(tmp_path):
    trace = loop()
    trace.event("traceanalyze_overlay", "drawn", 1000.5, 0.25, pid=2_000_000_000)
    assert loop().trace().resolution_ns == trace.trace().resolution_ns == 1000
    assert loop(fraction=0.5).trace().resolution_ns == 1


def test_slices_stand_at_the_times_of_the_trace(tmp_path):
    source = loop(base=1_700_000_000_000_000_000, fraction=0.125).write(tmp_path / "in.json")
    annotate(source, tmp_path / "out.json")
    root = json.loads((tmp_path / "out.json").read_text())
    assert root["baseTimeNanoseconds"] == 1_700_000_000_000_000_000
    assert [(e["ts"], e["dur"]) for e in slices(tmp_path / "out.json", "steps")] == [
        ("1000.000", "100.000"),
        ("1100.000", "100.000"),
        ("1200.000", "100.000"),
    ]
    waits = [e for e in slices(tmp_path / "out.json", "idle device") if e["name"] == "data loading"]
    assert next((e["ts"], e["dur"]) for e in waits) == ("1000.000", "40.000")


@pytest.mark.parametrize("text", ["list", "object", "spread"])
def test_the_text_of_the_trace_is_passed_on_unchanged(text, tmp_path):
    trace = loop()
    body = (
        json.dumps(trace.events)
        if text == "list"
        else json.dumps(json.loads(trace.text()), indent=2 * (text == "spread"))
    )
    source = tmp_path / "in.json"
    source.write_text(body)
    annotate(source, tmp_path / "out.json")
    assert (
        events_of(tmp_path / "out.json")[: len(trace.events)]
        == json.loads(body, parse_float=str)[slice(None) if text == "list" else "traceEvents"]
    )
    end = body.rindex("]")
    out = (tmp_path / "out.json").read_text()
    assert out.startswith(body[:end].rstrip())
    assert out.endswith(body[end:])


def test_the_same_input_gives_the_same_bytes(tmp_path):
    source = loop().write(tmp_path / "in.json")
    for name in ("a.json.gz", "b.json.gz"):
        annotate(source, tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_the_overlay_alone_holds_nothing_of_the_trace(tmp_path):
    source = loop(base=10**18).write(tmp_path / "in.json")
    annotate(source, tmp_path / "with.json")
    annotate(source, tmp_path / "alone.json", overlay_only=True)
    assert events_of(tmp_path / "alone.json") == drawn(tmp_path / "with.json")
    assert json.loads((tmp_path / "alone.json").read_text())["baseTimeNanoseconds"] == 10**18


@pytest.mark.parametrize("cut", [-2, -200])
def test_a_damaged_trace_gets_its_overlay_alone_and_that_is_said(cut, tmp_path):
    (tmp_path / "in.json").write_text(loop().text()[:cut])
    notes = annotate(tmp_path / "in.json", tmp_path / "out.json")
    assert any("in.json: the file is damaged" in note for note in notes)
    assert len(drawn(tmp_path / "out.json")) == len(events_of(tmp_path / "out.json")) > 5


def test_a_trace_with_one_broken_place_gets_its_overlay_alone(tmp_path):
    text = loop().text()
    (tmp_path / "in.json").write_text(text.replace('"traceEvents": [', '"traceEvents": [{"ph": "X", "ts": 1 2}, '))
    notes = annotate(tmp_path / "in.json", tmp_path / "out.json")
    assert any("in.json: the file is damaged" in note for note in notes)
    assert len(drawn(tmp_path / "out.json")) == len(events_of(tmp_path / "out.json")) > 5


def test_a_database_has_no_text_so_its_overlay_stands_alone(shared_traces, tmp_path):
    profile = shared_traces / "ascend" / "msinsight_2rank_torch" / "db" / "level1" / "rank0_ascend_pt"
    notes = annotate(profile, tmp_path / "out.json")
    assert any("no JSON trace" in note for note in notes)
    assert len(drawn(tmp_path / "out.json")) == len(events_of(tmp_path / "out.json")) > 100


def two_ranks(folder, *, bases=(0, 0)):
    folder.mkdir()
    for rank, base in enumerate(bases):
        loop(rank=rank, base=base).write(folder / f"rank{rank}.json")
    return folder


def test_ranks_become_one_file_in_which_no_process_is_shared(tmp_path):
    folder = two_ranks(tmp_path / "run")
    notes = annotate(folder, tmp_path / "out.json")
    events = events_of(tmp_path / "out.json")
    real = [event for event in events if event.get("cat") != "traceanalyze_overlay"]
    assert len(real) == 2 * len(loop().events)
    half = len(real) // 2
    assert {e["pid"] for e in real[:half]} & {e["pid"] for e in real[half:]} == set()
    # Perfetto names threads by their id alone, so those of the tracks are shared with nobody.
    threads = [e["tid"] for e in drawn(tmp_path / "out.json") if e["name"] == "thread_name"]
    assert len(set(threads)) == len(threads)
    assert {e["tid"] for e in real} & set(threads) == set()
    titles = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert {"rank 0 · traceanalyze", "rank 1 · traceanalyze", "rank 0 · 100", "rank 1 · 100"} <= titles
    assert any(note.startswith("Ranks in one file: 2") for note in notes)


def late_ranks(folder):
    """In each of four steps of 95.3 ms both compute, and meet in a collective of 5 ms: rank 1 after 60 ms, rank 0 after
    30 ms; then both compute for 30 ms, and the host waits for it. Rank 0 alone looks as if communication took long."""
    folder.mkdir()
    for rank, compute in enumerate((30_000, 60_000)):
        trace = TraceBuilder()
        trace.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
        for step in range(4):
            at = 1_000 + 95_300 * step
            trace.step(step, at, 95_300)
            trace.launch(at + 10, 5, at + 100, compute)
            trace.launch(at + 20, 5, at + 100 + compute, 65_100 - compute, name="ncclKernel_AllReduce", stream=20)
            trace.launch(at + 30, 5, at + 65_205, 30_000)
            trace.api("cudaDeviceSynchronize", at + 40, 95_170)
        trace.write(folder / f"rank{rank}.json")
    return folder


def test_of_several_ranks_the_findings_drawn_are_those_that_analyze_tells(tmp_path):
    folder = late_ranks(tmp_path / "run")

    def found(paths):
        notes = annotate(paths, tmp_path / "out.json", overlay_only=True)
        titles = [e["args"]["name"] for e in drawn(tmp_path / "out.json") if e["name"] == "thread_name"]
        return notes, sorted(title.split()[1].rstrip(":") for title in titles if title.startswith("finding "))

    told = traceanalyze.analyze(folder)
    every = [one for rank in told.ranks for one in rank.findings]
    placed = [one.rule for one in every if one.intervals is not None]
    assert "COM101" in found(folder / "rank0.json")[1]
    notes, rules = found(folder)
    assert "COM101" not in rules
    assert rules == sorted(placed)
    # What is about the ranks together has no place in any of them.
    assert [(one.rule, one.saving) for one in told.run_findings] == [("RNK101", 30_000_000)]
    count = len(every) - len(placed) + len(told.run_findings)
    assert f"Findings without a place in time are not drawn: {count}" in notes


def test_what_to_look_at_first_is_on_the_rank_that_the_others_wait_for(tmp_path):
    """In both ranks the host lets the device wait, in rank 1 later and for longer; rank 0 waits for it."""
    for rank, idle in enumerate((10_000, 30_000)):
        trace = TraceBuilder()
        trace.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
        for step in range(4):
            at = 1_000 + 100_000 * step
            trace.step(step, at, 99_000)
            trace.launch(at, 5, at + 10, 20_000)
            trace.op("aten::mm", at + 20_000, idle)
            late = at + 20_010 + idle
            trace.launch(late - 5, 5, late, 20_000)
            trace.launch(late, 5, late + 20_000, at + 90_000 - late - 20_000, name="ncclKernel_AllReduce", stream=20)
        trace.write(tmp_path / f"rank{rank}.json")
    start, end = annotated(tmp_path, tmp_path / "out.json").place
    assert end - start == pytest.approx(2 * 30_000_000, rel=0.01)


def test_one_looks_where_one_is_told_to_since_the_first_event(tmp_path):
    b = TraceBuilder()
    b.step(0, 5_000, 1_000)
    b.launch(5_100, 10, 5_200, 300)
    b.write(tmp_path / "trace.json")
    made = annotated(tmp_path / "trace.json", tmp_path / "out.json", at="100us-0.3ms")
    assert made.place == (5_100_000, 5_300_000)
    with pytest.raises(UsageError, match="at=3: write two times since the first event"):
        annotated(tmp_path / "trace.json", tmp_path / "out.json", at="3")


def test_ranks_whose_files_count_from_different_zeros_are_put_on_one_clock(tmp_path):
    folder = two_ranks(tmp_path / "run", bases=(10**18, 10**18 + 1_500))
    annotate(folder, tmp_path / "out.json")
    root = json.loads((tmp_path / "out.json").read_text(), parse_float=str)
    assert root["baseTimeNanoseconds"] == 10**18
    steps = [float(e["ts"]) for e in root["traceEvents"] if e["name"] == "ProfilerStep#0"]
    # In the text of each rank and in its overlay.
    assert sorted(steps) == [1000.0, 1000.0, 1001.5, 1001.5]


def test_several_runs_are_not_mixed(tmp_path):
    for hour, name in enumerate(("a", "b"), 1):
        two_ranks(tmp_path / name, bases=(hour * 3_600 * 10**9,) * 2)
    with pytest.raises(UsageError, match="2 runs"):
        annotate([tmp_path / "a", tmp_path / "b"], tmp_path / "out.json")


def test_the_input_is_never_written_over(tmp_path):
    source = loop().write(tmp_path / "in.json")
    before = source.read_bytes()
    with pytest.raises(UsageError, match="this is an input"):
        annotate(source, source)
    with pytest.raises(UsageError, match="this is an input"):
        annotate(tmp_path, source)
    assert source.read_bytes() == before


@pytest.mark.parametrize("name", ["out.txt", "nowhere/out.json"])
def test_names_that_cannot_be_written_are_refused(name, tmp_path):
    with pytest.raises(UsageError):
        annotate(loop().write(tmp_path / "in.json"), tmp_path / name)


def test_what_is_no_trace_leaves_no_file(tmp_path):
    (tmp_path / "in.json").write_text("hello")
    with pytest.raises(InputError):
        annotate(tmp_path / "in.json", tmp_path / "out.json")
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


def test_clocks_that_collectives_show_to_differ_are_put_right(tmp_path):
    """The sample was simulated: its collectives end at one time for both ranks, and the clock of rank 1 is ahead."""
    sample = Path(__file__).parents[2] / "sample_traces" / "gpu_two_ranks"
    out = tmp_path / "run.json"
    notes = traceanalyze.annotate(sample, out)
    ends: dict[int, list[Decimal]] = {}
    for event in json.loads(out.read_text(), parse_float=Decimal)["traceEvents"]:
        if event["ph"] == "X" and event["name"].startswith("nccl") and event.get("cat") == "kernel":
            ends.setdefault(event["pid"], []).append(event["ts"] + event["dur"])
    first, second = ends.values()
    assert len(first) > 1
    assert sorted(first) == sorted(second)
    assert any("clocks are moved by up to 3.000 ms" in note for note in notes)


@pytest.mark.parametrize(
    ("skews", "ahead"),
    [((0, 5, 7), [0, 300, -20]), ((0, None, 7), [0, 0, 0]), ((0, 5), [0, 0, 0]), ((), [0, 0, 0])],
)
def test_clocks_are_moved_where_those_of_all_ranks_are_known_well(skews, ahead, monkeypatch):
    rows = zip((0, 300, -20), (NotMeasured("clocks_uneven") if each is None else each for each in skews), strict=False)
    columns = Column("offset_ns", Kind.CHANGE), Column("skew_ns", Kind.DURATION)
    table = Table("clocks", columns).fill_records({"offset_ns": offset, "skew_ns": skew} for offset, skew in rows)
    monkeypatch.setattr(perfetto, "clock_offsets", lambda _: table)
    assert perfetto._ahead(SimpleNamespace(cluster="any", ranks=(1, 2, 3))) == ahead
    assert perfetto._ahead(SimpleNamespace(cluster=None, ranks=(1,))) == [0]
