"""What the trace shows around each finding, with the words for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.table import Kind, Message
from traceanalyze.model.vocabulary import Mode
from traceanalyze.report.assembly.findings import name_of
from traceanalyze.report.model import FindingExcerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.analyses.excerpt.window import Place
    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.rules.finding import Finding, Outcome


Key = tuple[str, str, tuple[str, ...]]
"""Rule, sentence and place of a finding: no two findings of a rank have the same."""
Places = Mapping[Key, "Place"]


def key_of(one: Finding) -> Key:
    """By which a finding is known when others were left out."""
    return one.rule, one.sentence, one.scope.ops


def finding_excerpts(outcome: Outcome | None, places: Places, analysis: RankAnalysis) -> tuple[FindingExcerpt, ...]:
    """Excerpts of the trace at findings that have a place in it, in the order of the findings."""
    found = [] if outcome is None else [(one, places[key_of(one)]) for one in outcome.findings if key_of(one) in places]
    return tuple(FindingExcerpt(one.rule, name_of(one), tuple(_told(at, analysis)), at) for one, at in found)


def _told(place: Place, analysis: RankAnalysis) -> Iterator[Message]:
    """Where the instance is, and what one sees there."""
    time = ("time", Kind.DURATION, place.length)
    if analysis.mode == Mode.STEPS and place.step >= 0:
        step = ("step", Kind.TEXT, step_labels(analysis.steps.name)[place.step])
        key = "excerpt_in_step" if place.since_step else "excerpt_at_step"
        yield Message(key, (time, step, ("since", Kind.DURATION, place.since_step)))
    else:
        yield Message("excerpt_in_trace", (time, ("since", Kind.DURATION, place.since_first)))
    if place.cause is not None and 2 * place.idle >= place.length:
        whole = "excerpt_idle_throughout" if place.idle == place.length else "excerpt_idle"
        yield Message(whole, (("idle", Kind.DURATION, place.idle), ("cause", Kind.TERM, place.cause)))
    if place.doing is not None:
        yield Message("excerpt_doing", (("name", Kind.NAME, place.doing),))
