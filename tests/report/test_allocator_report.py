"""The memory report: the verdict names peak and worst finding, tables sum, sheets open, hostile names stay text."""

from __future__ import annotations

import io
import json
import pickle
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest

from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import MIB, Allocator, OutOfMemoryError
from tests.simulate.allocator.programs import LEAK_LINE, Loop, train
from traceanalyze.errors import InputError, UsageError
from traceanalyze.locales import texts
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline.memory import memory, memory_difference, parse_capacity
from traceanalyze.report import console, folder, xlsx
from traceanalyze.report import json as json_report
from traceanalyze.report.console.style import Style
from traceanalyze.report.view import View

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.report.model import Report


# xlsxwriter's data bars are an extension that openpyxl leaves out.
pytestmark = pytest.mark.filterwarnings("ignore:.* extension is not supported")


def written(folder: Path, name: str, allocator: Allocator, **how: Any) -> str:
    path = folder / name
    path.write_bytes(pickle.dumps(dump(allocator, **how)))
    return str(path)


@pytest.fixture
def leaking(tmp_path: Path) -> Report:
    return memory(written(tmp_path, "leak.pickle", train(Loop(leak=40 * MIB), Allocator())), capacity="1GiB")


def page(report: Report, width: int = 100, detail: Detail = Detail.NORMAL) -> str:
    return console.render(report, texts(), Style(width=width), View(detail))


def test_the_verdict_says_peak_and_leak_with_their_amounts(leaking: Report) -> None:
    peak = max(state.requested for state in train(Loop(leak=40 * MIB), Allocator()).truth)
    text = console.render_all([leaking], texts(), Style(), View(Detail.QUIET))
    assert f"Peak {peak / MIB:.0f} MiB" in text
    assert f"leaves 40.0 MiB behind at train.py:{LEAK_LINE}" in " ".join(text.split())


def test_the_self_check_is_always_said(leaking: Report) -> None:
    assert "reconciled exactly" in page(leaking)


@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_line_is_wider_than_the_terminal(leaking: Report, width: int) -> None:
    assert max(map(len, page(leaking, width, Detail.VERBOSE).splitlines())) <= width


def test_the_curve_reaches_its_top_and_needs_no_unicode(leaking: Report) -> None:
    plain = console.render(leaking, texts(), Style(width=80, unicode=False), View())
    drawn = [line for line in plain.splitlines() if "|" in line]
    assert len(drawn) == 8
    assert drawn[0].split("|")[1].strip()
    assert set("".join(line.split("|")[1] for line in drawn)) <= set("#. ")


def test_tables_sum_to_the_peak(leaking: Report) -> None:
    tables = leaking.tables
    peak = tables["memory_moments"].column("block_bytes")[0]
    assert sum(tables["memory_at_peak"].column("block_bytes")) == peak
    parts = dict(
        zip(*(tables["memory_categories"].column(key) for key in ("memory_category", "block_bytes")), strict=True)
    )
    unused = parts.pop("category_cached")
    assert (sum(parts.values()), unused) == (peak, max(tables["memory_moments"].column("reserved_bytes")) - peak)
    assert tables["allocator_curve"].column("block_bytes").count(peak) >= 1


def test_workbook_csv_and_json_hold_the_same(leaking: Report) -> None:
    book = openpyxl.load_workbook(io.BytesIO(xlsx.render([leaking], texts())))
    assert {"Summary", "Memory at peak", "Allocator curve", "Memory findings"} <= set(book.sheetnames)
    document = json.loads(json_report.render([leaking], texts()))
    rank = document["reports"][0]["ranks"][0]
    assert rank["mode"] == "memory"
    files = folder.files([leaking], texts(), "csv")
    assert any("memory_at_peak" in name for name in files)


