"""Canonical name and direction of every operator call of one side, and fused operators met by their parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import distinct, group
from traceanalyze.analyses.host.modules import ForwardOps
from traceanalyze.analyses.host.operators import added, counted_events
from traceanalyze.analyses.steps.phases import PhaseRanges
from traceanalyze.comparison.names import BACKWARD_SUFFIX, COMPOSED, WORDS, canonical, is_wrapper, names_backward
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model import calltree
from traceanalyze.model.columns import Rows
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.vocabulary import Phase

_FOREACH = "foreach"
_NOTHING = "-"
_FIRST = 0xE000
"""Letters for words: the private use area, so that none means something in a pattern."""


class FusedCalls(NamedTuple):
    """For each place of `context.op_nest` the name it takes and the first call of its group, -1 for none."""

    code: NDArray[np.int64]
    unit: NDArray[np.int64]


def fused_calls(context: Context, ops: CanonicalOps, calls: NDArray[np.int64], fused: Fused) -> FusedCalls:
    """Groups of calls that do what a fused operator does, and the backward calls of their members.

    `calls` are places of the calls with device work, in tree order, none inside another.
    """
    size = len(ops.code)
    found = FusedCalls(np.full(size, -1, np.int64), np.full(size, -1, np.int64))
    track = context.trace.events.track[context.op_nest.row[calls]]
    threads = np.split(calls, np.flatnonzero(track[1:] != track[:-1]) + 1)
    for name, pattern in fused:
        letters, expression = _spelled(ops.names, pattern)
        code = ops.names.index(name)
        for thread in threads:
            for match in expression.finditer(_text(letters, ops, thread, found.unit)):
                part = thread[slice(*match.span())]
                found.code[part], found.unit[part] = code, part[0]
    if (found.unit >= 0).any():
        _add_backward(context, ops, calls, found)
    return found


def _spelled(names: Sequence[str], pattern: str | tuple[str, ...]) -> tuple[list[str], re.Pattern[str]]:
    """A letter for each canonical name, and the pattern in these letters."""
    if isinstance(pattern, tuple):
        letter = {name: chr(_FIRST + index) for index, name in enumerate(dict.fromkeys(pattern))}
        return [letter.get(name, _NOTHING) for name in names], re.compile("".join(letter[name] for name in pattern))
    words = list(dict.fromkeys(re.findall(r"[a-z_]\w*", pattern)))
    letter = {word: chr(_FIRST + index) for index, word in enumerate(words)}
    meaning = {f"aten::{name}": letter[word] for word in words for name in WORDS.get(word, (word,))}
    letters = [
        letter[_FOREACH] if _FOREACH in letter and name.startswith("aten::_foreach_") else meaning.get(name, _NOTHING)
        for name in names
    ]
    spelled = re.sub(r"[a-z_]\w*", lambda found: letter[found[0]], pattern).replace(" ", "")
    return letters, re.compile(spelled)


def is_written(names: Sequence[str], pattern: str) -> bool:
    """Whether the pattern of a fused operator is these canonical names one after another."""
    letters, expression = _spelled(names, pattern)
    return expression.fullmatch("".join(letters)) is not None


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
    known = np.flatnonzero(forward >= 0)
    unit = group_of[forward[known]]
    known, unit = known[unit >= 0], unit[unit >= 0]
    first = np.full(len(ops.code), len(ops.code), np.int64)
    np.minimum.at(first, unit, back[known])
    found.code[back[known]] = found.code[unit]
    found.unit[back[known]] = first[unit]


def _groups(stop: NDArray[np.int32], found: FusedCalls, calls: NDArray[np.int64]) -> NDArray[np.int64]:
    """First call of the group of each place, with everything inside the members."""
    inside = np.full(len(stop), -1, np.int64)
    members = calls[found.unit[calls] >= 0]
    length = stop[members] - members
    place = np.repeat(members, length) + np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    inside[place] = np.repeat(found.unit[members], length)
    return inside


class Level(NamedTuple):
    """Calls that do not own each other's work; each device event with an operator belongs to exactly one."""

    owner: NDArray[np.int64]
    """For each place of `context.op_nest` the call of this level it belongs to."""
    whole: NDArray[np.bool_]
    """Calls that own everything inside them; other members of the level own what they launch themselves."""

    @property
    def member(self) -> NDArray[np.bool_]:
        """Whether a place is a call of this level."""
        found: NDArray[np.bool_] = self.owner == np.arange(len(self.owner))
        return found


def top_level(context: Context) -> Level:
    """Outermost operators, looking through autograd nodes, modules and functions that record themselves.

    A wrapper that launches work itself is a call too, with only that work.
    """
    names = context.op_names
    return _level(context.op_nest.stop, context.trace.strings.matches(names, is_wrapper))


def opened(stop: NDArray[np.int32], level: Level, calls: NDArray[np.int64]) -> Level:
    """The level below: some whole calls give way to the calls right inside them, the other calls stay.

    The calls that are looked through keep the work that they launch themselves.
    """
    through = np.zeros(len(stop), np.bool_)
    through[calls] = True
    below = through[level.owner] & ~level.member
    return _level(stop, ~((level.whole & ~through) | below))


