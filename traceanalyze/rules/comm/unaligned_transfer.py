from traceanalyze.model.columns import median
from traceanalyze.rules.common.communication import transfers
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


@rule(
    "COM109",
    "unaligned-transfer",
    title="transfers of odd sizes",
    sentence=(
        "{count} transfer(s) between devices (has|have) sizes that are no multiple of 512 bytes ({size} "
        "in the middle): "
        "{time} {per}, {part} of the time of all transfers inside the machine."
    ),
    confidence=Confidence.MEDIUM,
    needs="D",
    advice_texts={"align_messages": "Pad tensors so that the part of each rank is a multiple of 512 bytes."},
    options={
        "align": (512.0, "msprof-analyze advisor: bytes; smaller transfers are not judged"),
        "share": (0.05, "own: of the time of all transfers between devices"),
    },
    platforms=("ascend",),
)
def find(facts: Facts, options: Options) -> Findings:
    """Transfers between devices have sizes that are no multiple of 512 bytes.

    What it finds
        Transfers of collectives over the links inside a machine, larger than 512 bytes and no multiple of it, that take
        5 % of the time of all such transfers or more.
    Why it costs time
        The copy engine moves blocks of 512 bytes; the rest is moved by a slower way.
    How it is measured
        Sizes of the tasks of the collectives, as profiles of level 1 and above record them. Copies on the device itself
        and transfers over a network are left out. What alignment saves cannot be told from the recording; at most, the
        time of these transfers.
    What to do
        Pad tensors so that each rank's part is a multiple of 512 bytes.

    References
        msprof-analyze advisor, byte alignment.
    """
    tasks = facts.once(transfers)
    if tasks is None:
        raise UnmeasuredError("no_collective_tasks")
    between = ~tasks.network & ~tasks.inside & (tasks.size > options.number("align"))
    if not between.any():
        return
    unaligned = between & (tasks.size % max(1, round(options.number("align"))) != 0)
    part = int(tasks.time[unaligned].sum()) / max(int(tasks.time[between].sum()), 1)
    if not unaligned.any() or part < options.number("share"):
        return
    count, time = int(unaligned.sum()), facts.length(tasks.spans(unaligned))
    yield Finding(
        bound=time,
        draws="comm_exposed",
        evidence=(
            Evidence("count", count, "COUNT", *tasks.longest(unaligned)),
            *measured(size=int(median(tasks.size[unaligned])), time=time, part=part),
        ),
        scope=Scope(ops=("SDMA",)),
        count=count,
        severity=Severity.INFO,
    )
