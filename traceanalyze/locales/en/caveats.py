"""What makes two sides of a comparison unlike; `locales/en/__init__.py` adds these texts to the others."""

from __future__ import annotations

MESSAGES = {
    "no_device_on_either": "No device was recorded: host time is compared.",
    "no_device_on_one": "The {side} has no device events: only the length of the step can be compared.",
    "devices_differ": "Different devices: base {base}, candidate {candidate}.",
    "idle_as_one": (
        "The {side} has no runtime calls, so causes of idle time cannot be told apart: idle time is compared as one "
        "part, and runtime calls are not compared."
    ),
    "outside_calls_as_one": (
        "The {side} has no host operators: idle time outside runtime calls (data loading, operators, waiting for "
        "peers, untraced) is compared as one part."
    ),
    "levels_differ": (
        "Different profiler levels: base {base}, candidate {candidate}; what only the higher level records is not "
        "comparable."
    ),
    "levels_differ_in_calls": (
        "Different profiler levels: base {base}, candidate {candidate}. Level0 leaves out most runtime calls and what "
        "collectives consist of: idle time in host operators, launches and waits is compared as one part; runtime "
        "calls and waiting for other ranks are not comparable."
    ),
    "whole_trace_on_one": (
        "The {side} has no step marker: the whole of its device work counts as one step, so times per step are not "
        "comparable."
    ),
    "whole_traces": (
        "No step markers: from first to last device event counts as one step; compare only recordings of equal work."
    ),
    "steps_differ": "Steps are chosen in different ways: base {base}, candidate {candidate}.",
    "world_sizes_differ": "Runs of different size: base {base} rank(s), candidate {candidate}.",
    "rank_counts_differ": "Not as many ranks were recorded: base {base}, candidate {candidate}.",
    "ranks_differ": "Different ranks are compared: base rank {base}, candidate rank {candidate}.",
    "coverage_differs": (
        "The operator is known for {base_share} of compute time in the base, {candidate_share} in the candidate: "
        "differences between operators are partly those of recording, so compute is compared by kind of kernel."
    ),
    "clocks_differ": (
        "Different clocks: base {base_ns}, candidate {candidate_ns}; the coarse one shows short kernels too long or "
        "without duration."
    ),
    "api_on_one": "The {side} has no runtime calls: they are not compared.",
    "host_ops_on_one": "The {side} has no host operators: they are not compared.",
    "shapes_on_one": "The {side} has no shapes: nothing can be matched by shape.",
    "modules_on_one": "The {side} has no modules: they are not compared.",
    "stacks_on_one": "The {side} has no Python stacks: source lines are known for the other side only.",
    "memory_on_one": "The {side} has no memory records: memory is not compared.",
    "options_differ": (
        "Recording options that slow the host down were on for one side only: base {base}, candidate {candidate}; "
        "host time is longer there for that reason too."
    ),
    "side_truncated": "The file of the {side} is cut short: later work is missing.",
    "side_salvaged": "Broken in the file of the {side} and left out: {count} event(s) or place(s).",
    "side_left_out": "Incomplete in the {side} and left out: {steps} step(s).",
}

TERMS = {
    "base": "base",
    "candidate": "candidate",
    "h2d": "host to device",
    "d2h": "device to host",
    "d2d": "inside the device",
    "p2p": "device to device",
    "h2h": "host to host",
    "unknown": "direction unknown",
    "fill": "fills",
    "peak_recorded": "recorded allocations less frees",
}

REASONS = {
    "needs_all_ranks": "needs the recordings of all ranks",
}
