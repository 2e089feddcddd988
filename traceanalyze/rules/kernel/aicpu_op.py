from traceanalyze.rules.common.computing import compute_finding, computing, fits
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, measured, rule


@rule(
    "KRN116",
    "aicpu-op",
    title="operators on the AI CPU",
    sentence="Operators on the AI CPU take {time} {per} ({part} of compute), the longest {longest}.",
    confidence=Confidence.HIGH,
    needs="DK",
    advice_texts={
        "off_aicpu": (
            "Use int32 or float32 in place of int64 or float64, and operators that the AI Core has in place of index*, "
            "nonzero, argmin."
        )
    },
    options={"longest_us": (20.0, "msprof-analyze advisor: from 20 µs on")},
    platforms=("ascend",),
)
def find(facts: Facts, options: Options) -> Findings:
    """Operators run on the AI CPU.

    What it finds
        Kernels that the device executes on its scalar processors, as no AI Core implementation exists for the operator
        or its element type.
    Why it costs time
        The AI CPU is many times slower than the AI Core, and the AI Core waits for it.
    How it is measured
        Device time of the kernels whose core is `AI_CPU`, if the longest takes 20 µs or more.
    What to do
        Other element types (int64 or float64 to int32 or float32); another operator in place of `index*`, `nonzero`,
        `argmin` and the like.

    References
        msprof-analyze advisor.
    """
    work = facts.once(computing)
    core = facts.context.trace.events.fields.get("core")
    if core is None:
        return
    code = core.take(work.row, -1)
    chosen = code >= 0
    chosen[chosen] = fits(facts, code[chosen], r"^AI_?CPU")
    if chosen.any() and work.time[chosen].max() >= options.number("longest_us") * 1000:
        longest = measured(longest=int(work.time[chosen].max()))
        yield compute_finding(facts, chosen, saving=facts.per_step(work.time[chosen]), evidence=longest)
