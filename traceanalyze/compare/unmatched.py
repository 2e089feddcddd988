"""Work that found no partner on the other side, by section: counted, never lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from traceanalyze.analyses.results_host import OUTSIDE_OPS, UNLINKED
from traceanalyze.compare.modules import OUTSIDE_MODULES
from traceanalyze.compare.results import Unmatched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from traceanalyze.analyses.results import NotMeasured
    from traceanalyze.compare.results import (
        CollectivePair,
        KernelPair,
        Measured,
        ModulePair,
        ModuleSide,
        OperatorPair,
        OperatorTotal,
        OpSide,
    )

_T = TypeVar("_T")
_SIDES = ("base", "candidate")
_NO_OPERATOR = frozenset({UNLINKED, OUTSIDE_OPS})


class _Row(NamedTuple):
    """Number and device time of a row on both sides; the number is 0 where a side does not have it."""

    number: tuple[int, int]
    time: tuple[int, int]


def unmatched(
    operators: tuple[OperatorTotal, ...] | NotMeasured | None,
    operator_pairs: tuple[OperatorPair, ...] | NotMeasured | None,
    modules: tuple[ModulePair, ...] | NotMeasured | None,
    collectives: tuple[CollectivePair, ...] | NotMeasured | None,
    kernels: tuple[KernelPair, ...] | NotMeasured | None,
) -> tuple[Unmatched, ...]:
    """Number and device time without a partner, of all of the section on that side; sections that were compared only.

    Operators are calls where calls were matched, else names; work of no operator is no part of it. Modules are those
    with work of their own.
    """
    found: list[Unmatched] = []
    if isinstance(operator_pairs, tuple):
        found += _section("operators", operator_pairs, _call)
    elif isinstance(operators, tuple):
        found += _section("operators", operators, _total)
    if isinstance(modules, tuple):
        found += _section("modules", modules, _module)
    if isinstance(collectives, tuple):
        found += _section("collectives", collectives, _measured)
    if isinstance(kernels, tuple):
        found += _section("kernels", kernels, _measured)
    return tuple(found)


def _section(section: str, rows: tuple[_T, ...], read: Callable[[_T], _Row | None]) -> Iterator[Unmatched]:
    known = [row for row in map(read, rows) if row is not None]
    for side, name in enumerate(_SIDES):
        alone = [row for row in known if row.number[side] and not row.number[1 - side]]
        yield Unmatched(
            section=section,
            side=name,
            count=sum(row.number[side] for row in alone),
            time=sum(row.time[side] for row in alone),
            of_time=sum(row.time[side] for row in known),
        )


def _call(row: OperatorPair) -> _Row | None:
    named = row.base or row.candidate
    if named is None or named.name in _NO_OPERATOR:
        return None
    sides = row.base, row.candidate
    return _Row(
        (int(sides[0] is not None), int(sides[1] is not None)),
        (_time(sides[0]), _time(sides[1])),
    )


def _time(side: OpSide | None) -> int:
    return 0 if side is None else side.device_time


def _total(row: OperatorTotal) -> _Row | None:
    if row.name in _NO_OPERATOR:
        return None
    return _Row((row.base_count, row.candidate_count), (row.base_time, row.candidate_time))


def _module(row: ModulePair) -> _Row | None:
    if row.op is not None or row.path == OUTSIDE_MODULES:
        return None
    return _Row((_there(row.base), _there(row.candidate)), (_own(row.base), _own(row.candidate)))


def _there(side: ModuleSide | None) -> int:
    return int(side is not None)


def _own(side: ModuleSide | None) -> int:
    return 0 if side is None else side.device_self


def _measured(row: CollectivePair | KernelPair) -> _Row | None:
    counts, times = zip(*(_sums(side) for side in (row.base, row.candidate)), strict=True)
    return _Row((counts[0], counts[1]), (times[0], times[1]))


def _sums(side: Measured | None) -> tuple[int, int]:
    return (0, 0) if side is None else (side.count, side.total)
