"""Verdicts, notes, checks, reasons and hints; placeholders are in braces."""

from __future__ import annotations

from traceanalyze.locales.en import named

_SPAN = "From first to last device event {time}"

MESSAGES = {
    **named("", "yes no meaning quantity value unit table column sheet rows"),
    "per_step": "a step",
    "per_trace": "in all",
    **{
        f"{form}_{key}": f"{span}: the device is {text}"
        for form, span, of in (("step", "Step {time}", " of the step"), ("trace", _SPAN, ""))
        for key, text in (
            ("idle", "idle {idle} of it."),
            ("idle_mostly", f"idle {{idle}} of it, mostly {{cause}} ({{share}}{of})."),
            ("idle_partly", f"idle {{idle}} of it, above all {{cause}} ({{share}}{of})."),
            ("busy_1", "busy {busy} of it; {part1} is {share1}."),
            ("busy_2", "busy {busy} of it; {part1} is {share1}, {part2} {share2}."),
            ("busy_3", "busy {busy} of it; {part1} is {share1}, {part2} {share2}, {part3} {share3}."),
        )
    },
    "cut_short": "The file is cut short: what came later in it is missing here.",
    "host_computes": "No device was used. Of {time} on the host the largest part is {part} ({share}).",
    "host_only": "No device was recorded. Of {time} on the host the largest part is {part} ({share}).",
    "nothing_to_analyse": "There is nothing to analyse: the trace has no event with a duration.",
    "slow_step": "Step {step} took {time}, {factor} times the median ({median}).",
    "slow_steps": (
        "{slow} of {steps} steps took more than 1.3 times the median ({median}); the slowest, step {step}, took {time}."
    ),
    "ranks_uneven": "Rank {rank} is the slowest of {ranks}: step {time}, {excess} longer than the fastest ({fastest}).",
    "sync_cost": "Sync points leave the device without work for {share} of the time, above all {where}.",
    "ranks_equal": "The {ranks} ranks are equally fast: mean step {time}.",
    "ranks_even": "The {ranks} ranks are equally fast: mean steps from {fastest} to {time}.",
    "files_below": "all in {folder}",
    "leading_rank": (
        "Rank {longest} waits {wait} of its step for others; without waiting rank {rank} takes longest ({own} a step), "
        "so the rest is about rank {rank}."
    ),
    "details_of_rank": "Details below are those of rank {rank}; --ranks chooses others.",
    "run_note": "{text}",
    "communication_overlap": "Communication runs {total} a step in all; {hidden} of it is hidden behind compute.",
    "memory_ops_overlap": "Copies and fills run {total} a step in all; {hidden} of it is hidden behind other work.",
    "about_step": "{path}{rank}{device}, 1 step",
    "about_steps": "{path}{rank}{device}, {steps} steps",
    "about_step_partial": "{path}{rank}{device}, 1 complete step ({left_out} left out)",
    "about_steps_partial": "{path}{rank}{device}, {steps} complete steps ({left_out} left out of the means)",
    "about_trace": "{path}{rank}{device}, no step marker",
    "about_host_step": "{path}{rank}, host only, 1 step",
    "about_host_steps": "{path}{rank}, host only, {steps} steps",
    "about_host_step_partial": "{path}{rank}, host only, 1 complete step ({left_out} left out)",
    "about_host_steps_partial": "{path}{rank}, host only, {steps} complete steps ({left_out} left out of the means)",
    "about_host_trace": "{path}{rank}, host only",
    "rank": " · rank {rank}",
    "device": " · device {device}",
    "device_named": " · device {device} ({device_name})",
    "more_rows": "and {count} more; --top {all} shows them",
    "gaps_kept": "The {kept} longest of {count} intervals are listed.",
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
    "short_kernels": "{count} kernel(s), {share} of all, take less than 10 µs, about what launching one costs.",
    "vendor_source": "From {source}, for comparison: none of these numbers is used here.",
    "exposed_wait": (
        "Of {exposed} of exposed communication {wait} is waiting for other ranks and {transfer} is transfer."
    ),
    "bandwidth_waits": "Bandwidths include the time ranks wait for each other.",
    "gc_source_nothing": "Garbage collection itself was not recorded: no events of it and no Python functions.",
    "gc_source_python": (
        "No call of the garbage collector is among the Python functions; collections that Python starts by itself "
        "never are."
    ),
    "gc_recorded_sum": (
        "{count} pause(s) of 1 ms or more, {total} in all, the longest {longest}; the device is idle for {idle} of it."
    ),
    "gc_host_sum": "{count} pause(s) of 1 ms or more, {total} in all, the longest {longest}.",
    "gc_suspected_sum": (
        "{count} suspected pause(s), {total} in all, the longest {longest}: every launching thread stands still, and "
        "the device is idle for {idle} of it. Any other work that the trace does not show looks the same."
    ),
    "gc_short": "Collections shorter than 1 ms: {count}, {total} in all.",
    "inference_left_out": (
        "Not counted, as they lie inside these or on other threads: {count} more range(s) named like iterations."
    ),
    "flame_device": "Device time by call path: {time}",
    "flame_host": "Host time by call path: {time}",
    "flame_share": "{name}: {time}, {share}",
    "flame_help": "Click a box to zoom in, here to zoom out.",
    "flame_search": "Search",
    "flame_found": "found: ",
    "flame_left_out": "Too narrow to draw: {count} path(s), {share} of the time.",
    "broken_nesting": "Cut short, as one that began inside lasts longer: {count} run(s) of operators.",
}

