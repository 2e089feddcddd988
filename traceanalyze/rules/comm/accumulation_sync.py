from dataclasses import replace

import numpy as np

from traceanalyze.model.patterns import regex
from traceanalyze.model.phases import OPTIMIZER_STEP
from traceanalyze.rules.common.communication import BACKWARD, comm_finding, communicating
from traceanalyze.rules.common.op_chains import names_under
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, measured, rule

_FORWARD = regex(r"^DistributedDataParallel\.forward$")


@rule(
    "COM102",
    "accumulation-sync",
    title="gradients reduced in every micro-step",
    sentence=(
        "Gradients are reduced in each of {micro_steps} micro-steps: {exposed} {per} of exposed all-reduces is for "
        "nothing."
    ),
    evidence={"micro_steps": "micro-steps"},
    confidence=Confidence.HIGH,
    needs="DLO",
    advice_texts={
        "no_sync": "with ddp.no_sync(): around all micro-steps but the last; FSDP2: set_requires_gradient_sync(False)."
    },
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Gradients are reduced in every micro-step.

    What it finds
        Programs that accumulate gradients over several forward passes of DistributedDataParallel before an optimizer
        step and reduce them after each.
    Why it costs time
        Only the sum is needed: of N reductions, N - 1 are for nothing.
    How it is measured
        Forward passes between two optimizer steps; all-reduces that the backward pass after each of them asks for. The
        saving is what the step gains without the all-reduces of all but the last, and without asking for them.
    What to do
        `with ddp.no_sync():` around the first N - 1 micro-steps (FSDP2: `set_requires_gradient_sync(False)`). Gradients
        that are not reduced yet take memory with sharded strategies.

    References
        PyTorch Performance Tuning Guide; DistributedDataParallel.
    """
    ts = facts.context.trace.events.ts
    forward, updated = ts[facts.rows(RANGES, _FORWARD)], ts[facts.rows(RANGES, OPTIMIZER_STEP)]
    work = facts.once(communicating)
    # What the program asks for itself, as the mean of a metric, is no reduction of gradients.
    asked = names_under(facts, facts.context.event_op[work.event], BACKWARD) | (work.track != facts.context.step_track)
    reduces = work.of_kind("all_reduce", "reduce_scatter") & (work.issued > 0) & asked
    if len(forward) < 2 or len(updated) == 0 or not reduces.any():
        return
    # Of each forward: the optimizer step it belongs to, and whether another one follows before that.
    update = np.searchsorted(updated, forward)
    early = np.append(update[1:] == update[:-1], False) & (update < len(updated))
    of = np.searchsorted(forward, work.issued, "right") - 1
    known = reduces & (of >= 0)
    per_forward = np.bincount(of[known], minlength=len(forward))
    if not early.any() or 2 * int((per_forward[early] > 0).sum()) <= int(early.sum()):
        return
    wasted = known & early[np.maximum(of, 0)]
    # Models with several wrapped parts run several forwards before one backward: only the last of them has reductions.
    exposed = work.exposed_mean(facts, wasted)
    evidence = (
        *measured(exposed=exposed),
        Evidence("micro_steps", len(forward) / max(len(updated), 1), "NUMBER"),
        *measured(count=int(wasted.sum())),
    )
    bound = facts.per_step(work.time[wasted])
    found = comm_finding(facts, wasted, evidence, saving=exposed, bound=bound, about="DistributedDataParallel.forward")
    yield replace(found, change=without(facts, work.event[wasted]), between=())
