"""What only reports of Ascend profiles say: the profile's own tables, and its two exports."""

from __future__ import annotations

MESSAGES = {
    "vendor_planes": "From {source}, for comparison: it looks at one plane of links; most waiting stands under rest.",
}


_BOTH = "record host and device: torch_npu.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU])"
_LEVEL = (
    "profile(experimental_config=torch_npu.profiler._ExperimentalConfig("
    "profiler_level=torch_npu.profiler.ProfilerLevel.Level1))"
)

HINTS = {
    **dict.fromkeys(("no_device_events.ascend", "no_host_events.ascend", "no_api.ascend"), _BOTH),
    "no_cann_calls.ascend": f"see launches and sync points: {_LEVEL}",
    "no_collective_tasks.ascend": f"tell waiting from transfer: {_LEVEL}",
    # No option of torch_npu records which stream waits for which.
    "no_stream_waits.ascend": "",
}
