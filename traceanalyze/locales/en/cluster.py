"""Texts about the ranks of a run side by side."""

from __future__ import annotations

TERMS = {
    "compute_and_host": "compute, data loading, host work",
    "gc": "garbage collection",
    "role_tensor": "tensor parallel",
    "role_pipeline": "pipeline",
    "role_data": "data parallel",
    "role_expert": "expert parallel",
    "role_context": "context parallel",
    "late_compute": "its compute is longer",
    "late_memory_ops": "its copies and fills are longer",
    "late_data_loading": "it waits longer for data",
    "late_dispatch": "its host launches work more slowly",
    "late_sync": "it waits longer at synchronisation points",
    "late_device_gap": "its device is idle longer between launched work",
    "late_untraced": "its device is idle longer while nothing is recorded on the host",
    "late_gc": "its garbage collector pauses it",
}

MESSAGES = {
    "straggler": "Rank {rank} makes the others wait {wait} a step ({share}).",
    "straggler_because": "Rank {rank} makes the others wait {wait} a step ({share}), because {phase}.",
    "waited_for_absent": (
        "In collectives the recorded ranks wait {wait} a step ({share}), most of it for rank {rank} of the group, which"
        " was not recorded."
    ),
    "waits_bounded": "Ranks {ranks} were not recorded: transfers are upper, waits lower bounds, nobody is blamed.",
    "waits_perhaps_bounded": (
        "Nothing tells whether all ranks are here: transfers are upper bounds, waits lower bounds, nobody is blamed."
    ),
    "matching_stopped_kind": (
        "{count} collectives are not matched: ranks run different types in the same place (steps: {steps})."
    ),
    "matching_stopped_bytes": (
        "{count} collectives are not matched: ranks state different sizes in the same place (steps: {steps})."
    ),
    "matching_stopped_count": ("{count} collectives are not matched: ranks do not have equally many (steps: {steps})."),
    "collectives_outside_steps": "{count} collectives of all ranks lie outside the steps that all ranks recorded.",
}

REASONS = {
    "no_matched_collectives": "the ranks share no collectives for which waiting is defined",
    "ranks_missing": "not all ranks of any group are known to be recorded",
    "few_steps_for_stragglers": "needs at least 3 steps that all ranks recorded completely",
    "no_common_steps": "the ranks recorded no step in common",
    "clocks_too_uneven": "the clocks of the ranks cannot be aligned well enough",
    "no_recorded_pauses": "not every rank tells about its garbage collector",
}
