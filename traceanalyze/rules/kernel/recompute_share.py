import numpy as np

from traceanalyze.analyses.steps.phases import event_phases
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Phase
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, UnmeasuredError, measured, rule


@rule(
    "KRN114",
    "recompute-share",
    title="recomputation although memory is left",
    sentence="Recomputation takes {time} {per} ({share} of the time), and {left} of the device's memory is never used.",
    confidence=Confidence.MEDIUM,
    needs="DOM",
    advice_texts={
        "less_checkpointing": (
            "Checkpoint fewer blocks, or only what is cheap to compute again (selective checkpointing)."
        )
    },
    options={"share": (0.15, "own: of the step"), "left": (0.20, "own: of the device's memory")},
)
def find(facts: Facts, options: Options) -> Findings:
    """Much is computed twice although memory is left.

    What it finds
        Activation checkpointing that takes 15 % of the step or more while 20 % of the device's memory is never used.
    Why it costs time
        Checkpointing trades time for memory: the forward of each block runs again in the backward.
    How it is measured
        Device time of recomputation (definitions §10); reserved memory at its highest, against the device's. Half of
        the recomputation is the estimate, as part of the blocks can do without; at most, all of it.
    What to do
        Checkpoint fewer blocks, or only what is cheap to compute again (attention, activation functions), by a
        selective policy.

    References
        PyTorch Performance Tuning Guide; Ascend foundation-model tuning guide.
    """
    phases = facts.analysis.tables["phases"]
    if phases.absent is not None:
        raise UnmeasuredError(phases.absent.reason)
    again = sum(one.device_ns for one in phases.records() if one.phase == "phase_recompute")
    share = facts.share(again)
    if share < options.number("share"):
        return
    left = _left(facts)
    if left is None:
        raise UnmeasuredError("unknown_capacity")
    if left >= options.number("left"):
        evidence = measured(time=again, share=share, left=left)
        event = np.flatnonzero(facts.context.once(event_phases) == Phase.RECOMPUTE)
        change = without(facts, event[facts.inside(facts.context.device.start[event])], 0.5)
        yield Finding(
            saving=again // 2, bound=again, change=change, draws="compute", evidence=evidence, count=facts.window.count
        )


def _left(facts: Facts) -> float | None:
    """Part of the headline device's memory that was never reserved, None where unknown."""
    sizes = [one.memory_bytes for one in facts.context.trace.devices if one.memory_bytes]
    devices = (one for one in facts.analysis.records("memory") if one.memory_of == "memory_of_device")
    known = [one.peak_reserved_bytes for one in devices if not isinstance(one.peak_reserved_bytes, NotMeasured)]
    return 1 - max(known) / min(sizes) if known and sizes else None
