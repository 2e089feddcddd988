"""Operators that launched kernels, as a text of one letter each in order of launch, so that patterns find chains."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.frames import user_frames
from traceanalyze.model.columns import Rows, distinct, narrow, occurs, short, taken
from traceanalyze.model.intervals import Intervals, contains, merge, passed
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.computing import FUSIBLE, computing, sought
from traceanalyze.rules.rule import Facts, picked

_LETTERS = (
    ("B", r"^aten::(bmm|baddbmm|_?batch_?matmul)$|^BatchMatMul"),
    ("M", r"^aten::(mm|_scaled_mm)$|^MatMul"),  # Not those that add a bias already.
    ("S", r"^aten::_?softmax$|^Softmax(V2)?$"),
    ("Z", r"^aten::_softmax_backward_data$|^SoftmaxGrad"),
    (
        "d",
        r"^aten::(native_dropout|dropout|_fused_dropout|native_dropout_backward|bernoulli_)$|^npu::_?npu_dropout|^DropOut",
    ),
    ("m", r"^aten::mul_?$|^Muls?$"),
    ("q", r"^aten::div_?$|^(Real)?Div$"),
    ("a", r"^aten::add_?$|^Adds?(V2)?$"),
    ("k", r"^aten::(masked_fill_?|where|tril|triu)$|^(MaskedFill|Select(V2)?|Tril|Triu)$"),
    ("p", r"^aten::(pow|square)$|^(Pows?|Square)$"),
    ("u", r"^aten::mean$|^ReduceMean"),
    ("r", r"^aten::rsqrt$|^Rsqrt$"),
    ("n", r"^aten::neg$|^Neg$"),
    ("c", r"^aten::(cat|_cat)$|^Concat"),
    ("i", r"^aten::silu$|^(Silu|Swish)$"),
    ("g", r"^aten::gelu$|^Gelu$"),
    ("N", r"^aten::native_layer_norm$|^LayerNorm(V\d)?$"),
    ("G", r"^aten::native_group_norm$|^GroupNorm"),
    ("o", r"^aten::(sort|argsort)$|^(Sort|ArgSort)\w*$"),
    ("x", r"^aten::(index|index_select|gather)$|^(GatherV\d|GatherElements\w*|IndexSelect|Index(V\d)?)$"),
    ("t", r"^aten::(copy_|_to_copy|clone|contiguous)$|^(Cast|TensorMove|ViewCopy|Transpose)$"),
)
_KNOWN = tuple((ord(letter), regex(pattern)) for letter, pattern in _LETTERS)
_FEW = 64
"""So few runs are followed one by one."""
OTHER, BREAK = ".", ";"
"""Another operator; the end of what a thread launched in a step."""


class Chains(NamedTuple):
    """Runs of operators with kernels, by thread and launch; neighbouring kernels of one run are one letter."""

    text: str
    first: Rows
    """Row of `Computing` of the first kernel of each letter, in launch order (see `order`); -1 for a break."""
    order: Rows
    """Rows of `Computing` in launch order."""
    at: Rows
    """Where the kernels of each letter begin in `order`; one more than there are letters."""

    def find(self, pattern: str) -> Iterator[NDArray[np.int64]]:
        """Kernels (rows of `Computing`) of each match, without overlap."""
        for match in re.finditer(pattern, self.text):
            yield self.order[self.at[match.start()] : self.at[match.end()]]


def chains(facts: Facts) -> Chains:
    """The operators of a rank as letters, of kernels without an operator their types; use with `Facts.once`."""
    work, context = facts.once(computing), facts.context
    call = context.link[work.event]
    linked = call >= 0
    asked = context.issued_by[work.event[linked]]
    track, launched = np.full(len(work), np.iinfo(np.int32).max, np.int32), work.start.copy()
    track[linked], launched[linked] = taken(context.calls.track, asked), taken(context.calls.start, asked)
    order = np.lexsort((work.start, launched, track))
    letter = context.trace.strings.lookup(_label(facts), letter_of).astype(np.uint8)[order]
    op, track = work.op[order], track[order]
    step = passed(context.all_steps.host_start, launched[order])
    opens = np.ones(len(order), np.bool_)
    opens[1:] = (op[1:] != op[:-1]) | (op[1:] < 0)
    first = np.flatnonzero(opens)
    opens = (track[1:] != track[:-1]) | (step[1:] != step[:-1])
    anew = np.flatnonzero(opens[first[1:] - 1]) + 1 if len(first) else first
    codes = np.insert(letter[first], anew, ord(BREAK))
    at = np.insert(first, anew, first[anew])
    text = codes.astype(np.uint8).tobytes().decode("latin-1")
    launches = short(np.insert(order[first], anew, -1))
    return Chains(text, launches, short(order), short(np.append(at, len(order))))


def _label(facts: Facts) -> NDArray[np.int32]:
    """Code of the operator's name, of the kernel's type, or of the kernel's name, whichever is known."""
    work = facts.once(computing)
    column = facts.context.trace.events.fields.get("op_type")
    if column is None:
        return work.op_name
    kind = column.take(work.row, -1)
    return np.where((work.op < 0) & (kind >= 0), kind, work.op_name).astype(np.int32)


