from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Severity,
    UnmeasuredError,
    measured,
    rule,
)


@rule(
    "CAP111",
    "snapshot-truncated",
    title="snapshot without its beginning",
    sentence=(
        "The snapshot's {events} events lack their beginning: {before} were in use before the first, and the peak may "
        "have been higher than {peak}."
    ),
    evidence={"events": "events", "before": "in use before the first event"},
    confidence=Confidence.MEDIUM,
    needs="N",
    advice_texts={
        "longer_history": (
            '_record_memory_history(max_entries=1000000, stacks="python"), called at the start of the program.'
        )
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """The snapshot's history lacks its beginning.

    What it finds
        Histories whose ring was full, or that begin when memory was already falling.
    Why it costs time
        It costs the program nothing, but the real peak may have been higher, and what was allocated before has no line.
    How it is measured
        The file's own flag (torch 2.12 or later); before that a history of just so many events as rings are long, with
        memory in use before the first, or a peak before the first event.
    What to do
        Record more events, with shorter stacks: `_record_memory_history(max_entries=1000000, stacks="python")`, from
        the start of the program.

    References
        Understanding CUDA memory usage.
    """
    snapshot = facts.snapshot
    if snapshot.events <= 1:
        raise UnmeasuredError("no_memory_history")
    if snapshot.truncation:
        evidence = (
            Evidence("events", snapshot.events, "COUNT"),
            Evidence("before", snapshot.active.base, "MEMORY"),
            *measured(peak=int(snapshot.moments.array("requested_bytes")[0])),
        )
        yield Finding(evidence=evidence, severity=Severity.INFO)
