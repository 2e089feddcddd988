from dataclasses import replace

import numpy as np

from traceanalyze.rules.capture import failed_checks
from traceanalyze.rules.ranking import HIGH
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Severity,
    measured,
    picked,
    rule,
)


@rule(
    "CAP103",
    "unlinked-events",
    title="device events without launch",
    sentence={
        "": "Device events have no launch record; see {checks} under the quality of the recording.",
        "excerpt": (
            "The recording is an excerpt: it begins in the middle, and {share} of the step is work that was launched "
            "before ({time} {per})."
        ),
        "others": (
            "The recording is an excerpt: {share} of the step is work whose launch is not in it, all along ({time} "
            "{per}): of other processes, or of threads that were not recorded."
        ),
    },
    confidence=Confidence.HIGH,
    needs="",
    advice=("profiler_warmup",),
    advice_texts={"record_launches": "Record the processes and threads that launch this work, with CPU activities."},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Device events have no launch record.

    What it finds
        Kernels and copies whose launch was not recorded: what had been launched before the recording began, and work of
        other processes and threads.
    Why it costs time
        It costs the program nothing; it touches the numbers of the report.
    How it is measured
        By the checks of the recording's quality that stand at the end of the report. Where a fifth of the step or more
        is such work, it is told which: begun before the first event whose launch was recorded, or later.
    What to do
        Record longer than the queue is deep: a warm-up before the steps that count. Record all that launches.

    References
        torch.profiler.
    """
    found = next(
        failed_checks(each for each in facts.analysis.checks if each.id == "Q03" and each.message == "unlinked"), None
    )
    if found is not None:
        yield _excerpt(found, facts)


def _excerpt(found: Finding, facts: Facts) -> Finding:
    """The finding with what the unlinked work is, where it is a large part of the step."""
    context = facts.context
    device = context.device
    own = np.isin(device.device, context.devices[:1])
    linked, unlinked = own & (context.link >= 0), own & (context.link < 0)
    if not len(context.calls) or not linked.any():
        return found
    before = unlinked & (device.start < device.start[linked].min())
    for sentence, chosen in (("excerpt", before), ("others", unlinked & ~before)):
        spans = picked(device.start, device.end, chosen)
        time = facts.length(spans) if len(spans) else 0
        if facts.share(time) >= HIGH:
            return replace(
                found,
                sentence=sentence,
                evidence=(*measured(share=facts.share(time)), Evidence("time", time, "DURATION"), *found.evidence),
                severity=Severity.MEDIUM,
                count=int(chosen.sum()),
                advice=("profiler_warmup",) if sentence == "excerpt" else ("record_launches",),
            )
    return found
