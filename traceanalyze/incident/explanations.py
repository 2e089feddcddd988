"""An explanation in words: a claim of who did what when becomes a sentence, with what to do and what contradicts it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from traceanalyze.incident.divergence import Lateness
from traceanalyze.incident.evidence import Event, Stack, What
from traceanalyze.incident.facts import Facts, Place
from traceanalyze.incident.stacks import is_library
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Kind, Message, Value, sentences
from traceanalyze.ranks.results import spans
from traceanalyze.rules.finding import Confidence

_SAY = sentences(
    incident_rank="Rank {rank}{place}",
    incident_ranks="Ranks {ranks}{place}",
    incident_somebody="An unknown rank{place}",
    incident_process="A process{place}",
    incident_all="All ranks",
    incident_place=" ({place})",
    incident_host="host {host}",
    incident_device="{device}",
    incident_at=" at {time}",
    incident_since=" from {time} on",
    incident_in=" in {collective}",
    incident_collective="{op} {seq} of group {group}",
    incident_collective_seq="collective {seq}",
    incident_after_at=", right after {event}",
    incident_after=", {delay} after {event}",
    incident_resume="; resume from step {step}",
    incident_doing=" in {frame}",
    incident_stopped="{who} stopped answering{when}{where}{after}: {todo}{resume}.",
    incident_hung=(
        "{who} hung{when}{doing} and did not come to {collective}, for which {count} rank(s) waited: {todo}{resume}."
    ),
    incident_hung_stack="{who} hung{when}{doing} while {count} rank(s) waited in a collective: {todo}{resume}.",
    incident_silent_rank="{who} said nothing more{when}, while {count} rank(s) waited: {todo}{resume}.",
    incident_never_came="{who} did not come{when} to {collective}, for which {count} rank(s) waited: {todo}{resume}.",
    incident_died="{who} died{when} without a word: {count} rank(s) lost the connection to it: {todo}{resume}.",
    incident_ended="{who} ended{when} with {error}: {todo}{resume}.",
    incident_oom="{who} ran out of device memory{when}{amounts}{held}: {todo}{resume}.",
    incident_held="; {holder} held most ({size})",
    incident_amounts=" ({asked} asked for, {free} free)",
    incident_host_oom="{who} was killed{when}, as the host memory ran out ({event}): {todo}{resume}.",
    incident_host_oom_own="{who} ran out of host memory{when}: {todo}{resume}.",
    incident_operation="{who} called {other}{when} where the others called another collective{where}: {todo}{resume}.",
    incident_size="{who} called {op}{when} with another size than the others{where}: {todo}{resume}.",
    incident_order="{who} called collectives in another order than the others{when}{where}: {todo}{resume}.",
    incident_desync="Ranks called different collectives{when} ({event}): {todo}{resume}.",
    incident_nan="{who} had the first {series} that is NaN or infinite{when}{step}: {todo}{resume}.",
    incident_nan_any="The {series} became NaN or infinite{when}{step}: {todo}{resume}.",
    incident_overflow="The loss scale ran out{when}{step}: {todo}{resume}.",
    incident_in_step=", in step {step}",
    incident_failed="{who} lost the device{when} ({event}): {todo}{resume}.",
    incident_slow_device="{who} became slow{when}, as did the device ({event}){waited}: {todo}.",
    incident_slow_host="{who} ran slowly{when}, all ranks of that host{event}{waited}: {todo}.",
    incident_slow_host_one="{who} ran slowly{when}, as did the host{event}{waited}: {todo}.",
    incident_reason=" ({event})",
    incident_waited="; the others waited {share} of the time",
    incident_link="{who} lost the network link{when}{where} ({event}): {todo}{resume}.",
    incident_pause="{who} made a pause of {pause} every time before {op}{doing}{waited}: {todo}.",
    incident_straggler="{who} came late to collectives again and again{doing}{waited}: {todo}.",
    incident_data="{who} waited for data{when}{doing}{where}{waited}: {todo}{resume}.",
    incident_stage="{who} ran slowly: stage {stage} of the pipeline needs longer than the others{waited}: {todo}.",
    incident_checkpoint="{who} stood still{when} while writing a checkpoint{doing}{where}: {todo}{resume}.",
    incident_cancelled="The job was stopped{when} from outside ({event}): {todo}{resume}.",
    incident_unexplained=(
        "The run stopped{when}{where}: {count} rank(s) waited or lost a connection, and nothing tells for whom "
        "({event}): {todo}{resume}."
    ),
    incident_unexplained_alone="The run stopped{when}{where}, and nothing tells why ({event}): {todo}{resume}.",
    incident_died_silent="No dump or log says why: it ended before it could write one, or the recorder was off there.",
    incident_later="It came after the run had failed: more likely an effect.",
    incident_only_exit="The way it ended says only that it died, not why.",
    incident_async="Errors of a device are reported late: the line of the program may be another one.",
    incident_unclocked="Clocks of the sources are not known to agree: {reason}.",
    incident_no_stack="No stack shows what it did.",
    incident_moments="Dumps may have been written at different moments: nothing else says that the run stood still.",
    incident_many="That many ranks left no dump: it may be that theirs were only not kept.",
    incident_printed="Only rank {rank} prints its loss: it may be that of any.",
    incident_went_on="The run went on after it: it did not end it.",
    incident_before="It came {delay} before anything else that is told of this run.",
    incident_no_time="When it happened is not told.",
)

KINDS: Mapping[str, tuple[str, str]] = {
    "stopped": ("hardware", "replace_node"),
    "failed": ("hardware", "replace_node"),
    "slow_device": ("hardware", "cool_device"),
    "hung": ("hang", "own_code"),
    "hung_stack": ("hang", "own_code"),
    "never_came": ("hang", "look_at_rank"),
    "silent_rank": ("hang", "look_at_rank"),
    "ended": ("crash", "fix_error"),
    "died": ("crash", "find_killer"),
    "oom": ("oom", "memory"),
    "host_oom": ("host_oom", "host_memory"),
    "host_oom_own": ("host_oom", "host_memory"),
    **dict.fromkeys(("operation", "size", "order", "desync"), ("desync", "same_collectives")),
    **dict.fromkeys(("nan", "nan_any", "overflow"), ("nan", "nan")),
    **dict.fromkeys(("slow_host", "slow_host_one"), ("slow_host", "cool_host")),
    "link": ("link", "check_link"),
    "pause": ("straggler", "own_code"),
    "straggler": ("straggler", "look_at_rank"),
    "data": ("data", "loader"),
    "stage": ("pipeline", "balance_stages"),
    "checkpoint": ("checkpoint", "storage"),
    "cancelled": ("cancelled", "ask_scheduler"),
    **dict.fromkeys(("unexplained", "unexplained_alone"), ("unexplained", "record")),
}
"""Sentence → the cause, and what to do."""
_STAMP = regex(r"^(?:.*?NCCL WARN |[IWEF]\d{3,4} \S+ \d+ \S+\] |(?:what\(\): *)?\[[^\]]*\]\.? ?)+")
"""What a kernel or a library puts before its words."""
_KIND = {
    **dict.fromkeys(("count", "seq", "step", "stage"), Kind.COUNT),
    **dict.fromkeys(("asked", "free", "size"), Kind.MEMORY),
    **dict.fromkeys(("delay", "pause"), Kind.DURATION),
    **dict.fromkeys(("time", "rank", "ranks", "reason"), Kind.TEXT),
    **dict.fromkeys(("todo", "series"), Kind.TERM),
    "share": Kind.SHARE,
}
"""Of a value in a sentence, by its name; others are names. A tuple is a part of the sentence."""
NOTHING: Value = ()
_PARTS = ("where", "after", "doing", "waited", "event", "resume", "held")
"""Parts of sentences that may be empty."""


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


class Claim(NamedTuple):
    """An explanation before it is put into words."""

    key: str
    """Of its sentence, in `KINDS`."""
    ranks: Iterable[int]
    time_ns: int | None
    trust: int
    proof: Iterable[Any]
    """Events, stacks, or words."""
    values: Mapping[str, Value] = {}
    todo: str = ""
    """Another one than usual."""
    host: str = ""
    device: str = ""
    against: Sequence[Message] = ()
    sure: Confidence = Confidence.HIGH
    since: bool = False
    """It goes on from that time."""


def message(key: str, **values: Value) -> Message:
    """A sentence, by its key."""
    kinds = {name: Kind.LIST if isinstance(one, tuple) else _KIND.get(name, Kind.NAME) for name, one in values.items()}
    return Message(_SAY[f"incident_{key}"], tuple((name, kinds[name], one) for name, one in values.items()))


def say(key: str, **values: Value) -> Value:
    """A part of a sentence."""
    return (message(key, **values),)


def explanation(claim: Claim, facts: Facts) -> Explanation:
    """The claim with what all sentences have: who, when, what to do, where to go on."""
    who, time = tuple(sorted(claim.ranks)), claim.time_ns
    places = [facts.places.get(rank, Place()) for rank in who]
    hosts = {one.host for one in places if one.host} or {claim.host}
    host = hosts.pop() if len(hosts) == 1 else ""
    device = (places[0].device or claim.device) if len(who) == 1 else "" if who else claim.device
    cause, todo = KINDS[claim.key]
    todo, step = f"incident_do_{claim.todo or todo}", facts.resume(time)
    values = {
        **dict.fromkeys(_PARTS, NOTHING),
        "who": _who(who, host, device, facts.world),
        "when": NOTHING if time is None else say("since" if claim.since else "at", time=_clock(time)),
        "todo": todo,
        **({} if step is None else {"resume": say("resume", step=step)}),
        **claim.values,
    }
    doubts = (*claim.against, *(() if time is not None or claim.since else (message("no_time"),)))
    proof, said = tuple(dict.fromkeys(map(_shown, claim.proof))), message(claim.key, **values)
    return Explanation(f"incident_{cause}", who, host, device, time, claim.trust, claim.sure, said, todo, proof, doubts)


def _who(ranks: tuple[int, ...], host: str, device: str, world: int) -> Value:
    if len(ranks) == world > 1:
        return say("all")
    parts = [message("host", host=host)] if host else []
    parts += [message("device", device=device)] if device else []
    place = say("place", place=tuple(parts)) if parts else NOTHING
    if not ranks:
        return say("somebody" if world else "process", place=place)
    if len(ranks) == 1:
        return say("rank", rank=str(ranks[0]), place=place)
    return say("ranks", ranks=spans_of(ranks), place=place)


def spans_of(ranks: Iterable[int]) -> str:
    """Ranks as a text: 0-3,7."""
    return spans(list(map(str, ranks)))


def _clock(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):%H:%M:%S}"


def _shown(one: Event | Stack | str) -> str:
    if isinstance(one, str):
        return one
    words = one.message if isinstance(one, Event) else " < ".join(one.frames[:4])
    return f"{one.source}: {words}"


def clocks(facts: Facts) -> tuple[Message, ...]:
    """A doubt where clocks may not agree."""
    return (message("unclocked", reason=facts.unclocked),) if facts.unclocked else ()


def collective(facts: Facts, ranks: Sequence[int] = ()) -> Value:
    """The collective in which ranks are waited for, where it is known."""
    one = facts.root
    if one is not None and (not ranks or set(ranks) & set(one.culprits) or not one.culprits):
        group = one.group.desc if one.group.desc not in {"", "undefined"} else one.group.name
        return say("collective", op=one.op, seq=one.seq, group=group)
    numbers = {each.data.get("seq") for each in facts.evidence.of(What.TIMEOUT)} - {None}
    if len(numbers) == 1 and not facts.evidence.flights:
        return say("collective_seq", seq=numbers.pop())
    return NOTHING


def where(facts: Facts, ranks: Sequence[int] = ()) -> Value:
    """In which collective."""
    found = collective(facts, ranks)
    return say("in", collective=found) if found else NOTHING


def _own_frame(stack: Stack) -> str:
    return next((frame for frame in stack.frames if not is_library(frame)), next(iter(stack.frames), ""))


def doing(facts: Facts, ranks: Sequence[int]) -> Value:
    """In which frame, of a single rank."""
    stack = facts.stacks.get(ranks[0]) if len(ranks) == 1 else None
    return NOTHING if stack is None else say("doing", frame=_own_frame(stack))


def waited(late: Lateness | None) -> Value:
    """How long the others waited."""
    return NOTHING if late is None else say("waited", share=late.share)


def event_text(one: Event) -> str:
    """`Xid 79 (GPU has fallen off the bus)`, or its words."""
    if one.what in {What.XID, What.SXID} and "code" in one.data:
        meaning = one.data.get("meaning")
        return f"{'Xid' if one.what is What.XID else 'SXid'} {one.data['code']}" + (f" ({meaning})" if meaning else "")
    if one.what is What.THROTTLE:
        parts = [str(one.data.get("reason", "throttling"))]
        for key, unit in (("clock_mhz", "MHz"), ("temperature", "°C")):
            value = one.data.get(key)
            parts += [f"{value:.0f} {unit}"] if isinstance(value, int | float) else []
        return "throttling: " + ", ".join(parts)
    if one.what is What.ECC and "code" in one.data:
        return str(one.data["code"])
    return cut(without_stamp(one.message), 100)


def cut(text: str, most: int = 120) -> str:
    """The beginning of a text, which shows that it is one."""
    return text if len(text) <= most else f"{text[: most - 1].rsplit(' ', 1)[0]}…"


def without_stamp(words: str) -> str:
    """Words of a kernel or a program without what stands before them in brackets."""
    return _STAMP.sub("", words)
