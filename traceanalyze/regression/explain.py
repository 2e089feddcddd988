"""Why the step time changed: exclusive parts of the step, and the work inside them, from what runs keep of themselves.

A run keeps the sums of its deciding rank, so a baseline file explains as well as the traces it was made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeVar

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.split import HostSplit
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.comparison.attribution import IDLE
from traceanalyze.comparison.reasons import Labels, idle_reasons, work_reasons
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.frozen import frozen
from traceanalyze.model.vocabulary import HOST_PARTS, Cause
from traceanalyze.regression.measures import RankSteps

ROWS_KEPT = 50
"""Reasons, and kernels, that a run keeps: those with most time."""
_CAUSES = {cause.key for cause in Cause}
Key = tuple[str, str, str]
"""Part, what and name of a reason."""
_K = TypeVar("_K")


@frozen
class Amounts:
    """Time (ns) and number, over all usable steps of one rank; or both per step."""

    time: float
    count: float


_NOTHING = Amounts(0, 0)


@frozen
class Explain:
    """What the usable steps of a run's deciding rank were made of."""

    steps: int
    parts: Mapping[str, int]
    """Exclusive parts of the step, ns over all steps; they sum to the steps' time exactly."""
    unseen: tuple[str, ...] = ()
    """Causes of idle time that the recording cannot show; their time is in `untraced`."""
    reasons: Mapping[Key, Amounts] = field(default_factory=dict)
    """(part, what, name) → time and number; rows of a part sum to at most the part."""
    kernels: Mapping[str, Amounts] = field(default_factory=dict)
    """Device time of kernels by name."""
    kept: int = ROWS_KEPT
    """Rows kept at most of reasons and of kernels."""


def explain(rank: RankSteps) -> Explain:
    """Parts of the step and the reasons for them, of one rank."""
    side = rank.side
    if side.partition is None:
        if not isinstance(side.host, HostSplit):
            return Explain(rank.count, {})
        return Explain(rank.count, {key: int(getattr(side.host, key).sum()) for key in HOST_PARTS})
    parts = {
        "compute": int(side.partition.compute.sum()),
        "communication": int(side.partition.comm_exposed.sum()),
        "memory_ops": int(side.partition.mem_exposed.sum()),
    }
    unseen: tuple[str, ...] = ()
    if isinstance(side.idle, IdleCauses):
        parts |= {cause.key: int(side.idle.by_step[:, cause].sum()) for cause in Cause}
        unseen = tuple(cause.key for cause in Cause if cause in side.idle.missing)
    labels = Labels(CompareOptions(), frozenset(), groups=False, by_operator=True)
    found = work_reasons(side, labels) | idle_reasons(side, labels, {cause: cause.key for cause in Cause})
    reasons = {key: Amounts(reason.time, reason.count) for key, reason in found.items()}
    return Explain(rank.count, parts, unseen, most(reasons, ROWS_KEPT), most(_kernels(rank), ROWS_KEPT))


def _kernels(rank: RankSteps) -> dict[str, Amounts]:
    context = rank.side.context
    name = context.device.name[context.once(device_work).event]
    rows = group(name)
    times, counts = rows.sum(context.once(device_work).time).tolist(), rows.count().tolist()
    return {
        context.trace.strings.text(int(name[first])): Amounts(time, count)
        for first, time, count in zip(rows.first.tolist(), times, counts, strict=True)
    }


def most(rows: Mapping[_K, Amounts], count: int) -> dict[_K, Amounts]:
    """The rows with most time, largest first."""
    ordered = sorted(rows.items(), key=lambda item: (-item[1].time, str(item[0])))
    return dict(ordered[:count])


def shortened(found: Explain, rows: int) -> Explain:
    """The same with fewer reasons and kernels."""
    return replace(
        found, reasons=most(found.reasons, rows), kernels=most(found.kernels, rows), kept=min(rows, found.kept)
    )


@frozen
class WhyRow:
    """One contribution to the change of the step time, ns per step on either side."""

    part: str
    what: str
    """Empty for a part as a whole."""
    name: str
    baseline: float
    candidate: float
    baseline_count: float = 0
    candidate_count: float = 0

    @property
    def change(self) -> float:
        """Candidate minus baseline."""
        return self.candidate - self.baseline


@frozen
class Why:
    """What the change of the step time consists of."""

    baseline: float
    """Step time that is explained: mean over steps and runs, ns."""
    candidate: float
    parts: tuple[WhyRow, ...]
    """They sum to both step times."""
    reasons: tuple[WhyRow, ...]
    """Work and waiting inside the parts, most changed first."""
    kernels: tuple[WhyRow, ...]
    """Device time of kernels by name, most changed first."""

    @property
    def change(self) -> float:
        """Candidate minus baseline."""
        return self.candidate - self.baseline


def why(baseline: Sequence[Explain], candidate: Sequence[Explain]) -> Why | None:
    """What the change consists of; None where a side tells no parts, or the sides tell different ones."""
    old, new = ([each for each in side if each.parts and each.steps] for side in (baseline, candidate))
    if not old or not new:
        return None
    same = len({each.unseen for each in (*old, *new)}) == 1
    before, after = _parts(old, merged=not same), _parts(new, merged=not same)
    if before.keys() != after.keys():
        return None
    parts = tuple(WhyRow(key, "", key, before[key], after[key]) for key in before)
    reasons = _joined(*(_rows(_fullest(side), lambda each: each.reasons) for side in (old, new))) if same else []
    kernels = _joined(*(_rows(_fullest(side), _kernel_keys) for side in (old, new)))
    return Why(
        sum(before.values()),
        sum(after.values()),
        parts,
        tuple(sorted(reasons, key=_order)),
        tuple(sorted(kernels, key=_order)),
    )


def _parts(side: Sequence[Explain], *, merged: bool) -> dict[str, float]:
    """Parts per step, mean over runs; with `merged` all causes of idle time as one."""
    total: dict[str, float] = {}
    for each in side:
        for key, time in each.parts.items():
            name = IDLE if merged and key in _CAUSES else key
            total[name] = total.get(name, 0) + time / each.steps / len(side)
    return total


def _fullest(side: Sequence[Explain]) -> list[Explain]:
    """The runs that kept most rows; those of older runs are cut short to keep a baseline file small."""
    kept = max(each.kept for each in side)
    return [each for each in side if each.kept == kept]


def _kernel_keys(each: Explain) -> Mapping[Key, Amounts]:
    return {("", "kernel", name): amounts for name, amounts in each.kernels.items()}


def _rows(side: Sequence[Explain], of: Callable[[Explain], Mapping[Key, Amounts]]) -> dict[Key, Amounts]:
    """Time and number per step, mean over runs."""
    found: dict[Key, Amounts] = {}
    for each in side:
        scale = 1 / each.steps / len(side)
        for key, amounts in of(each).items():
            known = found.get(key, _NOTHING)
            found[key] = Amounts(known.time + amounts.time * scale, known.count + amounts.count * scale)
    return found


def _joined(old: Mapping[Key, Amounts], new: Mapping[Key, Amounts]) -> list[WhyRow]:
    """Rows of both sides. What only one side kept is nothing on the other, or less than any row kept there."""
    found = []
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key, _NOTHING), new.get(key, _NOTHING)
        found.append(WhyRow(*key, before.time, after.time, before.count, after.count))
    return found


def _order(row: WhyRow) -> tuple[float, str, str, str]:
    return -abs(row.change), row.part, row.what, row.name


def top(rows: Iterable[WhyRow], count: int) -> tuple[WhyRow, ...]:
    """The first rows that changed."""
    return tuple(row for row in rows if row.change)[:count]
