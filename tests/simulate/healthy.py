"""Healthy workloads by every rule's own sources: the grids fill whole waves, the host is ahead, the links are fast."""

from __future__ import annotations

from dataclasses import replace

from tests.simulate.workload import MS, US, Device, Host, Loader, Model, Ranks, Script, Workload

HEALTHY = Workload(model=Model(layers=2), device=Device(units=96), warmup=2, steps=4, seed=7)
"""Steps of 7 ms; the host needs half of that."""
LIGHT = replace(HEALTHY, model=Model(layers=2, batch=4), host=Host(op=2 * US, python=2 * US))
"""Steps of 4 ms, in which a sync costs a notable part; the host still is fast enough."""
SLOW_LOG = replace(LIGHT, script=Script(log=400 * US))
"""What is done with a value that is read takes long."""
SLOW_WAKE = replace(LIGHT, host=replace(LIGHT.host, wake=60 * US), steps=8)
"""The operating system takes its time to wake a thread that waited."""
LARGE = replace(HEALTHY, model=Model(layers=4))
A100 = replace(HEALTHY, device=Device(units=96, name="NVIDIA A100-SXM4-80GB"))
"""A device whose peak rates are known."""
DEEP = replace(HEALTHY, model=Model(layers=6, hidden=512))
WIDE = replace(HEALTHY, model=Model(layers=2, hidden=2048))
LONG = replace(HEALTHY, model=Model(layers=2, sequence=2048, batch=4))
TWO = replace(HEALTHY, ranks=Ranks(2, bucket=25 * 2**20, first_bucket=2**20, block=512))
"""In buckets as DistributedDataParallel fills them by itself."""
SHARDED = replace(HEALTHY, ranks=Ranks(3, "sharded", bandwidth=300e9, block=512))


def on_npu(workload: Workload) -> Workload:
    """The same training on an NPU, on the clock of its files."""
    return replace(workload, device=replace(workload.device, vendor="ascend", name="Ascend910B"), tick=10)


RUNS: dict[str, Workload] = {
    "healthy": HEALTHY,
    "large": LARGE,
    "light": LIGHT,
    "slow_log": SLOW_LOG,
    "slow_wake": SLOW_WAKE,
    "a100": A100,
    "deep": DEEP,
    "wide": WIDE,
    "long": LONG,
    "other_seed": replace(HEALTHY, seed=3),
    "many_steps": replace(HEALTHY, steps=8),
    "loaded_in_the_loop": replace(HEALTHY, loader=Loader(cost=MS // 4, workers=0)),
    "two_ranks": TWO,
    "sharded": SHARDED,
}
"""By name; each is run on GPUs and on NPUs."""
