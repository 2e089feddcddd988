"""What only reports of Ascend profiles say: the profile's own tables, and its two exports."""

from __future__ import annotations

MESSAGES = {
    "vendor_planes": "From {source}, for comparison: it looks at one plane of links; most waiting stands under rest.",
}

CHECKS = {
    **{
        f"vendor_differs_{key}": (
            f"The profile's own numbers ({{source}}) differ by more than 1 %: {what} is {{theirs_ns}} there, "
            "{ours_ns} here."
        )
        for key, what in (
            ("computing", "computing"),
            ("communication", "communication"),
            ("not_overlapped", "communication that nothing hides"),
        )
    },
    "collectives_missing": (
        "{source} lists {count} collective(s), {time_ns} in all, that the timeline does not hold: communication is "
        "too low."
    ),
    "collectives_differ": (
        "{source} gives {count} of {of} collective(s) another duration than the timeline; {name} most: {theirs_ns} "
        "there, {ours_ns} here."
    ),
    "link_bytes_differ": (
        "{source} says that {theirs_bytes} moved over {link}; the transfers of the timeline moved {ours_bytes}."
    ),
    "exports_agree": "{source}, the other export of this profile, agrees in all {count} numbers that were compared.",
    "exports_not_compared": "{source}, the other export of this profile, holds no number to compare.",
    **{
        f"exports_differ_{key}": (
            f"{{source}}, the other export of this profile, has {theirs}, this one {ours}; are both of one run?"
        )
        for key, theirs, ours in (
            ("step_count", "{theirs} step(s)", "{ours}"),
            ("step_time", "{theirs_ns} of steps on the host", "{ours_ns}"),
            ("computing", "{theirs_ns} of computing", "{ours_ns}"),
            ("not_overlapped", "{theirs_ns} of communication that nothing hides", "{ours_ns}"),
            ("free", "{theirs_ns} of free time", "{ours_ns}"),
            ("kernel_count", "{theirs} compute kernel(s)", "{ours}"),
            ("kernel_time", "{theirs_ns} of compute kernels", "{ours_ns}"),
        )
    },
    "wait_of_one_plane": (
        "{source} tells {theirs_ns} of waiting in collectives, that of one plane of links; over all planes {ours_ns} "
        "passed without transfer. What is called idle there is mostly waiting for other ranks too."
    ),
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
