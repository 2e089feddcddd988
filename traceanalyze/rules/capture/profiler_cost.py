from traceanalyze.analyses.idle.pauses import profiling
from traceanalyze.rules.capture import failed_checks
from traceanalyze.rules.pricing import LEAST_SHARE
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Severity, measured, rule


@rule(
    "CAP107",
    "profiler-cost",
    title="profiler slowed the host",
    sentence={
        "": (
            "Recording details made the host slower, so its share is an upper bound; see {checks} under the quality of "
            "the recording."
        ),
        "own": (
            "The device is idle for {idle} {per} ({share}) while the profiler sees to its own buffers; a run that "
            "nobody records does not wait for that."
        ),
    },
    confidence=Confidence.HIGH,
    needs="",
    advice_texts={
        "light_recording": "Confirm findings about the host with a recording without stacks, shapes and memory."
    },
    rare=True,
    order=-2,
)
def find(facts: Facts, options: Options) -> Findings:
    """Recording details made the host slower.

    What it finds
        Python stacks, shapes or memory recorded; idle time while the profiler requests or flushes buffers.
    Why it costs time
        The host is slower than without the profiler, so its share of the step is an upper bound.
    How it is measured
        By the checks of the recording's quality that stand at the end of the report, and by what the recording says of
        its own overhead, from 1 % of the step on: no other rule counts that time.
    What to do
        Confirm findings about the host with a recording of activities alone.

    References
        torch.profiler.
    """
    yield from failed_checks(each for each in facts.analysis.checks if each.id == "Q11")
    if facts.missing("D"):
        return
    own = facts.overlap(facts.context.once(profiling))
    time = facts.length(own)
    if time and facts.share(time) >= LEAST_SHARE:
        yield Finding(
            cost=time,
            draws="idle",
            intervals=own,
            sentence="own",
            evidence=measured(idle=time, share=facts.share(time)),
            severity=Severity.INFO,
            count=len(own),
        )
