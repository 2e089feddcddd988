"""Rows of a snapshot (dictionaries) as columns, with every value checked."""

import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.patterns import regex
from traceanalyze.model.snapshot import Action, Annotations, Blocks, Frame, History, Segments, Stacks, State

_ORIGIN = regex(r'File "(?P<file>[^"]+)", line (?P<line>\d{1,9}), in (?P<name>\S+)')
_DEEPEST = 64
"""Lines of the program that a node of a graph stands for at most; a file may claim any number."""
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

    def codes(self, rows: Iterable[dict[str, Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Stack and call of each row: -1 where the row has no frames."""
        rows = list(rows)
        ids = np.fromiter((id(row.get("frames")) for row in rows), np.int64, len(rows))
        lists, first, of = np.unique(ids, return_index=True, return_inverse=True)
        # Numbered as they first appear: where lists lie in memory differs from run to run.
        each = np.zeros(len(lists), np.int32)
        for place in np.argsort(first).tolist():
            each[place] = self.code(rows[first[place]].get("frames"))
        stack = each[of]
        return stack, np.where(ids == id(None), -1, of).astype(np.int32) if self._identity else stack

    def code(self, frames: object) -> int:
        """Code of one stack."""
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
            stack = tuple(chain.from_iterable(map(self._with_origin, frames)))
            code = self._stack_of[key] = self._stacks.setdefault(stack, len(self._stacks))
        return code

    def _with_origin(self, frame: object) -> Iterator[int]:
        """A frame; before that of a compiled graph the lines of the program that its node stands for."""
        origin = frame.get("fx_original_trace") if isinstance(frame, dict) else None
        if isinstance(origin, str):
            for found in reversed([*_ORIGIN.finditer(origin)][-_DEEPEST:]):
                made = Frame(found["name"], found["file"], int(found["line"]))
                yield self._frames.setdefault(made, len(self._frames))
        yield self._frame(frame)

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

ACTIONS = {action.name.lower(): int(action) for action in Action if action not in {Action.NOTE, Action.UNKNOWN}}
ACTIONS |= {"user_defined": int(Action.NOTE), "annotate": int(Action.NOTE), "workspace_snapshot": int(Action.NOTE)}
_STATES = {
    "inactive": int(State.INACTIVE),
    "active_allocated": int(State.ACTIVE),
    "active_pending_free": int(State.PENDING_FREE),
    "active_awaiting_free": int(State.PENDING_FREE),
}


BYTES, ADDRESS, TIME, NUMBER = range(1 << 42), range(1 << 62), range(1 << 53), range(-(1 << 63), 1 << 63)
"""What members may be: no device has 4 TiB, addresses have room for sizes behind them, times are µs."""
HIGH = range((1 << 64) - (1 << 62), 1 << 64)
"""Addresses of the upper half, as Intel's GPUs have: negative in columns, which keeps order and distance."""


def numbers(
    rows: Rows, key: str, where: str, *, default: int | None = None, within: range = NUMBER
) -> NDArray[np.int64]:
    """One whole-number member of each row; `default` stands for a missing one, which must be there where that is None.

    `where` is what an error calls the rows.
    """
    known = {type(row.get(key, default)) for row in rows}
    if known - {int}:
        raise _bad_member(rows, key, where, default, within)
    try:
        found = np.fromiter((row.get(key, default) for row in rows), np.int64, len(rows))
    except OverflowError:
        values = [row.get(key, default) for row in rows]
        if within is ADDRESS and all(value in ADDRESS or value in HIGH for value in values):
            return np.array(values, np.uint64).astype(np.int64)
        raise _bad_member(rows, key, where, default, within) from None
    least = within[0] if default is None else min(within[0], default)
    if len(found) and (found.min() < least or found.max() > within[-1]):
        raise _bad_member(rows, key, where, default, within)
    return found


def _bad_member(rows: Rows, key: str, where: str, default: int | None, within: range) -> InputError:
    """Names the first row whose member is missing or not a whole number that fits."""
    for index, row in enumerate(rows):
        value = row.get(key, default)
        if type(value) is int and (value in within or value == default):
            continue
        known = (where, index, key)
        if value is None:
            return InputError('{where} {index}: it has no "{key}"; {advice}', *known, _CHANGED)
        if type(value) is not int:
            return InputError(
                '{where} {index}: it has "{key}" = {value}, not a whole number; {advice}',
                *known,
                shown(value),
                _CHANGED,
            )
        most = within[-1]
        return InputError(
            '{where} {index}: it has "{key}" = {value}, not a number from {least} to {most}; {advice}',
            *(*known, shown(value), within[0], most, _CHANGED),
        )
    return InputError('{where}: "{key}" cannot be read; {advice}', where, key, _CHANGED)


def shown(value: object) -> str:
    """The beginning of any value, however large; Python writes no integers of thousands of digits."""
    if type(value) is int and value.bit_length() > 64:
        return f"{value >> value.bit_length() - 64:#x}…"
    try:
        return reprlib.repr(value)[:40]
    except ValueError:
        return type(value).__name__


def segments(rows: Rows, pools: dict[tuple[int, int], int], where: str) -> Segments:
    """Segments of one device."""
    return Segments(
        address=numbers(rows, "address", where, within=ADDRESS),
        size=numbers(rows, "total_size", where, within=BYTES),
        allocated=numbers(rows, "allocated_size", where, default=-1, within=BYTES),
        active=numbers(rows, "active_size", where, default=-1, within=BYTES),
        requested=numbers(rows, "requested_size", where, default=-1, within=BYTES),
        stream=numbers(rows, "stream", where, default=0),
        pool=np.array([pool_index(row.get("segment_pool_id"), pools) for row in rows], np.int32),
        large=np.array([row.get("segment_type") != "small" for row in rows], np.bool_),
        expandable=np.array([row.get("is_expandable") is True for row in rows], np.bool_),
    )


def pool_index(value: object, pools: dict[tuple[int, int], int]) -> int:
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
    size = numbers(rows, "size", where, within=BYTES)
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
        address = numbers(rows, "address", where, within=ADDRESS)
    state = np.array([_STATES.get(one, 255) for one in _texts(rows, "state", where)], np.uint8)
    if (state == 255).any():
        odd = int(np.argmax(state == 255))
        told = (where, odd, shown(rows[odd].get("state")))
        raise InputError("{where} {index}: it has the unknown state {state}; update traceanalyze", *told)
    return Blocks(
        segment=segment,
        address=address,
        size=size,
        requested=numbers(requested, "requested_size", where, within=BYTES),
        state=state,
        stack=stacks.codes(row if "frames" in row else old for row, old in zip(rows, legacy, strict=True))[0],
    )


def _texts(rows: Rows, key: str, where: str) -> list[str]:
    """A text of each row; the first row with something else is named."""
    found = [row.get(key, "") for row in rows]
    if {type(each) for each in found} - {str}:
        odd = next(index for index, each in enumerate(found) if type(each) is not str)
        told = (where, odd, key, shown(found[odd]), _CHANGED)
        raise InputError('{where} {index}: it has "{key}" = {value}, not a text; {advice}', *told)
    return found


def _newest(row: dict[str, Any]) -> dict[str, Any]:
    """Newest entry of the history of a block of torch 1.13–2.0; empty elsewhere."""
    history = row.get("history")
    newest = history[0] if isinstance(history, list) and history else None
    return newest if isinstance(newest, dict) else {}


def history(rows: Rows, stacks: StackTable, pools: dict[tuple[int, int], int], where: str) -> History:
    """Events of one device, in the order of the file."""
    names = _texts(rows, "action", where)
    unknown = Counter(name[:40] for name in names if name not in ACTIONS)
    action = np.array([ACTIONS.get(name, int(Action.UNKNOWN)) for name in names], np.uint8)
    stack, call = stacks.codes(rows)
    free = {index: rows[index].get("device_free") for index in np.flatnonzero(action == Action.OOM).tolist()}
    timed = all("time_us" in row for row in rows)
    told, texts = _told(rows)
    return History(
        action=action,
        address=numbers(rows, "addr", where, default=0, within=ADDRESS),
        size=numbers(rows, "size", where, within=BYTES),
        stream=numbers(rows, "stream", where, default=0),
        time=numbers(rows, "time_us", where, within=TIME) * 1000 if timed and rows else None,
        stack=stack,
        call=call,
        device_free={index: value for index, value in free.items() if type(value) is int and value in BYTES},
        pool=_event_pools(rows, pools),
        unknown=dict(unknown),
        told=told,
        texts=texts,
    )


def _told(rows: Rows) -> tuple[NDArray[np.int32] | None, tuple[tuple[str, str], ...]]:
    """What the program and torch.compile say of each event, as far as they are texts."""
    if all(row.keys().isdisjoint(("user_metadata", "compile_context")) for row in rows):
        return None, ()
    found: dict[tuple[str, str], int] = {}
    pairs = ((row.get("user_metadata"), row.get("compile_context")) for row in rows)
    texts = (
        (said if type(said) is str else "", unit if type(unit) is str and unit != "N/A" else "") for said, unit in pairs
    )
    return np.array([found.setdefault(each, len(found)) for each in texts], np.int32), tuple(found)


def _event_pools(rows: Rows, pools: dict[tuple[int, int], int]) -> NDArray[np.int32] | None:
    key = next((key for key in ("pool_id", "segment_pool_id") if rows and key in rows[0]), None)
    return None if key is None else np.array([pool_index(row.get(key), pools) for row in rows], np.int32)


def user_ranges(rows: Rows, where: str) -> Annotations | None:
    """User ranges; rows without a name or a stage say nothing and are left out."""
    named = [row for row in rows if isinstance(row.get("name"), str) and row.get("stage") in ("START", "END")]
    if not named:
        return None
    return Annotations(
        start=np.array([row["stage"] == "START" for row in named], np.bool_),
        name=tuple(row["name"] for row in named),
        time=numbers(named, "time_us", where, within=TIME) * 1000,
    )
