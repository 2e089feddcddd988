"""The workloads of the generated samples, each with the one fault that it shows."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulate.pair import Difference
from tests.simulate.workload import MS, US, Device, Fault, Loader, Model, Ranks, Recording, Script, Workload
from tests.simulate.writers.layouts import TODAY, YEAR_2021, Layout

_MODEL = Model(layers=4, hidden=1024, sequence=512, batch=8, vocabulary=16384)
_SHORT = Model(layers=2, hidden=1536, sequence=512, batch=6, vocabulary=8192)
_USUAL = Workload(model=_MODEL, loader=Loader(cost=6 * MS), warmup=2, steps=6, first_step=3)


@dataclass(frozen=True, slots=True)
class Case:
    """One folder of `sample_traces`."""

    name: str
    title: str
    """What the sample shows."""
    workload: Workload
    layout: Layout = TODAY


def _with(seed: int, *faults: Fault, **parts: object) -> Workload:
    values = {name: getattr(_USUAL, name) for name in ("model", "loader", "warmup", "steps", "first_step")}
    return Workload(**(values | parts), seed=seed, faults=faults)  # type: ignore[arg-type]


def cases() -> tuple[Case, ...]:
    """All generated samples."""
    slow_loader = Fault("slow_loader", 32)
    return (
        Case("gpu_data_loading", "The device waits for the data loader", _with(1, slow_loader)),
        Case(
            "gpu_sync",
            "loss.item() in every step empties the queue",
            _with(2, Fault("item_sync", 2), script=Script(log=1_500 * US), model=_SHORT, steps=5),
        ),
        Case("gpu_healthy", "The host is ahead of the device all the time", _with(3)),
        Case(
            "gpu_launch_bound",
            "Kernels so small that launching them takes longer",
            _with(4, Fault("small_kernels", 256), loader=Loader(cost=MS), script=Script(optimizer="for_loop")),
        ),
        Case(
            "gpu_two_ranks",
            "Gradients are reduced after the backward pass over a slow link, and rank 1 is slower",
            _with(
                5,
                Fault("exposed_comm", 10),
                Fault("straggler", 1.15),
                ranks=Ranks(2),
                recording=Recording(clock_offset=3 * MS),
            ),
        ),
        Case(
            "gpu_2021_layout",
            "A slow data loader, recorded in the layout of 2021",
            _with(6, slow_loader, model=_SHORT, steps=5, tick=US, device=Device(name="Example GPU of 2021", units=80)),
            YEAR_2021,
        ),
    )


_NPU_MODEL = Model(layers=1, hidden=1024, sequence=512, batch=4, vocabulary=4096)
NPU = Workload(
    model=_NPU_MODEL,
    loader=Loader(cost=3 * MS),
    script=Script(log=900 * US),
    device=Device(vendor="ascend", name="Example NPU"),
    faults=(Fault("item_sync", 1),),
    warmup=2,
    steps=3,
    seed=7,
    tick=10,
)
"""One rank of an NPU that reads its loss in every step."""

PAIR = Workload(
    model=Model(layers=1, hidden=1536, sequence=512, batch=6, vocabulary=8192),
    loader=Loader(cost=3 * MS, workers=0),
    script=Script(device_syncs=1, log=900 * US),
    ranks=Ranks(2),
    steps=3,
    seed=11,
    tick=10,
)
"""Every step ends with a wait for the device, so that what the data loader needs is never hidden."""
PAIR_DIFFERENCES = (
    Difference("slower_loader", 4),
    Difference("slower_matmul", 150),
    Difference("slower_all_reduce", 900),
    Difference("extra_sync", 1),
    Difference("layout_changes", 40),
)
"""The largest first."""
