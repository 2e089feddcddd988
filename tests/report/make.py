"""Hand-made analyses with round numbers, as builders and renderers are given them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traceanalyze.analyses.results import (
    Check,
    DeviceSpan,
    Gap,
    HostSplit,
    IdleCauses,
    KernelClass,
    LaunchClass,
    Launches,
    Partition,
    RankAnalysis,
    Steps,
    SyncSite,
)
from traceanalyze.analyses.steps.critical_path import PathKind, PathSegments, path_tables
from traceanalyze.model.columns import Strings
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Device, Events, Flows, Instants, Origin, ReadReport, Trace
from traceanalyze.model.vocabulary import Cause, Level, Mode, SyncKind

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
    gap_causes = ((Cause.DATA_LOADING, 50 * MS), (Cause.HOST_OP, 5 * MS))
    return RankAnalysis(
        trace=trace(rank=rank, path=f"rank{rank}.json" if rank is not None else "sample.pt.trace.json"),
        mode=Mode.STEPS,
        steps=steps,
        device=0,
        partitions=(part,),
        spans=(
            DeviceSpan(
                0, 0, int(steps.end[-1]), partition_of(steps_of(sum(times)), compute=compute), (8772, 0, 12, 312)
            ),
        ),
        idle=idle,
        gaps=tuple(
            Gap(
                int(steps.start[row]) + MS,
                55 * MS - row,
                row,
                gap_causes,
                LONG_KERNEL,
                "aten::conv2d",
                None,
                "launched late",
            )
            for row in range(len(steps))
        )
        * 3,
        gap_count=3 * len(steps),
        syncs=(
            SyncSite(
                "aten::item",
                "train.py(41): step",
                "cudaMemcpyAsync + cudaStreamSynchronize",
                SyncKind.EXPLICIT,
                3,
                4 * MS,
                2 * MS,
                True,
            ),
            SyncSite(None, None, "cudaDeviceSynchronize", SyncKind.EXPLICIT, 1, 3 * MS, None, False),
        ),
        launches=Launches(
            9096,
            4,
            10_000,
            858,
            0,
            9_492_000,
            26_079_000,
            12.0,
            80.5,
            0.93,
            0,
            (LaunchClass("cudaLaunchKernel", "launch", 8784, 61 * MS),),
        ),
        host=NotMeasured("no_host_events"),
        classification=(
            KernelClass(LONG_KERNEL, "compute", "kernel", 600, 90 * MS),
            KernelClass("Memcpy HtoD", "mem", "category", 12, 5 * MS),
        ),
        checks=(
            Check("Q05", Level.INFO, "no_python"),
            Check("Q03", Level.WARN, "unlinked", (("count", 4), ("events", 9100), ("share", 0.0611))),
        ),
        tables={table.key: table for table in path_of(steps)},
    )


def whole_trace(**changes):
    steps = steps_of(996.477, names=("whole trace",))
    part = partition_of(steps, compute=0.95, mem=0.012)
    return replace(
        analysis(),
        mode=Mode.WHOLE_TRACE,
        steps=steps,
        partitions=(part,),
        idle=causes_of(part.idle, host_op=0.5),
        gaps=(),
        gap_count=0,
        **changes,
    )


def host_only(*times_ms):
    steps = steps_of(*times_ms)
    time = steps.end - steps.start
    zero = np.zeros(len(time), np.int64)
    missing = NotMeasured("no_device_events")
    return replace(
        analysis(),
        mode=Mode.HOST_ONLY,
        tables={},
        device=None,
        steps=steps,
        partitions=(),
        spans=(),
        idle=missing,
        gaps=missing,
        gap_count=0,
        syncs=missing,
        launches=missing,
        host=HostSplit(time // 4, zero, zero, zero, time // 2, time - time // 4 - time // 2),
        classification=(),
        checks=(Check("Q05", Level.WARN, "no_device_events"),),
    )


def empty():
    missing = NotMeasured("no_host_events")
    return replace(host_only(0.0), mode=Mode.EMPTY, host=missing)
