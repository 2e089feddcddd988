"""The programs of the generated samples; every step does the same work, so the answers can be worked out on paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.make_samples.schedule import BACKWARD, Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

US, MS = 1_000, 1_000_000
FIRST_STEP = 3


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    title: str
    """What the sample shows."""
    programs: tuple[Program, ...]
    old_layout: bool = False
    on_paper: Mapping[str, int] = field(default_factory=dict)
    """Numbers worked out by hand from the program's text, ns over all steps."""


@dataclass(frozen=True, slots=True)
class Work:
    """An operator, the kernel it launches, and what both cost."""

    op: str
    kernel: str
    duration: int
    lead: int = 4 * US
    call: int = 5 * US
    tail: int = 2 * US


_GEMM = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4"
_ATTENTION = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>(Flash_fwd_params)"
_ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}, std::array<char*, 2ul>>(int)"
_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)"
_ADAM = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>()"


def _layer(scale: int) -> tuple[Work, ...]:
    """One transformer layer; `scale` is how long its kernels run."""
    return (
        Work("aten::layer_norm", _NORM, 20 * scale),
        Work("aten::addmm", _GEMM, 120 * scale),
        Work("aten::_scaled_dot_product_flash_attention", _ATTENTION, 90 * scale),
        Work("aten::addmm", _GEMM, 40 * scale),
        Work("aten::add", _ELEMENTWISE.format("CUDAFunctor_add<c10::BFloat16>"), 10 * scale),
        Work("aten::gelu", _ELEMENTWISE.format("GeluCUDAKernelImpl"), 20 * scale),
        Work("aten::addmm", _GEMM, 160 * scale),
    )


def _run(program: Program, work: tuple[Work, ...], name: str) -> None:
    """Module code: one operator after the other, 1 µs of Python between them."""
    with program.python(f"nn.Module: {name}"):
        for each in work:
            program.work(1 * US)
            with program.op(each.op, each.lead, each.tail):
                program.launch(each.kernel, each.duration, each.call)


def _forward(program: Program, layers: int, scale: int) -> None:
    with program.python("nn.Module: Transformer_0"):
        for layer in range(layers):
            _run(program, _layer(scale), f"Block_{layer}")


def _backward(program: Program, layers: int, scale: int, after_layer: Callable[[int], None] | None = None) -> None:
    """Twice the work of the forward pass, on autograd's own thread."""
    with program.python("torch/_tensor.py(570): backward"), program.on(BACKWARD):
        for layer in reversed(range(layers)):
            for each in reversed(_layer(2 * scale)):
                program.work(1 * US)
                with program.op(f"autograd::engine::evaluate_function: {each.op}Backward0", each.lead, each.tail):
                    program.launch(each.kernel, each.duration, each.call)
            if after_layer is not None:
                after_layer(layer)


def _optimizer(program: Program, kernels: int, duration: int) -> None:
    with program.annotation("Optimizer.step#AdamW.step"), program.op("aten::_fused_adamw_", 10 * US, 4 * US):
        for _ in range(kernels):
            program.launch(_ADAM, duration, 5 * US)


def _finish(program: Program) -> Program:
    """The profiler stops: it waits for the device."""
    program.work(20 * US)
    program.synchronize("cudaDeviceSynchronize")
    return program


def data_loading(steps: int = 6, *, with_python: bool = True) -> Program:
    """The loader takes 30 ms a step, the device needs half of that."""
    program = Program(now=1 * MS, with_python=with_python)
    for number in range(FIRST_STEP, FIRST_STEP + steps):
        with program.step(number):
            program.load_batch(30 * MS)
            with program.op("aten::to", 5 * US, 5 * US):
                program.copy("HtoD (Pinned -> Device)", 400 * US, 6 * US, bytes=9_633_792)
            _forward(program, 4, 1 * US)
            _backward(program, 4, 1 * US)
            _optimizer(program, 4, 150 * US)
    return _finish(program)


