import numpy as np

from traceanalyze.model.columns import median
from traceanalyze.model.intervals import merge
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.loader import batches, begun_anew, single_process
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, intervals_of, rule


@rule(
    "DAT102",
    "worker-restart",
    title="workers of the loader restarted",
    sentence=(
        "The loader takes up to {longest} for a batch, {count} time(s), where {median} is usual: its workers start "
        "anew."
    ),
    confidence=Confidence.MEDIUM,
    needs="DO",
    host="O",
    advice_texts={"persistent_workers": "DataLoader(persistent_workers=True), or longer epochs."},
    options={"ratio": (10.0, "own: the longest wait over the median")},
    rare=True,
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """The loader's workers are created again for every epoch.

    What it finds
        Waits for a batch that are more than ten times the median and come more than once, each with a proof that the
        loader began anew: a recorded call that makes its iterator, or the end of an epoch, a range of the loader after
        which no operator runs before the next one. The recording's first wait does not count. Waits without a proof,
        as for every batch of the slowest worker, are DAT101's.
    Why it costs time
        New worker processes must be started and must fill their queues while the device waits.
    How it is measured
        Durations of the loader's ranges; the saving is what a replay of the launches without the excess gains; where
        the host alone computes, the excess itself.
    What to do
        `persistent_workers=True`; longer epochs.

    References
        torch.utils.data.
    """
    rows = facts.once(batches)
    if len(rows) < 6:
        return
    spans = facts.spans(rows)
    time = spans[:, 1] - spans[:, 0]
    usual = int(median(time))
    long = np.flatnonzero(time > options.number("ratio") * max(usual, 1))
    if len(long) > 1:
        long = long[(long > 0) & begun_anew(facts, rows)[long]]
    if len(long) < 2 or single_process(facts, rows):
        return
    excess = merge(spans[long, 0], spans[long, 1] - usual)
    host = facts.host_computes
    yield Finding(
        saving=facts.length(intervals_of(*excess)) if host else None,
        bound=facts.per_step(time[long] - usual),
        draws="host.data_loading" if host else "idle",
        change=None if host else Change(excess),
        intervals=intervals_of(*excess) if host else None,
        evidence=(
            Evidence("count", len(long), "COUNT"),
            Evidence("longest", int(time[long].max()), "DURATION", *spans[long[np.argmax(time[long])]].tolist()),
            Evidence("median", usual, "DURATION"),
        ),
        count=len(long),
    )
