"""Programs whose answers are pinned, see `tests.pinned`: random ones with all sorts of oddities, from fixed seeds."""

from __future__ import annotations

import pickle
import random
import re
import tempfile
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tests.builder import HOST, TraceBuilder
from tests.ranks.mesh import Mesh
from tests.ranks.mesh import run as run_mesh
from tests.rules.make import Fires, Silent, case_modules
from tests.rules.make import known as facts_known
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import KIB, MIB, Allocator, OutOfMemoryError
from tests.simulate.allocator.programs import Loop, shred, train, user
from tests.simulate.compare_npu import npu_trace
from tests.simulate.healthy import on_npu
from tests.simulate.simulate import simulate
from tests.simulate.workload import (
    MS,
    US,
    Loader,
    Model,
    Ranks,
    Recording,
    Script,
    TaskQueue,
    Workload,
)
from tests.simulate.writers.ascend_layouts import AscendLayout
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import AMD, CPU_ONLY, TODAY, YEAR_2021, YEAR_2022, Layout
from traceanalyze.analyses.analyze import analyze_context, context_of
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.options import Filter, Options
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.comparison.side import CompareOptions, side
from traceanalyze.model.classify import ClassifyOptions
from traceanalyze.ranks.summary import summarize
from traceanalyze.readers.kineto import read_text
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source
from traceanalyze.rules.config import RuleConfig
from traceanalyze.rules.evaluate import evaluate, plan
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.registry import every_rule
from traceanalyze.rules.rule import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.analyses.steps.window import Steps
    from traceanalyze.comparison.results import Comparison
    from traceanalyze.comparison.side import Side
    from traceanalyze.model.trace import Trace
    from traceanalyze.ranks.results import RankSummary
    from traceanalyze.rules.evaluate import Plan
    from traceanalyze.rules.finding import Finding, Outcome

    Known: TypeAlias = tuple[Context, RankAnalysis]

