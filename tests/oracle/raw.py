"""A trace file as plain event records: `json.loads` of the whole text, one object an event, times in integer ns."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True, eq=False)
class Event:
    """A complete event, `[start, end)` in ns."""

    name: str
    cat: str
    start: int
    end: int
    pid: str
    tid: str
    order: int
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def thread(self) -> tuple[str, str]:
        return self.pid, self.tid


@dataclass(slots=True)
class Flow:
    phase: str
    cat: str
    id: str
    time: int
    thread: tuple[str, str]


@dataclass(slots=True)
class Raw:
    base: int
    events: list[Event]
    flows: list[Flow]
    malformed: int


def load(path: Path) -> Raw:
    """Everything with a duration and every flow arrow; raises ValueError where the file is no event trace."""
    document = json.loads(_text(path), strict=False, parse_float=str)
    listed = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(listed, list) or not any(isinstance(each, dict) and "ph" in each for each in listed):
        raise ValueError(f"{path}: no events")
    base = int(document.get("baseTimeNanoseconds") or 0) if isinstance(document, dict) else 0
    raw = Raw(base, [], [], 0)
    for order, record in enumerate(listed):
        if isinstance(record, dict):
            _add(raw, record, order)
    return raw


def _text(path: Path) -> str:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return data.decode("utf-8", "replace")


def _add(raw: Raw, record: dict[str, Any], order: int) -> None:
    phase = record.get("ph")
    if phase not in {"X", "s", "f"}:
        return
    start = nanoseconds(record.get("ts"))
    pid, tid = str(record.get("pid", "")), str(record.get("tid", ""))
    if phase != "X":
        if start is not None:
            raw.flows.append(Flow(phase, str(record.get("cat", "")), str(record.get("id")), start, (pid, tid)))
        return
    duration = nanoseconds(record.get("dur"))
    if start is None or duration is None or duration < 0:
        raw.malformed += 1
        return
    args = record.get("args")
    raw.events.append(
        Event(
            str(record.get("name", "")),
            str(record.get("cat", "")).lower(),
            start,
            start + duration,
            pid,
            tid,
            order,
            args if isinstance(args, dict) else {},
        )
    )


def nanoseconds(value: object) -> int | None:
    """Microseconds as written (number or string) to ns, None when that is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(value, int):
        return value * 1000
    whole, _, rest = value.partition(".")
    if len(rest) <= 3 and whole.isdecimal() and (rest.isdecimal() or not rest) and value.isascii():
        # As nearly all are written.
        return int(whole + rest.ljust(3, "0"))
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return round(number * 1000) if number.is_finite() else None
