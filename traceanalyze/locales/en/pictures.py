"""Texts of pictures: tracks over a trace, the trace around a finding, ranks step by step."""

from __future__ import annotations

from traceanalyze.locales.en import named

TERMS = {
    **named("overlay_", "steps phases transfer memory finding thread device stream events"),
    "overlay_gaps": "idle device, by cause",
    "overlay_syncs": "sync points",
    "overlay_path": "critical path",
    "overlay_collectives": "parts of collectives",
    "overlay_wait": "wait for other ranks",
    "overlay_queue": "queue depth",
    "overlay_utilisation": "device utilisation",
    "overlay_recompute": "recomputation",
    "overlay_zero_grad": "zero_grad",
    "overlay_requested": "requested, MiB",
    "overlay_allocated": "allocated, MiB",
    "overlay_reserved": "reserved, MiB",
    "overlay_arg_idle": "whole interval, ms",
    "overlay_arg_next": "next on the device",
    "overlay_arg_op": "operator",
    "overlay_arg_frame": "source line",
    "overlay_arg_call": "runtime call",
    "overlay_arg_idle_caused": "idle caused, ms",
    "overlay_arg_complete": "complete step",
    "overlay_arg_saving": "saving, ms a step",
    "overlay_arg_bound": "saving at most, ms a step",
    "overlay_arg_sentence": "what",
    "overlay_arg_advice": "what to do",
    "overlay_arg_name": "event",
    "annotation": "annotations",
    "instance": "the longest instance",
    "launched_by": "from launch to start",
}
REASONS = {"no_event_times": "the snapshot does not say when its events were (torch 2.1 and older, NPU)"}
MESSAGES = {
    **named("excerpt_", "host device"),
    "overlay_missing": "Not drawn: {track} (not measured: {reason})",
    "overlay_no_windows": "Findings without a place in time are not drawn: {count}",
    "overlay_alone_damaged": "{path}: the file is damaged, so the overlay was written without the trace",
    "overlay_alone_not_json": "{path}: this is no JSON trace, so the overlay was written without it",
    "overlay_merged": (
        "Ranks in one file: {count}. Process ids are new numbers, and the clocks are those of the recordings"
    ),
    "overlay_aligned": (
        "Ranks in one file: {count}. Process ids are new numbers, and clocks are moved by up to {most}, so that "
        "collectives end together"
    ),
    "open_url": "Open in a browser on this computer: {url}",
    "open_served": "The viewer has loaded the trace.",
    "open_viewer": (
        "The browser loads the viewer from ui.perfetto.dev, so it needs the internet; "
        "the trace goes from this computer to the browser only. Ctrl-C ends."
    ),
    "open_no_display": (
        "This machine has no display. On your own computer run `{command}`, then open the address above there."
    ),
    "open_other_port": "ui.perfetto.dev may read from port 9001 only; with {port} use a viewer of your own",
    "excerpt_title": "{rule} {finding}: where it is longest",
    "excerpt_stream": "stream {name}",
    "excerpt_calls": "runtime calls",
    "excerpt_idle_lane": "device idle",
    "heat_map": "Each rank's own time in every step over the mean of all ranks in that step",
    "heat_cell": "rank {rank}, step {step}: {ratio} of the mean",
    "heat_cell_unknown": "rank {rank}, step {step}: n/m",
    "heat_longest": "longest part: {part}, {time}",
    "heat_faster": "faster",
    "heat_slower": "slower than the mean",
    "heat_cut": "Drawn are {steps} of {all_steps} steps and {ranks} of {all_ranks} ranks, those that differ most.",
    "rank_chart": "Mean step of each rank by part",
    "rank_chart_cut": "Drawn are the {kept} slowest of {count} ranks.",
}
