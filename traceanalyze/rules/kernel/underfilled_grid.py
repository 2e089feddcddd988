import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.kernels.work import ratio_argument
from traceanalyze.model.columns import MISSING
from traceanalyze.rules.common.computing import compute_finding, computing, part_of_compute
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, UnmeasuredError, rule


@rule(
    "KRN111",
    "underfilled-grid",
    title="too few blocks for the device",
    sentence=(
        "Kernels with fewer blocks than the device has room for take {time} {per} ({part} of compute); they fill "
        "{filled} of it."
    ),
    evidence={"filled": "device filled"},
    confidence=Confidence.MEDIUM,
    needs="DK",
    advice_texts={
        "more_parallelism": "Larger shapes or batches, batched operators, or a second stream beside these kernels.",
        "more_parallelism.ascend": "Larger shapes or batches, batched operators; tune them with AOE.",
    },
    options={
        "share": (0.10, "msprof-analyze advisor: of compute"),
        "least_us": (10.0, "own: shorter kernels wait for their launch, not for room"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Kernels have fewer blocks than the device has multiprocessors.

    What it finds
        Kernels of 10 µs or more that cannot use the whole device, as they consist of too few blocks.
    Why it costs time
        Multiprocessors without a block do nothing while the others work.
    How it is measured
        Blocks per multiprocessor below 1 as recorded; on Ascend a block dimension below the number of cores. Their time
        times the part of the device without a block is the most that can be saved; half of that is the estimate.
    What to do
        Larger shapes or batches, batched instead of single operators, split-K products; work for a second stream.

    References
        NVIDIA Deep Learning Performance Guide; msprof-analyze advisor.
    """
    work = facts.once(computing)
    filled = _filled(facts, work.row)
    if filled is None:
        raise UnmeasuredError("no_launch_configuration")
    chosen = (np.nan_to_num(filled, nan=1.0) < 1) & (work.time >= options.number("least_us") * 1000)
    if not chosen.any() or part_of_compute(facts, chosen) < options.number("share"):
        return
    time, part = work.time[chosen], filled[chosen]
    evidence = (Evidence("filled", float(np.average(part, weights=time)), "SHARE"),)
    empty = facts.mean(int((time * (1 - part)).sum()))
    yield compute_finding(facts, chosen, bound=empty, codes=work.name, evidence=evidence)


def _filled(facts: Facts, row: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Part of the device that each kernel has blocks for, NaN where unknown; None where nothing tells."""
    fields = facts.context.trace.events.fields
    if "blocks_per_sm" in fields:
        return ratio_argument(facts.context, "blocks_per_sm", row)
    units = {one.compute_units for one in facts.context.trace.devices if one.compute_units}
    if "block_dim" not in fields or len(units) != 1:
        return None
    blocks = facts.context.trace.events.numbers("block_dim", row)
    return np.where(blocks == MISSING, np.nan, blocks / units.pop())
