"""Causes that are one thing seen twice: told together, and never added."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.postmortem.waiting import ABSENT, ALONE, DRAWS, MISSING, WAITING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.postmortem.results import Cause

STRAGGLER = "RNK101"
IMBALANCE = "RNK102"
_LATE: dict[str, tuple[str, ...]] = {
    "late_data_loading": ("DAT",),
    "late_dispatch": (
        *("HST101", "HST102", "HST105", "HST106", "HST108", "HST109", "HST111", "HST112"),
        *("CGR", "NPU", "MEM101", "MEM102"),
    ),
    "late_sync": ("SYN",),
    "late_gc": ("HST104",),
    "late_untraced": ("HST104", "HST107", "DAT"),
    "late_device_gap": ("HST103",),
    "late_memory_ops": ("SYN105", "HST109", "DAT103"),
    "late_compute": ("KRN", "CGR"),
}
"""What makes a rank late → how the ids of rules begin that find such things on a single rank."""
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
        if one.finding.rule == STRAGGLER or one.finding.slug == WAITING:
            # Beside other ranks, waiting was taken off what is said about the communication of each.
            _share(found, at, whole=one.judged == 1 and one.finding.sentence in {ABSENT, MISSING, ALONE})
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
        if not one.of_run and one.gain and one.part_of is None and one.ranks == late.ranks:
            found[index] = replace(one, part_of=at)


def _reason(found: Sequence[Cause], late: Cause) -> int | None:
    """Position of the finding that saves most on the straggler, among those about what it takes longer for."""
    told = {} if late.finding is None else {each.label: each.value for each in late.finding.evidence}
    prefixes = _LATE.get(str(told.get("phase", "")), ())
    excess = told.get("excess", 0)
    least = max(_EXPLAINS * (excess if isinstance(excess, int) else 0), 1)
    reasons = [
        index
        for index, one in enumerate(found)
        if prefixes and one.finding is not None and one.finding.rule.startswith(prefixes)
        if (one.ranks == late.ranks if one.of_run else one.rank in late.ranks and _more_than_others(one) >= least)
    ]
    return max(reasons, key=lambda index: found[index].largest or 0, default=None)


def _more_than_others(one: Cause) -> int:
    """What it saves on its worst rank beyond the mean of the others."""
    largest, others = one.largest or 0, max(one.judged - 1, 1)
    return largest - max((one.mean or 0) * one.judged - largest, 0) // others


def _share(found: list[Cause], at: int, *, whole: bool) -> None:
    """Uneven work is why ranks wait. With `whole`, what is said about the communication of single ranks includes it."""
    for index, one in enumerate(found):
        if index == at or one.finding is None or one.part_of is not None or index == found[at].because:
            continue
        if one.finding.rule == IMBALANCE:
            found[index] = replace(one, part_of=at)
        elif whole and one.finding.draws == DRAWS and not one.of_run:
            lesser, greater = sorted((at, index), key=lambda each: found[each].gain or 0)
            if found[lesser].part_of is None and found[greater].part_of is None:
                found[lesser] = replace(found[lesser], part_of=greater)


def _in_order(found: Sequence[Cause]) -> tuple[Cause, ...]:
    """What others are part of comes before them; positions follow."""
    order: list[int] = []
    for at, one in enumerate(found):
        order += [each for each in (one.part_of, at) if each is not None and each not in order]
    to = {before: after for after, before in enumerate(order)}
    return tuple(
        replace(
            one,
            part_of=None if one.part_of is None else to[one.part_of],
            because=None if one.because is None else to[one.because],
        )
        for one in (found[at] for at in order)
    )
