"""Texts of the rules about the recording itself (CAP)."""

from __future__ import annotations

TITLES = {
    "CAP101": "recording started in the first step",
    "CAP102": "parts not recorded",
    "CAP103": "device events without launch",
    "CAP104": "damaged file",
    "CAP105": "ranks missing or mixed",
    "CAP106": "settings differ between ranks",
    "CAP107": "profiler slowed the host",
    "CAP108": "clocks coarse or apart",
    "CAP109": "no step marked",
    "CAP110": "few steps recorded",
    "CAP111": "snapshot without its beginning",
}

_CHECK = "see {checks} under the quality of the recording."

SENTENCES = {
    "CAP101": "The first step takes {ratio} times the usual; recording may have started in it.",
    "CAP102": "Not recorded, so some findings are impossible: {what}.",
    "CAP103": f"Device events have no launch record; {_CHECK}",
    "CAP104": f"The file is damaged or has impossible values; {_CHECK}",
    "CAP105": f"Ranks are missing or mixed; {_CHECK}",
    "CAP106": (
        "Ranks were recorded with different options ({settings}); the first of them is {setting} on rank {ranks} and "
        "{elsewhere} elsewhere: their times are not quite comparable."
    ),
    "CAP106_environment": (
        "Environment variables differ between ranks ({settings}); the first of them is {setting} on rank {ranks} and "
        "{elsewhere} elsewhere."
    ),
    "CAP107": f"Recording details made the host slower, so its share is an upper bound; {_CHECK}",
    "CAP108": f"Clocks are coarse or disagree; {_CHECK}",
    "CAP109": "No step is marked: {time} of trace are one window.",
    "CAP110": "Only {steps} complete step(s): medians and patterns are uncertain.",
    "CAP111": (
        "The snapshot's {events} events lack their beginning: {before} were in use before the first, and the peak may "
        "have been higher than {peak}."
    ),
}

ADVICE = {
    "profiler_warmup": "Let the profiler warm up: schedule(wait=1, warmup=1, active=5).",
    "record_more.cuda": "Record once more with record_shapes, with_stack or profile_memory; they slow the host down.",
    "record_more.ascend": (
        "Record once more with profiler_level=Level1, aic_metrics, record_shapes, with_stack or profile_memory."
    ),
    "write_whole": "Let the profiler finish writing before the program ends.",
    "file_per_rank": "Write one file a rank: tensorboard_trace_handler(folder, worker_name=…).",
    "same_options": "Record all ranks with the same options and schedule.",
    "same_environment": "Give all machines the same environment; settings of the network and HCCL must agree.",
    "light_recording": "Confirm findings about the host with a recording without stacks, shapes and memory.",
    "newer_torch": "A newer torch (2.3 or later) records nanoseconds.",
    "newer_torch.ascend": "A newer driver and torch_npu align the clocks better; durations are right in any case.",
    "mark_steps": "Mark steps: profile(schedule=…) and prof.step() after each.",
    "more_steps": "Record more steps: schedule(…, active=5).",
    "longer_history": (
        '_record_memory_history(max_entries=1000000, stacks="python"), called at the start of the program.'
    ),
}

EVIDENCE = {
    "ratio": "first step over the median",
    "checks": "checks",
    "steps": "complete steps",
    "settings": "what differs",
    "elsewhere": "on the other ranks",
    "events": "events",
    "before": "in use before the first event",
}
