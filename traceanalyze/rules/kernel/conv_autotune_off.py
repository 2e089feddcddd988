from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.model.columns import MISSING
from traceanalyze.model.vocabulary import DeviceClass
from traceanalyze.rules.common.computing import compute_finding, computing, fits, part_of_compute
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, UnmeasuredError, rule

_CONV = r"^aten::(cudnn_|miopen_)?conv(olution|_transpose)?\w*$"
_MALLOC = r"^(cuda|hip)Malloc(Async)?$|^cuMemCreate$"


@rule(
    "KRN108",
    "conv-autotune-off",
    title="convolutions without autotuner",
    sentence=(
        "Convolutions of fixed sizes take {time} {per} ({part} of compute), and no algorithms were tried for them in "
        "the first step."
    ),
    confidence=Confidence.MEDIUM,
    needs="DOHL",
    advice_texts={"cudnn_benchmark": "torch.backends.cudnn.benchmark = True, as the sizes do not change."},
    options={
        "share": (0.10, "own: of compute"),
        "fixed": (0.90, "own: of the time of convolutions, in shapes that come back in half of the steps"),
        "tries": (3.0, "own: kernels of the first run of a shape, as a multiple of the usual number"),
        "cold": (10.0, "own: device allocations in the first step of a recording that begins with the program"),
    },
    platforms=("cuda",),
)
def find(facts: Facts, options: Options) -> Findings:
    """Convolutions of fixed sizes run without the autotuner.

    What it finds
        Convolutions that take 10 % of compute or more, in shapes that do not change between steps, in a recording that
        begins with the program's first step and shows no trials of algorithms there.
    Why it costs time
        cuDNN and MIOpen have several algorithms for each convolution; without trials one is chosen by a rule of thumb.
    How it is measured
        With the autotuner the first run of each shape launches the kernels of all algorithms, many times as many as
        later runs. The first step is known by its device allocations; a recording that begins later cannot tell. What
        the best algorithms save cannot be told either.
    What to do
        `torch.backends.cudnn.benchmark = True`, for fixed sizes only: every new size is tried anew.

    References
        PyTorch Performance Tuning Guide.
    """
    work = facts.once(computing)
    chosen = (work.op_row >= 0) & fits(facts, work.op_name, _CONV)
    part = part_of_compute(facts, chosen)
    if part < options.number("share") or _fixed(facts, chosen) < options.number("fixed"):
        return
    if not facts.marked or _first_allocations(facts) < options.number("cold"):
        raise UnmeasuredError("no_first_step")
    if _tried(facts, options.number("tries")):
        return
    longest = int(np.argmax(np.where(chosen, work.time, -1)))
    found = compute_finding(facts, chosen, severity=Severity.LOW)
    time = found.evidence[0]._replace(start=int(work.start[longest]), end=int(work.end[longest]))
    evidence = (time, *found.evidence[1:])
    yield replace(found, saving=None, bound=None, change=None, draws="", intervals=None, evidence=evidence)


def _fixed(facts: Facts, chosen: NDArray[np.bool_]) -> float:
    """Part of the time of convolutions in shapes that come back in at least half of the windows."""
    work = facts.once(computing)
    step = np.searchsorted(np.sort(facts.edges[0]), work.start[chosen], "right")
    keys = group(work.op_name[chosen], facts.context.trace.events.numbers("shapes", work.op_row[chosen]))
    pairs = group(keys.of, step)
    often = 2 * np.bincount(keys.of[pairs.first], minlength=len(keys)) >= len(facts.edges[0])
    time = work.time[chosen]
    return int(time[often[keys.of]].sum()) / max(int(time.sum()), 1)


def _first_allocations(facts: Facts) -> int:
    """Device allocations in the first recorded step."""
    first, calls = facts.context.all_steps, facts.context.calls
    inside = (calls.start >= first.host_start[0]) & (calls.start < first.host_end[0])
    return int(fits(facts, calls.name[inside], _MALLOC).sum())


def _tried(facts: Facts, tries: float) -> bool:
    """Whether the first run of some shape has many times as many kernels as is usual for it."""
    context = facts.context
    device, nest, names = context.device, context.op_nest, context.trace.events.name
    op = context.event_op[(device.klass == DeviceClass.COMPUTE) & (context.event_op >= 0)]
    op = op[fits(facts, names[nest.row[op]], _CONV)]
    runs = group(op)
    count, place = runs.count(), op[runs.first]
    shape = context.trace.events.numbers("shapes", nest.row[place])
    keys = group(names[nest.row[place]], np.where(shape == MISSING, -1, shape))
    order = np.lexsort((count, keys.of))
    many = keys.count()
    usual = count[order][np.cumsum(many) - many + many // 2]
    first = count[keys.first]  # Runs are in the order of their place, which is that of time.
    return bool(((first >= tries * usual) & (many > 1)).any())
