"""PYTORCH_CALLCHAINS: one row a frame; here one text a distinct stack, innermost frame first, as the text export."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.readers.ascend import db_file
from traceanalyze.readers.ascend.db_rows import index_of, taken
from traceanalyze.readers.ascend.shared import ABSENT, NO_TEXT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.readers.ascend.db_rows import Reading


def stack_codes(reading: Reading, chain: NDArray[np.int64]) -> NDArray[np.int32]:
    """Code of the stack of each row by its `callchainId`; `NO_TEXT` for none."""
    table = db_file.integers(reading.database, "PYTORCH_CALLCHAINS", ["id", "stack", "stackDepth"])
    frame = reading.strings.of(table["stack"])
    order = np.lexsort((table["stackDepth"], table["id"]))
    order = order[(frame[order] >= 0) & (table["id"][order] != ABSENT)]
    owner, frame = table["id"][order], frame[order]
    first = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1]))) if len(owner) else owner
    stacks, of = _distinct(frame, first)
    text = reading.strings.table.text
    codes = reading.strings.texts.codes(";\r\n".join(map(text, frames)) for frames in stacks)
    return taken(codes[of], index_of(owner[first], chain), NO_TEXT)


def _distinct(frame: NDArray[np.int32], first: NDArray[np.int64]) -> tuple[list[list[int]], NDArray[np.int64]]:
    """Distinct stacks, and which one each chain is; `first` holds the places where chains begin.

    Told apart by a hash, which is then verified frame by frame; should two stacks share one, another is tried.
    """
    if len(first) == 0:
        return [], first
    length = np.diff(np.append(first, len(frame)))
    level = np.arange(len(frame)) - np.repeat(first, length)
    for seed in itertools.count():
        mixed = _mixed(frame.astype(np.uint64) + (level.astype(np.uint64) << np.uint64(32)) + np.uint64(seed << 56))
        _, example, of = np.unique(np.add.reduceat(mixed, first), return_index=True, return_inverse=True)
        like = example[of.reshape(-1)]
        if (length == length[like]).all() and (frame == frame[np.repeat(first[like], length) + level]).all():
            break
    stacks = [frame[first[one] : first[one] + length[one]].tolist() for one in example.tolist()]
    return stacks, of.reshape(-1)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter numbers over all 64 bits (the finaliser of SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
