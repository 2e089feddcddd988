"""An allocator snapshot as counters: it has no timeline of its own to be drawn over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.allocator.curves import active_curve, reserved_curve
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.report.perfetto.model import MIB, Counter, Overlay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceanalyze.model.snapshot import Snapshot, SnapshotDevice


def snapshot_overlay(snapshot: Snapshot, terms: Mapping[str, str]) -> tuple[Overlay, int]:
    """Requested and reserved memory of every device after each event, and the time of the first event, ns since 1970.

    Times of the overlay count from that one.
    """
    dated = [device for device in snapshot.devices if device.history.time is not None and len(device.history)]
    if not dated:
        return Overlay((), (), ((terms["overlay_memory"], NotMeasured("no_event_times")),)), 0
    zero = min(int(device.history.time.min()) for device in dated if device.history.time is not None)
    return Overlay((), tuple(_counter(device, zero, terms) for device in dated)), zero


def _counter(device: SnapshotDevice, zero: int, terms: Mapping[str, str]) -> Counter:
    """Where several events have one time, the value after the last of them; threads may write them out of order."""
    history = device.history
    t = (np.zeros(len(history), np.int64) if history.time is None else history.time) - zero
    t = np.maximum.accumulate(t)
    last = np.flatnonzero(np.concatenate((t[1:] > t[:-1], [True])))
    values = {
        terms["overlay_requested"]: active_curve(device).after[last] / MIB,
        terms["overlay_reserved"]: reserved_curve(device).after[last] / MIB,
    }
    return Counter(f"{terms['overlay_memory']} · {terms['overlay_device']} {device.id}", t[last], values)
