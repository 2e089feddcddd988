from traceanalyze.rules.common.communication import communicating
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    UnmeasuredError,
    measured,
    rule,
)

_MB = 1 << 20


@rule(
    "COM110",
    "hccl-buffer",
    title="messages larger than the buffer",
    sentence="{count} message(s), the largest of {largest}, exceed the buffer of {buffer}; they take {time} {per}.",
    evidence={"largest": "largest", "buffer": "buffer"},
    confidence=Confidence.MEDIUM,
    needs="D",
    advice_texts={
        "hccl_buffsize": (
            "HCCL_BUFFSIZE in MB at least the size of the largest message; each communicator takes twice as much "
            "memory."
        )
    },
    options={"default_mb": (200.0, "CANN: HCCL_BUFFSIZE where it is not set")},
    platforms=("ascend",),
    threshold=False,
)
def find(facts: Facts, options: Options) -> Findings:
    """Messages are larger than the buffer of the communication library.

    What it finds
        Collectives whose size is above `HCCL_BUFFSIZE`.
    Why it costs time
        They are sent in several pieces, one after the other.
    How it is measured
        Sizes as recorded, against the variable, or 200 MB where it is not set. What a larger buffer saves cannot be
        told from the recording.
    What to do
        `HCCL_BUFFSIZE` in MB: micro-batch × sequence × hidden size × bytes of an element / 2²⁰, rounded up. Each
        communicator takes twice as much memory.

    References
        CANN HCCL environment variables.
    """
    work = facts.once(communicating)
    if len(work) == 0:
        return
    if not work.described:
        raise UnmeasuredError("no_collective_metadata")
    stated = facts.environment.get("HCCL_BUFFSIZE", "")
    limit = (int(stated) if stated.isdigit() else round(options.number("default_mb"))) * _MB
    chosen = work.size > limit
    if not chosen.any():
        return
    count = int(chosen.sum())
    yield Finding(
        evidence=(
            Evidence("largest", int(work.size[chosen].max()), "MEMORY"),
            Evidence("buffer", limit, "MEMORY"),
            *measured(time=facts.per_step(work.time[chosen]), count=count),
        ),
        scope=Scope(ops=("HCCL_BUFFSIZE",)),
        count=count,
        severity=Severity.LOW,
    )
