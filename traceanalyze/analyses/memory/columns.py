"""Columns that several tables of a snapshot share."""

from __future__ import annotations

from traceanalyze.model.table import Column, Kind

MOMENT = Column(
    "moment",
    Kind.TERM,
    meaning="peak: most requested bytes; reserve peak: most bytes taken from the device; OOM: a request failed",
)
EVENT = Column("event", Kind.COUNT, meaning="index into the history; empty: before its first event")
SINCE_START = Column(
    "since_start_ns", Kind.DURATION, heading="time", meaning="time since the first event of the history"
)
STEP = Column("step", Kind.TEXT, meaning="number of the step, or its name")
LINE = Column("source_line", Kind.NAME, heading="line", meaning="innermost line of the user's code in the call stack")
CATEGORY = Column(
    "memory_category",
    Kind.TERM,
    heading="category",
    meaning="what kind of work allocated it, told by the call stack and by how long it lived",
)
REQUESTED = Column("requested_bytes", Kind.MEMORY, meaning="bytes the program asked for, of live blocks")
BLOCK_BYTES = Column(
    "block_bytes",
    Kind.MEMORY,
    heading="in blocks",
    meaning="bytes of live blocks as the allocator cut them: what torch calls allocated",
)
RESERVED = Column("reserved_bytes", Kind.MEMORY, meaning="bytes taken from the device")
BLOCKS = Column("blocks", Kind.COUNT, meaning="number of live blocks")
HOLE = Column(
    "hole_bytes",
    Kind.MEMORY,
    heading="largest hole",
    meaning="largest free piece inside the segments: a larger request needs new memory",
)
POOL = Column("pool", Kind.COUNT, meaning="0 is the default pool; others are private pools, as of CUDA graphs")
STREAM = Column("stream", Kind.COUNT, meaning="blocks of one stream cannot serve another")
LARGE = Column("large_blocks", Kind.FLAG, meaning="blocks above 1 MiB; small and large ones cannot serve each other")
