"""The segments at the dump: what each one holds, and how much of it nothing uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.model.snapshot import State
from traceanalyze.model.table import Column, Kind, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.model.snapshot import SnapshotDevice

_COLUMNS = (
    Column("address", Kind.TEXT),
    Column("segment_bytes", Kind.MEMORY),
    Column("block_bytes", Kind.MEMORY),
    Column("used_share", Kind.SHARE),
    Column("blocks", Kind.COUNT),
    Column("hole_bytes", Kind.MEMORY),
    Column("pool", Kind.TEXT),
    Column("stream", Kind.COUNT),
    Column("large_blocks", Kind.FLAG),
    Column("expandable", Kind.FLAG),
)


def segments_table(device: SnapshotDevice) -> Table:
    """Segments at the dump, the least used first: they are what could be given back."""
    segments, blocks = device.segments, device.blocks
    count = len(segments)
    live = blocks.state != State.INACTIVE
    used = np.bincount(blocks.segment[live], blocks.size[live], count).astype(np.int64)
    number = np.bincount(blocks.segment[live], minlength=count)
    hole = np.zeros(count, np.int64)
    np.maximum.at(hole, blocks.segment[~live], blocks.size[~live])
    order = np.lexsort((segments.address, used - segments.size))
    rows = tuple(
        (
            f"{int(segments.address[i]):#x}",
            int(segments.size[i]),
            int(used[i]),
            int(used[i]) / max(int(segments.size[i]), 1),
            int(number[i]),
            int(hole[i]),
            ",".join(map(str, device.pools[int(segments.pool[i])])),
            int(segments.stream[i]),
            bool(segments.large[i]),
            bool(segments.expandable[i]),
        )
        for i in order.tolist()
    )
    return table_of_rows("memory_segments", _COLUMNS, rows, ranked=True, detail=True, bar="used_share")
