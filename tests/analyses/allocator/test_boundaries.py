"""Limits of the detectors of the allocator, just at and just beyond each; answers on paper."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import KIB, MIB, Allocator
from tests.simulate.allocator.programs import LEAK_LINE, LOAD_LINE, Loop, engine, module, train, user
from traceanalyze.analyses.memory import allocator
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.caching import SMALL_SEGMENT, Domain, Rules
from traceanalyze.analyses.memory.device_calls import churn, device_calls, out_of_memory, release_runs
from traceanalyze.analyses.memory.groups import timeline_tables
from traceanalyze.analyses.memory.holes import Free, Holes, past_segments
from traceanalyze.analyses.memory.lifetimes import Curve
from traceanalyze.analyses.memory.patterns import settings_remarks, truncation
from traceanalyze.model.snapshot import CATEGORIES, Action, MemoryTimeline
from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis


def analysed(
    allocator: Allocator, folder: Path, *, capacity: int | None = None, keep: int | None = None
) -> AllocatorAnalysis:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(dump(allocator, keep=keep)))
    (found,) = analyze_snapshot(read_snapshot(Source(str(path), size=path.stat().st_size)), capacity)
    assert found.reconciled
    return found


def runs(*rows: tuple[int, str, int, int]) -> Table:
    keys = ("event", "release_kind", "released_bytes", "reacquired_bytes")
    columns = tuple(Column(key, Kind.TEXT if key == "release_kind" else Kind.COUNT, key) for key in keys)
    return Table("release_runs", columns).fill_records(dict(zip(keys, row, strict=True)) for row in rows)


def cycling(peak: int, released: int, *again: int) -> Any:
    """What is found where `released` bytes go back, and so many are taken again, once for each."""
    actions, sizes, rows = [], [], []
    for taken in again:
        rows.append((len(actions), "release_gc", released, min(released, taken)))
        actions += [Action.SEGMENT_FREE, Action.SEGMENT_ALLOC]
        sizes += [released, taken]
    history = SimpleNamespace(action=np.array(actions, np.uint8), size=np.array(sizes, np.int64))
    table, reserved = runs(*rows), Curve(peak, np.zeros(0, np.int64))
    return churn(SimpleNamespace(history=history, once=lambda _: table, reserved=reserved, events=len(actions)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("peak", "again", "expected"),
    [
        (300, (100, 100, 100), (300, 3, 1.0, True)),
        (301, (100, 100, 100), (300, 3, 300 / 301, False)),
        (100, (100, 100), (200, 2, 2.0, False)),
        # A cycle takes a twentieth of the peak again.
        (200, (95, 95, 10), (200, 3, 1.0, True)),
        (200, (96, 95, 9), (200, 2, 1.0, False)),
        # What is taken beyond what went back is growth; what comes later than its release still comes back.
        (100, (150, 50, 150), (300, 3, 3.0, True)),
        (100, (0, 0, 300), (300, 1, 3.0, False)),
    ],
)
def test_memory_goes_back_and_forth_from_three_cycles_and_the_whole_peak_on(
    peak: int, again: tuple[int, ...], expected: tuple[Any, ...]
) -> None:
    found = cycling(peak, 100, *again)
    assert (found.recycled, found.cycles, found.ratio, found.flagged) == expected
    assert (found.released, found.kind) == (100 * len(again), "release_gc")


@pytest.mark.parametrize(
    ("free", "left", "capacity", "expected"),
    [
        # Bytes and largest hole of its own domain, and of another stream.
        ([(0, 100, 100)], 0, None, ("isolation", 100, 100)),
        ([(0, 99, 99), (5, 100, 100)], 0, None, ("isolation", 99, 99)),
        ([(0, 100, 99), (5, 99, 99)], 0, None, ("fragmentation", 100, 99)),
        ([(0, 60, 30), (5, 99, 99)], 40, None, ("split", 60, 30)),
        ([(0, 60, 30)], 39, None, ("capacity", 60, 30)),
        ([(0, 60, 30)], None, None, ("unknown", 60, 30)),
        # 800 reserved and 10 free of 900 are just nine tenths.
        ([(0, 60, 30)], 10, 900, ("capacity", 60, 30)),
        ([(0, 60, 30)], 9, 900, ("other_processes", 60, 30)),
        ([], 10, 900, ("capacity", 0, 0)),
    ],
)
def test_why_a_request_of_100_mib_failed(
    free: list[tuple[int, int, int]], left: int | None, capacity: int | None, expected: tuple[Any, ...]
) -> None:
    history = SimpleNamespace(size=np.array([0, 100 * MIB]), stream=np.array([0, 0]), device_free={})
    if left is not None:
        history.device_free = {1: left * MIB}
    watched = {
        1: tuple(Free(Domain(0, stream, large=True), total * MIB, 2, hole * MIB) for stream, total, hole in free)
    }
    (found,) = out_of_memory(
        SimpleNamespace(  # type: ignore[arg-type]
            history=history,
            failures=(1,),
            layout=SimpleNamespace(watched=watched),
            capacity=None if capacity is None else capacity * MIB,
            reserved=Curve(0, np.array([0, 800 * MIB])),
            line=lambda event: f"line {event}",
        )
    )
    assert (found.kind, found.free, found.largest_hole) == (expected[0], expected[1] * MIB, expected[2] * MIB)
    assert (found.event, found.request, found.line) == (1, 100 * MIB, "line 1")


@pytest.mark.parametrize(
    ("share", "avoidable", "capacity", "peak", "pressed", "level"),
    [
        (0.1, 10, 1000, 100, False, "info"),
        (0.099, 10, 1000, 100, True, "none"),
        (0.1, 9, 1000, 100, True, "none"),
        (0.2, 10, 1000, 899, False, "warn"),
        (0.2, 10, 1000, 900, False, "critical"),
        (0.199, 10, 1000, 900, True, "info"),
        (0.2, 10, 1000, 100, True, "critical"),
        (0.2, (1 << 30) // 100 + 1, None, 100, False, "info"),
        (0.2, (1 << 30) // 100 + 1, None, 100, True, "critical"),
        (0.2, (1 << 30) // 100, None, 100, True, "none"),
    ],
)
def test_how_much_fragmentation_matters(
    share: float, avoidable: int, capacity: int | None, peak: int, pressed: bool, level: str
) -> None:
    assert allocator._level(share, avoidable, capacity, peak, pressed=pressed) == level


@pytest.mark.parametrize(
    ("requested", "rounded"),
    [(0, 512), (1, 512), (512, 512), (513, 1024), (1024, 1024), (1025, 1536), (MIB + 1, MIB + 512)],
)
def test_requests_are_rounded_to_512_bytes(requested: int, rounded: int) -> None:
    assert Rules(0, None, ()).rounded(requested) == rounded
    assert Rules(32, None, ()).rounded(requested - 32) == rounded


@pytest.mark.parametrize(
    ("requested", "rounded"),
    [
        # Four parts of a power of two, of more than 4 x 512 bytes.
        (2048, 2048),
        (2049, 2560),
        (2561, 3072),
        (MIB, MIB),
        (MIB + 1, MIB + MIB // 4),
        # From 2 MiB on eight parts, and from 4 MiB on none, as the last number says.
        (2 * MIB + 1, 2 * MIB + MIB // 4),
        (3 * MIB, 3 * MIB),
        (4 * MIB + 1, 4 * MIB + 512),
        (64 * MIB + 1, 64 * MIB + 512),
    ],
)
def test_requests_are_rounded_to_parts_of_powers_of_two(requested: int, rounded: int) -> None:
    assert Rules(0, None, (4, 8, 1)).rounded(requested) == rounded


@pytest.mark.parametrize(
    ("size", "rest", "large", "expandable", "limit", "splits"),
    [
        (MIB, 512, False, False, None, True),
        (MIB, 511, False, False, None, False),
        (2 * MIB, 512, True, True, None, True),
        (MIB, MIB, True, False, None, False),
        (MIB, MIB + 1, True, False, None, True),
        (9 * MIB, 2 * MIB, True, False, 10 * MIB, True),
        (10 * MIB, 2 * MIB, True, False, 10 * MIB, False),
    ],
)
def test_when_a_hole_is_split(
    size: int, rest: int, large: bool, expandable: bool, limit: int | None, splits: bool
) -> None:
    assert Rules(0, limit, (), expandable).splits(size, rest, large=large) is splits


class Rows(SimpleNamespace):
    """Columns of a history."""

    def __len__(self) -> int:
        return len(self.action)


ONE, OTHER = Domain(0, 0, large=True), Domain(0, 5, large=True)


def test_holes_merge_with_their_neighbours_but_not_over_borders() -> None:
    holes = Holes()
    holes.enclose(300, 400)
    for start, end in ((0, 100), (200, 300), (300, 400)):
        holes.add(ONE, start, end)
    assert holes.free(ONE) == Free(ONE, 300, 3, 100)
    holes.add(ONE, 100, 200)
    assert holes.free(ONE) == Free(ONE, 400, 2, 300)
    # The border goes with its segment; that of a segment beside it stays.
    holes.enclose(400, 500)
    holes.remove(ONE, 300, 400)
    holes.disclose(300, 400)
    holes.enclose(200, 300)
    holes.add(ONE, 300, 350)
    holes.add(ONE, 400, 500)
    holes.add(ONE, 350, 400)
    assert holes.free(ONE) == Free(ONE, 500, 3, 300)
    holes.remove(ONE, 300, 400)
    holes.remove(ONE, 400, 500)
    holes.add(ONE, 600, 700)
    holes.add(OTHER, 1000, 1050)
    assert holes.all() == (Free(ONE, 400, 2, 300), Free(OTHER, 50, 1, 50))
    assert holes.free(Domain(1, 0, large=True)) == Free(Domain(1, 0, large=True), 0, 0, 0)


def test_holes_are_found_by_their_begin_or_what_they_contain() -> None:
    holes = Holes()
    holes.add(ONE, 0, 100)
    holes.add(OTHER, 200, 300)
    assert holes.find(ONE, 0, inside=False) == (ONE, 0, 100)
    assert holes.find(ONE, 200, inside=False) == (OTHER, 200, 300)
    assert holes.find(ONE, 50, inside=False) is None
    assert holes.find(OTHER, 50, inside=True) == (ONE, 0, 100)
    assert holes.find(ONE, 299, inside=True) == (OTHER, 200, 300)
    assert holes.find(ONE, 100, inside=True) is None
    assert holes.find(ONE, 300, inside=True) is None


def taken_back(pool: int | None, size: int, *blocks: tuple[Action, int]) -> Domain:
    """Domain of so much memory given back where the dump has another segment; blocks in it before, and one after."""
    segment = {"address": 0, "size": 64 * MIB, "pool": 7, "stream": 8, "large": True, "expandable": False}
    events = [*blocks, (Action.SEGMENT_FREE, size), (Action.SEGMENT_ALLOC, 64 * MIB), (Action.ALLOC, 30 * MIB)]
    action, sizes = map(list, zip(*events, strict=True))
    history = Rows(
        action=np.array(action, np.uint8),
        address=np.zeros(len(events), np.int64),
        size=np.array(sizes, np.int64),
        stream=np.full(len(events), 3),
        pool=None if pool is None else np.full(len(events), pool),
    )
    segments = Rows(**{key: np.array([value]) for key, value in segment.items()}, action=[0])
    past = past_segments(SimpleNamespace(segments=segments, history=history), Rules(0, None, ()))  # type: ignore[arg-type]
    assert past.wrong == 0
    assert past.domain[len(blocks) + 1] == Domain(7, 8, large=True)
    return past.domain[len(blocks)]


@pytest.mark.parametrize(("pool", "expected"), [(None, 0), (-1, 0), (2, 2)])
def test_memory_given_back_is_of_the_pool_its_event_names(pool: int | None, expected: int) -> None:
    """Never of that of the segment which the dump has at its address."""
    assert taken_back(pool, SMALL_SEGMENT) == Domain(expected, 3, large=False)
    assert taken_back(pool, SMALL_SEGMENT + 1) == Domain(expected, 3, large=True)


def test_the_last_block_in_memory_given_back_tells_whether_it_was_for_large_ones() -> None:
    small, large = (Action.FREE_COMPLETED, MIB), (Action.FREE_COMPLETED, MIB + 1)
    assert taken_back(None, 20 * MIB, large, small).large is False
    assert taken_back(None, SMALL_SEGMENT, small, large).large is True


def test_without_free_memory_the_largest_hole_is_none(tmp_path: Path) -> None:
    """All of a new segment is free until its block is made, which fills it."""
    allocator = Allocator()
    allocator.malloc(20 * MIB)
    moments = analysed(allocator, tmp_path).moments
    found = dict(zip(moments.column("moment"), moments.column("hole_bytes"), strict=True))
    assert found == {"moment_peak": 0, "moment_reserved_peak": 20 * MIB}


def test_what_is_used_of_a_hole_leaves_both_sides() -> None:
    holes = Holes()
    holes.add(ONE, 0, 100)
    holes.take(ONE, 0, 100, 30, 60)
    assert holes.free(ONE) == Free(ONE, 70, 2, 40)
    assert (holes.find(ONE, 0, inside=False), holes.find(ONE, 60, inside=False)) == ((ONE, 0, 30), (ONE, 60, 100))
    holes.take(ONE, 0, 30, 0, 30)
    assert holes.free(ONE) == Free(ONE, 40, 1, 40)
    assert tuple(holes.remove(ONE, 60, end) for end in (101, 100, 100)) == (False, True, False)
    assert holes.free(ONE) == Free(ONE, 0, 0, 0)
    assert holes.all() == ()


@pytest.mark.parametrize(
    ("base", "after", "peak"),
    [(5, [1, 7, 7, 2], (7, 1)), (7, [1, 7], (7, -1)), (6, [7, 1], (7, 0)), (3, [], (3, -1))],
)
def test_the_peak_of_a_curve_is_where_it_is_first_reached(base: int, after: list[int], peak: tuple[int, int]) -> None:
    curve = Curve(base, np.array(after, np.int64))
    assert curve.peak == peak
    assert [curve.at(event) for event in range(-1, len(after))] == [base, *after]


@pytest.mark.parametrize(
    ("overflowed", "events", "base", "peak", "expected"),
    [
        (None, 10_000, 1, 5, "round"),
        (None, 20_000, 1, 5, "round"),
        (None, 10_000, 0, 5, ""),
        (None, 9_999, 1, 5, ""),
        (None, 15_000, 1, 5, ""),
        (None, 0, 1, -1, ""),
        (True, 3, 0, 5, "full"),
        (False, 10_000, 1, 5, ""),
        (False, 2, 1, -1, "late"),
        (False, 1, 1, -1, ""),
        (False, 2, 1, 0, ""),
    ],
)
def test_what_says_that_a_history_lacks_its_beginning(
    overflowed: bool | None, events: int, base: int, peak: int, expected: str
) -> None:
    active = SimpleNamespace(base=base, peak=(9, peak))
    device = SimpleNamespace(snapshot=SimpleNamespace(overflowed=overflowed), events=events, active=active)
    assert truncation(device) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "events", "expected"),
    [
        ({}, 2, ()),
        ({}, 1, ("state_only_recording",)),
        ({}, 0, ("history_never_recorded",)),
        ({"expandable_segments": True, "max_split_size": 1}, 2, ("expandable_with_max_split",)),
        ({"expandable_segments": True, "max_split_size": 0}, 2, ()),
        ({"expandable_segments": True, "max_split_size": "all"}, 2, ()),
        ({"expandable_segments": False, "max_split_size": 1}, 2, ()),
        ({"garbage_collection_threshold": 0.1}, 2, ("gc_threshold_without_fraction",)),
        ({"garbage_collection_threshold": 0}, 2, ()),
        ({"garbage_collection_threshold": None}, 2, ()),
        ({"garbage_collection_threshold": 1, "PYTORCH_ALLOC_CONF": "per_process_memory_fraction:0.5"}, 2, ()),
        ({"garbage_collection_threshold": 1, "PYTORCH_CUDA_ALLOC_CONF": "fraction"}, 2, ()),
    ],
)
def test_what_is_odd_about_settings_and_recording(
    settings: dict[str, Any], events: int, expected: tuple[str, ...]
) -> None:
    for stacks, more in (((1,), ()), ((), ("no_memory_stacks",))):
        snapshot = SimpleNamespace(settings=settings, stacks=SimpleNamespace(stacks=stacks))
        device: Any = SimpleNamespace(snapshot=snapshot, events=events)
        assert settings_remarks(device) == (*expected, *more)


@pytest.mark.parametrize(
    ("actions", "calls", "collects", "empties", "kind", "cost"),
    [
        # The release is the event at 10; the others are 10 apart, and all of one call where nothing else is said.
        ("free growth alloc", (1, 1, 1), False, False, "release_retry", 30),
        ("free oom", (1, 1), False, False, "release_failed_retry", 20),
        ("free alloc", (1, 1), False, False, "release_unknown", None),
        # A collection makes room for what is taken later.
        ("free alloc", (1, 1), True, False, "release_unknown", None),
        ("free alloc growth", (1, 1, 2), True, False, "release_gc", None),
        ("free alloc", (1, 1), True, True, "release_empty_cache", None),
        ("free growth alloc", (1, 2, 2), False, False, "release_unknown", None),
        ("free growth alloc", (-1, -1, -1), False, False, "release_unknown", None),
        ("free", (0,), False, True, "release_empty_cache", None),
        ("free free map alloc alloc", (0, 0, 0, 0, 2), False, True, "release_retry", 40),
    ],
)
def test_why_memory_went_back_to_the_device_and_what_it_cost(
    actions: str, calls: tuple[int, ...], collects: bool, empties: bool, kind: str, cost: int | None
) -> None:
    known = {
        "free": Action.SEGMENT_FREE,
        "growth": Action.SEGMENT_ALLOC,
        "map": Action.SEGMENT_MAP,
        "alloc": Action.ALLOC,
        "oom": Action.OOM,
    }
    action = [Action.ALLOC, *(known[each] for each in actions.split())]
    count = len(action)
    columns = {
        "action": action,
        "call": [9, *calls],
        "time": range(0, 10 * count, 10),
        "size": [100, *(5 if each in {"growth", "map"} else 4 for each in actions.split())],
        "stack": [0] * count,
    }
    history = Rows(**{key: np.array(column, np.int64) for key, column in columns.items()})
    site = SimpleNamespace(empties_cache=empties, line="train.py:1 train")
    settings = {"garbage_collection_threshold": 0.1 if collects else 0}
    device: Any = SimpleNamespace(history=history, sites=[site], snapshot=SimpleNamespace(settings=settings))
    (run,) = release_runs(device).records()
    assert (run.event, run.release_kind, run.cost_ns) == (1, kind, cost)
    freed = 4 * actions.split().count("free")
    assert (run.released_bytes, run.source_line) == (freed, "train.py:1 train")


@pytest.mark.parametrize(("call", "calls"), [(0, 1), (1, 1), (-1, 2)])
def test_what_one_call_gives_back_and_takes_is_one_row(call: int, calls: int) -> None:
    """Where calls are not known, what is taken is of another one than what was given back."""
    actions = Action.SEGMENT_FREE, Action.SEGMENT_FREE, Action.SEGMENT_ALLOC, Action.ALLOC
    columns = {"action": np.array(actions, np.uint8), "size": np.array([3, 4, 50, 40]), "call": np.full(4, call)}
    history = type("History", (SimpleNamespace,), {"__len__": lambda _: 4})(**columns)
    found = device_calls(SimpleNamespace(history=history, once=lambda _: runs((0, "release_retry", 7, 50))))  # type: ignore[arg-type]
    assert (found.released.tolist(), found.grown.tolist()) == (([7], [50]) if calls == 1 else ([7, 0], [0, 50]))
    assert found.kind == ("release_retry", "release_growth")[:calls]
    assert found.request[-1] == 40


def test_before_the_first_event_there_is_no_time_to_count_from() -> None:
    columns = {
        "action": [Action.SEGMENT_FREE, Action.SEGMENT_ALLOC, Action.ALLOC, Action.SEGMENT_FREE, Action.SEGMENT_ALLOC],
        "call": [1, 1, 1, 2, 2],
        "time": [10, 20, 30, 70, 80],
        "size": [4, 5, 5, 3, 1],
        "stack": [0] * 5,
    }
    history = Rows(**{key: np.array(column, np.int64) for key, column in columns.items()})
    site = SimpleNamespace(empties_cache=False, line="train.py:1 train")
    device: Any = SimpleNamespace(history=history, sites=[site], snapshot=SimpleNamespace(settings={}))
    first, second = release_runs(device).records()
    assert first[:5] == (0, "release_retry", 4, 4, None)
    assert second[:5] == (3, "release_retry", 3, 1, 50)


@pytest.mark.parametrize(("spike", "flagged"), [(200, True), (199, False)])
def test_blocks_freed_at_once_matter_from_a_fifth_of_the_peak_on(tmp_path: Path, spike: int, flagged: bool) -> None:
    allocator = Allocator()
    allocator.malloc((1000 - spike) * MIB, user(1))
    allocator.free(allocator.malloc(spike * MIB, user(2)))
    found: Any = analysed(allocator, tmp_path).spike
    assert found == (spike / 1000, spike * MIB, "train.py:2 train", flagged)


def test_the_line_of_blocks_freed_at_once_is_that_of_the_largest_also_where_it_is_the_first(tmp_path: Path) -> None:
    allocator = Allocator()
    first, second = allocator.malloc(60 * MIB, user(2)), allocator.malloc(40 * MIB, user(3))
    allocator.free(first)
    allocator.free(second)
    assert analysed(allocator, tmp_path).spike == (1.0, 100 * MIB, "train.py:2 train", True)


@pytest.mark.parametrize(("later", "short"), [(10, True), (11, False)])
def test_a_block_is_short_lived_within_ten_later_allocations(tmp_path: Path, later: int, short: bool) -> None:
    allocator = Allocator()
    allocator.malloc(100 * MIB, user(1))
    block = allocator.malloc(100 * MIB, user(2))
    for _ in range(later):
        allocator.free(allocator.malloc(512 * KIB, user(3)))
    allocator.free(block)
    found = analysed(allocator, tmp_path)
    held = {row.source_line: row.memory_category for row in found.at_peak.records()}
    assert held["train.py:2 train"] == ("category_transient" if short else "category_other")


@pytest.mark.parametrize(("size", "flagged"), [(50, True), (49, False)])
def test_gradients_kept_matter_from_a_twentieth_of_the_peak_on(tmp_path: Path, size: int, flagged: bool) -> None:
    """Gradients live until the next forward pass is done; with them and a block of 1 MiB the peak is 1000 MiB."""
    allocator = Allocator()
    kept = []
    for step in range(4):
        allocator.note(f"ProfilerStep#{step}")
        forward = allocator.malloc((999 - size) * MIB, module(40))
        while kept:
            allocator.free(kept.pop())
        backward = allocator.malloc(MIB, engine("mm"))
        kept.append(allocator.malloc(size * MIB, engine("empty_strided", accumulates=True)))
        allocator.free(backward)
        allocator.free(forward)
        allocator.note(f"ProfilerStep#{step}", "END")
    found: Any = analysed(allocator, tmp_path).gradients
    assert (found.bytes, found.share, found.flagged) == (size * MIB, size / 1000, flagged)


@pytest.mark.parametrize(("capacity", "near"), [(1002, True), (1003, False)])
def test_the_reserve_is_near_the_limit_from_nineteen_twentieths_on(tmp_path: Path, capacity: int, near: bool) -> None:
    allocator = Allocator()
    allocator.malloc(950 * MIB, user(1))
    allocator.malloc(MIB // 2, user(1))
    found = analysed(allocator, tmp_path, capacity=capacity * MIB)
    assert found.most_reserved == 952 * MIB
    assert found.near_limit is near


def test_every_column_of_the_steps(tmp_path: Path) -> None:
    """Blocks of 10, 20 and 30 MiB come and go on top of 100; 5 MiB stay of each step.

    Each step begins with the growth of the reserve for its block.
    """
    allocator = Allocator()
    allocator.malloc(100 * MIB, user(1))
    for step, size in enumerate((10, 20, 30)):
        allocator.now += 5
        allocator.note(f"ProfilerStep#{step}")
        block = allocator.malloc(size * MIB, user(2))
        allocator.malloc(5 * MIB, user(3))
        allocator.free(block)
        allocator.note(f"ProfilerStep#{step}", "END")
    rows = analysed(allocator, tmp_path).steps.rows
    shown = [(row[0], row[2] // MIB, row[3] // MIB, row[5]) for row in rows]
    assert shown == [("0", 115, 100, 2), ("1", 130, 105, 2), ("2", 145, 110, 2)]


@pytest.mark.parametrize(
    ("before", "after", "steps"), [(0, 0, ("0", "1", "2")), (1, 0, ()), (0, 1, ()), (-1, -1, ("0", "1", "2"))]
)
def test_steps_are_marked_from_the_first_event_to_the_last(
    tmp_path: Path, before: int, after: int, steps: tuple[str, ...]
) -> None:
    """Three marks are a loop, two are none; those outside of the history are of no use."""
    allocator = Allocator()
    for _ in range(20):
        allocator.free(allocator.malloc(MIB, user(1)))
    content = dump(allocator)
    first, last = (content["device_traces"][0][at]["time_us"] for at in (0, -1))
    times = first - before, (first + last) // 2, last + after
    content["external_annotations"] = [
        {"stage": "START", "name": f"ProfilerStep#{at}", "device": 0, "time_us": time} for at, time in enumerate(times)
    ]
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps(content))
    (found,) = analyze_snapshot(read_snapshot(Source(str(path), size=path.stat().st_size)), None)
    assert (found.steps.column("step") if found.steps.absent is None else ()) == steps


@pytest.mark.parametrize(("other", "leaks"), [(0, 1), (2560, 1), (2561, 0)])
def test_a_leak_explains_the_rise_of_memory_up_to_a_fifth(tmp_path: Path, other: int, leaks: int) -> None:
    """10 MiB stay of every step of one line; of another line `other` KiB, but of one step nothing."""
    allocator = Allocator()
    for step in range(8):
        allocator.now += 5
        allocator.note(f"ProfilerStep#{step}")
        block = allocator.malloc(20 * MIB, user(2))
        allocator.malloc(10 * MIB, user(3))
        if other and step != 3:
            allocator.malloc(other * KIB, user(4))
        allocator.free(block)
    found = analysed(allocator, tmp_path).leaks
    assert not isinstance(found, NotMeasured)
    assert [(leak.line, leak.per_step) for leak in found] == [("train.py:3 train", 10 * MIB)] * leaks


def test_without_annotations_steps_begin_where_something_repeats(tmp_path: Path) -> None:
    allocator = train(Loop(annotated=False, steps=6), Allocator())
    found = analysed(allocator, tmp_path).steps
    assert found.column("step") == ("0", "1", "2", "3", "4", "5")
    lines = [allocator.events[event]["frames"][0]["line"] for event in found.column("event")]  # type: ignore[index]
    assert lines == [LOAD_LINE] * 6


@pytest.mark.parametrize(
    ("size", "behind", "least", "most"),
    [
        # Half a MiB was left of its segment: too small to be split off.
        (39 * MIB // 2, 0, 20 * MIB, 20 * MIB),
        (19 * MIB - 512, 0, 19 * MIB - 512, 19 * MIB - 512),
        (19 * MIB - 1024, 0, 19 * MIB - 1024, 19 * MIB - 512),
        # It may have been put into a hole up to 1 MiB larger, as far as nothing tells.
        (4 * MIB, 0, 4 * MIB, 5 * MIB),
        # What is allocated behind it begins where it ends.
        (4 * MIB, 2 * MIB, 4 * MIB, 4 * MIB),
    ],
)
def test_a_forgotten_block_may_own_what_was_too_small_to_be_split_off(
    tmp_path: Path, size: int, behind: int, least: int, most: int
) -> None:
    """A block in a segment of 20 MiB from before the history, and one or two others beside it at the peak."""
    allocator = Allocator()
    first = allocator.malloc(size, user(1))
    before = len(allocator.events)
    allocator.malloc(MIB, user(2))
    if behind:
        allocator.free(allocator.malloc(behind, user(3)))
    allocator.free(first)
    found = analysed(allocator, tmp_path, keep=len(allocator.events) - before)
    (peak,) = (row for row in found.moments.records() if row.moment == "moment_peak")
    beside = MIB + behind
    assert (peak.block_bytes, peak.block_most_bytes) == (least + beside, most + beside)


def test_tensors_by_category_at_the_peak_and_over_time() -> None:
    """The sum is largest at the second instant, 60 bytes; categories with equally many stay in their order."""
    bytes_ = np.zeros((3, len(CATEGORIES)), np.int64)
    bytes_[:, 1] = 10, 20, 25
    bytes_[:, 2] = 0, 20, 0
    bytes_[:, 4] = 45, 20, 0
    at_peak, curve = timeline_tables(MemoryTimeline("", np.array([100, 110, 130]), bytes_, 3))
    three, others = (CATEGORIES[1], CATEGORIES[2], CATEGORIES[4]), [CATEGORIES[each] for each in (0, 3, 5, 6, 7)]
    assert at_peak.rows == (
        *((f"tensor_{name}", 20, 20 / 60, most) for name, most in zip(three, (25, 20, 45), strict=True)),
        *((f"tensor_{name}", 0, 0.0, 0) for name in others),
    )
    assert at_peak.totals == {"tensor_category": "moment_peak", "tensor_bytes": 60, "share": 1.0}
    assert curve.column("since_start_ns") == (0, 10, 30)
    assert curve.column("total_bytes") == (55, 60, 25)
    assert curve.column(f"{CATEGORIES[4]}_bytes") == (45, 20, 0)


def test_what_was_asked_for_in_a_call_follows_its_last_event_at_once() -> None:
    free, growth = Action.SEGMENT_FREE, Action.SEGMENT_ALLOC
    rows = [
        *((free, 1, 4), (growth, 1, 5), (Action.ALLOC, 1, 3)),
        *((growth, 2, 6), (Action.ALLOC, 3, 9)),
        *((free, 4, 7), (Action.OOM, 4, 20)),
        *((growth, 5, 8), (Action.FREE_COMPLETED, 5, 9)),
        (free, 6, 2),
    ]
    columns = dict(zip(("action", "call", "size"), np.array(rows, np.int64).T, strict=True))
    table = runs((0, "release_retry", 4, 4), (5, "release_failed_retry", 7, 0), (9, "release_gc", 2, 0))
    calls = device_calls(SimpleNamespace(history=Rows(**columns), once=lambda _: table))  # type: ignore[arg-type]
    assert (calls.first.tolist(), calls.last.tolist()) == ([0, 3, 5, 7, 9], [1, 3, 5, 7, 9])
    assert calls.kind == ("release_retry", "release_growth", "release_failed_retry", "release_growth", "release_gc")
    assert calls.request.tolist() == [3, 0, 20, 0, 0]
    assert (calls.grown.tolist(), calls.released.tolist()) == ([5, 6, 0, 8, 0], [4, 0, 7, 0, 2])


def test_one_byte_that_every_step_keeps_is_a_leak(tmp_path: Path) -> None:
    found = analysed(train(Loop(leak=1), Allocator()), tmp_path)
    assert not isinstance(found.leaks, NotMeasured)
    assert [(one.line, one.per_step) for one in found.leaks] == [(f"train.py:{LEAK_LINE} train", 1)]
