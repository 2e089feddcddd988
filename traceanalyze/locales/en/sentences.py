"""Verdicts, notes, checks, reasons and hints; placeholders are in braces."""

from __future__ import annotations

from traceanalyze.locales.en import named

MESSAGES = {
    **named("", "yes no meaning quantity value unit table column sheet rows"),
    "per_step": "a step",
    "files_below": "all in {folder}",
    "leading_rank": (
        "Rank {longest} waits {wait} of its step for others; without waiting rank {rank} takes longest ({own} a step), "
        "so the rest is about rank {rank}."
    ),
    "details_of_rank": "Details below are those of rank {rank}; --ranks chooses others.",
    "about_step": "{path}{rank}{device}, 1 step",
    "about_steps": "{path}{rank}{device}, {steps} steps",
    "about_step_partial": "{path}{rank}{device}, 1 complete step ({left_out} left out)",
    "about_steps_partial": "{path}{rank}{device}, {steps} complete steps ({left_out} left out of the means)",
    "per_trace": "in all",
    "about_trace": "{path}{rank}{device}, no step marker",
    "about_host_trace": "{path}{rank}, host only",
    "run_note": "{text}",
    "about_host_step": "{path}{rank}, host only, 1 step",
    "about_host_steps": "{path}{rank}, host only, {steps} steps",
    "about_host_step_partial": "{path}{rank}, host only, 1 complete step ({left_out} left out)",
    "about_host_steps_partial": "{path}{rank}, host only, {steps} complete steps ({left_out} left out of the means)",
    "rank": " · rank {rank}",
    "device": " · device {device}",
    "device_named": " · device {device} ({device_name})",
    "more_rows": "and {count} more; --top {all} shows them",
    "more_notes": "Notes that change no number: {count} (-v shows them)",
    "legend": "n/m: not measured ({reasons})",
    "slowest_of": "{title}: the {count} slowest of {all}; -v shows all",
    "list_mark": ", ",
    "or_mark": " or ",
    "group_mark": "; ",
    "said_of": "{title}: {text}",
    "quality": "How far to trust these numbers",
    "not_measured": "Not measured",
    "measure_more": "To measure more",
    "data_name": "name in CSV and JSON",
    "contents": "Sheets",
    "contents_of": "contents",
    "key_figures": "Key figures",
    "column_dictionary": "What every column means",
    "capture": "The recording: files, options, checks",
    "capture_link": "Files, options and versions",
    "capture_notes": "Notes that change no number: {count}",
    "step_chart": "Time of each step by part",
    "no_rows": "nothing recorded",
    "rows_left_out": "The first {kept} of {count} rows; -o DIR/ writes all of them.",
    "ranks_left_out": "Sheets are those of {kept} of {count} ranks; -o DIR/ writes the tables of all.",
    "page_contents": "Contents",
    "page_ranks_left_out": "The page has {kept} of {count} ranks; -o DIR/ writes the tables of all.",
    "page_numbers": "the numbers",
    "page_numbers_elsewhere": "The numbers are in the tables that -o DIR/ writes.",
    "curve_help": "Point at the curve for values, drag to zoom in, double-click to see all of it.",
    "steps_left_out": "The first {kept} of {count} steps are drawn.",
    "vendor_source": "From {source}, for comparison: none of these numbers is used here.",
    "gc_recorded_sum": (
        "{count} pause(s) of 1 ms or more, {total} in all, the longest {longest}; the device is idle for {idle} of it."
    ),
    "gc_suspected_sum": (
        "{count} suspected pause(s), {total} in all, the longest {longest}: every launching thread stands still, and "
        "the device is idle for {idle} of it. Any other work that the trace does not show looks the same."
    ),
    "flame_help": "Click a box to zoom in, here to zoom out.",
}


REASONS = {
    **named("", "no_device_events no_host_events no_steps no_communication no_memory_records"),
    "no_device_used": "about a device, and none was used",
    "no_cann_calls": "calls of CANN were not recorded, only the task queue",
    "no_api": "no runtime calls recorded",
    "no_memory_ops": "no copies or fills",
    "no_linked_launches": "no device event is linked to its launch",
    "few_linked_launches": "less than 95 % of the device time is linked to its launch",
    "no_stream_waits": "several streams have work, and which of them waited for which was not recorded",
    "terminal_sync": "the trace ends with it",
    "no_occupancy": "the profile does not say how kernels fill the device",
    "no_kernels": "no compute kernels",
    "tensor_core_unknown": "no kernel's name tells whether it uses matrix units",
    "no_launch_configuration": "the profile does not say how kernels were launched",
    "empty_window": "the steps have no time",
    "no_bytes": "sizes were not recorded",
    "no_duration": "the clock is too coarse to time it",
    "no_memory_kind": "the profile does not say whether host memory was pinned",
    "vendor_does_not_say": "the profile does not say",
    "no_kernel_types": "the profile has no kernel table with types and cores",
    "no_core_counters": "counters of the cores were not recorded",
    "no_collective_tasks": "what collectives consist of was not recorded (Ascend: profiler_level Level1)",
    "plugin_failed": "a plug-in's rule failed",
    "no_collective_metadata": "collectives were recorded without their description",
    "no_bus_bandwidth": "has no meaning for this collective",
    "clocks_disagree": "the clocks of host and device disagree",
    "no_shapes": "shapes were not recorded",
    "no_op_arguments": "plain arguments (stride, mask) were not recorded",
    "no_formula": "this case has no formula",
    "moves_only": "counted by bytes alone",
    "unknown_device": "the peak rates of this device are not known",
    "unknown_peak": "the peak rate of this device for this type is not known",
    "no_device_annotations": "no annotations on the device",
    "no_process_memory": "the recording has no samples of the process's memory",
    "no_memory_totals": "the records have changes but no totals",
    "no_host_ops": "no host operators",
    "no_python": "no Python functions recorded",
    "no_modules": "no modules recorded",
    "single_step": "only one step",
    "no_annotations": "no annotations on the host",
    "no_gc_events": "the profile does not show garbage collection, nor operators and device work to suspect it from",
    "no_inference_annotations": "no annotation is named like an iteration of inference",
    "no_steady_state": "no three like iterations in a row that generate tokens",
    "not_in_name": "the annotations' names do not tell",
}

HINTS = {
    **dict.fromkeys(
        ("no_device_events", "no_host_events", "no_api"),
        "record host and device: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
    ),
    "no_cann_calls": "see launches and sync points: profiler_level=ProfilerLevel.Level1",
    "no_collective_tasks": "tell waiting from transfer (Ascend): profiler_level=ProfilerLevel.Level1",
    **dict.fromkeys(
        ("no_steps", "no_steps_host"),
        "mark the steps: profile(schedule=…) and prof.step() at the end of each training step",
    ),
    "no_stream_waits": (
        "find the critical path: profile(experimental_config="
        "torch.profiler._ExperimentalConfig(enable_cuda_sync_events=True))"
    ),
    "no_python": (
        "name source lines: profile(with_stack=True); it makes the host slower, so use it in a second recording"
    ),
    "no_shapes": "see what operators achieve: profile(record_shapes=True)",
    "no_modules": (
        "name modules: profile(with_stack=True, with_modules=True); it makes the host slower, so use it in a second "
        "recording"
    ),
}
