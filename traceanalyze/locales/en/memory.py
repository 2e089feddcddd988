"""Texts of the memory report; `locales/en/__init__.py` adds them to the others."""

from __future__ import annotations

from traceanalyze.locales.en import named

TERMS = {
    **named("moment_", "peak dump"),
    **named("category_", "gradients backward optimizer activations other"),
    **named("release_", "retry failed_retry unknown growth"),
    **named("", "critical leak fragmentation rounding higher lower"),
    **named("tensor_", "optimizer_state input temporary unknown"),
    "moment_reserved_peak": "reserve peak",
    "moment_oom": "out of memory",
    "category_preexisting": "from before",
    "category_transient": "short-lived",
    "category_parameters": "kept data",
    "release_empty_cache": "empty_cache",
    "release_gc": "garbage collection",
    "warn": "warning",
    "info": "information",
    "oom_isolation": "out of memory: free, but for another stream or pool",
    "oom_fragmentation": "out of memory: free, but in pieces",
    "oom_split": "out of memory: free inside segments and on the device, not together",
    "oom_other_processes": "out of memory: others hold the device",
    "oom_capacity": "out of memory: the device is full",
    "oom_unknown": "out of memory",
    "retry": "allocation retry",
    "churn": "allocator churn",
    "empty_cache": "empty_cache",
    "spike": "short-lived spike",
    "held_gradients": "gradients kept through forward",
    "activation_peak": "activations make the peak",
    "near_limit": "near the limit",
    "growing_sizes": "requests grow from step to step",
    "oversized_blocks": "free blocks too large to be used",
    "small_blocks": "small long-lived blocks",
    "expandable_with_max_split": "configuration",
    "gc_threshold_without_fraction": "configuration",
    "history_never_recorded": "no history",
    "state_only_recording": "no history",
    "no_memory_stacks": "no call stacks",
    "tensor_parameter": "parameters",
    "tensor_activation": "activations",
    "tensor_gradient": "gradients",
    "tensor_autograd_detail": "autograd",
    "other_groups": "all others",
}

MEANINGS = {
    "memory_categories.category_preexisting": "allocated before the history begins",
    "memory_categories.category_transient": "freed within ten later allocations",
    "memory_categories.category_gradients": "kept by AccumulateGrad",
    "memory_categories.category_backward": "allocated by the autograd engine",
    "memory_categories.category_optimizer": "allocated under a step of torch.optim",
    "memory_categories.category_activations": "allocated in a module's forward and freed later",
    "memory_categories.category_parameters": "allocated outside modules and alive at the dump: parameters, data, leaks",
    "memory_categories.category_other": "everything else",
}

_LONGER = 'record a longer history (max_entries) or shorter stacks (stacks="python")'

