"""Laws of the host-side tables on every real trace at hand: nothing lost, nothing counted twice, nothing negative."""

from __future__ import annotations

import numpy as np
import pytest

from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.errors import TraceAnalyzeError
from traceanalyze.model import intervals
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Mode

NUMBERS = ("calls", "host_total_ns", "host_self_ns", "api_ns", "device_self_ns", "device_total_ns", "launched")
_PARTS = ("phase_recompute", "phase_zero_grad")


def test_host_tables_keep_their_laws(real_trace):
    try:
        context = real_trace.context
    except TraceAnalyzeError:
        return
    if context.mode == Mode.EMPTY or context.step_track < 0:
        return
    found = {table.key: list(table.records()) for table in real_trace.analysis.tables.values()}
    operators(context, found)
    trees(context)
    phases(context, found)
    others(context, found)


def device_time(context):
    """Time of all device events inside the steps that count, the slow way."""
    total = 0
    for start, end in zip(*intervals.merge(context.counted.start, context.counted.end), strict=True):
        inside = np.minimum(context.device.end, end) - np.maximum(context.device.start, start)
        total += int(inside[inside > 0].sum())
    return total


def operators(context, found):
    rows = found["operators"]
    if not rows:
        return
    whole = device_time(context)
    if len(context.device):
        assert sum(row.device_self_ns for row in rows) == whole
        assert sum(row.device_share for row in rows) == pytest.approx(1 if whole else 0)
    for row in (*rows, *found["operator_shapes"]):
        values = [value for value in (getattr(row, name) for name in NUMBERS) if isinstance(value, int)]
        assert min(values) >= 0
        # Of work that was launched before the windows, the host's part is not measured.
        before = isinstance(row.calls, NotMeasured)
        assert before or row.op.startswith("<") or len(values) == len(NUMBERS) - 2 * (len(context.device) == 0)
        assert row.op.startswith("<") or len(context.device) == 0 or row.device_total_ns >= row.device_self_ns
    if found["operator_shapes"]:
        columns = ("calls", "host_self_ns", "api_ns", "launched", *["device_self_ns"] * (len(context.device) > 0))
        for column in columns:
            named, shaped = (
                [
                    value
                    for row in table
                    if not row.op.startswith("<") and isinstance(value := getattr(row, column), int)
                ]
                for table in (rows, found["operator_shapes"])
            )
            # What was launched before the windows is not measured of operators or of shapes, or of these alone.
            assert sum(shaped) <= sum(named) if "device" not in column else sum(shaped) == sum(named)


def trees(context):
    nested, events = context.op_nest, context.trace.events
    for track in np.flatnonzero(np.diff(nested.bounds)).tolist():
        mine = nested.of(track)
        row = nested.row[mine]
        covered = intervals.total(intervals.merge(events.ts[row], events.ts[row] + events.dur[row]))
        lost = covered - int(nested.own[mine].sum())
        assert 0 <= lost <= context.trace.resolution_ns * len(row)


def phases(context, found):
    headline = context.devices[0] if len(context.device) else -1
    counted = context.device.device[context.once(device_work).event] == headline if len(context.device) else np.empty(0)
    if found["phases"]:
        assert sum(row.device_events for row in found["phases"] if row.phase not in _PARTS) == counted.sum()
    time = dict(zip(step_labels(context.steps.name), context.steps.time.tolist(), strict=True))
    for row in found["step_phases"]:
        assert row.host_ns >= 0
        assert len(context.device) == 0 or 0 <= row.device_ns <= time[row.step]


def others(context, found):
    there, modules = len(context.device) > 0, found["modules"]
    for row in modules:
        assert not there or row.forward_total_ns >= row.forward_self_ns >= 0
        assert not there or row.backward_total_ns >= row.backward_self_ns >= 0
        known = isinstance(row.host_self_ns, int)
        assert not known or 0 <= row.host_self_ns <= row.host_total_ns
    whole = device_time(context)
    assert sum(row.forward_self_ns + row.backward_self_ns for row in modules if there) <= whole
    for line in found["source_lines"]:
        assert 0 <= line.host_self_ns <= line.with_library_ns
        assert not there or line.device_idle_ns >= 0
    assert sum(row.device_time_ns for row in found["op_kernels"]) <= whole