def accountable(context: Context, fused: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each place of `context.op_nest` the call for which its work counts.

    What an operator runs under names without a library is the vendor's way of running it: records of CANN's launches
    (`aclnnMul` inside `aten::mul`), `record_param_comms` inside `c10d::allreduce_`. And everything inside a fused
    operator is part of it, also where a backend composes it of others. All other calls count for themselves.
    """
    nested, strings = context.op_nest, context.trace.strings
    names = context.trace.events.name[nested.row]
    plain = strings.matches(names, lambda text: "::" not in text and not names_backward(text))
    of = nested.beyond(plain)
    of = np.where(strings.matches(names, is_wrapper)[of], np.arange(len(nested)), of)
    level = _level(nested.stop, ~fused)
    return np.where(level.whole[level.owner], level.owner, of)


def _level(stop: NDArray[np.int32], through: NDArray[np.bool_]) -> Level:
    """The outermost of the places that are not looked through, and all others outside of these."""
    size = len(stop)
    place = np.arange(size)
    whole = ~through & calltree.outermost(stop, through.astype(np.int32), 2)
    edge = np.zeros(size + 1, np.int64)
    edge[:-1] += whole
    np.add.at(edge, stop[whole], -1)
    covered = np.cumsum(edge[:-1]) > 0
    return Level(np.where(covered, np.maximum.accumulate(np.where(whole, place, 0)), place), whole)


def device_time(context: Context) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Time (ns) and number of the device events in the windows that each operator launched itself."""
    event, time = counted_events(context)
    op = context.event_op[event]
    size = len(context.op_nest)
    known = op >= 0
    return added(op[known], time[known], size), np.bincount(op[known], minlength=size)


def busy_calls(context: Context) -> tuple[Level, NDArray[np.int64]]:
    """The outermost operators, and the places of those with device work, in tree order."""
    level = top_level(context)
    return level, np.flatnonzero(np.bincount(level.owner, device_time(context)[1], len(level.owner)) > 0)


Fused = tuple[tuple[str, str | tuple[str, ...]], ...]
"""Operators (canonical names) that are also to be found where they are written as several: as a pattern (see `FUSED`),
or as these names one after another."""


@dataclass(frozen=True, eq=False)
class CanonicalOps:
    """One row for each place of `context.op_nest`."""

    names: tuple[str, ...]
    """Canonical names, without direction."""
    own: NDArray[np.int32]
    """Position in `names` of a call's own name."""
    whole: NDArray[np.int32]
    """Place of the call for which its work counts: itself, or one around it (see `accountable`)."""
    code: NDArray[np.int32]
    """Position in `names` of the name for which its work counts."""
    backward: NDArray[np.bool_]
    unit: NDArray[np.int32]
    """Place of the call this one is part of: itself, or the first of the calls that make up a fused operator."""

    def label(self, place: int) -> str:
        """Canonical name for which its work counts, with `(backward)` where it runs in the backward pass."""
        return self.names[int(self.code[place])] + (BACKWARD_SUFFIX if self.backward[place] else "")

    def named(self, place: Rows) -> tuple[list[str], NDArray[np.int64]]:
        """Distinct labels of the calls at some places, and the position of each one's; "" where there is none (-1)."""
        known = place >= 0
        code = np.full(len(place), -1, np.int64)
        code[known] = 2 * self.code[place[known]] + self.backward[place[known]]
        rows = group(code)
        return [self.label(at) if at >= 0 else "" for at in place[rows.first].tolist()], rows.of

    def own_label(self, place: int) -> str:
        """The same with its own canonical name."""
        return self.names[int(self.own[place])] + (BACKWARD_SUFFIX if self.backward[place] else "")


def canonical_ops(context: Context, options: CompareOptions, fused: Fused = ()) -> CanonicalOps:
    """Canonical names and directions, worked out once for each trace.

    An operator belongs to the backward pass if it is called in that phase (definitions §10: inside an autograd node,
    whatever the thread; recomputed ones too), or if its name says so. `fused` are those of `fused_names`.
    """
    return context.once(_canonical_ops, options, fused)


def _canonical_ops(context: Context, options: CompareOptions, fused: Fused) -> CanonicalOps:
    nested, strings = context.op_nest, context.trace.strings
    raw = context.trace.events.name[nested.row]
    rows = group(raw)
    texts = [strings.text(int(raw[first])) for first in rows.first.tolist()]
    known, code = distinct((canonical(text, options) for text in texts), rows.of)
    by_name = np.array([names_backward(text) for text in texts], np.bool_)[rows.of]
    backward = by_name | np.isin(op_phases(context), (Phase.BACKWARD, Phase.RECOMPUTE))
    one = [name for name, _ in fused]
    names, own = tuple(dict.fromkeys((*known, *one))), code.astype(np.int32)
    entire = [at for at, name in enumerate(names) if name in one or name in COMPOSED]
    whole = accountable(context, np.isin(code, entire)).astype(np.int32)
    found = CanonicalOps(names, own, whole, own[whole], backward, np.arange(len(nested), dtype=np.int32))
    return _with_fused(context, found, fused) if fused and len(nested) else found


def op_phases(context: Context) -> NDArray[np.uint8]:
    """Phase in which each operator of `context.op_nest` begins."""
    nested = context.op_nest
    track = context.trace.events.track[nested.row]
    return context.once(PhaseRanges).at(track, nested.start) if len(nested) else np.zeros(0, np.uint8)


def _with_fused(context: Context, found: CanonicalOps, fused: Fused) -> CanonicalOps:
    """The same after the parts of fused operators have taken their name."""
    level, busy = busy_calls(context)
    calls = fused_calls(context, found, busy, fused)
    replaced = calls.unit[level.owner] >= 0
    part = level.owner[replaced]
    own, code, unit = found.own.copy(), found.code.copy(), found.unit.copy()
    own[part] = code[replaced] = calls.code[part]
    unit[replaced] = calls.unit[part]
    return replace(found, own=own, code=code, unit=unit)
