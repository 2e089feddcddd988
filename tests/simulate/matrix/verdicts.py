"""What the tool says of a program against what the simulation without each cause says. All times in ns a step."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import traceanalyze
from tests.simulate.cost import marked_steps, times_of
from tests.simulate.matrix.causes import LAUNCHING, Cause, mended
from tests.simulate.schedule import MAIN
from tests.simulate.simulate import simulate
from tests.simulate.workload import Fault, Recording
from tests.simulate.writers.ascend import write_ascend
from tests.simulate.writers.kineto import write
from traceanalyze.analyses.options import Options
from traceanalyze.pipeline.recordings import analysed_rank
from traceanalyze.pipeline.run_report import side_by_side
from traceanalyze.rules.evaluate import plan
from traceanalyze.rules.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulate.matrix.cases import Case
    from tests.simulate.workload import Workload
    from traceanalyze.rules.finding import Finding

LEAST = 0.01
"""Of the step: what costs less needs no finding; the bar on the width of a range, too."""
OF_HOST = 0.1
"""The same of a host that is too slow as a whole, which is the limit of the rules about it."""
ODD = {"behind", "drift", "excerpt", "unmarked"}
"""Faults of recordings, of which rules about recordings may speak."""
WIDTH = 0.25
"""Of the saving, where that is more."""
TIE = 0.9
"""Of the largest gain: a cause that is worth as much may come first as well."""
PRESENT = 0.25
"""Of what the steps gain in the mean: what the later ones gain less of comes from the first."""
ROUNDING = 0.002
"""Of the step: the host's work scatters, by other draws where a cause is gone."""


def error(promised: int, true: int, step: int) -> float:
    """Of a promise, as a part of the true saving; where both are next to nothing, none, and 1 at most."""
    least = LEAST * step
    if promised < least and true < least:
        return 0.0
    return min(1.0, abs(promised - true) / max(true, least))


