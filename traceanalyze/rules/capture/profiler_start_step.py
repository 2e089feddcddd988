from traceanalyze.model.columns import median
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Severity, rule


@rule(
    "CAP101",
    "profiler-start-step",
    title="recording started in the first step",
    sentence="The first step takes {ratio} times the usual; recording may have started in it.",
    evidence={"ratio": "first step over the median"},
    confidence=Confidence.HIGH,
    needs="",
    advice=("profiler_warmup",),
    options={"ratio": (1.5, "own: first step over the median")},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """The first step contains the start of the recording.

    What it finds
        A first recorded step much longer than the others, or cut.
    Why it costs time
        It costs the program nothing, but means over few steps are wrong by it.
    How it is measured
        First step over the median of the steps, 1.5 times or more, with three steps or more; a first step of more than
        twice the usual is left out of all numbers, and the verdict says so.
    What to do
        Let the profiler warm up: `schedule(wait=1, warmup=1, active=…)`; or leave the step out with `--steps`.

    References
        torch.profiler.
    """
    steps = facts.analysis.steps
    time = steps.time[list(facts.window.rows)]
    if not facts.marked or len(time) < 3 or steps.iterations is not None:
        return
    middle = int(median(time))
    if time[0] >= options.number("ratio") * max(middle, 1):
        yield Finding(evidence=(Evidence("ratio", float(time[0]) / max(middle, 1), "RATIO"),), severity=Severity.INFO)
