"""What to check about each part of a step that takes longer; `locales/en/__init__.py` adds these texts."""

from __future__ import annotations

TERMS = {
    "check_compute": (
        "compare shapes, data types and implementations of these kernels; on equal devices, the same kernels that each "
        "take longer point to a lower clock or to other work on the device"
    ),
    "check_communication": (
        "tell waiting for a late rank from transfer, for which all ranks have to be recorded, then compare sizes and "
        "numbers of the collectives"
    ),
    "check_memory_ops": "look for copies that are new, larger, or from memory that is not pinned",
    "check_data_loading": (
        "look at num_workers, persistent_workers and pin_memory of the loader, at the storage, and at what "
        "is decoded for each sample"
    ),
    "check_sync": (
        "look for what makes the host wait: .item(), .cpu(), printing of losses; analysing the candidate "
        "alone names the source lines"
    ),
    "check_peer_wait": "record all ranks and look at the one the others wait for",
    "check_dispatch": (
        "look for more and smaller kernels: fuse them, capture them as a graph, or raise the batch size"
    ),
    "check_host_op": (
        "look at the Python code around these operators and at load, clock rate and binding of the CPU; see "
        "that both sides were recorded with the same options"
    ),
    "check_device_side": "look at streams and events in the timeline: what the next kernel waits for",
    "check_untraced": "see what the host does there: record both sides with stacks (with_stack=True), if they were not",
    "check_idle": "record both sides with the same options, so that the causes can be told apart",
    "check_outside_calls": "record both sides with the same options, so that the causes can be told apart",
    "check_host_side": "record both sides at the same profiler level, so that the causes can be told apart",
    "check_api": "look at the runtime calls that take longer, in the table of calls",
    "check_step": "record the device on both sides",
}

MESSAGES = {
    "advice": "Where to look",
    "compare_advice": "{part} {diff}: {check}.",
    "compare_advice_cause": "{part} {diff} (largest: {cause} {cause_diff}): {check}.",
}
