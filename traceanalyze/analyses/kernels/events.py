"""Device work as one table: kernels, copies and fills with device, stream, class and repaired ends."""

import re

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.model.classify import ClassifyOptions, kernel_class, rocm_copy_kind
from traceanalyze.model.columns import MISSING, Rows, distinct, occurs, rows_of, short
from traceanalyze.model.intervals import chunks
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import DeviceClass, EventKind

OVERLAP_LIMIT_NS = 100_000
"""Same-stream overlap above this is an impossible duration (definitions §2.5; 150 public traces show ≤ 13 µs)."""
STRAY_LIMIT_NS = 1_000_000_000
"""An event that ends this long after every other one of the file has an impossible duration (definitions §2.5), one
that begins so long before every other one an impossible start (§18)."""

_NEVER = np.iinfo(np.int64).max
"""Later than anything."""


@dataclass(frozen=True, eq=False)
class DeviceEvents:
    """One row a device event, sorted by start (ties in file order). Times int64 ns."""

    row: NDArray[np.int32]
    """Row in `Trace.events`."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    device: NDArray[np.int64]
    stream: NDArray[np.int64]
    name: NDArray[np.int32]
    klass: NDArray[np.uint8]
    """`DeviceClass`"""
    kind: NDArray[np.uint8]
    """`EventKind`: kernel, memcpy or memset."""
    rule: NDArray[np.int32]
    """Index into `rules`: why it has its class."""
    rules: tuple[str, ...]
    repaired: int
    """Events whose impossible duration was clipped."""
    removed: int
    """Time so removed, ns."""

    def __len__(self) -> int:
        return len(self.row)

    def of(self, device: int, klass: DeviceClass) -> NDArray[np.int64]:
        """Positions of a device's events of a class."""
        return np.flatnonzero((self.device == device) & (self.klass == int(klass)))


def device_events(
    trace: Trace, kind: NDArray[np.uint8], row: NDArray[np.int64], options: ClassifyOptions
) -> DeviceEvents:
    """The device events of a trace, classified; `row`: theirs, in order of start, `kind`: that of every event."""
    start = trace.events.ts[row]
    end = start + trace.events.dur[row]
    device = numbers_of_devices(trace, row)
    stream = _number(trace, row, "stream", column=1)
    repaired_end = _clip_impossible(start, end, device, stream, _latest_other_end(trace, kind, end))
    repaired, removed = int((repaired_end < end).sum()), int((end - repaired_end).sum())
    name, classified = trace.events.name[row], _classify(trace, row, kind[row], options)
    return DeviceEvents(short(row), start, repaired_end, device, stream, name, *classified, repaired, removed)


_MOST_DEVICES = 1024
"""Of one process: what has more numbers than that tells no devices."""


def numbers_of_devices(trace: Trace, row: NDArray[np.int64]) -> NDArray[np.int64]:
    """Device of each of some events, -1 where neither its arguments nor its process tell."""
    found = _number(trace, row, "device", column=0)
    if _too_many(found):
        found[:] = -1
    return found


def devices_not_told(trace: Trace, row: Rows) -> int:
    """How many devices some events name, where these are so many that their numbers tell none; else 0."""
    return _too_many(_number(trace, row, "device", column=0))


def _too_many(device: NDArray[np.int64]) -> int:
    some = len(device) and device.max() - device.min() > _MOST_DEVICES
    count = len(distinct(device)) if some else 0
    return count if count > _MOST_DEVICES else 0


def _number(trace: Trace, row: NDArray[np.int64], field: str, *, column: int) -> NDArray[np.int64]:
    """Device or stream: the argument when it is one, else the last number in the text of the process or thread id."""
    value = trace.events.numbers(field, row)
    # Streams below zero are those of readers: of work that has none.
    absent = value < 0 if field == "device" else value == MISSING
    if absent.any():
        of_track = np.fromiter((_last_number(trace.track_text(t)[column]) for t in range(len(trace.tracks))), np.int64)
        value[absent] = of_track[trace.events.track[row[absent]]]
    return value


