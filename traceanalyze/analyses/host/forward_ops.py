"""Which forward operator a backward one belongs to: same sequence number, same forward thread (definitions §11)."""

from collections import Counter
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.nesting import Nest, innermost, nest_rows
from traceanalyze.model.columns import find


class ForwardOps:
    """Finds the forward operator of the backward operator that runs at an instant."""

    def __init__(self, context: Context) -> None:
        self._context = context
        every, rows = np.arange(len(context.trace.events)), context.op_nest.row
        sequence = context.trace.events.numbers("sequence", every, -1)
        thread = context.trace.events.numbers("fwd_thread", every, 0)
        recorded = sequence[rows] >= 0
        backward = rows[recorded & (thread[rows] > 0)]
        self._backward: Nest = nest_rows(context.trace, backward)
        self._sequence, self._thread = sequence, thread
        forward = rows[recorded & (thread[rows] == 0)]
        # The operator that creates the gradient's node is the last to start with its number, so the last stand first.
        self._forward = forward[::-1]
        self._track_of = self._forward_tracks(backward)

    def at(self, track: NDArray[np.int32], t: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row of the forward operator for the backward operator around each instant of a thread, -1 for none."""
        found = np.full(len(t), -1, np.int64)
        inner = innermost(self._backward, track, t)
        known = np.flatnonzero(inner >= 0)
        row, tracks = self._backward.row[inner[known]], self._context.trace.events.track
        thread, ran = self._thread[row], tracks[row].astype(np.int64)
        for number, forward_track in self._track_of.items():
            ran[thread == number] = forward_track
        offered = _joined(tracks[self._forward].astype(np.int64), self._sequence[self._forward])
        at = find(_joined(ran, self._sequence[row]), offered)
        found[known[at >= 0]] = self._forward[at[at >= 0]]
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
        arrow = strings.matches(flows.cat, lambda text: text == "fwdbwd")
        source, target = (np.flatnonzero(arrow & (flows.phase == ord(letter))) for letter in "sf")
        at = find(flows.id[target], flows.id[source])
        source, target = source[at[at >= 0]], target[at >= 0]
        inner = innermost(self._backward, flows.track[target], flows.ts[target])
        hit = inner >= 0
        numbers = self._thread[self._backward.row[inner[hit]]].tolist()
        counts = Counter(zip(numbers, flows.track[source[hit]].tolist(), strict=True))
        return {number: track for (number, track), _ in sorted(counts.items(), key=itemgetter(1))}


def _joined(track: NDArray[np.int64], sequence: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for a thread and a sequence number."""
    return track * (1 << 40) + sequence
