from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Severity, rule

_NAMES = {
    "D": "device",
    "L": "runtime calls",
    "O": "operators",
    "H": "record_shapes",
    "P": "with_stack",
    "M": "profile_memory",
}
"""Code of a need → what was not recorded, by the name of the profiler's option where it has one."""

_OF_DEVICES = "DL"
"""What there is not where the host alone computes."""


@rule(
    "CAP102",
    "thin-recording",
    title="parts not recorded",
    sentence="Not recorded, so some findings are impossible: {what}.",
    confidence=Confidence.HIGH,
    needs="",
    advice_texts={
        "record_more.cuda": (
            "Record once more with record_shapes, with_stack or profile_memory; they slow the host down."
        ),
        "record_more.ascend": (
            "Record once more with profiler_level=Level1, aic_metrics, record_shapes, with_stack or profile_memory."
        ),
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """The recording leaves out what some findings need.

    What it finds
        Layers and details that were not recorded: device, runtime calls, operators, shapes, Python functions, memory.
    Why it costs time
        It costs the program nothing, but what is not recorded cannot be found.
    How it is measured
        By what is there: the first need of each rule that is not met is listed among the rules that could not be
        judged.
    What to do
        Record it once more with the options named; stacks and shapes make the host slower, so not in the same
        recording.

    References
        torch.profiler.
    """
    absent = _OF_DEVICES if facts.host_computes else ""
    lacking = [name for code, name in _NAMES.items() if code not in absent and facts.missing(code) is not None]
    if lacking:
        yield Finding(
            evidence=(Evidence("what", ", ".join(lacking), "TEXT"),), count=len(lacking), severity=Severity.INFO
        )
