from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.links import enqueuing_calls
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.model import intervals
from traceanalyze.model.phases import OPTIMIZER_STEP
from traceanalyze.model.vocabulary import ApiClass, DeviceClass
from traceanalyze.rules.common.communication import BACKWARD, chained, comm_finding, communicating
from traceanalyze.rules.common.computing import computing
from traceanalyze.rules.common.op_chains import inside_ranges, names_under
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, measured, rule

_COLLECTIVE = r"^(nccl|rccl|hccl):|^c10d::(?!.*wait)|^record_param_comms$"

_WAIT = ("cudaStreamWaitEvent", "hipStreamWaitEvent", "aclrtStreamWaitEvent", "AscendCL@aclrtStreamWaitEvent")


@rule(
    "COM107",
    "blocking-collective",
    title="collectives waited for at once",
    sentence=(
        "Compute waits for collectives ({count} in all) right after they are asked for: {exposed} {per} exposed, of "
        "which compute that follows could hide {hideable}, if it does not need the result."
    ),
    evidence={"hideable": "compute could hide"},
    confidence=Confidence.LOW,
    needs="DLAO",
    advice_texts={
        "async_collective": (
            "async_op=True, then work that does not need the result, then work.wait() where it is needed first."
        )
    },
    options={"part": (0.1, "own: compute that follows, over the time of the collective")},
)
def find(facts: Facts, options: Options) -> Findings:
    """The program waits for a collective right after asking for it.

    What it finds
        Collectives of which the next thing their thread does is to wait, or to let the compute stream wait, although
        compute of a tenth of their time or more follows before the next collective of the step.
    Why it costs time
        With `async_op=False`, the default, everything launched afterwards starts only when the collective is over.
    How it is measured
        Exposed time of collectives after whose launch the same thread lets a stream wait (`cudaStreamWaitEvent`), or
        waits itself, before it launches anything else; not of those that autograd asks for, nor of those that the
        optimizer follows or that lie between kernels that depend on each other, layer after layer (COM101). What
        follows may need the result, which the recording does not tell: half of the time that compute could hide is the
        estimate, all of it the most, and nothing the least.
    What to do
        `async_op=True`, work that does not need the result, `work.wait()` where it is needed first; or functional
        collectives under `torch.compile`.

    References
        torch.distributed.
    """
    work = facts.once(communicating)
    if len(work) == 0:
        return
    context = facts.context
    follows = _following(facts)
    # What autograd asks for is reduced for the optimizer, which needs it.
    backward = names_under(facts, context.event_op[work.event], BACKWARD)
    chosen = _waited_for(facts) & (work.track == context.step_track) & ~backward & ~_before_optimizer(facts)
    chosen &= ~facts.once(chained) & (work.exposed > 0) & (follows >= options.number("part") * work.time)
    if not chosen.any():
        return
    exposed = work.exposed_mean(facts, chosen)
    hidden = min(facts.per_step(np.minimum(work.exposed, follows)[chosen]), exposed)
    evidence = (
        *measured(exposed=exposed),
        Evidence("hideable", hidden, "DURATION"),
        *measured(count=int(chosen.sum())),
    )
    yield replace(comm_finding(facts, chosen, evidence, saving=hidden // 2, bound=hidden), low=0)


def _waited_for(facts: Facts) -> NDArray[np.bool_]:
    """Whether the thread that launched a collective waits, or makes a stream wait, before its next launch."""
    context = facts.context
    calls, strings = context.calls, context.trace.strings
    waits = strings.matches(calls.name, lambda text: text in _WAIT) | context.once(is_sync_call)
    acts = (calls.klass == ApiClass.LAUNCH) | (calls.klass == ApiClass.COPY)
    # What a second thread takes out of a queue (Ascend) is done for the call that put it in.
    queue = enqueuing_calls(context.trace, calls)
    acts[queue[queue >= 0]] = False
    acts[context.issued_by[context.issued_by >= 0]] = True
    waits[queue[(queue >= 0) & waits]] = True
    acts |= waits
    place = np.flatnonzero(acts & calls.outermost)
    launch = context.issued_by[facts.once(communicating).event]
    at = np.searchsorted(place, launch, "right")
    found = (launch >= 0) & (at < len(place))
    after = place[at[found]]
    same = calls.track[after] == calls.track[launch[found]]
    # The next collective also begins with a wait: its own stream waits for compute.
    next_one = names_under(facts, context.call_op[after], _COLLECTIVE)
    found[found] = waits[after] & same & ~next_one
    return found


def _before_optimizer(facts: Facts) -> NDArray[np.bool_]:
    """Collectives after which the optimizer is the next to compute."""
    work, kernels, calls = facts.once(communicating), facts.once(computing), facts.context.calls
    at = np.searchsorted(kernels.start, work.end)
    found = at < len(kernels)
    call = facts.context.issued_by[kernels.event[at[found]]]
    found[found] = call >= 0
    known = call[call >= 0]
    found[found] = inside_ranges(facts, calls.track[known], calls.start[known], OPTIMIZER_STEP.pattern)
    return found


def _following(facts: Facts) -> NDArray[np.int64]:
    """Compute between the end of each collective and the begin of the next, in its step, on the headline device."""
    work, steps = facts.once(communicating), facts.analysis.steps
    step = np.maximum(np.searchsorted(steps.start, work.start, "right") - 1, 0)
    until = np.minimum(np.append(work.start[1:], steps.end[-1]), steps.end[step])
    return intervals.coverage(facts.busy(DeviceClass.COMPUTE), work.end, np.maximum(until, work.end))