MESSAGES = {
    "about_snapshot": "{path}{device}, {steps} events, reconciled exactly",
    "about_snapshot_state": "{path}{device}, state only, reconciled exactly",
    "about_snapshot_off": "{path}{device}, {steps} events, history and dump do not agree (see below)",
    "about_snapshot_state_off": "{path}{device}, state only, contradicts itself (see below)",
    "memory_state": "{requested} in use, {reserved} reserved at the dump; the snapshot has no history.",
    "memory_peak": "Peak {requested} in use, {reserved} reserved.",
    "memory_peak_step": "Peak {requested} in use in step {step}, {reserved} reserved.",
    "memory_peak_at_step": "Peak {requested} in use at step {step}, {reserved} reserved.",
    "memory_peak_at_step_phase": "Peak {requested} in use at step {step}, {phase}; {reserved} reserved.",
    "memory_peak_at_step_op": "Peak {requested} in use at step {step}, in {op}; {reserved} reserved.",
    "memory_peak_at_step_phase_op": "Peak {requested} in use at step {step}, {phase}, in {op}; {reserved} reserved.",
    "memory_peak_at_phase": "Peak {requested} in use, in {phase}; {reserved} reserved.",
    "memory_peak_at_phase_op": "Peak {requested} in use, in {phase}, in {op}; {reserved} reserved.",
    "memory_peak_at_op": "Peak {requested} in use, in {op}; {reserved} reserved.",
    "placed_by_marks": "The clocks of the two files differ; the marks of the steps align them.",
    "placed_moment_outside": "Moments without a place lie before or after what the trace recorded.",
    "placed_calls_outside": "{count} of {all} calls of the device's allocator lie outside of what the trace recorded.",
    "snapshot_used": "Judged with {count} allocator snapshot(s), which `traceanalyze memory` shows in full: {path}.",
    "snapshot_unused": "{count} allocator snapshot(s) not used: nothing says that they are of a recorded rank: {path}.",
    "timeline_unused": "{count} memory timeline(s) not used; `traceanalyze memory` shows them: {path}.",
    "memory_peak_before": ("At least {requested} in use, before the recorded history begins; {reserved} reserved."),
    "memory_largest": "The largest part ({share}) is {category}: {line}.",
    "memory_contradicts": "The snapshot contradicts itself, so leaks and fragmentation are not judged.",
    "advice_oom_isolation": (
        "A request of {request} failed although a free piece was large enough, in another stream or pool: "
        "use one stream for large tensors, or free them before switching streams."
    ),
    "advice_oom_fragmentation": (
        "A request of {request} failed although {free} were free inside segments, the largest piece {hole}: "
        "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (NPU: PYTORCH_NPU_ALLOC_CONF)."
    ),
    "advice_oom_split": (
        "A request of {request} failed with {free} free inside segments and {device} on the device: "
        "expandable_segments:True joins the two."
    ),
    "advice_oom_other_processes": (
        "A request of {request} failed with {device} free on the device, most of which others hold: "
        "look for other processes, and for NCCL or HCCL buffers."
    ),
    "advice_oom_capacity": (
        "A request of {request} failed with {free} free inside segments and {device} on the device: the device is "
        "full; reduce what the table of that moment names (smaller batch, checkpointing, sharding)."
    ),
    "advice_oom_unknown": "A request of {request} failed with {free} free inside segments.",
    "advice_leak_likely": (
        "Every step leaves {amount} behind at {line} (seen over {steps} steps): keep `.item()` or `.detach()` instead "
        "of tensors with their graph, and drop references at the end of the step."
    ),
    "advice_leak_suspected": (
        "Perhaps a leak: {steps} steps each leave {amount} behind at {line}; a longer history would tell."
    ),
    "advice_retry_timed": (
        "{count} allocation(s) found the device full: {amount} were given back and taken anew, which cost at most "
        "{cost}. Leave more room (smaller batch, checkpointing), or garbage_collection_threshold:0.8."
    ),
    "advice_retry": (
        "{count} allocation(s) found the device full: {amount} were given back and taken anew. Leave more room "
        "(smaller batch, checkpointing), or garbage_collection_threshold:0.8."
    ),
    "advice_churn_empty_cache": (
        "{amount} went back to the device and were taken again in {cycles} cycles, by empty_cache at {line}: remove it."
    ),
    "advice_churn_retry": (
        "{amount} went back to the device and were taken again in {cycles} cycles, because the device is full: leave "
        "more room, or set expandable_segments:True."
    ),
    "advice_churn_failed_retry": (
        "{amount} went back to the device and were taken again in {cycles} cycles before it failed."
    ),
    "advice_churn_gc": (
        "{amount} went back to the device and were taken again in {cycles} cycles, by the allocator's garbage "
        "collection: raise garbage_collection_threshold."
    ),
    "advice_churn_unknown": (
        "{amount} went back to the device and were taken again in {cycles} cycles; the stacks do not tell why."
    ),
    "advice_empty_cache": "empty_cache is called at {line}; it costs time and rarely helps inside a loop.",
    "advice_fragmentation": (
        "The reserve grew for a request of {request} although {free} were free, the largest piece {hole}; {avoidable} "
        "could be saved: expandable_segments:True, or allocate long-lived tensors first (blocks of {pinner} are in "
        "the way)."
    ),
    "advice_spike": (
        "{share} of the peak are blocks freed again at once, the largest at {line}: compute in pieces, in place, or "
        "with a fused operator."
    ),
    "advice_gradients": (
        "{amount} of gradients live through the next forward pass: call zero_grad(set_to_none=True) right after step()."
    ),
    "advice_activations": "Activations are {share} of the peak: activation checkpointing trades them for compute.",
    "advice_growing_sizes": (
        "In {steps} steps a request at {line} was larger than any before ({first}, at last {last}), and {amount} were "
        "taken from the device: run one batch of the largest size first, bucket or pad the lengths, or set "
        "expandable_segments:True."
    ),
    "advice_oversized_blocks": (
        "The reserve grew {count} times for requests such as {request} although {hole} lay free in one piece, {amount} "
        "in all: raise max_non_split_rounding_mb, or leave max_split_size_mb out."
    ),
    "advice_small_blocks": (
        "{count} blocks below 1 MiB live throughout; alone they keep {segments} segments with {amount} free: one "
        "buffer with views in place of many tiny tensors."
    ),
    "advice_near_limit": "The reserve comes close to the device's {capacity}.",
    "advice_rounding": (
        "Blocks are {share} larger than what was asked for: many tiny tensors; use one buffer with views."
    ),
    "advice_expandable_with_max_split": "max_split_size_mb has no effect with expandable_segments.",
    "advice_gc_threshold_without_fraction": (
        "garbage_collection_threshold has no effect without a memory fraction (set_per_process_memory_fraction)."
    ),
    "advice_history_never_recorded": (
        "The snapshot has no history: call torch.cuda.memory._record_memory_history(max_entries=1000000) at the start."
    ),
    "advice_state_only_recording": (
        'The history was not recorded (context="state"): call _record_memory_history(context="all", stacks="python").'
    ),
    "advice_no_memory_stacks": (
        'No call stacks were recorded: call _record_memory_history(context="all", stacks="python").'
    ),
    "about_difference": "{path}",
    "about_timeline": "{path}, {steps} changes, tensor bytes of one device the file does not name",
    "timeline_peak": "Peak {peak} of tensors (the allocator's blocks are larger).",
    "timeline_largest": "The largest part ({share}) is {category}.",
    "trace_without_memory": (
        "The trace has no memory records: record with profile_memory=True, or dump a snapshot "
        "(torch.cuda.memory._dump_snapshot)."
    ),
    "trace_without_records": "The trace has no memory records (profile_memory=True).",
    "trace_memory_beside": "Peak {peak} allocated, {reserved} reserved.",
    "trace_memory": "Peak {peak} allocated, {reserved} reserved; a snapshot would tell who holds it.",
    "trace_memory_relative": (
        "At its peak the recording had {peak} more allocated than at its begin; the trace has no totals."
    ),
    "trace_allocator_calls": "{count} allocator call(s) inside the steps took {time} on the host.",
    "compared_with": "Compared with {path}.",
    "memory_diff_verdict": "The peak is {change} {direction} than the base's {base}.",
    "memory_diff_equal": "Both peaks are {base}.",
    "memory_diff_line": "The largest change is {change} at {line}.",
}

