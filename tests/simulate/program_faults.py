"""Faults of programs, runs and recordings, and what is left of some of them where they are mended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulate.workload import MS, US

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulate.workload import Workload

    Apply = Callable[[Workload, float], Workload]


def _script(**values: Callable[[float], object]) -> Apply:
    return lambda workload, size: replace(
        workload, script=replace(workload.script, **{name: value(size) for name, value in values.items()})
    )


def _model(**values: Callable[[float], object]) -> Apply:
    return lambda workload, size: replace(
        workload, model=replace(workload.model, **{name: value(size) for name, value in values.items()})
    )


def _recording(**values: Callable[[float], object]) -> Apply:
    return lambda workload, size: replace(
        workload, recording=replace(workload.recording, **{name: value(size) for name, value in values.items()})
    )


def _ms(size: float) -> int:
    return round(size * MS)


def _us(size: float) -> int:
    return round(size * US)


def _true(size: float) -> bool:
    return bool(size)


def _loaded_in_loop(workload: Workload, size: float) -> Workload:
    """The loop's own thread makes the batches, in `size` ms each."""
    return replace(workload, loader=replace(workload.loader, cost=round(size * MS), workers=0))


def _loaded_beside(workload: Workload, _: float) -> Workload:
    """Workers make them, and take the host's cores: it is a fifth slower, as PyTorch's samples of ResNet-50 tell."""
    host = workload.host
    slower = {name: round(1.2 * getattr(host, name)) for name in ("op", "python", "launch", "copy", "other")}
    return replace(workload, host=replace(host, **slower))


def _ready_batches(workload: Workload, _: float) -> Workload:
    """Workers have every batch ready when the loop comes."""
    ranks = replace(workload.ranks, slow_batches=0)
    return replace(workload, loader=replace(workload.loader, cost=1), ranks=ranks)


def _dead_rank(workload: Workload, size: float) -> Workload:
    """The last rank's kernels take `size` times as long, and nobody has recorded it."""
    last = workload.ranks.count - 1
    recording = replace(workload.recording, missing=(last,))
    return replace(workload, ranks=replace(workload.ranks, slow_rank=last, slow_by=size), recording=recording)


def _slow_link(workload: Workload, size: float) -> Workload:
    """Collectives go over a link `size` times as slow."""
    return replace(workload, ranks=replace(workload.ranks, bandwidth=workload.ranks.bandwidth / size))


def _due_buckets(workload: Workload, size: float) -> Workload:
    """The same, and gradients are reduced as DistributedDataParallel does it by itself."""
    slow = _slow_link(workload, size)
    return replace(slow, ranks=replace(slow.ranks, bucket=25 * 2**20, first_bucket=2**20))


def _late_buckets(workload: Workload, size: float) -> Workload:
    """The same, and all gradients are reduced at once after the backward pass."""
    slow = _slow_link(workload, size)
    return replace(slow, ranks=replace(slow.ranks, bucket=2**62, first_bucket=0))


def _free_host(workload: Workload, _: float) -> Workload:
    """The host needs next to no time to launch the same work."""
    host = replace(workload.host, op=1, python=1, launch=1, copy=1, other=1)
    return replace(workload, host=host, queue=replace(workload.queue, on=False, call=1))


def _steps(workload: Workload, size: float) -> Workload:
    """So many steps are recorded."""
    return replace(workload, steps=round(size))


def _micro_steps(workload: Workload, size: float) -> Workload:
    """So many forward and backward passes before the optimizer's step, over a link three times as slow."""
    return replace(_slow_link(workload, 3), script=replace(workload.script, micro_steps=round(size)))


def _fast_host(workload: Workload, size: float) -> Workload:
    """The host's operators and Python take `size` µs each."""
    return replace(workload, host=replace(workload.host, op=round(size * US), python=round(size * US)))


def _sharded(workload: Workload, _: float) -> Workload:
    """Parameters and gradients are sharded."""
    return replace(workload, ranks=replace(workload.ranks, strategy="sharded", bandwidth=300e9))


PROGRAM: dict[str, Apply] = {
    "program_pause": _script(pause=_ms),
    "collections": _script(collections=_ms),
    "compile_once": _script(compile_once=_ms),
    "compile_again": _script(compile_again=_ms),
    "slow_op": _script(slow_op=_us),
    "small_copies": _script(small_copies=round),
    "churn": _script(churn=round),
    "blocking_metric": _script(metric=lambda size: round(size * 2**20), metric_waits=_true),
    "barrier": _script(barrier=_true),
    "norm": _script(norm=_true),
    "metric": _script(metric=lambda size: round(size * 2**20)),
    "graph": _script(graph=lambda _: "before"),
    "graph_capture": _script(graph=lambda _: "within"),
    "casts": _model(casts=round),
    "relayouts": _model(relayouts=round),
    "quantized": _model(quantized=lambda _: "in steps"),
    "dequantized": _model(quantized=lambda _: "at once"),
    "vocabulary": _model(vocabulary=round),
    "tokens": _model(sequence=round),
    "loaded_in_loop": _loaded_in_loop,
    "loaded_beside": _loaded_beside,
    "ready_batches": _ready_batches,
    "dead_rank": _dead_rank,
    "slow_link": _slow_link,
    "due_buckets": _due_buckets,
    "late_buckets": _late_buckets,
    "free_host": _free_host,
    "steps": _steps,
    "micro_steps": _micro_steps,
    "fast_host": _fast_host,
    "sharded": _sharded,
    "behind": _recording(behind=_us),
    "drift": _recording(drift=lambda size: size / 1e6),
    "excerpt": _recording(cut=_us),
    "unmarked": _recording(unmarked=round),
}
"""By name; sizes are in the unit of the value: ms, µs, MB (of the metric), ns a ms (of the drift)."""
