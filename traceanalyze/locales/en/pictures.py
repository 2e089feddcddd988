"""Texts of pictures: the trace around a finding, ranks step by step, the parts of each rank's step."""

from __future__ import annotations

TERMS = {
    "annotation": "annotations",
    "instance": "the longest instance",
    "launched_by": "from launch to start",
}
MESSAGES = {
    "excerpt_title": "{rule} {finding}: where it is longest",
    "excerpt_links": "In the trace:",
    "excerpt_in_step": "It takes {time} and begins {since} after the start of step {step}.",
    "excerpt_at_step": "It takes {time} and begins with step {step}.",
    "excerpt_in_trace": "It takes {time} and begins {since} after the first event.",
    "excerpt_idle": "The device is idle {idle} of it (mainly {cause}).",
    "excerpt_idle_throughout": "The device is idle throughout (mainly {cause}).",
    "excerpt_doing": "Meanwhile the host is in {name}.",
    "excerpt_from": "The picture begins {start} after the first event of the trace and covers {length}.",
    "excerpt_merged": "{count} events too short to be seen alone share boxes, filled as far as they are busy.",
    "excerpt_hidden_events": "Not drawn: {count} deeper operator(s).",
    "excerpt_hidden_threads": "Not drawn: {count} further thread(s).",
    "excerpt_hidden_streams": "Not drawn: {count} further stream(s).",
    "excerpt_several": "{count} events, busy {busy}; the longest: {name}",
    "excerpt_several_unnamed": "{count} intervals, {busy} in all",
    "excerpt_ends_outside": "It goes on after the end of the picture.",
    "excerpt_stream": "stream {name}",
    "excerpt_calls": "runtime calls",
    "excerpt_idle_lane": "device idle",
    "excerpt_host": "host",
    "excerpt_device": "device",
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
