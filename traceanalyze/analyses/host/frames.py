"""The user's line of Python at an instant: from recorded Python frames, else from the operator's call stack."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.nesting import Nest, innermost, nest_rows
from traceanalyze.model.columns import Rows, distinct_codes, rows_of
from traceanalyze.model.intervals import chunks
from traceanalyze.model.patterns import regex
from traceanalyze.model.trace import Flows, Trace
from traceanalyze.model.vocabulary import EventKind

_SOURCE_LINE = regex(r"(?P<file>[^;]*?\.py)\((?P<line>\d+)\): (?P<function>[^;]*)")
_FRAMEWORK = regex(
    r"(^|/)(site-packages|dist-packages|torch|torch_npu|torchvision|lib/python3[^/]*)/|^<|(^|/)(threading|contextlib|runpy|selectors|socket)\.py$"
)


def is_user_frame(name: str) -> bool:
    """A Python source line outside the standard library, torch and installed packages."""
    found = _SOURCE_LINE.match(name)
    return found is not None and _FRAMEWORK.search(found["file"]) is None


def user_frame_of_stack(stack: str) -> str | None:
    """Innermost user frame of a recorded call stack (`file.py(12): f;file.py(3): g`, innermost first)."""
    for entry in stack.split(";"):
        if is_user_frame(entry.strip()):
            return entry.strip()
    return None


def python_rows(context: Context, test: Callable[[str], object]) -> NDArray[np.int64]:
    """Python events whose name passes a test; they are half of a large trace, of few names."""
    return _rows_named(context.trace, context.kind, context.once(_python)[0], test)


def _rows_named(
    trace: Trace, kind: NDArray[np.uint8], names: NDArray[np.int64], test: Callable[[str], object]
) -> NDArray[np.int64]:
    strings = trace.strings
    passing = [code for code, text in zip(names.tolist(), strings.texts(names), strict=True) if test(text)]
    if not passing:
        return np.zeros(0, np.int64)
    table = np.zeros(len(strings), np.bool_)
    table[passing] = True
    name, found = trace.events.name, []
    for part in chunks(len(kind)):
        rows = rows_of(kind[part], EventKind.PYTHON)
        found.append(part.start + rows[table.take(name[part][rows])])
    return np.concatenate(found)


def _python(context: Context) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Names of Python events, and the threads that have any."""
    trace = context.trace
    named, busy = np.zeros(len(trace.strings), np.bool_), np.zeros(len(trace.tracks), np.bool_)
    for part in chunks(len(trace.events)):
        rows = rows_of(context.kind[part], EventKind.PYTHON)
        named[trace.events.name[part][rows]] = busy[trace.events.track[part][rows]] = True
    return np.flatnonzero(named), np.flatnonzero(busy)


class Frames:
    """User frames of a trace by thread; they are nested when first asked for."""

    def __init__(self, context: Context) -> None:
        # What is let go of the trace is not kept here.
        trace, kind = context.trace, context.kind
        flows = Flows._make(column[:0].copy() for column in trace.flows)
        self._trace, self._kind = replace(trace, events=replace(trace.events, fields={}), flows=flows), kind
        self._names, tracks = context.once(_python)
        self.recorded = len(tracks) > 0
        # Python events of an unidentified thread (process 0, thread 0) can only belong to the one thread there is.
        self._only = int(tracks[0]) if len(tracks) == 1 else None

    @cached_property
    def nest(self) -> Nest:
        """Call trees of the user frames alone."""
        return nest_rows(self._trace, _rows_named(self._trace, self._kind, self._names, is_user_frame))

    def track(self, track: int) -> int:
        """Thread whose frames are those of a host thread."""
        return track if self._only is None else self._only

    def anywhere_at(self, track: int, t: NDArray[np.int64]) -> list[str | None]:
        """Innermost function of whatever library on a thread at each instant."""
        every = nest_rows(self._trace, rows_of(self._kind, EventKind.PYTHON))
        return _names(self._trace, _rows(every, self.track(track), t))

    def at(self, track: NDArray[np.signedinteger[Any]] | int, t: NDArray[np.int64]) -> list[str | None]:
        """Innermost user frame on a thread, or on a thread each, at each instant."""
        own = track if self._only is None else np.where(np.asarray(track) < 0, -1, self._only)
        return _names(self._trace, _rows(self.nest, own, t))


def user_frames(context: Context) -> Frames:
    """User frames of a trace."""
    return Frames(context)


def ops_at(context: Context, track: NDArray[np.signedinteger[Any]] | int, t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the innermost operator of a thread, or of a thread each, at each instant; -1 for none."""
    return _rows(context.op_nest, track, t)


def locate(
    context: Context, track: NDArray[np.signedinteger[Any]] | int, t: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[str | None], list[str | None]]:
    """Innermost operator (row, name) and user frame of a thread, or of a thread each (-1: unknown), at each instant."""
    rows, frames = ops_at(context, track, t), context.once(user_frames)
    lines = frames.at(track, t) if frames.recorded else stack_frames(context.trace, rows)
    return rows, _names(context.trace, rows), lines


def stack_frames(trace: Trace, rows: NDArray[np.int64]) -> list[str | None]:
    """Innermost user frame of the call stacks that some operators (rows, -1 for none) were recorded with."""
    stack = trace.events.fields.get("stack")
    if stack is None:
        return [None] * len(rows)
    codes = stack.take(rows, 0).tolist()
    known = {code: user_frame_of_stack(trace.strings.text(code)) for code in set(codes)}
    return [known[code] for code in codes]


def _rows(nested: Nest, track: NDArray[np.signedinteger[Any]] | int, t: NDArray[np.int64]) -> Rows:
    """Row of the innermost event of a nest, -1 for none."""
    return nested.rows(innermost(nested, np.broadcast_to(np.asarray(track), len(t)), t))


def _names(trace: Trace, rows: NDArray[np.int64]) -> list[str | None]:
    codes, known = np.full(len(rows), -1, np.int64), rows >= 0
    codes[known] = trace.events.name[rows[known]]
    return names_of(trace, codes)


def names_of(trace: Trace, codes: NDArray[np.signedinteger[Any]]) -> list[str | None]:
    """The texts of some names, None for -1."""
    several, of = distinct_codes(codes + 1, len(trace.strings) + 1)
    names = [None if code == 0 else trace.strings.text(code - 1) for code in several.tolist()]
    return [names[at] for at in of.tolist()]


def lines_in(context: Context, track: int, spans: NDArray[np.int64]) -> dict[str, int]:
    """Lines of the program in the middle of (n, 2) stretches of a thread, and the length of these, longest first.

    Functions of whatever library, where no stretch lies in a line of the program.
    """
    frames, middle, taken = context.once(user_frames), spans.mean(axis=1).astype(np.int64), dict[str, int]()
    lines = locate(context, track, middle)[2]
    if frames.recorded and not any(lines):
        lines = frames.anywhere_at(track, middle)
    for line, time in zip(lines, (spans[:, 1] - spans[:, 0]).tolist(), strict=True):
        if line is not None:
            taken[line] = taken.get(line, 0) + time
    return dict(sorted(taken.items(), key=lambda one: -one[1]))
