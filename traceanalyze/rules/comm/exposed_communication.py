import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import intervals
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.vocabulary import DeviceClass
from traceanalyze.rules.common.communication import (
    LAST_BUCKET,
    NEEDING,
    WAIT_POSSIBLE,
    Communicating,
    chained,
    communicating,
    gradients,
    hideable,
    needing_compute,
    perhaps_waiting,
)
from traceanalyze.rules.common.computing import names_of
from traceanalyze.rules.ranking import HIGH
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    intervals_of,
    measured,
    merged,
    rule,
)


@rule(
    "COM101",
    "exposed-communication",
    title="communication that nothing hides",
    sentence={
        "": (
            "For {exposed} {per} ({share} of the time) communication runs with no compute beside it; {overlap} of the "
            "communication is hidden. Part of it may be waiting for other ranks."
        ),
        "unknown": (
            "For {exposed} {per} ({share} of the time) communication runs with no compute beside it; whether it moves "
            "data or waits for other ranks shows only beside their recordings."
        ),
        "as_fast": (
            "For {exposed} {per} ({share} of the time) communication runs with no compute beside it. As fast as others "
            "of as many bytes or more, it would need {as_fast} at most: the rest waits for other ranks, or for more "
            "data from them."
        ),
        "chain": (
            "For {exposed} {per} ({share} of the time) communication has the device to itself, {count} collectives in "
            "all: the kernel after each of them waits for it at once, layer after layer. Part of it may be waiting for "
            "other ranks."
        ),
        "chain_waiting": (
            "For {exposed} {per} ({share} of the time) communication has the device to itself, {count} collectives in "
            "all: the kernel after each of them waits for it at once, layer after layer. {wait_exposed} of all "
            "communication that nothing hides is waiting for other ranks."
        ),
        "waiting": (
            "For {exposed} {per} ({share} of the time) communication runs with no compute beside it; {overlap} of the "
            "communication is hidden. {wait_exposed} of it would be gone if all ranks came in time: it is waiting for "
            "others, and no overlap removes it."
        ),
        "waiting_least": (
            "For {exposed} {per} ({share} of the time) communication runs with no compute beside it; {overlap} of the "
            "communication is hidden. At least {wait_exposed} of it is waiting for other ranks, and no overlap removes "
            "that."
        ),
        "own": (
            "For {exposed} {per} ({share} of the time) communication runs with no compute beside it; {overlap} of the "
            "communication is hidden. It waits for nobody: its groups have this rank alone."
        ),
    },
    evidence={
        "overlap": "communication hidden",
        "wait_exposed": "of it waiting",
        WAIT_POSSIBLE: "of it perhaps waiting",
        NEEDING: "of it perhaps needing the compute before it",
        "as_fast": "of it as fast as others of as many bytes",
        "most_exposed": "type with most of it",
    },
    confidence=Confidence.HIGH,
    needs="D",
    advice_texts={
        "overlap_all_to_all": (
            "Start each all-to-all (embeddings, experts) before compute that does not need its result, and wait for it "
            "after that; balance what ranks send (sharding of tables, routing); send a smaller type (float16, FP8)."
        ),
        "overlap_gathers": (
            "Let FSDP prefetch (forward_prefetch=True, backward_prefetch=BACKWARD_PRE; in FSDP2 "
            "set_modules_to_forward_prefetch), wrap larger blocks, keep parameters gathered where memory allows it "
            "(reshard_after_forward=False), or shard within a node only."
        ),
        "overlap_reductions": (
            "Tune DDP (bucket_cap_mb, static_graph=True, gradient_as_bucket_view=True), reduce gradients in bfloat16, "
            "accumulate them over several batches, or raise the batch."
        ),
        "overlap_transfers": (
            "Change the schedule of the pipeline: more microbatches, interleaved stages, send and receive before "
            "compute that does not need the result; give its stages equal work."
        ),
        "split_chain": (
            "Less of this parallelism and more data parallelism, or within a node only; larger steps in halves, one of "
            "which computes while the other communicates (asynchronous tensor parallelism); a smaller type."
        ),
        "overlap_others": "Start collectives before compute that does not need their result, and wait after that.",
        "leave_out": "Leave collectives of a single rank out: no other one needs what they send.",
        "compare_ranks_first": "Compare the ranks: waiting for a late one is no matter of overlap.",
    },
    options={"share": (0.10, "TensorBoard plugin: exposed communication from a tenth of the step on")},
    order=1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Communication runs with no compute beside it.

    What it finds
        Steps that spend a tenth of their time or more in communication that nothing hides, and that is not known to be
        waiting.
    Why it costs time
        The device only waits for data of other ranks.
    How it is measured
        Exposed communication of the partition (definitions §4). It can be hidden under compute of the same step that
        runs without communication now, so the saving is the lesser of the two, step by step. Gradients are hidden by
        the backward pass that asks for them only, which is the last one where several add up: where the shapes of all
        were recorded, in buckets as DistributedDataParallel fills them (1 MB, then 25 MB each), each reduced when its
        last gradient is there; else but for the last bucket of 25 MB, which is ready when that pass is over.
        What is neither gradients nor parameters may need the compute right before it: half of it counts, and at
        least none. Collectives as of tensor, sequence or expert parallelism (four a step or more for which the
        next kernel waits, which have the device to themselves, and between which other kernels compute) are
        told apart, with a cost and no saving: the recording does not tell whether they could begin sooner, as
        parameters that are gathered can. The time includes waiting for ranks that come later, which no overlap
        removes: compare the ranks first. What this recording alone shows to be waiting (COM120) does not count.
        Where other ranks were not recorded, all but what the shortest of four collectives of one type and size
        needs in the same step may be waiting; that one may wait, too, so at least nothing is saved: of one rank
        the middle is told. Where one of its kind and group that sent as much or more took less than half of the
        time, the rest of a collective is told as time that waits for other ranks, or for what these send.
    What to do
        By the type with most exposed time: all-to-all of embeddings and experts before compute that does not need them;
        prefetching in FSDP for gathers and scatters; the defaults of DDP (`bucket_cap_mb`, `static_graph`,
        `gradient_as_bucket_view`) for all-reduces; the schedule of the pipeline for send and receive. Tensor parallel
        all-reduces can hardly be hidden.

    References
        DistributedDataParallel; FSDP; TensorBoard profiler plugin.
    """
    work, chain = facts.once(communicating), facts.once(chained)
    bound = work.exposed_mean(facts, chain)
    if bound and facts.share(bound) >= options.number("share"):
        gathers = _ADVICE.get(_most_exposed(work, chain)) == "overlap_gathers"
        yield Finding(
            cost=bound,
            draws="comm_exposed",
            intervals=work.exposed_spans(chain),
            evidence=measured(exposed=bound, share=facts.share(bound), count=int(chain.sum())),
            advice=(*(("overlap_gathers",) if gathers else ()), "split_chain", "compare_ranks_first"),
            sentence="chain",
            scope=_scope(facts, work, chain),
            count=int(chain.sum()),
            severity=Severity.MEDIUM if facts.share(bound) >= HIGH else Severity.LOW,
            confidence=Confidence.LOW,
        )
    whole = (facts.amount_of("comm_exposed") or 0) - bound
    waiting = facts.mean(intervals.total(work.waits.spans))
    exposed = whole - waiting
    if facts.share(exposed) < options.number("share"):
        return
    total = facts.mean(intervals.total(intervals.intersect(facts.windows, intervals.merge(work.start, work.end))))
    hidden = max(0, total - whole - bound)
    spans = intervals_of(*intervals.subtract(work.free, merged(work.exposed_spans(chain))))
    sure, saving, most, last = _saving(facts, work, spans)
    possible, kind = perhaps_waiting(facts), _most_exposed(work, ~chain)
    needing, slower = saving - sure, 0
    if work.waits.slower is not None and possible:
        late = intervals.merge(work.start, work.start + work.waits.slower)
        slower = facts.mean(intervals.total(intervals.intersect(merged(spans), late)))
    doubt, sentence = Confidence.LOW if 2 * needing > saving else Confidence.MEDIUM, _sentence(work)
    yield Finding(
        saving=saving - needing // 2,
        low=sure if needing else None,
        bound=saving if needing else most,
        confidence=doubt if needing else None,
        severity=Severity.MEDIUM if doubt == Confidence.LOW and facts.share(saving - needing // 2) >= HIGH else None,
        draws="comm_exposed",
        intervals=spans,
        evidence=(
            *measured(exposed=whole, share=facts.share(whole)),
            Evidence("overlap", hidden / total if total else 0.0, "SHARE"),
            Evidence("count", int((~chain).sum()), "COUNT"),
            *((Evidence(LAST_BUCKET, last, "DURATION"),) if last else ()),
            *((Evidence("wait_exposed", waiting, "DURATION"),) if work.waits.how else ()),
            *((Evidence(NEEDING, needing, "DURATION"),) if needing else ()),
            *((Evidence("as_fast", exposed - slower, "DURATION"),) if slower else ()),
            *((Evidence(WAIT_POSSIBLE, possible, "DURATION"),) if possible else ()),
            Evidence("most_exposed", kind, "TEXT"),
        ),
        advice=("leave_out",) if sentence == "own" else (_ADVICE.get(kind, "overlap_others"), "compare_ranks_first"),
        sentence=sentence,
        scope=_scope(facts, work, ~chain),
        count=int((~chain).sum()),
    )


def _sentence(work: Communicating) -> str:
    if work.waits.how:
        return "waiting_least" if work.waits.how == "siblings" else "waiting"
    return "own" if (work.ranks == 1).all() else ""


def _scope(facts: Facts, work: Communicating, chosen: NDArray[np.bool_]) -> Scope:
    return Scope(ops=names_of(facts, facts.context.device.name[work.event[chosen]], work.exposed[chosen]))


_ADVICE = {
    "all_to_all": "overlap_all_to_all",
    **dict.fromkeys(("all_gather", "reduce_scatter"), "overlap_gathers"),
    **dict.fromkeys(("all_reduce", "reduce", "broadcast"), "overlap_reductions"),
    **dict.fromkeys(("send", "recv", "send_recv"), "overlap_transfers"),
}
"""Type of collectives → what hides them."""


def _most_exposed(work: Communicating, chosen: NDArray[np.bool_]) -> str:
    """Type of the collectives with most exposed time."""
    time = np.bincount(np.maximum(work.kind, 0), weights=work.exposed * chosen, minlength=len(TYPES))
    return TYPES[int(time.argmax())]


def _saving(facts: Facts, work: Communicating, spans: NDArray[np.int64]) -> tuple[int, int, int, int]:
    """What compute of the same step could hide (of gradients what their backward pass could), and the last bucket.

    At least, where all that may need the compute before it does; else; and at most. `spans`: (n, 2) exposed time.
    """
    exposed, compute = facts.by_step(spans), facts.busy(DeviceClass.COMPUTE)
    beside = intervals.subtract(compute, intervals.merge(work.start, work.end))
    most = np.minimum(exposed, facts.by_step(intervals_of(*beside)))
    chosen, last, can = facts.once(gradients), 0, most
    if chosen.any():
        hidden, last = hideable(facts, chosen)
        others = np.maximum(0, exposed - facts.by_step(work.exposed_spans(chosen)))
        can = np.minimum(exposed, hidden + np.minimum(most, others))
    needing = facts.by_step(work.exposed_spans(facts.once(needing_compute) & ~facts.once(chained)))
    sure = np.minimum(can, np.maximum(0, exposed - needing))
    return facts.per_step(sure), facts.per_step(can), facts.per_step(np.maximum(most, can)), last
