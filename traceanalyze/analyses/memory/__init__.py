"""Device memory: what a trace records of the allocator, and what its snapshots tell; columns that tables share."""

from traceanalyze.model.table import Column, Kind

MOMENT = Column(
    "moment",
    Kind.TERM,
    "peak: most requested bytes; reserve peak: most bytes taken from the device; OOM: a request failed",
)
EVENT = Column("event", Kind.COUNT, "index into the history; empty: before its first event")
SINCE_START = Column("since_start_ns", Kind.DURATION, "time since the first event of the history", heading="time")
STEP = Column("step", Kind.TEXT, "number of the step, or its name")
LINE = Column("source_line", Kind.NAME, "innermost line of the user's code in the call stack", heading="line")
CATEGORY = Column(
    "memory_category",
    Kind.TERM,
    "what kind of work allocated it, told by the call stack and by how long it lived",
    heading="category",
)
REQUESTED = Column("requested_bytes", Kind.MEMORY, "bytes the program asked for, of live blocks")
BLOCK_BYTES = Column(
    "block_bytes",
    Kind.MEMORY,
    "bytes of live blocks as the allocator cut them: what torch calls allocated",
    heading="in blocks",
)
RESERVED = Column("reserved_bytes", Kind.MEMORY, "bytes taken from the device")
BLOCKS = Column("blocks", Kind.COUNT, "number of live blocks")
HOLE = Column(
    "hole_bytes",
    Kind.MEMORY,
    "largest free piece inside the segments: a larger request needs new memory",
    heading="largest hole",
)
POOL = Column("pool", Kind.COUNT, "0 is the default pool; others are private pools, as of CUDA graphs")
STREAM = Column("stream", Kind.COUNT, "blocks of one stream cannot serve another")
LARGE = Column("large_blocks", Kind.FLAG, "blocks above 1 MiB; small and large ones cannot serve each other")
