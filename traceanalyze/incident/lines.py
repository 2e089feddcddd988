"""One line of a log taken apart: its time, the process that printed it, and what named groups in it say."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Mapping
from typing import NamedTuple

from traceanalyze.incident.evidence import YEARLESS, Event, Value
from traceanalyze.model.patterns import regex

MESSAGE = 400
"""Characters of a line that are kept as words."""


# --- Times -----------------------------------------------------------------------------------------------------------

_MONTHS = {name: at for at, name in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_ISO = regex(
    rb"(?<!\d)(\d{4})[-/](\d\d)[-/](\d\d)[T _-](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?:\.(\d{3}))?"
    rb"\s?(Z|[+-]\d\d:?\d\d(?!\d))?"
)
_GLOG = regex(rb"(?:^|[\s\[\]:])[IWEF](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6,9})")
_CTIME = regex(rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})")
_SYSLOG = regex(rb"^(?:<\d+>)?([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\S+) ")
_BOOT = regex(rb"^\[ *(\d{1,9})\.(\d{1,9})\]")


YEAR_2200 = 7_258_118_400
"""In Unix seconds: later times are none. Their nanoseconds would have no room."""


class Stamp(NamedTuple):
    """A time in a line."""

    ns: int
    clock: str
    host: str | None = None


def stamped(event: Event, stamp: Stamp | None) -> Event:
    """An event with a time, if there is one."""
    return event if stamp is None else event._replace(stamp_ns=stamp.ns, clock=stamp.clock)


def stamp_of(text: bytes) -> Stamp | None:
    """The first time in a line, of the forms that logs of jobs and kernels have."""
    head = text[:160]
    try:
        return _iso(head) or _glog(head) or _named_month(head) or _boot(head)
    except (ValueError, OverflowError, KeyError):
        return None


def _iso(head: bytes) -> Stamp | None:
    found = _ISO.search(head)
    if found is None:
        return None
    fraction = ((found[7] or b"") + (found[8] or b""))[:9].ljust(9, b"0")
    ns = _utc(*map(int, found.groups()[:6])) * 10**9 + int(fraction)
    zone = found[9]
    if zone is None:
        return Stamp(ns, "local")
    if zone != b"Z":
        seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        ns -= (seconds if zone[:1] == b"+" else -seconds) * 10**9
    return Stamp(ns, "utc")


def _glog(head: bytes) -> Stamp | None:
    found = _GLOG.search(head)
    if found is None:
        return None
    month, day, hour, minute, second = map(int, found.groups()[:5])
    return Stamp(_utc(1972, month, day, hour, minute, second) * 10**9 + int(found[6].ljust(9, b"0")[:9]), YEARLESS)


def _named_month(head: bytes) -> Stamp | None:
    found = _CTIME.search(head)
    if found is not None:
        day, hour, minute, second, year = map(int, found.groups()[1:])
        return Stamp(_utc(year, _MONTHS[found[1]], day, hour, minute, second) * 10**9, "local")
    found = _SYSLOG.match(head)
    if found is None:
        return None
    day, hour, minute, second = map(int, found.groups()[1:5])
    ns = _utc(1972, _MONTHS[found[1]], day, hour, minute, second) * 10**9
    return Stamp(ns, YEARLESS, text_of(found[6]))


def _boot(head: bytes) -> Stamp | None:
    found = _BOOT.match(head)
    return found and Stamp(int(found[1]) * 10**9 + int(found[2].ljust(9, b"0")[:9]), "boot")


def _utc(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61 and 1970 <= year < 2200):
        raise ValueError(year)
    return timegm((year, month, day, hour, minute, second))


# --- Heads of lines --------------------------------------------------------------------------------------------------

_CONTAINER = regex(rb"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?")
_RANK = regex(rb"\[rank(\d{1,7})\]:? ?")
_ROLE = regex(rb"\[[A-Za-z_]\w*?(\d{1,7})(?:\|\d+)?\]: ?")
LABELLED = regex(rb"(?m)^ {0,4}(\d{1,6}:) \[rank(\d{1,7})\]")
"""What srun puts before a line, and the rank beside it."""
_LABEL = regex(rb" {0,4}\d{1,6}: ")
_RAY = regex(rb"\([\w.:<> -]{1,80}\bpid=(\d{1,9})(?:, ip=[\d.]+)?\) ")


class Line(NamedTuple):
    """A line without what launchers put in front of it."""

    number: int
    body: bytes
    key: bytes
    """Lines with the same are of one process."""
    rank: int | None = None
    local_rank: int | None = None
    pid: int | None = None


def line_of(raw: bytes, number: int) -> Line:
    """A line taken apart."""
    at, rank, local, pid = 0, None, None, None
    key = b""
    if found := _CONTAINER.match(raw):
        at = found.end()
    if found := _LABEL.match(raw, at):
        at, key = found.end(), found[0].strip()
    if found := _RAY.match(raw, at):
        at, key, pid = found.end(), key + found[0], int(found[1])
    while raw[at : at + 1] == b"[":
        if found := _RANK.match(raw, at):
            rank = int(found[1])
        elif found := _ROLE.match(raw, at):
            local = int(found[1])
        else:
            break
        at, key = found.end(), key + found[0].strip()
    return Line(number, raw[at:], key, rank, local, pid)


# --- Words and numbers -----------------------------------------------------------------------------------------------


def text_of(raw: bytes) -> str:
    """Text of a log, whatever bytes are in it."""
    return raw.decode("utf-8", "replace").replace("\0", "")


def message_of(raw: bytes) -> str:
    """One line of it."""
    return " ".join(text_of(raw[: 2 * MESSAGE]).split())[:MESSAGE]


def bus_of(text: str) -> str:
    """A bus id as the kernel writes it: `0000:3b:00` of `00000000:3B:00.0`; empty where it is none."""
    found = _BUS.search(text)
    return "" if found is None else f"{int(found[1], 16):04x}:{found[2]}:{found[3]}".lower()


_BUS = regex(r"(?<![0-9a-fA-F:])([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?![0-9a-fA-F:])")
_UNITS = {"bytes": 0, "byte": 0, "b": 0, "kib": 10, "kb": 10, "mib": 20, "mb": 20, "gib": 30, "gb": 30, "tib": 40}


def size_of(text: str) -> int | None:
    """Bytes of `2.00 GiB`."""
    number, _, unit = text.strip().partition(" ")
    try:
        return int(float(number) * (1 << _UNITS[unit.strip().lower()]))
    except (ValueError, KeyError, OverflowError):
        return None


_INTEGER = regex(r"[+-]?\d{1,18}")
_FLOAT = regex(r"[+-]?\d+\.\d*(?:[eE][+-]?\d+)?")


_TEXTS = frozenset({"group", "device", "host", "peer", "task"})
"""Groups that stay texts where they are numbers."""


def data_of(groups: Mapping[str, bytes | None]) -> dict[str, Value]:
    """What named groups say."""
    data: dict[str, Value] = {}
    for name, raw in groups.items():
        if raw is None:
            continue
        text = text_of(raw).strip()
        if text == "<unknown>" or not text:
            continue
        if name in _TEXTS:
            data[name] = text
        elif name.endswith("_size"):
            size = size_of(text)
            if size is not None:
                data[name.removesuffix("_size")] = size
        elif name.endswith("_kb"):
            data[name.removesuffix("_kb")] = int(text) * 1024
        elif _INTEGER.fullmatch(text):
            data[name] = int(text)
        else:
            data[name] = float(text) if _FLOAT.fullmatch(text) else text[:MESSAGE]
    return data