def sync_bound(steps: int = 6) -> Program:
    """`loss.item()` after every forward pass empties the queue."""
    program = Program(now=1 * MS)
    for number in range(FIRST_STEP, FIRST_STEP + steps):
        with program.step(number):
            program.load_batch(100 * US)
            _forward(program, 4, 2 * US)
            with (
                program.python("train.py(41): log_loss"),
                program.op("aten::item", 2 * US, 1 * US),
                program.op("aten::_local_scalar_dense", 2 * US, 1 * US),
            ):
                program.copy("DtoH (Device -> Pinned)", 2 * US, 6 * US, bytes=4)
                program.synchronize("cudaStreamSynchronize")
            program.work(1_500 * US)
            _backward(program, 4, 2 * US)
            _optimizer(program, 4, 300 * US)
    return _finish(program)


def healthy(steps: int = 6) -> Program:
    """The host is always ahead; what is left is the pause between queued kernels."""
    program = Program(now=1 * MS)
    for number in range(FIRST_STEP, FIRST_STEP + steps):
        with program.step(number):
            program.load_batch(200 * US)
            with program.op("aten::to", 5 * US, 5 * US):
                program.copy("HtoD (Pinned -> Device)", 300 * US, 6 * US, bytes=9_633_792)
            _forward(program, 4, 3 * US)
            _backward(program, 4, 3 * US)
            _optimizer(program, 4, 300 * US)
    return _finish(program)


def launch_bound(steps: int = 6) -> Program:
    """Kernels of 2 µs and less, one launched every 13 µs."""
    program = Program(now=1 * MS)
    tiny = tuple(
        Work(op, _ELEMENTWISE.format(functor), 2 * US, lead=4 * US, call=5 * US, tail=3 * US)
        for op, functor in (("aten::mul", "MulFunctor<float>"), ("aten::add", "CUDAFunctor_add<float>"))
    )
    for number in range(FIRST_STEP, FIRST_STEP + steps):
        with program.step(number):
            program.load_batch(50 * US)
            for layer in range(20):
                _run(program, tiny * 3, f"Scale_{layer}")
            _optimizer(program, 2, 3 * US)
    return _finish(program)


_ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def communication(rank: int, steps: int = 6) -> Program:
    """Gradients are reduced layer by layer; rank 1 computes 0.5 ms longer, so rank 0 waits inside its collectives."""
    program = Program(rank=rank, world=2, now=1 * MS)
    elements = 33_554_432
    extra = 500 * US if rank == 1 else 0

    def reduce_gradients(layer: int) -> None:
        args = {
            "Collective name": "allreduce",
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "Group size": 2,
            "dtype": "BFloat16",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Process Group Ranks": "[0, 1]",
        }
        waiting = 500 * US if rank == 0 and layer == 3 else 0
        ready = max(program.busy_until.values()) if layer == 3 else program.busy_until[7]
        with program.op("c10d::allreduce_", 6 * US, 3 * US):
            program.collective(_ALL_REDUCE, 1_600 * US + waiting, 8 * US, ready + 2 * US, **args)

    for number in range(FIRST_STEP, FIRST_STEP + steps):
        with program.step(number):
            program.load_batch(100 * US)
            _forward(program, 4, 2 * US)
            if extra:
                with program.op("aten::embedding", 4 * US, 2 * US):
                    program.launch(_ELEMENTWISE.format("IndexFunctor"), extra - 1 * US, 5 * US)
            _backward(program, 4, 1 * US, reduce_gradients)
            program.wait_for_comm()
            _optimizer(program, 4, 200 * US)
    return _finish(program)


_LATE = (4 + 5 + 4) * US
"""Lead of an operator, its launch call, and the latency: what a kernel launched on an empty queue waits for."""
_AFTER_ITEM = (6 + 2 + 1_500 + 1) * US
"""The call returns, the two operators end, then Python that the profiler does not see."""


def cases() -> tuple[Case, ...]:
    """All generated samples."""
    return (
        Case("gpu_data_loading", "The device waits for the data loader", (data_loading(),)),
        Case(
            "gpu_sync",
            "loss.item() in every step empties the queue",
            (sync_bound(),),
            on_paper={"sync_points": 6, "sync_idle_caused": 6 * (_AFTER_ITEM + _LATE)},
        ),
        Case("gpu_healthy", "The host is ahead of the device all the time", (healthy(),)),
        Case("gpu_launch_bound", "Kernels so small that launching them takes longer", (launch_bound(),)),
        Case("gpu_two_ranks", "All-reduce partly exposed, rank 1 slower", (communication(0), communication(1))),
        Case("gpu_2021_layout", "As gpu_data_loading, in the layout of 2021", (data_loading(4),), old_layout=True),
    )
