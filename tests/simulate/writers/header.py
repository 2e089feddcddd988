"""What a trace file says about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule
    from tests.simulate.writers.layouts import Layout


def header(schedule: Schedule, layout: Layout, base: int) -> dict[str, Any]:
    """Members of the root beside the events, `schemaVersion` first."""
    workload = schedule.workload
    members: dict[str, Any] = {"schemaVersion": 1}
    if layout.with_device:
        members["deviceProperties"] = [_device(schedule, layout)]
    if layout.relative:
        stacks = int(workload.recording.stacks)
        members |= {"record_shapes": 1, "profile_memory": 1, "with_stack": stacks, "with_modules": stacks}
        members["trace_id"] = f"{schedule.rank + 1:032X}"
    if layout.relative and layout.with_device:
        cuda = {"cuda_runtime_version": 12060, "cuda_driver_version": 12060, "cupti_version": 24}
        members |= {} if layout.xpu else {"hip_runtime_version": 60243483} if layout.hip else cuda
    if workload.ranks.count > 1 and layout.name != "2021":
        members["distributedInfo"] = _distributed(schedule, layout)
    if layout.relative:
        members |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": base}
    members["traceName"] = "trace.json"
    return members


def _device(schedule: Schedule, layout: Layout) -> dict[str, Any]:
    device = schedule.workload.device
    return {
        "id": layout.device,
        "name": device.name,
        "totalGlobalMem": device.memory,
        "computeMajor": 9 if layout.hip else 8,
        "computeMinor": 4 if layout.hip else 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "warpSize": 64 if layout.hip else 32,
        "numSms": device.units,
    }


def _distributed(schedule: Schedule, layout: Layout) -> dict[str, Any]:
    world = layout.world or schedule.workload.ranks.count
    found: dict[str, Any] = {"backend": "nccl", "rank": schedule.rank, "world_size": world}
    if layout.relative:
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": world}
        found |= {"pg_count": 1, "pg_config": [group | {"ranks": list(range(world))}], "nccl_version": "2.26.2"}
    return found
