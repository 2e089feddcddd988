"""What several explanations of an incident ask for: who is who, who waits, when it began, what the run overcame."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from traceanalyze.incident.divergence import Divergence, Lateness, divergences, lateness, root
from traceanalyze.incident.evidence import UNKNOWN, Event, Evidence, Series, Stack, What
from traceanalyze.model.patterns import regex

EFFECT = regex(
    r"NCCL|nccl|HCCL|gloo|Dist(?:Backend|Network|Store)Error|Connection (?:reset|closed)|Timed? ?out|TCPStore|"
    r"Broken pipe|SignalException|ChildFailed|Process(?:Exited|Raised)|recvValue|signal: ?15|EI000[26]|SIGTERM|Watchdog"
)
"""Errors of those that waited, or that were ended."""
_CAUSE = regex(r"Address already in use")
"""Errors of the program itself, whatever their type is called."""
SYMPTOMS = frozenset({What.TIMEOUT, What.COMM_ERROR, What.STORE_ERROR, What.DUMP_SIGNAL, What.WATCHDOG_STUCK})
_BUS_NUMBER = regex(r"[0-9a-fA-F]{4,9}")
_BUS = regex(r"(?:[0-9a-fA-F]{4,8}:)?([0-9a-fA-F]{2}):[0-9a-fA-F]{2}")
LONG_NS = 60 * 10**9
"""So long nothing else happens any more after a collective in which ranks wait: the run stands still."""


_FAILURES = frozenset(
    {
        *SYMPTOMS,
        *(What.OOM, What.HOST_OOM, What.EXCEPTION, What.EXIT, What.DEVICE_ERROR, What.DEVICE_ASSERT, What.SEGFAULT),
        *(What.CANCELLED, What.LOADER, What.SIGNAL),
    }
)
"""What ends a run, if it does not go on."""


class Place(NamedTuple):
    """Where a rank ran."""

    host: str = ""
    device: str = ""


_ATTEMPT = regex(r"(.*)[/!]attempt_(\d+)/.*")
_NEAR = 400
"""Lines of a traceback."""
GOES_ON = 3
"""So many new steps are printed only where a run went on; ranks beside a failed one come a step or two further."""


def overcome(evidence: Evidence) -> set[int]:
    """`id` of failures after which steps are printed: below them in the file, in a later attempt, or later in time."""
    attempts: dict[str, int] = {}
    until: dict[str, int] = {}
    for one in evidence.series:
        if one.name not in {"loss", "step_time", "throughput"} or len(one.steps) < GOES_ON:
            continue
        if tried := _ATTEMPT.fullmatch(one.source.path):
            attempts[tried[1]] = max(attempts.get(tried[1], 0), int(tried[2]))
        # The last time of each step.
        times = one.times[::-1][np.unique(one.steps[::-1], return_index=True)[1]]
        times = np.sort(times[times != UNKNOWN])
        if len(times) >= GOES_ON:
            clock = "" if evidence.zone.known else one.clock
            until[clock] = max(until.get(clock, UNKNOWN), int(times[-GOES_ON]))
    ends = [one for one in evidence.of(What.EXCEPTION) if "uncaught" in one.data]
    found = set()
    for each in evidence.of(*_FAILURES):
        tried = _ATTEMPT.fullmatch(each.source.path)
        later = until.get("" if evidence.zone.known else each.clock, UNKNOWN)
        below = int(each.data.get("steps_after", 0)) >= GOES_ON
        if (
            (tried and int(tried[2]) < attempts.get(tried[1], 0))
            or (each.time_ns is not None and each.time_ns < later)
            # What is printed below an exception that ended the program was held back in a buffer.
            or (below and not any(_is_of(each, end) for end in ends))
        ):
            found.add(id(each))
    return found


def _is_of(event: Event, exception: Event) -> bool:
    """Whether an event is told by the traceback of an exception."""
    near = 0 <= event.source.line - exception.source.line < _NEAR
    return near and exception.source.path == event.source.path and exception.rank == event.rank


class Facts:
    """What several explanations ask for, each computed once."""

    def __init__(self, evidence: Evidence, holders: Mapping[int | None, tuple[str, int]]) -> None:
        self.evidence, self.holders = evidence, holders

    @cached_property
    def divergences(self) -> tuple[Divergence, ...]:
        """The first divergence of each group."""
        return divergences(self.evidence.flights, self.world)

    @cached_property
    def root(self) -> Divergence | None:
        """The one that the others come from."""
        return root(self.divergences, self.evidence.flights)

    @cached_property
    def late(self) -> Lateness | None:
        """Ranks that the others wait for again and again."""
        return lateness(self.evidence.flights)

    @cached_property
    def seen(self) -> set[int]:
        """Ranks that left anything of their own."""
        evidence = self.evidence
        own: tuple[Any, ...] = (
            *evidence.flights,
            *evidence.stacks,
            *evidence.series,
            *evidence.files,
            *evidence.processes,
        )
        told = [one.rank for one in evidence.events if one.what is not What.EXIT]
        return {rank for rank in (*(one.rank for one in own), *told) if rank is not None}

    @cached_property
    def world(self) -> int:
        """Ranks that are known of."""
        groups = (rank for one in self.evidence.flights for group in one.groups for rank in group.ranks)
        sizes = (one.data.get("world", 0) for one in self.evidence.events)
        ended = (one.rank for one in self.evidence.events if one.rank is not None)
        known = max((*self.seen, *groups, *ended), default=-1) + 1
        return max(known, *(int(one) for one in sizes if isinstance(one, int)), 0)

    @cached_property
    def places(self) -> dict[int, Place]:
        """Host and device of each rank, as far as any source tells."""
        hosts: dict[int, str] = {}
        devices: dict[int, str] = {}
        own: tuple[Any, ...] = (*self.evidence.processes, *self.evidence.events, *self.evidence.files)
        for one in own:
            if one.rank is not None and one.host:
                hosts.setdefault(one.rank, one.host)
            device = getattr(one, "device", None)
            if one.rank is not None and device and not _BUS.search(device):
                devices.setdefault(one.rank, f"GPU {device}" if device.isdecimal() else device)
        return {rank: Place(hosts.get(rank, ""), devices.get(rank, "")) for rank in {*hosts, *devices}}

    @cached_property
    def _by_pid(self) -> dict[int, list[tuple[str, int]]]:
        found = defaultdict(list)
        for one in self.evidence.processes:
            if one.rank is not None:
                found[one.pid].append((one.host or "", one.rank))
        return found

    @cached_property
    def _by_bus(self) -> dict[tuple[str, str], int]:
        """Rank by host and bus id."""
        found: dict[tuple[str, str], int] = {}
        for one in self.evidence.events:
            bus = bus_number(str(one.data.get("bus", "")))
            if one.rank is not None and bus:
                found[one.host or self.places.get(one.rank, Place()).host, bus] = one.rank
        numbers = {(place.host, place.device): rank for rank, place in self.places.items()}
        for device in self.evidence.devices:
            rank = numbers.get((device.host or "", f"GPU {device.number}"))
            if rank is not None and bus_number(device.bus):
                found.setdefault((device.host or "", bus_number(device.bus)), rank)
        return found

    def rank_of(self, event: Event) -> int | None:
        """The rank that an event is about: as it says, else by its process, else by its device."""
        if event.rank is not None:
            return event.rank
        pid, host = event.data.get("pid"), event.host or ""
        if isinstance(pid, int):
            near = {rank for where, rank in self._by_pid.get(pid, ()) if not (host and where) or where == host}
            if len(near) == 1:
                return near.pop()
        return self.rank_at(host, event.device or "")

    def rank_at(self, host: str, device: str) -> int | None:
        """The rank of a device."""
        bus = bus_number(device)
        if bus:
            near = {rank for (where, each), rank in self._by_bus.items() if each == bus and host in {"", where}}
            return near.pop() if len(near) == 1 else None
        near = {
            rank
            for rank, place in self.places.items()
            if place.device and place.device == device and host in {"", place.host}
        }
        return near.pop() if device and len(near) == 1 else None

    @cached_property
    def began(self) -> dict[int, int]:
        """When each rank that timed out began to wait, ns."""
        found: dict[int, int] = {}
        for one in self.evidence.of(What.TIMEOUT):
            ran = one.data.get("ran_ms") or one.data.get("timeout_ms") or 0
            if one.rank is not None and one.time_ns is not None and isinstance(ran, int | float):
                began = one.time_ns - int(ran * 1e6)
                found[one.rank] = min(found.get(one.rank, began), began)
        return found

    @cached_property
    def complained(self) -> frozenset[int]:
        """Ranks that say that they waited or lost the connection, or ended for that."""
        kinds = *SYMPTOMS, What.EXCEPTION, What.EXIT
        told = (
            self.rank_of(one)
            for one in self.evidence.of(*kinds)
            # Who was ended by the launcher, or ended well, may never have waited.
            if one.what in SYMPTOMS or (is_effect(one) and one.data.get("exitcode") not in {0, -15})
        )
        return frozenset(rank for rank in told if rank is not None)

    @cached_property
    def stuck_ns(self) -> int | None:
        """When the first of them began to wait."""
        if self.began:
            return min(self.began.values())
        return None if self.root is None else self.root.since_ns

    @cached_property
    def failed_ns(self) -> int | None:
        """When the run failed first, by any source but those of hardware."""
        kinds = (
            What.OOM,
            What.HOST_OOM,
            What.EXCEPTION,
            What.EXIT,
            What.DEVICE_ERROR,
            What.DEVICE_ASSERT,
            What.SEGFAULT,
        )
        times = [one.time_ns for one in self.evidence.of(*kinds) if one.time_ns is not None and not is_effect(one)]
        return min((*times, *(() if self.stuck_ns is None else (self.stuck_ns,))), default=None)

    @cached_property
    def began_ns(self) -> int | None:
        """When the first file of the processes begins, or the first thing in it."""
        logs = {one.path for one in self.evidence.files if one.kind in {"process_log", "flight_recorder"}}
        times = [one.first_ns for one in self.evidence.files if one.path in logs and one.first_ns is not None]
        times += list(self.began.values())
        return min(times, default=None)

    @cached_property
    def failed_ranks(self) -> set[int]:
        """Ranks that failed, or that the others wait for."""
        told = {self.rank_of(one) for one in self.evidence.of(What.EXCEPTION, What.DEVICE_ERROR, What.EXIT)}
        root = () if self.root is None else self.root.culprits
        silent = set(range(self.world)) - self.complained if self.complained else set()
        return {*(rank for rank in told if rank is not None), *root, *silent}

    @cached_property
    def stands(self) -> bool:
        """Whether anything but a difference of dumps says that the run stopped."""
        if self.evidence.of(What.TIMEOUT, What.EXIT, What.EXCEPTION, What.COMM_ERROR, What.OOM, What.WATCHDOG_STUCK):
            return True
        since = None if self.root is None else self.root.since_ns
        last = max((one.last_ns for one in self.evidence.files if one.last_ns), default=None)
        if since is not None and last is not None and last - since > LONG_NS:
            return True
        retired = (
            bool((one.entries.retired & (one.entries.completed == UNKNOWN)).any()) for one in self.evidence.flights
        )
        return any(retired) or any(one.state != "waiting" for one in self.stacks.values())

    @cached_property
    def stacks(self) -> dict[int, Stack]:
        """The last stack of the main thread of each rank; that which tells most where none is called so."""
        found: dict[int, Stack] = {}
        for one in self.evidence.stacks:
            kept = found.get(one.rank) if one.rank is not None else None
            if one.rank is not None and (
                kept is None or (one.main, one.time_ns or 0) >= (kept.main, kept.time_ns or 0)
            ):
                found[one.rank] = one
        return found

    def events(self, ranks: Iterable[int], *kinds: What) -> list[Event]:
        """Events of some kinds that are about some ranks."""
        wanted = set(ranks)
        return [one for one in self.evidence.of(*kinds) if wanted and self.rank_of(one) in wanted]

    def ended_ns(self, rank: int | None) -> int | None:
        """When a rank ended, as the launcher or the end of its log says."""
        if rank is None:
            return None
        ends = [one.time_ns for one in self.events((rank,), What.EXIT, What.EXCEPTION) if one.time_ns is not None]
        logs = (one for one in self.evidence.files if one.rank == rank and one.kind == "process_log")
        return min(ends, default=max((one.last_ns for one in logs if one.last_ns is not None), default=None))

    def records(self, one: Divergence) -> tuple[str, ...]:
        """Which dumps show a divergence."""
        told = f"{one.op} {one.seq:,} of {one.group.desc or one.group.name} {one.line}".strip()
        shown = {*one.culprits, *one.waiting[:1]}
        return tuple(f"{each.source.path}: {told}" for each in self.evidence.flights if each.rank in shown)

    @cached_property
    def waiting_least(self) -> list[str]:
        """Which dumps show who is late."""
        ranks = () if self.late is None else self.late.ranks
        return [f"{one.source.path}: waits least" for one in self.evidence.flights if one.rank in ranks]

    def ranks_on(self, host: str) -> tuple[int, ...]:
        """All that are known to run on a host."""
        return tuple(sorted(rank for rank, place in self.places.items() if place.host == host))

    @cached_property
    def outliers(self) -> tuple[int, ...]:
        """Ranks that do something else while most wait."""
        waiting = [rank for rank, one in self.stacks.items() if one.state == "waiting"]
        others = sorted(rank for rank, one in self.stacks.items() if one.state in {"own", "starved", "checkpoint"})
        return tuple(others) if 0 < len(others) < len(waiting) else ()

    @cached_property
    def steps(self) -> list[Series]:
        """Series with steps, and points in time."""
        return [one for one in self.evidence.series if len(one.steps) and (one.steps != UNKNOWN).any()]

    def resume(self, until: int | None) -> int | None:
        """The step of the last whole checkpoint before some time; None where none is told."""
        found: list[int] = []
        for one in self.evidence.of(What.CHECKPOINT_END):
            late = until is not None and one.time_ns is not None and one.time_ns > until
            step = one.data.get("step", self._step_at(one))
            found += [step] if isinstance(step, int) and not late else []
        return max(found, default=None)

    def _step_at(self, event: Event) -> int | None:
        """The last step that was printed before a line of the same rank."""
        best = None
        for one in self.steps:
            if one.source.path == event.source.path and event.time_ns is not None:
                past = one.steps[(one.times != UNKNOWN) & (one.times <= event.time_ns)]
                best = max(best or -1, int(past.max())) if len(past) else best
        return best

    def slowed(self, since: int | None) -> bool:
        """Whether steps take a tenth longer after some time."""
        for one in self.evidence.series:
            if one.name != "step_time" or since is None:
                continue
            before, after = one.values[one.times < since], one.values[one.times >= since]
            if len(before) > 2 and len(after) > 2 and np.nanmedian(after) > 1.1 * np.nanmedian(before):
                return True
        return False

    @cached_property
    def unclocked(self) -> str:
        """Why the order of what different sources say is in doubt; empty where it is not."""
        clocks = {one.clock for one in self.evidence.events} | {"utc" for _ in self.evidence.flights}
        return "" if self.evidence.zone.known or not {"utc", "local"} <= clocks else self.evidence.zone.source


def is_effect(event: Event) -> bool:
    """Whether an event is an effect by its own words: of one who waited, or was ended."""
    code = event.data.get("exitcode")
    return code in {0, -15} or (EFFECT.search(event.message) is not None and not _CAUSE.search(event.message))


def bus_number(text: str) -> str:
    """Bus number of a PCI id in any form: `0000:3b:00`, `3b000`."""
    if found := _BUS.search(text):
        return found[1].lower()
    return text[:-3].lower().rjust(2, "0")[-2:] if _BUS_NUMBER.fullmatch(text) else ""