@dataclass(frozen=True, slots=True)
class Row:
    """One cause of one program."""

    case: str
    group: str
    fault: str
    rules: tuple[str, ...]
    """That named it."""
    step: int
    true: int
    low: int | None
    saving: int | None
    bound: int | None
    least: float = LEAST
    """Part of the step from which on it needs a finding."""

    @property
    def told(self) -> bool:
        return self.saving is not None

    @property
    def inside(self) -> bool:
        """Whether the true saving lies in the range; what costs nothing may go untold."""
        room = ROUNDING * self.step
        if self.saving is None:
            return self.true < max(self.least * self.step, 100_000) + room
        low, bound = self.low or 0, self.saving if self.bound is None else self.bound
        return low - room <= self.true <= bound + room

    @property
    def narrow(self) -> bool:
        """Whether the range is narrow enough to be of use."""
        if self.saving is None:
            return True
        low, bound = self.low or 0, self.saving if self.bound is None else self.bound
        return bound - low <= max(WIDTH * self.saving, LEAST * self.step)

    @property
    def off(self) -> float:
        """Error of the promise."""
        return error(self.saving or 0, self.true, self.step)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One program."""

    case: str
    group: str
    step: int
    rows: tuple[Row, ...]
    first: tuple[str, ...]
    """Rules that come first, most saving first."""
    expected: tuple[str, ...]
    """Causes of which one should; empty: none needs to."""
    right: bool
    together: tuple[int, int]
    """Sum of what is promised for the causes, and the true gain without all of them."""
    loud: tuple[str, ...]
    """Findings above a note."""
    told: tuple[str, ...] = ()
    """Findings that may name causes without a saving."""


class Told(NamedTuple):
    """What the tool says."""

    run: list[Finding]
    """Of the run, and of the first rank that was recorded."""
    others: list[Finding]
    """Of the other ranks."""
    unexplained: tuple[str, ...]
    """Parts of the step of which it says that nobody can tell what they are."""


def told(workload: Workload) -> Told:
    """What it says of a program."""
    missing = workload.faults and any(fault.name == "dead_rank" for fault in workload.faults)
    schedules = simulate(workload)[: -1 if missing else None]
    with tempfile.TemporaryDirectory() as folder:
        for schedule in schedules:
            if workload.device.vendor == "ascend":
                write_ascend(Path(folder), schedule)
            else:
                Path(folder, f"rank{schedule.rank}.json").write_bytes(write(schedule))
        run = traceanalyze.load(folder)
    options, rules = Options(), plan()
    found = side_by_side([analysed_rank(trace, options, rules) for trace in run.traces], rules)
    across = [] if found.across is None else list(found.across.findings)
    first, *others = found.outcomes
    rest = [one for outcome in others for one in outcome.findings]
    return Told([*across, *first.findings], rest, tuple(one.part for one in first.unexplained))


def judge(case: Case) -> Verdict:
    """Run it, mend each cause, and all of them."""
    said = told(case.workload)
    every = said.run + said.others
    step = step_of(case)
    loud = tuple(_text(one, step) for one in _loud(every) if _unfit(one, case))
    seen = sorted((one for one in said.run if one.saving), key=lambda one: -(one.saving or 0))
    by_cause = [_about(cause, seen, said.others) for cause in case.causes]
    known = [cause for cause, mine in zip(case.causes, by_cause, strict=True) if mine]
    rows = tuple(_row(case, cause, mine, known, step) for cause, mine in zip(case.causes, by_cause, strict=True))
    promised = sum(row.saving or 0 for row in rows)
    gain = gain_of(case, mended(case.workload, *case.causes))
    named = [one for one in every if any(one.rule in cause.rules for cause in case.causes)]
    if not case.causes:
        expected, right = (), True
    elif case.group in CHECKS:
        expected, right = tuple(cause.fault for cause in case.causes), CHECKS[case.group](case, said, named)
    else:
        expected, right = _first(case, seen, rows, step)
    return Verdict(
        case.name,
        case.group,
        step,
        rows,
        tuple(_text(one, step) for one in seen[:3]),
        expected,
        right,
        (promised, gain),
        loud,
        tuple(f"{_text(one, step)} cost {(one.cost or 0) / step:.0%}{' once' * one.once}" for one in named),
    )


def _loud(every: list[Finding]) -> list[Finding]:
    """Findings above a note."""
    return [one for one in every if one.severity is not None and one.severity > Severity.INFO]


def _unfit(one: Finding, case: Case) -> bool:
    """Whether a finding is none that a healthy program of this kind, or this kind of recording, deserves."""
    odd = case.workload.recording != Recording() or any(fault.name in ODD for fault in case.workload.faults)
    return not (odd and one.rule.startswith("CAP")) and not (case.bound == "host" and one.rule in LAUNCHING)


def _text(one: Finding, step: int) -> str:
    return f"{one.rule} {100 * (one.saving or 0) / step:.0f}%"


def _about(cause: Cause, seen: list[Finding], others: list[Finding]) -> list[Finding]:
    """What is said of a cause."""
    mine = [one for one in seen if one.rule in cause.rules]
    # Another rank may have it, which says what the run gains, too.
    found = [one for one in others if one.rule in cause.rules and one.saving]
    return mine or list({one.key[:3]: one for one in found}.values())


def _row(case: Case, cause: Cause, mine: list[Finding], known: list[Cause], step: int) -> Row:
    saving = sum(one.saving or 0 for one in mine) if mine else None
    low = sum((one.saving or 0) if one.low is None else one.low for one in mine) if mine else None
    bound = sum((one.saving or 0) if one.bound is None else one.bound for one in mine) if mine else None
    named = tuple(dict.fromkeys(one.rule for one in mine))
    least = OF_HOST if cause.free_host else LEAST
    return Row(case.name, case.group, cause.fault, named, step, _true(case, cause, known), low, saving, bound, least)


def _true(case: Case, cause: Cause, known: list[Cause]) -> int:
    """What the program gains without a cause; of a host that is too slow as a whole, once those `known` are mended.

    Rules about the whole host promise what those about a part of its work leave. Untold, it costs what it does alone,
    if that is less: a program that communicates meanwhile, say, is no faster with it mended.
    """
    if cause.special:
        return 0
    alone, others = gain_of(case, mended(case.workload, cause)), [each for each in known if each is not cause]
    if not cause.free_host or not others:
        return alone
    before = mended(case.workload, *others)
    left = gain_of(case, mended(before, cause)) - gain_of(case, before)
    return left if cause in known else min(alone, left)


def _first(case: Case, seen: list[Finding], rows: tuple[Row, ...], step: int) -> tuple[tuple[str, ...], bool]:
    """Causes that may come first, and whether one of them does."""
    costly = {cause: row.true for cause, row in zip(case.causes, rows, strict=True) if row.true >= row.least * step}
    most = max(costly.values(), default=0)
    first = seen[0] if seen and (seen[0].saving or 0) >= LEAST * step else None
    worth = [cause for cause, true in costly.items() if true >= min(TIE * most, most - LEAST * step)]
    names = tuple(cause.fault for cause in worth)
    if first is None:
        return names, most < max(2 * LEAST * step, 100_000)
    if any(first.rule in cause.rules for cause in worth):
        return names, True
    # Nobody put it in, but the host of this program may be too slow as a whole.
    return names, first.rule in LAUNCHING and _of_host(case, worth) >= TIE * most - LEAST * step


def _once(case: Case, said: Told, named: list[Finding]) -> bool:
    """Whether what is done once is told as such, and nothing else, unless the host is too slow anyway."""
    every = said.run + said.others
    return any(one.once for one in named) and not any(_unfit(one, case) for one in _loud(every))


def _unpriced(_: Case, said: Told, named: list[Finding]) -> bool:
    """Whether the cost comes first, with no saving beside it, or is said to be beyond what one rank's recording tells.

    Where collectives tell nothing of their tasks, a rank that makes all of them late looks like a slow link.
    """
    every = said.run + said.others
    if "communication" in said.unexplained:
        return not any(one.saving for one in every)
    largest = max(every, key=lambda one: one.cost or one.saving or 0, default=None)
    found = [one for one in named if one.cost and one.saving is None and (one.severity or 0) >= Severity.MEDIUM]
    return largest in found


CHECKS: dict[str, Callable[[Case, Told, list[Finding]], bool]] = {"once": _once, "unpriced": _unpriced}


def _of_host(case: Case, mended_first: list[Cause]) -> int:
    """What a host that needs no time would gain once the causes are mended."""
    plain = mended(case.workload, *mended_first)
    free = replace(plain, faults=(*plain.faults, Fault("free_host", 1)))
    return gain_of(case, free) - gain_of(case, plain)


def step_of(case: Case) -> int:
    """The mean of the recorded steps."""
    steps, times = marked_steps(case.workload), times_of(case.workload)
    return sum(times[step] for step in steps) // len(steps)


@cache
def never_waits(workload: Workload) -> bool:
    """Whether every rank finds the next batch ready in every recorded step, or nearly."""
    return all(
        sum(state.end - state.start for state in run.states[MAIN] if state.loading)
        < LEAST * (run.steps[-1].end - run.begin)
        for run in simulate(workload)
    )


def gain_of(case: Case, other: Workload) -> int:
    """By how much the recorded steps are shorter in another program, in the mean.

    Recording begins when the device has nothing left to do, so that the host is not ahead of it in the first step. What
    costs time in that step alone, or nearly, costs none in a long run: that is done once, and no saving per step.

    How fast a loader is for which the recorded loop never waits, nothing tells: what is saved is so while it keeps up.
    """
    if never_waits(case.workload):
        other = replace(other, faults=(*other.faults, Fault("ready_batches", 1)))
    before, after = times_of(case.workload), times_of(other)
    first, *later = (before[step] - after[step] for step in marked_steps(case.workload))
    gain, mean = sum(later) // len(later), (first + sum(later)) // (1 + len(later))
    return gain if gain < max(LEAST * step_of(case), PRESENT * mean) else mean
