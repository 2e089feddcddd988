from collections.abc import Iterator

import numpy as np

from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.computing import compute_finding, computing, fits, matters, names_of
from traceanalyze.rules.common.op_chains import names_under
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Scope, intervals_of, measured, rule

_OPS = r"^aten::(_to_copy|to)$|^npu::npu_dtype_cast$"
_FILLS = r"^aten::(zeros|ones|full|rand|randn|randint|arange|eye|linspace|zero_|fill_|uniform_|normal_)(_like)?$"
_MOVES = r"^aten::(to|_to_copy)$"


@rule(
    "KRN110",
    "type-copies",
    title="conversions of type",
    sentence={
        "on_host": (
            "{count} tensor(s) in all (is|are) filled on the host and then copied to the device: {time} "
            "{per} nothing but "
            "these copies runs."
        ),
        "": "Conversions between element types take {time} {per} ({part} of compute).",
    },
    confidence=Confidence.MEDIUM,
    needs="DO",
    advice_texts={
        "right_type": (
            "Create tensors with the right dtype= and device=; keep weights that are cast in every step in the type "
            "they are used in."
        )
    },
    options={"share": (0.02, "own: of compute")},
)
def find(facts: Facts, options: Options) -> Findings:
    """Tensors are converted to another type again and again.

    What it finds
        Kernels that `aten::_to_copy` launched: conversions between element types; and tensors that are filled on the
        host and moved to the device by the next operator.
    Why it costs time
        A conversion reads and writes the whole tensor and computes nothing.
    How it is measured
        Compute kernels under such operators, from 2 % of compute on or where the step would be 2 % shorter. Some
        conversions belong to mixed precision: at least half of them can go, at most all; the saving is that of three
        quarters. Of tensors made on the host the time in which nothing but their copies runs.
    What to do
        Create tensors with the right `dtype=` and `device=`; keep parameters that are cast in every step in the type
        they are used in; let `torch.compile` fuse what remains.

    References
        PyTorch Performance Tuning Guide; torch.amp.
    """
    yield from _moved(facts)
    work = facts.once(computing)
    known = np.flatnonzero(work.op >= 0)
    chosen = known[names_under(facts, work.op[known], _OPS)]
    if not len(chosen):
        return
    half, most, every = (without(facts, work.event[chosen], part) for part in (0.5, 0.75, 1.0))
    if matters(facts, chosen, most, options.number("share")):
        yield compute_finding(facts, chosen, about="aten::_to_copy", change=most, between=(half, every))


def _moved(facts: Facts) -> Iterator[Finding]:
    """Tensors that are filled on the host, directly before they are copied to the device."""
    context = facts.context
    nest, names, tracks = context.op_nest, context.op_names, context.trace.events.track
    fill = np.flatnonzero(fits(facts, names, _FILLS) & facts.inside(nest.start))
    fill = fill[nest.stop[fill] < len(nest)]
    move = nest.stop[fill]
    follows = (nest.parent[move] == nest.parent[fill]) & (tracks[nest.row[move]] == tracks[nest.row[fill]])
    follows &= fits(facts, names[move], _MOVES)
    # Each has its own: what is filled last before it.
    fill, move = fill[follows], move[follows]
    copy = np.flatnonzero((context.device.kind == EventKind.MEMCPY) & (context.event_op >= 0))
    if not len(move) or not len(copy):
        return
    copy = copy[directions(context, copy) == DIRECTIONS.index("h2d")]
    at = np.searchsorted(move, context.event_op[copy], "right") - 1
    inside = (at >= 0) & (context.event_op[copy] < nest.stop[move[np.maximum(at, 0)]])
    copy, used = copy[inside], distinct(at[inside])
    if len(copy) < facts.window.count:
        return
    fill, move = fill[used], move[used]
    spans = intervals_of(*facts.alone(copy))
    time = facts.length(spans)
    places = np.concatenate((fill, move))
    host = intervals.merge(nest.start[places], nest.end[places])
    yield Finding(
        saving=time,
        bound=facts.length(intervals_of(*host)) + time,
        change=Change(host, events=copy, shorter=(context.device.end - context.device.start)[copy]),
        draws="mem_exposed",
        intervals=spans,
        sentence="on_host",
        evidence=measured(time=time, count=len(copy)),
        scope=Scope(ops=names_of(facts, names[fill], nest.end[fill] - nest.start[fill], 1)),
        count=len(copy),
        advice=("create_on_device",),
    )
