from traceanalyze.rules.common.allocations import memory_finding
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, Severity, measured, need, rule


@rule(
    "MEM115",
    "small-long-lived",
    title="small long-lived blocks",
    sentence=(
        "{blocks} blocks below 1 MiB ({of_live} of all live ones) live throughout; alone they keep {segments} segments "
        "with {amount} free."
    ),
    evidence={"blocks": "blocks", "of_live": "share of live blocks", "segments": "segments"},
    confidence=Confidence.MEDIUM,
    needs="N",
    advice=("contiguous_buffer", "gradient_views"),
    advice_texts={
        "gradient_views": "DistributedDataParallel(gradient_as_bucket_view=True): gradients are views of the buckets."
    },
    options={
        "blocks": (1000.0, "own: blocks below 1 MiB"),
        "of_live": (0.30, "own: share of the live blocks"),
        "held": (0.01, "own, of the reserved peak: as the avoidable bytes of MEM104"),
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Small long-lived blocks keep memory from the device.

    What it finds
        A thousand or more blocks below 1 MiB that live nearly throughout, spread over segments that nothing else keeps.
    Why it costs time
        A segment goes back to the device only as a whole, and is used only for small blocks: what is free in it is
        lost, and thousands of tensors cost the host time in every step.
    How it is measured
        Blocks at the peak that live for 90 % of the snapshot's history, and the free bytes of the segments that only
        they keep: 1 % of the reserved peak or more.
    What to do
        One contiguous buffer with views: flat parameters and gradients, `gradient_as_bucket_view`, foreach buffers.

    References
        CUDA semantics: memory management; DistributedDataParallel.
    """
    found = need(facts.snapshot.small)
    many = found.count >= options.number("blocks") and found.share >= options.number("of_live")
    if many and found.held >= options.number("held") * facts.snapshot.most_reserved:
        yield memory_finding(
            Severity.INFO,
            found.line,
            found.count,
            Evidence("blocks", found.count, "COUNT"),
            Evidence("of_live", found.share, "SHARE"),
            Evidence("segments", found.segments, "COUNT"),
            *measured(amount=found.held),
        )
