"""From the parts of a run to its post-mortem: causes ranked and linked, what could not be judged, what grew."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.causes.causes import causes
from traceanalyze.causes.results import (
    Cause,
    Growth,
    NotEvaluated,
    Postmortem,
    RecordingPart,
    Trouble,
    comparable,
    decider,
    in_order,
)
from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.results import Cluster
from traceanalyze.rules.finding import Finding, Severity
from traceanalyze.rules.pricing import LEAST_SHARE
from traceanalyze.rules.ranking import LEAST_NS, MEDIUM

DRAWS = "comm_exposed"
SEVERITIES = {"critical": Severity.HIGH, "warn": Severity.MEDIUM, "info": Severity.INFO}
RULES = {
    "churn": "MEM101",
    "empty_cache": "MEM102",
    "leak": "MEM108",
    "fragmentation": "MEM104",
    "retry": "MEM103",
    "spike": "MEM114",
    "held_gradients": "MEM117",
    "activation_peak": "MEM107",
    "near_limit": "MEM109",
    "rounding": "MEM120",
    "growing_sizes": "MEM105",
    "oversized_blocks": "MEM106",
    "small_blocks": "MEM115",
}
"""What is found in a snapshot → the rule that finds the same in a trace with its snapshot."""
FAILED = "MEM112"


def rule_of(key: str) -> str:
    """Id of the rule that finds the same; empty where there is none."""
    return FAILED if key.startswith("oom") else RULES.get(key, "")


def _memory_causes(troubles: Sequence[Trouble]) -> Iterator[Cause]:
    """One for each thing and source line, of whichever ranks; the largest amount is shown."""
    places: dict[tuple[str, str], list[Trouble]] = {}
    for one in troubles:
        places.setdefault((one.finding.key, one.finding.line), []).append(one)
    for found in places.values():
        worst = max(found, key=lambda one: (SEVERITIES[one.finding.severity], one.finding.amount or 0))
        yield Cause(
            finding=None,
            severity=SEVERITIES[worst.finding.severity],
            ranks=in_order(one.rank for one in found if one.rank),
            evaluated=len({one.file for one in found}),
            recording=0,
            rank=worst.rank,
            trouble=worst,
        )


def _distinct(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """Without the findings of rules that a snapshot knows better: the same thing, which costs no time, on its rank.

    A snapshot whose rank is not known may be of any.
    """
    known = {(rule_of(one.trouble.finding.key), rank) for one in causes if one.trouble for rank in one.ranks or ("",)}
    return tuple(
        one
        for one in causes
        if one.finding is None
        or one.gain is not None
        or not any((one.finding.rule, rank) in known for rank in ("", *one.ranks))
    )


def not_evaluated(recordings: Sequence[RecordingPart]) -> tuple[NotEvaluated, ...]:
    """One a reason, that which keeps most rules from being judged first. Rules about ranks hold for all of them."""
    reasons: dict[str, list[tuple[str, str]]] = {}
    for recording in recordings:
        for rank in recording.ranks:
            for one in (*rank.not_evaluated, *recording.about_ranks_not_evaluated):
                reasons.setdefault(one.reason, []).append((one.rule, rank.label))
    found = [
        NotEvaluated(reason, tuple(sorted({rule for rule, _ in each})), in_order(label for _, label in each))
        for reason, each in reasons.items()
    ]
    return tuple(sorted(found, key=lambda one: (-len(one.rules), one.reason)))


STRAGGLER = "RNK101"
IMBALANCE = "RNK102"
UNRECORDED = "RNK105"
WAITING = "RNK106"
_LATE: dict[str, tuple[str, ...]] = {
    "late_data_loading": ("DAT",),
    "late_dispatch": (
        *("HST101", "HST102", "HST105", "HST106", "HST108", "HST109", "HST111", "HST112", "HST113", "HST114"),
        *("CGR", "NPU", "MEM101", "MEM102"),
    ),
    "late_sync": ("SYN",),
    "late_gc": ("HST104",),
    "late_pause": ("HST113",),
    "late_untraced": ("HST104", "HST107", "HST113", "DAT"),
    "late_device_gap": ("HST103",),
    "late_memory_ops": ("SYN105", "HST109", "DAT103"),
    "late_compute": ("KRN", "CGR"),
}
"""What makes a rank late → how the ids of rules begin that find such things on a single rank."""
_EXACT = frozenset({"late_pause", "late_gc"})
"""Reasons that are the findings themselves, several perhaps, however much of their time the device has other work."""
_EXPLAINS = 0.5
"""Part of a rank's excess that a finding on it must save, more than on the others, to be what makes it late."""
_MOSTLY = 0.8
"""A straggler that costs so much of what its reason does is the reason's only victim worth naming."""


