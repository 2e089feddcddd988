from traceanalyze.rules.common.syncs import SyncUse, sync_findings, used_for
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "SYN102",
    "dynamic-shape-op",
    title="shapes that depend on data",
    sentence=(
        "Operators whose shapes depend on data ({count} sync(s) in all) leave the device without work {idle} {per}."
    ),
    confidence=Confidence.HIGH,
    needs="DLAO",
    advice_texts={
        "fixed_shapes": "Use torch.where or masks, a fixed capacity, output_size= where the operator takes it.",
        "fixed_shapes.ascend": (
            "Use torch.where or masks, a fixed capacity, output_size= where the operator takes it; such operators may "
            "also run on the AI CPU."
        ),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """The shape of a result depends on values on the device.

    What it finds
        `nonzero`, `masked_select`, indexing with a mask, `unique`, `repeat_interleave` without `output_size`.
    Why it costs time
        The host must know the shape before it can go on, so it waits for the device, which then waits for the host.
    How it is measured
        Idle time of the device that sync calls under these operators caused (definitions §7).
    What to do
        `torch.where` and masks, a fixed capacity, `output_size=` where the operator has it.

    References
        PyTorch Performance Tuning Guide; msprof-analyze advisor.
    """
    yield from sync_findings(facts, used_for(facts, SyncUse.DYNAMIC_SHAPE))
