"""Random workloads for property tests: small, but of every kind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.simulate.faults import FAULTS
from tests.simulate.workload import (
    MS,
    US,
    Device,
    Fault,
    Host,
    Loader,
    Model,
    Ranks,
    Recording,
    Script,
    TaskQueue,
    Workload,
)
from tests.simulate.writers.ascend_layouts import ERAS, AscendLayout

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SIZES: dict[str, tuple[float, float]] = {
    "slow_loader": (5, 40),
    "item_sync": (1, 3),
    "device_sync": (1, 2),
    "pageable_copy": (1, 20),
    "small_kernels": (8, 512),
    "gc_pause": (0.5, 20),
    "straggler": (1.1, 3),
    "exposed_comm": (1, 8),
    "empty_cache": (0.05, 1),
    "host_slow": (1.5, 8),
    "fp32": (2, 8),
    "unlinked": (2, 9),
    "leftover": (0.1, 12),
    "late_launch": (1, 9),
    "host_barrier": (1.1, 2),
}
"""Sensible sizes of each fault."""


def faults() -> SearchStrategy[tuple[Fault, ...]]:
    """Up to three faults."""
    one = st.sampled_from(sorted(FAULTS)).flatmap(
        lambda name: st.floats(*SIZES[name]).map(lambda size: Fault(name, round(size, 2)))
    )
    return st.lists(one, max_size=3, unique_by=lambda fault: fault.name).map(tuple)


def _models() -> SearchStrategy[Model]:
    return st.builds(
        Model,
        layers=st.integers(1, 2),
        hidden=st.sampled_from((128, 512, 2048)),
        heads=st.just(8),
        sequence=st.sampled_from((64, 256)),
        batch=st.integers(1, 16),
        vocabulary=st.sampled_from((1000, 32000)),
    )


def workloads(*, tick: int) -> SearchStrategy[Workload]:
    """Workloads on a clock of `tick` ns."""
    return st.builds(
        Workload,
        model=_models(),
        loader=st.builds(
            Loader, cost=st.integers(100 * US, 9 * MS), workers=st.integers(0, 3), prefetch=st.integers(1, 2)
        ),
        script=st.builds(Script, optimizer=st.sampled_from(("fused", "foreach", "for_loop")), pinned=st.booleans()),
        host=st.builds(
            Host, op=st.integers(300, 9_000), python=st.integers(300, 20_000), launch=st.integers(900, 9_000)
        ),
        device=st.builds(
            Device,
            vendor=st.sampled_from(("nvidia", "amd")),
            latency=st.integers(500, 25_000),
            gap=st.integers(0, 15_000),
            floor=st.integers(100, 3_000),
            queue=st.sampled_from((1000, 1000, 5)),
        ),
        ranks=st.builds(
            Ranks,
            count=st.integers(1, 2),
            strategy=st.sampled_from(("ddp", "sharded")),
            bucket=st.sampled_from((2**20, 2**26)),
            bandwidth=st.sampled_from((5e9, 100e9)),
        ),
        recording=st.builds(
            Recording,
            stacks=st.booleans(),
            clock_offset=st.sampled_from((0, 7 * MS)),
            behind=st.sampled_from((0, 0, 34 * US)),
        ),
        faults=faults(),
        warmup=st.integers(0, 1),
        steps=st.integers(1, 3),
        seed=st.integers(0, 1000),
        tick=st.just(tick),
    ).map(_clock_that_shows)


def _clock_that_shows(workload: Workload) -> Workload:
    """Where every launch is late, or waits behind earlier work, nothing tells by how much a clock is behind."""
    late = any(fault.name in {"late_launch", "leftover"} for fault in workload.faults)
    return replace(workload, recording=replace(workload.recording, behind=0)) if late else workload


def npu_workloads() -> SearchStrategy[Workload]:
    """The same on an NPU, with and without its task queue."""
    queues = st.builds(
        TaskQueue, on=st.booleans(), hand_over=st.integers(500, 30_000), dequeue=st.integers(300, 12_000)
    )
    return st.builds(_on_npu, workloads(tick=10), queues)


def _on_npu(workload: Workload, queue: TaskQueue) -> Workload:
    return replace(workload, device=replace(workload.device, vendor="ascend"), queue=queue)


def ascend_layouts() -> SearchStrategy[AscendLayout]:
    """Every era; levels that record the calls."""
    return st.builds(
        AscendLayout,
        era=st.sampled_from(ERAS),
        level=st.sampled_from((1, 2)),
        shapes=st.booleans(),
        crlf=st.booleans(),
        device=st.sampled_from((0, 5)),
    )
