"""Fused operators where they are written as several: a pattern of operators that follow each other (name_tables)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.forward_ops import ForwardOps
from traceanalyze.compare.name_tables import FUSED, WORDS
from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.compare.canonical_ops import CanonicalOps

FUSED_NAMES = frozenset(f"aten::{name}" for name, _ in FUSED)
_FOREACH = "foreach"
_NOTHING = "-"
_FIRST = 0xE000
"""Letters for words: the private use area, so that none means something in a pattern."""


@frozen
class FusedCalls:
    """For each place of `context.op_nest` the name it takes and the first call of its group, -1 for none."""

    code: NDArray[np.int64]
    unit: NDArray[np.int64]


def fused_calls(context: Context, ops: CanonicalOps, calls: NDArray[np.int64], fused: frozenset[str]) -> FusedCalls:
    """Groups of calls that do what a fused operator does, and the backward calls of their members.

    Args:
        context: one side.
        ops: canonical names so far.
        calls: places of the calls with device work, in tree order, none inside another.
        fused: canonical names of the fused operators looked for.
    """
    size = len(ops.code)
    found = FusedCalls(np.full(size, -1, np.int64), np.full(size, -1, np.int64))
    track = context.trace.events.track[context.op_nest.row[calls]]
    threads = np.split(calls, np.flatnonzero(track[1:] != track[:-1]) + 1)
    for name, pattern in FUSED:
        if f"aten::{name}" in fused:
            letters, expression = _spelled(ops.names, pattern)
            code = ops.names.index(f"aten::{name}")
            for mine in threads:
                for match in expression.finditer(_text(letters, ops, mine, found.unit)):
                    part = mine[slice(*match.span())]
                    found.code[part], found.unit[part] = code, part[0]
    if (found.unit >= 0).any():
        _add_backward(context, ops, calls, found)
    return found


def _spelled(names: Sequence[str], pattern: str) -> tuple[list[str], re.Pattern[str]]:
    """A letter for each canonical name, and the pattern in these letters."""
    words = list(dict.fromkeys(re.findall(r"[a-z_]\w*", pattern)))
    letter = {word: chr(_FIRST + index) for index, word in enumerate(words)}
    meaning = {f"aten::{name}": letter[word] for word in words for name in WORDS.get(word, (word,))}
    letters = [
        letter[_FOREACH] if _FOREACH in letter and name.startswith("aten::_foreach_") else meaning.get(name, _NOTHING)
        for name in names
    ]
    spelled = re.sub(r"[a-z_]\w*", lambda found: letter[found[0]], pattern).replace(" ", "")
    return letters, re.compile(spelled)


def _text(letters: Sequence[str], ops: CanonicalOps, calls: NDArray[np.int64], taken: NDArray[np.int64]) -> str:
    """One letter a call; calls of the backward pass and of groups that were found before have none of the words."""
    table = np.array([*letters, _NOTHING])
    return "".join(table[np.where(~ops.backward[calls] & (taken[calls] < 0), ops.code[calls], -1)].tolist())


def _add_backward(context: Context, ops: CanonicalOps, calls: NDArray[np.int64], found: FusedCalls) -> None:
    """Backward calls whose forward call is part of a group form a group as well."""
    nested, events = context.op_nest, context.trace.events
    back = calls[ops.backward[calls]]
    if len(back) == 0:
        return
    row = ForwardOps(context).at(events.track[nested.row[back]], nested.start[back])
    place = np.full(len(events), -1, np.int64)
    place[nested.row] = np.arange(len(nested))
    forward = np.where(row >= 0, place[np.maximum(row, 0)], -1)
    group_of = _groups(nested.stop, found, calls)
    mine = np.flatnonzero(forward >= 0)
    unit = group_of[forward[mine]]
    mine, unit = mine[unit >= 0], unit[unit >= 0]
    first = np.full(len(ops.code), len(ops.code), np.int64)
    np.minimum.at(first, unit, back[mine])
    found.code[back[mine]] = found.code[unit]
    found.unit[back[mine]] = first[unit]


def _groups(stop: NDArray[np.int32], found: FusedCalls, calls: NDArray[np.int64]) -> NDArray[np.int64]:
    """First call of the group of each place, with everything inside the members."""
    inside = np.full(len(stop), -1, np.int64)
    members = calls[found.unit[calls] >= 0]
    length = stop[members] - members
    place = np.repeat(members, length) + np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    inside[place] = np.repeat(found.unit[members], length)
    return inside
