import numpy as np

from traceanalyze.model.columns import occurs
from traceanalyze.rules.common.computing import computing, fits
from traceanalyze.rules.common.op_chains import fused_away
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Scope, measured, rule


@rule(
    "KRN115",
    "loop-indexing",
    title="loops over slices",
    sentence="Loops over slices (up to {repeats} in a row) take {time} {per} in small kernels.",
    evidence={"repeats": "in a row"},
    confidence=Confidence.MEDIUM,
    needs="DO",
    advice_texts={"vectorise": "One operator on the whole tensor in place of the loop, or torch.vmap."},
    options={"repeats": (10.0, "PyTorch pattern matcher: slices in a row")},
)
def find(facts: Facts, options: Options) -> Findings:
    """A loop in Python works on one slice of a tensor after the other.

    What it finds
        `aten::select` followed by the same operator ten times or more in a row, under one parent.
    Why it costs time
        Each slice costs its own operators and kernels, which are too small to fill the device.
    How it is measured
        Device time of the kernels from the first to the last operator of such a run. A single operator on the whole
        tensor takes at least as long as one of them: the rest is the saving. Recurrent networks loop by design.
    What to do
        One operator on the whole tensor, batched operators (`bmm`), `torch.vmap`.

    References
        PyTorch profiler pattern matcher; PyTorch Performance Tuning Guide.
    """
    nest = facts.context.op_nest
    name = facts.context.op_names
    place = np.flatnonzero(fits(facts, name, r"^aten::(select|slice)$"))
    place = place[nest.stop[place] < len(nest)]
    partner = nest.stop[place]
    place = place[
        (nest.parent[place] == nest.parent[partner]) & ~occurs(partner, place) & facts.inside(nest.start[place])
    ]
    partner = nest.stop[place]
    follows = (nest.stop[partner[:-1]] == place[1:]) & (name[partner[:-1]] == name[partner[1:]])
    follows &= nest.parent[place[:-1]] == nest.parent[place[1:]]
    edges = np.flatnonzero(np.concatenate(([True], ~follows, [True]))) if len(place) else np.zeros(0, np.int64)
    repeats = np.diff(edges)
    long = np.flatnonzero(repeats >= options.number("repeats"))
    if len(long) == 0:
        return
    first, last = place[edges[long]], nest.stop[partner[edges[long + 1] - 1]]
    work = facts.once(computing)
    at = np.searchsorted(first, work.op, "right") - 1
    chosen = (at >= 0) & (work.op < last[np.maximum(at, 0)])
    time = work.time[chosen]
    total = facts.per_step(time)
    rows = np.flatnonzero(chosen)
    rows, length = rows[np.argsort(at[rows], kind="stable")], np.bincount(at[rows])
    fused = rows[fused_away(work.time[rows], length[length > 0])] if len(rows) else rows
    yield Finding(
        saving=facts.per_step(work.time[fused]),
        change=without(facts, work.event[fused]),
        bound=total,
        draws="compute",
        intervals=work.spans(chosen),
        evidence=(
            *measured(time=total),
            Evidence("repeats", int(repeats[long].max()), "COUNT"),
            *measured(count=len(long)),
        ),
        scope=Scope(ops=(facts.name(int(nest.row[partner[edges[long[0]]]])),)),
        count=len(long),
    )
