"""Call stacks of a snapshot as numbers: frames are shared objects in the file, lists of them are one a malloc call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from traceanalyze.errors import InputError
from traceanalyze.model.snapshot import Frame, Stacks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


class StackTable:
    """Collects the stacks of all rows of one file; rows must stay alive until `stacks` has been taken.

    Equal frames are found by the identity of their dictionaries first: of 668,160 lists in a real file 115 differ.
    """

    def __init__(self, name: str, *, identity: bool) -> None:
        self._name = name
        self._identity = identity
        self._frames: dict[Frame, int] = {}
        self._frame_of: dict[int, int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._stack_of: dict[tuple[int, ...], int] = {}

    def codes(self, rows: Iterable[dict[str, Any]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Stack and call of each row: -1 where the row has no frames."""
        rows = list(rows)
        call = np.fromiter((id(row.get("frames")) for row in rows), np.int64, len(rows))
        lists, first, of = np.unique(call, return_index=True, return_inverse=True)
        each = np.fromiter((self._stack(rows[index].get("frames")) for index in first.tolist()), np.int32, len(lists))
        stack = each[of]
        call[call == id(None)] = -1
        return stack, call if self._identity else stack.astype(np.int64)

    def _stack(self, frames: object) -> int:
        if frames is None:
            return -1
        if not isinstance(frames, list | tuple):
            raise InputError(f"{self._name}: a call stack is {type(frames).__name__}, not a list; dump it again")
        if not frames:
            return -1
        key = tuple(map(id, frames))
        code = self._stack_of.get(key)
        if code is None:
            stack = tuple(map(self._frame, frames))
            code = self._stack_of[key] = self._stacks.setdefault(stack, len(self._stacks))
        return code

    def _frame(self, frame: object) -> int:
        code = self._frame_of.get(id(frame))
        if code is None:
            if not isinstance(frame, dict):
                raise InputError(f"{self._name}: a stack frame is {type(frame).__name__}, not a dict; dump it again")
            line = frame.get("line")
            made = Frame(
                str(frame.get("name") or ""),
                str(frame.get("filename") or ""),
                line if isinstance(line, int) and 0 <= line < 2**31 else 0,
            )
            code = self._frame_of[id(frame)] = self._frames.setdefault(made, len(self._frames))
        return code

    def stacks(self) -> Stacks:
        """All stacks seen so far."""
        return Stacks(tuple(self._frames), tuple(self._stacks), self._identity)
