from traceanalyze.model.vocabulary import Mode
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Severity, measured, rule


@rule(
    "CAP109",
    "no-steps",
    title="no step marked",
    sentence="No step is marked: {time} of trace are one window.",
    confidence=Confidence.HIGH,
    needs="",
    advice_texts={"mark_steps": "Mark steps: profile(schedule=…) and prof.step() after each."},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """No step is marked.

    What it finds
        Recordings of a device without step markers.
    Why it costs time
        It costs the program nothing, but the whole trace, with set-up and end, is one window.
    How it is measured
        Neither `ProfilerStep#N` nor what `--step-marker` names is in the recording.
    What to do
        Call `prof.step()` after each step.

    References
        torch.profiler.
    """
    if facts.analysis.mode == Mode.WHOLE_TRACE:
        yield Finding(evidence=measured(time=facts.step_time), severity=Severity.INFO)
