import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.kernels.work import ratio_argument
from traceanalyze.analyses.steps.phases import event_phases
from traceanalyze.model.columns import MISSING, Rows
from traceanalyze.model.vocabulary import Phase
from traceanalyze.rules.common.computing import (
    alone_time,
    compute_finding,
    computing,
    fits,
    op_text,
    part_of_compute,
    shapes_of,
)
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, UnmeasuredError, rule

_PERSISTENT = r"(?i)persist|stream_?k|nvjet|ping_?pong|cooperative"
"""Kernels that loop over their work with as many blocks as they like, and calls for those that must all run at once."""


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
        "filled": (
            0.75,
            "own: persistent kernels leave some multiprocessors to others, such as 24 of 132 beside DeepEP",
        ),
        "least_us": (10.0, "own: shorter kernels wait for their launch, not for room"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Kernels have far fewer blocks than the device has multiprocessors.

    What it finds
        Kernels of 10 µs or more that cannot use the whole device, as they consist of too few blocks.
    Why it costs time
        Multiprocessors without a block do nothing while the others work.
    How it is measured
        Blocks per multiprocessor below 0.75 as recorded; on Ascend a block dimension below that part of the number of
        cores. Time beside other compute kernels does not count, nor do kernels that have others beside them most of
        the time. Kernels that are persistent or launched cooperatively have as many blocks as they like, whatever they
        work on, and are left out, also by name. So is the inference of single requests, which has no more work to
        give: no backward pass and no optimizer, and most time in operators on tensors whose first dimension of three
        or more is 1; without shapes a trace without steps. Their time times the part of the device without a block is
        the most that can be saved; half of that is the estimate.
    What to do
        Larger shapes or batches, batched instead of single operators, split-K products; work for a second stream.

    References
        NVIDIA Deep Learning Performance Guide; msprof-analyze advisor.
    """
    work = facts.once(computing)
    chosen = np.flatnonzero(work.time >= options.number("least_us") * 1000)
    filled = _filled(facts, work.row[chosen])
    if filled is None:
        raise UnmeasuredError("no_launch_configuration")
    few = filled < options.number("filled")
    chosen, filled = chosen[few], filled[few]
    if not len(chosen) or part_of_compute(facts, chosen) < options.number("share") or _single_request(facts):
        return
    alone = facts.once(alone_time)[chosen]
    kept = (2 * alone > work.time[chosen]) & ~fits(facts, work.name[chosen], _PERSISTENT)
    kept &= ~_cooperative(facts, work.event[chosen])
    chosen, time, part = chosen[kept], alone[kept], filled[kept]
    if not len(chosen) or part_of_compute(facts, chosen) < options.number("share"):
        return
    evidence = (Evidence("filled", float(np.average(part, weights=time)), "SHARE"),)
    empty = facts.mean(int((time * (1 - part)).sum()))
    yield compute_finding(facts, chosen, bound=empty, codes=work.name, evidence=evidence)


def _cooperative(facts: Facts, event: Rows) -> NDArray[np.bool_]:
    calls, call = facts.context.calls, facts.context.issued_by[event]
    found = call >= 0
    found[found] = fits(facts, calls.name[call[found]], _PERSISTENT)
    return found


def _single_request(facts: Facts) -> bool:
    """Whether the program infers for one request at a time."""
    context, work = facts.context, facts.once(computing)
    if np.isin(context.once(event_phases)[work.event], (Phase.BACKWARD, Phase.OPTIMIZER)).any():
        return False
    leading = op_text(facts, "shapes", work.op_row, _leading, 0)
    leading[fits(facts, work.op_name, "bmm")] = 0  # Heads, not requests.
    known = leading > 0
    if not known.any():
        return not facts.marked
    return 2 * int(work.time[known & (leading == 1)].sum()) > int(work.time[known].sum())


def _leading(text: str) -> int:
    """First dimension of the first tensor of three or more, 0 for none."""
    return next((min(shape[0], 2) for shape in shapes_of(text) if len(shape) >= 3), 0)


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
