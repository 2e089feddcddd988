import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.model import intervals
from traceanalyze.model.columns import Rows
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.computing import names_of
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    intervals_of,
    measured,
    rule,
)

_COPIES = regex(r"^aten::(copy_|clone|contiguous|_to_copy|to)$")


@rule(
    "KRN121",
    "device-copies",
    title="copies within the device",
    sentence={
        "": "Copies within the device ({count} in all) take {exposed} {per} in which nothing else runs.",
        "op": (
            "Copies within the device ({count} in all), above all in {op}, take {exposed} {per} in which nothing else "
            "runs."
        ),
    },
    evidence={"op": "operator"},
    confidence=Confidence.MEDIUM,
    needs="D",
    advice_texts={
        "write_in_place": (
            "Write results where they are needed: out=, one torch.cat or torch.stack into a buffer made before; drop "
            ".clone() and .contiguous() where a view will do; change no inputs and buffers inside a compiled function."
        )
    },
    options={"share": (0.05, "own: of the step")},
    order=1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Tensors are copied from one place of the device's memory to another.

    What it finds
        Copies within the device that nothing hides.
    Why it costs time
        They read and write whole tensors and compute nothing.
    How it is measured
        Time in which nothing but these copies runs, from 5 % of the step on. At least half of them can go, at most all;
        the saving is what a replay without three quarters of each gains. Named is the innermost operator around them
        that does more than copy. Kernels that copy are told by KRN107 and KRN110.
    What to do
        Write results where they are needed (`out=`, buffers made before, one `torch.cat`); views in place of `.clone()`
        and `.contiguous()`; in compiled functions change no inputs and buffers, which are copied back.

    References
        PyTorch Performance Tuning Guide; torch.compile, functionalization.
    """
    context, device = facts.context, facts.context.device
    rows = np.flatnonzero((device.kind == EventKind.MEMCPY) & (device.device == context.devices[0]))
    rows = rows[directions(context, rows) == DIRECTIONS.index("d2d")] if len(rows) else rows
    if not len(rows) or facts.share(facts.per_step((device.end - device.start)[rows])) < options.number("share"):
        return
    spans = facts.alone(rows)
    exposed = intervals.coverage(spans, device.start[rows], device.end[rows])
    rows, exposed = rows[exposed > 0], exposed[exposed > 0]
    time = facts.length(intervals_of(*spans))
    if not len(rows) or facts.share(time) < options.number("share"):
        return
    ops = _ops(facts, rows, exposed)
    half, most, every = (without(facts, rows, part) for part in (0.5, 0.75, 1.0))
    yield Finding(
        cost=time,
        bound=time,
        change=most,
        between=(half, every),
        draws="mem_exposed",
        intervals=intervals_of(*spans),
        sentence="op" if ops else "",
        evidence=(*measured(exposed=time, count=len(rows)), *(Evidence("op", name, "NAME") for name in ops[:1])),
        scope=Scope(ops=ops or facts.names(device.row[rows])),
        count=len(rows),
    )


def _ops(facts: Facts, rows: Rows, time: NDArray[np.int64]) -> tuple[str, ...]:
    """Operators that make the copies, most time first: the innermost ones that do more, else those that copy."""
    context, nest = facts.context, facts.context.op_nest
    op = context.event_op[rows]
    op, time = op[op >= 0], time[op >= 0]
    if not len(op):
        return ()
    names = context.op_names
    copies = context.trace.strings.matches(names, _COPIES.search)
    maker = nest.beyond(copies)[op]
    return names_of(facts, names[np.where(copies[maker], op, maker)], time)