def test_two_snapshots_are_compared_by_line(tmp_path: Path) -> None:
    base = written(tmp_path, "a.pickle", train(Loop(), Allocator()))
    worse = written(tmp_path, "b.pickle", train(Loop(leak=40 * MIB, batch=5 * MIB, steps=9), Allocator()))
    report = memory_difference(base, worse)
    rows = report.tables["memory_difference"]
    changes = dict(zip(rows.column("source_line"), rows.column("change_bytes"), strict=True))
    # Its peak is after the ninth step's backward pass, in which the base has its own: compared is the latter.
    assert changes[f"train.py:{LEAK_LINE} train"] == 8 * 40 * MIB
    assert "the candidate's in the optimizer" in " ".join(page(report).split())
    larger = memory_difference(base, written(tmp_path, "c.pickle", train(Loop(batch=5 * MIB), Allocator())))
    assert "higher" in page(larger)
    assert "Both peaks" in page(memory_difference(base, base))
    back = memory_difference(tmp_path / "c.pickle", base).tables["memory_difference"]
    changes = larger.tables["memory_difference"].column("change_bytes")
    assert sorted(back.column("change_bytes")) == sorted(-change for change in changes)


def test_names_of_the_file_cannot_steer_terminal_or_workbook(tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.malloc(MIB, [{"name": "=cmd()|'\x1b[31m", "filename": "/me/\x1b]0;x\x07.py", "line": 3}])
    report = memory(written(tmp_path, "x.pickle", allocator))
    assert "\x1b" not in page(report)
    book = openpyxl.load_workbook(io.BytesIO(xlsx.render([report], texts())))
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
    assert cells == []


@pytest.mark.parametrize(
    ("text", "size"), [("80GiB", 80 << 30), ("80GB", 80 << 30), ("1.5 g", 3 << 29), ("512", 512), (7, 7), (None, None)]
)
def test_capacities(text: str | int | None, size: int | None) -> None:
    assert parse_capacity(text) == size


def test_wrong_capacity_and_wrong_files_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="80GiB"):
        parse_capacity("lots")
    with pytest.raises(InputError, match="no such file"):
        memory(tmp_path / "nothing.pickle")
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(InputError, match="not a trace"):
        memory(tmp_path / "a.txt")


def test_an_empty_snapshot_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [[]]}))
    with pytest.raises(InputError, match="empty"):
        memory(tmp_path / "x.pickle")


@pytest.mark.parametrize(("events", "peak"), [(0, "memory_state"), (1, "memory_state"), (2, "memory_peak")])
def test_a_peak_is_that_of_a_history_and_one_event_is_none(tmp_path: Path, events: int, peak: str) -> None:
    allocator = Allocator()
    allocator.malloc(MIB)
    (rank,) = memory(written(tmp_path, "a.pickle", allocator, keep=events)).ranks
    about = "about_snapshot" if events > 1 else "about_snapshot_state"
    assert (rank.headline.key, rank.verdict_messages[0].key) == (about, peak)
    requested, reserved, _ = rank.verdict_messages[0].values
    assert (requested[2], reserved[2]) == (MIB, 2 * MIB)
    assert ("memory_no_leak_check" in {each.message.key for each in rank.checks}) is (events > 1)


@pytest.mark.parametrize(
    ("stated", "unknown", "freed", "told"),
    [
        (0, 0, 0, None),
        (512, 0, 0, "sums_agree"),
        (0, 0, 1, "1 events"),
        (0, 0, 3, "3 events"),
        (0, 1, 0, "baseline"),
        (512, 1, 2, "sums_agree, baseline"),
    ],
)
def test_what_does_not_agree_is_named_and_events_that_contradict_are_counted(
    tmp_path: Path, stated: int, unknown: int, freed: int, told: str | None
) -> None:
    """Sizes that a segment states, blocks the dump does not know, and a block that is freed again and again."""
    allocator = Allocator()
    allocator.free(allocator.malloc(MIB))
    allocator.malloc(2 * MIB)
    content = dump(allocator)
    content["segments"][0]["allocated_size"] += stated
    events = content["device_traces"][0]
    events += [{**events[1], "addr": 5 + at} for at in range(unknown)]
    (done,) = (event for event in events if event["action"] == "free_completed")
    events += [dict(done)] * freed
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(content))
    (rank,) = memory(str(tmp_path / "a.pickle")).ranks
    check = rank.checks[0].message
    assert check.key == ("memory_reconciled" if told is None else "memory_not_reconciled")
    assert [value for name, _, value in check.values if name == "what"] == ([] if told is None else [told])
    assert (rank.verdict_messages[-1].key == "memory_contradicts") is (told is not None)
    assert rank.headline.key == ("about_snapshot" if told is None else "about_snapshot_off")


