"""Hand-made analyses with round numbers, as builders and renderers are given them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.declared import said
from traceanalyze.analyses.idle.gap_table import GAPS
from traceanalyze.analyses.idle.host_state import HostSplit
from traceanalyze.analyses.idle.idle import IdleCauses, idle_tables
from traceanalyze.analyses.idle.launches import LAUNCHES, RUNTIME_CALLS
from traceanalyze.analyses.idle.syncs import SYNC_POINTS
from traceanalyze.analyses.kernels.kernels import CLASSIFICATION
from traceanalyze.analyses.results import Check, RankAnalysis
from traceanalyze.analyses.steps.critical_path import PathKind, PathSegments, path_tables
from traceanalyze.analyses.steps.partition import Partition
from traceanalyze.analyses.steps.split import (
    DEVICE_SPANS,
    device_parts,
    devices,
    host_parts,
    overlap_notes,
    split,
    step_tables,
    totals,
)
from traceanalyze.analyses.steps.window import Steps, step_labels, window_of
from traceanalyze.model.columns import Strings
from traceanalyze.model.table import NotMeasured, Table
from traceanalyze.model.trace import Device, Events, Flows, Instants, Origin, ReadReport, Trace
from traceanalyze.model.vocabulary import Cause, Level, Mode

MS = 1_000_000
LONG_KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)"
)


def ints(*values):
    return np.array(values, np.int64)


def trace(*, rank=None, path="sample.pt.trace.json", resolution_ns=1):
    nothing = np.empty(0, np.int64)
    codes = np.empty(0, np.int32)
    return Trace(
        origin=Origin(path, size_bytes=12_345_678, text_bytes=98_765_432, rank=rank, rank_source="distributedInfo"),
        read=ReadReport({}, {"X": 25_402}),
        strings=Strings(np.empty(0, np.uint8), ints(0, 0)),
        tracks=np.empty((0, 2), np.int32),
        events=Events(nothing, nothing, codes, codes, codes, {}),
        instants=Instants(nothing, codes, codes, codes, {}),
        flows=Flows(nothing, codes, codes, nothing, np.empty(0, np.uint8)),
        resolution_ns=resolution_ns,
        devices=(Device(0, "Tesla V100-DGXS-32GB"),),
        options={"record_shapes": True, "with_stack": False},
    )


def steps_of(*times_ms, complete=None, names=None):
    length = ints(*(round(t * MS) for t in times_ms))
    end = np.cumsum(length)
    count = len(length)
    return Steps(
        name=tuple(names or (f"ProfilerStep#{n}" for n in range(5, 5 + count))),
        start=end - length,
        end=end,
        host_start=end - length,
        host_end=end,
        owned=np.full(count, 1500),
        complete=np.array(complete if complete is not None else [True] * count),
        between_steps=0,
        lead_in=0,
    )


def partition_of(steps, *, compute, comm=0.0, mem=0.0, device=0, hidden=0.0):
    """Parts as fractions of each step; idle is the rest, `hidden` is communication under compute."""
    time = steps.end - steps.start
    c, n, m, h = ((time * part).astype(np.int64) for part in (compute, comm, mem, hidden))
    busy = c + n + m
    return Partition(device, c, n, m, time - busy, n + h, m, busy, c, n + h, m)


def causes_of(idle, **shares):
    """Idle split by fractions; the rest of it is untraced."""
    by_step = np.zeros((len(idle), len(Cause)), np.int64)
    for name, share in shares.items():
        by_step[:, Cause[name.upper()]] = (idle * share).astype(np.int64)
    by_step[:, Cause.UNTRACED] += idle - by_step.sum(axis=1)
    return IdleCauses(by_step)


def path_of(steps, *, compute=0.6):
    """A part of each step on the device, the rest in one operator."""
    time = steps.end - steps.start
    by_step = np.zeros((len(steps), len(PathKind)), np.int64)
    by_step[:, PathKind.COMPUTE] = (time * compute).astype(np.int64)
    by_step[:, PathKind.HOST_OP] = time - by_step[:, PathKind.COMPUTE]
    kinds = (PathKind.HOST_OP, PathKind.COMPUTE)
    turn = steps.end - by_step[:, PathKind.COMPUTE]
    strings = Strings(np.frombuffer(b"aten::conv2d", np.uint8), ints(0, len("aten::conv2d")))
    segments = PathSegments(
        step=np.repeat(np.arange(len(steps)), 2),
        start=np.stack((steps.start, turn), axis=1).ravel(),
        end=np.stack((turn, steps.end), axis=1).ravel(),
        kind=np.array(kinds * len(steps), np.uint8),
        name=np.array([0, -1] * len(steps), np.int32),
    )
    return path_tables(segments, steps, strings)


def analysis(
    *, times=(180.0, 175.0, 178.0), rank=None, compute=0.55, comm=0.0, mem=0.01, hidden=0.0, complete=None, causes=None
):
    """A training loop that waits for its data loader."""
    steps = steps_of(*times, complete=complete)
    part = partition_of(steps, compute=compute, comm=comm, mem=mem, hidden=hidden)
    idle = causes_of(
        part.idle, **(causes or {"data_loading": 0.75, "dispatch_launch": 0.04, "host_op": 0.14, "sync": 0.01})
    )
    one = RankAnalysis(
        trace=trace(rank=rank, path=f"rank{rank}.json" if rank is not None else "sample.pt.trace.json"),
        mode=Mode.STEPS,
        steps=steps,
        device=0,
        partitions=(part,),
        idle=idle,
        host=NotMeasured("no_host_events"),
        checks=(
            Check("Q05", Level.INFO, said("no_python")),
            Check("Q03", Level.WARN, said("unlinked"), (("count", 4), ("events", 9100), ("share", 0.0611))),
        ),
    )
    return with_tables(one, [*tables_of(steps, int((steps.time * compute).sum())), *path_of(steps)])


def with_tables(one, others):
    """The analysis with the tables of its parts, and these between them."""
    steps, window = one.steps, window_of(one.steps)
    if one.partitions:
        (first,) = one.partitions
        parts, (causes, step_causes) = device_parts(first, one.idle, {}), idle_tables(steps, one.idle)
        notes = overlap_notes(totals(first, window))
        before = [split(parts, window, marked=one.mode == Mode.STEPS, notes=notes), totals(first, window), causes]
        after = [devices(one.partitions, one.trace, window), *step_tables(steps, parts), step_causes]
    else:
        parts = host_parts(one.host)
        before, after = [split(parts, window, marked=False), *step_tables(steps, parts)], []
    known = {table.key for table in (*before, *after)}
    between = [table for table in others if table.key not in known]
    return one._replace(tables={table.key: table for table in (*before, *between, *after)})


def filled(table, **values):
    """The table with these values; columns that are not named have no value."""
    rows = len(next(iter(values.values())))
    return table.fill(**{key: [None] * rows for key in table.keys} | values)


def records(table, rows):
    """The same from rows."""
    return table.fill_records(dict.fromkeys(table.keys) | row for row in rows)


def tables_of(steps, compute):
    """Tables beside those of the parts."""
    labels = step_labels(steps.name) * 3
    lengths = [55 * MS - row for row in range(len(steps))] * 3
    gaps = [(label, length, LONG_KERNEL) for label, length in zip(labels, lengths, strict=True)]
    costs = {"blocked_ns": [4 * MS, 3 * MS], "idle_caused_ns": [2 * MS, NotMeasured("terminal_sync")]}
    span = int(steps.end[-1])
    return [
        filled(
            SYNC_POINTS,
            op=["aten::item", None],
            call=["cudaMemcpyAsync + cudaStreamSynchronize", "cudaDeviceSynchronize"],
            kind=["sync_explicit"] * 2,
            count=[3, 1],
            data_dependent=[True, False],
            frame=["train.py(41): step", None],
            **costs,
        ),
        gaps_of(gaps, one_step=len(steps) == 1),
        filled(
            LAUNCHES,
            linked=[9096],
            unlinked=[4],
            unlinked_ns=[10_000],
            late=[858],
            late_share=[858 / 9096],
            delay_p50_ns=[9_492_000],
            delay_p90_ns=[26_079_000],
            queue_depth_p50=[12.0],
            queue_depth_p90=[80.5],
            idle_queue_empty=[0.93],
            queue_full_ns=[0],
            negative_latency=[0],
        ),
        filled(
            RUNTIME_CALLS,
            call=["cudaLaunchKernel"],
            kind=["api_launch"],
            count=[8784],
            sum_ns=[61 * MS],
            mean_call_ns=[61 * MS // 8784],
        ),
        filled(
            DEVICE_SPANS,
            device=[0],
            span_ns=[span],
            compute_ns=[compute],
            communication_ns=[0],
            communication_total_ns=[0],
            memory_ops_ns=[0],
            idle_ns=[span - compute],
            compute_kernels=[8772],
            communication_kernels=[0],
            copies=[12],
            fills=[312],
            start_ns=[0],
        ),
        records(
            CLASSIFICATION,
            [
                {
                    "name": name,
                    "class": f"class_{klass}",
                    "rule": rule,
                    "count": count,
                    "device_time_ns": time * MS,
                    "share": time / 95,
                }
                for name, klass, rule, count, time in (
                    (LONG_KERNEL, "compute", "kernel", 600, 90),
                    ("Memcpy HtoD", "mem", "category", 12, 5),
                )
            ],
        ),
    ]


def table_of_rows(key, columns, rows, **more):
    """A table from rows by position."""
    table = Table(key, columns, **more)
    return table.fill_records(dict(zip(table.keys, row, strict=True)) for row in rows)


def with_table(one, table):
    """The analysis with this table in place of the one it had."""
    return one._replace(tables=one.tables | {table.key: table})


def gaps_of(gaps, *, one_step=False):
    """Table of idle intervals from their step, length and next event."""
    table = records(
        GAPS,
        [
            {
                "step": step,
                "at_ns": MS,
                "length_ns": length,
                "causes": (("data_loading", 50 * MS), ("host_op", 5 * MS)),
                "host_op": None,
                "trigger": "launched_late",
                "next_event": event,
                "next_op": "aten::conv2d",
                "frame": None,
            }
            for step, length, event in gaps
        ],
    )
    return replace(table, columns=(replace(table["step"], machine=one_step), *table.columns[1:]))


def whole_trace(**changes):
    steps = steps_of(996.477, names=("whole trace",))
    part = partition_of(steps, compute=0.95, mem=0.012)
    one = with_table(analysis(), gaps_of((), one_step=True))
    changed = one._replace(
        mode=Mode.WHOLE_TRACE,
        steps=steps,
        partitions=(part,),
        idle=causes_of(part.idle, host_op=0.5),
        **changes,
    )
    return with_tables(changed, one.tables.values())


def host_only(*times_ms):
    steps = steps_of(*times_ms)
    time = steps.end - steps.start
    zero = np.zeros(len(time), np.int64)
    one = analysis()._replace(
        mode=Mode.HOST_ONLY,
        device=None,
        steps=steps,
        partitions=(),
        idle=NotMeasured("no_device_events"),
        host=HostSplit(time // 4, zero, zero, zero, time // 2, time - time // 4 - time // 2),
        checks=(Check("Q05", Level.WARN, said("no_device_events")),),
    )
    return with_tables(one, [])


def empty():
    missing = NotMeasured("no_host_events")
    return host_only(0.0)._replace(mode=Mode.EMPTY, host=missing, tables={})


def in_workbook(book, name, summary="Summary"):
    """Sheet of a table, and the number of its header's row, where the link on the first sheet leads."""
    (link,) = (row[0].hyperlink for row in book[summary].iter_rows() if row[0].value == name and row[0].hyperlink)
    sheet, _, cell = link.location.rpartition("!")
    at = int(cell[1:])
    return book[sheet.strip("'")], at + 1 if at > 1 else 4
