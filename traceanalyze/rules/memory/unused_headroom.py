from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.common.allocations import device_memory
from traceanalyze.rules.common.launching import underused
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Severity, measured, rule


@rule(
    "MEM116",
    "unused-headroom",
    title="much device memory unused",
    sentence="At most {of_capacity} of the device's memory is reserved, and the device is busy {busy} of the step.",
    confidence=Confidence.MEDIUM,
    needs="DM",
    advice_texts={"use_memory": "A larger batch, less checkpointing, larger buckets, more prefetching."},
    options={
        "share": (0.60, "own: peak of reserved memory over the capacity"),
        "busy": (0.50, "as HST110"),
        "other": (0.50, "as HST110"),
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Much of the device's memory is unused while the device is idle half of the time.

    What it finds
        A highest reserve of 60 % of the device's memory or less, in steps of too little work (HST110).
    Why it costs time
        A larger batch would share what each step costs besides.
    How it is measured
        Highest recorded reserve over the device's memory; busy time over the step. Other processes on the device are
        not seen.
    What to do
        A larger batch, less checkpointing, larger buckets and more prefetching.

    References
        PyTorch Performance Tuning Guide.
    """
    known = device_memory(facts)
    if known is None or isinstance(known[0].peak_reserved_bytes, NotMeasured):
        return
    share = known[0].peak_reserved_bytes / known[1]
    if share > options.number("share"):
        return
    busy = underused(facts, options.number("busy"), options.number("other"))
    if busy is not None:
        yield Finding(evidence=measured(of_capacity=share, busy=busy), severity=Severity.INFO)
