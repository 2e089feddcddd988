"""Schedules as the text of the profiler's trace files: today's layout, and that of 2020 and 2021."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.make_samples.schedule import BACKWARD, MAIN, PID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.make_samples.schedule import Program, Span

BASE = 1_767_225_600_000_000_000
"""The recordings begin at midnight on 1 January 2026 (UTC)."""
_MODERN = {
    "op": "cpu_op",
    "annotation": "user_annotation",
    "python": "python_function",
    "api": "cuda_runtime",
    "kernel": "kernel",
    "comm": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
}
_OLD = {
    "op": "Operator",
    "annotation": "Operator",
    "api": "Runtime",
    "kernel": "Kernel",
    "comm": "Kernel",
    "memcpy": "Memcpy",
    "memset": "Memset",
}
_DEVICE = {"kernel", "comm", "memcpy", "memset"}


def modern(program: Program) -> str:
    """Relative times in µs with three decimals, `ac2g` arrows, header before the events."""
    device = {"id": 0, "name": "Example GPU", "totalGlobalMem": 85899345920, "numSms": 108}
    header: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [{**device, "computeMajor": 8, "computeMinor": 0, "warpSize": 32}],
        "cuda_runtime_version": 12060,
        "cuda_driver_version": 12060,
        "record_shapes": 1,
        "with_stack": int(program.with_python),
        "trace_id": f"{program.rank:032X}",
    }
    if program.world > 1:
        ranks = list(range(program.world))
        group = {"pg_name": "0", "pg_desc": "default_pg", "ranks": ranks, "pg_size": program.world}
        header["distributedInfo"] = {
            "backend": "nccl",
            "rank": program.rank,
            "world_size": program.world,
            "pg_count": 1,
            "pg_config": [group],
        }
    header |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": BASE}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in header.items()]
    events = ",\n".join((*_modern_events(program), *_names(program)))
    return "{\n" + ",\n".join(lines) + ',\n  "traceEvents": [\n' + events + "\n  ]\n}\n"


def _modern_events(program: Program) -> Iterator[str]:
    for span in _sorted(program):
        args = dict(span.args)
        on_device = span.kind in _DEVICE
        if on_device:
            args |= {"device": 0, "context": 1, "stream": span.thread, "correlation": span.correlation}
        elif span.kind == "api":
            args |= {"cbid": 211, "correlation": span.correlation}
        pid = 0 if on_device else PID
        place = f'"pid": {pid}, "tid": {span.thread},\n    "ts": {_decimal(span.start)}'
        yield (
            f'  {{\n    "ph": "X", "cat": "{_MODERN[span.kind]}", "name": {json.dumps(span.name)}, {place}, '
            f'"dur": {_decimal(span.end - span.start)},\n    "args": {{\n      {json.dumps(args)[1:-1]}\n    }}\n  }}'
        )
        if on_device or span.kind == "api":
            letter, end = ("f", ', "bp": "e"') if on_device else ("s", "")
            yield (
                f'  {{\n    "ph": "{letter}", "id": {span.correlation}, {place},\n'
                f'    "cat": "ac2g", "name": "ac2g"{end}\n  }}'
            )


def _names(program: Program) -> Iterator[str]:
    named = [("process_name", PID, 0, {"name": "python"}), ("process_name", 0, 0, {"name": "python"})]
    named += [("process_labels", PID, 0, {"labels": "CPU"}), ("process_labels", 0, 0, {"labels": "GPU 0"})]
    named += [("thread_name", PID, tid, {"name": f"thread {tid} (python)"}) for tid in (MAIN, BACKWARD)]
    streams = sorted({span.thread for span in program.spans if span.kind in _DEVICE})
    named += [("thread_name", 0, tid, {"name": f"stream {tid}"}) for tid in streams]
    for name, pid, tid, args in named:
        yield (
            f'  {{\n    "name": "{name}", "ph": "M", "ts": 0.000, "pid": {pid}, "tid": {tid},\n'
            f'    "args": {json.dumps(args)}\n  }}'
        )


def old(program: Program) -> str:
    """Absolute whole µs, capitalised categories, tids such as "stream 7", fields after the events."""
    events = ",".join(_old_events(program))
    return (
        '\n{\n  "schemaVersion": 1,\n  "traceEvents": [\n  ' + events + '],\n  "deviceProperties": '
        '[{"id": 0, "name": "Example GPU", "totalGlobalMem": 17179869184, "computeMajor": 7, "computeMinor": 0}],\n'
        '  "traceName": "trace.json"\n}\n'
    )


def _old_events(program: Program) -> Iterator[str]:
    for span in _sorted(program):
        if span.kind == "python":
            continue
        on_device = span.kind in _DEVICE
        args: dict[str, Any] = {"external id": span.args.get("External id", 0)}
        pid, tid = (0, f'"stream {span.thread}"') if on_device else (PID, f'"{span.thread}"')
        if on_device:
            args |= {"device": 0, "context": 1, "stream": span.thread, "correlation": span.correlation}
        elif span.kind == "api":
            args |= {"cbid": 211, "correlation": span.correlation}
        start = f'"ts": {(BASE + span.start) // 1000}'
        yield (
            f'{{\n    "ph": "X", "cat": "{_OLD[span.kind]}", \n    "name": {json.dumps(span.name)}, "pid": {pid}, '
            f'"tid": {tid},\n    {start}, "dur": {(span.end - span.start) // 1000},\n'
            f'    "args": {{\n      {json.dumps(args)[1:-1]}\n    }}\n  }}'
        )
        if on_device or span.kind == "api":
            letter, end = ("f", ', "bp": "e"') if on_device else ("s", "")
            yield (
                f'{{\n    "ph": "{letter}", "id": {span.correlation}, "pid": {pid}, "tid": {tid}, {start},\n'
                f'    "cat": "async", "name": "launch"{end}\n  }}'
            )


def _sorted(program: Program) -> list[Span]:
    """Host first, then the device; as the profiler writes them, each by start."""
    return sorted(program.spans, key=lambda span: (span.kind in _DEVICE, span.start, -span.end))


def _decimal(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"
