"""Run rules on the facts of one rank."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.frames import locate
from traceanalyze.model import intervals
from traceanalyze.replay.parts import part
from traceanalyze.replay.replay import Change, together
from traceanalyze.rules.common.communication import exposed_communication, perhaps_waiting
from traceanalyze.rules.config import Plan, RuleConfig, known_options, options_of
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Finding, NotApplicable, Outcome, Scope, merged
from traceanalyze.rules.owners import owned, unexplained
from traceanalyze.rules.pricing import all_together, derived
from traceanalyze.rules.ranking import by_its_rule, ranked
from traceanalyze.rules.registry import chosen, every_rule, own_rules
from traceanalyze.rules.rule import Options, Rule
from traceanalyze.rules.waiting import unknown

MOST = 64
"""Stretches whose lines are looked up, longest first: names of lines are found one by one."""
MOST_RULES = 0.5
"""Part of the tool's rules that must run before what they leave unexplained is worth a word."""


def located(one: Finding, facts: Facts) -> Finding:
    """The finding with a place on its first evidence, where it has stretches of time and no place yet.

    A stretch is for the device event that it is, or that ends it: its line is that of the user's function from which
    the event was launched. The line that most of the stretches are for is named, with the longest of them; without any
    line, the longest of all.
    """
    spans = one.intervals
    if spans is None or not len(spans) or not one.evidence or any(each.start is not None for each in one.evidence):
        return one
    length = spans[:, 1] - spans[:, 0]
    long = np.flatnonzero(length >= np.partition(length, -MOST)[-MOST] if len(length) > MOST else length >= 0)
    longest = spans[long[np.argsort(-length[long], kind="stable")[:MOST]]]
    lines = _lines(facts, longest[:, 0])
    time: dict[str, int] = {}
    for line, span in zip(lines, longest.tolist(), strict=True):
        if line is not None:
            time[line] = time.get(line, 0) + span[1] - span[0]
    line = max(time, key=lambda each: time[each], default=None)
    start, end = longest[lines.index(line) if line is not None else 0].tolist()
    first = one.evidence[0]._replace(start=start, end=end, line=one.evidence[0].line or line)
    ops = one.scope.ops or (() if line is None else (line,))
    return replace(one, evidence=(first, *one.evidence[1:]), scope=one.scope._replace(ops=ops))


def _lines(facts: Facts, start: NDArray[np.int64]) -> list[str | None]:
    """User's line that launched the first device event at or after each instant; None where that is not known.

    Of a host that computes, the line it was at.
    """
    context = facts.context
    if facts.host_computes:
        return locate(context, context.step_track, start)[2]
    own = np.flatnonzero(facts.own_device)
    if not len(own) or not len(context.calls):
        return [None] * len(start)
    at = np.searchsorted(own, np.searchsorted(context.device.start, start))
    event = own[np.minimum(at, len(own) - 1)]
    call = context.link[event]
    return locate(context, np.where(call >= 0, context.calls.track[call], -1), context.calls.start[call])[2]


LAUNCHES = "HST101"
"""The rule about all that the host does for the next launch."""
NO_COLLECTIVES = "no_collective_metadata"
"""Where there is no communication at all, there is nothing to miss."""
_OF_DEVICES = frozenset(
    {"no_device_events", "no_api", "no_snapshot", "no_launch_configuration", "no_kernel_shapes", "no_collective_tasks"}
)
"""What a program without a device cannot have recorded."""


def plan(config: RuleConfig | None = None, rules: Sequence[Rule] | None = None) -> Plan:
    """The rules that the user wants, all with their defaults when nothing is said; a UsageError for unknown ones."""
    config, known = config or RuleConfig(), every_rule() if rules is None else tuple(rules)
    known_options(known, config)
    return Plan(tuple((each, options_of(each, config)) for each in chosen(known, config.select, config.ignore)))


