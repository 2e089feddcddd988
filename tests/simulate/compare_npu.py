"""The product's answers about the Ascend files of a schedule."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traceanalyze
from tests.simulate.compare import EVERY_STEP, expected, measured, modules, operators
from tests.simulate.writers.ascend import write_ascend
from tests.simulate.writers.layouts import TODAY
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule
    from tests.simulate.writers.ascend_layouts import AscendLayout
    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.model.trace import Trace


def npu_trace(schedule: Schedule, layout: AscendLayout, form: str = "text") -> Trace:
    """What the product reads from the directory of one rank."""
    with tempfile.TemporaryDirectory() as folder:
        (trace,) = traceanalyze.load(write_ascend(Path(folder), schedule, layout, form)).traces
    return trace


def npu_analysis(schedule: Schedule, layout: AscendLayout, form: str = "text") -> RankAnalysis:
    """What the product makes of it."""
    return analyze_trace(npu_trace(schedule, layout, form), EVERY_STEP)


def npu_expected(schedule: Schedule) -> dict[str, Any]:
    """Steps, parts, causes and sync places from the schedule."""
    return expected(schedule, TODAY)


@dataclass(frozen=True, slots=True)
class Tables:
    """Numbers of every table that both forms of a profile must share."""

    numbers: dict[str, Any]
    kernels: dict[str, tuple[int, int]]
    operators: dict[str, tuple[int, ...]]
    phases: dict[str, tuple[int, ...]]
    modules: dict[str, tuple[int, ...]]
    collectives: dict[tuple[str, str], tuple[int, int, int]]
    memory: tuple[tuple[int, ...], ...]


def tables(found: RankAnalysis) -> Tables:
    """The tables of an analysis in plain values."""
    if "kernels" not in found.tables:
        raise TypeError(found.tables)
    kernels: dict[str, tuple[int, int]] = {}
    for row in found.records("kernels"):
        count, time = kernels.get(row.name, (0, 0))
        kernels[row.name] = count + row.count, time + row.device_time_ns
    collectives = {
        (row.collective, str(row.size_bytes)): (row.count, row.device_time_ns, row.exposed_ns)
        for row in found.records("collectives")
    }
    phases: dict[str, tuple[int, ...]] = {}
    for row in found.records("step_phases"):
        name = row.phase.removeprefix("phase_")
        phases[name] = (*phases.get(name, ()), row.device_ns)
    return Tables(
        measured(found),
        kernels,
        operators(found),
        phases,
        modules(found),
        collectives,
        tuple((row.peak_allocated_bytes, row.peak_reserved_bytes, row.records) for row in found.records("memory")),
    )


def _rows(table: Any) -> tuple[Any, ...]:
    return () if isinstance(table, NotMeasured) else table
