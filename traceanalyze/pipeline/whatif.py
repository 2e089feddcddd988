"""What a step would take if something about the program were different: parts, findings, kernels, ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.filtering import context_of
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.errors import Phrase, UsageError, listed
from traceanalyze.model import intervals
from traceanalyze.model.intervals import EMPTY
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Run, Trace
from traceanalyze.model.vocabulary import Detail, DeviceClass, Mode
from traceanalyze.pipeline.choices import Choices, PathLike, path_texts
from traceanalyze.pipeline.gather import ReadProgress, gather
from traceanalyze.pipeline.run_report import with_notes
from traceanalyze.ranks.compare import leading
from traceanalyze.readers.runs import group_runs
from traceanalyze.replay.limits import path_time, split_then
from traceanalyze.replay.parts import ON_DEVICE, ON_HOST, PARTS, WAITS, named, part, shorter
from traceanalyze.replay.replay import Change, counted_windows, run_again, together
from traceanalyze.report.contents import Scope, build_report
from traceanalyze.report.contents.ranks import rank_label
from traceanalyze.report.contents.whatif import Asked, Gain, State, build_whatif
from traceanalyze.report.contents.words import name_of
from traceanalyze.report.model import Report
from traceanalyze.rules.config import RuleConfig, options_of
from traceanalyze.rules.evaluate import evaluate, plan
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Finding, Outcome
from traceanalyze.rules.registry import every_rule, own_rules
from traceanalyze.version import __version__

_SHORT = {"memory": "memory_ops"}
"""Other names of parts."""
OVERLAP = "communication"
_EXPOSED = "COM101"
"""Rule that tells how much communication independent compute could hide."""
_NAMED, _LONG = 3, 60
"""Names of kernels that an error shows, and letters of each."""


class Wanted(NamedTuple):
    """What a user asks, as texts."""

    without: tuple[str, ...] = ()
    """Parts of the step, rules by id or slug."""
    faster: tuple[tuple[str, float], ...] = ()
    """Parts, or regular expressions of names of device work, and how many times as fast."""
    overlap: tuple[str, ...] = ()


class _Change(NamedTuple):
    """One of the changes that are asked for, and what it makes of a rank."""

    gain: Gain
    change: Change | None = None


def whatif(
    path: PathLike | Sequence[PathLike],
    *,
    without: Sequence[str] = (),
    faster: Mapping[str, float] | None = None,
    overlap: Sequence[str] = (),
    steps: str | None = None,
    step_marker: str | None = None,
) -> Report:
    """How long a step would take if something were different, as the replay of the recorded program answers it.

    Args:
        path: A trace, or the folder or files of the ranks of one run.
        without: What would take no time: parts of the step (`data_loading`, `communication`, `sync`, `dispatch` …), or
            findings, by the id or the slug of their rule.
        faster: What would be so many times as fast: parts, or regular expressions of names of device work.
        overlap: `communication`: it runs beside compute that does not need it, as far as there is any.
        steps: Steps to analyse: `5`, `0,3-5`, `2:`.
        step_marker: Regular expression of host ranges that are steps, in place of `ProfilerStep#N`.

    Returns:
        The report; `report.tables["whatif"].to_pandas()` has the gain of each and of all together.

    Raises:
        InputError: The input cannot be used.
        UsageError: Nothing is called so, or the input holds several runs.
    """
    wanted = Wanted(tuple(without), tuple((faster or {}).items()), tuple(overlap))
    found = whatif_reports(path_texts(path), wanted, Choices(steps=steps, step_marker=step_marker))
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise UsageError("the input holds {count} runs ({names}); name one of them", len(found), names)
    return found[0]


def whatif_reports(
    paths: Sequence[str], wanted: Wanted, choices: Choices, *, progress: ReadProgress | None = None
) -> tuple[Report, ...]:
    """A report for every run found under the paths.

    Raises:
        InputError: The input cannot be used.
        UsageError: Nothing is asked, or something of a name that nothing has.
    """
    wanted = _checked(wanted)
    read = gather(paths, lambda trace: trace, progress=progress)
    runs = with_notes(group_runs(list(read.traces)), read.notes)
    return tuple(_report(run, wanted, choices) for run in runs)


def _checked(wanted: Wanted) -> Wanted:
    """The same with names as the tool has them."""
    if not any(wanted):
        raise UsageError("say what would be different: --without, --faster or --overlap")
    overlap = tuple(map(_part_name, wanted.overlap))
    strange = next((name for name in overlap if name != OVERLAP), None)
    if strange is not None:
        raise UsageError("--overlap {name}: only {known} can be overlapped", strange, OVERLAP)
    return Wanted(
        tuple(dict.fromkeys(map(_without, wanted.without))),
        tuple(_faster(*each) for each in wanted.faster),
        tuple(dict.fromkeys(overlap)),
    )


def _part_name(text: str) -> str:
    name = text.strip().lower().replace("-", "_").replace(" ", "_")
    return _SHORT.get(name, name)


def _without(text: str) -> str:
    """A part, or the id of a rule."""
    if _part_name(text) in PARTS:
        return _part_name(text)
    known = {name.lower(): rule.id for rule in every_rule() for name in (rule.id, rule.slug)}
    found = known.get(text.strip().lower())
    if found is None:
        raise UsageError(
            "--without {text}: no part of the step and no rule is called so; parts are {known}; `traceanalyze rule` "
            "lists the rules",
            text,
            listed(PARTS),
        )
    return found


def _faster(text: str, factor: float) -> tuple[str, float]:
    """A part or a pattern, with its factor."""
    if not isfinite(factor) or factor <= 1:
        raise UsageError("--faster {text}={factor}: write a factor above 1", text, f"{factor:g}")
    name = _part_name(text)
    if name in WAITS:
        raise UsageError("--faster {text}: waiting cannot be faster, only gone: --without {text}", text)
    if name in PARTS:
        return name, factor
    try:
        re.compile(text)
    except re.error as error:
        raise UsageError("{place} {text}: not a regular expression: {error}", "--faster", text, error) from error
    return text, factor


def _report(run: Run, wanted: Wanted, choices: Choices) -> Report:
    rules = any(name not in PARTS for name in wanted.without)
    made = [_facts(trace, choices) for trace in run.traces]
    means = [one.step_time for one in made]
    lead = leading(means, [None] * len(means))
    facts = made[lead]
    outcome = evaluate(facts, plan()) if rules and facts.analysis.mode != Mode.EMPTY else Outcome()
    alone = rank_label(run.traces[lead].origin, lead) if len(made) > 1 else ""
    asked = _asked(facts, outcome, wanted)._replace(alone=alone)
    base = build_report(
        run.name, (facts.analysis,), version=__version__, notes=run.notes, scope=Scope(detail=Detail.QUIET)
    )
    return build_whatif(run.name, base.ranks[0], asked, base.notes, version=__version__)


def _facts(trace: Trace, choices: Choices) -> Facts:
    context = context_of(trace, choices.options())
    return Facts(analyze_context(context), context)


def _asked(facts: Facts, outcome: Outcome, wanted: Wanted) -> Asked:
    changes = tuple(_changes(facts, outcome, wanted))
    reason = _irreplayable(facts)
    return Asked(
        step=facts.step_time,
        now=None if reason is not None else _state(facts, Change())[1],
        each=tuple(one.gain for one in changes),
        together=_together(facts, changes) if len(changes) > 1 else None,
        whole=not facts.marked,
    )


def _changes(facts: Facts, outcome: Outcome, wanted: Wanted) -> Iterator[_Change]:
    """Each of what is asked for, alone."""
    for name in wanted.without:
        gain = Gain("without", name)
        yield _of_part(facts, gain, name, 1.0) if name in PARTS else _of_rule(facts, outcome, gain)
    for text, factor in wanted.faster:
        gain = Gain("faster", text, factor=factor)
        yield (_of_part if text in PARTS else _of_names)(facts, gain, text, 1 - 1 / factor)
    for name in wanted.overlap:
        yield _of_overlap(facts, Gain("overlap", name))


def _of_part(facts: Facts, gain: Gain, name: str, share: float) -> _Change:
    reason = _irreplayable(facts) or _unseen(facts, name)
    if reason is not None:
        return _Change(gain._replace(saving=NotMeasured(reason)))
    return _replayed(facts, gain, part(facts.context, name, share))


def _of_names(facts: Facts, gain: Gain, text: str, share: float) -> _Change:
    reason = _irreplayable(facts)
    if reason is not None:
        return _Change(gain._replace(saving=NotMeasured(reason)))
    event = named(facts.context, re.compile(text).search)
    if not len(event):
        raise UsageError(
            "--faster {text}: no part of the step and no device work is called so; parts are {parts}; most time takes: "
            "{known}",
            text,
            listed(name for name in PARTS if name not in WAITS),
            _longest(facts),
        )
    return _replayed(facts, gain, shorter(facts.context, event, share))


def _longest(facts: Facts) -> Phrase:
    """Names of the device events that take most time."""
    device = facts.context.device
    time = np.bincount(device.name, weights=device.end - device.start)
    names = [facts.context.trace.strings.text(code) for code in np.argsort(-time)[:_NAMED].tolist() if time[code]]
    return listed(name if len(name) <= _LONG else f"{name[:_LONG]}…" for name in names)


def _of_rule(facts: Facts, outcome: Outcome, gain: Gain) -> _Change:
    """All findings of a rule."""
    rule, found = gain.what, [one for one in outcome.findings if one.rule == gain.what]
    gain = gain._replace(what=name_of(found[0]) if found else f"rule_{rule}", rule=rule)
    if not found:
        skipped = next((one.reason for one in outcome.not_applicable if one.rule == rule), "no_such_finding")
        return _Change(gain._replace(saving=NotMeasured(skipped)))
    if all(one.once for one in found):
        return _Change(gain._replace(saving=NotMeasured("done_once")))
    known = [one for one in found if one.saving is not None]
    if not known:
        return _Change(gain._replace(saving=NotMeasured("saving_not_replayed")))
    return _Change(
        gain._replace(
            saving=sum(one.saving or 0 for one in known),
            low=sum(one.least or 0 for one in known),
            high=sum(one.bound or one.saving or 0 for one in known),
        )
    )


def _of_overlap(facts: Facts, gain: Gain) -> _Change:
    """What rule COM101 says could be hidden, however little it is."""
    reason = _irreplayable(facts)
    if reason is not None:
        return _Change(gain._replace(saving=NotMeasured(reason)))
    rule = own_rules()[_EXPOSED]
    options = options_of(rule, RuleConfig(options={_EXPOSED: {"share": 0.0}}))
    found = [one for one in rule(facts, options) if isinstance(one, Finding) and one.intervals is not None]
    device, saving = facts.context.device, sum(one.saving or 0 for one in found) * facts.window.count
    event = np.flatnonzero(facts.headline(DeviceClass.COMM))
    spans = intervals.union(EMPTY, *(facts.clip(one.intervals) for one in found if one.intervals is not None))
    exposed = intervals.coverage(spans, device.start[event], device.end[event])
    hidden = np.round(exposed * min(1.0, saving / max(int(exposed.sum()), 1))).astype(np.int64)
    return _replayed(facts, gain, Change(events=event, shorter=hidden))


def _irreplayable(facts: Facts) -> str | None:
    """Why nothing about the recording can be replayed, None if it can."""
    if facts.host_computes:
        return None
    reason = facts.missing("DL")
    linked = facts.context.link >= 0
    return "no_linked_launches" if reason is None and not linked.any() else reason


def _unseen(facts: Facts, name: str) -> str | None:
    """Why the recording does not show a part, None if it does."""
    if facts.host_computes:
        return "no_device_used" if name in ON_DEVICE else None
    idle = facts.analysis.idle
    if name in ON_DEVICE or not isinstance(idle, IdleCauses):
        return None
    return next((idle.missing[cause].reason for cause in ON_HOST[name] if cause in idle.missing), None)


def _replayed(facts: Facts, gain: Gain, change: Change) -> _Change:
    saving, then = _state(facts, change)
    return _Change(gain._replace(saving=saving, low=saving, high=saving, then=then), change)


def _together(facts: Facts, changes: Sequence[_Change]) -> Gain:
    """One replay of all of them; what cannot be replayed counts with its own number."""
    gain = Gain("together")
    known = [one for one in changes if isinstance(one.gain.saving, int)]
    if not known:
        return gain._replace(saving=NotMeasured("saving_not_replayed"))
    beside = sum(one.gain.low for one in known if one.change is None)
    saving, then = _state(facts, together(*(one.change for one in known if one.change is not None)))
    saving = min(facts.step_time, saving + beside)
    return gain._replace(saving=saving, low=saving, high=saving, then=then)


def _state(facts: Facts, change: Change) -> tuple[int, State]:
    """What a change gains, and the step with it, ns a step."""
    context, counted = facts.context, facts.context.once(counted_windows)
    again = run_again(context, change)
    shorter = context.all_steps.time - (again.end - again.start)
    gone = intervals.union(change.host, change.threads.get(context.step_track, EMPTY))
    split, path = split_then(context, again), path_time(context, again, gone)
    return facts.mean(max(0, int(shorter[counted].sum()))), State(
        {part: facts.mean(time) for part, time in split.items()},
        {kind: facts.mean(time) for kind, time in path.items()},
    )