CHECKS = {
    "no_memory_stacks": "No call stacks were recorded: nobody can be named.",
    "memory_reconciled": "History and dump agree to the byte ({events} events).",
    "memory_not_reconciled": "History and dump do not agree ({what}): an edited or synthetic file?",
    "memory_unknown_action": "{count} event(s) of the unknown kind {name} were left out.",
    "memory_capacity_unknown": "The snapshot does not tell how much memory the device has; --capacity does.",
    "memory_history_full": f"The history forgot its beginning, so the peak may have been higher; {_LONGER}.",
    "memory_history_round": (
        "The history has just {events} events, as many as a ring holds: it may have forgotten its beginning; "
        f"{_LONGER}."
    ),
    "memory_history_late": f"Memory in use was highest before the history begins: record from the start, or {_LONGER}.",
    "memory_interval": (
        "Blocks in use at the peak may be up to {slack_bytes} more: blocks from before the history were freed in it."
    ),
    "memory_retries_forgotten": (
        "The process had {all} allocation retries, of which the history still shows {seen}: memory_stats tells."
    ),
    "memory_no_leak_check": "Leaks were not looked for: the history shows no steps (profile steps, or record longer).",
}

REASONS = {
    "no_memory_history": "the snapshot has no history",
    "snapshot_without_times": "the snapshot has no times",
    "clocks_do_not_meet": "the times of snapshot and trace do not overlap, and they share no marks of steps",
    "no_trace_of_rank": "no trace of the same rank",
    "other_device_placed": "only the device with most memory is placed in the trace",
    "other_snapshot_placed": "another snapshot of the rank is placed in its trace",
    "no_memory_steps": "the history shows no steps",
    "no_gradient_stacks": "no stack shows AccumulateGrad",
    "snapshot_contradicts_itself": "the snapshot contradicts itself",
}

HINTS = {
    "no_memory_stacks": 'call stacks: torch.cuda.memory._record_memory_history(context="all", stacks="python")',
}
