"""The product's answers in the words of the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.simulate.truth.summary import truth
from tests.simulate.truth.tables import unlinked
from tests.simulate.writers.kineto import write
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.options import Options
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Cause
from traceanalyze.readers.kineto import read_text

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule
    from tests.simulate.writers.layouts import Layout
    from traceanalyze.analyses.results import RankAnalysis

CAUSES = {
    "data_loading": Cause.DATA_LOADING,
    "sync": Cause.SYNC,
    "peer_wait": Cause.PEER_WAIT,
    "dispatch.launch": Cause.DISPATCH_LAUNCH,
    "dispatch.copy": Cause.DISPATCH_COPY,
    "dispatch.alloc": Cause.DISPATCH_ALLOC,
    "dispatch.other": Cause.DISPATCH_OTHER,
    "dispatch.latency": Cause.DISPATCH_LATENCY,
    "host_op": Cause.HOST_OP,
    "device_side.gap": Cause.DEVICE_GAP,
    "device_side.dependency": Cause.DEVICE_DEPENDENCY,
    "untraced": Cause.UNTRACED,
}
EVERY_STEP = Options(steps=lambda steps: np.ones(len(steps), np.bool_))
"""The truth is told of all steps, also of those that are the start of a run by their length."""
PARTS = ("compute", "comm_exposed", "mem_exposed", "idle", "comm_total", "mem_total")


def analysis(schedule: Schedule, layout: Layout) -> RankAnalysis:
    """What the product makes of the file."""
    return analyze_trace(read_text(write(schedule, layout)), EVERY_STEP)


def idle_by_step(found: RankAnalysis) -> list[dict[str, int]]:
    """Causes of each step that are not 0."""
    if not isinstance(found.idle, IdleCauses):
        raise TypeError(found.idle)
    return [{word: int(row[cause]) for word, cause in CAUSES.items() if row[cause]} for row in found.idle.by_step]


def operators(found: RankAnalysis) -> dict[str, tuple[int, ...]]:
    """Calls and times of each operator."""
    names = ("calls", "host_total_ns", "host_self_ns", "api_ns", "device_self_ns", "device_total_ns", "launched")
    return in_steps(found, "operators", "op", names)


def modules(found: RankAnalysis) -> dict[str, tuple[int, ...]]:
    """Calls and times of each module."""
    names = ("calls", "host_total_ns", "host_self_ns", "forward_total_ns", "backward_total_ns")
    return in_steps(found, "modules", "module", names)


def in_steps(found: RankAnalysis, table: str, key: str, names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Numbers of a table by name; what the host did before the analysed steps is none of theirs."""
    early = NotMeasured("launched_before")
    return {
        getattr(row, key): tuple(0 if getattr(row, name) == early else getattr(row, name) for name in names)
        for row in found.records(table)
        if not getattr(row, key).startswith("<")
    }


def measured(found: RankAnalysis) -> dict[str, Any]:
    """Steps, parts, idle causes and sync places as the product found them."""
    part = found.partitions[0]
    (launched,) = found.tables["launches"].records()
    return {
        "launches": (launched.linked, launched.unlinked, launched.unlinked_ns, launched.late),
        "steps": [int(time) for time in found.steps.time],
        "owned": [int(count) for count in found.steps.owned],
        "parts": [{name: int(getattr(part, name)[row]) for name in PARTS} for row in range(len(found.steps))],
        "idle": idle_by_step(found),
        "syncs": {
            (each.op, each.frame, each.call, isinstance(each.idle_caused_ns, NotMeasured)): (
                each.count,
                each.blocked_ns,
                0 if isinstance(each.idle_caused_ns, NotMeasured) else each.idle_caused_ns,
            )
            for each in found.tables["sync_points"].records()
        },
    }


def expected(schedule: Schedule, layout: Layout) -> dict[str, Any]:
    """The same from the schedule."""
    known = truth(schedule)
    syncs: dict[Any, tuple[int, int, int]] = {}
    for (op, line, calls, terminal), cost in known.syncs.items():
        # Old layouts know the line from the operator only.
        frame = line if layout.python or op else None
        place = op, frame, " + ".join(layout.call_name(name) for name in calls.split(" + ")), terminal
        count, blocked, idle = syncs.get(place, (0, 0, 0))
        syncs[place] = count + cost.count, blocked + cost.blocked, idle + (0 if terminal else cost.idle_caused)
    return {
        "launches": (len(schedule.recorded), *unlinked(schedule), known.late),
        "steps": [step.time for step in known.steps],
        "owned": [step.owned for step in known.steps],
        "parts": list(known.parts),
        "idle": list(known.idle),
        "syncs": syncs,
    }
