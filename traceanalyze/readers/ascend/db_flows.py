"""Arrows between the events of a database: operator to device (CONNECTION_IDS), forward to backward."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.model.trace import Flows
from traceanalyze.readers.ascend.db_rows import pairs
from traceanalyze.readers.ascend.shared import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.readers.ascend.db_file import Columns
    from traceanalyze.readers.ascend.db_rows import Reading
    from traceanalyze.readers.ascend.shared import Block

_TO_DEVICE, _TO_BACKWARD = "async_npu", "fwdbwd"


def flows(reading: Reading, ops: Block, key: NDArray[np.int64], connections: Columns, device: Sequence[Block]) -> Flows:
    """`async_npu` from operators to the device events they launched, `fwdbwd` from forward to backward operators.

    An operator has one key into CONNECTION_IDS, there one row a connection: of every launch, and one that the
    operator of the backward pass has as well. Hence two operators with one connection are such a pair.

    Args:
        reading: The database.
        ops: The operators.
        key: Their keys.
        connections: CONNECTION_IDS.
        device: Kernels, copies and collectives; `correlation` is the connection.
    """
    op, row = pairs(key, connections["id"])
    of_op = connections["connectionId"][row]
    starts = np.concatenate([part.ts for part in device])
    tracks = np.concatenate([part.track for part in device])
    source, target = pairs(of_op, np.concatenate([part.fields["correlation"] for part in device]))
    source = _innermost(ops.ts, op[source], target)
    launched = _arrows(reading, _TO_DEVICE, ops.ts[source], ops.track[source], starts[target], tracks[target])
    forward, backward = _couples(ops, op, of_op)
    passed = _arrows(reading, _TO_BACKWARD, ops.ts[forward], ops.track[forward], ops.ts[backward], ops.track[backward])
    return Flows(*(np.concatenate((getattr(launched, name), getattr(passed, name))) for name in _COLUMNS))


_COLUMNS = ("ts", "track", "cat", "id", "phase")


def _innermost(start: NDArray[np.int64], op: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of several operators that name one device event the one that begins last, for every pair."""
    order = np.lexsort((start[op], target))
    last = np.searchsorted(target[order], target, "right") - 1
    chosen: NDArray[np.int64] = op[order[last]]
    return chosen


def _couples(
    ops: Block, op: NDArray[np.int64], connection: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of operators of different threads with one connection, the earlier one first."""
    order = np.lexsort((ops.ts[op], connection))
    op, connection = op[order], connection[order]
    same = (connection[1:] == connection[:-1]) & (connection[1:] != ABSENT)
    same &= ops.track[op[1:]] != ops.track[op[:-1]]
    return op[:-1][same], op[1:][same]


def _arrows(
    reading: Reading,
    cat: str,
    start: NDArray[np.int64],
    start_track: NDArray[np.int32],
    end: NDArray[np.int64],
    end_track: NDArray[np.int32],
) -> Flows:
    """One pair of rows an arrow, numbered."""
    count = len(start)
    return Flows(
        ts=np.concatenate((start, end)),
        track=np.concatenate((start_track, end_track)),
        cat=np.full(2 * count, reading.strings.texts.code(cat), np.int32),
        id=np.tile(np.arange(count, dtype=np.int64), 2),
        phase=np.repeat(np.array([ord("s"), ord("f")], np.uint8), count),
    )
