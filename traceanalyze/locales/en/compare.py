"""Texts of comparisons; `locales/en/__init__.py` adds them to those of analyses."""

from __future__ import annotations

TABLES = {
    "slower": "Slower in the candidate (per step)",
    "faster": "Faster in the candidate (per step)",
}

TERMS = {
    "all_causes": "all",
    "free": "idle",
    "comm_wait": "waiting for other ranks",
    "comm_transfer": "transfer",
    "fused_communication": "fused with communication",
    "matmul": "matrix products",
    "attention": "attention",
    "attention_forward": "attention, forward",
    "attention_backward": "attention, backward",
    "convolution": "convolution",
    "convolution_forward": "convolution, forward",
    "convolution_backward": "convolution, backward",
    "paged_attention": "paged attention",
    "vector_work": "other kernels by kind",
    "compiled": "compiled (fused)",
    "other": "kind unknown",
    "normalization": "normalization",
    "softmax": "softmax",
    "elementwise": "elementwise",
    "reduction": "reduction",
    "embedding": "embedding",
    "indexing": "indexing and sorting",
    "pooling": "pooling",
    "optimizer": "optimizer",
    "layout": "layout and cast",
    "cube": "on matrix units",
    "vector": "on vector units",
    "units_unknown": "units unknown",
    "group": "group",
    "device_side": "device side",
    "api": "runtime calls",
    "outside_calls": "idle outside runtime calls",
    "host_side": "host operators, launches, waits",
    "dispatch_calls": "dispatch without host operators",
    "peak_allocated": "PyTorch's allocator: allocated",
    "peak_reserved": "PyTorch's allocator: reserved",
    "peak_process": "whole process (driver's count)",
    "peak_memory": "peak memory",
    "device_span": "first to last device event",
    "kernels": "kernels by kind",
    "DataLoader": "DataLoader",
    "only_base": "base only",
    "only_candidate": "candidate only",
    "both_sides": "both",
    "change_new": "new",
    "change_vanished": "gone",
    "change_more": "more of them",
    "change_fewer": "fewer of them",
    "change_longer": "each longer",
    "change_shorter": "each shorter",
    "change_both": "number and each",
    "operator": "operator",
    "collective": "collective",
    "copy": "copy or fill",
    "next_op": "idle before",
    "rest": "rest",
    "section_operators": "operators",
    "section_modules": "modules",
    "section_collectives": "collectives",
    "section_kernels": "kernels",
    "side_base": "base",
    "side_candidate": "candidate",
    "rank_only": "the only one",
    "rank_asked": "asked for",
    "rank_decides": "its step takes longest",
    "rank_same": "the same as the other side's",
    "steps_asked": "asked for",
    "steps_complete": "all complete steps, their mean",
    "steps_median": "the median step",
    "steps_whole_trace": "no step marker: the whole trace",
}

_PARTS = ["{part1} {diff1}", "{part2} {diff2}", "{part3} {diff3}", "{part4} {diff4}"]

MESSAGES = {
    "compare_same": "No difference: both sides take {time} per step, part by part.",
    "compare_faster_0": "The candidate is {diff} ({share}) faster per step: {candidate} after {base}.",
    "compare_slower_0": "The candidate is {diff} ({share}) slower per step: {candidate} after {base}.",
    "compare_even": "No difference that matters: {candidate} after {base} per step ({diff}).",
    "compare_equal_0": "Both sides take {base} per step ({diff}).",
    "compare_unexplained": "What it is made of cannot be told from these profiles.",
    **{
        f"compare_{word}_{count}": (
            f"The candidate is {{diff}} ({{share}}) {word} per step, {{candidate}} after {{base}}: "
            + ", ".join(_PARTS[:count])
            + "."
        )
        for word in ("faster", "slower")
        for count in range(1, len(_PARTS) + 1)
    },
    **{
        f"compare_equal_{count}": "Both sides take {base} per step ({diff}), made up differently: "
        + ", ".join(_PARTS[:count])
        + "."
        for count in range(1, len(_PARTS) + 1)
    },
    "compare_explained_all": "All of the difference is explained.",
    "compare_explained": "{share} of the difference is explained; {rest} is time of unknown cause.",
    "compare_unknown": "{rest} is time of unknown cause.",
    "compare_largest": "Largest single cause: {name} ({part}), {diff}.",
    "compare_span": "First to last device event of a step: base {base}, candidate {candidate} ({diff}).",
    "compare_linked": "Device time whose launch or operator is known: base {base}, candidate {candidate}.",
    "compare_matched": "Matched {section}: {base} of the base's time, {candidate} of the candidate's.",
    "compare_matched_by_name": (
        "Matched {section}: {base} of the base's time, {candidate} of the candidate's; other devices run {section} of "
        "other names, so look at their types."
    ),
    "compare_left_out": "Steps recorded but not compared: base {base}, candidate {candidate}.",
    "compare_clocks": "Clock resolution: base {base}, candidate {candidate}.",
    "compare_levels": "Profiler level: base {base}, candidate {candidate}.",
    "side_note": "{side}: {text}",
    "side_path": "{path}",
    "side_only": "rank {rank}",
    "side_rank": "rank {rank} of {ranks}",
    "side_rank_decides": "rank {rank}, the slowest of {ranks}",
    "side_device": "{device}",
    "side_trace": "{time}, no step marker",
    "side_step": "{time}, step {step}",
    "side_step_median": "{time}, median step {step}",
    "side_steps": "{time}, mean of {steps} steps (median {median})",
    "side_steps_complete": "{time}, mean of {steps} complete steps (median {median})",
    "base": "base",
    "candidate": "candidate",
    "not_compared": "Not compared",
    "no_faster": "Nothing of weight is faster in the candidate.",
    "no_slower": "Nothing of weight is slower in the candidate.",
    "compare_title": "Comparison",
    "compare_chart": "Time per step by part",
    "waterfall": "From the base's step to the candidate's: what each part adds (▲) or takes away (▼).",
    "page_texts_cut": "Names of more than {count} letters are cut here; -o DIR/ writes them whole.",
    "waterfall_cut": "The axis begins at {start}.",
    "in_msprof": "in msprof-analyze",
    "parameters": "What was compared: files, steps, options, caveats",
    "caveats": "Before you conclude",
    "group_base": "Base: {path}",
    "group_candidate": "Candidate: {path}",
}

REASONS = {
    "no_frees": "frees were not recorded",
}