def evaluate(facts: Facts, wanted: Plan) -> Outcome:
    """Findings of one rank, ranked, and the rules that could not be applied."""
    found: list[Finding] = []
    not_applicable: list[NotApplicable] = []
    for rule, options in wanted.rules:
        for each in _applied(facts, rule, options):
            if isinstance(each, NotApplicable):
                not_applicable.append(each._replace(rule=rule.id, slug=rule.slug))
            else:
                found.append(replace(by_its_rule(each, rule), scope=_scope(each, facts)))
    kept = ranked(found, facts, {rule.id: rule for rule, _ in wanted.rules})
    # Of a few chosen rules nobody expects that they explain everything.
    asked = len(wanted.rules) >= MOST_RULES * len(own_rules())
    open_parts = unexplained(facts, kept) if asked else ()
    kept = owned(facts, kept, open_parts) if asked else kept
    findings = tuple(located(one, facts) for one in kept)
    # What only other ranks' recordings tell is no part of what is saved for sure.
    both = all_together([one for one in findings if not unknown(one)], facts)
    waits = perhaps_waiting(facts) if facts.communicates else 0
    names = {one.rule for one in kept}
    untold = tuple(one for one in found if one.change is not None and one.rule not in names and not one.once)
    return Outcome(findings, tuple(not_applicable), both, open_parts, faint=untold, waits=waits)


def faint(facts: Facts, wanted: Plan, told: Outcome) -> tuple[Finding, ...]:
    """What would be different without what rules tell of the host from some share of the step on, where it is less.

    And without what they found but is worth too little here. Without time that findings on this rank are about. While
    the device waits for other ranks nothing shows what launching costs: it is the next to be late where these are
    faster.
    """
    taken = [merged(one.intervals) for one in told.findings if one.intervals is not None]
    claimed, names = intervals.union(intervals.EMPTY, *taken), {one.rule for one in told.findings}
    found = list(told.faint)
    for rule, options in wanted.rules:
        if rule.id == LAUNCHES and facts.missing(rule.needs) is None:
            beside = facts.once(exposed_communication)
            every = part(facts.context, "dispatch").threads
            other = together(*(one.change for one in told.findings if one.change is not None and one.rule != LAUNCHES))
            left = intervals.subtract(beside, other.host)
            hidden = Change(
                threads={
                    track: intervals.subtract(
                        intervals.intersect(spans, left), other.threads.get(track, intervals.EMPTY)
                    )
                    for track, spans in every.items()
                }
            )
            found.append(by_its_rule(Finding(change=hidden, draws="idle"), rule))
        if rule.id in names or "share" not in rule.options or not rule.threshold:
            continue
        for each in _applied(facts, rule, Options({**options, "share": 0.0})):
            if isinstance(each, NotApplicable) or not each.draws.startswith("idle") or each.once or not each.saving:
                continue
            spans = intervals.EMPTY if each.intervals is None else facts.clip(each.intervals)
            change = each.change or derived(each, intervals.subtract(spans, claimed), facts)
            if change is not None:
                found.append(by_its_rule(Finding(change=change, draws=each.draws), rule))
    return tuple(found)


def _scope(each: Finding, facts: Facts) -> Scope:
    """Where it holds, with the rank it was found on."""
    rank = facts.context.trace.origin.rank
    return each.scope if each.scope.ranks or rank is None else each.scope._replace(ranks=(rank,))


def _applied(facts: Facts, rule: Rule, options: Options) -> Iterator[Finding | NotApplicable]:
    """What one rule finds; nothing on platforms it is not about."""
    if facts.platform not in rule.platforms:
        return
    reason = facts.missing(rule.host if rule.host is not None and facts.host_computes else rule.needs)
    if reason == NO_COLLECTIVES and not facts.communicates:
        return
    if reason is not None:
        yield NotApplicable(why(reason, host_computes=facts.host_computes))
    else:
        yield from rule(facts, options)


def why(reason: str, *, host_computes: bool) -> str:
    """The reason why a rule cannot be applied; where the host alone computed, nothing of a device is missing."""
    return "no_device_used" if host_computes and reason in _OF_DEVICES else reason
