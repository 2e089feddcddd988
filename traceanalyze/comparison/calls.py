"""Operator calls of one side in the order in which they are to be matched, and the device events of each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import distinct, group
from traceanalyze.analyses.host.operators import counted_events
from traceanalyze.analyses.kernels.op_work import dtype_name
from traceanalyze.comparison.canonical_ops import CanonicalOps, Fused, Level, canonical_ops, top_level
from traceanalyze.comparison.names import is_wrapper
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.columns import Rows
from traceanalyze.model.patterns import regex

Stream = tuple[int, bool, int]
"""Step, backward pass, and thread: 0 for the one with most device time of this pass, and so on."""


@dataclass(frozen=True)
class Calls:
    """Operator calls of one side; everything by place in `context.op_nest`."""

    context: Context
    options: CompareOptions
    ops: CanonicalOps

    @cached_property
    def events(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Device events in the windows that have an operator, and their time there."""
        event, time = counted_events(self.context)
        known = self.context.event_op[event] >= 0
        return event[known], time[known]

    @cached_property
    def event_unit(self) -> NDArray[np.int64]:
        """The operator that launched each of `events`, or the first call of the fused operator it is part of."""
        return self.ops.unit[self.context.event_op[self.events[0]]].astype(np.int64)

    @cached_property
    def track(self) -> NDArray[np.int32]:
        """Thread of each place."""
        return self.context.trace.events.track[self.context.op_nest.row]

    @cached_property
    def tokens(self) -> NDArray[np.int64]:
        """What must be equal for two calls of this side to be alike: one number a name, direction (and shapes)."""
        keys = [self.ops.own * 2 + self.ops.backward]
        return group(*keys, *([self._shapes[1]] if self.options.use_input_shape else [])).of

    @cached_property
    def _shapes(self) -> tuple[list[str], NDArray[np.int64]]:
        """Distinct shapes, empty where there are none, and those of each place."""
        code = np.maximum(self.context.trace.events.numbers("shapes", self.context.op_nest.row), 0)
        rows = group(code)
        text = self.context.trace.strings.text
        return distinct((compact(text(int(code[first]))) for first in rows.first.tolist()), rows.of)

    def key(self, place: int) -> tuple[str, str]:
        """What must be equal for calls of both sides to be alike: name with direction, and shapes."""
        if not self.options.use_input_shape:
            return self.ops.own_label(place), ""
        texts, of = self._shapes
        return self.ops.own_label(place), texts[int(of[place])]

    def owned(self, owner: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Time and number of device events of each place that owns others (see `Level`)."""
        of, size = owner[self.event_unit], len(owner)
        count = np.bincount(of, minlength=size)
        return np.bincount(of, self.events[1], size).astype(np.int64), count

    def top(self) -> tuple[NDArray[np.int64], Level]:
        """The calls to be matched, in tree order.

        Calls of the analysed steps, and calls from before that whose work runs in them. Parts of a fused operator are
        one call: the first.
        """
        nested = self.context.op_nest
        level = top_level(self.context)
        names = self.context.trace.events.name[nested.row]
        wrapper = self.context.trace.strings.matches(names, is_wrapper)
        first = self.ops.unit == np.arange(len(nested))
        busy = self.owned(level.owner)[1] > 0
        begun = nested.begun_in(self.context.host_windows) & ~wrapper
        return np.flatnonzero(level.member & first & (busy | begun)), level

    @cached_property
    def inside(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All places by parent, and where those of each parent begin in that list."""
        parent = self.context.op_nest.parent
        order = np.argsort(parent, kind="stable")
        return order, np.searchsorted(parent[order], np.arange(len(parent) + 1))

    def children(self, place: int) -> NDArray[np.int64]:
        """Calls right inside a call, in order; none of a fused operator that is written as several."""
        order, begin = self.inside
        return order[:0] if self.grouped[place] else order[begin[place] : begin[place + 1]]

    @cached_property
    def grouped(self) -> NDArray[np.bool_]:
        """First calls of the groups that make up a fused operator."""
        first = np.zeros(len(self.ops.unit), np.bool_)
        first[self.ops.unit[self.ops.unit != np.arange(len(first))]] = True
        return first

    def streams(self, places: NDArray[np.int64], owner: NDArray[np.int64]) -> dict[Stream, NDArray[np.int64]]:
        """The calls of each stream, in order."""
        if len(places) == 0:
            return {}
        nested = self.context.op_nest
        begun = self.context.steps.host_start
        step = np.maximum(np.searchsorted(begun, nested.start[places], "right") - 1, 0)
        back, track = self.ops.backward[places], self.track[places]
        time = self.owned(owner)[0][places]
        lanes = group(back, track)
        total, number = lanes.sum(time), lanes.count()
        order = np.lexsort((np.arange(len(lanes)), -number, -total, back[lanes.first]))
        rank = np.zeros(len(lanes), np.int64)
        of_pass = back[lanes.first[order]]
        rank[order] = np.arange(len(lanes)) - np.searchsorted(of_pass, of_pass)
        rows = group(step, back, rank[lanes.of])
        members = np.split(np.argsort(rows.of, kind="stable"), np.cumsum(rows.count())[:-1])
        keys = zip(
            step[rows.first].tolist(), back[rows.first].tolist(), rank[lanes.of[rows.first]].tolist(), strict=True
        )
        return {
            (int(at), bool(backward), int(lane)): places[member]
            for (at, backward, lane), member in zip(keys, members, strict=True)
        }


def compact(text: str) -> str:
    """A list of the profile on one line, so that it can be read and compared."""
    return re.sub(r",(?! )", ", ", re.sub(r"\s*\n\s*", "", text))


_SIZED, _TYPE = regex(r"\[(\d[\d, ]*)\]"), regex(r'[^"\[\],; ][^",;\]]*')
_INTEGERS = {"long int": "int64", "long": "int64", "int": "int32", "unsigned char": "uint8"}


def tensors(shapes: str | None, dtypes: str | None) -> str:
    """Shapes and types of tensors, `64×8, 8×64 bf16` whichever way the profile lists them; no numbers beside them."""
    listed = _SIZED.findall(shapes or "") if "[" in (shapes or "") else (shapes or "").split(";")
    sized = ["×".join(size.strip() for size in each.split(",")) for each in listed if each.strip()]
    # What is no tensor has a capital letter: Scalar, Int, GenericList; types of Ascend's kernels have only such.
    named = [each for each in _TYPE.findall(dtypes or "") if ":" in each or each[0].islower() or each.isupper()]
    short = (each.removeprefix("c10::").lower() for each in named)
    types = dict.fromkeys(_INTEGERS.get(each) or dtype_name(each) for each in short)
    return " ".join(filter(None, (", ".join(sized), ", ".join(types))))


def described(context: Context, field: str, row: Rows) -> list[str | None]:
    """What events say of their inputs, shapes or dtypes, on one line each; None where they do not."""
    rows = group(context.trace.events.numbers(field, row))
    codes = context.trace.events.numbers(field, row[rows.first]).tolist()
    texts = [compact(context.trace.strings.text(code)) if code >= 0 else None for code in codes]
    return [texts[at] for at in rows.of.tolist()]


def calls_of(context: Context, options: CompareOptions, fused: Fused) -> Calls:
    """Operator calls of one side."""
    return Calls(context, options, canonical_ops(context, options, fused))


def common_tokens(sides: Sequence[Calls]) -> list[NDArray[np.int64]]:
    """Tokens of the places of each side, numbered alike; the numbers do not depend on the order of the sides."""
    firsts = [group(side.tokens).first for side in sides]
    keys = [[side.key(int(place)) for place in first.tolist()] for side, first in zip(sides, firsts, strict=True)]
    number = {key: index for index, key in enumerate(sorted({key for side in keys for key in side}))}
    return [
        np.array([number[key] for key in own], np.int64)[side.tokens] for side, own in zip(sides, keys, strict=True)
    ]