@lru_cache(maxsize=4096)
def letter_of(name: str) -> int:
    """Code of the letter of an operator."""
    return next((letter for letter, pattern in _KNOWN if pattern.search(name)), ord(OTHER))


def fused_away(time: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Kernels that one in place of each run (none is empty) saves: all but the longest, which reads and writes once."""
    first, gone = np.cumsum(length) - length, np.ones(len(time), np.bool_)
    longest = np.flatnonzero(time == np.repeat(np.maximum.reduceat(time, first), length))
    gone[longest[np.searchsorted(longest, first)]] = False
    return gone


def fusible_rows(facts: Facts) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Kernels (rows of `Computing`) of which at least two passes stand in a row, and which the longest pass keeps.

    A pass is the kernels of one operator. No product or compiled code is between the passes of a row, and where an
    operator comes again, a new row begins, as of a loop over tensors. Use with `Facts.once`.
    """
    work = facts.once(computing)
    stream = facts.context.device.stream[work.event]
    order = np.argsort(stream, kind="stable")
    stream, own = stream[order], occurs(work.group, FUSIBLE)[order]
    op, name = work.op[order], work.op_name[order]
    apart = (stream[1:] != stream[:-1]) | (own[1:] != own[:-1])
    opens = np.ones(len(order), np.bool_)
    opens[1:] = apart | (op[1:] != op[:-1]) | (op[1:] < 0)
    begin = np.flatnonzero(opens)
    anew = np.ones(len(begin), np.bool_)
    anew[1:] = apart[begin[1:] - 1] | ~own[begin[1:]]
    anew[_first_again(name[begin], anew)] = True
    first, kernels = np.flatnonzero(anew), np.diff(begin, append=len(order))
    passes = np.diff(first, append=len(begin))
    inside = np.repeat(passes > 1, passes)
    kept = np.zeros(0, np.bool_)
    if inside.any():
        kept = ~fused_away(np.add.reduceat(work.time[order], begin)[inside], passes[passes > 1])
    return order[np.repeat(inside, kernels)], np.repeat(kept, kernels[inside])


def _first_again(code: NDArray[np.int32], opens: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where in runs, of which the first places are known, a code stands that the run had since it last began anew."""
    again = np.full(len(code) + 1, len(code))
    order = np.argsort(narrow(code), kind="stable")
    same = code[order[1:]] == code[order[:-1]]
    again[order[:-1][same]] = order[1:][same]
    begin = np.flatnonzero(opens)
    again[begin[1:] - 1] = np.minimum(again[begin[1:] - 1], begin[1:])
    # The first place after each one at which something comes again, or the next run begins.
    following = np.minimum.accumulate(again[::-1])[::-1]
    at, end, found = begin, np.append(begin[1:], len(code)), [begin[:0]]
    # All runs at once, until few are left, which may be long.
    while len(at) > _FEW:
        at = following[at]
        at, end = at[at < end], end[at < end]
        found.append(at)
    after, rest = following.tolist() if len(at) else [], list[int]()
    for place, stop in zip(at.tolist(), end.tolist(), strict=True):
        while (place := after[place]) < stop:
            rest.append(place)
    return np.concatenate((*found, np.array(rest, np.int64)))


def joined(facts: Facts, found: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """(n, 2) intervals of the kernels of some chains."""
    work = facts.once(computing)
    rows = np.concatenate(found) if found else np.empty(0, np.int64)
    return picked(work.start, work.end, rows)


def names_under(facts: Facts, op: Rows, pattern: str) -> NDArray[np.bool_]:
    """Whether each operator (place in `Context.op_nest`, -1 for none), or one around it, has a name that fits."""
    return contains(facts.context.once(_named, pattern), op)


def _named(context: Context, pattern: str) -> Intervals:
    """Places of the operators whose names fit, and of those inside them: they follow in the tree, up to a stop."""
    place = np.flatnonzero(context.trace.strings.matches(context.op_names, sought(pattern)))
    return merge(place, context.op_nest.stop[place].astype(np.int64))


def inside_ranges(facts: Facts, track: NDArray[np.int32], t: NDArray[np.int64], pattern: str) -> NDArray[np.bool_]:
    """Whether each instant of a thread lies in an annotation or Python function whose name fits."""
    context, fits = facts.context, re.compile(pattern)
    events = context.trace.events
    rows = facts.named((EventKind.ANNOTATION, EventKind.PYTHON), fits)
    found = np.zeros(len(t), np.bool_)
    for thread in distinct(track).tolist() if len(rows) else ():
        own = np.flatnonzero(track == thread)
        lane = context.once(user_frames).track(thread)
        here = rows[
            (events.track[rows] == thread) | ((events.track[rows] == lane) & (context.kind[rows] == EventKind.PYTHON))
        ]
        found[own] = contains(events.active(here), t[own])
    return found