COMM, SIDE = 20, 9
"""Streams beside the usual one."""
_LINEAR, _CONV, _NORM = ("nn.Module: Linear_", "nn.Module: Conv2d_", "nn.Module: LayerNorm_")
_DTYPES = ("float", "c10::BFloat16", "c10::Half", "double", "long int")
_KERNELS = {
    "aten::mm": (
        "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nt",
        "volta_sgemm_128x64_nn",
        "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(Params)",
        "nvjet_hsh_128x256_64x4_1x2_h_bz_TNT",
    ),
    "aten::addmm": ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize96x64x32", "gemv2T_kernel_val<int, float>"),
    "aten::bmm": ("ampere_sgemm_32x128_tn", "cublasLt::splitKreduce_kernel<32, 16, int, float>"),
    "aten::convolution": (
        "cudnn::winograd_nonfused::winogradForwardData4x4<float>",
        "implicit_convolve_sgemm",
        "sm86_xmma_fprop_implicit_gemm_indexed_tf32f32",
        "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(Params)",
    ),
    "aten::_scaled_dot_product_flash_attention": ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>(Params)",),
    "aten::add": ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",),
    "aten::mul": ("void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<Mul>>(int)",),
    "aten::copy_": ("void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>(int)",),
    "aten::native_layer_norm": ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>(int)",),
    "aten::_softmax": ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false>(float*)",),
    "aten::sum": ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(at::native::ReduceOp)",),
    "aten::index": ("void at::native::index_elementwise_kernel<128, 4>(long)",),
    "aten::cat": ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>(float*)",),
    "aten::zero_": ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)",),
    "triton_poi_fused_add_0": ("triton_poi_fused_add_0",),
    "triton_red_fused_mean_mul_3": ("triton_red_fused_mean_mul_3d4",),
    "aten::_foreach_add_": ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<Meta<4>>(int)",),
}
_OPS = tuple(_KERNELS)
_COLLECTIVES = {
    "allreduce": "AllReduce_Sum_bf16_RING_LL",
    "_allgather_base": "AllGather_RING_LL",
    "_reduce_scatter_base": "ReduceScatter_Sum_f32_RING_LL",
    "broadcast": "Broadcast_RING_LL",
    "all_to_all": "SendRecv",
    "send": "SendRecv",
    "barrier": "AllReduce_Sum_f32_TREE_LL",
}
_DEVICES = ("NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "Example GPU", "AMD Instinct MI300X", "Tesla V100-SXM2")


class Odd:
    """A random program. Programs of one seed are alike: a variant is another rank or another day of the same."""

    def __init__(self, seed: int, variant: int = 0) -> None:
        self.seed, self.variant = seed, variant
        self.plan, self.chance = random.Random(seed), random.Random(1000 * seed + variant)
        self.b = TraceBuilder()
        self.busy: dict[int, float] = {}
        self.now: dict[int, float] = {1: 0.0, 2: 0.0, 3: 0.0}
        self.allocated, self.sequence, self.flow = 1 << 30, 0, 0
        self.ops, self.around = 0, dict[int, int]()
        """Operators so far, and by thread the one that runs."""
        self.pending: list[tuple[str, int, float]] = []
        """Forward operators whose backward pass is still to come."""
        self.kernels = 0.2 + 3 * self.plan.random()
        """How large the kernels are."""
        self.losing = self.plan.choice((0, 0, 0.01, 0.1))
        """Share of launches of which something was not recorded."""
        self.nothing = self.plan.random()
        """What this recording lacks: each thing from its own share on."""

    def lacks(self, share: float) -> bool:
        return self.nothing < share

    def us(self, low: float, high: float) -> float:
        """A time, sometimes not of whole microseconds."""
        found = self.plan.uniform(low, high) * self.chance.uniform(0.97, 1.1)
        return round(found, 3) if self.chance.random() < 0.3 else float(round(found))

    def program(self) -> TraceBuilder:
        """The whole of it."""
        self._header()
        if self.plan.random() < 0.5:  # Left over from before.
            self.b.device(0, self.us(20, 900), name="void leftover_kernel(int)")
            self.b.op("aten::mm", 3, 11)
            self.now[1] = 30
        count = self.plan.choice((0, 1, 2, 3, 4, 6))
        for number in range(count or 1):
            begin = self.now[1]
            self._step(number)
            end = max(self.now[1], self.now[2] * self.plan.choice((0, 1)))
            if count:
                self.b.step(number + 3, begin - self.plan.choice((0, 0, 2)), end - begin + self.plan.choice((1, 1, 5)))
            self.now[1] = end + self.us(2, 60)
        if self.plan.random() < 0.4:
            self._launch("aten::mm", 1, ("cudaLaunchKernel",))
        if self.plan.random() < 0.3:
            self.b.event("overhead", "Activity Buffer Request", self.now[1] - 90, 70)
            self.b.event("Trace", "PyTorch Profiler (0)", 0, self.now[1], pid="Spans", tid="PyTorch Profiler")
        return self.b

    def _header(self) -> None:
        b, plan = self.b, self.plan
        devices = [
            {
                "id": number,
                "name": plan.choice(_DEVICES),
                "totalGlobalMem": plan.choice((2, 40, 80)) << 30,
                "numSms": plan.choice((80, 108, 132)),
                "maxThreadsPerMultiprocessor": 2048,
                "maxThreadsPerBlock": 1024,
                "warpSize": 32,
                "computeMajor": 8,
                "computeMinor": 0,
                "regsPerMultiprocessor": 65536,
                "sharedMemPerMultiprocessor": 167936,
            }
            for number in range(plan.choice((1, 1, 2)))
        ]
        if not self.lacks(0.2):
            b.header["deviceProperties"] = devices
        groups = [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "ranks": [0, 1, 2]}]
        b.header["distributedInfo"] = {
            "backend": "nccl",
            "rank": self.variant,
            "world_size": 3,
            "pg_count": 1,
            "pg_config": [each | {"pg_size": 3} for each in groups],
        }
        b.header |= {"record_shapes": 1, "profile_memory": 1, "with_stack": int(plan.random() < 0.7)}
        for tid, name in ((1, "python"), (2, "pt_autograd_0"), (3, "pt_data_worker")):
            if plan.random() < 0.5:
                b.events.append({"ph": "M", "name": "thread_name", "pid": HOST, "tid": tid, "args": {"name": name}})

    def _step(self, number: int) -> None:
        plan, b = self.plan, self.b
        if plan.random() < 0.7:
            begin = self.now[1]
            self.now[1] += self.us(1, 400)
            if plan.random() < 0.4:
                b.op("aten::stack", begin + 1, self.now[1] - begin - 1)
            kind = plan.choice(("_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"))
            b.annotation(f"enumerate(DataLoader)#{kind}.__next__", begin, self.now[1] - begin)
        self._copy(1)
        outer = self.now[1]
        ddp = plan.random() < 0.4
        for layer in range(plan.randint(1, 5)):
            self._module(f"{plan.choice((_LINEAR, _CONV, _NORM))}{layer}", 0)
        if ddp:
            b.annotation("DistributedDataParallel.forward", outer, self.now[1] - outer)
        for act in plan.sample(("sync", "item", "collect", "malloc", "copy", "wait", "graph", "compile", "range"), 4):
            getattr(self, f"_{act}")(1)
        self._backward(plan.choice((1, 2, 2)))
        for _ in range(plan.randint(0, 3)):
            self._collective(plan.choice((1, 2)))
        self.now[1] = max(self.now[1], self.now[2])
        self._optimizer(number)
        if plan.random() < 0.5:
            getattr(self, plan.choice(("_sync", "_item", "_peer")))(1)
        if plan.random() < 0.4:
            self.now[3] = max(self.now[3], self.now[1] - 300)
            for _ in range(2):
                self._op(3, "aten::index", 0)

    def _module(self, name: str, depth: int) -> None:
        plan, begin = self.plan, self.now[1]
        self.now[1] += self.us(1, 12)
        frame = plan.random() < 0.5
        at = len(self.b.events)
        for _ in range(plan.randint(0, 3)):
            self._op(1, plan.choice(_OPS), 0)
        if depth < 2 and plan.random() < 0.5:
            self._module(f"nn.Module: Block_{plan.randint(0, 2)}", depth + 1)
        self.now[1] += self.us(0, 10)
        end = self.now[1]
        self.b.python(name, begin, end - begin)
        if frame:
            self.b.python(f"train.py({plan.randint(10, 30)}): forward", begin + 1, max(end - begin - 1, 0))
        if plan.random() < 0.2 and at < len(self.b.events):
            self.b.annotation(f"## {name} ##", begin, end - begin + plan.choice((0, 0, 3)))
            stream = plan.choice((7, SIDE))
            self.b.device(begin, max(end - begin, 1), cat="gpu_user_annotation", name=f"## {name} ##", stream=stream)

    def _shapes(self, name: str) -> dict[str, Any]:
        plan = self.plan
        m, n, k = (plan.choice((1, 8, 33, 64, 512, 4096)) for _ in range(3))
        dtype = plan.choice(_DTYPES)
        dims: list[Any] = [[m, k], [k, n]]
        concrete = ["", ""]
        match name.rpartition("::")[2]:
            case "addmm":
                dims, concrete = [[n], [m, k], [k, n]], ["", "", ""]
            case "bmm":
                dims = [[4, m, k], [4, k, n]]
            case "convolution":
                dims = [[4, 8, m + 8, k + 8], [n, 8, 3, 3], [n]]
                concrete = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
            case "_scaled_dot_product_flash_attention":
                dims, concrete = [[2, 4, m, 64]] * 3, ["", "", "", "0.0", plan.choice(("True", "False"))]
            case "native_layer_norm" | "_softmax" | "sum":
                dims, concrete = [[m, n]], [""]
            case _:
                dims = [[m, n], plan.choice(([m, n], [n], []))]
        types = [dtype if each else "Scalar" for each in dims] + [""] * (len(concrete) - len(dims))
        dims = dims + [[]] * (len(concrete) - len(dims))
        return {"Input Dims": dims, "Input type": types, "Concrete Inputs": concrete}

    def _op(self, tid: int, name: str, depth: int) -> None:
        plan = self.plan
        skipped = self.variant and self.chance.random() < 0.04
        begin = self.now[tid]
        self.now[tid] += self.us(1, 6)
        args = self._shapes(name) if plan.random() < 0.8 else {}
        self.ops += 1
        number, outer = self.ops, self.around.get(tid, 0)
        self.around[tid] = number
        if depth == 0:
            self.sequence += 1
            args |= {"Sequence number": self.sequence, "Fwd thread id": 0}
            if tid == 1:
                self.pending.append((name, self.sequence, begin))
        if plan.random() < 0.3:
            self._memory(plan.choice((512, 4096, 1 << 20, 5 << 20)))
        if depth < 2 and plan.random() < 0.25:
            self._op(tid, plan.choice(_OPS), depth + 1)
        if plan.random() < 0.85:
            for _ in range(plan.choice((1, 1, 1, 2))):
                self._launch(name, tid, ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel"))
        self.now[tid] += self.us(0, 5)
        if plan.random() < 0.2:
            self._memory(-plan.choice((512, 4096, 1 << 20, 5 << 20)))
        self.around[tid] = outer
        if self.seed % 3:
            args["External id"] = number
        if not skipped:
            self.b.op(name, begin, self.now[tid] - begin, tid=tid, **args)
        self.now[tid] += plan.choice((0, 1, 3, self.us(0, 30)))

    def _place(self, stream: int, ready: float, length: float) -> float:
        """When work begins: as soon as its stream is free, or, rarely, over other work."""
        begin = ready if self.plan.random() < 0.05 else max(ready, self.busy.get(stream, 0.0))
        self.busy[stream] = max(self.busy.get(stream, 0.0), begin + length + self.plan.choice((0, 1, 1, 2)))
        return begin

    def _launch(self, name: str, tid: int, apis: tuple[str, ...]) -> None:
        plan, b = self.plan, self.b
        at, cost = self.now[tid], self.us(1, 6) if plan.random() < 0.95 else self.us(100, 400)
        stream = plan.choice((7, 7, 7, 7, SIDE))
        length = 0.0 if plan.random() < 0.02 else self.us(1, 60) * self.kernels
        begin = self._place(stream, at + cost * plan.choice((0.5, 1, 1)) + self.us(0, 8), length)
        kernel = plan.choice(_KERNELS.get(name, ("void some_kernel(int)",)))
        blocks, threads = plan.choice((1, 40, 108, 216, 5000)), plan.choice((32, 128, 256, 1024))
        more: dict[str, Any] = {"stream": stream, "device": 1 if plan.random() < 0.03 else 0}
        if not self.lacks(0.3):
            more |= {"grid": [blocks, 1, plan.choice((1, 2))], "block": [threads, 1, 1]}
            more |= {"registers per thread": plan.choice((32, 64, 255)), "shared memory": plan.choice((0, 49152))}
            more |= {"blocks per SM": blocks / 108, "warps per SM": blocks * threads / 32 / 108}
            more |= {"est. achieved occupancy %": plan.choice((0, 12, 50, 100))}
        if self.seed % 3 and self.around.get(tid):
            more["External id"] = self.around[tid]
        lost = plan.random()
        if lost < 0.4 * self.losing:
            b.device(begin, length, name=kernel, **more)
        elif lost < 0.7 * self.losing:
            b.device(begin, length, name=kernel, correlation=900_000 + len(b.events), **more)
        elif lost < self.losing:
            b.api(apis[0], at, cost, tid=tid)
        else:
            b.launch(at, cost, begin, length, api=plan.choice(apis), tid=tid, name=kernel, **more)
        self.now[tid] += cost

    def _memory(self, size: int) -> None:
        if self.lacks(0.15):
            return
        self.allocated += size
        reserved = (self.allocated >> 21 << 21) + (4 << 20)
        device = self.plan.choice((0, 0, 0, 0, 1))
        kind = self.plan.choice((1, 1, 1, 1, 0))
        self.b.memory(self.now[1], size, kind=kind, device=device, allocated=self.allocated, reserved=reserved)
        self.b.events[-1]["args"]["Addr"] = 4096 + abs(size)

    def _copy(self, tid: int) -> None:
        plan = self.plan
        kind = plan.choice(
            ("HtoD (Pageable -> Device)", "HtoD (Pinned -> Device)", "DtoH (Device -> Pageable)", "DtoD", "PtoP")
        )
        at, cost, size = self.now[tid], self.us(2, 40), plan.choice((4, 1000, 1 << 20, 1 << 26))
        length = self.us(1, 90)
        begin = self._place(plan.choice((7, SIDE)), at + cost / 2, length)
        api = plan.choice(("cudaMemcpyAsync", "cudaMemcpyAsync", "cudaMemcpy", "cudaMemcpy2DAsync"))
        self.b.op("aten::copy_", at - 1, cost + 3, tid=tid)
        more = {"bytes": size, "memory bandwidth (GB/s)": size / length / 1000 if length else 0}
        self.b.copy(at, cost, begin, length, api=api, name=f"Memcpy {kind}", tid=tid, **more)
        if plan.random() < 0.4:
            fill = self._place(7, at + cost, 2)
            self.b.launch(
                at + cost,
                1,
                fill,
                2,
                api="cudaMemsetAsync",
                cat="gpu_memset",
                name="Memset (Device)",
                tid=tid,
                bytes=64,
            )
        self.now[tid] += cost + 4

    def _sync(self, tid: int) -> None:
        kinds = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "hipDeviceSynchronize")
        at, kind = self.now[tid], self.plan.choice(kinds)
        end = max(at + self.us(1, 4), max(self.busy.values(), default=at) * self.plan.choice((1, 1, 0)) + 5)
        self.b.api(kind, at, end - at, tid=tid)
        words = {"cudaDeviceSynchronize": "Context Sync", "cudaEventSynchronize": "Event Sync"}
        if not self.lacks(0.4):
            self.b.device(at, end - at, cat="cuda_sync", name=words.get(kind, "Stream Sync"), stream=7)
        self.now[tid] = end

    def _item(self, tid: int) -> None:
        begin = self.now[tid]
        self.now[tid] += 3
        done = self._place(7, begin + 6, 2)
        self.b.copy(begin + 3, 2, done, 2, name="Memcpy DtoH (Device -> Pageable)", tid=tid, bytes=4)
        self.b.api("cudaStreamSynchronize", begin + 6, max(done - begin - 2, 1), tid=tid)
        end = max(begin + 8, done + 5)
        self.b.op("aten::_local_scalar_dense", begin + 1, end - begin - 1, tid=tid)
        self.b.op("aten::item", begin, end - begin, tid=tid)
        self.b.python("train.py(44): log", begin - 1, end - begin + 4, tid=tid)
        self.now[tid] = end + 5

    def _collect(self, tid: int) -> None:
        length = self.us(200, 4000)
        kinds = ("<built-in function collect>", "gc.py(12): collect")
        if self.plan.random() < 0.6:
            self.b.python(self.plan.choice(kinds), self.now[tid], length, tid=tid)
        self.now[tid] += length

    def _malloc(self, tid: int) -> None:
        for name in self.plan.sample(("cudaMalloc", "cudaFree", "cuMemMap", "cudaHostAlloc", "cuMemRelease"), 2):
            cost = self.us(5, 500)
            self.b.api(name, self.now[tid], cost, tid=tid)
            self.now[tid] += cost + 1
        self._memory(64 << 20)

    def _wait(self, tid: int) -> None:
        at = self.now[tid]
        self.b.api("cudaEventRecord", at, 1, tid=tid)
        self.b.api("cudaStreamWaitEvent", at + 1, 1, tid=tid)
        self.b.device(
            at + 2,
            self.us(0, 30),
            cat="cuda_sync",
            name="Stream Wait Event",
            stream=self.plan.choice((7, COMM)),
            cuda_sync_kind="Stream Wait Event",
            wait_on_stream=self.plan.choice((7, SIDE)),
            wait_on_cuda_event_record_corr_id=self.b._correlation - 1,
        )
        self.now[tid] += 3

    def _graph(self, tid: int) -> None:
        at, cost = self.now[tid], self.us(5, 30)
        correlation = self.b._next()
        self.b.api("cudaGraphLaunch", at, cost, tid=tid, correlation=correlation)
        for _ in range(self.plan.randint(1, 8)):
            length = self.us(1, 20)
            name = self.plan.choice(_KERNELS["aten::mm"] + _KERNELS["aten::add"])
            self.b.device(self._place(7, at + cost, length), length, name=name, correlation=correlation)
        self.now[tid] += cost + 2

    def _compile(self, tid: int) -> None:
        begin, number = self.now[tid], self.plan.randint(0, 1)
        if self.plan.random() < 0.5:
            self.now[tid] += self.us(1000, 9000)
            self.b.annotation("CompileTimeInstant", begin, 1)
            self.b.op("_compile.compile_inner (dynamo_timed)", begin, self.now[tid] - begin, tid=tid)
        self.b.op("TorchDynamo Cache Lookup", self.now[tid], 4, tid=tid)
        inside = self.now[tid] + 4
        self.now[tid] += 6
        for name in self.plan.sample(("triton_poi_fused_add_0", "triton_red_fused_mean_mul_3", "aten::mm"), 2):
            self._op(tid, name, 1)
        self.b.op(f"Torch-Compiled Region: {number}/0", inside, self.now[tid] - inside, tid=tid)

    def _range(self, tid: int) -> None:
        begin, name = self.now[tid], self.plan.choice(("evaluate", "prefill", "decode", "execute_model"))
        for part in range(self.plan.randint(1, 4)):
            inner = self.now[tid]
            self._op(tid, self.plan.choice(_OPS), 0)
            if part % 2:
                self.b.annotation("inner part", inner, self.now[tid] - inner, tid=tid)
        self.b.annotation(name, begin, self.now[tid] - begin, tid=tid)

    def _peer(self, tid: int) -> None:
        cost = self.us(10, 900)
        self.b.annotation("gloo:barrier", self.now[tid], cost, tid=tid)
        self.now[tid] += cost + 1

    def _backward(self, tid: int) -> None:
        plan, b = self.plan, self.b
        self.now[tid] = max(self.now[tid], self.now[1] + 1)
        whole = self.now[tid]
        for name, sequence, at in reversed(self.pending):
            if plan.random() < 0.3:
                continue
            node = f"{name.rpartition('::')[2].strip('_').title()}Backward0"
            begin = self.now[tid]
            self.now[tid] += 2
            for _ in range(plan.randint(0, 2)):
                self._op(tid, plan.choice(_OPS), 1)
            self.now[tid] += 1
            args = {"Sequence number": sequence, "Fwd thread id": 1}
            b.op(node, begin + 1, self.now[tid] - begin - 1, tid=tid, **args)
            b.op(f"autograd::engine::evaluate_function: {node}", begin, self.now[tid] - begin, tid=tid, **args)
            if plan.random() < 0.5:
                self.flow += 1
                flow = {"id": self.flow, "pid": HOST, "cat": "fwdbwd", "name": "fwdbwd"}
                b.events.append({**flow, "ph": "s", "tid": 1, "ts": at})
                b.events.append({**flow, "ph": "f", "bp": "e", "tid": tid, "ts": begin + 1})
            self.now[tid] += 1
        self.pending.clear()
        if plan.random() < 0.5 and tid == 1:
            b.python("torch/_tensor.py(500): backward", whole, self.now[tid] - whole)

    def _collective(self, tid: int) -> None:
        plan = self.plan
        kind = plan.choice(tuple(_COLLECTIVES))
        at, size = self.now[tid], plan.choice((1, 1 << 10, 1 << 22))
        length = self.us(10, 300) * (1 + self.variant * plan.choice((0, 0, 0.4)))
        more: dict[str, Any] = {
            "Collective name": kind,
            "In msg nelems": size,
            "Out msg nelems": size * plan.choice((1, 3)),
            "Group size": 3,
            "dtype": plan.choice(("Float", "BFloat16", "Byte")),
        }
        if plan.random() < 0.8:
            more |= {"Process Group Name": plan.choice(("0", "0", "7")), "Process Group Ranks": "[0, 1, 2]"}
        if plan.random() < 0.15 or self.lacks(0.1):
            more = {}
        begin = self._place(COMM, at + 8 + self.chance.choice((0, 0, 40)), length)
        self.b.op(f"c10d::{kind}_", at, 12, tid=tid, **more)
        self.b.annotation(f"nccl:{kind}", at + 1, 10, tid=tid)
        name = f"ncclDevKernel_{_COLLECTIVES[kind]}(ncclDevKernelArgsStorage<4096ul>)"
        self.b.launch(at + 3, 4, begin, length, tid=tid, name=name, stream=COMM, **more)
        if plan.random() < 0.5:
            self.b.api("cudaStreamWaitEvent", at + 13, 1, tid=tid)
        self.now[tid] += 15

    def _optimizer(self, number: int) -> None:
        begin = self.now[1]
        self.now[1] += 2
        for _ in range(self.plan.randint(0, 3)):
            self._op(1, self.plan.choice(("aten::_foreach_add_", "aten::mul", "aten::add")), 1)
        self.b.annotation("Optimizer.step#AdamW.step", begin, self.now[1] - begin)
        if self.plan.random() < 0.5:
            zero = self.now[1]
            self._op(1, "aten::zero_", 1)
            self.b.annotation("Optimizer.zero_grad#AdamW.zero_grad", zero, self.now[1] - zero)
        if number == 0:
            self.b.python("torch/optim/adamw.py(90): step", begin + 1, 1)


