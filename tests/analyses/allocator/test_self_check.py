"""What is said of a dump that contradicts itself, and its segments, on hand-made snapshots."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulate.allocator.pool import MIB
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.layout import LostWay
from traceanalyze.model.table import NotMeasured
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis

BASE = 1 << 40
FLAGS = ("blocks_tile", "sums_agree", "segments_follow", "baseline_agrees", "layout_exact")


def event(action: str, at: int, size: int) -> dict[str, Any]:
    return {"action": action, "addr": BASE + at * MIB, "size": size * MIB, "stream": 0, "frames": []}


def segment(at: int, *blocks: int) -> dict[str, Any]:
    """A segment of blocks on end, MiB; what is below 0 is free."""
    address, made = BASE + at * MIB, []
    for size in blocks:
        state = "active_allocated" if size > 0 else "inactive"
        one = {"address": address, "size": abs(size) * MIB, "requested_size": max(size, 0) * MIB, "state": state}
        made.append({**one, "frames": []})
        address += abs(size) * MIB
    used = sum(size for size in blocks if size > 0) * MIB
    return {
        "device": 0,
        "address": BASE + at * MIB,
        "total_size": sum(map(abs, blocks)) * MIB,
        "stream": 0,
        "segment_type": "large",
        **dict.fromkeys(("allocated_size", "active_size", "requested_size"), used),
        "blocks": made,
    }


def two_segments() -> dict[str, Any]:
    """20 MiB of which 8 are in use, and 30 of which 4 and 6, with 20 free between them."""
    events = [
        event("segment_alloc", 0, 20),
        event("alloc", 0, 8),
        event("segment_alloc", 100, 30),
        event("alloc", 100, 4),
        event("alloc", 104, 20),
        event("alloc", 124, 6),
        event("free_requested", 104, 20),
        event("free_completed", 104, 20),
    ]
    return {"segments": [segment(0, 8, -12), segment(100, 4, -20, 6)], "device_traces": [events]}


def analysed(content: dict[str, Any], folder: Path) -> AllocatorAnalysis:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(content))
    (found,) = analyze_snapshot(read_snapshot(Source(str(path), size=path.stat().st_size)))
    return found


def check(found: AllocatorAnalysis) -> Any:
    (row,) = found.check.records()
    return row


def test_a_dump_that_its_history_leads_to(tmp_path: Path) -> None:
    found = analysed(two_segments(), tmp_path)
    row = check(found)
    assert row.reconciled
    assert all(getattr(row, flag) for flag in FLAGS)
    assert (row.events, row.live_blocks, row.segments) == (8, 3, 2)
    assert (row.disorder, row.mismatched, row.unknown_events) == (0, 0, 0)


def test_segments_of_which_most_is_unused_come_first(tmp_path: Path) -> None:
    content = two_segments()
    # As much unused as of the first one: the lower address comes first.
    content["segments"].append(segment(200, -12, 12))
    content["device_traces"][0] += [event("segment_alloc", 200, 24), event("alloc", 212, 12)]
    (table,) = (each for each in analysed(content, tmp_path).state if each.key == "memory_segments")
    rows = [(row[0], *(cell // MIB for cell in row[1:3]), *row[3:5], row[5] // MIB) for row in table.rows]
    assert rows == [
        (hex(BASE + 100 * MIB), 30, 10, 1 / 3, 2, 20),
        (hex(BASE), 20, 8, 0.4, 1, 12),
        (hex(BASE + 200 * MIB), 24, 12, 0.5, 1, 12),
    ]


def later_begin(content: dict[str, Any]) -> None:
    content["segments"][0]["blocks"][0]["address"] += 512


def early_end(content: dict[str, Any]) -> None:
    content["segments"][0]["blocks"][1]["size"] -= 512


def gap_between(content: dict[str, Any]) -> None:
    content["segments"][1]["blocks"][1]["size"] -= 512


def without_blocks(content: dict[str, Any]) -> None:
    content["segments"].append(segment(300))
    content["segments"][-1]["total_size"] = 2 * MIB


@pytest.mark.parametrize("damage", [later_begin, early_end, gap_between, without_blocks])
def test_blocks_have_to_fill_their_segments(tmp_path: Path, damage: Callable[[dict[str, Any]], None]) -> None:
    content = two_segments()
    damage(content)
    row = check(analysed(content, tmp_path))
    assert (row.blocks_tile, row.reconciled) == (False, False)


@pytest.mark.parametrize("key", ["allocated_size", "active_size", "requested_size"])
@pytest.mark.parametrize(("change", "agrees"), [(-512, False), (512, False), (None, True)])
def test_stated_sizes_have_to_be_those_of_the_blocks(
    tmp_path: Path, key: str, change: int | None, agrees: bool
) -> None:
    content = two_segments()
    if change is None:
        del content["segments"][1][key]
    else:
        content["segments"][1][key] += change
    row = check(analysed(content, tmp_path))
    assert (row.sums_agree, row.reconciled, row.blocks_tile) == (agrees, agrees, True)


@pytest.mark.parametrize(
    ("more", "key", "value"),
    [
        # What is given back is still there; what grew is not.
        (event("segment_free", 0, 20), "segments_follow", False),
        (event("segment_alloc", 50, 2), "segments_follow", False),
        # Freed a second time, and a block that the dump does not know.
        (event("free_completed", 104, 20), "disorder", 1),
        (event("alloc", 104, 20), "mismatched", 1),
        (event("surprise", 0, 1), "unknown_events", 1),
    ],
)
def test_what_contradicts_the_dump_is_told(tmp_path: Path, more: dict[str, Any], key: str, value: object) -> None:
    content = two_segments()
    content["device_traces"][0].append(more)
    row = check(analysed(content, tmp_path))
    assert getattr(row, key) == value
    assert row.reconciled is (key == "unknown_events")


def test_what_lived_before_the_history_has_to_add_up(tmp_path: Path) -> None:
    """6 MiB are from before it; a block of 2 that the dump does not know leaves 4 for the time before."""
    content = two_segments()
    del content["device_traces"][0][5]
    row = check(analysed(content, tmp_path))
    assert (row.baseline_agrees, row.reconciled) == (True, True)
    content["device_traces"][0].append(event("alloc", 104, 2))
    row = check(analysed(content, tmp_path))
    assert (row.baseline_agrees, row.reconciled) == (False, False)


def test_a_dump_without_memory_is_whole(tmp_path: Path) -> None:
    events = [event(action, 0, 20) for action in ("segment_alloc", "alloc", "free_requested", "free_completed")]
    content = {"segments": [], "device_traces": [[*events, event("segment_free", 0, 20)]]}
    row = check(analysed(content, tmp_path))
    assert (row.reconciled, row.blocks_tile, row.segments, row.live_blocks) == (True, True, 0, 0)


def test_one_segment_is_judged_like_several(tmp_path: Path) -> None:
    content = {"segments": [segment(0, 8, -12)], "device_traces": [two_segments()["device_traces"][0][:2]]}
    assert check(analysed(content, tmp_path)).blocks_tile is True
    early_end(content)
    assert check(analysed(content, tmp_path)).blocks_tile is False


def larger_block(content: dict[str, Any]) -> None:
    """Of 9 MiB for a request of 8, although the rest could have been split off."""
    content["segments"][0] = segment(0, 9, -11)
    content["segments"][0]["blocks"][0]["requested_size"] = content["segments"][0]["requested_size"] = 8 * MIB


def behind_the_begin(content: dict[str, Any]) -> None:
    """In a new segment, which must be filled from its begin."""
    content["segments"].append(segment(300, -4, 16))
    content["device_traces"][0] += [event("segment_alloc", 300, 20), event("alloc", 304, 16)]


def in_use(content: dict[str, Any]) -> None:
    """The first segment goes back with a block in it, and comes again."""
    content["device_traces"][0] += [event("segment_free", 0, 20), event("segment_alloc", 0, 20)]


def from_elsewhere(content: dict[str, Any]) -> None:
    content["device_traces"][0].append(event("free_completed", 700, 2))


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (larger_block, LostWay("sizes", 1)),
        (behind_the_begin, LostWay("place", 9)),
        (in_use, LostWay("release", 8)),
        (from_elsewhere, LostWay("before", 1)),
    ],
)
def test_a_follower_that_lost_its_way_costs_the_exact_layout_only(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], lost: LostWay
) -> None:
    content = two_segments()
    change(content)
    content["device_traces"][0].append({**event("oom", 0, 50), "device_free": 0})
    content["device_traces"][0].append(event("snapshot", 0, 0))
    found = analysed(content, tmp_path)
    row = check(found)
    assert (row.reconciled, row.layout_exact, found.lost) == (True, False, lost)
    unknown = NotMeasured("layout_not_exact")
    assert (found.fragmentation, found.oversized) == (unknown, unknown)
    assert found.leaks == NotMeasured("no_memory_steps")
    assert [(one.kind, one.free, one.largest_hole) for one in found.ooms] == [("unlocated", None, None)]
    moments = {one.moment: one for one in found.moments.records()}
    peak, dump = moments["moment_peak"], moments["moment_dump"]
    # Blocks of requests of whole MiB have their size; only the dump tells what is free.
    assert peak.block_bytes == peak.requested_bytes + (MIB if lost.key == "sizes" else 0)
    assert (peak.hole_bytes, peak.block_most_bytes) == (unknown, unknown)
    assert dump.block_most_bytes == dump.block_bytes
    assert dump.hole_bytes == 20 * MIB


def test_the_state_of_the_dump_is_known_without_a_layout(tmp_path: Path) -> None:
    """A block that the history puts where nothing is: what is free at the dump is what the dump says."""
    content = two_segments()
    behind_the_begin(content)
    (free,) = (each for each in analysed(content, tmp_path).state if each.key == "free_memory")
    assert [tuple(one)[:7] for one in free.records()] == [("moment_dump", 0, 0, True, 36 * MIB, 3, 20 * MIB)]


@pytest.mark.parametrize(("at", "size"), [(110, 20), (0, 20)])
def test_segments_that_overlap_contradict(tmp_path: Path, at: int, size: int) -> None:
    content = two_segments()
    content["segments"].append(segment(at, -size))
    assert check(analysed(content, tmp_path)).segments_follow is False


def test_a_block_that_waits_for_a_stream_at_the_dump_is_live(tmp_path: Path) -> None:
    """Its end was asked for, and nothing else was given back: the request alone ends no block that the dump has."""
    content = two_segments()
    del content["device_traces"][0][4:]
    content["device_traces"][0] += [event("alloc", 104, 6), event("free_requested", 104, 6)]
    content["segments"][1] = segment(100, 4, 6, -20)
    content["segments"][1]["blocks"][1]["state"] = "active_pending_free"
    content["segments"][1]["allocated_size"] -= 6 * MIB
    row = check(analysed(content, tmp_path))
    assert (row.reconciled, row.layout_exact) == (True, True)
