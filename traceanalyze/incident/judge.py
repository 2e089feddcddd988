"""From evidence to cause: what ended or slowed a run, whose it is, when it began, and what else it could be.

Who reports is not who caused: ranks that print a timeout waited. Every explanation has a trust, by what it rests on;
what proves a cause comes before what only shows that somebody waited, and what came after the first failure is an
effect. Nothing is read here and nothing is printed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np

from traceanalyze.incident.divergence import Divergence, Lateness
from traceanalyze.incident.evidence import Event, Evidence, What, first_ns
from traceanalyze.incident.explanations import (
    KINDS,
    NOTHING,
    Claim,
    Explanation,
    clocks,
    collective,
    cut,
    doing,
    event_text,
    explanation,
    message,
    say,
    waited,
    where,
)
from traceanalyze.incident.facts import GOES_ON, SYMPTOMS, Facts, Place, is_effect, overcome
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Message, Value
from traceanalyze.rules.finding import Confidence

HEADLINE = 40
"""Least trust of what is told as what happened; below it is only a possibility."""
_FULL = regex(r"(?i)out ?of ?memory|can't allocate memory|cannot allocate memory|unable to allocate")
_DEVICE = regex(r"CUDA|NPU|HIP|XPU|GPU|OutOfMemoryError")
_LOST = regex(r"(?i)connection (?:was )?(?:closed|reset)|closed by (?:remote )?peer|remote process exited|broken pipe")
_SIGNALS = {6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_NO_HOLDERS: Mapping[int | None, tuple[str, int]] = {}


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


def judge(
    evidence: Evidence,
    holders: Mapping[int | None, tuple[str, int]] = _NO_HOLDERS,
    recorded: Set[int | None] = frozenset(),
) -> Incident:
    """Explanations of what the files tell, by trust; one for each cause and its ranks.

    `holders` is what holds most of the device memory of each rank, by its snapshot, and how many bytes; `recorded` are
    ranks with a trace or a snapshot.
    """
    past = overcome(evidence)
    lasting = tuple(one for one in evidence.events if id(one) not in past)
    facts = Facts(evidence._replace(events=lasting), holders)
    claims = [(claim, facts) for maker in _MAKERS for claim in maker(facts)]
    if past:
        whole = Facts(evidence, holders)
        claims += [
            (one._replace(trust=min(one.trust, 25), against=(*one.against, message("went_on"))), whole)
            for maker in (_memory, _ended, _stopped)
            for one in maker(whole)
            if KINDS[one.key][0] != "unexplained" and any(id(each) in past for each in one.proof)
        ]
    found = sorted((explanation(*each) for each in claims), key=lambda one: (-one.trust, one.time_ns or 0))
    kept: dict[tuple[str, tuple[int, ...]], Explanation] = {}
    for one in found:
        if one.cause != "incident_unexplained" or all(each.trust < HEADLINE for each in kept.values()):
            kept.setdefault((one.cause, one.ranks), one)
    # Of a log that all share no rank has a file.
    apart = evidence.flights or any(one.rank is not None for one in evidence.files)
    silent = tuple(rank for rank in range(facts.world) if rank not in facts.seen | recorded) if apart else ()
    return Incident(
        tuple(kept.values()), facts.divergences, facts.late, facts.world, silent, facts.places, facts.rank_of
    )


def _first(events: Sequence[Event]) -> Event:
    return min(events, key=lambda one: (one.time_ns is None, one.time_ns or 0))


# --- Causes ----------------------------------------------------------------------------------------------------------

_MILD = frozenset({63, 92, 94, 121, 156})
"""Xids after which a device goes on; 94 ends the program that met the error."""
_SLACK_NS = 2 * 10**9
"""Sources round to a second, and a hang begins a moment before it is known."""


_LONG_BEFORE_NS = 3600 * 10**9
"""A device that failed so long before the first word of a run was none of it."""


def _of_hardware(one: Event) -> bool:
    if one.what in {What.XID, What.DEVICE_ERROR}:
        # 45 follows other errors.
        return one.data.get("hardware") == 1 and one.data.get("code") != 45
    if one.what is What.ECC:
        return bool(one.data.get("uncorrected"))
    return one.what is What.DEVICE_LOST or (one.what is What.SXID and bool(one.data.get("fatal")))


def _hardware(facts: Facts) -> Iterator[Claim]:
    """A device that fails before anything else does, and its rank."""
    places: dict[object, list[Event]] = defaultdict(list)
    for one in facts.evidence.of(What.XID, What.SXID, What.ECC, What.DEVICE_LOST, What.DEVICE_ERROR):
        if _of_hardware(one):
            rank = facts.rank_of(one)
            places[(one.host, one.device) if rank is None else rank].append(one)
    failed, stuck = facts.failed_ns, facts.stuck_ns
    for at, found in places.items():
        first = _first(found)
        time, sure = first.time_ns, Confidence.HIGH
        ranks = (at,) if isinstance(at, int) else ()
        if not ranks and facts.root is not None and len(facts.root.culprits) == 1:
            # No source places the device, and one rank only does not come.
            host = facts.places.get(facts.root.culprits[0], Place()).host
            ranks, sure = facts.root.culprits if not host or host == first.host else (), Confidence.MEDIUM
        mild = all(one.what is What.XID and one.data.get("code") in _MILD for one in found)
        later = time is not None and failed is not None and time > failed + _SLACK_NS
        before = 0 if time is None or facts.began_ns is None else facts.began_ns - time
        # A kernel that counts from its start may tell of another run.
        loose = time is None and failed is not None and not set(ranks) & facts.failed_ranks
        trust = 30 if later or before > _LONG_BEFORE_NS else 20 if mild else 70 if failed is None or loose else 100
        against = (*clocks(facts), *((message("later"),) if later else ()))
        if before > _LONG_BEFORE_NS:
            against = (*against, message("before", delay=before))
        proof = (*found[:3], *facts.events(ranks, What.TIMEOUT)[:1])
        host, device, event = first.host or "", first.device or "", event_text(first)
        if stuck is None or time is None or later or mild or before > _LONG_BEFORE_NS:
            yield Claim("failed", ranks, time, trust, proof, {"event": event}, "", host, device, against, sure)
            continue
        delay = stuck - time
        after = say("after", delay=delay, event=event) if stuck - time > 10**6 else say("after_at", event=event)
        values = {"after": after, "where": where(facts, ranks)}
        yield Claim("stopped", ranks, stuck, trust, proof, values, "", host, device, against, sure)


def _is_full(one: Event) -> bool:
    """Whether an event is of memory that is full."""
    return one.what is not What.EXCEPTION or _FULL.search(one.message) is not None


def _memory(facts: Facts) -> Iterator[Claim]:
    """Memory of a device or of a host that is full."""
    by_rank: dict[int | None, list[Event]] = defaultdict(list)
    for one in filter(_is_full, facts.evidence.of(What.OOM, What.HOST_OOM, What.EXCEPTION)):
        by_rank[facts.rank_of(one)].append(one)
    killed = {one.rank for one in facts.evidence.of(What.EXIT) if one.data.get("exitcode") == -9}
    for rank, found in by_rank.items():
        first = min(found, key=lambda one: (What.OOM, What.HOST_OOM, What.EXCEPTION).index(one.what))
        time = next((one.time_ns for one in found if one.time_ns is not None), facts.ended_ns(rank))
        ranks: Iterable[int] = () if rank is None else (rank,)
        proof = (*found[:3], *facts.events(ranks, What.EXIT)[:1])
        if first.what is What.OOM or (first.what is What.EXCEPTION and _DEVICE.search(first.message)):
            asked, free = first.data.get("asked"), first.data.get("free")
            kept = int(first.data.get("reserved", 0)) - int(first.data.get("allocated", 0))
            unused, others = int(first.data.get("unallocated", kept)), int(first.data.get("others", 0))
            known = asked is not None and free is not None
            amounts = say("amounts", asked=asked, free=free) if known else NOTHING
            enough = isinstance(asked, int) and max(unused, others) > asked
            todo = "" if not enough else "end_others" if others > unused else "fragmentation"
            npu = todo == "fragmentation" and (first.device or "").startswith("NPU")
            todo += "_npu" if npu else ""
            holder = facts.holders.get(rank)
            held = say("held", holder=holder[0], size=holder[1]) if holder else NOTHING
            yield Claim("oom", ranks, time, 94, proof, {"amounts": amounts, "held": held}, todo)
            continue
        kernel = any(one.data.get("oom_kill") for one in found)
        if rank is None and kernel and len(killed) == 1:
            ranks = [each for each in killed if each is not None]
        # The kernel also kills processes of others.
        trust = 92 if not kernel else 96 if ranks else 55 if killed or facts.failed_ns is not None else 30
        values = {"event": event_text(first)}
        yield Claim("host_oom" if kernel else "host_oom_own", ranks, time, trust, proof, values, host=first.host or "")


def _desync(facts: Facts) -> Iterator[Claim]:
    """Ranks that do not call the same collectives."""
    one, said = facts.root, facts.evidence.of(What.DESYNC)
    if one is not None and one.kind in {"operation", "size", "order"}:
        values = {"other": one.other, "op": one.op, "where": where(facts)}
        sure = Confidence.HIGH if len(one.culprits) * 2 < len(one.members) else Confidence.MEDIUM
        proof = (*said[:2], *facts.records(one))
        yield Claim(one.kind, one.culprits, one.since_ns, 90, proof, values, sure=sure)
    elif one is None and (unlike := _unlike_timeouts(facts)):
        yield unlike
    elif said:
        # Who says so is not who is wrong.
        values = {"event": event_text(said[0])}
        yield Claim("desync", (), said[0].time_ns, 88, said[:2], values, sure=Confidence.MEDIUM)


def _unlike_timeouts(facts: Facts) -> Claim | None:
    """Without dumps: in one collective of a group few ranks timed out in another operation or size than most."""
    groups = {(one.rank, one.data.get("seq")): one.data.get("group") for one in facts.evidence.of(What.GROUP_STATUS)}
    same: dict[object, list[Event]] = defaultdict(list)
    for one in facts.evidence.of(What.TIMEOUT):
        if (group := groups.get((one.rank, one.data.get("seq")))) is not None and one.rank is not None:
            same[group, one.data.get("seq")].append(one)
    for found in same.values():
        calls = Counter((one.data.get("op"), one.data.get("numel_in")) for one in found)
        (op, _), most = calls.most_common(1)[0]
        odd = [one for one in found if (one.data.get("op"), one.data.get("numel_in")) != calls.most_common(1)[0][0]]
        if odd and len(odd) < most:
            other = odd[0].data.get("op")
            seq = say("collective_seq", seq=odd[0].data.get("seq"))
            values = {"other": other, "op": op, "where": say("in", collective=seq)}
            ranks = [one.rank for one in odd if one.rank is not None]
            key = "size" if other == op else "operation"
            return Claim(key, ranks, facts.stuck_ns, 86, (*odd[:2], *found[:1]), values)
    return None


class _End(NamedTuple):
    """How a rank ended; the first of them sorts first."""

    not_root: bool
    """The launcher does not call it the first."""
    timeless: bool
    time_ns: int
    rank: int | None
    told: tuple[Event, ...]
    """What it says itself, or the kernel of it."""
    exits: tuple[Event, ...]
    """What the launcher says."""


def _ends(facts: Facts) -> list[_End]:
    """Ranks that ended by themselves, not for waiting and not by others."""
    by_rank: dict[int | None, list[Event]] = defaultdict(list)
    kinds = What.EXCEPTION, What.DEVICE_ERROR, What.DEVICE_ASSERT, What.SEGFAULT, What.EXIT
    for one in facts.evidence.of(*kinds):
        if not is_effect(one) and one.data.get("type") != "KeyboardInterrupt":
            by_rank[facts.rank_of(one)].append(one)
    roots = {one.rank for one in facts.evidence.of(What.EXIT) if one.data.get("root_cause")}
    full = {facts.rank_of(one) for one in facts.evidence.of(What.OOM, What.HOST_OOM, What.EXCEPTION) if _is_full(one)}
    found = []
    for rank, events in by_rank.items():
        told = tuple(one for one in events if one.what is not What.EXIT)
        exits = tuple(one for one in events if one.what is What.EXIT)
        aborted = not told and rank in facts.complained
        if aborted or (rank in full and not any(one.what is What.SEGFAULT for one in told)):
            continue
        time = next((one.time_ns for one in (*told, *exits) if one.time_ns is not None), facts.ended_ns(rank))
        found.append(_End(rank not in roots, time is None, time or 0, rank, told, exits))
    return sorted(found, key=lambda one: one[:3])


def _ended(facts: Facts) -> Iterator[Claim]:
    """A process that ended by itself, before those that waited for it or were ended."""
    ends = _ends(facts)
    same: dict[str, set[int]] = defaultdict(set)
    for one in ends:
        if one.rank is not None and one.told:
            same[_error(one.told)].add(one.rank)
    for one in ends:
        codes = {each.data.get("exitcode") for each in one.exits}
        alone = one.rank is not None and one.rank not in facts.complained and any(code != 0 for code in codes)
        trust = 82 if one.told else 78 if codes & {-9, -11, -7, -6} or alone else 55
        together = same.get(_error(one.told), set())
        ranks = together if len(together) * 2 >= facts.world > 1 else () if one.rank is None else (one.rank,)
        words = " ".join(each.message for each in one.told)
        crashed = bool(codes & {-11, -7, -6}) or _CRASH.search(words) is not None
        todo = next((todo for text, todo in _CURES if text.search(words)), "fix_error" if one.told else "look_at_rank")
        todo = (
            "own_code" if crashed and any("own" in each.data for each in one.told) else "core_dump" if crashed else todo
        )
        todo = "find_killer" if not one.told and -9 in codes else todo
        against = [] if one.told else [message("only_exit")]
        against += [message("async")] if any(each.what is What.DEVICE_ERROR for each in one.told) else []
        time, trust = None if one.timeless else one.time_ns, trust if one[:3] == ends[0][:3] else trust - 25
        proof, sure = (*one.told[:2], *one.exits[:1]), Confidence.HIGH if one.told else Confidence.MEDIUM
        values = {"error": _error(one.told) or _exit(one.exits)}
        yield Claim("ended", ranks, time, trust, proof, values, todo, against=against, sure=sure)


_CRASH = regex(r"segfault|Fatal Python error: (?:Segm|Bus|Abort)")
_CURES = (
    (regex(r"shared memory \(shm\)|DataLoader worker .*Bus error"), "shared_memory"),
    (regex(r"DataLoader worker .*Killed"), "host_memory"),
)
"""What helps against errors that are none of the program's own lines."""


