"""One rank's training loop. It stops wherever it needs the other ranks, and is told when they were done."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulate.collective_tasks import collective_tasks
from tests.simulate.detours import (
    Collector,
    compile_model,
    copy_small_tensors,
    fill_the_cache_anew,
    finish_earlier_work,
    run_slow_operator,
)
from tests.simulate.graph import GraphHost, Node
from tests.simulate.loader import Workers
from tests.simulate.meeting import Meeting, Met
from tests.simulate.memory import Allocator
from tests.simulate.mistakes import fill_with_zeros, read_norm, search_unused, work_beside
from tests.simulate.model import Builder, Layer, Module, Op, Tensor, layers_of
from tests.simulate.npu_host import NpuHost
from tests.simulate.optimizer import OPTIMIZERS
from tests.simulate.running import run_inside, run_op
from tests.simulate.schedule import AUTOGRAD, Collective, Step, Work
from tests.simulate.streams import COMM, COMPUTE, on_grid

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from contextlib import AbstractContextManager

    from tests.simulate.model import Kernel
    from tests.simulate.schedule import OpCall
    from tests.simulate.workload import Workload


@dataclass(frozen=True, slots=True)
class _Ran:
    """A layer of the forward pass, for its backward node."""

    layer: Layer
    op: OpCall
    block: tuple[int, int]


class Training:
    """The program of one rank."""

    def __init__(self, workload: Workload, rank: int) -> None:
        self.workload = workload
        self.host = (NpuHost if workload.device.vendor == "ascend" else GraphHost)(workload, rank)
        self._builder = Builder(workload.model, workload.device.vendor)
        self._network, self._loss = self._builder.network(), self._builder.loss()
        self._layers = [*layers_of(self._network), *layers_of(self._loss)]
        self._parameters = [each for layer in self._layers for each in layer.parameters]
        self._workers = Workers(workload, rank)
        weights = sum(each.bytes for each in self._parameters)
        kept = sum(layer.keeps for layer in self._layers)
        self._memory = Allocator(self.host, 4 * weights, 4 * weights + kept + len(self._layers) * 4096)
        self._collectives = 0
        self._sequence = 100
        self._bucket: list[Tensor] = []
        self._first = True
        self._reduces = True
        self._nodes: list[Node] = []
        self._recording = False
        self._collector = Collector(self.host, 2 * len(self._layers))
        ranks = workload.ranks
        self._pause = workload.script.pause + (ranks.slow_pause if rank == ranks.slow_rank else 0)

    def run(self) -> Generator[Meeting, Met, None]:
        """All steps, then the profiler stops and waits for the device."""
        host, workload = self.host, self.workload
        for _ in range(workload.warmup):
            yield from self._step(0)
        host.until(host.streams.all_done)
        host.record()
        self._collectives = 0
        host.python()
        finish_earlier_work(host, self._builder, workload.recording.leftover)
        self._recording = True
        with self._frame("train.py(58): <module>"), self._frame("train.py(31): train"):
            for number in range(workload.first_step, workload.first_step + workload.steps):
                yield from self._step(number)
                host.spend(workload.tick)
        host.python()
        host.synchronize("cudaDeviceSynchronize", host.launched_done())

    def _step(self, number: int) -> Generator[Meeting, Met, None]:
        host, script = self.host, self.workload.script
        start = host.now
        with host.annotation(f"ProfilerStep#{number}"):
            if script.side_kernels:
                work_beside(host, self._builder, self._parameters, script.side_kernels)
            if script.barrier:
                yield from self._barrier()
            self._load()
            with self._frame("train.py(41): step"):
                self._to_device()
                copy_small_tensors(host, script.small_copies)
                yield from self._train(len(host.schedule.steps), recorded=self._recording)
                for _ in range(script.device_syncs):
                    with self._frame("torch/cuda/__init__.py(1040): synchronize"):
                        host.synchronize("cudaDeviceSynchronize", host.launched_done())
            if script.empty_cache:
                with self._frame("torch/cuda/memory.py(222): empty_cache"):
                    self._memory.empty()
        host.schedule.steps.append(Step(number, start, host.now))

    def _train(self, step: int, *, recorded: bool) -> Generator[Meeting, Met, None]:
        """From the batch to the new weights; `step` counts from 0."""
        host, script = self.host, self.workload.script
        compiling = script.compile_again if step % 2 else script.compile_once if recorded and step == 0 else 0
        if compiling:
            compile_model(host, compiling)
        self._collector.begin(step)
        fill_the_cache_anew(host, self._memory, script.churn)
        capturing = not self._nodes and script.graph == ("within" if recorded else "before")
        if capturing and isinstance(host, GraphHost):
            with host.capture(self._nodes):
                yield from self._iterate()
        if self._nodes and isinstance(host, GraphHost):
            host.replay(self._nodes)
            self._read_loss(script.items)
            host.spend(self._pause)
        else:
            yield from self._iterate()

    def _iterate(self) -> Generator[Meeting, Met, None]:
        host, script = self.host, self.workload.script
        self._zero_grad()
        for micro in range(script.micro_steps):
            self._reduces = micro == script.micro_steps - 1 or not script.no_sync
            ran = self._forward()
            yield from self._reduce_metric()
            if not script.graph:
                self._read_loss(script.items)
                host.spend(self._pause)
            search_unused(host)
            yield from self._backward(ran)
        read_norm(host, self._builder, self._parameters)
        yield from self._optimize()

    def _frame(self, name: str) -> AbstractContextManager[None]:
        return self.host.frame(name, user=name.startswith(("train.py", "model.py")))

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        before, self.host.phase = self.host.phase, name
        yield
        self.host.phase = before

    def _barrier(self) -> Generator[Meeting, Met, None]:
        host = self.host
        host.peer = True
        with host.op("gloo:barrier"):
            met = yield Meeting(host.now, on_grid(50_000, self.workload.tick))
            host.until(met.end)
        host.peer = False

    def _load(self) -> None:
        host, loader = self.host, self.workload.loader
        with self._phase("data_loading"), self._frame("torch/utils/data/dataloader.py(701): __next__"):
            kind = "_MultiProcessingDataLoaderIter" if loader.workers else "_SingleProcessDataLoaderIter"
            host.loading = True
            if loader.workers and self._workers.anew():
                # The last call of an epoch finds no batch.
                with host.annotation(f"enumerate(DataLoader)#{kind}.__next__"):
                    host.spend(5_000)
            with host.annotation(f"enumerate(DataLoader)#{kind}.__next__"):
                if loader.workers:
                    host.until(self._workers.ready(host.now))
                else:
                    self._make_batch()
                self._workers.take(host.now)
            host.loading = False

    def _make_batch(self) -> None:
        """The loop's own thread makes the batch."""
        model = self.workload.model
        batch = Tensor((model.batch, model.sequence), "long int")
        cost = self._workers.cost(self.host.schedule.steps[-1].number if self.host.schedule.steps else 0)
        with self._frame("dataset.py(17): __getitem__"):
            self.host.spend(cost)
        with self.host.op("aten::stack", (batch,)):
            pass

    def _to_device(self) -> None:
        model, script = self.workload.model, self.workload.script
        # Images beside the tokens: what makes the copy worth looking at.
        batch = Tensor((model.batch, 64, model.sequence + 1), "long int")
        if script.pin:
            with self.host.op("aten::pin_memory", (batch,)):
                self.host.spend(script.pin)
        with self.host.op("aten::to", (batch,)), self.host.op("aten::_to_copy", (batch,)):
            with self.host.op("aten::empty_strided"):
                pass
            with self.host.op("aten::copy_", (batch, batch)):
                self.host.copy("HtoD", batch.bytes, pageable=not script.pinned)
                if not script.pinned:
                    self.host.synchronize("cudaStreamSynchronize", self.host.streams.busy_until[COMPUTE])

    def _zero_grad(self) -> None:
        with self._phase("optimizer"), self.host.annotation("Optimizer.zero_grad#AdamW.zero_grad"):
            self.host.python()
            if self.workload.script.zero_fill:
                fill_with_zeros(self.host, self._builder, self._parameters)

    def _forward(self) -> list[_Ran]:
        counts: dict[str, int] = {}
        ran: list[_Ran] = []
        with self._phase("forward"):
            for module in (self._network, self._loss):
                with self._wrapped(module):
                    self._module(module, counts, ran)
        return ran

    def _wrapped(self, module: Module) -> AbstractContextManager[None]:
        """DDP marks the forward pass of what it wraps, once gradients are accumulated."""
        marked = module is self._network and self.workload.script.micro_steps > 1
        return self.host.annotation("DistributedDataParallel.forward") if marked else nullcontext()

    def _module(self, module: Module, counts: dict[str, int], ran: list[_Ran]) -> None:
        number = counts[module.kind] = counts.get(module.kind, -1) + 1
        name = f"nn.Module: {module.kind}_{number}"
        before, self.host.module = self.host.module, (*self.host.module, name)
        with self._frame(name), self._frame(module.source):
            for each in module.inside:
                self.host.python()
                if isinstance(each, Module):
                    self._module(each, counts, ran)
                    if module.kind == "Attention" and each is module.inside[0] and self.workload.script.slow_op:
                        run_slow_operator(self.host, self._builder, self.workload.script.slow_op)
                else:
                    ran.append(self._layer(each))
        self.host.module = before

    def _layer(self, layer: Layer) -> _Ran:
        self._sequence += 1
        self._collector.pass_by()
        with self.host.op(layer.forward.name, layer.forward.inputs) as found:
            found.sequence = self._sequence
            block = self._memory.allocate(layer.keeps)
            run_inside(self.host, layer.forward)
        return _Ran(layer, found, block)

    def _reduce_metric(self) -> Generator[Meeting, Met, None]:
        script = self.workload.script
        if script.metric and self.workload.ranks.count > 1:
            with self._frame("train.py(25): mean_over_ranks"):
                yield from self._collective("all_reduce", script.metric // 2, script.metric // 2)
                if script.metric_waits:
                    self.host.make_wait(COMPUTE, COMM)

    def _read_loss(self, times: int) -> None:
        for _ in range(times):
            with (
                self._frame("train.py(22): log_loss"),
                self.host.op("aten::item"),
                self.host.op("aten::_local_scalar_dense"),
            ):
                self.host.read_back(4)
            self.host.work(self.workload.script.log, "log")

    def _backward(self, ran: list[_Ran]) -> Generator[Meeting, Met, None]:
        host, self._first = self.host, True
        with self._phase("backward"), self._frame("torch/_tensor.py(581): backward"), host.on(AUTOGRAD):
            for each in reversed(ran):
                host.python()
                self._collector.pass_by()
                host.module = each.op.module
                self._node(each)
                self._memory.free(each.block)
                yield from self._accumulate(each.layer.parameters, last=each is ran[0])
            host.module = ()
            if self.workload.ranks.count > 1:
                host.make_wait(COMPUTE, COMM)

    def _node(self, ran: _Ran) -> None:
        host, node = self.host, ran.layer.node
        with host.op(f"autograd::engine::evaluate_function: {node}") as outer, host.op(node) as inner:
            outer.sequence = inner.sequence = ran.op.sequence
            outer.forward_of = ran.op
            for op in ran.layer.backward:
                run_op(host, op)

    def _accumulate(self, parameters: tuple[Tensor, ...], *, last: bool) -> Generator[Meeting, Met, None]:
        host, ranks = self.host, self.workload.ranks
        for number, each in enumerate(parameters, start=1):
            name = "torch::autograd::AccumulateGrad"
            with host.op(f"autograd::engine::evaluate_function: {name}"), host.op(name, (each,)):
                with host.op("aten::detach", (each,)):
                    pass
                self._bucket.append(each)
                limit = ranks.first_bucket if self._first and ranks.first_bucket else ranks.bucket
                full = sum(part.bytes for part in self._bucket) >= limit
                if full or (last and number == len(parameters)):
                    yield from self._reduce()

    def _reduce(self) -> Generator[Meeting, Met, None]:
        ranks, elements = self.workload.ranks, sum(each.elements for each in self._bucket)
        self._bucket, self._first = [], False
        if ranks.count == 1 or not self._reduces:
            return
        if ranks.strategy == "ddp":
            yield from self._collective("all_reduce", elements, elements)
        else:
            part = -(-elements // ranks.count)
            yield from self._collective("reduce_scatter", part * ranks.count, part)

    def _collective(self, kind: str, taken: int, given: int) -> Generator[Meeting, Met, None]:
        """One collective on the communication stream; it begins when this rank's gradients are ready."""
        host, ranks, tick = self.host, self.workload.ranks, self.workload.tick
        listed = ranks.lists and kind == "all_gather"
        gather = "c10d::allgather_" if listed else "c10d::_allgather_base_"
        op_name = {"all_reduce": "c10d::allreduce_", "reduce_scatter": "c10d::_reduce_scatter_base_"}
        meant = Collective(kind, taken, given, self.workload.model.dtype, self._collectives)
        self._collectives += 1
        with host.op(op_name.get(kind, gather)):
            with host.op("record_param_comms") as op:
                op.collective = meant
                host.make_wait(COMM, COMPUTE)
                call, asking = host.begin_collective(kind)
            start = host.streams.begin(COMM, call.start)
            share = (ranks.count - 1) / ranks.count * (2 if kind == "all_reduce" else 1)
            moved = round(share * meant.bytes / ranks.bandwidth * 1e9)
            met = yield Meeting(start, on_grid(ranks.latency + ranks.extra + moved, tick))
            host.streams.run(COMM, start, met.end - start)
            for _ in range(ranks.count if listed else 0):
                part = meant.bytes // ranks.count
                copied = self._builder.kernel("elementwise", 0, 2 * part, "direct_copy")
                run_op(host, Op("aten::copy_", (), (copied,)), COMM)
        kernel: Kernel = self._builder.kernel(kind, 0, 0)
        name = host.collective_name(kernel.name, meant.index)
        work = Work("comm", kind, name, COMM, start, met.end, call, asking, host.phase, 24, 544, meant.bytes)
        work.collective = meant
        if self.workload.device.vendor == "ascend":
            work.tasks = collective_tasks(work, met.all_here, met.last, host.schedule.rank, ranks.count, ranks.block)
        host.schedule.works.append(work)

    def _optimize(self) -> Generator[Meeting, Met, None]:
        host, ranks = self.host, self.workload.ranks
        shared = ranks.count if ranks.strategy == "sharded" else 1
        mine = [Tensor((-(-each.elements // shared),), each.dtype) for each in self._parameters]
        with (
            self._phase("optimizer"),
            self._frame("torch/optim/optimizer.py(493): wrapper"),
            host.annotation("Optimizer.step#AdamW.step"),
        ):
            for op in OPTIMIZERS[self.workload.script.optimizer](self._builder, mine):
                host.python()
                run_op(host, op)
            if ranks.count > 1 and ranks.strategy == "sharded":
                total = sum(each.elements for each in mine)
                yield from self._collective("all_gather", total, total * ranks.count)
                host.make_wait(COMPUTE, COMM)
