"""Tables of who holds the memory over the history: the groups, and their bytes at the points of the curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Word
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.analyses.memory.results import AllocatorAnalysis

_GROUPS = (
    Column("group", Kind.COUNT),
    Column("memory_category", Kind.TERM),
    Column("source_line", Kind.NAME),
    Column("highest_bytes", Kind.MEMORY),
    Column("event", Kind.COUNT),
    Column("blocks", Kind.COUNT),
    Column("call_stack", Kind.TEXT, machine=True),
)
_POINTS = (Column("event", Kind.COUNT), Column("since_start_ns", Kind.DURATION))


def group_tables(analysis: AllocatorAnalysis) -> Iterator[Table]:
    """The curve of the groups, whose bytes sum to `allocator_curve.block_bytes`, and what each group is."""
    found = analysis.groups
    if isinstance(found, NotMeasured):
        yield table_of_rows("allocator_group_curve", _POINTS, found, detail=True)
        yield table_of_rows("allocator_groups", _GROUPS, found, detail=True)
        return
    names = [*(str(number + 1) for number in range(len(found.group))), "rest"]
    amounts = tuple(Column(f"group_{name}_bytes", Kind.MEMORY) for name in names)
    counts = tuple(Column(f"group_{name}_blocks", Kind.COUNT, machine=True) for name in names)
    event = found.event.tolist()
    time = [None] * len(event) if analysis.time is None else (analysis.time[found.event] - analysis.time[0]).tolist()
    rows = tuple(
        (at, since, *held, *blocks)
        for at, since, held, blocks in zip(event, time, found.bytes.T.tolist(), found.blocks.T.tolist(), strict=True)
    )
    stack = tuple(column.key for column in amounts)
    yield table_of_rows("allocator_group_curve", (*_POINTS, *amounts, *counts), rows, stack=stack, detail=True)
    yield table_of_rows("allocator_groups", _GROUPS, tuple(_rows(analysis)), detail=True)


def _rows(analysis: AllocatorAnalysis) -> Iterator[tuple[int | str | None, ...]]:
    """Each group at its highest; the last row is all blocks that belong to none."""
    found = analysis.groups
    if isinstance(found, NotMeasured):
        return
    highest = found.bytes.argmax(axis=1).tolist()
    for index, at in enumerate(highest):
        numbers = int(found.bytes[index, at]), int(found.event[at]), int(found.blocks[index, at])
        if index < len(found.group):
            one = found.group[index]
            yield index + 1, f"category_{one.category}", one.line, *numbers, "\n".join(one.stack)
        else:
            yield None, None, Word("other_groups"), *numbers, None
