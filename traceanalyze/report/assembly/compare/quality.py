"""How far the numbers of a comparison can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Kind, Message
from traceanalyze.report.assembly.compare.unmatched import matched_sentences
from traceanalyze.report.assembly.quality import typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.comparison.results import Comparison, SideInfo
    from traceanalyze.model.table import Value


def caveats(comparison: Comparison) -> tuple[Message, ...]:
    """What makes sections less comparable."""
    return tuple(
        Message(caveat.key, tuple(_caveat_value(name, value) for name, value in caveat.values))
        for caveat in comparison.caveats
    )


def _caveat_value(name: str, value: float | str) -> tuple[str, Kind, Value]:
    """As of a check; which side is meant is a word of the language."""
    return (name, Kind.TERM, value) if name == "side" else typed(name, value)


def quality(comparison: Comparison) -> tuple[Message, ...]:
    """Linked and matched time, steps left out, clocks and levels of both sides."""
    return tuple(_sentences(comparison.base, comparison.candidate, comparison))


def _sentences(base: SideInfo, candidate: SideInfo, comparison: Comparison) -> Iterator[Message]:
    if base.device_time and candidate.device_time:
        yield _of_both("compare_linked", Kind.SHARE, _linked(base), _linked(candidate))
    yield from matched_sentences(comparison)
    if base.left_out or candidate.left_out:
        yield _of_both("compare_left_out", Kind.COUNT, base.left_out, candidate.left_out)
    clocks = base.resolution_ns, candidate.resolution_ns
    if max(clocks) > 1:
        yield _of_both("compare_clocks", Kind.DURATION, *clocks)
    if base.level or candidate.level:
        yield _of_both("compare_levels", Kind.TEXT, base.level or "–", candidate.level or "–")


def _of_both(key: str, kind: Kind, base: Value, candidate: Value) -> Message:
    return Message(key, (("base", kind, base), ("candidate", kind, candidate)))


def _linked(side: SideInfo) -> float:
    return side.linked_time / side.device_time
