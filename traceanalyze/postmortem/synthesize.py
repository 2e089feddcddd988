"""From the parts of a run to its post-mortem: causes ranked and linked, what could not be judged, what grew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.postmortem.causes import causes
from traceanalyze.postmortem.gain import decider
from traceanalyze.postmortem.memory import memory_causes, without_repeats
from traceanalyze.postmortem.parts import comparable
from traceanalyze.postmortem.results import Growth, Postmortem
from traceanalyze.postmortem.same_time import linked
from traceanalyze.postmortem.unjudged import unjudged
from traceanalyze.rules.finding import Severity
from traceanalyze.rules.ranking import LEAST_NS, LEAST_SHARE, MEDIUM

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.postmortem.parts import RecordingPart, Trouble
from traceanalyze.postmortem.results import Cause

CAPTURE = "CAP"
"""Family of the rules about the recording itself."""
GROWN = 1.5
"""Times as much as in any recording before, and by 5 % of the step: then a cause has grown."""


def synthesize(recordings: Sequence[RecordingPart], troubles: Sequence[Trouble], *, rules: int = 0) -> Postmortem:
    """The post-mortem of one job.

    Args:
        recordings: In the order of time.
        troubles: What its snapshots tell.
        rules: How many rules were run.
    """
    found = causes(recordings)
    told = without_repeats((*memory_causes(troubles), *(one for one in found if not _on_capture(one))))
    ranked = linked(sorted(told, key=_rank))
    capture = tuple(sorted(filter(_on_capture, found), key=_rank))
    missing = unjudged(recordings)
    place = _decider(recordings, ranked)
    return Postmortem(tuple(recordings), ranked, capture, missing, tuple(_growths(recordings, ranked)), place, rules)


def _on_capture(one: Cause) -> bool:
    return one.finding is not None and one.finding.rule.startswith(CAPTURE)


def worth_telling(one: Cause) -> bool:
    """Whether it is more than a note, and the run gains 1 % of its step, and 0.1 ms, without it."""
    return (
        one.gain is not None
        and one.gain >= LEAST_NS
        and (one.share or 0.0) >= LEAST_SHARE
        and one.severity > Severity.INFO
    )


def _rank(one: Cause) -> tuple[int, int, int, int, str]:
    """Memory that ends the run; what costs time; other memory; what costs the run nothing, or is no time at all."""
    rule = one.trouble.key if one.finding is None and one.trouble else one.finding.rule if one.finding else ""
    if one.trouble is not None:
        ends = one.severity == Severity.HIGH
        group = 0 if ends else 2 if one.severity > Severity.INFO else 4
        failed = ends and one.trouble.key.startswith("oom")
        return group, -int(failed), -int(one.severity), -(one.trouble.amount or 0), rule
    group = 1 if worth_telling(one) else 3 if one.gain is not None or one.severity > Severity.INFO else 4
    return group, -(one.gain or 0), -(one.mean or 0), -int(one.severity), rule


def _decider(recordings: Sequence[RecordingPart], ranked: Sequence[Cause]) -> tuple[int, int] | None:
    """The rank that decides how long the step is, in the recording in which the first cause costs most."""
    if not recordings:
        return None
    whole = comparable(recordings)
    first = next((one.recording for one in ranked if one.recording in whole and one.finding is not None), whole[-1])
    return first, decider(recordings[first].ranks)


def _growths(recordings: Sequence[RecordingPart], ranked: Sequence[Cause]) -> Iterator[Growth]:
    """The first time that each cause appears or grows, among recordings that can be compared."""
    places = comparable(recordings)
    for at, one in enumerate(ranked):
        most: int | None = None
        for index in places:
            gain = one.gains[index] if one.gains else None
            if gain is None:
                continue
            step = recordings[index].step_time
            if most is not None and gain >= GROWN * most and gain - most >= MEDIUM * step > 0:
                yield Growth(at, index, most, gain)
                break
            most = max(most or 0, gain)
