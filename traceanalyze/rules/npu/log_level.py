from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Scope, Severity, rule


@rule(
    "NPU104",
    "log-level",
    title="log level",
    sentence="The libraries log from level {level} on.",
    evidence={"level": "level"},
    confidence=Confidence.LOW,
    needs="E",
    advice_texts={"errors_only": "ASCEND_GLOBAL_LOG_LEVEL=3."},
    platforms=("ascend",),
)
def find(facts: Facts, options: Options) -> Findings:
    """The libraries write log messages below the level of errors.

    What it finds
        `ASCEND_GLOBAL_LOG_LEVEL` set to 0, 1 or 2 (debug, info, warning).
    Why it costs time
        Every message is made and written on the threads that launch.
    How it is measured
        The variable as the profile states it. What it costs cannot be told from the recording.
    What to do
        `ASCEND_GLOBAL_LOG_LEVEL=3` outside debugging.

    References
        msprof-analyze advisor.
    """
    level = (facts.context.trace.environment or {}).get("ASCEND_GLOBAL_LOG_LEVEL", "")
    if level not in {"0", "1", "2"}:
        return
    yield Finding(
        evidence=(Evidence("level", level, "TEXT"),),
        scope=Scope(ops=("ASCEND_GLOBAL_LOG_LEVEL",)),
        severity=Severity.LOW,
    )
