"""A small Ascend profile in text form, event by event, in the spelling of any era; answers computed on paper."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.readers.kineto import read_text, read_trace
from traceanalyze.readers.sources import expand

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.model.trace import Trace

START = 1_736_408_883_686_740_710
"""Instant 0 of the builder's times, ns: more than a float64 holds exactly."""
PID, QUEUE_THREAD = 3_096_504, 3_099_702
NONE = (1 << 32) - 1
KERNEL_HEADER = (
    "Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,"
    "aicore_time(us),aic_total_cycles,aic_mac_time(us),aiv_time(us),aiv_vec_time(us),cube_utilization(%)"
)


def us(ns: int) -> str:
    """An absolute time as the profiler writes it: decimal microseconds in a string."""
    return f"{ns // 1000}.{ns % 1000:03}"


@dataclass(frozen=True)
class Era:
    """How a version spells what the spellings differ in."""

    communication: str = "HCCL"
    calls: str = "Hccl"
    stream: str = "Physic Stream Id"
    label: str = "NPU"
    group: str = "Group 0 Communication"
    named_cann: bool = True
    size: str = "size(Byte)"


EIGHT = Era()
NEW = Era("Communication", "Communication", "Physic Stream Id", "NPU 3", "Group group_name_7 Communication")
OLD = Era(stream="Stream Id")


