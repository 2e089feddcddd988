"""Where a snapshot's moments lie in a trace of the same rank: a table, and a place for the peak in the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.model.vocabulary import Phase
from traceanalyze.report.assembly.allocator.tables import step_label
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.analyses.memory.results_trace import InTrace, Placed
    from traceanalyze.model.table import Row
    from traceanalyze.report.model import RankReport

_COLUMNS = (
    Column("moment", Kind.TERM),
    Column("step", Kind.TEXT),
    Column("phase", Kind.TERM),
    Column("op", Kind.NAME),
    Column("module", Kind.NAME),
    Column("count", Kind.COUNT),
    Column("idle_ns", Kind.DURATION),
    Column("request_bytes", Kind.MEMORY),
    Column("grown_bytes", Kind.MEMORY),
    Column("released_bytes", Kind.MEMORY, minor=True),
    Column("requested_bytes", Kind.MEMORY, minor=True),
)
_NAMED = 3
"""Steps without numbers that a row names."""
_MOMENTS = ("peak", "reserved_peak", "oom")
_SAY_NOTHING = (None, Phase.OTHER, Phase.UNKNOWN)
_PART_OF = {Phase.RECOMPUTE: Phase.BACKWARD, Phase.ZERO_GRAD: Phase.OPTIMIZER}


def placed_table(found: InTrace | NotMeasured) -> Table:
    """Peaks, failed requests, and the calls of the device's allocator by place in the program."""
    if isinstance(found, NotMeasured):
        return table_of_rows("memory_in_trace", _COLUMNS, found)
    rows = tuple(_row(one) for one in (*found.moments, *found.calls))
    return table_of_rows("memory_in_trace", _COLUMNS, rows, ranked=True, notes=tuple(_notes(found)))


def placed(rank: RankReport, found: InTrace | NotMeasured) -> RankReport:
    """The report of a snapshot's device with the table, after that of the moments, and the peak's place."""
    table = placed_table(found)
    at = next(index for index, each in enumerate(rank.tables) if each.key == "memory_moments") + 1
    tables = (*rank.tables[:at], table, *rank.tables[at:])
    verdict = rank.verdict if isinstance(found, NotMeasured) else (_peak(rank.verdict[0], found), *rank.verdict[1:])
    return replace(rank, tables=tables, verdict=verdict)


def _row(one: Placed) -> Row:
    spot, moment = one.spot, one.kind in _MOMENTS
    return (
        f"moment_{one.kind}" if moment else f"release_{one.kind}",
        _steps(one.steps),
        None if spot is None else _phase(spot.phase),
        None if spot is None else spot.op,
        None if spot is None else spot.module,
        one.count,
        one.idle,
        one.request,
        None if moment else one.grown,
        None if moment else one.released,
        one.requested,
    )


def _phase(phase: Phase | None) -> str | None:
    return None if phase is None else f"phase_{phase.name.lower()}"


def _steps(names: Sequence[str]) -> str | None:
    """Labels of the steps; numbers that follow each other as a range."""
    labels = [step_label(name) or "" for name in names]
    if not all(label.isdecimal() for label in labels):
        return ", ".join(labels[:_NAMED]) + (", …" if len(labels) > _NAMED else "")
    parts: list[list[int]] = []
    for number in map(int, labels):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts) or None


def _notes(found: InTrace) -> Iterator[Message]:
    if found.clock == "marks":
        yield Message("placed_by_marks")
    if any(one.spot is None for one in found.moments):
        yield Message("placed_moment_outside")
    if found.outside:
        values = ("count", Kind.COUNT, found.outside), ("all", Kind.COUNT, found.all_calls)
        yield Message("placed_calls_outside", values)


def _peak(sentence: Message, found: InTrace) -> Message:
    """The sentence on the peak, with step, phase and operator of the trace as far as it tells them."""
    peak = next((one for one in found.moments if one.kind == "peak"), None)
    if peak is None or peak.spot is None or not sentence.key.startswith("memory_peak"):
        return sentence
    spot, step = peak.spot, _steps(peak.steps)
    known = {
        "step": ("step", Kind.TEXT, step),
        "phase": ("phase", Kind.TERM, _phase(_PART_OF.get(spot.phase, spot.phase) if spot.phase else None)),
        "op": ("op", Kind.NAME, spot.op),
    }
    absent = {"step": step is None, "phase": spot.phase in _SAY_NOTHING, "op": spot.op is None}
    parts = [name for name in known if not absent[name]]
    key = "_".join(("memory_peak_at", *parts))
    if not parts:
        return sentence
    kept = tuple(value for value in sentence.values if value[0] in {"requested", "reserved"})
    return Message(key, (*kept, *(known[name] for name in parts)))
