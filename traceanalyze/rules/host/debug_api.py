from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Scope, Severity, measured, rule

_DEBUG = regex(
    r"anomaly_mode\.py|detect_anomaly|emit_nvtx|emit_itt|gradcheck|gradgradcheck|set_sync_debug_mode|warn_on_synchronize"
)


@rule(
    "HST105",
    "debug-api",
    title="debugging tools switched on",
    sentence="Debugging tools run inside the steps, {count} time(s): {what}.",
    confidence=Confidence.HIGH,
    needs="OP",
    advice_texts={"no_debugging": "Switch debugging tools off in production runs."},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Debugging tools run inside the steps.

    What it finds
        Python functions and ranges of `detect_anomaly`, `emit_nvtx`, `gradcheck` and `set_sync_debug_mode`.
    Why it costs time
        They check or mark every operator, and some wait for the device.
    How it is measured
        By name, in the analysed steps. What they cost cannot be told from the recording.
    What to do
        Switch them off outside of debugging.

    References
        PyTorch Performance Tuning Guide.
    """
    rows = facts.rows((*RANGES, EventKind.PYTHON), _DEBUG)
    if not len(rows):
        return
    names = tuple(dict.fromkeys(facts.name(row) for row in rows.tolist()))
    yield Finding(
        evidence=measured(what=names[0], count=len(rows)),
        scope=Scope(ops=names[:3]),
        count=len(rows),
        severity=Severity.MEDIUM,
    )
