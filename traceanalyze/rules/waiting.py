"""What of the findings on one rank may be waiting for others, and what they are worth then."""

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter

from traceanalyze.rules.common.communication import AS_FAST, LAST_BUCKET, NEEDING, WAIT_POSSIBLE
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Outcome, Severity
from traceanalyze.rules.owners import SPLIT, explains
from traceanalyze.rules.pricing import UNRECORDED, below_waits, beside_waits

GENERAL = "COM101"
"""The rule about all communication; it has a limit of its own, the share of the step in exposed communication."""


def alone(outcome: Outcome) -> Outcome:
    """What is said about one rank of several whose others were not recorded: part of what it saves may be waiting.

    Where overlap could remove little of a large part of the step at best, the part has a cost alone.
    """
    told = unsure_alone(outcome)
    if any(map(unknown, told.findings)):
        found = tuple(_cost_alone(one) if unknown(one) else one for one in told.findings)
        parts = tuple(one for one in told.unexplained if one.part != "communication")
        told = told._replace(findings=found, unexplained=parts)
    return middles(told)


def middles(unsure: Outcome) -> Outcome:
    """With the middle between the least and all that communication saves, where nothing tells how much is waiting."""
    found = tuple(sorted(map(_halved, unsure.findings), key=attrgetter("order")))
    if unsure.together is None:
        return unsure._replace(findings=found)
    low, saving, high = unsure.together
    middle = max(low, saving - sum(map(doubtful, unsure.findings)))
    return unsure._replace(findings=found, together=(low, middle, high))


def _halved(one: Finding) -> Finding:
    less = doubtful(one)
    return replace(one, saving=(one.saving or 0) - less, bound=one.most) if less else one


def _cost_alone(one: Finding) -> Finding:
    sentence = AS_FAST if AS_FAST in durations(one) else "unknown"
    told = replace(one, saving=None, low=None, bound=None, severity=Severity.MEDIUM, sentence=sentence)
    return replace(told, advice=one.advice[::-1])  # Compare the ranks before all else.


def unsure_alone(outcome: Outcome) -> Outcome:
    """The same with what it saves if nothing is waiting, as a replay gives it, and at least if all is that may be.

    Work before collectives that may wait for others is no certain saving either: the others may have less of it.
    """
    sure = [perhaps(one, owner=True) if one.rule == GENERAL else one for one in outcome.findings]
    certain = max((one.cost or 0 for one in sure if one.rule == UNRECORDED), default=0)
    found = tuple(less_sure(beside_waits(sure, certain), outcome.waits))
    if outcome.together is None or found == outcome.findings:
        return outcome._replace(findings=found)
    low, saving, high = outcome.together
    known = [one for one in sure if not unknown(one)]
    least, every = sum(one.least or 0 for one in known), sum(one.saving or 0 for one in known)
    ends = min(low, round(least * (saving / max(every, 1)))), saving, high
    return outcome._replace(findings=found, together=below_waits(ends, known, outcome.waits + certain))


def doubtful(one: Finding) -> int:
    """Half of what may be waiting in the saving of a finding about all communication of one rank alone.

    Of what may need compute before it the saving has half already.
    """
    unsure = one.rule == GENERAL and one.saving is not None and WAIT_POSSIBLE in durations(one)
    half = durations(one).get(NEEDING, 0) // 2
    return max(0, (one.saving or 0) - half - (one.least or 0)) // 2 if unsure else 0


def mostly_waits(one: Finding) -> bool:
    """Whether most of the communication that it is about may be waiting, for all that its recording tells."""
    time = durations(one)
    return 2 * time.get(WAIT_POSSIBLE, 0) > time.get("exposed", 0) - time.get("wait_exposed", 0)


def less_sure(found: Iterable[Finding], waits: int) -> list[Finding]:
    """The findings as sure as they are where ranks may wait `waits` ns a step for others that were not recorded.

    What a rank does before it meets others is saved for certain only as far as it is more than the waiting, which may
    grow by it; where that may take more than half of it, it is not high.
    """
    return [_less_sure(one, waits) if one.saving and waits and one.rule != GENERAL else one for one in found]


def _less_sure(one: Finding, waits: int) -> Finding:
    low, severity, confidence = one.low, one.severity or Severity.INFO, one.confidence or Confidence.LOW
    if not one.rule.startswith("COM"):
        low = max(0, (one.least or 0) - waits)
        severity = min(severity, Severity.MEDIUM) if 2 * waits > (one.saving or 0) else severity
    confidence = min(confidence, Confidence.MEDIUM) if 2 * waits > (one.saving or 0) else confidence
    return replace(one, low=low, severity=severity, confidence=confidence)


def perhaps(one: Finding, *, owner: bool = False) -> Finding:
    """The finding at the price it has where communication may be waiting, and so saves nothing at least.

    Of other rules than that about all communication nothing tells how much it saves at all: they have a cost alone. The
    `owner` of a large part of the step, where no finding about ranks is and it can save much of it, stays medium.
    """
    time = durations(one)
    if one.draws != "comm_exposed" or one.saving is None or (one.rule == GENERAL and WAIT_POSSIBLE not in time):
        return one
    unsure = one.rule == GENERAL and mostly_waits(one)
    owns = owner and large(one) and explains(one)
    severity = min(one.severity or Severity.INFO, Severity.LOW if unsure and not owns else Severity.MEDIUM)
    confidence = min(one.confidence or Confidence.LOW, Confidence.LOW if unsure else Confidence.MEDIUM)
    if one.rule != GENERAL:
        return replace(one, saving=None, cost=one.explains, low=None, severity=severity, confidence=confidence)
    return replace(one, low=0, severity=severity, confidence=confidence)


def large(one: Finding) -> bool:
    """Whether it is about a large part of the step, which needs an owner."""
    return any(each.label == "share" and float(each.value) >= SPLIT for each in one.evidence)


def unknown(one: Finding) -> bool:
    """Whether it is about a large part of the step of which only other ranks would tell what it is."""
    return one.rule == GENERAL and one.saving is not None and large(one) and mostly_waits(one) and not explains(one)


def without_doubt(one: Finding) -> Finding:
    """The finding without what may be waiting, where it is known what is."""
    if one.rule != GENERAL or WAIT_POSSIBLE not in durations(one):
        return one
    return replace(one, evidence=tuple(each for each in one.evidence if each.label != WAIT_POSSIBLE))


def less_waiting(one: Finding, wait: int) -> Finding:
    """The finding about all communication without what a rank waits for others, which it says apart."""
    if one.rule != GENERAL or "wait_exposed" in durations(one):
        return one
    told = (*one.evidence, Evidence("wait_exposed", wait, "DURATION"))
    if one.saving is None:
        return replace(one, evidence=told, sentence="chain_waiting") if one.sentence == "chain" else one
    return replace(one, cost=max(0, (one.cost or 0) - wait), evidence=told, sentence="waiting")


def durations(one: Finding) -> dict[str, int]:
    """Durations that it was measured by."""
    return {each.label: int(each.value) for each in one.evidence if each.kind == "DURATION"}


def last_bucket(one: Finding, wait: int) -> int:
    """What stays exposed of gradients in any case, without the part of it that is waiting."""
    time = durations(one)
    last, exposed = (time.get(label, 0) for label in (LAST_BUCKET, "exposed"))
    return round(last * max(0.0, 1 - wait / exposed)) if exposed else last
