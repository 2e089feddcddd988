from traceanalyze.rules.common.communication import comm_finding, communicating
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, UnmeasuredError, measured, rule


@rule(
    "COM115",
    "pipeline-bubble",
    title="waiting in the pipeline",
    sentence="Sending to and receiving from neighbours takes {exposed} {per} ({share}) with no compute beside it.",
    confidence=Confidence.MEDIUM,
    needs="D",
    advice_texts={"more_micro_batches": "More micro-batches, an interleaved schedule, stages of equal time."},
    options={"share": (0.10, "own: of the step")},
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """A pipeline stage waits for its neighbours.

    What it finds
        Steps that spend a tenth of their time or more in sending to and receiving from single ranks, with no compute.
    Why it costs time
        At the begin and the end of each step a stage has nothing to do until the others have passed their micro-batch
        on; uneven stages wait in between, too.
    How it is measured
        Exposed time of `send` and `recv`, which contains the waiting. Half of it is the estimate, as with twice as many
        micro-batches; at most, all of it.
    What to do
        More micro-batches, an interleaved schedule, stages of equal time.

    References
        Ascend foundation-model tuning guide; torch.distributed.pipelining.
    """
    work = facts.once(communicating)
    if len(work) == 0:
        return
    if not work.described and facts.platform != "ascend":  # NCCL runs an all_to_all in a kernel of the same name.
        raise UnmeasuredError("no_collective_metadata")
    chosen = work.of_kind("send", "recv", "send_recv")
    exposed = work.exposed_mean(facts, chosen)
    share = facts.share(exposed)
    if share >= options.number("share"):
        evidence = measured(exposed=exposed, share=share, count=int(chosen.sum()))
        yield comm_finding(facts, chosen, evidence, saving=exposed // 2)
