from traceanalyze.model.columns import median
from traceanalyze.replay.host import READY_NS
from traceanalyze.rules.common.loader import single_process, steady_batches, waited
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Severity, rule


@rule(
    "DAT105",
    "loader-slowdown",
    title="loader becomes slower",
    sentence="Waits for the loader grow from {first} to {last} during the recording.",
    evidence={"first": "first third", "last": "last third"},
    confidence=Confidence.LOW,
    needs="DO",
    host="O",
    advice_texts={"plain_arrays": "Keep samples in numpy or arrow arrays instead of lists of Python objects."},
    options={"ratio": (2.0, "own: last third over first third"), "share": (0.01, "as all rules")},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """The loader becomes slower in the course of the recording.

    What it finds
        Waits for batches whose median in the last third is twice that of the first third or more.
    Why it costs time
        Reading Python objects in worker processes writes their reference counts, so that their pages are copied one by
        one; or memory runs out. What it costs is counted by DAT101.
    How it is measured
        Durations of nine or more of the loader's ranges, while data loading leaves the device idle, or the host
        without work. Of a loader with workers only if batches are not ready in the first third: how long those take
        that lie in a queue, filled while the program started, tells nothing of the workers.
    What to do
        Keep samples in numpy or arrow arrays instead of lists of Python objects.

    References
        torch.utils.data.
    """
    rows = facts.once(steady_batches)
    if len(rows) < 9 or facts.share(facts.length(waited(facts))) < options.number("share"):
        return
    time, third = facts.context.trace.events.dur[rows], len(rows) // 3
    first, last = median(time[:third]), median(time[-third:])
    if first < READY_NS and not single_process(facts, rows):
        return
    if last >= options.number("ratio") * max(first, 1.0):
        yield Finding(
            evidence=(Evidence("first", round(first), "DURATION"), Evidence("last", round(last), "DURATION")),
            count=len(rows),
            severity=Severity.INFO,
        )
