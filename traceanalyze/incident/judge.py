"""From evidence to cause: what ended or slowed a run, whose it is, when it began, and what else it could be.

Who reports is not who caused: ranks that print a timeout waited. Every explanation has a trust, by what it rests on;
what proves a cause comes before what only shows that somebody waited, and what came after the first failure is an
effect. Nothing is read here and nothing is printed.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceanalyze.incident.divergence import Divergence, Lateness, divergences, lateness, root
from traceanalyze.incident.evidence import UNKNOWN, Evidence, Event, Series, Stack, What
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Kind, Message, Value, sentences
from traceanalyze.rules.finding import Confidence

_SAY = sentences(
    incident_rank="Rank {rank}{place}",
    incident_ranks="Ranks {ranks}{place}",
    incident_somebody="An unknown rank{place}",
    incident_all="All ranks",
    incident_place=" ({place})",
    incident_host="host {host}",
    incident_device="{device}",
    incident_at=" at {time}",
    incident_since=" from {time} on",
    incident_in=" in {collective}",
    incident_collective="{op} {seq} of group {group}",
    incident_collective_seq="collective {seq}",
    incident_after=", {delay} after {event}",
    incident_known=", with {event}",
    incident_resume="; resume from step {step}",
    incident_doing=" in {frame}",
    incident_stopped="{who} stopped answering{when}{where}{after}: {todo}{resume}.",
    incident_hung="{who} hung{when}{doing} and did not come to {collective}, for which {count} rank(s) waited: {todo}{resume}.",
    incident_hung_stack="{who} hung{when}{doing} while {count} rank(s) waited in a collective: {todo}{resume}.",
    incident_silent_rank="{who} said nothing more{when}, while {count} rank(s) waited: {todo}{resume}.",
    incident_never_came="{who} did not come{when} to {collective}, for which {count} rank(s) waited: {todo}{resume}.",
    incident_died="{who} died{when} without a word: {count} rank(s) lost the connection to it: {todo}{resume}.",
    incident_ended="{who} ended{when} with {error}{after}: {todo}{resume}.",
    incident_oom="{who} ran out of device memory{when}{amounts}: {todo}{resume}.",
    incident_amounts=" ({asked} asked for, {free} free)",
    incident_host_oom="{who} was killed{when}, as the host memory ran out (oom-kill): {todo}{resume}.",
    incident_host_oom_own="{who} ran out of host memory{when}: {todo}{resume}.",
    incident_operation="{who} called {other}{when} where the others called another collective{where}: {todo}{resume}.",
    incident_size="{who} called {op}{when} with another size than the others{where}: {todo}{resume}.",
    incident_order="{who} called collectives in another order than the others{when}{where}: {todo}{resume}.",
    incident_desync="{who} called another collective than the others{when}: {todo}{resume}.",
    incident_nan="{who} had the first loss that is NaN or infinite{when}, in step {step}: {todo}{resume}.",
    incident_nan_any="The loss became NaN or infinite{when}, in step {step}: {todo}{resume}.",
    incident_overflow="The loss scale ran out{when}, in step {step}: {todo}{resume}.",
    incident_failed="{who} lost the device{when} ({event}): {todo}{resume}.",
    incident_slow_device="{who} became slow{when}, as did the device ({event}){waited}: {todo}.",
    incident_slow_host="{who} ran slowly{when}, all ranks of that host{event}{waited}: {todo}.",
    incident_slow_host_one="{who} ran slowly{when}, as did the host{event}{waited}: {todo}.",
    incident_reason=" ({event})",
    incident_waited="; the others waited {share} of the time",
    incident_link="{who} lost the network link{when}{where} ({event}): {todo}{resume}.",
    incident_pause="{who} made a pause of {time} every time before {op}{doing}{waited}: {todo}.",
    incident_straggler="{who} came late to collectives again and again{doing}{waited}: {todo}.",
    incident_data="{who} waited for data{when}{doing}{where}{waited}: {todo}{resume}.",
    incident_stage="{who} ran slowly: stage {stage} of the pipeline needs longer than the others{waited}: {todo}.",
    incident_checkpoint="{who} stood still{when} while writing a checkpoint{doing}{where}: {todo}{resume}.",
    incident_died_silent="No dump or log says why: it ended before it could write one, or the recorder was off there.",
    incident_later="It came after the run had failed: more likely an effect.",
    incident_only_exit="The way it ended says only that it died, not why.",
    incident_async="Errors of a device are reported late: the line of the program may be another one.",
    incident_unclocked="Clocks of the sources are not known to agree: {reason}.",
    incident_no_stack="No stack shows what it did.",
    incident_moments="Dumps may have been written at different moments: nothing else says that the run stood still.",
    incident_many="That many ranks left no dump: it may be that theirs were only not kept.",
    incident_printed="Only rank {rank} prints its loss: it may be that of any.",
    incident_no_time="When it happened is not told.",
)

HEADLINE = 40
"""Least trust of what is told as what happened; below it is only a possibility."""
EFFECT = regex(
    r"NCCL|nccl|HCCL|gloo|Dist(?:Backend|Network|Store)Error|Connection (?:reset|closed)|Timed? ?out|TCPStore|Broken pipe|"
    r"SignalException|ChildFailed|Process(?:Exited|Raised)|recvValue|signal: ?15|EI000[26]|SIGTERM|Watchdog"
)
"""Errors of those that waited, or that were ended."""
_FULL = regex(r"(?i)out ?of ?memory|can't allocate memory|cannot allocate memory|unable to allocate")
_DEVICE = regex(r"CUDA|NPU|HIP|XPU|GPU|OutOfMemoryError")
_LOST = regex(r"(?i)connection (?:was )?(?:closed|reset)|closed by (?:remote )?peer|remote process exited|broken pipe")
_SYMPTOMS = frozenset({What.TIMEOUT, What.COMM_ERROR, What.STORE_ERROR, What.DUMP_SIGNAL, What.WATCHDOG_STUCK})
_SIGNALS = {6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_BUS = regex(r"(?:[0-9a-fA-F]{4,8}:)?([0-9a-fA-F]{2}):[0-9a-fA-F]{2}")
_STAMP = regex(r"^(?:\[[^\]]*\] ?)+")
"""What a kernel puts before its words."""
LONG_NS = 60 * 10**9
"""So long nothing else happens any more after a collective in which ranks wait: the run stands still."""


class Place(NamedTuple):
    """Where a rank ran."""

    host: str = ""
    device: str = ""


class Explanation(NamedTuple):
    """One thing that may be what happened."""

    cause: str
    """Key of its term."""
    ranks: tuple[int, ...]
    host: str
    device: str
    time_ns: int | None
    trust: int
    confidence: Confidence
    sentence: Message
    todo: str
    proof: tuple[str, ...]
    """What it rests on: source and words."""
    against: tuple[Message, ...] = ()


class Incident(NamedTuple):
    """What happened."""

    explanations: tuple[Explanation, ...]
    """The likeliest first."""
    found: tuple[Divergence, ...]
    late: Lateness | None
    world: int
    """Ranks that are known of."""
    silent: tuple[int, ...]
    """Of those, ranks that left no file."""
    places: dict[int, Place]
    rank_of: Callable[[Event], int | None]
    """The rank that an event is about, as far as any source tells."""

    @property
    def headline(self) -> Explanation | None:
        """What is told first; None of a run in which nothing is known to be wrong."""
        first = next(iter(self.explanations), None)
        return first if first is not None and first.trust >= HEADLINE else None


def judge(evidence: Evidence) -> Incident:
    """Explanations of what the files tell, by trust; one for each cause and its ranks."""
    facts = _Facts(evidence)
    makers = (_hardware, _memory, _desync, _ended, _waits, _link, _numbers, _late)
    found = sorted((one for maker in makers for one in maker(facts)), key=lambda one: (-one.trust, one.time_ns or 0))
    kept: dict[tuple[str, tuple[int, ...]], Explanation] = {}
    for one in found:
        kept.setdefault((one.cause, one.ranks), one)
    silent = tuple(rank for rank in range(facts.world) if rank not in facts.seen)
    return Incident(
        tuple(kept.values()), facts.divergences, facts.late, facts.world, silent, facts.places, facts.rank_of
    )


class _Facts:
    """What several explanations ask for, each computed once."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    @cached_property
    def divergences(self) -> tuple[Divergence, ...]:
        return divergences(self.evidence.flights, self.world)

    @cached_property
    def root(self) -> Divergence | None:
        return root(self.divergences, self.evidence.flights)

    @cached_property
    def late(self) -> Lateness | None:
        return lateness(self.evidence.flights)

    @cached_property
    def seen(self) -> set[int]:
        """Ranks that left anything of their own."""
        evidence = self.evidence
        own = (*evidence.flights, *evidence.stacks, *evidence.series, *evidence.files, *evidence.processes)
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
        own = (*self.evidence.processes, *self.evidence.events, *self.evidence.files)
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
            bus = _bus(str(one.data.get("bus", "")))
            if one.rank is not None and bus:
                found[one.host or self.places.get(one.rank, Place()).host, bus] = one.rank
        numbers = {(place.host, place.device): rank for rank, place in self.places.items()}
        for device in self.evidence.devices:
            rank = numbers.get((device.host or "", f"GPU {device.number}"))
            if rank is not None and _bus(device.bus):
                found.setdefault((device.host or "", _bus(device.bus)), rank)
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
        bus = _bus(device)
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
    def waited(self) -> frozenset[int]:
        """Ranks that say that they waited."""
        return frozenset(one.rank for one in self.evidence.of(*_SYMPTOMS) if one.rank is not None)

    @cached_property
    def complained(self) -> frozenset[int]:
        """Ranks that say that they waited or lost the connection, or ended for that."""
        kinds = *_SYMPTOMS, What.EXCEPTION, What.EXIT
        told = (self.rank_of(one) for one in self.evidence.of(*kinds) if one.what in _SYMPTOMS or _after(one))
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
        times = [one.time_ns for one in self.evidence.of(*kinds) if one.time_ns is not None and not _after(one)]
        return min((*times, *(() if self.stuck_ns is None else (self.stuck_ns,))), default=None)

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

    def doing(self, rank: int) -> str:
        """The innermost own frame of a rank, `function (file:line)`."""
        stack = self.stacks.get(rank)
        return "" if stack is None else _own_frame(stack)

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
    def clock(self) -> tuple[Message, ...]:
        """Doubt of the order of what different sources say."""
        zone = self.evidence.zone
        return () if zone.known else (Message(_SAY["incident_unclocked"], (("reason", Kind.TEXT, zone.source),)),)


