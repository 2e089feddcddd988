"""The `args` of each event: ids, shapes, stacks, launch configuration, collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulate.model import Tensor

if TYPE_CHECKING:
    from tests.simulate.model import Argument
    from tests.simulate.schedule import Call, Collective, Memory, OpCall, Schedule, Work
    from tests.simulate.writers.layouts import Layout

_CALL_IDS = {"cudaLaunchKernel": 211, "cudaMemcpyAsync": 41, "cudaMemsetAsync": 51, "cudaStreamSynchronize": 131}
_COLLECTIVES = {"all_reduce": "allreduce", "reduce_scatter": "_reduce_scatter_base", "all_gather": "_allgather_base"}
_DTYPES = {"c10::BFloat16": "BFloat16", "float": "Float"}
_LOST = 9_000_000
"""Correlations of work without launch record begin here."""


class Arguments:
    """Ids are given out in the order in which things began."""

    def __init__(self, schedule: Schedule, layout: Layout) -> None:
        self._layout = layout
        self._stacks = schedule.workload.recording.stacks
        self._units = schedule.workload.device.units
        self._world = layout.world or schedule.workload.ranks.count
        self._nodes: dict[int, int] = {}
        self._op_ids = {id(op): number for number, op in enumerate(schedule.ops, start=1)}
        self._call_ids = {id(call): number for number, call in enumerate(schedule.calls, start=5_000)}
        self._work_ids = {id(work): number for number, work in enumerate(schedule.works, start=_LOST)}
        self._launches = {id(work.call): work.family for work in schedule.recorded}

    def correlation(self, work: Work) -> int:
        """Id that a work shares with its launch; its own where that was lost."""
        return self._call_ids[id(work.call)] if work.linked else self._work_ids[id(work)]

    def launched_by(self, call: Call) -> int | None:
        """Correlation of a call whose work is recorded, None for other calls."""
        return self._call_ids[id(call)] if id(call) in self._launches else None

    def family_launched_by(self, call: Call) -> str | None:
        """Family of the kernel that a call launches, as far as that is recorded."""
        return self._launches.get(id(call))

    def of_op(self, op: OpCall) -> dict[str, Any]:
        """Shapes, sequence number, and in old layouts the call stack."""
        args: dict[str, Any] = {"External id": self._op_ids[id(op)]}
        if op.inputs:
            args["Input Dims"] = [list(each.dims) if isinstance(each, Tensor) else [] for each in op.inputs]
            args["Input type"] = [_type(each) for each in op.inputs]
            if self._layout.relative:
                args["Concrete Inputs"] = [each if isinstance(each, str) else "" for each in op.inputs]
        if op.sequence is not None:
            args |= {"Sequence number": op.sequence, "Fwd thread id": int(op.thread == "autograd")}
        if self._stacks and not self._layout.python:
            args["Call stack"] = ";".join(op.frames)
        if op.collective is not None and self._layout.collective_args:
            args |= self._collective(op.collective)
        return args

    def of_call(self, call: Call) -> dict[str, Any]:
        """Ids of a runtime call."""
        number = self._call_ids[id(call)]
        return {**self._external(call.op, number), "cbid": _CALL_IDS.get(call.name, 0), "correlation": number}

    def of_work(self, work: Work) -> dict[str, Any]:
        """Place, ids, and launch configuration or bytes."""
        number = self.correlation(work)
        args: dict[str, Any] = self._external(work.op, number) if work.linked else {}
        args |= {"device": self._layout.device, "context": 1, "stream": self._layout.streams[work.stream]}
        args["correlation"] = number
        if work.kind in {"memcpy", "memset"}:
            rate = work.bytes / (work.end - work.start) if work.end > work.start else 0
            return args | {"bytes": work.bytes, "memory bandwidth (GB/s)": rate}
        blocks = round(work.blocks / self._units, 6)
        args |= {"registers per thread": 64, "shared memory": 0, "blocks per SM": blocks}
        args |= {"warps per SM": round(blocks * work.threads / 32, 6), "grid": [work.blocks, 1, 1]}
        args |= {"block": [work.threads, 1, 1], "est. achieved occupancy %": min(100, round(blocks * 6))}
        if self._layout.nodes and work.call is not None and work.call.name == "cudaGraphLaunch":
            node = self._nodes[number] = self._nodes.get(number, 0) + 1
            args |= {"graph id": 1, "graph node id": node, "module_fqn": f"model.{work.phase}.{work.family}"}
        if work.collective is not None and self._layout.collective_args:
            args |= self._collective(work.collective)
        return args

    def of_wait(self, call: Call) -> dict[str, Any]:
        """A stream made to wait for an event of another."""
        streams = self._layout.streams
        return {
            "cuda_sync_kind": "Stream Wait Event",
            "stream": streams[call.stream or 0],
            "correlation": self._call_ids[id(call)],
            "wait_on_stream": streams[call.waits_for or 0],
            "wait_on_cuda_event_record_corr_id": self._call_ids[id(call)] - 1,
            "device": self._layout.device,
        }

    def of_memory(self, record: Memory) -> dict[str, Any]:
        """An allocator record; old layouts know only the bytes."""
        args = {"Device Type": 1, "Device Id": self._layout.device, "Bytes": record.bytes}
        if not self._layout.relative:
            return args
        totals = {"Total Allocated": record.allocated, "Total Reserved": record.reserved}
        return {**totals, **args, "Addr": record.address}

    def _external(self, op: OpCall | None, correlation: int) -> dict[str, Any]:
        if self._layout.external_is_correlation:
            return {self._layout.external: correlation}
        return {self._layout.external: self._op_ids[id(op)]} if op is not None else {}

    def _collective(self, meant: Collective) -> dict[str, Any]:
        ranks = list(range(self._world))
        return {
            "Collective name": _COLLECTIVES[meant.type],
            "In msg nelems": meant.elements_in,
            "Out msg nelems": meant.elements_out,
            "Group size": self._world,
            "dtype": _DTYPES[meant.dtype],
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Process Group Ranks": f"[{', '.join(map(str, ranks[:29]))}, ..., {ranks[29]}, ...]"
            if len(ranks) > 30
            else str(ranks),
        }


def _type(given: Argument) -> str:
    if isinstance(given, Tensor):
        return given.dtype
    return "ScalarList" if given.startswith("[") else "Scalar" if given else ""