def _every_other(steps: Steps) -> NDArray[np.bool_]:
    return np.arange(len(steps)) % 2 == 0


_CHOICES: dict[str, Options] = {
    "": Options(),
    "time": Options(keep=Filter(time=(100_000, 1_500_000))),
    "stream": Options(keep=Filter(streams=lambda stream: stream == 7)),
    "name": Options(keep=Filter(name=re.compile("gemm|elementwise"))),
    "marker": Options(ClassifyOptions(step_marker=re.compile("Optimizer.step|execute_model"))),
    "gaps": Options(ClassifyOptions(comm=re.compile("splitK"), data=re.compile("aten::index")), max_gaps=3),
    "steps": Options(steps=_every_other),
}
"""What a user may choose, by what it is about."""
CHOICES = tuple(_CHOICES)


def known(trace: Trace, options: Options | None = None) -> Known:
    """Context and analyses of a trace."""
    context = context_of(trace, options or Options())
    return context, analyze_context(context)


@cache
def odd(seed: int, variant: int = 0, choice: str = "") -> Known:
    """Those of a random program."""
    return known(Odd(seed, variant).program().trace(), _CHOICES[choice])


_SMALL = Workload(
    model=Model(layers=1, hidden=512, sequence=256, batch=4, vocabulary=2000),
    loader=Loader(cost=500 * US, workers=0),
    script=Script(items=1, device_syncs=1, optimizer="foreach", pinned=False, side_kernels=2),
    ranks=Ranks(2),
    steps=3,
    seed=11,
)
_SHARDED = replace(
    _SMALL,
    script=Script(optimizer="for_loop", empty_cache=True, micro_steps=2),
    ranks=Ranks(2, "sharded", bandwidth=5e9, slow_rank=1, slow_by=1.4),
    recording=Recording(stacks=False, unlinked=4, leftover=500 * US, clock_offset=7 * MS, behind=20_000),
    seed=12,
)
_QUEUELESS = TaskQueue(on=False)
_LAYOUTS: dict[str, tuple[Workload, Layout | AscendLayout, str]] = {
    "amd": (_SMALL, AMD, ""),
    "amd sharded": (_SHARDED, AMD, ""),
    "2021": (replace(_SMALL, tick=1000), YEAR_2021, ""),
    "2022": (_SHARDED, YEAR_2022, ""),
    "cpu": (_SMALL, CPU_ONLY, ""),
    "today sharded": (_SHARDED, TODAY, ""),
    "npu 2023": (on_npu(_SMALL), AscendLayout("2023"), "text"),
    "npu 8.0 level 0": (on_npu(_SMALL), AscendLayout(level=0), "text"),
    "npu 8.3 level 2": (on_npu(_SHARDED), AscendLayout("8.3", level=2, crlf=True, device=5), "text"),
    "npu 2026": (on_npu(_SHARDED), AscendLayout("2026", planes=False), "text"),
    "npu 8.0 db": (on_npu(_SMALL), AscendLayout(), "db"),
    "npu 2026 db": (on_npu(_SHARDED), AscendLayout("2026", level=2), "db"),
    "npu no queue": (replace(on_npu(_SMALL), queue=_QUEUELESS), AscendLayout(shapes=False, memory=False), "text"),
}
LAYOUTS = tuple(_LAYOUTS)
"""Simulated programs as the layouts of the vendors write them."""


