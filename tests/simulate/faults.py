"""What can go wrong, by name. A fault is a function from a workload and a size to the workload that has it.

To add one, write the function, and say in `moves` which numbers of the truth it raises.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.simulate.more_faults import MORE
from tests.simulate.workload import MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulate.workload import Workload


@dataclass(frozen=True, slots=True)
class Kind:
    """A fault that can be switched on."""

    apply: Callable[[Workload, float], Workload]
    moves: tuple[str, ...]
    """Idle causes or parts of the step that it raises."""


FAULTS: dict[str, Kind] = {}


def _fault(*moves: str) -> Callable[[Callable[[Workload, float], Workload]], Callable[[Workload, float], Workload]]:
    def register(apply: Callable[[Workload, float], Workload]) -> Callable[[Workload, float], Workload]:
        FAULTS[apply.__name__] = Kind(apply, moves)
        return apply

    return register


def with_faults(workload: Workload) -> Workload:
    """The workload after all its faults."""
    for fault in workload.faults:
        apply = MORE[fault.name] if fault.name in MORE else FAULTS[fault.name].apply
        workload = apply(workload, fault.size)
    return workload


def without(workload: Workload, name: str) -> Workload:
    """The same workload and seed without one of its faults."""
    return replace(workload, faults=tuple(fault for fault in workload.faults if fault.name != name))


@_fault("data_loading")
def slow_loader(workload: Workload, size: float) -> Workload:
    """Batches take `size` ms, and come from one worker."""
    return replace(workload, loader=replace(workload.loader, cost=round(size * MS), workers=1))


@_fault("sync_idle_caused")
def item_sync(workload: Workload, size: float) -> Workload:
    """`size` times a step the loss is read."""
    return replace(workload, script=replace(workload.script, items=round(size)))


@_fault("sync_idle_caused")
def device_sync(workload: Workload, size: float) -> Workload:
    """`size` times a step the host waits for the whole device."""
    return replace(workload, script=replace(workload.script, device_syncs=round(size)))


@_fault("mem_exposed", "sync_idle_caused")
def pageable_copy(workload: Workload, size: float) -> Workload:
    """Batches are in pageable memory, copied at `size` GB/s."""
    device = replace(workload.device, pageable=size * 1e9)
    return replace(workload, device=device, script=replace(workload.script, pinned=False))


@_fault("dispatch.launch", "host_op")
def small_kernels(workload: Workload, size: float) -> Workload:
    """Kernels do a `size`-th of the work each: a batch of one short sequence."""
    model = workload.model
    small = replace(model, batch=1, sequence=max(1, round(model.sequence * model.batch / size)))
    return replace(workload, model=small)


@_fault("untraced")
def gc_pause(workload: Workload, size: float) -> Workload:
    """The host stops for `size` ms in every step and no event says so."""
    return replace(workload, script=replace(workload.script, pause=round(size * MS)))


@_fault("compute")
def straggler(workload: Workload, size: float) -> Workload:
    """The last rank's kernels take `size` times as long."""
    ranks = replace(workload.ranks, slow_rank=workload.ranks.count - 1, slow_by=size)
    return replace(workload, ranks=ranks)


@_fault("comm_exposed")
def exposed_comm(workload: Workload, size: float) -> Workload:
    """All gradients are reduced at once after the backward pass, over a link `size` times as slow."""
    ranks = replace(workload.ranks, bucket=2**62, first_bucket=0, bandwidth=workload.ranks.bandwidth / size)
    return replace(workload, ranks=ranks)


@_fault("dispatch.alloc")
def empty_cache(workload: Workload, size: float) -> Workload:
    """The allocator gives its memory back after every step; getting a segment costs `size` ms."""
    host = replace(workload.host, allocate=round(size * MS))
    return replace(workload, host=host, script=replace(workload.script, empty_cache=True))


@_fault("host_op", "untraced")
def host_slow(workload: Workload, size: float) -> Workload:
    """Python and operators cost `size` times as much."""
    host = workload.host
    return replace(workload, host=replace(host, op=round(host.op * size), python=round(host.python * size)))


@_fault("compute")
def fp32(workload: Workload, size: float) -> Workload:
    """Single precision: matrix kernels `size` times slower, tensors twice as large."""
    device = replace(workload.device, flops=workload.device.flops / size)
    return replace(workload, device=device, model=replace(workload.model, dtype="float"))


@_fault("unlinked")
def unlinked(workload: Workload, size: float) -> Workload:
    """One of `size` kernels has no launch record."""
    return replace(workload, recording=replace(workload.recording, unlinked=round(size)))


@_fault("lead_in")
def leftover(workload: Workload, size: float) -> Workload:
    """Work launched before recording keeps the device busy for `size` ms of the first step."""
    return replace(workload, recording=replace(workload.recording, leftover=round(size * MS)))


@_fault("compute_dur")
def late_launch(workload: Workload, size: float) -> Workload:
    """A second thread launches `size` kernels a step on a stream of its own."""
    return replace(workload, script=replace(workload.script, side_kernels=round(size)))


@_fault("peer_wait")
def host_barrier(workload: Workload, size: float) -> Workload:
    """Ranks meet on the host before every step; the last one's kernels take `size` times as long."""
    return replace(straggler(workload, size), script=replace(workload.script, barrier=True))