CHECKS = {
    "stream_fault": "The compressed file is damaged ({what}); what came before was read.",
    "truncated": "The file ends in the middle: {events} event(s) were read; steps at the cut are incomplete.",
    "trailing": "Ignored: {bytes} after the end of the JSON document.",
    "note": "{text}",
    "skipped_malformed": "Broken JSON in {count} place(s), first at byte {at}; reading went on at the next event.",
    "skipped_not_object": "Skipped: {count} member(s) of the event list that are not objects.",
    "skipped_no_phase": "Skipped: {count} event(s) without a phase.",
    "skipped_no_ts": "Skipped: {count} event(s) without a timestamp.",
    "skipped_bad_ts": "Skipped: {count} event(s) with an impossible timestamp.",
    "skipped_no_dur": "Skipped: {count} event(s) without a duration.",
    "skipped_bad_dur": "Skipped: {count} event(s) with an impossible duration.",
    "skipped_negative_dur": "Skipped: {count} event(s) with a negative duration.",
    "skipped_bad_value": "Left out: {count} argument value(s) that could not be read; their events are kept.",
    "repaired": "Cut: {count} device event(s) with impossible durations, {removed_ns} in all.",
    "unlinked": (
        "No launch record for {count} of {events} device event(s), {share} of device time; they count in all device "
        "times, but not in launch figures."
    ),
    "kernel_before_launch": (
        "{count} device event(s) ({share}) start before their launch call: the clocks disagree, so launch delays and "
        "dependency causes are unreliable."
    ),
    "computes_on_host": "No device events, and no sign of a device: the program computed on the host.",
    "no_device_events": "No device events: device times are not measured.",
    "no_api": "No runtime calls: sync points, launches and dispatch are not measured.",
    "no_host_ops": "No host operators: idle time cannot be laid to operators.",
    "no_python": "No Python stacks: source lines are not named.",
    "no_memory": "No memory events.",
    "unknown_categories": (
        "Not counted: {count} event(s) of unknown categories ({categories}); --category NAME=class maps them."
    ),
    "no_steps": "No step marker: the whole trace is one window; host time before and after it is outside.",
    "no_steps_host": "No step marker: the whole trace is one window.",
    "steps_without_device_events": "Without device work: {count} step(s), {steps}.",
    "incomplete_steps": (
        "Incomplete, left out of the means: {count} step(s) with < 80 % of the usual device events, {steps}."
    ),
    "empty_steps": "Without time of their own, wholly inside the step before: {count} step(s), {steps}.",
    "between_steps": "Between step markers lie {time_ns} ({share} of the steps) that belong to no step.",
    "lead_in": "The first step starts {time_ns} after its marker: until then the device did work launched before it.",
    "last_step_cut": "The last step ({step}) was cut when recording stopped.",
    "first_step_slow": "The first step ({step}) takes {ratio} times the usual; recording may have started in it.",
    "suspected_communication": (
        "{count} kernel(s), {time_ns}, look like communication by where they run, but count as compute: {names}. "
        "--comm-regex changes that."
    ),
    "plugin_events": (
        "The plug-in {plugin} told the kind of work of {count} device event(s) by their names or operators."
    ),
    "plugin_ranges": "The plug-in {plugin} took {count} host range(s) for data loading.",
    "microsecond_clock": (
        "Times have a resolution of 1 µs (torch 2.2 or older), so {zero_length} device event(s) show no duration."
    ),
    "clock_skew": (
        "{count} device event(s) ({share}) start up to {most_ns} before their launch call: the clocks of host and "
        "device differ by so much. Their launches count as if they began with them."
    ),
    "no_cann_calls": (
        "No CANN calls ({level}): launches are those of the task queue, and sync points and copies that block are not "
        "measured."
    ),
    "no_collective_tasks": "No tasks of collectives ({level}): waiting cannot be told from transfer.",
    "microsecond_clock_only": "Times have a resolution of 1 µs (torch 2.2 or older).",
    "several_processes": (
        "Several ranks or recordings in one file: {count} process(es) launch work ({pids}); they are analysed as one."
    ),
    "profiler_cost": "Recording {options} made the host slower than it is without the profiler.",
    "wait_without_record": "{count} of {waits} stream wait(s) name an event that was not recorded.",
    "collectives_without_metadata": "No description of their collective: {count} of {of} communication kernel(s).",
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
