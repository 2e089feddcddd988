"""A few lines of hand-made trace: events in µs, launches joined to their device events, answers computed on paper."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from traceanalyze.analyses.analyze import analyze_trace

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.analyses.options import Options
    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.model.table import Table
    from traceanalyze.model.trace import Trace

HOST = 100
"""Process id of the host threads."""


class TraceBuilder:
    """Collects Chrome events in the layout of today's Kineto."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.header: dict[str, Any] = {}
        """Further members of the file's root."""
        self._correlation = 0

    def event(self, cat: str, name: str, at: float, dur: float, *, pid: Any = HOST, tid: Any = 1, **args: Any) -> None:
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": at, "dur": dur, "args": args}
        )

    def step(self, number: int, at: float, dur: float, *, tid: int = 1) -> None:
        self.event("user_annotation", f"ProfilerStep#{number}", at, dur, tid=tid)

    def op(self, name: str, at: float, dur: float, *, tid: int = 1, **args: Any) -> None:
        self.event("cpu_op", name, at, dur, tid=tid, **args)

    def annotation(self, name: str, at: float, dur: float, *, tid: int = 1) -> None:
        self.event("user_annotation", name, at, dur, tid=tid)

    def python(self, name: str, at: float, dur: float, *, tid: int = 1) -> None:
        self.event("python_function", name, at, dur, tid=tid)

    def api(self, name: str, at: float, dur: float, *, tid: int = 1, correlation: int | None = None) -> None:
        self.event("cuda_runtime", name, at, dur, tid=tid, correlation=correlation or self._next())

    def device(
        self,
        at: float,
        dur: float,
        *,
        name: str = "kernel",
        cat: str = "kernel",
        stream: int = 7,
        device: int = 0,
        correlation: int | None = None,
        **args: Any,
    ) -> None:
        """A device event of its own; without `correlation` nothing launched it."""
        more = {"correlation": correlation} if correlation is not None else {}
        self.event(cat, name, at, dur, pid=device, tid=stream, device=device, stream=stream, **more, **args)

    def launch(
        self,
        at: float,
        dur: float,
        device_at: float,
        device_dur: float,
        *,
        api: str = "cudaLaunchKernel",
        tid: int = 1,
        **device: Any,
    ) -> None:
        """A runtime call and the device event it launched."""
        correlation = self._next()
        self.api(api, at, dur, tid=tid, correlation=correlation)
        self.device(device_at, device_dur, correlation=correlation, **device)

    def memory(self, at: float, size: int, *, kind: int = 1, device: int = 0, **totals: int) -> None:
        """A record of the caching allocator; totals are `allocated` and `reserved`."""
        names = {"allocated": "Total Allocated", "reserved": "Total Reserved"}
        args = {"Bytes": size, "Device Type": kind, "Device Id": device} | {names[k]: v for k, v in totals.items()}
        self.events.append(
            {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": HOST, "tid": 1, "ts": at, "args": args}
        )

    def copy(self, at: float, dur: float, device_at: float, device_dur: float, **more: Any) -> None:
        """An asynchronous copy and its transfer."""
        defaults = {"api": "cudaMemcpyAsync", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)"}
        self.launch(at, dur, device_at, device_dur, **(defaults | more))

    def _next(self) -> int:
        self._correlation += 1
        return self._correlation

    def text(self) -> str:
        return json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, **self.header, "traceEvents": self.events})

    def write(self, path: Path) -> Path:
        path.write_text(self.text())
        return path

    def trace(self) -> Trace:
        from traceanalyze.readers.kineto import read_text

        return read_text(self.text().encode())

    def table(self, key: str, options: Options | None = None) -> Table:
        """One table of what this version makes of it."""
        return self.analyze(options).tables[key]

    def rows(self, key: str, options: Options | None = None) -> list[Any]:
        """Rows of a table that has some."""
        table = self.table(key, options)
        assert table.absent is None
        return list(table.records())

    def analyze(self, options: Options | None = None) -> RankAnalysis:
        return analyze_trace(self.trace(), options)