def _error(told: Sequence[Event]) -> str:
    """What a process says it ended with, and where."""
    order = What.DEVICE_ASSERT, What.EXCEPTION, What.DEVICE_ERROR, What.SEGFAULT
    first = min(told, key=lambda one: order.index(one.what), default=None)
    if first is None:
        return ""
    text = "SIGSEGV (segmentation fault)" if first.what is What.SEGFAULT else first.message
    if first.what is What.DEVICE_ASSERT:
        file, line, expression = (first.data.get(key, "?") for key in ("file", "line", "expression"))
        text = f"Assertion `{expression}` failed in a kernel at {str(file).rpartition('/')[2]}:{line}"
    place = next((each.data["own"] for each in told if "own" in each.data), "")
    return f"{cut(text)} ({place})" if place else cut(text)


def _exit(exits: Sequence[Event]) -> str:
    code = next((one.data["exitcode"] for one in exits if "exitcode" in one.data), None)
    if isinstance(code, int) and code < 0:
        return f"{_SIGNALS.get(-code, f'signal {-code}')} (exit code {code})"
    return cut(exits[0].message) if code is None else f"exit code {code}"


def _stopped(facts: Facts) -> Iterator[Claim]:
    """That it was ended from outside, or that it stopped, for want of anything better."""
    by_hand = [
        one
        for one in facts.evidence.of(What.EXCEPTION, What.SIGNAL)
        if one.data.get("type") == "KeyboardInterrupt" or "death signal" in one.message
    ]
    for one in (*facts.evidence.of(What.CANCELLED), *by_hand)[:1]:
        reason = {"event": event_text(one)}
        yield Claim("cancelled", (), one.time_ns, 50, [one], reason, host=one.host or "")
    told = [one for one in facts.evidence.of(*SYMPTOMS, What.EXIT, What.EXCEPTION) if one.data.get("exitcode") != 0]
    if told:
        first = _first(told)
        time = first.time_ns if facts.stuck_ns is None else facts.stuck_ns
        values: dict[str, Value] = {"count": len(facts.complained), "event": event_text(first), "where": where(facts)}
        # A store that is gone when others end is usual.
        trust = HEADLINE if any(one.what is not What.STORE_ERROR for one in told) else 20
        key = "unexplained" if facts.complained else "unexplained_alone"
        yield Claim(key, (), time, trust, told[:3], values, sure=Confidence.LOW)


