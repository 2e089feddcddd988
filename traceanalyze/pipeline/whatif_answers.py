"""What the replay answers when it is asked what would change: for one rank, or for all ranks of a run together."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np

from traceanalyze.analyses.analyze import analyze_context, context_of
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.errors import Phrase, UsageError, listed
from traceanalyze.model import intervals
from traceanalyze.model.intervals import EMPTY
from traceanalyze.model.kernel_names import labels
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import Cause
from traceanalyze.pipeline.choices import Choices
from traceanalyze.pipeline.gather import disagreeing
from traceanalyze.pipeline.selection import no_such_number
from traceanalyze.ranks.compare import comparable, compare_ranks
from traceanalyze.ranks.results import Cluster
from traceanalyze.ranks.stragglers import absent_waits
from traceanalyze.ranks.summary import summarize
from traceanalyze.replay.graph import program
from traceanalyze.replay.limits import path_time, split_then
from traceanalyze.replay.parts import ON_DEVICE, ON_HOST, PARTS, WAITS, named, part, shorter
from traceanalyze.replay.ranks import Joint, joint, mean_gain, run_together, shorter_steps
from traceanalyze.replay.replay import Again, Change, run_again
from traceanalyze.report.contents.ranks import rank_label
from traceanalyze.report.contents.whatif import Asked, Gain, State
from traceanalyze.report.contents.words import name_of
from traceanalyze.rules import across_ranks, waiting
from traceanalyze.rules.config import RuleConfig, options_of
from traceanalyze.rules.evaluate import evaluate, faint
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Confidence, Finding, Outcome
from traceanalyze.rules.pricing import (
    UNRECORDED,
    Price,
    below_waits,
    lasting,
    passing,
    priced,
    proven,
    ranged,
    ranged_together,
)
from traceanalyze.rules.ranking import by_its_rule
from traceanalyze.rules.registry import own_rules

_LOADER, _EXPOSED = "DAT101", "COM101"
"""Rules that tell what a loader costs, and how much communication independent compute could hide."""
_ANY: Mapping[str, Mapping[str, float]] = {_LOADER: {"share": 0.0, "least_ms": 0.0}, _EXPOSED: {"share": 0.0}}
"""Options with which they find it however little that is."""
_NAMED, _LONG = 3, 60
"""Names of kernels that an error shows, and letters of each."""


class Wanted(NamedTuple):
    """What a user asks, by the names that the tool has for it."""

    without: tuple[str, ...] = ()
    """Parts of the step, ids of rules."""
    faster: tuple[tuple[str, float], ...] = ()
    """Parts, or regular expressions of names of device work, and how many times as fast."""
    overlap: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    """Ranks that would be as fast as the others."""


@dataclass(frozen=True, eq=False)
class _Run:
    """All ranks, read and judged."""

    ranks: tuple[Facts, ...]
    outcomes: tuple[Outcome, ...]
    across: Outcome
    joint: Joint | None
    """None of one rank, and where nothing can be replayed."""
    missing: NotMeasured | None
    """Why nothing can be."""
    cluster: Cluster | None = None
    """None of one rank."""
    judged: Outcome = Outcome()
    """Of one rank: before what may be waiting for others makes its findings less sure."""

    @property
    def step(self) -> int:
        """Mean step, ns; of several ranks that of the one that works longest."""
        return self.ranks[0].step_time if self.joint is None or self.cluster is None else self.cluster.step


class _Supposed(NamedTuple):
    """One of the changes that are asked for."""

    gain: Gain
    pieces: tuple[tuple[int, Finding], ...] = ()
    """Positions of ranks, and what is found on each, at its price."""
    like_others: tuple[int, ...] = ()
    """Positions of ranks that would never be the last."""
    about: tuple[Finding, ...] = ()
    """What is found about the ranks side by side, or what such a rank gains: with its range."""


def answers(traces: Sequence[Trace], wanted: Wanted, choices: Choices) -> tuple[Asked, int, list[RankAnalysis]]:
    """The answers for the ranks of a run that can be compared, the one whose step they show, and their analyses."""
    run = _run_of(traces, wanted, choices)
    origins = [one.analysis.trace.origin for one in run.ranks]
    every = [_answered(run, each) for each in _supposed(run, [one.rank for one in origins], wanted)]
    both = _answered(run, _all_of(every)) if len(every) > 1 else every[0]
    lead = 0 if both.gain.then is None else both.gain.then.rank
    asked = Asked(
        step=run.step,
        now=None if run.missing is not None else _state(run, lead, _again(run, {}, ()), {}),
        each=tuple(each.gain for each in every),
        together=both.gain if len(every) > 1 else None,
        whole=not run.ranks[0].marked,
        proven=all(one.once(proven) for one in run.ranks),
        shown="" if len(origins) < 2 else rank_label(origins[lead], lead),
        ranks=len(origins),
    )
    return asked, lead, [one.analysis for one in run.ranks]


def _run_of(traces: Sequence[Trace], wanted: Wanted, choices: Choices) -> _Run:
    options, rules = choices.options(), choices.rules()
    contexts = [context_of(trace, options) for trace in traces]
    every = [Facts(analyze_context(context), context) for context in contexts]
    ranks = [*compress(every, comparable([one.analysis for one in every]))] or every
    traces = [one.analysis.trace for one in ranks]
    agreed = disagreeing(traces, {trace.origin.path: one.analysis for trace, one in zip(traces, ranks, strict=True)})
    for at, trace in enumerate(traces):
        if trace.origin.path in agreed:
            context = context_of(trace, options._replace(agreed=agreed[trace.origin.path]))
            ranks[at] = Facts(analyze_context(context), context)
    judged = any(name not in PARTS for name in wanted.without)
    outcomes = [evaluate(one, rules) for one in ranks] if judged else [Outcome()] * len(ranks)
    reason = next((reason for one in ranks if (reason := _irreplayable(one)) is not None), None)
    if len(ranks) < 2:
        told = tuple(map(waiting.unsure_alone, outcomes))
        return _Run(tuple(ranks), told, Outcome(), None, reason, judged=outcomes[0])
    if judged:
        outcomes = [told._replace(faint=faint(one, rules, told)) for one, told in zip(ranks, outcomes, strict=True)]
    cluster = compare_ranks([summarize(one.context, one.analysis, spread=False) for one in ranks])
    if reason is None and not cluster.steps:
        reason = NotMeasured("no_common_steps")
    run = None if reason is not None else joint([one.context.once(program) for one in ranks], cluster)
    across = Outcome()
    if judged:
        outcomes = across_ranks.subtract_waiting(
            [across_ranks.drop_rank_rules(one) for one in outcomes], cluster, rules
        )
        across = across_ranks.evaluate_run(
            cluster, rules, run if run is not None and len(run.meetings.number) else None
        )
    return _Run(tuple(ranks), tuple(outcomes), across, run, reason, cluster)


def _irreplayable(facts: Facts) -> NotMeasured | None:
    """Why nothing about a recording can be replayed, None if it can."""
    if facts.host_computes:
        return None
    reason = facts.missing("DL")
    if reason is None and not (facts.context.link >= 0).any():
        reason = "no_linked_launches"
    return None if reason is None else NotMeasured(reason)


def _supposed(run: _Run, known: Sequence[int | None], wanted: Wanted) -> Iterator[_Supposed]:
    """Each of the changes that are asked for."""
    for name in wanted.without:
        gain = Gain("without", name)
        yield _of_part(run, gain, 1.0) if name in PARTS else _of_rule(run, gain)
    for name, factor in wanted.faster:
        gain, share = Gain("faster", name, factor=factor), 1 - 1 / factor
        yield _of_part(run, gain, share) if name in PARTS else _of_names(run, gain, share)
    for name in wanted.overlap:
        yield _each(run, Gain("overlap", name), lambda facts: _by_rule(facts, _EXPOSED))
    for rank in wanted.ranks:
        if rank not in known:
            there = [each for each in known if each is not None]
            raise no_such_number(Phrase("--rank {rank}", rank), Phrase("rank"), str(rank), there)
        gain, at = Gain("rank", str(rank)), known.index(rank)
        unknown = run.missing or _unmet(run.cluster, at)
        yield _Supposed(gain._replace(saving=unknown)) if unknown else _Supposed(gain, like_others=(at,))


def _unmet(cluster: Cluster | None, rank: int) -> NotMeasured | None:
    """Why nothing tells how long others wait for a rank, None if something does."""
    if cluster is None:
        return NotMeasured("no_other_ranks")
    groups = [one for one in cluster.groups if rank in one.members and one.synchronising.any()]
    if any(one.complete for one in groups):
        return None
    return NotMeasured("ranks_missing" if groups else "no_matched_collectives")


def _of_part(run: _Run, gain: Gain, share: float) -> _Supposed:
    def found(facts: Facts) -> Sequence[Finding] | NotMeasured:
        # The loader as its rule has it, with the range that it gives.
        whole = share == 1 and gain.what == "data_loading" and not facts.host_computes
        known = _by_rule(facts, _LOADER) if whole else []
        return _unseen(facts, gain.what) or known or [_priced(facts, part(facts.context, gain.what, share))]

    return _each(run, gain, found)


def _of_names(run: _Run, gain: Gain, share: float) -> _Supposed:
    search = re.compile(gain.what).search
    names = {name for one in run.ranks for name in _device_names(one)}
    short = labels(names)

    def fits(name: str) -> object:
        """By its whole name, or by the short one that tables show."""
        return search(name) or search(short.get(name, name))

    if not any(len(named(one.context, fits)) for one in run.ranks):
        raise UsageError(
            "--faster {text}: no part of the step and no device work is called so; parts are {parts}; most time takes: "
            "{known}",
            gain.what,
            listed(name for name in PARTS if name not in WAITS),
            _longest(run.ranks[0]),
        )
    return _each(run, gain, lambda facts: [_priced(facts, shorter(facts.context, named(facts.context, fits), share))])


def _device_names(facts: Facts) -> Iterator[str]:
    codes = np.unique(facts.context.device.name).tolist()
    return map(facts.context.trace.strings.text, codes)


def _longest(facts: Facts) -> Phrase:
    """Names of the device events that take most time."""
    device = facts.context.device
    time = np.bincount(device.name, weights=device.end - device.start)
    names = [facts.context.trace.strings.text(code) for code in np.argsort(-time)[:_NAMED].tolist() if time[code]]
    return listed(name if len(name) <= _LONG else f"{name[:_LONG]}…" for name in names)


def _unseen(facts: Facts, name: str) -> NotMeasured | None:
    """Why the recording does not show a part, None if it does."""
    if facts.host_computes:
        return NotMeasured("no_device_used") if name in ON_DEVICE else None
    idle = facts.analysis.idle
    if name == "peer_wait" and facts.communicates and not facts.idle_mean(Cause.PEER_WAIT):
        return NotMeasured("waits_in_communication")
    if name in ON_DEVICE or not isinstance(idle, IdleCauses):
        return None
    return next((idle.missing[cause] for cause in ON_HOST[name] if cause in idle.missing), None)


def _by_rule(facts: Facts, name: str) -> list[Finding]:
    """What a rule finds, however little it is."""
    rule = own_rules()[name]
    options = options_of(rule, RuleConfig(options={name: _ANY[name]}))
    found = [by_its_rule(one, rule) for one in rule(facts, options) if isinstance(one, Finding)]
    return [_lasting(priced(one, facts), facts) for one in found if one.saving is not None]


def _priced(facts: Facts, change: Change) -> Finding:
    return _lasting(priced(Finding(change=change, confidence=Confidence.HIGH), facts), facts)


def _lasting(price: Price, facts: Facts) -> Finding:
    """The finding with its range; what a long run gains where only the first step of this one does."""
    one = ranged(price, facts).finding
    if price.steps is None or not passing(price, facts):
        return one
    return replace(one, saving=max(0, facts.mean(int(price.steps[1:].sum()))), low=0)


def _each(run: _Run, gain: Gain, found_by: Callable[[Facts], Sequence[Finding] | NotMeasured]) -> _Supposed:
    """The same change on every rank that shows what it is about."""
    found = [run.missing or found_by(one) for one in run.ranks]
    absent = [one for one in found if isinstance(one, NotMeasured)]
    if len(absent) == len(found):
        return _Supposed(gain._replace(saving=absent[0]))
    known = ((rank, each) for rank, each in enumerate(found) if not isinstance(each, NotMeasured))
    return _Supposed(gain, tuple((rank, one) for rank, each in known for one in each))


def _of_rule(run: _Run, gain: Gain) -> _Supposed:
    """All findings of a rule, on all ranks and about them."""
    rule = gain.what
    outcomes = (*run.outcomes, run.across)
    found = [(at, one) for at, outcome in enumerate(outcomes) for one in outcome.findings if one.rule == rule]
    gain = gain._replace(what=name_of(found[0][1]) if found else f"rule_{rule}", rule=rule)
    if not found:
        skipped = [one.reason for outcome in outcomes for one in outcome.not_applicable if one.rule == rule]
        return _Supposed(gain._replace(saving=NotMeasured(skipped[0] if skipped else "no_such_finding")))
    about = tuple(one for at, one in found if at == len(run.ranks) and one.saving is not None)
    late = () if run.cluster is None else (rank for one in about for rank in across_ranks.never_last(one, run.cluster))
    like_others = tuple(dict.fromkeys(late)) if run.missing is None else ()
    known = tuple((at, one) for at, one in found if one.saving is not None and at < len(run.ranks))
    known += tuple(across_ranks.faint_beside(known, run.outcomes))
    if about or (known and run.missing is None):
        return _Supposed(gain, known if run.missing is None else (), like_others, about)
    reason = "done_once" if all(one.once for _, one in found) else "saving_not_replayed"
    return _Supposed(gain._replace(saving=run.missing or NotMeasured(reason)))


def _all_of(every: Sequence[_Supposed]) -> _Supposed:
    """All that can be replayed, at once."""
    known = [one for one in every if not isinstance(one.gain.saving, NotMeasured)]
    if not known:
        reasons = {one.gain.saving for one in every}
        unknown = reasons.pop() if len(reasons) == 1 else NotMeasured("saving_not_replayed")
        return _Supposed(Gain("together", saving=unknown))
    return _Supposed(
        Gain("together"),
        tuple(dict.fromkeys(piece for one in known for piece in one.pieces)),
        tuple(dict.fromkeys(rank for one in known for rank in one.like_others)),
        tuple(one for each in known for one in each.about),
    )


def _answered(run: _Run, one: _Supposed) -> _Supposed:
    """With what it gains, and the step then."""
    if isinstance(one.gain.saving, NotMeasured):
        return one
    ranks = range(len(run.ranks))
    if len(one.like_others) == len(ranks):
        return one._replace(gain=one.gain._replace(saving=NotMeasured("all_ranks_named")))
    changes = across_ranks.changes_of(one.pieces)
    again = () if run.missing is not None else _again(run, changes, one.like_others)
    found = [each for _, each in one.pieces]
    beside = across_ranks.stated(one.pieces, len(ranks)) + sum(
        each.saving or 0 for each in one.about if not one.like_others
    )
    if len(one.about) == 1 and not found:
        low, saving, high = one.about[0].ends
    elif run.joint is not None:
        gains = np.delete(shorter_steps(run.joint, again), one.like_others, axis=0)
        saving = beside + mean_gain(lasting(gains, run.step, run.joint.programs[0].counted))
        ends = across_ranks.ends_of_run([*found, *one.about * len(ranks)], saving, run.step)
        waits = 0 if run.cluster is None else absent_waits(run.cluster)[0]
        low, saving, high = below_waits(ends, found, waits) if found else ends
        if waits:
            unsure = sum(waiting.doubtful(each) for each in found) / max(sum(each.saving or 0 for each in found), 1)
            saving = max(low, saving - round(saving * unsure))
    elif len(found) == 1:
        low, saving, high = found[0].ends
    else:
        low, saving, high = _together_alone(run, found, beside + _gain_alone(run.ranks[0], again[0]))
    if len(ranks) == 1:
        told = run.outcomes[0].findings
        saving = max(low, saving - sum(waiting.doubtful(each) for each in found if each in told))
    # The rank that waits least for others is the one that they wait for.
    states = [_state(run, rank, again, changes) for rank in ranks if again and rank not in one.like_others]
    then = min(states, key=lambda state: state.waiting) if states and not beside else None
    same = one.like_others if one.like_others and not found else one.gain.rule or one.gain.what
    about = one.about or (Finding(saving=saving, low=low, bound=high),) * bool(one.like_others)
    return one._replace(gain=one.gain._replace(saving=saving, low=low, high=high, then=then, same=same), about=about)


def _together_alone(run: _Run, found: Sequence[Finding], saving: int) -> tuple[int, int, int]:
    """The range of what several findings on the only rank save together: what may be waiting is taken off once."""
    as_judged = dict(zip(run.outcomes[0].findings, run.judged.findings, strict=True))
    stated = [as_judged.get(one, one) for one in found]
    waits = (one for one in run.judged.findings if one.rule == UNRECORDED)
    ends = ranged_together(stated, saving, run.ranks[0])
    return waiting.unsure_alone(run.judged._replace(findings=(*stated, *waits), together=ends)).together or ends


def _again(run: _Run, changes: Mapping[int, Change], like_others: Sequence[int]) -> tuple[Again, ...]:
    """The programs of all ranks with a change."""
    if run.joint is not None:
        return run_together(run.joint, changes, like_others)
    return (run_again(run.ranks[0].context.once(program), changes.get(0, Change())),)


def _gain_alone(facts: Facts, again: Again) -> int:
    known = facts.context.once(program)
    gains = (known.steps.time - (again.end - again.start))[known.counted]
    return max(0, round(float(lasting(gains, facts.step_time, known.counted).mean())))


def _state(run: _Run, rank: int, again: Sequence[Again], changes: Mapping[int, Change]) -> State:
    """The step of a rank as it would be, ns a step."""
    facts, change = run.ranks[rank], changes.get(rank, Change())
    context = facts.context
    gone = intervals.union(change.host, change.threads.get(context.step_track, EMPTY))
    split, path = split_then(context, again[rank]), path_time(context, again[rank], gone)
    return State(
        {part: facts.mean(time) for part, time in split.items()},
        {kind: facts.mean(time) for kind, time in path.items()},
        rank,
    )
