"""What the dump itself says: its segments, the counts of the process, and whether history and dump agree."""

from dataclasses import replace

import numpy as np

from traceanalyze.analyses.memory import BLOCK_BYTES, BLOCKS, HOLE, LARGE, POOL, STREAM
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.lifetimes import BEFORE
from traceanalyze.model.columns import distinct
from traceanalyze.model.snapshot import ProcessStatistics, SnapshotDevice, State
from traceanalyze.model.table import Column, Kind, Layout, Table, declare

_CHECK = declare(
    "memory_check",
    "Self-check of the snapshot",
    Column("reconciled", Kind.FLAG, "whether history and dump agree to the byte"),
    Column(
        "blocks_tile",
        Kind.FLAG,
        "whether blocks fill their segments without gap or overlap",
        heading="blocks fill segments",
    ),
    Column("sums_agree", Kind.FLAG, "whether the sizes that segments state are those of their blocks"),
    Column("segments_follow", Kind.FLAG, "whether growth and release in the history lead to the segments of the dump"),
    Column("baseline_agrees", Kind.FLAG, "whether what lived before the history adds up", heading="begin agrees"),
    Column("layout_exact", Kind.FLAG, "whether following the history puts every block where the dump has it"),
    Column("events", Kind.COUNT, "events of the history"),
    Column("live_blocks", Kind.COUNT, "blocks in use at the dump"),
    Column("segments", Kind.COUNT, "segments at the dump"),
    Column(
        "disorder",
        Kind.COUNT,
        "events that contradict each other, such as a block freed twice",
        heading="contradicting events",
        minor=True,
    ),
    Column(
        "mismatched",
        Kind.COUNT,
        "blocks that the history leaves alive and the dump does not know",
        heading="blocks the dump lacks",
        minor=True,
    ),
    Column("unknown_events", Kind.COUNT, "events of kinds this version does not know", minor=True),
    layout=Layout.RECORD,
    detail=True,
)
_SEGMENTS = declare(
    "memory_segments",
    "Segments at the dump, the least used first",
    Column("address", Kind.TEXT, "where it begins"),
    Column("segment_bytes", Kind.MEMORY, "bytes taken from the device", heading="size"),
    BLOCK_BYTES,
    Column("used_share", Kind.SHARE, "share of it in live blocks", heading="used"),
    BLOCKS,
    HOLE,
    replace(POOL, kind=Kind.TEXT),
    STREAM,
    LARGE,
    Column("expandable", Kind.FLAG, "whether it grows and shrinks by mapping memory"),
    ranked=True,
    detail=True,
    bar="used_share",
)
_STATISTICS = declare(
    "process_statistics",
    "What the process counted (memory_stats)",
    Column("retries", Kind.COUNT, "allocations that found the device full, since the process began"),
    Column("failed_requests", Kind.COUNT, "allocations that failed, since the process began"),
    Column("peak_block_bytes", Kind.MEMORY, "most bytes in blocks, since the process began", heading="peak in blocks"),
    Column(
        "peak_reserved_memory",
        Kind.MEMORY,
        "most bytes taken from the device, since the process began",
        heading="peak reserved",
    ),
    Column("peak_requested_bytes", Kind.MEMORY, "most bytes asked for, since the process began"),
    Column(
        "peak_inactive_bytes",
        Kind.MEMORY,
        "most bytes in free pieces of split blocks, since the process began",
        heading="peak free in pieces",
    ),
    layout=Layout.RECORD,
    detail=True,
)


def self_check(allocator: Device) -> Table:
    """Whether history and dump of the file agree; nothing is concluded from a file that contradicts itself."""
    device, lives, layout, active = allocator.device, allocator.lives, allocator.layout, allocator.active
    agree = {
        "blocks_tile": _tiles(device),
        "sums_agree": _sums_agree(device),
        "segments_follow": layout.lost is None or layout.lost.key != "segments",
        "baseline_agrees": active.base >= 0 and int(lives.requested[lives.begin == BEFORE].sum()) == active.base,
    }
    reconciled = all(agree.values()) and not (lives.disorder or lives.mismatched)
    values = {
        "reconciled": reconciled,
        **agree,
        "layout_exact": layout.lost is None,
        "events": len(device.history),
        "live_blocks": int((device.blocks.state != State.INACTIVE).sum()),
        "segments": len(device.segments),
        "disorder": lives.disorder,
        "mismatched": lives.mismatched,
        "unknown_events": sum(device.history.unknown.values()),
    }
    return _CHECK.fill(**{key: (value,) for key, value in values.items()})


def _tiles(device: SnapshotDevice) -> bool:
    """Do the blocks of each segment follow each other from its begin to its end?"""
    blocks, segments = device.blocks, device.segments
    if len(segments) == 0:
        return len(blocks) == 0
    end = blocks.address + blocks.size
    if len(distinct(blocks.segment)) != len(segments):
        return False
    first = np.append(True, blocks.segment[1:] != blocks.segment[:-1])
    last = np.append(first[1:], True)
    begins = (blocks.address[first] == segments.address[blocks.segment[first]]).all()
    ends = (end[last] == (segments.address + segments.size)[blocks.segment[last]]).all()
    inner = (blocks.address[1:] == end[:-1]) | first[1:]
    return bool(begins and ends and inner.all())


def _sums_agree(device: SnapshotDevice) -> bool:
    """Are the sizes that the segments state those of their blocks? Sizes that are not stated agree with anything."""
    blocks, segments = device.blocks, device.segments
    for stated, member, size in (
        (segments.allocated, blocks.state == State.ACTIVE, blocks.size),
        (segments.active, blocks.state != State.INACTIVE, blocks.size),
        (segments.requested, blocks.state != State.INACTIVE, blocks.requested),
    ):
        sums = np.bincount(blocks.segment[member], size[member], len(segments)).astype(np.int64)
        if not ((stated == -1) | (stated == sums)).all():
            return False
    return True


def segments(device: SnapshotDevice) -> Table:
    """What each segment holds, and how much of it nothing uses; the least used first: they could be given back."""
    segments, blocks = device.segments, device.blocks
    count = len(segments)
    live = blocks.state != State.INACTIVE
    used = np.bincount(blocks.segment[live], blocks.size[live], count).astype(np.int64)
    hole = np.zeros(count, np.int64)
    np.maximum.at(hole, blocks.segment[~live], blocks.size[~live])
    return _SEGMENTS.fill(
        address=[f"{address % (1 << 64):#x}" for address in segments.address.tolist()],
        segment_bytes=segments.size,
        block_bytes=used,
        used_share=used / np.maximum(segments.size, 1),
        blocks=np.bincount(blocks.segment[live], minlength=count),
        hole_bytes=hole,
        pool=[",".join(map(str, device.pools[pool])) for pool in segments.pool.tolist()],
        stream=segments.stream,
        large_blocks=segments.large,
        expandable=segments.expandable,
    ).take(np.lexsort((segments.address, used - segments.size)))


def statistics(counted: ProcessStatistics) -> Table:
    """What the process itself counted."""
    return _STATISTICS.fill(**{key: (getattr(counted, key),) for key in _STATISTICS.keys})
