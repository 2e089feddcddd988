"""Texts of comparisons: what differs, what to check about it, and what makes two sides unlike."""

from traceanalyze.locales.en import named

TABLES = {
    "slower": "Slower in the candidate (per step)",
    "faster": "Faster in the candidate (per step)",
}

TERMS = {
    **named(
        "",
        "attention convolution paged_attention normalization softmax elementwise reduction embedding pooling "
        "optimizer units_unknown group device_side DataLoader operator collective rest base candidate",
    ),
    **named("section_", "operators modules collectives kernels"),
    "section_calls": "calls of operators",
    **named("side_", "base candidate"),
    "all_causes": "all",
    "free": "idle",
    "comm_wait": "waiting for other ranks",
    "comm_transfer": "transfer",
    "fused_communication": "fused with communication",
    "matmul": "matrix products",
    "attention_forward": "attention, forward",
    "attention_backward": "attention, backward",
    "convolution_forward": "convolution, forward",
    "convolution_backward": "convolution, backward",
    "vector_work": "other kernels by kind",
    "tensor_move": "copies by kernel (TensorMove)",
    "compiled": "compiled (fused)",
    "other": "kind unknown",
    "indexing": "indexing and sorting",
    "layout": "layout and cast",
    "cube": "on matrix units",
    "vector": "on vector units",
    "api": "runtime calls",
    "outside_calls": "idle outside runtime calls",
    "host_side": "host operators, launches, waits",
    "dispatch_calls": "dispatch without host operators",
    "peak_allocated": "PyTorch's allocator: allocated",
    "peak_reserved": "PyTorch's allocator: reserved",
    "peak_process": "whole process (driver's count)",
    "device_span": "first to last device event",
    "kernels": "kernels by kind",
    "only_base": "base only",
    "only_candidate": "candidate only",
    "both_sides": "both",
    "renamed": "both, renamed",
    "change_noise": "within noise",
    "change_new": "new",
    "change_vanished": "gone",
    "change_more": "more of them",
    "change_fewer": "fewer of them",
    "change_longer": "each longer",
    "change_shorter": "each shorter",
    "change_both": "number and duration",
    "finding_new": "new",
    "finding_gone": "gone",
    "finding_grown": "grown",
    "finding_shrunk": "shrunk",
    "finding_same": "on both",
    "finding_base": "told of the base only",
    "finding_candidate": "told of the candidate only",
    "copy": "copy or fill",
    "moved": "moved",
    "compare_wait": "the host waits for the device",
    "next_op": "idle before",
    "in_op": "idle in",
    "rank_only": "the only one",
    "rank_asked": "asked for",
    "rank_decides": "it works longest",
    "rank_same": "the same as the other side's",
    "steps_asked": "asked for",
    "steps_complete": "all complete steps, their mean",
    "steps_median": "the median step",
    "steps_whole_trace": "no step marker: the whole trace",
    "check_compute": (
        "compare shapes, data types and implementations of these kernels; on equal devices, the same kernels that each "
        "take longer point to a lower clock or to other work on the device"
    ),
    "check_communication": (
        "record the other ranks that it communicates with, too, as only they tell waiting from transfer, then compare "
        "sizes and numbers of the collectives"
    ),
    "check_communication_ranks": (
        "the table of the ranks tells which one the others wait for; then compare sizes and numbers of the collectives"
    ),
    "check_communication_tasks": (
        "record Ascend profiles at level 1 or above, or the other ranks that it communicates with, too, as these tell "
        "waiting from transfer, then compare sizes and numbers of the collectives"
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
    "check_dispatch_longer": (
        "each call, or its way to the device, takes longer: look at load, clock rate and binding of the CPU and at the "
        "driver; see that both sides were recorded with the same options"
    ),
    "check_dispatch_alloc": (
        "look at memory that is taken from the device again and again: empty_cache() in the loop, sizes that vary "
        "(expandable_segments:True in PYTORCH_NPU_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF)"
    ),
    "check_host_op": (
        "look at the Python code around these operators and at load, clock rate and binding of the CPU; see "
        "that both sides were recorded with the same options"
    ),
    "check_device_side": "look at streams and events in the timeline: what the next kernel waits for",
    "check_untraced": "see what the host does there: record both sides with stacks (with_stack=True), if they were not",
    **dict.fromkeys(
        ("check_idle", "check_outside_calls"),
        "record both sides with the same options, so that the causes can be told apart",
    ),
    "check_host_side": "record Ascend profiles at level 1 or above, so that the causes can be told apart",
    "check_api": "look at the runtime calls that take longer, in the table of calls",
    "check_step": "record the device on both sides",
    "h2d": "host to device",
    "d2h": "device to host",
    "d2d": "inside the device",
    "p2p": "device to device",
    "h2h": "host to host",
    "unknown": "direction unknown",
    "fill": "fills",
    "peak_recorded": "recorded allocations less frees",
}

_PARTS = ["{part1} {diff1}", "{part2} {diff2}", "{part3} {diff3}", "{part4} {diff4}"]

MESSAGES = {
    **named("", "base candidate"),
    "compare_faster_0": "The candidate is {diff} ({share}) faster per step: {candidate} instead of {base}.",
    "compare_slower_0": "The candidate is {diff} ({share}) slower per step: {candidate} instead of {base}.",
    "compare_equal_0": "Both sides take {base} per step ({diff}).",
    **{
        f"compare_{word}_{count}": (
            f"The candidate is {{diff}} ({{share}}) {word} per step, {{candidate}} instead of {{base}}: "
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
    **{
        f"compare_made_{count}": (
            "The steps do not differ beyond noise, {candidate} instead of {base} ({diff}; ±{noise} may be chance), but "
            "what they are made of does: " + ", ".join(_PARTS[:count]) + "."
        )
        for count in range(1, len(_PARTS) + 1)
    },
    "compare_span": "First to last device event of a step: base {base}, candidate {candidate} ({diff}).",
    "side_path": "{path}",
    "not_compared": "Not compared",
    "no_faster": "Nothing of weight is faster in the candidate.",
    "no_slower": "Nothing of weight is slower in the candidate.",
    "compare_title": "Comparison",
    "compare_chart": "Time per step by part",
    "waterfall": "From the base's step to the candidate's: what each part adds (▲) or takes away (▼).",
    "page_texts_cut": "Names of more than {count} characters are cut here; -o DIR/ writes them in full.",
    "waterfall_cut": "The axis begins at {start}.",
    "in_msprof": "in msprof-analyze",
    "parameters": "What was compared: files, steps, options, caveats",
    "caveats": "Before you conclude",
    "group_base": "Base: {path}",
    "group_candidate": "Candidate: {path}",
    "advice": "Where to look",
}

REASONS = {
    "no_frees": "frees were not recorded",
    "other_work": "the sides do not do the same work (--rank-anyway compares it all the same)",
    "needs_all_ranks": "needs the recordings of all ranks",
    "of_all_together": "the recordings of all ranks tell it only of all process groups and collectives together",
}
