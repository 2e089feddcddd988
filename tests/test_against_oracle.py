"""The product against the oracle on every real trace: two independent readings of the same definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import traceanalyze
from tests.oracle.report import numbers
from traceanalyze.analyses.analyze import context_of
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.steps.partition import partition
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Cause

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real import RealTrace
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
PARTS = (
    *("compute", "comm_exposed", "mem_exposed", "idle", "busy"),
    *("comm_total", "comm_overlapped", "mem_total", "compute_dur", "comm_dur", "mem_dur"),
)


def test_every_number_of_a_trace_is_the_oracles(real_trace: RealTrace) -> None:
    try:
        expected = numbers(real_trace.path)
    except ValueError:
        _refused_in_one_line(real_trace.path)
        return
    found = real_trace.analysis
    _steps(found, expected)
    _partitions(found, expected)
    _spans(found, expected)
    _idle(found, expected)
    _syncs(found, expected)
    _launches(found, expected)


def _refused_in_one_line(path: Path) -> None:
    with pytest.raises(traceanalyze.InputError) as error:
        traceanalyze.load(path)
    assert len(str(error.value).splitlines()) == 1


def _steps(found: RankAnalysis, expected: dict[str, Any]) -> None:
    steps, rows = found.steps, expected["steps"]
    first = rows[0]["start"] if rows else 0
    assert found.mode.name.lower().replace("_", " ") == expected["mode"]
    assert [int(each - steps.start[0]) for each in steps.start] == [row["start"] - first for row in rows]
    assert steps.time.tolist() == [row["end"] - row["start"] for row in rows]
    assert steps.owned.tolist() == [row["owned"] for row in rows]
    assert steps.complete.tolist() == [row["complete"] for row in rows]
    assert steps.counted.tolist() == [row["counted"] for row in rows]
    assert (steps.between_steps, steps.lead_in) == (expected["between_steps"], expected["lead_in"])


def _partitions(found: RankAnalysis, expected: dict[str, Any]) -> None:
    assert {str(part.device) for part in found.partitions} == set(expected["partitions"])
    for part in found.partitions:
        whole = part.compute + part.comm_exposed + part.mem_exposed + part.idle
        assert whole.tolist() == found.steps.time.tolist()
        rows = expected["partitions"][str(part.device)]
        assert {name: getattr(part, name).tolist() for name in PARTS} == {
            name: [row[name] for row in rows] for name in PARTS
        }


def _spans(found: RankAnalysis, expected: dict[str, Any]) -> None:
    if "device_spans" not in found.tables:
        return
    context = context_of(found.trace, Options())
    for span in found.tables["device_spans"].records():
        row = expected["spans"][str(span.device)]
        assert span.span_ns == row["end"] - row["start"]
        assert [span.compute_kernels, span.communication_kernels, span.copies, span.fills] == row["counts"]
        edges = np.array([span.start_ns]), np.array([span.start_ns + span.span_ns])
        part = partition(context.device, span.device, context.class_sets(span.device), *edges)
        assert {name: getattr(part, name).tolist() for name in PARTS} == {name: [row[name]] for name in PARTS}
        shown = (span.compute_ns, span.communication_ns, span.communication_total_ns, span.memory_ops_ns, span.idle_ns)
        assert shown == tuple(row[name] for name in ("compute", "comm_exposed", "comm_total", "mem_exposed", "idle"))


def _idle(found: RankAnalysis, expected: dict[str, Any]) -> None:
    if "idle" not in expected:
        assert not isinstance(found.idle, IdleCauses)
        return
    assert isinstance(found.idle, IdleCauses)
    assert str(found.device) == expected["device"]
    assert found.idle.by_step.sum(axis=1).tolist() == found.partitions[0].idle.tolist()
    for index, row in enumerate(expected["idle"]):
        measured = {name: int(found.idle.by_step[index, cause]) for name, cause in CAUSES.items()}
        assert measured == {name: row.get(name, 0) for name in CAUSES}


def _syncs(found: RankAnalysis, expected: dict[str, Any]) -> None:
    if "sync_points" not in found.tables or "syncs" not in expected:
        return
    rows = expected["syncs"].values()
    costed = [
        site for site in found.tables["sync_points"].records() if not isinstance(site.idle_caused_ns, NotMeasured)
    ]
    assert sum(site.idle_caused_ns for site in costed) == sum(row["idle_caused"] for row in rows)
    assert sum(site.blocked_ns for site in costed) == sum(row["blocked"] for row in rows)


def _launches(found: RankAnalysis, expected: dict[str, Any]) -> None:
    if "launches" not in found.tables:
        return
    names = ("linked", "unlinked", "unlinked_ns", "late", "negative_latency", "delay_p50_ns", "delay_p90_ns")
    oracles = ("linked", "unlinked", "unlinked_time", "late", "negative_latency", "delay_p50", "delay_p90")
    for launches in found.tables["launches"].records():
        values = [getattr(launches, name) for name in names]
        measured = [None if isinstance(value, NotMeasured) else value for value in values]
        assert measured == [expected["launches"][name] for name in oracles]
