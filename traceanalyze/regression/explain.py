"""Why the step time changed: exclusive parts of the step, and the work inside them, from what runs keep of themselves.

A run keeps the sums of its deciding rank, so a baseline file explains as well as the traces it was made of.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias, TypeVar

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.idle.host_state import HostSplit
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.comparison.attribution import IDLE
from traceanalyze.comparison.reasons import Labels, Reasons, host_reasons, idle_reasons, work_reasons
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.vocabulary import HOST_PARTS, Cause
from traceanalyze.regression.measures import RankSteps

ROWS_KEPT = 50
"""Reasons, and kernels, that a run keeps: those with most time."""
_LABELS = Labels(CompareOptions(), (), groups=False, by_operator=True)
_CAUSES = {cause.key for cause in Cause}
Key = tuple[str, str, str]
"""Part, what and name of a reason."""
_K = TypeVar("_K")


@dataclass(frozen=True)
class Amounts:
    """Time (ns) and number, over all usable steps of one rank; or both per step."""

    time: float
    count: float


@dataclass(frozen=True)
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
        host = {key: int(getattr(side.host, key).sum()) for key in HOST_PARTS}
        return Explain(rank.count, host, reasons=_kept(host_reasons(side, _LABELS)))
    parts = {
        "compute": int(side.partition.compute.sum()),
        "communication": int(side.partition.comm_exposed.sum()),
        "memory_ops": int(side.partition.mem_exposed.sum()),
    }
    unseen: tuple[str, ...] = ()
    if isinstance(side.idle, IdleCauses):
        parts |= {cause.key: int(side.idle.by_step[:, cause].sum()) for cause in Cause}
        unseen = tuple(cause.key for cause in Cause if cause in side.idle.missing)
    found = work_reasons(side, _LABELS) | idle_reasons(side, _LABELS, {cause: cause.key for cause in Cause})
    return Explain(rank.count, parts, unseen, _kept(found), most(_kernels(rank), ROWS_KEPT))


def _kept(found: Reasons) -> dict[Key, Amounts]:
    return most({key: Amounts(reason.time, reason.count) for key, reason in found.items()}, ROWS_KEPT)


def _kernels(rank: RankSteps) -> dict[str, Amounts]:
    context = rank.side.context
    name = context.device.name[context.once(device_work).event]
    rows = group(name)
    amounts = map(Amounts, rows.sum(context.once(device_work).time).tolist(), rows.count().tolist())
    return dict(zip(context.trace.strings.texts(name[rows.first]), amounts, strict=True))


def most(rows: Mapping[_K, Amounts], count: int) -> dict[_K, Amounts]:
    """The rows with most time, largest first."""
    return dict(sorted(rows.items(), key=lambda item: (-item[1].time, str(item[0])))[:count])


def shortened(found: Explain, rows: int) -> Explain:
    """The same with fewer reasons and kernels."""
    return replace(
        found, reasons=most(found.reasons, rows), kernels=most(found.kernels, rows), kept=min(rows, found.kept)
    )


class WhyRow(NamedTuple):
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


class Why(NamedTuple):
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
    # Older runs kept fewer rows, to keep a baseline file small: those that kept most speak for a side.
    sides = [[each for each in side if each.kept == max(one.kept for one in side)] for side in (old, new)]
    reasons = _joined(*([(each.steps, each.reasons) for each in side] for side in sides)) if same else ()
    kernels = _joined(
        *([(each.steps, {("", "kernel", n): a for n, a in each.kernels.items()}) for each in side] for side in sides)
    )
    return Why(sum(before.values()), sum(after.values()), parts, reasons, kernels)


def _parts(side: Sequence[Explain], *, merged: bool) -> dict[str, float]:
    """Parts per step, mean over runs; with `merged` all causes of idle time as one."""
    total: dict[str, float] = {}
    for each in side:
        for key, time in each.parts.items():
            name = IDLE if merged and key in _CAUSES else key
            total[name] = total.get(name, 0) + time / each.steps / len(side)
    return total


_Rows: TypeAlias = Sequence[tuple[int, Mapping[Key, Amounts]]]
"""Of each run of a side the number of steps, and what it kept over all of them."""


def _joined(*sides: _Rows) -> tuple[WhyRow, ...]:
    """Rows of both sides per step, most changed first; means over runs.

    What only one side kept is nothing on the other, or less than any row kept there.
    """
    found: dict[Key, list[float]] = {}
    for place, side in enumerate(sides):
        for steps, rows in side:
            scale = 1 / steps / len(side)
            for key, amounts in rows.items():
                sums = found.setdefault(key, [0] * 4)
                sums[place] += amounts.time * scale
                sums[place + 2] += amounts.count * scale
    joined = (WhyRow(*key, *sums) for key, sums in found.items())
    return tuple(sorted(joined, key=lambda row: (-abs(row.change), row.part, row.what, row.name)))


def top(rows: Iterable[WhyRow], count: int) -> tuple[WhyRow, ...]:
    """The first rows that changed."""
    return tuple(row for row in rows if row.change)[:count]
