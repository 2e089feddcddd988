"""Which forward operator a backward one belongs to: same sequence number, same forward thread (definitions §11)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.nesting import Nest, innermost, nest_rows


class ForwardOps:
    """Finds the forward operator of the backward operator that runs at an instant."""

    def __init__(self, context: Context) -> None:
        self._context = context
        size = len(context.trace.events)
        sequence, thread = np.full(size, -1, np.int64), np.zeros(size, np.int64)
        for name, target in (("sequence", sequence), ("fwd_thread", thread)):
            column = context.trace.events.fields.get(name)
            if column is not None:
                target[column.row] = column.value
        rows = context.op_nest.row
        recorded = sequence[rows] >= 0
        backward = rows[recorded & (thread[rows] > 0)]
        self._backward: Nest = nest_rows(context.trace, backward)
        self._sequence, self._thread = sequence, thread
        forward = rows[recorded & (thread[rows] == 0)]
        # The operator that creates the gradient's node is the last to start with its number.
        self._key, self._last = _last_of_each(context.trace.events.track[forward], sequence[forward], forward)
        self._track_of = self._forward_tracks(backward)

    def at(self, track: NDArray[np.int32], t: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row of the forward operator for the backward operator around each instant of a thread, -1 for none."""
        found = np.full(len(t), -1, np.int64)
        inner = innermost(self._backward, track, t)
        known = np.flatnonzero(inner >= 0)
        if len(known) == 0 or len(self._key) == 0:
            return found
        row = self._backward.row[inner[known]]
        own = self._context.trace.events.track[row]
        thread = self._thread[row]
        ran = own.astype(np.int64)
        for number, forward_track in self._track_of.items():
            ran[thread == number] = forward_track
        key = _joined(ran, self._sequence[row])
        at = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
        valid = self._key[at] == key
        found[known[valid]] = self._last[at[valid]]
        return found

    def _forward_tracks(self, backward: NDArray[np.int64]) -> dict[int, int]:
        """Thread that each "forward thread id" stands for.

        The arrows from forward to backward tell; without them the most frequent id is that of the step thread. Other
        ids stand for the backward thread itself, which recomputes what it needs.
        """
        known = self._by_arrows(backward)
        if len(backward):
            ids = group(self._thread[backward])
            usual = int(self._thread[backward[ids.first[ids.count().argmax()]]])
            known.setdefault(usual, self._context.step_track)
        return known

    def _by_arrows(self, backward: NDArray[np.int64]) -> dict[int, int]:
        flows, strings = self._context.trace.flows, self._context.trace.strings
        if len(flows.ts) == 0 or len(backward) == 0:
            return {}
        arrow = strings.lookup(flows.cat, lambda text: text == "fwdbwd").astype(np.bool_)
        source, target = (np.flatnonzero(arrow & (flows.phase == ord(letter))) for letter in "sf")
        if len(source) == 0 or len(target) == 0:
            return {}
        source = source[np.argsort(flows.id[source], kind="stable")]
        at = np.minimum(np.searchsorted(flows.id[source], flows.id[target]), len(source) - 1)
        joined = flows.id[source[at]] == flows.id[target]
        source, target = source[at[joined]], target[joined]
        inner = innermost(self._backward, flows.track[target], flows.ts[target])
        hit = inner >= 0
        pairs = zip(
            self._thread[self._backward.row[inner[hit]]].tolist(), flows.track[source[hit]].tolist(), strict=True
        )
        counts: dict[tuple[int, int], int] = {}
        for pair in pairs:
            counts[pair] = counts.get(pair, 0) + 1
        return {number: track for (number, track), _ in sorted(counts.items(), key=lambda item: item[1])}


def _joined(track: NDArray[np.int64], sequence: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for a thread and a sequence number."""
    joined: NDArray[np.int64] = track * (1 << 40) + sequence
    return joined


def _last_of_each(
    track: NDArray[np.int32], sequence: NDArray[np.int64], row: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sorted keys of (thread, number), and the last row of each in the given order."""
    key = _joined(track.astype(np.int64), sequence)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    last = np.concatenate((ordered[1:] != ordered[:-1], [True])) if len(ordered) else np.empty(0, np.bool_)
    return ordered[last], row[order[last]]