def _after(event: Event) -> bool:
    """Whether an event is an effect by its own words: of one who waited, or was ended."""
    code = event.data.get("exitcode")
    return EFFECT.search(event.message) is not None or code in {0, -15}


def _own_frame(stack: Stack) -> str:
    from traceanalyze.incident.stacks import is_library

    return next((frame for frame in stack.frames if not is_library(frame)), next(iter(stack.frames), ""))


def _bus(text: str) -> str:
    """Bus number of a PCI id in any form: `0000:3b:00`, `3b000`."""
    if found := _BUS.search(text):
        return found[1].lower()
    return text[:-3].lower().rjust(2, "0")[-2:] if re.fullmatch(r"[0-9a-fA-F]{4,9}", text) else ""


# --- Sentences -------------------------------------------------------------------------------------------------------

_Part = tuple[str, Kind, Value]
"""A value of a sentence."""


def _part(name: str, key: str | None, *values: _Part) -> _Part:
    """A part of a sentence, empty where there is nothing to say."""
    return name, Kind.LIST, (Message(_SAY[key], values),) if key else ()


def clock_text(ns: int) -> str:
    """Time of day, UTC."""
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(ns // 10**9, UTC):%H:%M:%S}"


def _made(
    facts: _Facts,
    key: str,
    cause: str,
    ranks: Iterable[int],
    time_ns: int | None,
    trust: int,
    todo: str,
    proof: Iterable[Event | Stack | str],
    *values: _Part,
    host: str = "",
    device: str = "",
    against: Iterable[Message] = (),
    confidence: Confidence = Confidence.HIGH,
    since: bool = False,
) -> Explanation:
    """An explanation with the parts that all sentences have: who, when, what to do, where to go on."""
    who = tuple(sorted(ranks))
    places = [facts.places.get(rank, Place()) for rank in who]
    hosts = {one.host for one in places if one.host} or ({host} if host else set())
    host = hosts.pop() if len(hosts) == 1 else ""
    device = (places[0].device or device) if len(who) == 1 else device if not who else ""
    inside = [Message(_SAY["incident_host"], (("host", Kind.NAME, host),))] if host else []
    inside += [Message(_SAY["incident_device"], (("device", Kind.NAME, device),))] if device else []
    place = (
        "place",
        Kind.LIST,
        (Message(_SAY["incident_place"], (("place", Kind.LIST, tuple(inside)),)),) if inside else (),
    )
    name = "incident_rank" if len(who) == 1 else "incident_ranks" if who else "incident_somebody"
    from traceanalyze.causes.results import spans

    whole = facts.world > 1 and len(who) == facts.world
    said = [
        _part("who", "incident_all")
        if whole
        else _part(
            "who",
            name,
            ("rank", Kind.TEXT, str(who[0]) if who else ""),
            ("ranks", Kind.TEXT, spans(list(map(str, who)))),
            place,
        ),
        _part(
            "when",
            None if time_ns is None else "incident_since" if since else "incident_at",
            ("time", Kind.TEXT, "" if time_ns is None else clock_text(time_ns)),
        ),
        ("todo", Kind.TERM, f"incident_do_{todo}"),
    ]
    step = facts.resume(time_ns)
    said.append(_part("resume", None if step is None else "incident_resume", ("step", Kind.COUNT, step)))
    given = {each[0] for each in values}
    said += [_part(each, None) for each in ("where", "after", "doing", "waited", "event") if each not in given]
    doubts = (*against, *(() if time_ns is not None or since else (Message(_SAY["incident_no_time"]),)))
    return Explanation(
        f"incident_{cause}", who, host, device, time_ns, trust, confidence, Message(_SAY[key], (*said, *values)),
        f"incident_do_{todo}", tuple(dict.fromkeys(map(_shown, proof))), doubts,
    )  # fmt: skip


def _shown(one: Event | Stack | str) -> str:
    if isinstance(one, str):
        return one
    words = one.message if isinstance(one, Event) else " < ".join(one.frames[:4])
    where = f"{one.source.path}:{one.source.line}" if one.source.line else one.source.path
    return f"{where}: {words}"


def _collective(facts: _Facts, ranks: Sequence[int] = ()) -> tuple[Message, ...]:
    """The collective in which ranks are waited for, where it is known."""
    one = facts.root
    if one is not None and (not ranks or set(ranks) & set(one.culprits) or not one.culprits):
        group = one.group.desc if one.group.desc not in {"", "undefined"} else one.group.name
        values = ("op", Kind.NAME, one.op), ("seq", Kind.COUNT, one.seq), ("group", Kind.NAME, group)
        return (Message(_SAY["incident_collective"], values),)
    numbers = {one.data.get("seq") for one in facts.evidence.of(What.TIMEOUT)} - {None}
    if len(numbers) == 1 and not facts.evidence.flights:
        return (Message(_SAY["incident_collective_seq"], (("seq", Kind.COUNT, numbers.pop()),)),)
    return ()


def _where(facts: _Facts, ranks: Sequence[int] = ()) -> _Part:
    """That part of a sentence."""
    found = _collective(facts, ranks)
    return _part("where", "incident_in" if found else None, ("collective", Kind.LIST, found))


def _doing(facts: _Facts, rank: int | None) -> _Part:
    frame = "" if rank is None else facts.doing(rank)
    return _part("doing", "incident_doing" if frame else None, ("frame", Kind.NAME, frame))


def _waited(late: Lateness | None) -> _Part:
    return _part("waited", "incident_waited" if late else None, ("share", Kind.SHARE, late.share if late else 0.0))


def _event(one: Event) -> _Part:
    """What a device, a kernel or a host says, in short."""
    return "event", Kind.NAME, event_text(one)


def event_text(one: Event) -> str:
    """`Xid 79 (GPU has fallen off the bus)`, or its words."""
    if one.what in {What.XID, What.SXID} and "code" in one.data:
        meaning = one.data.get("meaning")
        return f"{'Xid' if one.what is What.XID else 'SXid'} {one.data['code']}" + (f" ({meaning})" if meaning else "")
    if one.what is What.THROTTLE:
        parts = [str(one.data.get("reason", "throttling"))]
        parts += [f"{one.data['clock_mhz']:.0f} MHz"] if "clock_mhz" in one.data else []  # type: ignore[str-format]
        parts += [f"{one.data['temperature']:.0f} °C"] if "temperature" in one.data else []  # type: ignore[str-format]
        return "throttling: " + ", ".join(parts)
    return without_stamp(one.message)[:100]


def without_stamp(words: str) -> str:
    """Words of a kernel or a program without what stands before them in brackets."""
    return _STAMP.sub("", words)


# --- Causes ----------------------------------------------------------------------------------------------------------


def _of_hardware(one: Event) -> bool:
    code = one.data.get("code")
    if one.what in {What.XID, What.DEVICE_ERROR}:
        return one.data.get("hardware") == 1 and code != 45
    if one.what is What.ECC:
        return bool(one.data.get("uncorrected"))
    return one.what is What.DEVICE_LOST or (one.what is What.SXID and bool(one.data.get("fatal")))


_MILD = frozenset({63, 92, 94, 121, 156})
"""Xids after which a device goes on; 94 ends the program that met the error."""


def _hardware(facts: _Facts) -> Iterator[Explanation]:
    """A device that fails before anything else does, and its rank."""
    kinds = What.XID, What.SXID, What.ECC, What.DEVICE_LOST, What.DEVICE_ERROR
    events = [one for one in facts.evidence.of(*kinds) if _of_hardware(one)]
    places: dict[object, list[Event]] = defaultdict(list)
    for one in events:
        rank = facts.rank_of(one)
        places[(one.host, one.device) if rank is None else rank].append(one)
    for at, found in places.items():
        rank = at if isinstance(at, int) else None
        first = min(found, key=lambda one: (one.time_ns is None, one.time_ns or 0))
        mild = all(one.what is What.XID and one.data.get("code") in _MILD for one in found)
        failed = facts.failed_ns
        against = list(facts.clock)
        waits = facts.root is not None and rank is not None and rank in facts.root.culprits
        # Sources round to a second, and a hang begins a moment before it is known.
        late = first.time_ns is not None and failed is not None and first.time_ns > failed + 2 * 10**9 and not (
            waits and first.what is not What.XID
        )  # fmt: skip
        trust = 100
        if late:
            trust, against = 30, [*against, Message(_SAY["incident_later"])]
        elif failed is None or mild:
            trust = 20 if mild else 70
        stuck = facts.stuck_ns
        ranks = () if rank is None else (rank,)
        proof = (*found[:3], *_of_rank(facts, rank, What.TIMEOUT)[:1])
        device = first.device or ""
        if stuck is not None and not late and first.time_ns is not None and not mild:
            delay = max(stuck - first.time_ns, 0)
            after = _part("after", "incident_after", ("delay", Kind.DURATION, delay), _event(first))
            yield _made(facts, "incident_stopped", "hardware", ranks, stuck, trust, "replace_node", proof, after, _where(facts, ranks), host=first.host or "", device=device, against=against)  # fmt: skip
        else:
            yield _made(facts, "incident_failed", "hardware", ranks, first.time_ns, trust, "replace_node", proof, _event(first), host=first.host or "", device=device, against=against)  # fmt: skip


def _of_rank(facts: _Facts, rank: int | None, *kinds: What) -> list[Event]:
    return [one for one in facts.evidence.of(*kinds) if rank is not None and facts.rank_of(one) == rank]


def _memory(facts: _Facts) -> Iterator[Explanation]:
    """Memory of a device or of a host that is full."""
    by_rank: dict[int | None, list[Event]] = defaultdict(list)
    for one in facts.evidence.of(What.OOM, What.HOST_OOM, What.EXCEPTION):
        if one.what is not What.EXCEPTION or _FULL.search(one.message):
            by_rank[facts.rank_of(one)].append(one)
    killed = {one.rank for one in facts.evidence.of(What.EXIT, What.SIGNAL) if one.data.get("exitcode") == -9}
    for rank, found in by_rank.items():
        first = next((one for one in found if one.what is not What.EXCEPTION), found[0])
        first = next((one for one in found if one.what is What.OOM), first)
        time = next((one.time_ns for one in found if one.time_ns is not None), _ended_ns(facts, rank))
        ranks, proof = () if rank is None else (rank,), (*found[:3], *_of_rank(facts, rank, What.EXIT)[:1])
        if first.what is What.OOM or (
            first.what is What.EXCEPTION and "CPU" not in first.message and _DEVICE.search(first.message)
        ):
            asked, free = first.data.get("asked"), first.data.get("free")
            known = asked is not None and free is not None
            amounts = _part(
                "amounts",
                "incident_amounts" if known else None,
                ("asked", Kind.MEMORY, asked),
                ("free", Kind.MEMORY, free),
            )
            unused, total = first.data.get("unallocated", 0), first.data.get("total", 0)
            split = isinstance(unused, int) and isinstance(asked, int) and unused > asked and isinstance(total, int)
            yield _made(facts, "incident_oom", "oom", ranks, time, 94, "fragmentation" if split else "memory", proof, amounts)  # fmt: skip
            continue
        kernel = any(one.data.get("oom_kill") for one in found)
        if rank is None and kernel and len(killed) == 1:
            ranks = tuple(each for each in killed if each is not None)
        # The kernel also kills processes of others.
        trust = 92 if not kernel else 96 if ranks else 55 if killed or facts.failed_ns is not None else 30
        key = "incident_host_oom" if kernel else "incident_host_oom_own"
        yield _made(facts, key, "host_oom", ranks, time, trust, "host_memory", proof, host=first.host or "")


def _ended_ns(facts: _Facts, rank: int | None) -> int | None:
    """When a rank ended, as the launcher or the end of its log says."""
    ends = [one.time_ns for one in _of_rank(facts, rank, What.EXIT, What.EXCEPTION) if one.time_ns is not None]
    last = [
        one.last_ns
        for one in facts.evidence.files
        if rank is not None and one.rank == rank and one.last_ns and one.kind == "process_log"
    ]
    return min(ends, default=max(last, default=None))


def _desync(facts: _Facts) -> Iterator[Explanation]:
    """Ranks that do not call the same collectives."""
    one = facts.root
    proof = (*facts.evidence.of(What.DESYNC)[:2], *(() if one is None else _records(facts, one)))
    if one is not None and one.kind in {"operation", "size", "order"}:
        values = ("other", Kind.NAME, one.other), ("op", Kind.NAME, one.op), _where(facts)
        sure = Confidence.HIGH if len(one.culprits) * 2 < len(one.members) else Confidence.MEDIUM
        yield _made(facts, f"incident_{one.kind}", "desync", one.culprits, one.since_ns, 90, "same_collectives", proof, *values, confidence=sure)  # fmt: skip
    elif facts.evidence.of(What.DESYNC):
        first = facts.evidence.of(What.DESYNC)[0]
        ranks = () if first.rank is None else (first.rank,)
        yield _made(facts, "incident_desync", "desync", ranks, first.time_ns, 88, "same_collectives", proof, confidence=Confidence.MEDIUM)  # fmt: skip


def _records(facts: _Facts, one: Divergence) -> tuple[str, ...]:
    """Which dumps show a divergence."""
    paths = [each.source.path for each in facts.evidence.flights if each.rank in {*one.culprits, *one.waiting[:1]}]
    return tuple(
        f"{path}: {one.op} {one.seq:,} of {one.group.desc or one.group.name} {one.line}".strip() for path in paths
    )


def _ended(facts: _Facts) -> Iterator[Explanation]:
    """A process that ended by itself, before those that waited for it or were ended."""
    kinds = What.EXCEPTION, What.DEVICE_ERROR, What.DEVICE_ASSERT, What.SEGFAULT, What.EXIT
    candidates: dict[int | None, list[Event]] = defaultdict(list)
    for one in facts.evidence.of(*kinds):
        if not _after(one):
            candidates[facts.rank_of(one)].append(one)
    roots = {one.rank for one in facts.evidence.of(What.EXIT) if one.data.get("root_cause")}
    memory = {
        facts.rank_of(one)
        for one in facts.evidence.of(What.OOM, What.HOST_OOM, What.EXCEPTION)
        if one.what is not What.EXCEPTION or _FULL.search(one.message)
    }
    ranked = []
    for rank, found in candidates.items():
        told = [one for one in found if one.what is not What.EXIT]
        exits = [one for one in found if one.what is What.EXIT]
        if not told and (rank in facts.waited or _comm_error(facts, rank)):
            # It aborted because it had waited.
            continue
        time = next((one.time_ns for one in (*told, *exits) if one.time_ns is not None), _ended_ns(facts, rank))
        ranked.append((rank not in roots, time is None, time or 0, rank, told, exits))
    first = min((each[:3] for each in ranked), default=None)
    same: dict[str, list[int]] = defaultdict(list)
    for each in ranked:
        if each[3] is not None and each[4]:
            same[_error(each[4])].append(each[3])
    for each in sorted(ranked, key=lambda one: one[:3]):
        rank, told, exits, time = each[3], each[4], each[5], each[2] or None
        if rank in memory and not any(one.what is What.SEGFAULT for one in told):
            continue
        error = _error(told) or _exit(exits)
        leads = each[:3] == first
        trust = (82 if told else 78 if any(one.data.get("exitcode") in {-9, -11, -7, -6} for one in exits) else 55) - (
            0 if leads else 25
        )
        against = [] if told else [Message(_SAY["incident_only_exit"])]
        against += [Message(_SAY["incident_async"])] if any(one.what is What.DEVICE_ERROR for one in told) else []
        together = same.get(_error(told), []) if told else []
        ranks = (
            tuple(sorted(together))
            if len(together) > 1 and len(together) * 2 >= facts.world
            else ()
            if rank is None
            else (rank,)
        )
        todo = "fix_error" if told and not any(one.what is What.SEGFAULT for one in told) else "find_killer" if any(one.data.get("exitcode") == -9 for one in exits) else "core_dump"  # fmt: skip
        sure = Confidence.HIGH if told else Confidence.MEDIUM
        yield _made(facts, "incident_ended", "crash", ranks, time, trust, todo, (*told[:2], *exits[:1]), ("error", Kind.NAME, error), against=against, confidence=sure)  # fmt: skip


def _comm_error(facts: _Facts, rank: int | None) -> bool:
    return any(_after(one) for one in _of_rank(facts, rank, What.EXCEPTION))


def _error(told: Sequence[Event]) -> str:
    """What a process says it ended with, and where."""
    order = What.DEVICE_ASSERT, What.EXCEPTION, What.DEVICE_ERROR, What.SEGFAULT
    first = min(told, key=lambda one: order.index(one.what), default=None)
    if first is None:
        return ""
    own = first.data.get("own")
    text = "SIGSEGV (segmentation fault)" if first.what is What.SEGFAULT else first.message[:120]
    return f"{text} ({own})" if own else text


def _exit(exits: Sequence[Event]) -> str:
    code = next((one.data["exitcode"] for one in exits if "exitcode" in one.data), None)
    if isinstance(code, int) and code < 0:
        return f"{_SIGNALS.get(-code, f'signal {-code}')} (exit code {code})"
    return exits[0].message[:120] if code is None else f"exit code {code}"


def _waits(facts: _Facts) -> Iterator[Explanation]:
    """A rank that does not come to a collective, by what it does in place of that."""
    one = facts.root if facts.root is not None and facts.root.kind in {"missing", "unrecorded", "stuck"} else None
    against = list(facts.clock)
    if one is not None and one.culprits:
        ranks, count, time, trust = one.culprits, len(one.waiting), one.since_ns, 75 if one.kind == "missing" else 70
        if one.kind == "unrecorded" and len(ranks) * 2 > len(one.members):
            trust, against = 35, [*against, Message(_SAY["incident_many"])]
        elif one.kind == "unrecorded":
            against.append(Message(_SAY["incident_died_silent"]))
        if not facts.stands:
            trust, against = 35, [*against, Message(_SAY["incident_moments"])]
        records = _records(facts, one)
    else:
        waited = facts.complained
        silent = tuple(rank for rank in range(facts.world) if rank not in waited)
        ranks = facts.outliers or (silent if waited and 0 < len(silent) < len(waited) else ())
        if not ranks:
            return
        lost = [each for each in facts.evidence.of(What.COMM_ERROR, What.EXCEPTION) if _LOST.search(each.message)]
        if lost and not facts.outliers and not facts.evidence.of(What.TIMEOUT):
            time = min((each.time_ns for each in lost if each.time_ns is not None), default=None)
            yield _made(facts, "incident_died", "crash", ranks, time, 72, "find_killer", lost[:3], ("count", Kind.COUNT, len(waited)), confidence=Confidence.MEDIUM)  # fmt: skip
            return
        count = len(waited) or sum(each.state == "waiting" for each in facts.stacks.values())
        time, records = facts.stuck_ns, ()
        trust = (65 if facts.outliers else 55) if waited else 38
    rank = ranks[0]
    stack = facts.stacks.get(rank) if len(ranks) == 1 else None
    state = "" if stack is None else stack.state
    begins, ends = (_of_rank(facts, rank, kind) for kind in (What.CHECKPOINT_BEGIN, What.CHECKPOINT_END))
    saving = (
        len(ranks) == 1 and len(begins) > len(ends) and bool(ends or begins[-1:]) and facts.stands and state != "own"
    )
    storage = [each for each in facts.evidence.of(What.HOST_FAULT) if each.data.get("part") in {"storage", "nfs"}]
    proof = (*records, *(() if stack is None else (stack,)), *_of_rank(facts, rank, What.EXIT)[:1])
    where, values = _where(facts, ranks), ("count", Kind.COUNT, count)
    collective = ("collective", Kind.LIST, _collective(facts, ranks))
    if state == "checkpoint" or (
        saving
        and state != "starved"
        and begins[-1].data.get("step") is None
        and len(begins) == 1 + len(ends)
        and stack is None
    ):
        trust += 3
        yield _made(facts, "incident_checkpoint", "checkpoint", ranks, time, trust, "storage", (*proof, *begins[-1:], *storage[:2]), _doing(facts, rank), where, against=against)  # fmt: skip
    elif state == "starved":
        yield _made(facts, "incident_data", "data", ranks, time, trust, "loader", proof, _doing(facts, rank), where, _waited(facts.late), against=against)  # fmt: skip
    elif state == "own":
        key = "incident_hung" if collective[2] else "incident_hung_stack"
        yield _made(facts, key, "hang", ranks, time, trust + 2, "own_code", proof, _doing(facts, rank), collective, values, against=against)  # fmt: skip
    else:
        against.append(Message(_SAY["incident_no_stack"]))
        sure = Confidence.MEDIUM if one is not None and one.kind == "missing" else Confidence.LOW
        yield _made(facts, "incident_never_came" if collective[2] else "incident_silent_rank", "hang", ranks, time, trust, "look_at_rank", proof, collective, values, against=against, confidence=sure)  # fmt: skip


def _link(facts: _Facts) -> Iterator[Explanation]:
    """A link that fails: all are in a collective, and none gets out."""
    events = facts.evidence.of(What.LINK_ERROR)
    if not events:
        return
    hosts = {one.host for one in events if one.rank is None and one.host}
    weights: Counter[int] = Counter()
    for one in events:
        rank = facts.rank_of(one)
        if rank is not None:
            # Who names a port of its own is nearer to it than who got no answer.
            own = 0 if "status" in one.data else 4
            weights[rank] += (
                own + (1 if "nic" in one.data else 0) + (2 if facts.places.get(rank, Place()).host in hosts else 0)
            )
    best = max(weights.values(), default=0)
    ranks = tuple(rank for rank, weight in weights.items() if weight == best)
    host = next(iter(sorted(hosts)), "") if len(hosts) == 1 else ""
    first = min(events, key=lambda one: (one.time_ns is None, one.time_ns or 0))
    stuck = facts.root is not None and facts.root.kind == "stuck"
    trust = 74 if stuck else 68 if facts.evidence.of(What.TIMEOUT, What.COMM_ERROR) else 30
    time = first.time_ns if first.time_ns is not None else facts.stuck_ns
    yield _made(facts, "incident_link", "link", ranks, time, trust, "check_link", events[:4], _event(first), _where(facts), host=host, confidence=Confidence.MEDIUM)  # fmt: skip


def _numbers(facts: _Facts) -> Iterator[Explanation]:
    """A loss that is no number."""
    events = facts.evidence.of(What.NAN)
    stopped = [one for one in facts.evidence.of(What.OVERFLOW) if one.data.get("exhausted")]
    known = [one for one in events if isinstance(one.data.get("step"), int)]
    if events:
        step = min((int(one.data["step"]) for one in known), default=None)
        first = [one for one in known if one.data.get("step") == step] or list(events[:1])
        printing = {one.rank for one in facts.evidence.series if one.name == "loss" and one.rank is not None}
        ranks = {one.rank for one in first if one.rank is not None}
        apart = len(printing) > 1 and len(ranks) < len(printing)
        time = min((one.time_ns for one in first if one.time_ns is not None), default=None)
        against = (
            ()
            if apart or not printing
            else (Message(_SAY["incident_printed"], (("rank", Kind.COUNT, min(printing)),)),)
        )
        key = "incident_nan" if apart and ranks else "incident_nan_any"
        yield _made(facts, key, "nan", ranks if apart else (), time, 66, "nan", first[:3], ("step", Kind.COUNT, step), against=against)  # fmt: skip
    elif stopped:
        one = stopped[0]
        yield _made(facts, "incident_overflow", "nan", (), one.time_ns, 66, "nan", stopped[:2], ("step", Kind.COUNT, one.data.get("step")))  # fmt: skip


def _late(facts: _Facts) -> Iterator[Explanation]:
    """Ranks that the others wait for again and again, by what is known of their devices, hosts, stacks and places."""
    late = facts.late
    failed = facts.failed_ns is not None
    ranks = () if late is None else late.ranks
    throttled = [one for one in facts.evidence.of(What.THROTTLE) if facts.rank_of(one) is not None]
    hot = {facts.rank_of(one): one for one in reversed(throttled)}
    base = 30 if failed else 60
    faults = [one for one in facts.evidence.of(What.HOST_FAULT) if one.host]
    sick = {facts.rank_of(one): one for one in facts.evidence.of(What.XID, What.ECC) if one.data.get("hardware") or one.what is What.ECC}  # fmt: skip
    slow = [rank for rank in hot if rank in ranks] or [rank for rank in sick if rank in ranks]
    if late is None:
        slow = [rank for rank, one in hot.items() if facts.slowed(one.time_ns)]
    elif len(slow) < len(ranks):
        slow = []
    for rank in slow if len(slow) < max(facts.world, 2) else ():
        events = [each for each in (sick.get(rank), hot.get(rank)) if each is not None]
        text = ", ".join(map(event_text, events))
        time = min((each.time_ns for each in events if each.time_ns is not None), default=None)
        yield _made(facts, "incident_slow_device", "hardware", (rank,) if rank is not None else (), time, base + 2, "cool_device", events, ("event", Kind.NAME, text), _waited(late), since=True)  # fmt: skip
    hosts = {facts.places.get(rank, Place()).host for rank in ranks} - {""}
    host = hosts.pop() if len(hosts) == 1 else ""
    all_of_it = {rank for rank, place in facts.places.items() if place.host == host and host}
    ill = [one for one in faults if one.host == host]
    if late is None:
        if not failed and faults and facts.slowed(faults[0].time_ns):
            first = faults[0]
            those = [rank for rank, place in facts.places.items() if place.host == first.host]
            yield _slow_host(facts, those, faults, None, 50)
        return
    stage = late.stage is not None and not ill
    if not slow and not stage and host and set(ranks) == all_of_it and (len(ranks) > 1 or ill):
        yield _slow_host(facts, ranks, ill, late, base)
    if slow:
        return
    states = {facts.stacks[rank].state for rank in ranks if rank in facts.stacks}
    proof = [facts.stacks[rank] for rank in ranks if rank in facts.stacks]
    flights = [f"{one.source.path}: waits least in collectives" for one in facts.evidence.flights if one.rank in ranks]
    doing = _doing(facts, ranks[0] if len(ranks) == 1 else None)
    against = () if proof else (Message(_SAY["incident_no_stack"]),)
    if stage:
        yield _made(facts, "incident_stage", "pipeline", ranks, None, base - 1, "balance_stages", flights, ("stage", Kind.COUNT, late.stage), _waited(late), since=True)  # fmt: skip
    elif states == {"starved"}:
        yield _made(facts, "incident_data", "data", ranks, None, base - 2, "loader", (*proof, *flights), doing, _waited(late), since=True)  # fmt: skip
    elif states == {"checkpoint"}:
        yield _made(facts, "incident_checkpoint", "checkpoint", ranks, None, base - 2, "storage", (*proof, *flights), doing, since=True)  # fmt: skip
    else:
        key = "incident_pause" if late.steady else "incident_straggler"
        values = ("time", Kind.DURATION, late.each_ns), ("op", Kind.NAME, late.op)
        yield _made(facts, key, "straggler", ranks, None, base - 3, "own_code" if doing[2] else "look_at_rank", (*proof, *flights), doing, _waited(late), *values, against=against, confidence=Confidence.HIGH if proof else Confidence.MEDIUM, since=True)  # fmt: skip


def _slow_host(
    facts: _Facts, ranks: Sequence[int], faults: Sequence[Event], late: Lateness | None, trust: int
) -> Explanation:
    first = next(iter(faults), None)
    reason = _part(
        "event", "incident_reason" if first else None, ("event", Kind.NAME, "" if first is None else event_text(first))
    )
    time = None if first is None else first.time_ns
    key = "incident_slow_host" if len(ranks) > 1 else "incident_slow_host_one"
    sure = Confidence.HIGH if first is not None else Confidence.MEDIUM
    flights = [f"{one.source.path}: waits least in collectives" for one in facts.evidence.flights if one.rank in ranks]
    return _made(facts, key, "slow_host", ranks, time, trust, "cool_host", (*faults[:3], *flights), reason, _waited(late), confidence=sure, host="" if first is None else first.host or "", since=True)  # fmt: skip
