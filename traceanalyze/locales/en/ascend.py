"""What only reports of Ascend profiles say: the profile's own tables, and its two exports."""

from __future__ import annotations

MESSAGES = {
    "vendor_planes": "From {source}, for comparison: it looks at one plane of links; most waiting stands under rest.",
}

CHECKS = {
    "vendor_differs_computing": (
        "The profile's own numbers ({source}) differ by more than 1 %: computing is {theirs_ns} there, {ours_ns} here."
    ),
    "vendor_differs_communication": (
        "The profile's own numbers ({source}) differ by more than 1 %: communication is {theirs_ns} there, {ours_ns} "
        "here."
    ),
    "vendor_differs_not_overlapped": (
        "The profile's own numbers ({source}) differ by more than 1 %: communication that nothing hides is {theirs_ns} "
        "there, {ours_ns} here."
    ),
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
    "exports_differ_step_count": (
        "{source}, the other export of this profile, has {theirs} step(s), this one {ours}; are both of one run?"
    ),
    "exports_differ_step_time": (
        "{source}, the other export of this profile, has {theirs_ns} of steps on the host, this one {ours_ns}; are "
        "both of one run?"
    ),
    "exports_differ_computing": (
        "{source}, the other export of this profile, has {theirs_ns} of computing, this one {ours_ns}; are both of "
        "one run?"
    ),
    "exports_differ_not_overlapped": (
        "{source}, the other export of this profile, has {theirs_ns} of communication that nothing hides, this one "
        "{ours_ns}; are both of one run?"
    ),
    "exports_differ_free": (
        "{source}, the other export of this profile, has {theirs_ns} of free time, this one {ours_ns}; are both of "
        "one run?"
    ),
    "exports_differ_kernel_count": (
        "{source}, the other export of this profile, has {theirs} compute kernel(s), this one {ours}; are both of one "
        "run?"
    ),
    "exports_differ_kernel_time": (
        "{source}, the other export of this profile, has {theirs_ns} of compute kernels, this one {ours_ns}; are both "
        "of one run?"
    ),
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
    "no_device_events.ascend": _BOTH,
    "no_host_events.ascend": _BOTH,
    "no_api.ascend": _BOTH,
    "no_cann_calls.ascend": f"see launches and sync points: {_LEVEL}",
    "no_collective_tasks.ascend": f"tell waiting from transfer: {_LEVEL}",
    # No option of torch_npu records which stream waits for which.
    "no_stream_waits.ascend": "",
}