class _Wait(NamedTuple):
    """Ranks that others wait for."""

    ranks: tuple[int, ...]
    others: int
    """How many."""
    time_ns: int | None
    trust: int
    against: tuple[Message, ...]
    records: tuple[str, ...] = ()


def _waited_for(facts: Facts) -> _Wait | None:
    """By the flight recorders; else by stacks, else by who complains and who says nothing."""
    one = facts.root
    if one is not None and one.kind in {"missing", "unrecorded", "stuck"} and one.culprits:
        trust, against = 75 if one.kind == "missing" else 70, list(clocks(facts))
        if one.kind == "unrecorded":
            many = len(one.culprits) * 2 > len(one.members)
            trust, against = 35 if many else 70, [*against, message("many" if many else "died_silent")]
        if not facts.stands:
            # Recorders write by themselves only when something timed out; beside logs without any trouble they did not.
            alone = {each.kind for each in facts.evidence.files} <= {"flight_recorder", "other"}
            trust, against = 45 if alone and trust > HEADLINE else 35, [*against, message("moments")]
        return _Wait(one.culprits, len(one.waiting), one.since_ns, trust, tuple(against), facts.records(one))
    told = facts.complained
    silent = tuple(rank for rank in range(facts.world) if rank not in told)
    ranks = facts.outliers or (silent if 0 < len(silent) < len(told) else ())
    count = len(told) or sum(each.state == "waiting" for each in facts.stacks.values())
    trust = 38 if not told else 65 if facts.outliers else 55
    return _Wait(ranks, count, facts.stuck_ns, trust, clocks(facts)) if ranks else None


