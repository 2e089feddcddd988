"""Host operators, ranges and runtime calls of both sides by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceanalyze import calltree
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.nesting import nest_rows
from traceanalyze.analyses.operators import added
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.compare.labels import common_labels, plain_api
from traceanalyze.compare.names import BACKWARD_SUFFIX, canonical, names_backward
from traceanalyze.compare.results import ApiPair, ApiSide
from traceanalyze.model.classify import is_data_loading, is_step_marker
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.compare.options import CompareOptions

DATA_LOADER = "enumerate(DataLoader)"
"""Stands for the waiting for every kind of data loader."""


class _Host(NamedTuple):
    """Host calls of one side by name code."""

    names: list[str]
    of: NDArray[np.int64]
    """Position in `names` of each call."""
    stop: NDArray[np.int32]
    time: NDArray[np.int64]
    own: NDArray[np.int64]
    counted: NDArray[np.bool_]


def api_pairs(base: Context, candidate: Context, options: CompareOptions) -> tuple[ApiPair, ...] | NotMeasured:
    """Calls begun in the steps by name, largest change of their own time per step first.

    Times are sums over threads. A call's own time is what lies in none of the calls inside it on its thread, so it is
    never negative and the rows of a side sum to its host time. Of calls inside calls of the same name only the outer
    one counts in the total. Names are matched as recorded; else as canonical operators, and as runtime calls without
    the vendor's prefix. All data loaders are one row. NotMeasured if neither side has host calls.
    """
    sides = [_host(context) for context in (base, candidate)]
    if not any(side.names for side in sides):
        return NotMeasured("no_host_ops")

    def operator(name: str) -> str:
        return canonical(name, options) + (BACKWARD_SUFFIX if names_backward(name) else "")

    label = common_labels(sides[0].names, sides[1].names, (plain_api, True), (operator, True))
    mapped = {name: options.op_name_map.get(own, own) for name, own in label.items()}
    old, new = (_sums(side, mapped) for side in sides)
    rows = [ApiPair(name, old.get(name), new.get(name)) for name in old | new]
    steps = len(base.steps), len(candidate.steps)
    rows.sort(key=lambda row: (-abs(_own(row.candidate) * steps[0] - _own(row.base) * steps[1]), row.name))
    return tuple(rows)


def _own(side: ApiSide | None) -> int:
    return 0 if side is None else side.own


def _host(context: Context) -> _Host:
    """All calls of all threads, without step markers, which are no calls."""
    classify, strings = context.options.classify, context.trace.strings
    rows = np.flatnonzero(np.isin(context.kind, (EventKind.HOST_OP, EventKind.ANNOTATION, EventKind.API)))
    marker = strings.lookup(context.trace.events.name[rows], lambda text: is_step_marker(text, classify))
    nested = nest_rows(context.trace, rows[marker == 0], context.kind)
    code = context.trace.events.name[nested.row]
    found = group(code)
    names = [strings.text(int(code[first])) for first in found.first.tolist()]
    names = [DATA_LOADER if is_data_loading(name, classify) else name for name in names]
    time = context.trace.events.dur[nested.row]
    return _Host(names, found.of, nested.stop, time, nested.own, nested.begun_in(context.host_windows))


def _sums(side: _Host, label: Mapping[str, str]) -> dict[str, ApiSide]:
    position = {name: index for index, name in enumerate(dict.fromkeys(label[name] for name in side.names))}
    if not position:
        return {}
    of = np.array([position[label[name]] for name in side.names], np.int64)[side.of]
    size = len(position)
    outer = calltree.outermost(side.stop, of.astype(np.int32), size)
    count = added(of, side.counted, size).tolist()
    total = added(of, side.time * (side.counted & outer), size).tolist()
    own = added(of, side.own * side.counted, size).tolist()
    return {
        name: ApiSide(number, time, alone)
        for name, number, time, alone in zip(position, count, total, own, strict=True)
        if number
    }
