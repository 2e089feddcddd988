"""Laws of the host-side tables on every real trace at hand: nothing lost, nothing counted twice, nothing negative."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import traceanalyze
from traceanalyze.analyses.analyze import host_tables, tables_of
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.options import Options
from traceanalyze.errors import TraceAnalyzeError
from traceanalyze.model import intervals
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Mode, Phase

SHARED = Path(__file__).resolve().parents[2] / "shared" / "traces"
FILES = sorted(
    str(path.relative_to(SHARED)) for top in ("kineto", "pairs") for path in (SHARED / top).rglob("*") if path.is_file()
)
NUMBERS = ("calls", "host_total", "host_self", "api_time", "device_self", "device_total", "launched")
_PARTS = (Phase.RECOMPUTE, Phase.ZERO_GRAD)

pytestmark = pytest.mark.skipif(not FILES, reason="the shared traces are not here")


def rows(table):
    return () if isinstance(table, NotMeasured) else table


@pytest.mark.parametrize("name", FILES)
def test_host_tables_keep_their_laws(name):
    try:
        (trace,) = traceanalyze.load(SHARED / name).traces
    except TraceAnalyzeError:
        return
    context = Context(trace, Options())
    found = NotMeasured("") if context.mode == Mode.EMPTY else host_tables(context)
    if isinstance(found, NotMeasured):
        return
    operators(context, found)
    trees(context)
    phases(context, found)
    others(found, tables_of(context))


def device_time(context):
    """Time of all device events inside the windows, the slow way."""
    total = 0
    for start, end in zip(*intervals.merge(context.steps.start, context.steps.end), strict=True):
        inside = np.minimum(context.device.end, end) - np.maximum(context.device.start, start)
        total += int(inside[inside > 0].sum())
    return total


def operators(context, found):
    if isinstance(found.operators, NotMeasured):
        return
    assert sum(row.device_self for row in found.operators) == device_time(context) == (found.device_time or 0)
    for row in (*found.operators, *rows(found.shapes)):
        assert min(getattr(row, name) for name in NUMBERS) >= 0
        assert row.device_total >= row.device_self or row.name.startswith("<")
    if rows(found.shapes):
        for column in ("calls", "host_self", "api_time", "device_self", "launched"):
            named = sum(getattr(row, column) for row in found.operators if not row.name.startswith("<"))
            assert sum(getattr(row, column) for row in found.shapes) == named


def trees(context):
    nested, events = context.op_nest, context.trace.events
    for track in np.flatnonzero(np.diff(nested.bounds)).tolist():
        mine = nested.of(track)
        row = nested.row[mine]
        covered = intervals.total(intervals.merge(events.ts[row], events.ts[row] + events.dur[row]))
        lost = covered - int(nested.own[mine].sum())
        assert 0 <= lost <= context.trace.resolution_ns * len(row)


def phases(context, found):
    table = rows(found.phases)
    headline = context.devices[0] if len(context.device) else -1
    counted = context.device.device[context.once(device_work).event] == headline if len(context.device) else np.empty(0)
    if table:
        assert sum(row.events for row in table if row.phase not in _PARTS) == counted.sum()
    time = context.steps.end - context.steps.start
    for row in table:
        assert (row.device >= 0).all()
        assert (row.host >= 0).all()
        assert (row.device <= time).all()


def others(found, tables):
    for row in rows(found.modules):
        assert row.forward_total >= row.forward_self >= 0
        assert row.backward_total >= row.backward_self >= 0
        assert row.host_self is None or 0 <= row.host_self <= row.host_total
    own = sum(row.forward_self + row.backward_self for row in rows(found.modules))
    assert own <= (found.device_time or 0)
    for line in rows(found.lines):
        assert 0 <= line.host_self <= line.host_own
        assert line.idle >= 0
    if len(tables["op_kernels"]):
        assert sum(tables["op_kernels"].column("device_time_ns")) <= found.device_time
