"""The sentences a post-mortem opens with: what limited the run, where, since when, why, and what to do first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.causes.memory import SEVERITIES
from traceanalyze.causes.synthesize import STRAGGLER, worth_telling
from traceanalyze.causes.waiting import WAITING
from traceanalyze.model.table import Kind, Message
from traceanalyze.model.vocabulary import Mode
from traceanalyze.report.assembly.postmortem.actions import actions
from traceanalyze.report.assembly.postmortem.causes import amounts, because, on_ranks
from traceanalyze.report.assembly.postmortem.recordings import change
from traceanalyze.report.assembly.postmortem.words import remedy_of_memory, sentence, title
from traceanalyze.rules.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.causes.results import Cause, Onset, Postmortem
    from traceanalyze.report.assembly.postmortem.parts import JobParts, MemoryPart
    from traceanalyze.report.model import RankReport
    from traceanalyze.rules.finding import Finding

NAMED = 2
"""Further causes that the verdict names."""


def verdict(found: Postmortem, job: JobParts, deciding: RankReport | None) -> tuple[Message, ...]:
    """Memory that ends the run first, then what limits its step; of a healthy run, that it is one."""
    ending = [one for one in found.causes if one.trouble is not None and one.severity == Severity.HIGH]
    memory = tuple(_memory(ending[0], job)) if ending else ()
    if deciding is None:
        return memory or _of_memory_alone(job)
    limits = [one for one in found.causes if worth_telling(one) and one.part_of is None]
    if not limits:
        return (*memory, *_healthy(found, deciding), *change(found))
    return (*memory, *_limited(limits[0], found, job, first=not memory), *_next(limits[1:]), *change(found))


def _memory(one: Cause, job: JobParts) -> Iterator[Message]:
    failed = one.trouble is not None and one.trouble.key.startswith("oom")
    known = on_ranks(one)
    key = "ran_out" if failed else "will_run_out"
    yield Message(f"{key}_rank", (("rank", Kind.TEXT, known),)) if known else Message(key)
    yield remedy_of_memory(one, job)


def _of_memory_alone(job: JobParts) -> tuple[Message, ...]:
    """Without a trace: what the file with the worst finding says, of equal ones that with the highest peak."""

    def weight(one: MemoryPart) -> tuple[int, int]:
        return max((SEVERITIES[each.severity] for each in one.findings), default=-1), one.peak or 0

    worst = max(job.memory, key=weight, default=None)
    return () if worst is None else worst.report.verdict


def _limited(one: Cause, found: Postmortem, job: JobParts, *, first: bool) -> Iterator[Message]:
    recording = found.recordings[one.recording]
    extent = _extent(one, len(recording.ranks))
    ranks = ("ranks", Kind.TEXT, on_ranks(one) or ""), ("count", Kind.COUNT, len(recording.ranks))
    yield Message(f"limited_{extent}", (("finding", Kind.TERM, title(one)), *ranks))
    costs = (
        ("gain", Kind.DURATION, one.gain),
        ("step", Kind.DURATION, recording.step_time),
        ("share", Kind.SHARE, one.share),
    )
    whom = "costs_others" if extent == "by_rank" else "costs"
    yield Message(whom if recording.marked else f"{whom}_trace", costs)
    if one.because is not None:
        yield because(found.causes[one.because])
    elif one.finding is not None and one.finding.rule == STRAGGLER:
        yield from _late(one.finding)
    elif one.finding is not None and one.finding.slug == WAITING:
        yield from _waiting(one.finding)
    elif one.of_run:
        yield sentence(one, job)
    yield from _since(one.onset, several=len(found.recordings) > 1)
    for each in found.growths:
        if found.causes[each.cause] is one and each.before:
            yield Message("told_grew", amounts(each))
    todo = next((each.keys[0] for each in actions(found) if each.cause is one and each.keys), None)
    if todo is not None:
        yield Message("do_first" if first else "do_next", (("text", Kind.TERM, f"do_{todo}.{job.platform}"),))


def _waiting(finding: Finding) -> Iterator[Message]:
    """For whom, or why, ranks wait for each other, where that is known."""
    if finding.sentence:
        values = tuple((each.label, Kind[each.kind], each.value) for each in finding.evidence)
        yield Message(f"why_waiting_{finding.sentence}", values)


def _late(finding: Finding) -> Iterator[Message]:
    """What the straggler takes longer for than the others, where that is known."""
    told = {each.label: each.value for each in finding.evidence}
    if "phase" in told and "excess" in told:
        values = ("phase", Kind.TERM, told["phase"]), ("excess", Kind.DURATION, told["excess"])
        yield Message("late_because", values)


def _extent(one: Cause, ranks: int) -> str:
    if ranks < 2:
        return "alone"
    if one.finding is not None and one.finding.rule == STRAGGLER:
        return "by_rank"
    if one.of_run or not one.ranks:
        return "run"
    if len(one.ranks) >= ranks:
        return "all"
    return "one" if len(one.ranks) == 1 else "some"


def _since(onset: Onset, *, several: bool) -> Iterator[Message]:
    values = (
        ("step", Kind.TEXT, onset.step),
        ("affected", Kind.COUNT, onset.affected),
        ("steps", Kind.COUNT, onset.steps),
        ("recording", Kind.COUNT, onset.recording + 1),
    )
    if onset.kind != "untold":
        place = "_recording" if several and onset.step else ""
        yield Message(f"told_since_{onset.kind}{place}", values)


def _next(others: list[Cause]) -> Iterator[Message]:
    """What comes after it."""
    for place, one in enumerate(others[:NAMED]):
        yield Message(
            "limits_then" if place else "limits_next",
            (("finding", Kind.TERM, title(one)), ("gain", Kind.DURATION, one.gain), ("share", Kind.SHARE, one.share)),
        )


def _healthy(found: Postmortem, deciding: RankReport) -> Iterator[Message]:
    """That nothing was found, no more than that, and what the step was spent on."""
    if deciding.mode == Mode.EMPTY:
        yield from deciding.verdict
        return
    if deciding.mode != Mode.HOST_ONLY:
        recording = found.recordings[(found.decider or (0, 0))[0]]
        time = (("step", Kind.DURATION, recording.step_time),)
        yield Message("healthy" if recording.marked else "healthy_trace", time)
    yield from deciding.verdict
    hint = next((one for one in found.causes if one.gain and one.part_of is None), None)
    if hint is not None:
        values = ("finding", Kind.TERM, title(hint)), ("gain", Kind.DURATION, hint.gain)
        yield Message("healthy_hint", values)
    missing = len({rule for one in found.unjudged for rule in one.rules})
    if missing:
        yield Message("healthy_unjudged", (("count", Kind.COUNT, missing), ("rules", Kind.COUNT, found.rules)))
