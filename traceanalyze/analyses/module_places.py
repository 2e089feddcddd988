"""The modules of a model, and which of them a thread is in at an instant (definitions §11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.nesting import DEEPER, MOST_LEVELS, Nest, innermost, levels, nest_rows
from traceanalyze.frozen import frozen
from traceanalyze.model.columns import distinct
from traceanalyze.model.phases import hierarchy, is_layer_annotation, module_class, module_name
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.model.trace import Trace


@frozen
class Place:
    """A module by its place in the model."""

    path: str
    name: str
    """Class."""
    parent: int


@frozen
class Places:
    """All modules, parents before children, and the host events that tell when they run."""

    places: tuple[Place, ...]
    nest: Nest
    of: NDArray[np.int64]
    """Module of each event of the nest."""
    calls: bool
    """The events are calls of modules, not operators that name their module."""
    only: int | None
    """The one thread of the events, when it is not identified: all threads are looked up there."""

    def at(self, track: NDArray[np.int32], t: NDArray[np.int64]) -> NDArray[np.int64]:
        """Module that is running on a thread at an instant each, -1 for none."""
        if self.only is not None:
            track = np.full(len(track), self.only, np.int32)
        inner = innermost(self.nest, track, t)
        found = np.full(len(t), -1, np.int64)
        found[inner >= 0] = self.of[inner[inner >= 0]]
        return found


def module_places(context: Context) -> Places | None:
    """Modules from Python events; else from the operators' arguments; else from annotations; None without any."""
    trace, kind = context.trace, context.kind
    names = trace.events.name
    python = np.flatnonzero(kind == EventKind.PYTHON)
    rows = python[trace.strings.lookup(names[python], lambda text: module_name(text) is not None).astype(np.bool_)]
    if len(rows) == 0:
        found = _from_arguments(context)
        if found is not None:
            return found
        marks = np.flatnonzero(kind == EventKind.ANNOTATION)
        rows = marks[trace.strings.lookup(names[marks], is_layer_annotation).astype(np.bool_)]
    return _from_calls(trace, rows) if len(rows) else None


def _from_calls(trace: Trace, rows: NDArray[np.int64]) -> Places:
    """The path of a module is the chain of the calls around its own."""
    nested = nest_rows(trace, rows)
    name, of = trace.events.name[nested.row], np.full(len(nested), -1, np.int64)
    places: list[Place] = []
    found = levels(nested)
    for number, level in enumerate(found.places):
        told = name[level] if number < MOST_LEVELS else np.full(len(level), -1, np.int32)
        above = np.where(nested.parent[level] < 0, -1, of[nested.parent[level]])
        groups = group(above, told)
        of[level] = len(places) + groups.of
        for first in groups.first.tolist():
            code, parent = int(told[first]), int(above[first])
            text = DEEPER if code < 0 else trace.strings.text(code)
            own = module_name(text) or text
            path = own if parent < 0 else f"{places[parent].path}/{own}"
            places.append(Place(path, module_class(own), parent))
    of[found.deeper] = of[found.around]
    return Places(tuple(places), nested, of, calls=True, only=_only(trace, rows))


def _only(trace: Trace, rows: NDArray[np.int64]) -> int | None:
    """Python events of process 0, thread 0 belong to a thread that is not identified: to the only one there is."""
    tracks = distinct(trace.events.track[rows])
    one = int(tracks[0])
    return one if len(tracks) == 1 and trace.track_text(one) == ("0", "0") else None


def _from_arguments(context: Context) -> Places | None:
    """Operators recorded with `with_modules` carry the text of their module's path."""
    column = context.trace.events.fields.get("module")
    if column is None:
        return None
    text = context.trace.strings.text
    codes = np.full(len(context.trace.events), -1, np.int64)
    codes[column.row] = column.value
    chains = {code: hierarchy(text(code)) for code in distinct(column.value).tolist()}
    places: list[Place] = []
    known: dict[str, int] = {}
    ends: dict[int, int] = {}
    for code, chain in chains.items():
        parent = -1
        for name, klass in chain:
            path = name if parent < 0 else f"{places[parent].path}/{name}"
            if path not in known:
                known[path] = len(places)
                places.append(Place(path, klass, parent))
            parent = known[path]
        if chain:
            ends[code] = parent
    ops = np.flatnonzero(context.kind == EventKind.HOST_OP)
    rows = ops[np.isin(codes[ops], list(ends))]
    if len(rows) == 0:
        return None
    nested = nest_rows(context.trace, rows)
    of = np.array([ends[code] for code in codes[nested.row].tolist()], np.int64)
    return Places(tuple(places), nested, of, calls=False, only=None)
