"""HST110: the device is busy less than half of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.rules.common.launching import underused
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Severity
from traceanalyze.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.rule import Options


@rule(
    "HST110",
    "device-underused",
    confidence=Confidence.MEDIUM,
    needs="D",
    advice=("larger_batch",),
    options={
        "busy": (0.50, "TensorBoard plugin: utilisation below 50 %"),
        "other": (0.50, "rules specification: data, sync, peers and untraced explain less than half of the idle time"),
    },
    rare=True,
    unless="HST101",
)
def find(facts: Facts, options: Options) -> Iterator[Finding]:
    """The device is busy less than half of the time.

    What it finds
        Steps with too little work for the device.
    Why it costs time
        What each step costs besides (launches, Python, communication) is shared by few samples.
    How it is measured
        Busy time below half of the step, while waiting for data, sync calls, other processes and untraced work explain
        less than half of the idle time. How much a larger batch gains cannot be told from the recording. Where the host
        launches too slowly, HST101 tells it alone.
    What to do
        A larger batch (and the learning rate that belongs to it). For inference of single requests it may be as it
        must.

    References
        PyTorch Performance Tuning Guide.
    """
    busy = underused(facts, options.number("busy"), options.number("other"))
    if busy is not None:
        yield Finding(evidence=(Evidence("busy", busy, "SHARE"),), count=facts.window.count, severity=Severity.INFO)
