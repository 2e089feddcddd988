"""What the allocator would do with other settings, with less memory, or without empty_cache: answers of the replay."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from traceanalyze.analyses.memory import EVENT, LINE
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.device_calls import RETRIES, OutOfMemory, release_runs
from traceanalyze.analyses.memory.lifetimes import BEFORE
from traceanalyze.analyses.memory.replay import Outcome, Supposed, replay
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare

WHATIF = declare(
    "memory_whatif",
    "What the allocator would do",
    Column("settings", Kind.NAME, "what would be different; the first row is the recording"),
    Column("limit_bytes", Kind.MEMORY, "bytes that may be taken from the device; empty: any number", heading="device"),
    Column(
        "then_reserved_bytes",
        Kind.MEMORY,
        "most bytes taken from the device then; empty: a request fails",
        heading="reserved at most",
    ),
    Column("reserved_change_bytes", Kind.MEMORY_CHANGE, "that minus what is recorded", heading="change", par=0.0),
    Column("growths", Kind.COUNT, "how often memory was taken from the device"),
    Column("retries", Kind.COUNT, "requests that found the device full"),
    Column("fits", Kind.FLAG, "every request succeeds; empty: nothing limits them"),
    replace(EVENT, meaning="of the first request that fails; empty: none, or it was before the history"),
    Column("failing_bytes", Kind.MEMORY, "bytes that it asks for", heading="request"),
    Column("missing_bytes", Kind.MEMORY, "bytes that the device would need besides", heading="missing"),
    LINE,
)
EXACT = 0.005
"""A replay under the recorded settings that is further from the recorded reserve tells nothing about others."""
MOSTLY = 0.05
"""Share of the events after which it may be (own): a retry is one step of the replay, and several of a history."""


def recorded_limit(device: Device) -> int | None:
    """Bytes that the process could take from the device; None: it was never full.

    Failed requests tell it; where others were only repeated, the device was full at the peak, or nearly so.
    """
    left, peak = device.history.device_free, device.reserved.peak[0]
    known = [device.reserved.at(event) + left[event] for event in device.failures if event in left]
    if known:
        return max(min(known), peak)
    return None if RETRIES.isdisjoint(device.once(release_runs).column("release_kind")) else peak


def as_recorded(device: Device) -> Supposed:
    """Nothing is different."""
    return Supposed(device.rules, device.once(recorded_limit))


def recorded(device: Device) -> Outcome:
    """The history itself."""
    return replay(device, as_recorded(device))


class Asked(NamedTuple):
    """What a user asks."""

    settings: tuple[tuple[str, Mapping[str, Any], float], ...] = ()
    """Each a question of its own: as written, the `Rules` that it sets, and the part of the device that it allows."""
    capacity: int | None = None
    empties: bool = True


def answers(device: Device, asked: Asked) -> Table | NotMeasured:
    """The recording, and what every change would do, by the replay."""
    reason = device.once(unknown)
    if reason is not None:
        return reason
    base = as_recorded(device)
    rows = [_row(device, "", base, device.once(recorded), 0)]
    for text, changed, fraction in asked.settings or (("", {}, 1.0),):
        limit = base.limit if asked.capacity is None else int(asked.capacity * fraction)
        supposed = Supposed(base.rules._replace(**changed), limit, asked.empties)
        found = replay(device, supposed)
        saved = None if found.failed is not None else saving(device, found)
        name = "; ".join(filter(None, (text, "" if asked.empties else NO_EMPTY_CACHE)))
        rows.append(_row(device, name, supposed, found, saved))
    return WHATIF.fill_records(rows)


NO_EMPTY_CACHE = "no empty_cache"


def _row(
    device: Device, name: str, supposed: Supposed, found: Outcome, saved: int | NotMeasured | None
) -> dict[str, Value]:
    at = found.failed if found.failed is not None and found.failed != BEFORE else None
    return {
        "settings": name or None,
        "limit_bytes": supposed.limit,
        "then_reserved_bytes": found.peak if isinstance(saved, int) else saved,
        "reserved_change_bytes": -saved if isinstance(saved, int) else saved,
        "growths": found.growths,
        "retries": found.retries,
        "fits": None if supposed.limit is None else found.failed is None,
        "event": at,
        "failing_bytes": None if at is None else int(device.history.size[at]),
        "missing_bytes": None if found.failed is None else found.missing,
        "source_line": None if at is None else device.line(at),
    }


def unknown(device: Device) -> NotMeasured | None:
    """Why a replay under other settings would tell nothing; None: it tells something."""
    if device.events <= 1:
        return NotMeasured("no_memory_history")
    if device.layout.lost:
        return NotMeasured("layout_not_exact")
    peak, found = device.reserved.peak[0], device.once(recorded)
    # A right peak may be chance, as where the file does not tell of which pools memory was that is gone by now.
    off = np.abs(found.reserved - device.reserved.after[found.event]) > EXACT * peak
    wrong = abs(found.peak - peak) > EXACT * peak or off.sum() > 1 + MOSTLY * len(off)
    return NotMeasured("replay_off") if wrong else None


def saving(device: Device, found: Outcome) -> int | NotMeasured:
    """By how much less is reserved at most, of what nobody asked for at both peaks; below 0: more is."""
    (peak, event), used = device.reserved.peak, device.active.peak[0]
    return NotMeasured("reserve_peak_before") if event < 0 else min(peak - found.peak, max(peak - used, 0))


def expandable_saving(device: Device) -> int | NotMeasured:
    """What expandable segments would save; nothing where segments are already."""
    if device.rules.expandable:
        return 0
    base = as_recorded(device)
    wider = base._replace(rules=base.rules._replace(expandable=True))
    return device.once(unknown) or saving(device, replay(device, wider))


def without_empty_cache(device: Device) -> int | NotMeasured | None:
    """Requests that then would not go to the device; None where one of them would fail."""
    reason = device.once(unknown)
    if reason is not None:
        return reason
    found, now = replay(device, as_recorded(device)._replace(empties=False)), device.once(recorded)
    return None if found.failed is not None and now.failed is None else max(now.growths - found.growths, 0)


def missing(device: Device) -> int | None:
    """Bytes that the first failed request lacked: by the replay, else beside what the device had; else None.

    None too where the device had enough: then something else refused it, such as the process's share of the device.
    """
    if not device.failures:
        return None
    event, left = device.failures[0], device.history.device_free
    found = None if device.once(unknown) is not None else device.once(recorded)
    if found is not None and found.failed == event:
        return found.missing
    lacking = int(device.history.size[event]) - left[event] if event in left else 0
    return lacking if lacking > 0 else None


def with_expandable(device: Device, ooms: tuple[OutOfMemory, ...]) -> tuple[OutOfMemory, ...]:
    """Failed requests; where memory was free in pieces, with whether expandable segments would have helped."""
    base = as_recorded(device)
    in_pieces = any(one.kind in {"fragmentation", "split"} for one in ooms) and not base.rules.expandable
    if not in_pieces or base.limit is None or device.once(unknown) is not None:
        return ooms
    failed = replay(device, base._replace(rules=base.rules._replace(expandable=True))).failed
    return tuple(one._replace(expandable=failed is None or failed > one.event) for one in ooms)
