from dataclasses import replace

from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, Severity, measured, need, rule


@rule(
    "MEM105",
    "growing-sizes",
    title="requests grow from step to step",
    sentence=(
        "In {growing_steps} steps a request was larger than any before ({first_request}, at last {last_request}), and "
        "the reserve grew: {amount} in all."
    ),
    evidence={
        "first_request": "first larger request",
        "last_request": "last larger request",
        "growing_steps": "steps with larger requests",
    },
    confidence=Confidence.MEDIUM,
    needs="N",
    advice=("longest_first", "bucket_lengths", "expandable_segments"),
    advice_texts={"longest_first": "Run one batch of the largest size first: its blocks serve all later ones."},
    options={"steps": (3.0, "own: steps after the first; random lengths set a new record ever more rarely")},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Requests grow from step to step, and so does the reserve.

    What it finds
        A line that asks for more than ever before in three or more steps after the first, where each time memory had
        to be taken from the device.
    Why it costs time
        Blocks of earlier steps are too small to be used again: the reserve grows in pieces, and at the limit of the
        device's memory the allocator waits for the device and tries again.
    How it is measured
        Growth and retries of the snapshot's history whose request is larger than all before with the same call stack.
        The first step, which allocates in every program, is left out.
    What to do
        Run one batch of the largest size first; bucket or pad the lengths; `expandable_segments:True`
        where a replay of the allocator tells that it saves something.

    References
        Performance tuning guide (pre-allocate memory in case of variable input length); CUDA semantics.
    """
    found = need(facts.snapshot.growing)
    if found.steps >= options.number("steps"):
        expandable = not isinstance(found.saved, NotMeasured) and found.saved > 0
        grown = memory_finding(
            Severity.MEDIUM if found.retries else Severity.LOW,
            found.line,
            found.steps,
            Evidence("growing_steps", found.steps, "COUNT"),
            Evidence("first_request", found.smallest, "MEMORY"),
            Evidence("last_request", found.largest, "MEMORY"),
            *measured(amount=found.grown),
        )
        yield grown if expandable else replace(grown, advice=("longest_first", "bucket_lengths"))