def _waits(facts: Facts) -> Iterator[Claim]:
    """A rank that does not come to a collective, by what it does in place of that."""
    wait = _waited_for(facts)
    if wait is None:
        return
    ranks, time, against, count = wait.ranks, wait.time_ns, wait.against, wait.others
    lost = [one for one in facts.evidence.of(What.COMM_ERROR, What.EXCEPTION) if _LOST.search(one.message)]
    if lost and not wait.records and not facts.outliers and not facts.evidence.of(What.TIMEOUT):
        time = first_ns(lost)
        yield Claim("died", ranks, time, 72, lost[:3], {"count": count}, sure=Confidence.MEDIUM)
        return
    stack = facts.stacks.get(ranks[0]) if len(ranks) == 1 else None
    state = "" if stack is None else stack.state
    saving = facts.events(ranks, What.CHECKPOINT_BEGIN), facts.events(ranks, What.CHECKPOINT_END)
    unsaved = stack is None and len(ranks) == 1 and len(saving[0]) > len(saving[1]) > 0
    called = collective(facts, ranks)
    proof = (*wait.records, *(() if stack is None else (stack,)), *facts.events(ranks, What.EXIT)[:1])
    values = {"doing": doing(facts, ranks), "where": where(facts, ranks), "collective": called, "count": count}
    if state == "checkpoint" or unsaved:
        storage = [one for one in facts.evidence.of(What.HOST_FAULT) if one.data.get("part") in {"storage", "nfs"}]
        proof = (*proof, *saving[0][-1:], *storage[:2])
        yield Claim("checkpoint", ranks, time, wait.trust + 3, proof, values, against=against)
    elif state == "starved":
        yield Claim("data", ranks, time, wait.trust, proof, values, against=against)
    elif state == "own":
        key = "hung" if called else "hung_stack"
        yield Claim(key, ranks, time, wait.trust + 2, proof, values, against=against)
    else:
        recorded = facts.root is not None and facts.root.kind == "missing" and facts.stands
        sure = Confidence.MEDIUM if recorded else Confidence.LOW
        key = "never_came" if called else "silent_rank"
        against = (*against, *(() if ranks[0] in facts.stacks else (message("no_stack"),)))
        yield Claim(key, ranks, time, wait.trust, proof, values, against=against, sure=sure)


