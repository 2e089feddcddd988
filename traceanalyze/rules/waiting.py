"""What of the findings on one rank may be waiting for others, and what they are worth then."""

from dataclasses import replace
from operator import attrgetter

from traceanalyze.rules.common.communication import LAST_BUCKET, WAIT_POSSIBLE
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Outcome, Severity
from traceanalyze.rules.owners import SPLIT, explains

GENERAL = "COM101"
"""The rule about all communication; it has a limit of its own, the share of the step in exposed communication."""
_OF_ONE_RANK = {"HST104", "HST113", "MEM101", "MEM102", "MEM103"}
"""Rules about what each rank does at a time of its own: where it waits for others afterwards, these may hide it."""


def alone(outcome: Outcome) -> Outcome:
    """What is said about one rank of several whose others were not recorded: part of what it saves may be waiting.

    Where nothing tells how much, communication saves the middle between the least and all of it; where overlap could
    remove little of a large part of the step at best, the part has a cost alone.
    """
    unsure = unsure_alone(outcome)
    cost_alone = [one for one in unsure.findings if unknown(one)]
    found = [_cost_alone(one) if one in cost_alone else _halved(one) for one in unsure.findings]
    told = unsure._replace(findings=tuple(sorted(found, key=attrgetter("order"))))
    if cost_alone:
        told = told._replace(unexplained=tuple(one for one in told.unexplained if one.part != "communication"))
    if told.together is None:
        return told
    low, saving, high = told.together
    middle = max(low, saving - sum(doubtful(one) for one in unsure.findings if one not in cost_alone))
    return told._replace(together=(low, middle, high))


def _halved(one: Finding) -> Finding:
    less = doubtful(one)
    return replace(one, saving=(one.saving or 0) - less, bound=one.most) if less else one


def _cost_alone(one: Finding) -> Finding:
    told = replace(one, saving=None, low=None, bound=None, severity=Severity.MEDIUM, sentence="unknown")
    return replace(told, advice=one.advice[::-1])  # Compare the ranks before all else.


def unsure_alone(outcome: Outcome) -> Outcome:
    """The same with what it saves if nothing is waiting, as a replay gives it, and at least if all is that may be.

    Work before collectives that may wait for others is no certain saving either, where half as much may be waiting;
    what only this rank may do, none at all.
    """
    waits = max((durations(one).get(WAIT_POSSIBLE, 0) for one in outcome.findings if one.rule == GENERAL), default=0)
    found = tuple(
        perhaps(one, owner=True) if one.rule == GENERAL else _less_sure(one, waits) for one in outcome.findings
    )
    if outcome.together is None or found == outcome.findings:
        return outcome._replace(findings=found)
    low, saving, high = outcome.together
    known = [one for one in found if not unknown(one)]
    least, every = sum(one.least or 0 for one in known), sum(one.saving or 0 for one in known)
    return outcome._replace(findings=found, together=(min(low, round(least * (saving / max(every, 1)))), saving, high))


def doubtful(one: Finding) -> int:
    """Half of what may be waiting in the saving of a finding about all communication of one rank alone."""
    unsure = one.rule == GENERAL and one.saving is not None and WAIT_POSSIBLE in durations(one)
    return ((one.saving or 0) - (one.least or 0)) // 2 if unsure else 0


def mostly_waits(one: Finding) -> bool:
    """Whether most of the communication that it is about may be waiting, for all that its recording tells."""
    time = durations(one)
    return 2 * time.get(WAIT_POSSIBLE, 0) > time.get("exposed", 0) - time.get("wait_exposed", 0)


def _less_sure(one: Finding, waits: int) -> Finding:
    if not one.saving or one.confidence is None or 2 * waits <= one.saving:
        return one
    one = replace(one, confidence=min(one.confidence, Confidence.MEDIUM))
    if one.rule not in _OF_ONE_RANK:
        return one
    low, severity = max(0, (one.least or 0) - waits), min(one.severity or Severity.INFO, Severity.MEDIUM)
    return replace(one, low=low, severity=severity)


def perhaps(one: Finding, *, owner: bool = False) -> Finding:
    """The finding at the price it has where communication may be waiting, and so saves nothing at least.

    Of other rules than that about all communication nothing tells how much it saves at all: they have a cost alone. The
    `owner` of a large part of the step, where no finding about ranks is and it can save much of it, stays medium.
    """
    time = durations(one)
    if one.draws != "comm_exposed" or one.saving is None or (one.rule == GENERAL and WAIT_POSSIBLE not in time):
        return one
    unsure = one.rule == GENERAL and mostly_waits(one)
    large = owner and _large(one) and explains(one)
    severity = min(one.severity or Severity.INFO, Severity.LOW if unsure and not large else Severity.MEDIUM)
    confidence = min(one.confidence or Confidence.LOW, Confidence.LOW if unsure else Confidence.MEDIUM)
    if one.rule != GENERAL:
        return replace(one, saving=None, cost=one.explains, low=None, severity=severity, confidence=confidence)
    return replace(one, low=0, severity=severity, confidence=confidence)


def _large(one: Finding) -> bool:
    return any(each.label == "share" and float(each.value) >= SPLIT for each in one.evidence)


def unknown(one: Finding) -> bool:
    """Whether it is about a large part of the step of which only other ranks would tell what it is."""
    return one.rule == GENERAL and one.saving is not None and _large(one) and mostly_waits(one) and not explains(one)


def without_doubt(one: Finding) -> Finding:
    """The finding without what may be waiting, where it is known what is."""
    if one.rule != GENERAL or WAIT_POSSIBLE not in durations(one):
        return one
    return replace(one, evidence=tuple(each for each in one.evidence if each.label != WAIT_POSSIBLE))


def less_waiting(one: Finding, wait: int) -> Finding:
    """The finding about all communication without what a rank waits for others, which it says apart."""
    if one.rule != GENERAL or one.saving is None or "wait_exposed" in durations(one):
        return one
    told = (*one.evidence, Evidence("wait_exposed", wait, "DURATION"))
    return replace(one, cost=max(0, (one.cost or 0) - wait), evidence=told, sentence="waiting")


def durations(one: Finding) -> dict[str, int]:
    """Durations that it was measured by."""
    return {each.label: int(each.value) for each in one.evidence if each.kind == "DURATION"}


def last_bucket(one: Finding, wait: int) -> int:
    """What stays exposed of gradients in any case, without the part of it that is waiting."""
    time = durations(one)
    last, exposed = (time.get(label, 0) for label in (LAST_BUCKET, "exposed"))
    return round(last * max(0.0, 1 - wait / exposed)) if exposed else last
