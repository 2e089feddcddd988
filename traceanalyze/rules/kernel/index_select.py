import numpy as np

from traceanalyze.rules.common.computing import computing, dtypes_of, fits, op_text, part_of_compute, shapes_of
from traceanalyze.rules.common.op_chains import names_under
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Scope, measured, rule

_FORWARD = r"^aten::(index_select|index)$"
_BACKWARD = r"^(autograd::engine::evaluate_function: )?Index(Select)?Backward\d*$|^aten::index_select_backward$"


@rule(
    "KRN112",
    "index-select",
    title="gathers by index_select",
    sentence="Gathers of rows with index_select take {time} {per} ({part} of compute), their backward {backward}.",
    evidence={"backward": "backward"},
    confidence=Confidence.MEDIUM,
    needs="DOH",
    advice_texts={
        "use_embedding": "torch.nn.functional.embedding(rows, table) in place of index_select; measure both."
    },
    options={"share": (0.01, "own: of compute")},
)
def find(facts: Facts, options: Options) -> Findings:
    """Rows of a table are gathered by index_select, whose backward is slow.

    What it finds
        `index_select` (or `table[rows]`) on a floating-point table of two dimensions, with a backward.
    Why it costs time
        The backward adds row by row with atomic operations, or sorts the indices first; that of an embedding is made
        for this case.
    How it is measured
        Device time of forward and backward of such gathers, from 1 % of compute on, if both are there. Half of the
        backward is the estimate; at most, all of it.
    What to do
        `torch.nn.functional.embedding(rows, table)`; measure both.

    References
        pytorch_geometric issue 95; torch.nn.functional.embedding.
    """
    work = facts.once(computing)
    forward = (work.op >= 0) & fits(facts, work.op_name, _FORWARD)
    forward[forward] = op_text(facts, "shapes", work.op_row[forward], _is_table, 0) == 1
    forward[forward] = op_text(facts, "dtypes", work.op_row[forward], _is_floating, 0) == 1
    known = np.flatnonzero(work.op >= 0)
    backward = known[names_under(facts, work.op[known], _BACKWARD)] if forward.any() else known[:0]
    rows = np.concatenate((np.flatnonzero(forward), backward))
    if len(backward) == 0 or part_of_compute(facts, rows) < options.number("share"):
        return
    time, count = facts.per_step(work.time[backward]), int(forward.sum())
    yield Finding(
        saving=time // 2,
        bound=time,
        draws="compute",
        intervals=work.spans(backward),
        evidence=(
            *measured(time=facts.per_step(work.time[rows]), part=part_of_compute(facts, rows)),
            Evidence("backward", time, "DURATION"),
            *measured(count=count),
        ),
        scope=Scope(ops=("aten::index_select",)),
        count=count,
    )


def _is_table(text: str) -> int:
    return int(any(len(shape) == 2 for shape in shapes_of(text)[:1]))


def _is_floating(text: str) -> int:
    return int(any(name in {"float", "half", "bfloat16", "double"} for name in dtypes_of(text)[:1]))