def _link(facts: Facts) -> Iterator[Claim]:
    """A link that fails: all are in a collective, and none gets out."""
    events = facts.evidence.of(What.LINK_ERROR)
    if not events:
        return
    hosts = {one.host for one in events if one.rank is None and one.host and "pid" not in one.data}
    weights: Counter[int] = Counter()
    for one in events:
        rank = facts.rank_of(one)
        if rank is not None:
            # Who names a port of its own is nearer to it than who got no answer.
            own = (0 if "status" in one.data else 4) + ("nic" in one.data)
            weights[rank] += own + 2 * (facts.places.get(rank, Place()).host in hosts)
    best = max(weights.values(), default=0)
    ranks = [rank for rank, weight in weights.items() if weight == best]
    first = _first(events)
    stuck = facts.root is not None and facts.root.kind == "stuck"
    trust = 74 if stuck else 68 if facts.evidence.of(What.TIMEOUT, What.COMM_ERROR) else 30
    time = facts.stuck_ns if first.time_ns is None else first.time_ns
    values = {"event": event_text(first), "where": where(facts)}
    host = hosts.pop() if len(hosts) == 1 else ""
    yield Claim("link", ranks, time, trust, events[:4], values, host=host, sure=Confidence.MEDIUM)


def _numbers(facts: Facts) -> Iterator[Claim]:
    """A loss that is no number."""
    events = facts.evidence.of(What.NAN)
    stopped = [one for one in facts.evidence.of(What.OVERFLOW) if one.data.get("exhausted")]
    if not events:
        for one in stopped[:1]:
            yield Claim("overflow", (), one.time_ns, 66, stopped[:2], {"step": _in_step(one.data.get("step"))})
        return
    lasting = [one for one in events if not _recovered(one, facts)]
    trust, events = (66, tuple(lasting)) if lasting else (25, events)
    step = min((one.data["step"] for one in events if isinstance(one.data.get("step"), int)), default=None)
    first = [one for one in events if one.data.get("step") == step]
    printing = {one.rank for one in facts.evidence.series if one.name == "loss" and one.rank is not None}
    ranks = {one.rank for one in first if one.rank is not None}
    # Where all print it or one does, it is the loss of all.
    apart = 0 < len(ranks) < len(printing)
    time = first_ns(first)
    against = [message("printed", rank=str(min(printing)))] if len(printing) == 1 else []
    against += [] if lasting else [message("went_on")]
    norm = all(str(one.data.get("series")).startswith("grad") for one in first)
    values = {"step": _in_step(step), "series": f"incident_{'norm' if norm else 'loss'}"}
    key = "nan" if apart else "nan_any"
    yield Claim(key, ranks if apart else (), time, trust, first[:3], values, against=against)