@cache
def laid_out(name: str) -> Known:
    """The second rank of a simulated program."""
    workload, layout, form = _LAYOUTS[name]
    schedule = simulate(workload)[1]
    if isinstance(layout, AscendLayout):
        return known(npu_trace(schedule, layout, form))
    return known(read_text(write(schedule, layout)))


def odd_of(name: str) -> Known:
    """A random program by its seed and what is chosen of it."""
    seed, _, choice = name.partition(" ")
    return odd(int(seed), 0, choice)


def facts(found: Known) -> Facts:
    """What rules know of it."""
    context, analysis = found
    return Facts(analysis, context)


def summaries(seed: int) -> list[RankSummary]:
    """Three ranks of a random program."""
    return [
        replace(summarize(*odd(seed, variant)), rank=variant, label=str(variant), world_size=3) for variant in range(3)
    ]


@cache
def allocator(seed: int) -> tuple[AllocatorAnalysis, ...]:
    """What the allocator did in a random program."""
    chance = random.Random(seed)
    pool = Allocator(
        capacity=chance.choice((1 << 40, 160 * MIB, 90 * MIB)),
        expandable=chance.random() < 0.4,
        pad=chance.choice((0, 0, 32)),
        outside=chance.choice((0, 20 * MIB)),
        step_us=chance.choice((10, 700)),
    )
    loop = Loop(
        steps=chance.choice((2, 5, 9)),
        layers=chance.choice((2, 5)),
        activation=chance.choice((1, 3, 5)) * MIB,
        parameter=chance.choice((KIB, 2 * MIB)),
        temporaries=chance.choice((0, 6)),
        annotated=chance.random() < 0.8,
        leak=chance.choice((0, 0, 300 * KIB, 3 * MIB)),
        empty_cache=chance.random() < 0.3,
        growing=chance.choice((0, 0, 700 * KIB)),
        spike=chance.choice((0, 0, 30 * MIB)),
        keep_gradients=chance.random() < 0.3,
    )
    if chance.random() < 0.5:
        with suppress(OutOfMemoryError):
            shred(pool, pieces=12, size=chance.choice((100 * KIB, 3 * MIB)))
    train(loop, pool)
    blocks: list[int] = []
    with suppress(OutOfMemoryError):
        for _ in range(60):
            if blocks and chance.random() < 0.45:
                pool.free(blocks.pop(chance.randrange(len(blocks))))
            else:
                size = chance.choice((1, 511, 70 * KIB, 1 * MIB, 2 * MIB + 1, 11 * MIB))
                blocks.append(pool.malloc(size, user(chance.randint(60, 63)), stream=chance.choice((0, 0, 3))))
    keep = chance.choice((None, None, None, max(len(pool.events) // 2, 1)))
    settings: dict[str, Any] = chance.choice(({}, {"garbage_collection_threshold": 0.8}))
    found = dump(pool, keep=keep, vendor=chance.choice(("cuda", "cuda", "npu")), settings=settings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        path.write_bytes(pickle.dumps(found))
        snapshot = read_snapshot(Source(str(path), size=path.stat().st_size))
    return analyze_snapshot(snapshot, chance.choice((None, 1 << 40, 160 * MIB)))


def cases(family: str, side: str, every: int) -> Iterator[tuple[str, Facts]]:
    """The small programs of the rules of a family by rule and place: the first, and one of so many; 0: no other."""
    seen: set[str] = set()
    for module in case_modules(family):
        for rule, programs in getattr(module, side).items():
            chosen = list(enumerate(programs))[:: every or len(programs)]
            if every == 0 and rule in seen:
                continue
            seen.add(rule)
            for place, one in chosen:
                source = one.program if isinstance(one, Fires | Silent) else one
                yield f"{rule} {side.lower()} {module.__name__.rpartition('.')[2]} {place}", facts_known(source)


_FACTORS = (0.02, 0.3, 0.8, 1, 1.3, 3, 30)
_TRIES = 12


@cache
def _plan() -> Plan:
    return plan()


@cache
def _tries(rule: str) -> tuple[Plan, ...]:
    """A rule with thresholds that are not its defaults."""
    known = next(one for one in every_rule() if one.id == rule).options
    numbers = {name: option.default for name, option in known.items() if isinstance(option.default, float)}
    chance = random.Random(rule)
    drawn = [{name: value * chance.choice(_FACTORS) for name, value in numbers.items()} for _ in range(_TRIES)]
    return tuple(plan(RuleConfig((rule,), (), {rule: options})) for options in drawn if options)


def judged(found: Facts) -> Outcome:
    """What the rules say."""
    return evaluate(found, _plan())


def tried(found: Facts, rule: str) -> list[tuple[Finding, ...]]:
    """What one says with other thresholds."""
    return [evaluate(found, each).findings for each in _tries(rule)]


_COMPARISONS = (
    CompareOptions(),
    CompareOptions(use_input_shape=True, modules=False),
    CompareOptions(max_kernel_num=2, op_name_map={"aten::mul": "aten::add", "aten::index": "aten::gather"}),
    CompareOptions(details=False),
)


@cache
def _side(kind: str, name: str, variant: int = 0) -> Side:
    if kind == "odd":
        return side(odd(int(name), variant)[0].trace)
    return side(laid_out(name)[0].trace)


def compared(kind: str, name: str) -> Comparison:
    """Two variants of a random program, or of what two layouts say."""
    if kind == "odd":
        seed = int(name)
        return compare_sides(_side(kind, name), _side(kind, name, 1), _COMPARISONS[seed % len(_COMPARISONS)])
    one, other = name.split(" ~ ")
    return compare_sides(_side(kind, one), _side(kind, other))


def mean_steps(kind: str, name: str) -> list[Fraction]:
    """Of the programs of a comparison."""
    if kind == "odd":
        traces = [odd(int(name), variant)[0].trace for variant in range(2)]
    else:
        traces = [laid_out(one)[0].trace for one in name.split(" ~ ")]
    found = [side(trace).info for trace in traces]
    return [Fraction(one.step_time, max(one.count, 1)) for one in found]


def mesh(seed: int) -> list[RankSummary]:
    """Ranks of tensor and data parallel groups."""
    chance = random.Random(seed)
    tensor, data = chance.choice(((2, 2), (3, 2), (2, 4), (1, 3), (4, 1)))
    slow = chance.randrange(tensor * data)
    made = Mesh(
        tensor,
        data,
        layers=chance.choice((1, 4)),
        steps=chance.choice((1, 3, 5)),
        layer_extra={slow: chance.choice((0, 300_000, 2 * MS))},
        step_extra={chance.randrange(tensor * data): chance.choice((0, 5 * MS))},
        spread=chance.choice((0.0, 0.2)),
    )
    found: list[RankSummary] = run_mesh(made)[0]
    return [each for each in found if each.rank != slow] if chance.random() < 0.2 else found


KINDS = frozenset({"odd", "layout", "allocator", "cases", "mesh"})
"""Of programs here, the first word of their names."""
_FAMILIES = tuple(sorted(set(FAMILIES.values()) - {"rank"}))
_LAID_OUT = tuple(f"layout {name}" for name in LAYOUTS)
ANALYSED = (
    *(f"odd {seed}" for seed in range(40)),
    *(f"odd {seed} {choice}" for seed in (2, 9, 13) for choice in CHOICES if choice),
    *_LAID_OUT,
    *(f"allocator {seed}" for seed in range(30)),
    *(f"cases {family}" for family in _FAMILIES),
)
JUDGED = (*(f"odd {seed}" for seed in range(40)), *_LAID_OUT, *(f"cases {family}" for family in _FAMILIES))
COMPARED = (
    *(f"odd {seed}" for seed in range(22)),
    "layout amd ~ amd sharded",
    "layout 2021 ~ 2022",
    "layout npu 8.3 level 2 ~ npu 2026 db",
    "layout npu 8.0 level 0 ~ npu 2023",
    "layout amd ~ npu 2023",
    "layout cpu ~ amd",
    "layout npu no queue ~ npu 8.0 db",
)
RANKS = (*(f"odd {seed}" for seed in range(16)), *(f"mesh {seed}" for seed in range(16)))
