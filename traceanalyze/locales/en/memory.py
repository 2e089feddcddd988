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


MESSAGES = {
    "about_snapshot": "{path}{device}, {steps} events, reconciled exactly",
    "about_snapshot_state": "{path}{device}, state only, reconciled exactly",
    "about_snapshot_off": "{path}{device}, {steps} events, history and dump do not agree (see below)",
    "about_snapshot_state_off": "{path}{device}, state only, contradicts itself (see below)",
    "memory_peak_at_step": "Peak {requested} in use at step {step}, {reserved} reserved.",
    "memory_peak_at_step_phase": "Peak {requested} in use at step {step}, {phase}; {reserved} reserved.",
    "memory_peak_at_step_op": "Peak {requested} in use at step {step}, in {op}; {reserved} reserved.",
    "memory_peak_at_step_phase_op": "Peak {requested} in use at step {step}, {phase}, in {op}; {reserved} reserved.",
    "memory_peak_at_phase": "Peak {requested} in use, in {phase}; {reserved} reserved.",
    "memory_peak_at_phase_op": "Peak {requested} in use, in {phase}, in {op}; {reserved} reserved.",
    "memory_peak_at_op": "Peak {requested} in use, in {op}; {reserved} reserved.",
    "snapshot_used": "Judged with {count} allocator snapshot(s), which `traceanalyze memory` shows in full: {path}.",
    "snapshot_unused": "{count} allocator snapshot(s) not used: nothing says that they are of a recorded rank: {path}.",
    "timeline_unused": "{count} memory timeline(s) not used; `traceanalyze memory` shows them: {path}.",
    "about_difference": "{path}",
    "about_timeline": "{path}, {steps} changes, tensor bytes of one device the file does not name",
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