def linked(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """The causes, each with the one that explains it and the one that it is part of, which comes before it."""
    found = list(causes)
    for at, one in enumerate(causes):
        if one.finding is None:
            continue
        if one.finding.rule == STRAGGLER:
            _explain(found, at)
        if one.finding.rule in {STRAGGLER, UNRECORDED, WAITING}:
            # What is known to be waiting was taken off what is said about the communication of each rank.
            _share(found, at, whole=one.finding.rule == UNRECORDED and not one.finding.sentence)
    return _in_order(found)


def _explain(found: list[Cause], at: int) -> None:
    """A straggler, the finding on it that makes it late, and what else is found on it alone."""
    late = found[at]
    reason = _reason(found, late)
    if reason is not None:
        late = found[at] = replace(late, because=reason)
        if (late.gain or 0) < _MOSTLY * (found[reason].gain or 0):
            found[at] = replace(late, part_of=reason)
            return
        found[reason] = replace(found[reason], part_of=at)
    for index, one in enumerate(found):
        if not one.about_ranks and one.gain and one.part_of is None and one.ranks == late.ranks:
            found[index] = replace(one, part_of=at)


def _reason(found: Sequence[Cause], late: Cause) -> int | None:
    """Position of the finding that saves most on the straggler, among those about what it takes longer for."""
    known = {} if late.finding is None else {each.label: each.value for each in late.finding.evidence}
    prefixes = _LATE.get(str(known.get("phase", "")), ())
    excess = 0 if known.get("phase") in _EXACT else known.get("excess", 0)
    least = max(_EXPLAINS * (excess if isinstance(excess, int) else 0), 1)
    reasons = [
        index
        for index, one in enumerate(found)
        if prefixes and one.finding is not None and one.finding.rule.startswith(prefixes)
        if (one.ranks == late.ranks if one.about_ranks else one.rank in late.ranks and _more_than_others(one) >= least)
    ]
    return max(reasons, key=lambda index: found[index].largest or 0, default=None)


def _more_than_others(one: Cause) -> int:
    """What it saves on its worst rank beyond the mean of the others."""
    largest = one.largest or 0
    return largest - max((one.mean or 0) * one.evaluated - largest, 0) // max(one.evaluated - 1, 1)


def _share(found: list[Cause], at: int, *, whole: bool) -> None:
    """Uneven work is why ranks wait. With `whole`, what is said about the communication of single ranks includes it."""
    for index, one in enumerate(found):
        if index == at or one.finding is None or one.part_of is not None or index == found[at].because:
            continue
        if one.finding.rule == IMBALANCE or (whole and one.finding.draws == DRAWS and not one.about_ranks):
            found[index] = replace(one, part_of=at)


def _in_order(found: Sequence[Cause]) -> tuple[Cause, ...]:
    """What others are part of comes before them; positions follow."""
    order: list[int] = []
    for at, one in enumerate(found):
        order += [each for each in (one.part_of, at) if each is not None and each not in order]
    to: dict[int | None, int | None] = {None: None}
    to.update((before, after) for after, before in enumerate(order))
    ordered = (found[at] for at in order)
    return tuple(replace(one, part_of=to[one.part_of], because=to[one.because]) for one in ordered)


CAPTURE = "CAP"
"""Family of the rules about the recording itself."""
GROWN = 1.5
"""Times as much as in any recording before, and by 5 % of the step: then a cause has grown."""


def synthesize(recordings: Sequence[RecordingPart], troubles: Sequence[Trouble], *, rules: int = 0) -> Postmortem:
    """The post-mortem of one job, from its recordings in the order of time; `rules` is how many were run."""
    found = causes(recordings)
    named = _distinct((*_memory_causes(troubles), *(one for one in found if not _on_capture(one))))
    ranked = linked(sorted(named, key=_rank))
    capture = tuple(sorted(filter(_on_capture, found), key=_rank))
    place = None
    if recordings:
        # The rank that decides how long the step is, in the recording in which the first cause costs most.
        whole = comparable(recordings)
        first = next((one.recording for one in ranked if one.recording in whole and one.finding is not None), whole[-1])
        place = first, decider(recordings[first].ranks)
    growths = tuple(_growths(recordings, ranked))
    return Postmortem(tuple(recordings), ranked, capture, not_evaluated(recordings), growths, place, rules)


def _on_capture(one: Cause) -> bool:
    return one.finding is not None and one.finding.rule.startswith(CAPTURE)


def worth_telling(one: Cause) -> bool:
    """Whether it is more than a note, and the run gains 1 % of its step without it, 5 % if that is below 0.1 ms."""
    share = one.share or 0.0
    return share >= (LEAST_SHARE if one.worth >= LEAST_NS else MEDIUM) and one.severity > Severity.INFO


def _rank(one: Cause) -> tuple[int, int, int, int, str]:
    """Memory that ends the run; what costs time; other memory; what costs the run nothing, or is no time at all."""
    if one.trouble is not None:
        found, ends = one.trouble.finding, one.severity == Severity.HIGH
        group = 0 if ends else 2 if one.severity > Severity.INFO else 4
        failed = ends and found.key.startswith("oom")
        return group, -int(failed), -int(one.severity), -(found.amount or 0), found.key
    group = 1 if worth_telling(one) else 3 if one.gain is not None or one.severity > Severity.INFO else 4
    return group, -one.worth, -(one.mean or 0), -int(one.severity), one.finding.rule if one.finding else ""


def _growths(recordings: Sequence[RecordingPart], ranked: Sequence[Cause]) -> Iterator[Growth]:
    """The first time that each cause appears or grows, among recordings that can be compared."""
    places = comparable(recordings)
    for at, one in enumerate(ranked):
        most: int | None = None
        for index in places:
            gain = one.gains[index] if one.gains else None
            if gain is None:
                continue
            step = recordings[index].step_time
            if most is not None and gain >= GROWN * most and gain - most >= MEDIUM * step > 0:
                yield Growth(at, index, most, gain)
                break
            most = max(most or 0, gain)


def cost_of(finding: Finding, cluster: Cluster) -> NDArray[np.int64] | None:
    """What a finding about waiting takes in each of the common steps: the mean wait of the ranks that wait for it."""
    if isinstance(cluster.exposed_waits, NotMeasured) or finding.draws != DRAWS:
        return None
    late = [at for at, rank in enumerate(cluster.ranks) if rank.rank in finding.scope.ranks]
    others = np.delete(cluster.exposed_waits.by_step, late, axis=0)
    mean: NDArray[np.int64] = others.sum(axis=0) // max(len(others), 1)
    return mean


def needs_of(cluster: Cluster) -> tuple[int | None, ...]:
    """What each rank needs for a step of its own, ns, but for what all need alike; None where that is not known.

    Its mean step without waiting. Where ranks are missing, or waiting was not matched, without all communication that
    nothing hides and all waiting on the host: the transfer in it takes all ranks equally long.
    """
    waited, steps = cluster.exposed_waits, max(len(cluster.steps), 1)
    if not isinstance(waited, NotMeasured) and not waited.bound:
        return cluster.own_time
    communication, peers = cluster.part("communication"), cluster.part("peer_wait")
    if communication is None or not cluster.steps:
        return (None,) * len(cluster.ranks)
    alone = cluster.step_time - communication - (0 if peers is None else peers)
    return tuple((alone.sum(axis=1) // steps).tolist())