class AscendBuilder:
    """Collects the events of one rank; times in µs after `START`."""

    def __init__(self, era: Era = EIGHT, *, device: int = 0, level: str = "Level1") -> None:
        self.era, self.device, self.level = era, device, level
        self.events: list[dict[str, Any]] = []
        self.kernels: list[dict[str, str]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.number = 100
        base = PID << 10
        self.cann, self.npu, self.hccl, self.overlap = (base + (order << 5) + 31 for order in (7, 13, 15, 23))
        self._process(PID, "Python", "CPU")
        if era.named_cann:
            self._process(self.cann, "CANN", "CPU")
        else:
            self._metadata("process_labels", self.cann, 0, labels="CPU")
        for pid, name in (
            (self.npu, "Ascend Hardware"),
            (self.hccl, era.communication),
            (self.overlap, "Overlap Analysis"),
        ):
            self._process(pid, name, era.label)
        self._metadata("thread_name", self.hccl, 0, name=era.group)
        for plane in range(3):
            self._metadata("thread_name", self.hccl, plane + 1, name=f"Plane {plane}")

    def _process(self, pid: int, name: str, label: str) -> None:
        self._metadata("process_name", pid, 0, name=name)
        self._metadata("process_labels", pid, 0, labels=label)

    def _metadata(self, what: str, pid: int, tid: int, **args: str) -> None:
        self.events.append({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args})

    def event(self, name: str, pid: int, tid: int, at: float, dur: float, cat: str = "", **args: Any) -> None:
        event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": self.time(at), "dur": dur, "args": args}
        self.events.append(event | ({"cat": cat} if cat else {}))

    def time(self, at: float) -> str:
        return us(START + round(at * 1000))

    def flow(self, cat: str, number: int | str, begin: tuple[int, int, float], end: tuple[int, int, float]) -> None:
        for phase, (pid, tid, at) in (("s", begin), ("f", end)):
            self.events.append(
                {
                    "ph": phase,
                    "bp": "e",
                    "name": cat,
                    "cat": cat,
                    "id": number,
                    "pid": pid,
                    "tid": tid,
                    "ts": self.time(at),
                }
            )

    def op(self, name: str, at: float, dur: float, *, tid: int = PID, sequence: int = -1, **args: Any) -> None:
        self.event(name, PID, tid, at, dur, "cpu_op", **{"Sequence number": sequence, "Fwd thread id": 0, **args})

    def step(self, number: int, at: float, dur: float) -> None:
        self.op(f"ProfilerStep#{number}", at, dur)

    def call(self, name: str, at: float, dur: float, *, tid: int = PID, connection: int | None = None) -> None:
        args = {} if connection is None else {"connection_id": connection}
        self.event(name, self.cann, tid, at, dur, **{"Thread Id": tid, "Mode": "launch", **args})

    def task(self, name: str, at: float, dur: float, kind: str, *, stream: int = 2, **args: Any) -> None:
        self.number += 1
        more = {"Task Type": kind, self.era.stream: stream, "Task Id": self.number, "Batch Id": 0}
        self.event(name, self.npu, stream, at, dur, **{"Model Id": NONE, **more, **args})

    def queued(self, name: str, enqueue: float, dequeue: float, dur: float) -> int:
        """An entry of the task queue; the number of the launch inside it."""
        self.number += 1
        number = self.number
        self.event("Enqueue", PID, PID, enqueue, 2, "enqueue", correlation_id=number)
        self.event(f"Dequeue@{name}", PID, QUEUE_THREAD, dequeue, dur, "dequeue", correlation_id=number)
        return number

    def kernel(
        self,
        name: str,
        at: float,
        dur: float,
        *,
        op_type: str,
        core: str = "AI_CORE",
        launch: float | None = None,
        **row: Any,
    ) -> None:
        """A compute task, its row in the kernel table, and its launch by the queue's thread."""
        self.number += 1
        connection = self.number
        if launch is not None and self.era.named_cann:
            self.call("Node@launch", launch, 1, tid=QUEUE_THREAD, connection=connection)
        if launch is not None:
            begin = (self.cann, QUEUE_THREAD, launch + 0.5)
            self.flow("HostToDevice", str((2 << 64) | connection), begin, (self.npu, 2, at))
        args = {"connection_id": connection} if self.era.named_cann else {}
        self.task(name, at, dur, "AI_CORE" if core == "AI_VECTOR_CORE" else core, **args)
        listed = {
            "Step Id": "1",
            "Task ID": str(self.number),
            "Stream ID": "2",
            "Name": name,
            "Type": op_type,
            "Accelerator Core": core,
            "Start Time(us)": f"{self.time(at)}\t",
            "Duration(us)": str(dur),
            "Block Dim": "16",
            "Input Shapes": '"32,64;64,8"',
            "Input Data Types": "DT_BF16;FLOAT",
            "aic_mac_time(us)": str(dur / 2) if core in {"AI_CORE", "MIX_AIC"} else "0.0",
            "cube_utilization(%)": "50.0" if core == "AI_CORE" else "0.0",
        }
        self.kernels.append(listed | row)

    def collective(
        self,
        name: str,
        at: float,
        dur: float,
        parts: Sequence[tuple[int, str, float, float, int]] = (),
        *,
        own: int = 0,
        **args: Any,
    ) -> None:
        """A collective of rank `own` of its group; of each part: plane, name, start, duration, peer.

        Parts also run on a hardware stream.
        """
        described = {"data_type": "FP32", "alg_type": "MESH", "count": 1000, "connection_id": self.number + 1, **args}
        self.number += 1
        self.event(name, self.hccl, 0, at, dur, **described)
        for plane, part, begin, length, peer in parts:
            kind = {"Notify_Wait": "Notify Wait", "Notify_Record": "Write Value"}.get(part, "SDMA")
            more = {"src rank": own, "dst rank": peer, "size(Byte)": 64, "transport type": "SDMA", "link type": "HCCS"}
            self.event(part, self.hccl, plane + 1, begin, length, **{"task type": part, "stream id": 4, **more})
            self.task(kind, begin, length, kind, stream=4)

    def text(self) -> str:
        return json.dumps(self.events, separators=(", ", ": "))

    def trace(self) -> Trace:
        return read_text(self.text().encode())

    def write(
        self,
        folder: Path,
        *,
        rank: int | str | None = 0,
        text: str | None = None,
        header: str = KERNEL_HEADER,
        **config: Any,
    ) -> Path:
        """The folder of a rank as torch_npu makes it; `text` is written in place of the timeline."""
        output = folder / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output / "trace_view.json").write_text(self.text() if text is None else text)
        if self.kernels:
            self.table(output / "kernel_details.csv", header, self.kernels)
        for name, rows in self.tables.items():
            with (output / name).open("w", newline="") as file:
                csv.writer(file).writerows(rows)
        if rank is not None:
            common = {"record_shapes": True, "with_stack": False}
            info = {
                "config": {"common_config": common, "experimental_config": {"_profiler_level": self.level}},
                "rank_id": rank,
            }
            (folder / f"profiler_info_{rank}.json").write_text(json.dumps(info | config))
        return folder

    @staticmethod
    def table(path: Path, header: str, rows: Sequence[dict[str, str]]) -> None:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, header.split(","), restval="N/A", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)


def load(path: Path) -> Trace:
    (source,) = expand([str(path)]).sources
    return read_trace(source)


def analyze(path: Path) -> RankAnalysis:
    return analyze_trace(load(path))


def texts(trace: Trace, field: str) -> list[str]:
    """Values of a text field, in the order of events."""
    return [trace.strings.text(code) for code in trace.events.fields[field].value.tolist()]


def of_category(trace: Trace, cat: str) -> list[str]:
    """Names of the events of one category."""
    pairs = zip(trace.events.cat.tolist(), trace.events.name.tolist(), strict=True)
    return [trace.strings.text(name) for code, name in pairs if trace.strings.text(code) == cat]
