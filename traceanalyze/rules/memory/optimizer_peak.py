from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, UnmeasuredError, measured, rule

_OPTIMIZER = ("phase_optimizer", "phase_zero_grad")


@rule(
    "MEM118",
    "optimizer-peak",
    title="the optimizer makes the peak",
    sentence="Memory is highest ({peak}) inside the optimizer's step.",
    confidence=Confidence.MEDIUM,
    needs="D",
    advice_texts={
        "lean_optimizer": "fused=True, or foreach=False: fewer copies at once; or a sharded optimizer (ZeRO-1, FSDP)."
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """The optimizer makes the peak.

    What it finds
        A peak of memory under `optimizer.step`, in a step after the first.
    Why it costs time
        The peak decides how large a batch can be; copies of all parameters at once raise it for an instant.
    How it is measured
        Place of the peak: of a snapshot by its annotations, else of the recorded totals by the phases of the step. The
        first step, which makes the optimizer's state, says nothing.
    What to do
        `fused=True`, or `foreach=False`; a sharded optimizer (ZeRO-1, FSDP).

    References
        torch.optim; Understanding CUDA memory usage.
    """
    if facts.allocator is not None and facts.allocator.events > 1:
        peak = _of_snapshot(facts)
    elif facts.missing("M") is not None:
        raise UnmeasuredError("no_memory_records")
    else:
        peak = _of_records(facts)
    if peak:
        yield memory_finding(Severity.INFO, "", 1, *measured(peak=peak))


def _of_snapshot(facts: Facts) -> int:
    """Requested bytes of a peak inside an annotated optimizer; 0 elsewhere."""
    allocator = facts.snapshot
    peak, begins = next(allocator.moments.records()), allocator.steps.array("event")
    inside = any(name.startswith("Optimizer.step#") for name in (peak.within or "").split(" > "))
    later = peak.event is not None and (len(begins) < 2 or peak.event >= begins[1])
    return peak.requested_bytes if inside and later else 0


def _of_records(facts: Facts) -> int:
    """Allocated bytes of the headline device's peak in the phase of the optimizer; 0 elsewhere."""
    names = facts.analysis.steps.name
    first = step_labels(names[:1])
    for one in facts.analysis.records("memory_peak_place"):
        if one.device == facts.analysis.device and one.phase in _OPTIMIZER and one.step is not None:
            return 0 if len(names) > 1 and one.step in first else int(one.peak_bytes)
    return 0