def _in_step(step: Value) -> Value:
    return NOTHING if step is None else say("in_step", step=step)


def _recovered(event: Event, facts: Facts) -> bool:
    """Whether the losses that are printed after it are numbers again."""
    if "recovered" in event.data:
        return True
    own = [one for one in facts.evidence.series if one.name == "loss" and one.source.path == event.source.path]
    told = "step" not in event.data and int(event.data.get("steps_after", 0)) >= GOES_ON
    return told and any(np.isfinite(one.values[-GOES_ON:]).all() for one in own)


def _late(facts: Facts) -> Iterator[Claim]:
    """Ranks that the others wait for again and again, by what is known of their devices, hosts, stacks and places."""
    late, base = facts.late, 60 if facts.failed_ns is None else 30
    ranks = () if late is None else late.ranks
    slow = _slow_devices(facts)
    for rank, events in slow.items():
        time = first_ns(events)
        values = {"event": ", ".join(map(event_text, events)), "waited": waited(late)}
        yield Claim("slow_device", (rank,), time, base + 2, events, values, since=True)
    if slow:
        return
    faults = [one for one in facts.evidence.of(What.HOST_FAULT) if one.host]
    if late is None:
        for one in [one for one in faults if base == 60 and facts.slowed(one.time_ns)][:1]:
            yield _slow_host(facts, facts.ranks_on(one.host or ""), [one], 50)
        return
    hosts = {facts.places.get(rank, Place()).host for rank in ranks}
    host = hosts.pop() if len(hosts) == 1 else ""
    ill = [one for one in faults if one.host == host]
    if late.stage is not None and not ill:
        values = {"stage": late.stage, "waited": waited(late)}
        yield Claim("stage", ranks, None, base - 1, facts.waiting_least, values, since=True)
        return
    if host and set(ranks) == set(facts.ranks_on(host)) and (len(ranks) > 1 or ill):
        yield _slow_host(facts, ranks, ill, base)
    yield _straggler(facts, late, base)


