from collections.abc import Iterator

from traceanalyze.model import intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import Cause
from traceanalyze.rules.common.host_ops import RECORDING_NS, calls_and_work, host_ops, ranges
from traceanalyze.rules.common.launching import underused
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Severity, measured, rule

_OPTIMIZER = regex(r"^Optimizer\.(step|zero_grad)#")
LONG_NS = 1_000_000
"""What takes longer without an operator is no calling of operators."""


@rule(
    "HST110",
    "device-underused",
    title="too little work at a time",
    sentence={
        "": "The device is busy {busy} of the step.",
        "host": (
            "Operators outside of the optimizer do so little each that calling them takes {time} {per} ({share} of it, "
            "without what recording adds)."
        ),
    },
    confidence=Confidence.MEDIUM,
    needs="D",
    host="O",
    advice=("larger_batch",),
    advice_texts={"compile_host": "torch.compile makes fewer, larger operators of many."},
    options={
        "busy": (0.50, "TensorBoard plugin: utilisation below 50 %"),
        "calls": (0.40, "own: of the step without what recording adds, where the host computes"),
        "operators": (100.0, "own: a step; fewer are no training"),
        "other": (0.50, "own: data, sync, peers and untraced explain less than half of the idle time"),
    },
    rare=True,
    unless="HST101",
)
def find(facts: Facts, options: Options) -> Findings:
    """The device is busy less than half of the time.

    What it finds
        Steps with too little work for the device.
    Why it costs time
        What each step costs besides (launches, Python, communication) is shared by few samples.
    How it is measured
        Busy time below half of the step, while waiting for data, sync calls, other processes and untraced work explain
        less than half of the idle time. How much a larger batch gains cannot be told from the recording. Where the host
        launches too slowly, HST101 tells it alone. Where the host computes: two fifths of the step or more go into
        calling operators, that is time outside of the data loader, the optimizer and stretches of 1 ms without any
        operator, less 0.6 µs an operator for the profiler and what operators take themselves beyond 2 µs.
    What to do
        A larger batch (and the learning rate that belongs to it). For inference of single requests it may be as it
        must.

    References
        PyTorch Performance Tuning Guide.
    """
    if facts.host_computes:
        yield from _on_host(facts, options)
        return
    busy = underused(facts, options.number("busy"), options.number("other"))
    if busy is not None:
        yield Finding(evidence=measured(busy=busy), count=facts.window.count, severity=Severity.INFO)


def _on_host(facts: Facts, options: Options) -> Iterator[Finding]:
    """The same of a host that computes."""
    untraced = facts.host(Cause.UNTRACED)
    long = facts.clip(untraced[untraced[:, 1] - untraced[:, 0] >= LONG_NS])
    other = intervals.union(long, facts.clip(facts.host(Cause.DATA_LOADING)), ranges(facts, _OPTIMIZER))
    ops = facts.once(host_ops)
    if len(ops.place) < options.number("operators") * facts.window.count:
        return
    calls, _ = calls_and_work(facts, ops, intervals.subtract(facts.windows, other))
    # Of operators that took less than recording them adds, nothing is left to measure.
    unrecorded = max(0, facts.step_time - facts.mean(len(ops.place) * RECORDING_NS))
    if calls and calls >= options.number("calls") * unrecorded:
        yield Finding(
            bound=calls,
            sentence="host",
            evidence=measured(time=calls, share=calls / max(unrecorded, calls)),
            advice=("larger_batch", "compile_host"),
            count=facts.window.count,
            severity=Severity.INFO,
        )
