"""One device of a snapshot while it is analysed: what several analyses need, each worked out once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory.caching import Rules, rules
from traceanalyze.analyses.memory.layout import Layout, follow
from traceanalyze.analyses.memory.lifetimes import BEFORE, Curve, Lifetimes, active_curve, lifetimes, reserved_curve
from traceanalyze.analyses.memory.sites import Site
from traceanalyze.model.snapshot import Action, Snapshot, SnapshotDevice

T = TypeVar("T")
Patterns = Mapping[str, re.Pattern[str]]
"""Name of a category → what its call stacks, the user's ranges around it or its marks hold."""


class Device:
    """A device's history with the blocks, curves and layout that follow from it.

    Args:
        snapshot: The file.
        device: One of its devices.
        sites: What its call stacks say; the last one is for rows without a stack.
        capacity: Bytes of the device, where anybody tells.
        patterns: Categories of the user's own.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        device: SnapshotDevice,
        sites: Sequence[Site],
        capacity: int | None = None,
        patterns: Patterns | None = None,
    ) -> None:
        self.snapshot, self.device, self.sites, self.capacity = snapshot, device, sites, capacity
        self.patterns = patterns or {}
        self.history, self.events = device.history, len(device.history)
        self._made: dict[Callable[[Device], Any], Any] = {}

    def __repr__(self) -> str:
        """Number and events."""
        return f"<device {self.device.id}: {self.events} events>"

    def once(self, make: Callable[[Device], T]) -> T:
        """What a function makes of the device; made when first asked for."""
        if make not in self._made:
            self._made[make] = make(self)
        found: T = self._made[make]
        return found

    def line(self, event: int) -> str:
        """Source line behind an event."""
        return self.sites[int(self.history.stack[event])].line

    def of_stack(self, flag: str) -> NDArray[np.bool_]:
        """What the call stack of each block says of it: a flag of `Site`."""
        return np.array([getattr(site, flag) for site in self.sites], np.bool_)[self.lives.stack]

    @cached_property
    def lives(self) -> Lifetimes:
        """Every block of the history."""
        return lifetimes(self.device)

    @cached_property
    def active(self) -> Curve:
        """Requested bytes."""
        return active_curve(self.device)

    @cached_property
    def reserved(self) -> Curve:
        """Bytes taken from the device."""
        return reserved_curve(self.device)

    @cached_property
    def blocks(self) -> Curve:
        """Block bytes."""
        lives, size, count = self.lives, self.layout.size, self.events
        change = np.zeros(count + 1, np.int64)
        begun, ended = lives.begin != BEFORE, lives.end < count
        change[lives.begin[begun]] = size[begun]
        change[lives.end[ended]] -= size[ended]
        base = int(size[~begun].sum())
        return Curve(base, base + np.cumsum(change[:count]))

    @cached_property
    def failures(self) -> tuple[int, ...]:
        """Events at which a request failed."""
        return tuple(np.flatnonzero(self.history.action == Action.OOM).tolist())

    @cached_property
    def rules(self) -> Rules:
        """How requests are rounded and blocks split."""
        return rules(self.snapshot)

    @cached_property
    def layout(self) -> Layout:
        """Where the blocks lay; what was free just before failed requests and just after the peaks."""
        after_peaks = {self.active.peak[1] + 1, self.reserved.peak[1] + 1}
        return follow(self.device, self.lives, self.rules, frozenset({*self.failures, *after_peaks}))