def _slow_devices(facts: Facts) -> dict[int, list[Event]]:
    """Devices that throttle or correct errors, of all the late ranks; without dumps, since when steps take longer."""
    found: dict[int, list[Event]] = defaultdict(list)
    for one in facts.evidence.of(What.XID, What.ECC, What.THROTTLE):
        rank = facts.rank_of(one)
        told = one.what is not What.XID or one.data.get("hardware")
        known = rank is not None and one.what in {each.what for each in found.get(rank, ())}
        if rank is not None and told and not known and (facts.late is not None or facts.slowed(one.time_ns)):
            found[rank].append(one)
    if facts.late is not None:
        found = defaultdict(list, {rank: each for rank, each in found.items() if rank in facts.late.ranks})
        return found if len(found) == len(facts.late.ranks) else {}
    return found if len(found) * 2 <= facts.world else {}


def _slow_host(facts: Facts, ranks: Sequence[int], faults: Sequence[Event], trust: int) -> Claim:
    first = next(iter(faults), None)
    reason = NOTHING if first is None else say("reason", event=event_text(first))
    values = {"event": reason, "waited": waited(facts.late)}
    proof, time = (*faults[:3], *facts.waiting_least), None if first is None else first.time_ns
    sure = Confidence.MEDIUM if first is None else Confidence.HIGH
    key = "slow_host" if len(ranks) > 1 else "slow_host_one"
    return Claim(key, ranks, time, trust, proof, values, sure=sure, since=True)


def _straggler(facts: Facts, late: Lateness, base: int) -> Claim:
    """A late rank that nothing but its stack explains."""
    stacks = [facts.stacks[rank] for rank in late.ranks if rank in facts.stacks]
    states, proof = {one.state for one in stacks}, (*stacks, *facts.waiting_least)
    values = {"doing": doing(facts, late.ranks), "waited": waited(late)}
    if states in ({"starved"}, {"checkpoint"}):
        key = "data" if states == {"starved"} else "checkpoint"
        return Claim(key, late.ranks, None, base - 2, proof, values, since=True)
    values |= {"pause": late.each_ns, "op": late.op}
    against = () if stacks else (message("no_stack"),)
    todo, sure = "own_code" if stacks else "look_at_rank", Confidence.HIGH if stacks else Confidence.MEDIUM
    key = "pause" if late.steady else "straggler"
    return Claim(key, late.ranks, None, base - 3, proof, values, todo, against=against, sure=sure, since=True)


_MAKERS = (_hardware, _memory, _desync, _ended, _waits, _link, _numbers, _late, _stopped)
"""Each tells of one kind of cause."""
