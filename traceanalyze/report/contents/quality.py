"""How far the numbers can be trusted: checks, what to record to measure more, steps left out (definitions §§14, 15)."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.computes import HOST_COMPUTES
from traceanalyze.analyses.idle.host_state import HostSplit
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.results import Check, RankAnalysis
from traceanalyze.analyses.steps.split import host_parts
from traceanalyze.analyses.steps.window import step_labels, window_of
from traceanalyze.model.table import Kind, Message, NotMeasured, Table, Value, sentences
from traceanalyze.model.vocabulary import BUSY_PARTS, IDLE_GROUPS
from traceanalyze.report.model import Doubt

_OF_DEVICES = {"no_device_events", "no_api"}
"""What cannot be recorded of a program that uses no device."""


def doubts(checks: tuple[Check, ...]) -> tuple[Doubt, ...]:
    """Checks with typed values, worst first."""
    ordered = sorted(checks, key=lambda check: (-check.level, check.id))
    return tuple(
        Doubt(check.id, check.level, Message(check.message, tuple(typed(*item) for item in check.values)))
        for check in ordered
    )


def typed(name: str, value: float | str) -> tuple[str, Kind, Value]:
    """The kind of a check's value, by its name: units are in names at the edges."""
    if isinstance(value, str):
        return name, Kind.TEXT, value
    if name == "ratio":
        return name, Kind.RATIO, float(value)
    if name.endswith("_ns"):
        return name, Kind.DURATION, int(value)
    if name.endswith("bytes"):
        return name, Kind.BYTES, int(value)
    if name.endswith("share"):
        return name, Kind.SHARE, float(value)
    return name, Kind.COUNT, value


def hints(tables: Iterable[Table], checks: tuple[Check, ...], *, ascend: bool = False) -> tuple[str, ...]:
    """Why tables were not measured and what checks missed, each once: what advice on recording is keyed by.

    Keys end in `.ascend` for a profile of torch_npu, whose options have names of their own.
    """
    missing = (table.rows.reason for table in tables if isinstance(table.rows, NotMeasured))
    keys = dict.fromkeys((*missing, *(check.message for check in checks)))
    if HOST_COMPUTES in keys:
        keys = dict.fromkeys(key for key in keys if key not in _OF_DEVICES)
    return tuple(f"{key}.ascend" if ascend else key for key in keys)


_SAY = sentences(
    start_step=(
        "Left out of every number as the start of the run: step {step}, {time}, {factor} times the usual "
        "({part}: {excess} more)."
    ),
    start_steps=(
        "Left out of every number as the start of the run: steps {step}, up to {time}, {factor} times the usual "
        "({part}: {excess} more)."
    ),
)


def start_left_out(analysis: RankAnalysis) -> tuple[Message, ...]:
    """A sentence about the steps of the start, with what the longest of them spent more on than the usual step."""
    steps = analysis.steps
    if steps.starting is None or not steps.starting.any() or window_of(steps).total == 0:
        return ()
    window, rows = window_of(steps), np.flatnonzero(steps.starting & steps.complete)
    if len(rows) == 0:
        return ()
    labels = step_labels(steps.name)
    worst = int(rows[np.argmax(steps.time[rows])])
    usual = window.mean(window.total)
    more = {part: int(time[worst]) - window.mean(window.sum(time)) for part, time in _parts(analysis)}
    part = max(more, key=lambda key: more[key])
    named = [labels[row] for row in rows.tolist()]
    run = len(named) > 1 and rows[-1] - rows[0] == len(rows) - 1
    values = (
        ("step", Kind.TEXT, f"{named[0]}-{named[-1]}" if run else ", ".join(named)),
        ("time", Kind.DURATION, int(steps.time[worst])),
        ("factor", Kind.RATIO, int(steps.time[worst]) / usual if usual else 0.0),
        ("part", Kind.TERM, part),
        ("excess", Kind.DURATION, more[part]),
    )
    return (Message(_SAY["start_step" if len(rows) == 1 else "start_steps"], values),)


def _parts(analysis: RankAnalysis) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Terms and times of each step of what it may have spent more on: exclusive parts that sum to the step."""
    idle, split = analysis.idle, analysis.host
    if analysis.partitions and isinstance(idle, IdleCauses):
        main = analysis.partitions[0]
        yield from zip(BUSY_PARTS, (main.compute, main.comm_exposed, main.mem_exposed), strict=True)
        if idle.missing:
            yield "idle_sum", main.idle
            return
        for key, causes in IDLE_GROUPS.items():
            term = "start_allocation" if key == "allocation" else f"because_{key}"
            yield term, idle.by_step[:, list(causes)].sum(axis=1)
    elif isinstance(split, HostSplit):
        yield from ((key, time) for key, time in host_parts(split).items() if not isinstance(time, NotMeasured))
