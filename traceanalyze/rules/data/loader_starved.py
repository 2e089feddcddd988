import numpy as np

from traceanalyze.rules.common.loader import single_process, steady_batches, waited
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Severity, measured, rule


@rule(
    "DAT104",
    "loader-starved",
    title="loader cannot keep up evenly",
    sentence="Waits for the loader vary a lot (coefficient of variation {variation}) although it has workers.",
    confidence=Confidence.LOW,
    needs="DO",
    host="O",
    advice=("worker_cores", "local_data"),
    advice_texts={"worker_cores": "Check which cores the workers are bound to, and OMP_NUM_THREADS."},
    options={"share": (0.05, "as DAT101"), "variation": (1.0, "own: standard deviation of the waits over their mean")},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """The step waits for a loader with workers, and its waits vary a lot.

    What it finds
        Waiting for data although the loader has workers, with waits of very different length.
    Why it costs time
        The workers share too few cores, or a slow or shared storage. What it costs is counted by DAT101.
    How it is measured
        As DAT101, with a loader of several processes whose `__next__` has a coefficient of variation above 1. The cause
        is not in one recording: compare runs with other numbers of workers.
    What to do
        Check the binding of the workers to cores and `OMP_NUM_THREADS`; keep data on a local disk; pre-process offline.

    References
        PyTorch Performance Tuning Guide; msprof-analyze advisor.
    """
    rows = facts.once(steady_batches)
    if len(rows) < 4 or facts.share(facts.length(waited(facts))) < options.number("share"):
        return
    if single_process(facts, rows):
        return
    time = facts.context.trace.events.dur[rows]
    variation = float(np.std(time) / max(float(np.mean(time)), 1.0))
    if variation > options.number("variation"):
        evidence = measured(variation=variation)
        yield Finding(evidence=evidence, count=len(rows), severity=Severity.INFO)
