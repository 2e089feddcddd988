"""What the step time of each side is made of: exclusive parts that sum to it exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results import HostSplit, IdleCauses, NotMeasured
from traceanalyze.compare.results import Part
from traceanalyze.model.vocabulary import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traceanalyze.compare.results import Time
    from traceanalyze.compare.side import Side

STEP = "step"
"""The step as one part: one side recorded the device, the other only the host."""
IDLE = "idle"
"""Idle time as one part: only one side recorded runtime calls, without which no cause can be told for sure."""
OUTSIDE_CALLS = "outside_calls"
"""Idle time while the host is in no runtime call, as one part: only one side recorded host operators."""
HOST_SIDE = "host_side"
"""Idle time while the host runs operators, launches or waits, as one part: one side is of a level without the calls
that would tell these apart."""
_HOST = ("data_loading", "sync", "peer_wait", "api", "host_op", "untraced")
_TOLD_BY_HOST = frozenset({Cause.DATA_LOADING, Cause.PEER_WAIT, Cause.HOST_OP})
_TOLD_BY_CALLS = frozenset(
    {Cause.SYNC, Cause.HOST_OP, *(cause for cause in Cause if cause.name.startswith("DISPATCH"))}
)
GROUPS = {
    **{cause.name.lower(): "dispatch" for cause in Cause if cause.name.startswith("DISPATCH")},
    **{cause.name.lower(): "device_side" for cause in Cause if cause.name.startswith("DEVICE")},
}
"""Parts that the headline shows as one."""


def parts(base: Side, candidate: Side) -> tuple[Part, ...]:
    """The parts of both sides, compute first.

    Causes of idle time that one side cannot show lie within other causes there, so they are compared as one part
    together with these; causes that neither side can show are `NotMeasured` on both, their time is in `untraced`.
    Parts that are measured sum to `SideInfo.step_time`.
    """
    if base.partition is None or candidate.partition is None:
        return _without_device(base, candidate)
    of_cause = idle_parts(base, candidate)
    found = [
        Part("compute", int(base.partition.compute.sum()), int(candidate.partition.compute.sum())),
        Part("communication", int(base.partition.comm_exposed.sum()), int(candidate.partition.comm_exposed.sum())),
        Part("memory_ops", int(base.partition.mem_exposed.sum()), int(candidate.partition.mem_exposed.sum())),
    ]
    for key in dict.fromkeys(of_cause.values()):
        causes = [cause for cause in Cause if of_cause[cause] == key]
        found.append(Part(key, _idle_time(base, causes), _idle_time(candidate, causes)))
    return tuple(found)


def idle_parts(base: Side, candidate: Side) -> dict[Cause, str]:
    """Key of the part that each cause of idle time counts in."""
    differ = _missing(base) ^ _missing(candidate)
    if calls_of_one_level(base, candidate):
        merged, key = _TOLD_BY_CALLS, HOST_SIDE
    elif differ - _TOLD_BY_HOST:
        return dict.fromkeys(Cause, IDLE)
    else:
        merged, key = frozenset({*_TOLD_BY_HOST, Cause.UNTRACED} if differ else ()), OUTSIDE_CALLS
    return {cause: key if cause in merged else cause.name.lower() for cause in Cause}


def calls_of_one_level(base: Side, candidate: Side) -> bool:
    """Whether only one side recorded calls of the runtime, and the other just the queue before it (Ascend, Level0)."""
    differ = _missing(base) ^ _missing(candidate)
    return Cause.SYNC in differ and differ < _TOLD_BY_CALLS


def _missing(side: Side) -> set[Cause]:
    return set(side.idle.missing) if isinstance(side.idle, IdleCauses) else set()


def _idle_time(side: Side, causes: list[Cause]) -> Time:
    """Time of some causes. One that cannot be shown has none, and alone it is not measured."""
    if isinstance(side.idle, NotMeasured):
        return side.idle
    if len(causes) == 1 and causes[0] in side.idle.missing:
        return side.idle.missing[causes[0]]
    return int(side.idle.by_step[:, causes].sum())


def _without_device(base: Side, candidate: Side) -> tuple[Part, ...]:
    """Host time where neither side recorded a device; else nothing smaller than the step is the same on both."""
    both_host_only = base.partition is None and candidate.partition is None
    if both_host_only and isinstance(base.host, HostSplit) and isinstance(candidate.host, HostSplit):
        return tuple(
            Part(key, int(getattr(base.host, key).sum()), int(getattr(candidate.host, key).sum())) for key in _HOST
        )
    return (Part(STEP, base.info.step_time, candidate.info.step_time),)


def headline(found: Iterable[Part]) -> tuple[Part, ...]:
    """The parts with those of `GROUPS` summed, in the same order."""
    grouped: dict[str, list[Part]] = {}
    for part in found:
        grouped.setdefault(GROUPS.get(part.key, part.key), []).append(part)
    return tuple(
        Part(key, summed([part.base for part in members]), summed([part.candidate for part in members]))
        for key, members in grouped.items()
    )


def summed(times: list[Time]) -> Time:
    """Sum of what was measured; `NotMeasured` where nothing was."""
    known = [time for time in times if not isinstance(time, NotMeasured)]
    return sum(known) if known or not times else times[0]
