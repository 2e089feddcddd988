import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import locate
from traceanalyze.model import intervals
from traceanalyze.model.columns import median
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import Cause
from traceanalyze.replay.parts import last_part
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.host_ops import NO_WORK, alone, usual_launch
from traceanalyze.rules.common.launching import excerpt
from traceanalyze.rules.common.one_off import compiling, one_off
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

_COLLECTIVE = regex(r"^(_?c10d(_functional)?::|record_param_comms$)")


@rule(
    "HST114",
    "slow-operator",
    title="an operator that is slow on the host",
    sentence=(
        "{what} takes the host {typical} itself, {ratio} times as long as operators that launch work usually do; the "
        "device is idle for {idle} {per} meanwhile ({count} time(s) in all)."
    ),
    evidence={"typical": "typical length", "ratio": "times the usual"},
    confidence=Confidence.MEDIUM,
    needs="DLO",
    advice=("lighter_operator",),
    advice_texts={
        "lighter_operator": (
            "Do less on the host there: compile or capture custom kernels that Python launches, take Python out of "
            "custom functions."
        ),
        "host_tensors": (
            "It launches nothing: it computes on tensors of the host. Make or keep them on the device (device=…), or "
            "let another thread do it while the device works."
        ),
    },
    options={
        "ratio": (5.0, "own: times the median operator that launches work"),
        "share": (0.05, "own: idle time of the device meanwhile, of the step"),
        "least_us": (100.0, "own: less is usual for an operator with many arguments"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """The device waits for one operator that takes the host long.

    What it finds
        Operators of one name that take the host several times as long as others, such as kernels that Python launches,
        or tensors that the host fills with random numbers.
    Why it costs time
        Nothing else is launched by that thread meanwhile.
    How it is measured
        Time of an operator outside of those that it calls and of runtime calls. From 5 times the median operator that
        launches work (with its calls) and 100 µs on an operator is slow; told where the device is idle for 5 % of the
        step or more because of operators of one name. The saving is what a replay gains in which they are as fast as
        that. Where operators that only view a tensor are as slow, Python takes part in every one, and none is the
        cause. One that is slow once, while others of its name are not, was used for the first time: that has a cost and
        no saving, as what CGR106 tells. A collective that takes long on the host waits for other ranks, and is not told
        here, nor is what a compiler calls (CGR102, CGR106).
    What to do
        Make and keep tensors on the device where the operator computes on the host; else compile or capture custom
        kernels, take Python out of custom functions.

    References
        None.
    """
    nest, context = facts.context.op_nest, facts.context
    if not len(nest) or facts.once(excerpt):
        return
    counted, name, least = facts.inside(nest.start), context.op_names, options.number("least_us") * 1e3
    place = np.flatnonzero((nest.own >= least) & counted)
    # What the compiler calls is told with compilation.
    place = place[~intervals.contains(merged(facts.spans(compiling(facts))), nest.start[place])]
    if not len(place) or (usual := facts.once(usual_launch)) is None:
        return
    own = alone(facts, place)
    slow = own >= max(options.number("ratio") * usual, least)
    place, own = place[slow], own[slow]
    views = context.trace.strings.matches(name[place], NO_WORK.match)
    if facts.share(facts.mean(int(own[views].sum()))) >= options.number("share"):
        return
    place, own = place[~views], own[~views]
    each = group(name[place])
    for number in range(len(each)):
        member, time = (column[each.of == number] for column in (place, own))
        if facts.share(facts.mean(int(time.sum()))) < options.number("share"):
            continue
        spans = _spans(facts, member)
        if facts.share(facts.length(spans)) < options.number("share"):
            continue
        longest = int(member[np.argmax(time)])
        start, end = int(nest.start[longest]), int(nest.end[longest])
        typical = median(time)
        removed = intervals.subtract(intervals.merge(nest.start[member], nest.end[member]), _inner(facts, member))
        excess = 1 - usual / max(typical, 1.0)
        about = facts.name(int(nest.row[longest]))
        line = locate(context, int(context.trace.events.track[nest.row[longest]]), np.array([start]))[2][0]
        first = len(member) == 1 and int((counted & (name == name[longest])).sum()) > 1
        if _COLLECTIVE.match(about) and not first:
            continue
        launching = np.concatenate((context.calls.start, nest.start[context.event_op[context.event_op >= 0]]))
        launches = intervals.contains(intervals.merge(nest.start[member], nest.end[member]), launching).any()
        yield Finding(
            advice=("lighter_operator" if launches else "host_tensors",),
            once=first,
            severity=Severity.INFO if first else None,
            change=None if first else Change(last_part(removed, excess)),
            cost=facts.length(spans),
            bound=None if first else facts.mean(int(time.sum())),
            draws="" if first else "idle",
            intervals=spans,
            evidence=(
                Evidence("what", about, "NAME"),
                Evidence("typical", round(typical), "DURATION", start, end, line),
                Evidence("ratio", typical / max(usual, 1.0), "NUMBER"),
                *measured(idle=facts.length(spans), count=len(member)),
            ),
            scope=Scope(ops=(about,) if line is None else (about, line)),
            count=len(member),
        )


def _inner(facts: Facts, member: NDArray[np.int64]) -> intervals.Intervals:
    """When some operators were in others that they call, or in runtime calls."""
    context = facts.context
    nest, calls = context.op_nest, context.calls
    inner = np.isin(nest.parent, member)
    inner[member] = False
    child = np.flatnonzero(inner)
    call = np.flatnonzero(np.isin(context.call_op, member))
    return intervals.union(
        intervals.merge(nest.start[child], nest.end[child]), intervals.merge(calls.start[call], calls.end[call])
    )


def _spans(facts: Facts, member: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, 2) idle time of the device while some operators were the innermost ones."""
    nest = facts.context.op_nest
    alone = intervals.subtract(intervals.merge(nest.start[member], nest.end[member]), _inner(facts, member))
    alone = intervals.subtract(alone, facts.once(one_off).every)
    return intervals_of(*intervals.intersect(merged(facts.idle(Cause.HOST_OP)), alone))
