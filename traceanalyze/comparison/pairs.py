"""Rows of two sides and their tables: exact sums of both, shown per step, what changes most first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from traceanalyze.analyses.steps.window import rounded
from traceanalyze.comparison.columns import PARTS_CANCEL
from traceanalyze.comparison.results import Pair, Pairs, SideInfo
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value

EVEN = 0.001
"""Difference of two steps up to which they count as equally long."""


class PerStep(NamedTuple):
    """Numbers of steps of both sides, and how much longer the candidate's step takes.

    Sums over the steps are exact; means per step, differences, ratios and shares are made of them when shown.
    """

    base_steps: int
    candidate_steps: int
    change: int
    """Difference of the mean step times, ns, times both numbers of steps."""
    even: bool = False
    """The steps are as good as equally long."""
    cancel: bool = False
    """Their parts change by far more than they do."""

    @classmethod
    def of(cls, base: SideInfo, candidate: SideInfo) -> PerStep:
        """Those of two sides; a side without steps counts as one that took no time."""
        counts = max(base.count, 1), max(candidate.count, 1)
        longest = max(candidate.step_time * counts[0], base.step_time * counts[1])
        change = candidate.step_time * counts[0] - base.step_time * counts[1]
        return cls(*counts, change, abs(change) <= EVEN * longest)

    def over(self, parts: Iterable[tuple[int, int]]) -> PerStep:
        """These, knowing the sums of both sides in every part of the step."""
        return self._replace(cancel=cancelling((self.exact(*part) for part in parts), self.change))

    def base(self, amount: int) -> int:
        """A sum of the base as a whole number per step."""
        return rounded(amount, self.base_steps)

    def candidate(self, amount: int) -> int:
        """A sum of the candidate as a whole number per step."""
        return rounded(amount, self.candidate_steps)

    def exact(self, base: int, candidate: int) -> int:
        """Candidate minus base per step, times both numbers of steps: what to sort and to sum by."""
        return candidate * self.base_steps - base * self.candidate_steps

    def diff(self, base: int, candidate: int) -> int:
        """Candidate minus base per step; swapping the sides negates it."""
        return self.mean(self.exact(base, candidate))

    def mean(self, exact: int) -> int:
        """An exact difference as a whole number per step."""
        return rounded(exact, self.base_steps * self.candidate_steps)

    def ratio(self, base: int, candidate: int) -> float | None:
        """Candidate over base; 1 where both are nothing, None where only the base is."""
        if base:
            return candidate * self.base_steps / (base * self.candidate_steps)
        return None if candidate else 1.0

    def share(self, base: int, candidate: int) -> float | NotMeasured | None:
        """Part of the change of the step time; negative where it goes against it, None where there is none."""
        exact = self.exact(base, candidate)
        return PARTS_CANCEL if self.even and self.change else of_change(exact, self.change, cancel=self.cancel)

    def amounts(self, base: int | NotMeasured, candidate: int | NotMeasured) -> dict[str, Value]:
        """A duration of both sides: per step, the difference, ratio, share of the change, and the exact sums."""
        cells: dict[str, Value] = {
            "base_time_ns": base if isinstance(base, NotMeasured) else self.base(base),
            "candidate_time_ns": candidate if isinstance(candidate, NotMeasured) else self.candidate(candidate),
            "base_sum_ns": base,
            "candidate_sum_ns": candidate,
        }
        if isinstance(base, NotMeasured) or isinstance(candidate, NotMeasured):
            why = base if isinstance(base, NotMeasured) else candidate
            return cells | dict.fromkeys(("diff_ns", "ratio", "step_change_share"), why)
        pair = base, candidate
        shown = {"diff_ns": self.diff(*pair), "ratio": self.ratio(*pair), "step_change_share": self.share(*pair)}
        return cells | shown


_CANCEL = 2.0
"""Times the change of the whole that its parts may change in sum: their shares add up to 1, none is above 1.5."""


def cancelling(changes: Iterable[float], whole: float) -> bool:
    """Whether parts change so much more than the whole that a share of its change would say nothing."""
    return sum(map(abs, changes)) > _CANCEL * abs(whole)


def of_change(part: float, whole: float, *, cancel: bool) -> float | NotMeasured | None:
    """The share that a part has in the change of the whole, unless others take most of it back."""
    if not whole:
        return None
    return PARTS_CANCEL if cancel or abs(part) > (1 + _CANCEL) / 2 * abs(whole) else part / whole if part else 0.0


_ONE_CALL = PerStep(1, 1, 0)
NAMED = 20
"""Kernels, or allocations, named in one text."""


def kernel_details(kernels: Sequence[tuple[str, int]], steps: int = 1) -> str | None:
    """Names and microseconds a step in their order, equal neighbours once; None without any."""
    parts = []
    for name, run in groupby(kernels, key=itemgetter(0)):
        times = [ns for _, ns in run]
        more = f", {len(times)} times" if len(times) > 1 else ""
        parts.append(f"{name} [{sum(times) / 1000 / steps:.3f} µs{more}]")
    return _listed(parts) if parts else None


def _allocation_details(each: Sequence[tuple[int, int | None]], _: int) -> str:
    """Sizes, and how long each lived, if that is known."""
    return _listed([f"{size} B" + (f", {ns / 1000:.3f} µs" if ns is not None else "") for size, ns in each])


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(texts[:NAMED]) + (f"; … {len(texts) - NAMED} more" if len(texts) > NAMED else "")


T = TypeVar("T")


def partners(
    base: Sequence[T], candidate: Sequence[T], *places: Callable[[T], object]
) -> Iterator[tuple[T | None, T | None]]:
    """What both sides have at the same place, then what only one has.

    Places come one after the other; of several things of one side at the same place the last counts.
    """
    sides = [list(base), list(candidate)]
    for place in places:
        met = [{place(one): one for one in side} for side in sides]
        both = [key for key in met[0] if key in met[1]]
        yield from ((met[0][key], met[1][key]) for key in both)
        taken = {id(each[key]) for each in met for key in both}
        sides = [[one for one in side if id(one) not in taken] for side in sides]
    yield from ((one, None) for one in sides[0])
    yield from ((None, one) for one in sides[1])


CLOSE = 0.1
"""Part of the larger one by which two costs may differ and still be called the same."""


def how_changed(base: int | None, candidate: int | None) -> str:
    """In which way a cost differs; None where a side has it not."""
    if base is None or candidate is None:
        return "finding_gone" if candidate is None else "finding_new"
    if abs(candidate - base) <= CLOSE * max(base, candidate):
        return "finding_same"
    return "finding_grown" if candidate > base else "finding_shrunk"


class Ranked(NamedTuple):
    """A row with its place, counted from 1."""

    place: int
    pair: Pair
    share: float | None
    """Of the sum of all absolute changes of the section, negative for what got less."""


def ranked(pairs: Iterable[Pair], per: PerStep, *amounts: str) -> list[Ranked]:
    """Largest absolute change of an amount first, of equal ones that of the next; others keep their order."""
    rows = list(pairs)
    changes = [[0 if lacking(pair, key) else per.exact(*_amount(pair, key)) for pair in rows] for key in amounts]
    whole = sum(map(abs, changes[0]))
    order = sorted(range(len(rows)), key=lambda index: [-abs(change[index]) for change in changes])
    return [
        Ranked(place, rows[index], changes[0][index] / whole if whole else None)
        for place, index in enumerate(order, start=1)
    ]


def _amount(pair: Pair, key: str) -> tuple[Any, Any]:
    return (pair.base or {}).get(key, 0), (pair.candidate or {}).get(key, 0)


def lacking(pair: Pair, key: str) -> NotMeasured | None:
    """Why an amount cannot be compared; None where both sides have it."""
    return next((amount for amount in _amount(pair, key) if isinstance(amount, NotMeasured)), None)


class Section(NamedTuple):
    """A table of pairs, and what its rows are ranked by."""

    table: Table
    amounts: tuple[str, ...]
    """By whose change rows are ranked, see `ranked`; of a side, without its name."""
    of: str
    """What differences and ratios are of."""
    per_call: bool = False
    """Rows are single calls, not sums over steps."""

    def fill(self, pairs: Pairs, per: PerStep, rows: Sequence[Ranked] | None = None) -> Table:
        """The table; `rows` where they are not simply the pairs by rank."""
        if isinstance(pairs, NotMeasured):
            return replace(self.table, absent=pairs)
        each = _ONE_CALL if self.per_call else per
        rows = ranked(pairs, each, *self.amounts) if rows is None else rows
        return self.table.fill(**{column.key: self._values(column, rows, each) for column in self.table.columns})

    def _values(self, column: Column, rows: Sequence[Ranked], per: PerStep) -> list[Any]:
        if column.key in _DERIVED:
            return [_DERIVED[column.key](self, row, per) for row in rows]
        side, _, key = column.key.partition("_")
        if side not in {"base", "candidate"}:
            return [row.pair.shared[column.key] for row in rows]
        steps = per.base_steps if side == "base" else per.candidate_steps
        return _cells(column, key, [getattr(row.pair, side) for row in rows], steps)


def section(
    key: str,
    title: str,
    *columns: Column,
    by: str | tuple[str, ...],
    of: str = "",
    detail: bool = False,
    per_call: bool = False,
) -> Section:
    """A section whose rows are ranked by these amounts; differences and ratios are of the first, or of `of`."""
    amounts = (by,) if isinstance(by, str) else by
    return Section(Table(key, columns, title=title, ranked=True, detail=detail), amounts, of or amounts[0], per_call)


def _cells(column: Column, key: str, sides: Sequence[Mapping[str, Any] | None], steps: int) -> list[Any]:
    """What a table shows of exact sums of one side."""
    if key == "avg_ns":
        return [
            side["total_ns"]
            if side and isinstance(side["total_ns"], NotMeasured)
            else rounded(side["total_ns"], side["calls"])
            if side and side["calls"]
            else None
            for side in sides
        ]
    values = [None if side is None else side[key] for side in sides]
    if key in _TEXTS:
        return [None if value is None else _TEXTS[key](value, steps) for value in values]
    if column.kind == Kind.NUMBER:
        return [value / steps if isinstance(value, int | float) else value for value in values]
    if steps == 1 or column.kind not in _SUMMED or column.scale != "time" or column.machine:
        return values
    return [rounded(value, steps) if isinstance(value, int) else value for value in values]


def _mean_ratio(pair: Pair) -> float | None:
    """Time of one call of the candidate over that of the base; None where a side has no call or no time."""
    (base, candidate), (old, new) = _amount(pair, "total_ns"), _amount(pair, "calls")
    return candidate * old / (base * new) if base and old and new else None


_SUMMED = frozenset({Kind.DURATION, Kind.BYTES})
_TEXTS: dict[str, Callable[[Any, int], str | None]] = {"kernels": kernel_details, "details": _allocation_details}


def _made_of(how: Callable[[PerStep, int, int], Value], key: str = "") -> Callable[[Section, Ranked, PerStep], Value]:
    return lambda section, row, per: (
        lacking(row.pair, key or section.of) or how(per, *_amount(row.pair, key or section.of))
    )


_DERIVED: dict[str, Callable[[Section, Ranked, PerStep], Value]] = {
    "place": lambda _, row, __: row.place,
    "change_share": lambda section, row, _: lacking(row.pair, section.amounts[0]) or row.share,
    "step_change_share": lambda section, row, per: (
        lacking(row.pair, section.amounts[0]) or per.share(*_amount(row.pair, section.amounts[0]))
    ),
    "match": lambda section, row, __: (
        lacking(row.pair, section.of)
        or (
            "only_candidate"
            if row.pair.base is None
            else "only_base"
            if row.pair.candidate is None
            else row.pair.shared.get("match", "both_sides")
        )
    ),
    "avg_ratio": lambda _, row, __: lacking(row.pair, "total_ns") or _mean_ratio(row.pair),
    "diff_ns": _made_of(PerStep.diff),
    "diff_bytes": _made_of(PerStep.diff),
    "diff_size_bytes": _made_of(PerStep.diff),
    "ratio": _made_of(PerStep.ratio),
    "base_sum_ns": lambda section, row, _: _amount(row.pair, section.of)[0],
    "candidate_sum_ns": lambda section, row, _: _amount(row.pair, section.of)[1],
    "total_diff_ns": _made_of(PerStep.diff, "total_ns"),
    "total_ratio": _made_of(PerStep.ratio, "total_ns"),
    "self_diff_ns": _made_of(PerStep.diff, "self_ns"),
    "self_ratio": _made_of(PerStep.ratio, "self_ns"),
    "exposed_diff_ns": _made_of(PerStep.diff, "exposed_ns"),
    "calls_ratio": _made_of(PerStep.ratio, "calls"),
}
"""Columns made of amounts of both sides."""