def _last_number(text: str) -> int:
    found = re.findall(r"\d+", text)
    return int(found[-1]) if found and len(found[-1]) < 18 else -1


def by_start(trace: Trace, kind: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Rows of all that stands on the rows of devices, in order of start."""
    row = rows_of(kind, EventKind.KERNEL, EventKind.DEVICE_ANNOTATION)
    return row[np.argsort(trace.events.ts[row], kind="stable")]


def begin_impossibly(trace: Trace, kind: NDArray[np.uint8], row: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of what stands at a time that was never set: it begins more than 1 s before all else, or after it.

    Of a device, all else are the events of the host; without these, or if all of the device is so early, only what
    begins at one instant is such. Of the host it is what begins at 0 and ends so long before what begins later.
    The profiler's own span of the recording holds such events as well, so it tells nothing. `row`: as `by_start` has
    those of devices.
    """
    ts, own = trace.events.ts, rows_of(kind, EventKind.OVERHEAD)
    others = np.ones(len(kind), np.bool_)
    others[row], others[own] = False, False
    first = int(ts.argmin()) if len(ts) else 0
    unset = np.flatnonzero(others & (ts <= 0)) if len(ts) and ts[first] <= 0 else row[:0]
    if len(unset):
        later = int(ts.min(where=ts > 0, initial=ts.max()))
        unset = unset[(ts + trace.events.dur)[unset] < later - STRAY_LIMIT_NS]
    others[unset] = False
    host = others.any()
    early = _device_begins_early(ts, row, others if host else None, first)
    late = _device_begins_late(trace, row, others) if host else early[:0]
    span = own[ts[own] <= ts[early].max(initial=np.iinfo(np.int64).min)]
    return distinct(np.concatenate((unset, early, late, span)))


def _device_begins_early(
    ts: NDArray[np.int64], row: NDArray[np.int64], others: NDArray[np.bool_] | None, first: int
) -> NDArray[np.int64]:
    start = ts[row]
    if not (np.diff(start) > STRAY_LIMIT_NS).any():
        return row[:0]
    host = None if others is None else int(ts[first] if others[first] else ts.min(where=others, initial=_NEVER))
    following = np.minimum(np.append(start[1:], start[-1]), start[-1] if host is None else host)
    ends = np.flatnonzero(following - start > STRAY_LIMIT_NS) + 1
    if host is not None and len(ends) and ends[-1] < len(row):
        return row[: ends[-1]]
    begins = np.concatenate(([0], ends[:-1]))
    instants = np.flatnonzero(start[begins] != start[ends - 1])
    return row[: begins[instants[0]] if len(instants) else ends[-1] if len(ends) else 0]


def _device_begins_late(trace: Trace, row: NDArray[np.int64], others: NDArray[np.bool_]) -> NDArray[np.int64]:
    """What begins so long after all of the host and of the device has ended that nothing can have launched it."""
    ts, dur = trace.events.ts, trace.events.dur
    # The end of any host event will do where nothing begins long after it: the last of the file is looked at first.
    host = int(ts[last := len(others) - 1 - int(others[::-1].argmax())] + dur[last])
    if ts[row[-1:]].max(initial=host) - host <= STRAY_LIMIT_NS:
        return row[:0]
    host = _latest(trace, others)[0]
    if ts[row[-1:]].max(initial=host) - host <= STRAY_LIMIT_NS:
        return row[:0]
    before = np.maximum(np.append(host, np.maximum.accumulate(ts[row] + dur[row])[:-1]), host)
    return row[np.logical_or.accumulate(ts[row] - before > STRAY_LIMIT_NS)]


def repeated(trace: Trace, row: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of device work that stands in the file before: device, stream, start, length, name and correlation agree.

    Work without a length may really come twice at one instant of the clock. `row`: those of all work, by start.
    """
    events = trace.events
    row = row[events.dur[row] > 0]
    again = np.flatnonzero(np.diff(events.ts[row]) == 0)
    if len(again) == 0:
        return again
    row = row[np.union1d(again, again + 1)]
    correlation = events.numbers("correlation", row)
    stream = _number(trace, row, "stream", column=1)
    columns = (numbers_of_devices(trace, row), stream, events.ts[row], events.dur[row], events.name[row], correlation)
    keys = np.stack(columns, axis=1).astype(np.int64)
    order = np.lexsort((row, *keys.T))
    same = (keys[order[1:]] == keys[order[:-1]]).all(axis=1)
    return np.sort(row[order[1:][same]])


def _latest_other_end(trace: Trace, kind: NDArray[np.uint8], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each device event the latest end of any other event of the file, but for the profiler's span of it all."""
    last = int(end.argmax()) if len(end) else 0
    others = [int(each.max(initial=-_NEVER)) for each in (end[:last], end[last + 1 :])]
    if len(end) > 1 and int(end[last]) - max(others) <= STRAY_LIMIT_NS:
        return end  # Of the device alone another one ends late enough.
    counted = ~occurs(kind, (EventKind.OVERHEAD, EventKind.IMPOSSIBLE))
    if np.count_nonzero(counted) < 2:
        return end
    first, second = _latest(trace, counted)
    return np.where(end == first, second, first)


def _latest(trace: Trace, counted: NDArray[np.bool_]) -> tuple[int, int]:
    """The two latest ends of some events."""
    latest = [-_NEVER, -_NEVER]
    for part in chunks(len(counted)):
        end = trace.events.ts[part] + trace.events.dur[part]
        end[~counted[part]] = -_NEVER
        for _ in range(2):
            last = int(end.argmax())
            latest.append(int(end[last]))
            end[last] = -_NEVER
        latest = sorted(latest, reverse=True)[:2]
    return latest[0], latest[1]


def _clip_impossible(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    device: NDArray[np.int64],
    stream: NDArray[np.int64],
    other_end: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Ends after clipping the two kinds of impossible duration of definitions §2.5."""
    end = end.copy()
    order = np.lexsort((stream, device))  # and by start, as the events are
    of, lane, begun, until = (column[order] for column in (device, stream, start, end))
    same = (of[1:] == of[:-1]) & (lane[1:] == lane[:-1])
    impossible = np.flatnonzero(same & (until[:-1] - begun[1:] > OVERLAP_LIMIT_NS))
    end[order[impossible]] = begun[impossible + 1]
    stray = np.flatnonzero(end - other_end > STRAY_LIMIT_NS)
    end[stray] = np.maximum(other_end[stray], start[stray])
    return end


def _classify(
    trace: Trace, row: NDArray[np.int64], kind: NDArray[np.uint8], options: ClassifyOptions
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int32], tuple[str, ...]]:
    """Class, kind and rule of each device event, decided once a distinct (name, kind, has collective arguments)."""
    collective = np.zeros(len(trace.events), np.bool_)
    for field in ("collective", "group"):
        if field in trace.events.fields:
            collective[trace.events.fields[field].row] = True
    key = (trace.events.name[row].astype(np.int64) * 4 + kind) * 2 + collective[row]
    keys = group(key)
    rules: dict[str, int] = {}
    decided = np.empty((len(keys), 3), np.int32)
    for i, code in enumerate(key[keys.first].tolist()):
        name = trace.strings.text(code // 8)
        event_kind = EventKind(code // 2 % 4)
        klass = DeviceClass.MEM
        if event_kind != EventKind.KERNEL:
            rule = event_kind.name.lower()
        elif copy := rocm_copy_kind(name):
            event_kind, rule = copy, "ROCm copy kernel"
        else:
            klass, rule = kernel_class(name, has_collective_args=bool(code % 2), options=options)
        decided[i] = klass, event_kind, rules.setdefault(rule, len(rules))
    each = [column[keys.of] for column in decided.T]
    return each[0].astype(np.uint8), each[1].astype(np.uint8), each[2], tuple(rules)
