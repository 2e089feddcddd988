"""The user's line of Python at an instant: from recorded Python frames, else from the operator's call stack."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.nesting import Nest, innermost_at, nest_rows
from traceanalyze.model.columns import distinct
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context
    from traceanalyze.model.trace import Trace

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


class Frames:
    """User frames of a trace by thread; they are nested when first asked for."""

    def __init__(self, trace: Trace, kind: NDArray[np.uint8]) -> None:
        self._trace = trace
        rows = np.flatnonzero(kind == EventKind.PYTHON)
        self.recorded = len(rows) > 0
        user = trace.strings.lookup(trace.events.name[rows], is_user_frame).astype(np.bool_)
        self._rows = rows[user]
        tracks = distinct(trace.events.track[rows])
        # Python events of an unidentified thread (process 0, thread 0) can only belong to the one thread there is.
        self._only = int(tracks[0]) if len(tracks) == 1 else None

    @cached_property
    def nest(self) -> Nest:
        """Call trees of the user frames alone."""
        return nest_rows(self._trace, self._rows)

    def track(self, track: int) -> int:
        """Thread whose frames are those of a host thread."""
        return track if self._only is None else self._only

    def at(self, track: int, t: NDArray[np.int64]) -> list[str | None]:
        """Innermost user frame on a thread at each instant."""
        names = self._trace.events.name
        return [
            self._trace.strings.text(int(names[self.nest.row[i]])) if i >= 0 else None
            for i in innermost_at(self.nest, t, self.track(track)).tolist()
        ]


def user_frames(context: Context) -> Frames:
    """User frames of a trace."""
    return Frames(context.trace, context.kind)


def ops_at(context: Context, track: int, t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the innermost operator of a thread at each instant, -1 for none."""
    at = innermost_at(context.op_nest, t, track)
    rows = np.full(len(t), -1, np.int64)
    rows[at >= 0] = context.op_nest.row[at[at >= 0]]
    return rows


def locate(
    context: Context, track: int, t: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[str | None], list[str | None]]:
    """Innermost operator (row, name) and user frame of a thread at each instant."""
    rows, frames = ops_at(context, track, t), context.once(user_frames)
    events, strings = context.trace.events, context.trace.strings
    names = [strings.text(int(events.name[row])) if row >= 0 else None for row in rows.tolist()]
    if frames.recorded:
        return rows, names, frames.at(track, t)
    stack = events.fields.get("stack")
    if stack is None:
        return rows, names, [None] * len(t)
    codes = stack.take(np.maximum(rows, 0), -1)
    known = {c: user_frame_of_stack(strings.text(c)) for c in set(codes.tolist()) if c >= 0}
    return rows, names, [known.get(c) if row >= 0 else None for c, row in zip(codes.tolist(), rows, strict=True)]