@pytest.mark.parametrize(
    ("addr", "size", "key", "number"), [(5, MIB, "memory_layout_before", 1), (None, 512, "memory_layout_sizes", 1)]
)
def test_a_layout_that_is_not_exact_is_told_and_the_file_is_not_accused(
    tmp_path: Path, addr: int | None, size: int, key: str, number: int
) -> None:
    """A block from before lay where no segment was; a block of the dump is larger than its request needs."""
    allocator = Allocator()
    allocator.free(allocator.malloc(MIB))
    allocator.malloc(2 * MIB)
    allocator.malloc(3 * MIB)
    content = dump(allocator)
    if addr is not None:
        content["device_traces"][0].append({**allocator.events[3], "action": "free_completed", "addr": addr})
    else:
        (segment,) = (one for one in content["segments"] if one["segment_type"] == "large")
        block, free = segment["blocks"][1:]
        segment["allocated_size"], segment["active_size"] = (segment["active_size"] + size,) * 2
        block["size"], free["size"], free["address"] = block["size"] + size, free["size"] - size, free["address"] + size
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(content))
    report = memory(str(tmp_path / "a.pickle"))
    (rank,) = report.ranks
    assert rank.headline.key == "about_snapshot_inexact"
    assert next(check.message.key for check in rank.checks) == key
    assert [value for _, _, value in rank.checks[0].message.values] == [number]
    assert "memory_contradicts" not in {one.key for one in rank.verdict_messages}
    assert "layout not exact" in page(report)


@pytest.mark.parametrize("nested", [False, True])
def test_statistics_beside_a_snapshot_tell_what_the_history_forgot(tmp_path: Path, nested: bool) -> None:
    source = written(tmp_path, "a.pickle", train(Loop(), Allocator()))
    peak = {"reserved_bytes": {"all": {"peak": 7 * MIB}}} if nested else {"reserved_bytes.all.peak": 7 * MIB}
    (tmp_path / "memory_stats.json").write_text(json.dumps({"num_alloc_retries": 3, **peak}))
    report = memory(source)
    assert report.tables["process_statistics"].column("retries") == (3,)
    assert report.tables["process_statistics"].column("peak_reserved_memory") == (7 * MIB,)
    assert "3 allocation retries" in page(report)


def test_without_statistics_nothing_is_said_of_them(leaking: Report) -> None:
    assert "process_statistics" not in leaking.tables


def failing(at_us: int, *, after: int) -> Allocator:
    """A device that takes so many blocks of 40 MiB and then fails."""
    allocator = Allocator(capacity=400 * MIB, now=at_us)
    for _ in range(after):
        allocator.malloc(40 * MIB, [])
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(400 * MIB, [])
    return allocator


@pytest.mark.parametrize(
    ("devices", "vendor", "said", "first"),
    [
        (
            [failing(5_000_000, after=9), Allocator(), failing(3_000_000, after=2)],
            "cuda",
            "Device 2 ran out of memory first, 2.000 s before device 0. The run ran out of memory. Peak 80.0 MiB",
            2,
        ),
        (
            [failing(5_000_000, after=9), failing(3_000_000, after=2)],
            "npu",
            "2 devices ran out of memory; the history has no times, so which was first is not known.",
            0,
        ),
        (
            [train(Loop(), Allocator()), failing(3_000_000, after=2)],
            "cuda",
            "Of 2 devices only device 1 ran out of memory. The run ran out of memory. Peak 80.0 MiB",
            1,
        ),
    ],
)
def test_the_verdict_is_that_of_the_device_that_failed_first(
    tmp_path: Path, devices: list[Allocator], vendor: str, said: str, first: int
) -> None:
    dumps = [dump(one, vendor=vendor) for one in devices]
    segments = [{**one, "device": at} for at, each in enumerate(dumps) for one in each["segments"]]
    whole = {**dumps[0], "segments": segments, "device_traces": [each["device_traces"][0] for each in dumps]}
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(whole))
    report = memory(str(path))
    assert report.verdict.startswith(said)
    headline = report.ranks[report.focus[0]].headline
    assert {key: value for key, _, value in headline.values}["device"] == first
