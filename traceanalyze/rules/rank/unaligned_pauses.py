from typing import TYPE_CHECKING

from traceanalyze.rules.rule import Confidence, Finding, Findings, Options, UnmeasuredError, measured, rule

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster


@rule(
    "RNK104",
    "unaligned-pauses",
    title="pauses at different steps",
    sentence="Garbage collection pauses {ranks} ranks at different steps: {time} {per} more than at the same steps.",
    confidence=Confidence.MEDIUM,
    needs="R",
    advice_texts={
        "align_pauses": (
            "gc.disable(), and gc.collect() every N steps on all ranks; checkpoints and evaluation likewise."
        )
    },
    options={"pause": (0.01, "own: share of the step that a pause must take")},
)
def find(ranks: "Cluster", options: Options) -> Findings:
    """Pauses of the garbage collector come at different steps on different ranks.

    What it finds
        Recorded garbage collection that leaves the device idle, on different ranks in different steps.
    Why it costs time
        Every pause of one rank stalls all of them: pauses that could lie in one step lie in many.
    How it is measured
        Idle time in recorded pauses, by rank and step. The saving is the sum over steps of the longest pause of any
        rank, without the largest sum that one rank has alone: what is left if all pause at the same steps.
    What to do
        `gc.disable()` and `gc.collect()` every N steps on all ranks; checkpoints and evaluation likewise.

    References
        PyTorch distributed training guides.
    """
    pauses = ranks.part("gc")
    if pauses is None or not pauses.size:
        raise UnmeasuredError("no_recorded_pauses")
    long = pauses >= options.number("pause") * ranks.step_time
    stalls = pauses * long
    if int((long.any(axis=1)).sum()) < 2:
        return
    count = stalls.shape[1]
    saving = (int(stalls.max(axis=0).sum()) - int(stalls.sum(axis=1).max())) // count
    if saving > 0:
        yield Finding(
            saving=saving,
            bound=int(stalls.max(axis=0).sum()) // count,
            draws="idle",
            evidence=measured(ranks=int(long.any(axis=1).sum()), steps=int(long.any(axis=0).sum()), time=saving),
            count=int(long.sum()),
        )
