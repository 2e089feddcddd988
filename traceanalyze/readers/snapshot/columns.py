"""Rows of a snapshot (dictionaries) as columns, with every value checked."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.snapshot import Action, Annotations, Blocks, Frame, History, Segments, Stacks, State

_CHANGED = Phrase("this is not an allocator snapshot, or it was changed")


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
        # Numbered as they first appear: where lists lie in memory differs from run to run.
        each = np.zeros(len(lists), np.int32)
        for place in np.argsort(first).tolist():
            each[place] = self._stack(rows[first[place]].get("frames"))
        stack = each[of]
        call[call == id(None)] = -1
        return stack, call if self._identity else stack.astype(np.int64)

    def _stack(self, frames: object) -> int:
        if frames is None:
            return -1
        if not isinstance(frames, list | tuple):
            raise InputError(
                "{name}: a call stack is {type}, not a list; dump it again", self._name, type(frames).__name__
            )
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
                raise InputError(
                    "{name}: a stack frame is {type}, not a dict; dump it again", self._name, type(frame).__name__
                )
            line = frame.get("line")
            made = Frame(
                str(frame.get("name") or ""),
                str(frame.get("filename") or ""),
                line if isinstance(line, int) and 0 <= line < 2**31 else 0,
            )
            code = self._frame_of[id(frame)] = self._frames.setdefault(made, len(self._frames))
        return code

    def stacks(self) -> Stacks:
        """All stacks so far."""
        return Stacks(tuple(self._frames), tuple(self._stacks))


Rows = list[dict[str, Any]]

_ACTIONS = {action.name.lower(): int(action) for action in Action if action not in {Action.NOTE, Action.UNKNOWN}}
_ACTIONS |= {"user_defined": int(Action.NOTE), "annotate": int(Action.NOTE), "workspace_snapshot": int(Action.NOTE)}
_STATES = {
    "inactive": int(State.INACTIVE),
    "active_allocated": int(State.ACTIVE),
    "active_pending_free": int(State.PENDING_FREE),
    "active_awaiting_free": int(State.PENDING_FREE),
}


def numbers(rows: Rows, key: str, where: str, *, default: int | None = None) -> NDArray[np.int64]:
    """One whole-number member of each row; `default` stands for a missing one, which must be there where that is None.

    `where` is what an error calls the rows.
    """
    known = {type(row.get(key, default)) for row in rows}
    if known - {int}:
        raise _bad_member(rows, key, where, optional=default is not None)
    try:
        return np.fromiter((row.get(key, default) for row in rows), np.int64, len(rows))
    except OverflowError:
        raise _bad_member(rows, key, where, optional=default is not None) from None


def _bad_member(rows: Rows, key: str, where: str, *, optional: bool) -> InputError:
    """Names the first row whose member is missing or not a whole number that fits."""
    for index, row in enumerate(rows):
        value = row.get(key)
        if (value is None and optional) or (type(value) is int and -(2**63) <= value < 2**63):
            continue
        known = (where, index, key)
        if value is None:
            return InputError('{where} {index}: it has no "{key}"; {advice}', *known, _CHANGED)
        shown = str(value)[:40]
        return InputError(
            '{where} {index}: it has "{key}" = {value}, not a whole number; {advice}', *known, shown, _CHANGED
        )
    return InputError('{where}: "{key}" cannot be read; {advice}', where, key, _CHANGED)


def segments(rows: Rows, pools: dict[tuple[int, int], int], where: str) -> Segments:
    """Segments of one device."""
    return Segments(
        address=numbers(rows, "address", where),
        size=numbers(rows, "total_size", where),
        allocated=numbers(rows, "allocated_size", where, default=-1),
        active=numbers(rows, "active_size", where, default=-1),
        requested=numbers(rows, "requested_size", where, default=-1),
        stream=numbers(rows, "stream", where, default=0),
        pool=np.array([_pool(row.get("segment_pool_id"), pools) for row in rows], np.int32),
        large=np.array([row.get("segment_type") != "small" for row in rows], np.bool_),
        expandable=np.array([row.get("is_expandable") is True for row in rows], np.bool_),
    )


def _pool(value: object, pools: dict[tuple[int, int], int]) -> int:
    """Index of a pool id; a missing one is the default pool."""
    if isinstance(value, list | tuple) and len(value) == 2 and all(type(part) is int for part in value):
        return pools.setdefault((value[0], value[1]), len(pools))
    return 0


def blocks(groups: Sequence[Rows], start: NDArray[np.int64], stacks: StackTable, where: str) -> Blocks:
    """Blocks of one device's segments; `groups` are those of each segment, `start` the segments' addresses.

    Files of torch ≤ 2.0 state no addresses: a block begins where the one before it ends.
    """
    rows = [row for group in groups for row in group]
    counts = np.array([len(group) for group in groups], np.int64)
    segment = np.repeat(np.arange(len(groups), dtype=np.int32), counts)
    size = numbers(rows, "size", where)
    legacy = [_newest(row) for row in rows]
    requested = [
        {"requested_size": row.get("requested_size", old.get("real_size", row["size"]))}
        for row, old in zip(rows, legacy, strict=True)
    ]
    if rows and "address" not in rows[0]:
        before = np.cumsum(size) - size
        first = np.repeat(np.cumsum(counts) - counts, counts)
        address = start[segment] + before - before[first]
    else:
        address = numbers(rows, "address", where)
    state = np.array([_STATES.get(row.get("state", ""), 255) for row in rows], np.uint8)
    if (state == 255).any():
        odd = rows[int(np.argmax(state == 255))].get("state")
        raise InputError("{where}: a block has the unknown state {state!r}; update traceanalyze", where, str(odd)[:40])
    return Blocks(
        segment=segment,
        address=address,
        size=size,
        requested=numbers(requested, "requested_size", where),
        state=state,
        stack=stacks.codes(row if "frames" in row else old for row, old in zip(rows, legacy, strict=True))[0],
    )


def _newest(row: dict[str, Any]) -> dict[str, Any]:
    """Newest entry of the history of a block of torch 1.13–2.0; empty elsewhere."""
    history = row.get("history")
    newest = history[0] if isinstance(history, list) and history else None
    return newest if isinstance(newest, dict) else {}


def history(rows: Rows, stacks: StackTable, pools: dict[tuple[int, int], int], where: str) -> History:
    """Events of one device, in the order of the file."""
    names = [row.get("action") for row in rows]
    unknown = Counter(str(name)[:40] for name in names if name not in _ACTIONS)
    action = np.array([_ACTIONS.get(str(name), int(Action.UNKNOWN)) for name in names], np.uint8)
    stack, call = stacks.codes(rows)
    free = {index: rows[index].get("device_free") for index in np.flatnonzero(action == Action.OOM).tolist()}
    timed = all("time_us" in row for row in rows)
    return History(
        action=action,
        address=numbers(rows, "addr", where, default=0),
        size=numbers(rows, "size", where),
        stream=numbers(rows, "stream", where, default=0),
        time=numbers(rows, "time_us", where) * 1000 if timed and rows else None,
        stack=stack,
        call=call,
        device_free={index: value for index, value in free.items() if type(value) is int},
        pool=_event_pools(rows, pools),
        unknown=dict(unknown),
    )


def _event_pools(rows: Rows, pools: dict[tuple[int, int], int]) -> NDArray[np.int32] | None:
    key = next((key for key in ("pool_id", "segment_pool_id") if rows and key in rows[0]), None)
    return None if key is None else np.array([_pool(row.get(key), pools) for row in rows], np.int32)


def user_ranges(rows: Rows, where: str) -> Annotations | None:
    """User ranges; rows without a name or a stage say nothing and are left out."""
    named = [row for row in rows if isinstance(row.get("name"), str) and row.get("stage") in {"START", "END"}]
    if not named:
        return None
    return Annotations(
        start=np.array([row["stage"] == "START" for row in named], np.bool_),
        name=tuple(row["name"] for row in named),
        time=numbers(named, "time_us", where) * 1000,
    )
