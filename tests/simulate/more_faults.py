"""Further faults, each a function from a workload and a size to the workload that has it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulate.program_faults import PROGRAM
from tests.simulate.workload import MS, US

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulate.workload import Workload

    Apply = Callable[[Workload, float], Workload]


def _plain_attention(workload: Workload, size: float) -> Workload:
    """Attention is computed operator by operator, on sequences of `size` tokens."""
    model = workload.model
    return replace(workload, model=replace(model, attention="plain", sequence=round(size)))


def _written_out(workload: Workload, size: float) -> Workload:
    """The activation function is `size` operators."""
    return replace(workload, model=replace(workload.model, activation=round(size)))


def _odd_vocabulary(workload: Workload, size: float) -> Workload:
    """The vocabulary is one more than a multiple of 8, and products with it take `size` times as long."""
    model = replace(workload.model, vocabulary=workload.model.vocabulary + 1)
    return replace(workload, model=model, device=replace(workload.device, misaligned=size))


def _layout_changes(workload: Workload, size: float) -> Workload:
    """Before every matrix product a kernel of `size` µs changes the layout of its input (NPU)."""
    return replace(workload, device=replace(workload.device, layout_change=round(size * US)))


def _loop_optimizer(workload: Workload, size: float) -> Workload:
    """The optimizer goes through the parameters one by one; the model has `size` layers."""
    model = replace(workload.model, layers=round(size))
    return replace(workload, model=model, script=replace(workload.script, optimizer="for_loop"))


def _listed_optimizer(workload: Workload, size: float) -> Workload:
    """The optimizer takes lists of parameters, an operation at a time; the model has `size` layers."""
    model = replace(workload.model, layers=round(size))
    return replace(workload, model=model, script=replace(workload.script, optimizer="foreach"))


def _zero_fill(workload: Workload, size: float) -> Workload:
    """Gradients are filled with zeros; the model has `size` layers."""
    model = replace(workload.model, layers=round(size))
    return replace(workload, model=model, script=replace(workload.script, zero_fill=True))


def _pinning(workload: Workload, size: float) -> Workload:
    """Batches are pinned in the loop, in `size` ms."""
    return replace(workload, script=replace(workload.script, pin=round(size * MS)))


def _new_workers(workload: Workload, size: float) -> Workload:
    """Every fifth batch the loader starts its workers anew, in `size` ms."""
    return replace(workload, loader=replace(workload.loader, restart=round(size * MS)))


def _norm_read(workload: Workload, size: float) -> Workload:
    """The norm of the gradients is read in every step; Python needs `size` µs for it."""
    return replace(workload, script=replace(workload.script, norm_reads=round(size * US)))


def _unused_search(workload: Workload, size: float) -> Workload:
    """DDP looks for unused parameters for `size` ms."""
    return replace(workload, script=replace(workload.script, unused_search=round(size * MS)))


def _always_synced(workload: Workload, size: float) -> Workload:
    """Gradients are reduced in each of several micro-steps, over a link `size` times as slow."""
    ranks = replace(workload.ranks, bandwidth=workload.ranks.bandwidth / size)
    return replace(workload, ranks=ranks, script=replace(workload.script, no_sync=False))


def _list_gather(workload: Workload, size: float) -> Workload:
    """Parameters are gathered into a list of tensors; the model has `size` layers."""
    model = replace(workload.model, layers=round(size))
    return replace(workload, model=model, ranks=replace(workload.ranks, lists=True))


def _scalar_kernel(workload: Workload, size: float) -> Workload:
    """An operator that only the scalar processors of an NPU have takes `size` µs longer."""
    return replace(workload, device=replace(workload.device, scalar_extra=round(size * US)))


def _late_batches(workload: Workload, size: float) -> Workload:
    """Batches of the last rank come from one worker, which takes `size` ms longer than those of the others."""
    late = replace(workload.ranks, slow_rank=workload.ranks.count - 1, slow_batches=round(size * MS))
    return replace(workload, ranks=late, loader=replace(workload.loader, workers=1))


def _late_host(workload: Workload, size: float) -> Workload:
    """The last rank's host stops for `size` ms in every step."""
    late = replace(workload.ranks, slow_rank=workload.ranks.count - 1, slow_pause=round(size * MS))
    return replace(workload, ranks=late)


MORE: dict[str, Apply] = {
    "plain_attention": _plain_attention,
    "written_out": _written_out,
    "odd_vocabulary": _odd_vocabulary,
    "layout_changes": _layout_changes,
    "loop_optimizer": _loop_optimizer,
    "listed_optimizer": _listed_optimizer,
    "zero_fill": _zero_fill,
    "pinning": _pinning,
    "new_workers": _new_workers,
    "norm_read": _norm_read,
    "unused_search": _unused_search,
    "always_synced": _always_synced,
    "list_gather": _list_gather,
    "scalar_kernel": _scalar_kernel,
    "late_batches": _late_batches,
    "late_host": _late_host,
    **PROGRAM,
}
"""By name. Where the size changes the amount of work, the workload without the fault must be given that size, too."""
