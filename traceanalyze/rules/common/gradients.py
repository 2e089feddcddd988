"""How much of the reduction of gradients the backward pass could hide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.vocabulary import DeviceClass, Phase
from traceanalyze.rules.common.communication import communicating
from traceanalyze.rules.common.ops import names_under
from traceanalyze.rules.finding import intervals_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts

BACKWARD = r"^autograd::|Backward\d*$"
BUCKET = 25 * 2**20
"""Bytes that DistributedDataParallel reduces at once by default (`bucket_cap_mb`)."""
LAST_BUCKET = "last_bucket"
"""Evidence: what stays exposed when all other gradients are reduced during the backward pass."""


def gradients(facts: Facts) -> NDArray[np.bool_]:
    """Which of `Communicating` reduce gradients: reductions of a known size that the backward pass asks for."""
    work = facts.once(communicating)
    found: NDArray[np.bool_] = work.of_kind("all_reduce", "reduce_scatter") & (work.size > 0)
    found[found] = names_under(facts, facts.context.event_op[work.event[found]], BACKWARD)
    return found


def hideable(facts: Facts, chosen: NDArray[np.bool_]) -> tuple[int, int]:
    """Exposed time of reductions of gradients that backward compute could hide, and that of the last bucket, ns a step.

    In buckets of the default size: the last one is ready when nothing is left to compute, so it stays exposed; and the
    first one is not before its share of the backward pass is over, so that much compute hides nothing.
    """
    work = facts.once(communicating)
    size, time = facts.mean(int(work.size[chosen].sum())), facts.mean(int(work.time[chosen].sum()))
    exposed = facts.length(work.exposed_spans(chosen))
    part = min(1.0, BUCKET / max(size, 1))
    room = round(_backward(facts) * (1 - part)) - (time - exposed)
    last = min(exposed, round(time * part))
    return max(0, min(exposed - last, room)), last


def _backward(facts: Facts) -> int:
    """Compute of the backward pass, ns a step."""
    context = facts.context
    device = context.device
    mine = (device.klass == DeviceClass.COMPUTE) & (device.device == context.devices[0])
    mine &= context.event_phases == Phase.BACKWARD
    return facts.length(intervals_of(device.start[mine], device.end[mine]))
