"""The program of an NPU: operators go through a task queue, and a second thread launches them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.simulate.host import Host
from tests.simulate.model import Kernel
from tests.simulate.npu_kernels import COLLECTIVES, GROUP_HASH, HCCL_APIS, described
from tests.simulate.schedule import DEQUEUE, SIDE, Call, Control, OpCall, Work
from tests.simulate.streams import COMPUTE, on_grid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.workload import Workload

_NAMES = {
    "cudaDeviceSynchronize": "AscendCL@aclrtSynchronizeDevice",
    "cudaStreamSynchronize": "AscendCL@aclrtSynchronizeStreamWithTimeout",
    "cudaMalloc": "AscendCL@aclrtMallocAlign32",
    "cudaFree": "AscendCL@aclrtFree",
}
_COPY = "MEMCPY_ASYNC"


class NpuHost(Host):
    """As `Host`, in the calls of an NPU. A thread beside the loop (SIDE) always launches by itself."""

    def __init__(self, workload: Workload, rank: int) -> None:
        super().__init__(workload, rank)
        self._dequeued = 0
        """When the second thread is done with all that was put into the queue."""
        self._layout_changes = 0

    @property
    def _queues(self) -> bool:
        return self.workload.queue.on and self.thread != SIDE

    @contextmanager
    def _submitted(self, task: str) -> Iterator[None]:
        """Put a task into the queue; what follows is the second thread's, at its own time."""
        queue, tick = self.workload.queue, self.workload.tick
        if not self._queues:
            yield
            return
        enqueue = self._begin_call("Enqueue", "launch")
        self._return(enqueue, queue.enqueue, 0)
        before, ops, thread = self.now, self._ops, self.thread
        self.thread, self._ops = DEQUEUE, []
        self.now = max(before + on_grid(queue.hand_over, tick), self._dequeued + tick)
        dequeue = self._begin_call(f"Dequeue@{task}", "launch")
        dequeue.queued = enqueue
        self.work(queue.dequeue, "dequeue")
        yield
        self.work(queue.dequeue // 2, "dequeue")
        self._end_call(dequeue)
        self._dequeued = self.now
        self.thread, self._ops, self.now = thread, ops, before

    @contextmanager
    def _calling(self, name: str, klass: str) -> Iterator[Call]:
        call = self._begin_call(name, klass)
        self.work(self.workload.queue.call, "acl", name)
        yield call
        self.spend(self.workload.tick)
        self._end_call(call)

    def launch(self, kernel: Kernel, key: str, stream: int = COMPUTE) -> Work:
        """Launch a kernel, and the change of layout before it if the device needs one."""
        device, host = self.workload.device, self.workload.host
        api, product = described(kernel.name).api, kernel.kind == "matmul"
        extra = device.scalar_extra if described(kernel.name).core == "AI_CPU" else 0
        duration = self._duration(kernel, key) + (device.matmul_extra if product else extra)
        parts = [(kernel, duration)]
        if product and device.layout_change:
            name = f"trans_TransData_{self._layout_changes}"
            self._layout_changes += 1
            parts.insert(0, (Kernel("layout", name, 0, kernel.bytes, kernel.blocks), device.layout_change))
        outer = api if api.startswith("aclnn") else "aclopCompileAndExecute"
        with self.op(api, bare=True) as op:
            if kernel.kind.startswith("attention"):
                super().call(f"AscendCL@{api}GetWorkspaceSize", "other", host.other)
            with self._submitted(api), self._calling(f"AscendCL@{outer}", "launch"):
                for part, time in parts:
                    call = self._begin_call("Node@launch", "launch")
                    work = self._begin_kernel(part, call, op, stream, time)
                    self._return(call, host.launch, self.streams.room_at(stream))
        return work

    def copy(self, direction: str, size: int, *, pageable: bool) -> Work:
        """A copy to the device; the call never waits for it."""
        device, tick = self.workload.device, self.workload.tick
        rate = device.pageable if pageable else device.pcie
        name = "acl_memcpy_host_to_device"
        with self.op(name, bare=True) as op, self._submitted(name):
            call = self._begin_call("AscendCL@aclrtMemcpyAsync", "copy")
            start = self.streams.begin(COMPUTE, call.start)
            end = self.streams.run(COMPUTE, start, on_grid(max(1_200, round(size / rate * 1e9)), tick))
            work = Work("memcpy", direction, _COPY, COMPUTE, start, end, call, op, self.phase, bytes=size)
            call.own_copy = work
            self._linked(work)
            self._return(call, self.workload.host.copy // 2, 0)
        return work

    def read_back(self, size: int) -> None:
        """Wait for the stream, then copy without the queue and wait for the copy."""
        self.synchronize("cudaStreamSynchronize", self.streams.busy_until[COMPUTE])
        tick = self.workload.tick
        call = self._begin_call("AscendCL@aclrtMemcpy", "sync")
        start = self.streams.begin(COMPUTE, call.start)
        end = self.streams.run(COMPUTE, start, on_grid(1_200, tick))
        work = Work("memcpy", "DtoH", _COPY, COMPUTE, start, end, call, call.op, self.phase, bytes=size)
        call.own_copy = work
        self._linked(work)
        self.until(end + on_grid(self.workload.host.wake, tick))
        self._end_call(call)

    def memset(self, fill: Kernel, key: str) -> None:
        """An NPU fills memory with a kernel."""
        self.launch(fill, key)

    def call(self, name: str, klass: str, cost: int, until: int = 0, begin: int = 0) -> Call:
        """A call that launches nothing; before one that waits, the queue must be empty."""
        if until or begin:
            self.until(self._queue_empty())
        return super().call(_NAMES.get(name, name), klass, cost, until, begin)

    def _queue_empty(self) -> int:
        return max(self.now, self._dequeued)

    def make_wait(self, stream: int, other: int) -> None:
        """Record an event on one stream, let another wait for it."""
        calls = []
        for task, api in (("record_event", "aclrtRecordEvent"), ("wait_event", "aclrtStreamWaitEvent")):
            with self.op(task, bare=True), self._submitted(task):
                calls.append(super().call(f"AscendCL@{api}", "other", self.workload.host.other))
        record, wait = calls
        wait.stream, wait.waits_for = stream, other
        done = self.streams.busy_until.get(other, 0)
        at = self.streams.begin(other, record.start)
        self.schedule.controls.append(Control("EVENT_RECORD", other, at, at + 20, record))
        at = self.streams.begin(stream, wait.start)
        self.schedule.controls.append(Control("EVENT_WAIT", stream, at, max(at + 20, done), wait))
        self.streams.wait(stream, other)

    def begin_collective(self, kind: str) -> tuple[Call, OpCall]:
        """Launch a collective; it returns before anybody knows when the collective ends."""
        host, api = self.workload.host, HCCL_APIS[kind]
        calling = self._calling(f"AscendCL@{COLLECTIVES[kind]}", "launch")
        with self.op(api, bare=True) as op, self._submitted(api), calling:
            call = self._begin_call("Node@launch", "launch")
            super().call("Hccl@Launch_Ffts", "launch", host.launch)
            self._return(call, host.launch, 0)
        return call, op

    def collective_name(self, name: str, index: int) -> str:
        """Numbered within the group, whose digits are part of the name."""
        return f"{name}_{GROUP_HASH % 1000}_{index}_1"
