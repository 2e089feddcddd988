from traceanalyze.rules.common.computing import (
    compute_finding,
    computing,
    dtypes_of,
    fits,
    op_text,
    part_of_compute,
    shapes_of,
)
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule

_LONGEST = 4096
"""Beyond it the product with a triangular matrix costs more than it saves (candle pull request 3700)."""


@rule(
    "KRN113",
    "cumsum-scan",
    title="running sums without matrix units",
    sentence="Running sums of short rows take {time} {per} ({part} of compute).",
    confidence=Confidence.LOW,
    needs="DOH",
    advice_texts={
        "cumsum_as_matmul": "Multiply with a triangular matrix of ones, accumulating in float32, and measure."
    },
    options={"share": (0.01, "own: of compute")},
)
def find(facts: Facts, options: Options) -> Findings:
    """Running sums of short rows in half precision do not use matrix units.

    What it finds
        `aten::cumsum` on float16 or bfloat16 tensors whose last dimension is at most 4096.
    Why it costs time
        A scan is a chain of additions on the scalar units; as a product with a triangular matrix of ones it runs on the
        matrix units.
    How it is measured
        Device time of such operators from 1 % of compute on. Half of it is the estimate.
    What to do
        Multiply with `torch.ones(n, n).triu()`, accumulating in float32, and measure: for long rows it is slower, and
        the matrix takes memory.

    References
        candle pull request 3700.
    """
    work = facts.once(computing)
    chosen = (work.op >= 0) & fits(facts, work.op_name, r"^aten::cumsum$")
    chosen[chosen] = op_text(facts, "dtypes", work.op_row[chosen], _is_half, 0) == 1
    chosen[chosen] = op_text(facts, "shapes", work.op_row[chosen], _is_short, 0) == 1
    if chosen.any() and part_of_compute(facts, chosen) >= options.number("share"):
        yield compute_finding(facts, chosen, about="aten::cumsum")


def _is_half(text: str) -> int:
    return int(any(name in {"half", "bfloat16"} for name in dtypes_of(text)[:1]))


def _is_short(text: str) -> int:
    return int(any(1 < shape[-1] <= _LONGEST for shape in shapes_of(text)[:1]))
