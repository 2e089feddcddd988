from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, Severity, rule

_SETTINGS = {
    "expandable_with_max_split": "max_split_size_mb with expandable_segments",
    "gc_threshold_without_fraction": "garbage_collection_threshold without a memory fraction",
}


@rule(
    "MEM119",
    "allocator-config",
    title="allocator settings without effect",
    sentence="No effect: {setting}.",
    confidence=Confidence.HIGH,
    needs="N",
    advice_texts={
        "settings_together": (
            "Remove the setting, or set what it needs: set_per_process_memory_fraction for the threshold."
        )
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Settings of the allocator have no effect, or exclude each other.

    What it finds
        `max_split_size_mb` with expandable segments; `garbage_collection_threshold` without a memory fraction.
    Why it costs time
        What they were set for does not happen.
    How it is measured
        Settings stored in the snapshot.
    What to do
        As named by the finding.

    References
        Understanding CUDA memory usage; CUDA semantics.
    """
    for key in facts.snapshot.settings:
        if key in _SETTINGS:
            evidence = Evidence("setting", _SETTINGS[key], "NAME")
            yield memory_finding(Severity.LOW, _SETTINGS[key], 1, evidence)
