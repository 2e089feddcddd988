import numpy as np

from traceanalyze.analyses.kernels.work import ratio_argument
from traceanalyze.model.columns import occurs
from traceanalyze.rules.common.computing import PRODUCTS, compute_finding, computing, part_of_compute
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, UnmeasuredError, rule


@rule(
    "KRN103",
    "wave-tail",
    title="last wave nearly empty",
    sentence="Products whose last wave of blocks is nearly empty take {time} {per} ({part} of compute).",
    confidence=Confidence.LOW,
    needs="DK",
    advice_texts={"fill_waves": "Try batch or hidden sizes that fill whole waves, or other tile sizes."},
    options={
        "fraction": (0.2, "NVIDIA Deep Learning Performance Guide: of a wave"),
        "share": (0.10, "own: of compute"),
    },
    platforms=("cuda",),
)
def find(facts: Facts, options: Options) -> Findings:
    """The last wave of blocks fills little of the device.

    What it finds
        Matrix products and convolutions whose blocks per multiprocessor are just above a whole number.
    Why it costs time
        All multiprocessors work in waves; the last one has few blocks, and takes as long as a full one.
    How it is measured
        Blocks per multiprocessor as recorded, above 1 and with a fraction below 0.2, on a tenth of compute or more. The
        saving is what the last wave lacks in blocks; several blocks may run on a multiprocessor at once, and kernels
        may share blocks out by themselves, so this is a hint.
    What to do
        Batch and hidden sizes that fill whole waves, other tile sizes.

    References
        NVIDIA Deep Learning Performance Guide.
    """
    work = facts.once(computing)
    if "blocks_per_sm" not in facts.context.trace.events.fields:
        raise UnmeasuredError("no_launch_configuration")
    product = np.flatnonzero(occurs(work.group, PRODUCTS))
    waves = np.nan_to_num(ratio_argument(facts.context, "blocks_per_sm", work.row[product]))
    tail = waves % 1
    last = (waves > 1) & (tail > 0) & (tail < options.number("fraction"))
    chosen, waves = product[last], waves[last]
    if len(chosen) and part_of_compute(facts, chosen) >= options.number("share"):
        saved = facts.mean(int((work.time[chosen] * (1 - waves / np.ceil(waves))).sum()))
        yield compute_finding(facts, chosen, bound=saved, codes=work.name, severity=Severity.INFO)
