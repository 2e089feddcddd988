from traceanalyze.analyses.idle.launches import median_depth
from traceanalyze.model.vocabulary import Cause
from traceanalyze.rules.ranking import MEDIUM
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Severity, measured, rule


@rule(
    "HST103",
    "kernel-gaps",
    title="many gaps between queued kernels",
    sentence="Between queued kernels the device is idle for {idle} {per}, in {count} gap(s) in all.",
    confidence=Confidence.MEDIUM,
    needs="DL",
    advice=("fewer_kernels", "graphs"),
    options={
        "share": (0.03, "own: of the step"),
        "depth": (2.0, "own: the queue is not empty"),
        "graphs_save": (0.5, "own: part of a gap that goes where kernels follow each other inside a graph"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """The device switches between many queued kernels.

    What it finds
        Steps in which the usual microsecond from kernel to kernel adds up.
    Why it costs time
        Starting a kernel costs the device some time even when it is queued; with very many kernels that is noticeable.
    How it is measured
        Idle time between kernels that were queued, gaps of at most 10 µs (definitions §5), from 3 % of the step on,
        with a median queue depth of 2 or more. Inside graphs about half of it goes; fusion removes all of it. Not
        judged where the clock has whole microseconds.
    What to do
        Fewer kernels (fusion, `torch.compile`), CUDA graphs.

    References
        Holistic Trace Analysis.
    """
    if (facts.context.once(median_depth) or 0.0) < options.number("depth"):
        return
    whole = facts.idle_mean(Cause.DEVICE_GAP)
    if facts.share(whole) < options.number("share") or facts.context.trace.resolution_ns > 1:
        return
    spans = facts.idle(Cause.DEVICE_GAP)
    saving = round(whole * options.number("graphs_save"))
    yield Finding(
        saving=saving,
        bound=whole,
        draws="idle.device_side",
        intervals=spans,
        evidence=measured(idle=whole, count=len(spans)),
        count=len(spans),
        # A few percent is how devices are, also in healthy programs.
        severity=None if facts.share(saving) >= MEDIUM else Severity.INFO,
    )
