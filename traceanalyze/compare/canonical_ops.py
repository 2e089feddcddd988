"""Canonical name and direction of every operator call of one side, and fused operators met by their parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.compare.fused import FUSED_NAMES, fused_calls
from traceanalyze.compare.levels import accountable, device_time, top_level
from traceanalyze.compare.names import BACKWARD_SUFFIX, canonical, names_backward
from traceanalyze.frozen import frozen
from traceanalyze.model.vocabulary import Phase

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.compare.options import CompareOptions

Fused = frozenset[str]
"""Fused operators (canonical names) that are also to be found where they are written as several operators."""
_NONE: Fused = frozenset()


@frozen
class CanonicalOps:
    """One row for each place of `context.op_nest`."""

    names: tuple[str, ...]
    """Canonical names, without direction."""
    own: NDArray[np.int64]
    """Position in `names` of a call's own name."""
    whole: NDArray[np.int64]
    """Place of the call for which its work counts: itself, or one around it (see `levels.accountable`)."""
    code: NDArray[np.int64]
    """Position in `names` of the name for which its work counts."""
    backward: NDArray[np.bool_]
    unit: NDArray[np.int64]
    """Place of the call this one is part of: itself, or the first of the calls that make up a fused operator."""

    def label(self, place: int) -> str:
        """Canonical name for which its work counts, with `(backward)` where it runs in the backward pass."""
        return self.names[int(self.code[place])] + (BACKWARD_SUFFIX if self.backward[place] else "")

    def own_label(self, place: int) -> str:
        """The same with its own canonical name."""
        return self.names[int(self.own[place])] + (BACKWARD_SUFFIX if self.backward[place] else "")


_Key = tuple[tuple[tuple[str, str], ...], Fused]
_known: WeakKeyDictionary[Context, dict[_Key, CanonicalOps]] = WeakKeyDictionary()


def canonical_ops(context: Context, options: CompareOptions, fused: Fused = _NONE) -> CanonicalOps:
    """Canonical names and directions, worked out once for each trace.

    An operator belongs to the backward pass if it is called in that phase (definitions §10: inside an autograd node,
    whatever the thread; recomputed ones too), or if its name says so.

    Args:
        context: one side.
        options: for the user's map of names.
        fused: see `fused_names`.
    """
    key = (tuple(sorted(options.op_name_map.items())), fused)
    found = _known.setdefault(context, {})
    if key not in found:
        found[key] = _canonical_ops(context, options, fused)
    return found[key]


def fused_names(base: Context, candidate: Context, options: CompareOptions) -> Fused:
    """Fused operators that a side runs: the other side's, or its own, may be written as several operators."""
    found: set[str] = set()
    for context in (base, candidate):
        names = context.trace.events.name[context.op_nest.row]
        for first in group(names).first.tolist():
            found.add(canonical(context.trace.strings.text(int(names[first])), options))
    return frozenset(found & FUSED_NAMES)


def _canonical_ops(context: Context, options: CompareOptions, fused: Fused) -> CanonicalOps:
    nested, strings = context.op_nest, context.trace.strings
    raw = context.trace.events.name[nested.row]
    rows = group(raw)
    texts = [strings.text(int(raw[first])) for first in rows.first.tolist()]
    position: dict[str, int] = {}
    codes = [position.setdefault(canonical(text, options), len(position)) for text in texts]
    code = np.array(codes, np.int64)[rows.of]
    said = np.array([names_backward(text) for text in texts], np.bool_)[rows.of]
    backward = said | np.isin(_phases(context), (Phase.BACKWARD, Phase.RECOMPUTE))
    for name in fused:
        position.setdefault(name, len(position))
    names, unit = tuple(position), np.arange(len(nested))
    whole = accountable(context, np.isin(code, [names.index(name) for name in fused]))
    found = CanonicalOps(names, code, whole, code[whole], backward, unit)
    return _with_fused(context, found, fused) if fused and len(nested) else found


def _phases(context: Context) -> NDArray[np.uint8]:
    nested = context.op_nest
    track = context.trace.events.track[nested.row]
    return context.phase_ranges.at(track, nested.start) if len(nested) else np.zeros(0, np.uint8)


def _with_fused(context: Context, found: CanonicalOps, fused: Fused) -> CanonicalOps:
    """The same after the parts of fused operators have taken their name."""
    level = top_level(context)
    busy = np.flatnonzero(np.bincount(level.owner, device_time(context)[1], len(level.owner)) > 0)
    calls = fused_calls(context, found, busy, fused)
    replaced = calls.unit[level.owner] >= 0
    part = level.owner[replaced]
    own, code, unit = found.own.copy(), found.code.copy(), found.unit.copy()
    own[part] = code[replaced] = calls.code[part]
    unit[replaced] = calls.unit[part]
    return replace(found, own=own, code=code, unit=unit)
