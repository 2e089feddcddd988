"""Rules that could not be judged, by the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.postmortem.labels import in_order
from traceanalyze.postmortem.results import Unjudged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.postmortem.parts import RecordingPart


def unjudged(recordings: Sequence[RecordingPart]) -> tuple[Unjudged, ...]:
    """One a reason, that which keeps most rules from being judged first. Rules about ranks hold for all of them."""
    rules: dict[str, set[str]] = {}
    ranks: dict[str, set[str]] = {}
    for recording in recordings:
        everyone = [rank.label for rank in recording.ranks]
        told = [(one, [rank.label]) for rank in recording.ranks for one in rank.unjudged]
        for one, labels in [*told, *((one, everyone) for one in recording.of_run_unjudged)]:
            rules.setdefault(one.reason, set()).add(one.rule)
            ranks.setdefault(one.reason, set()).update(labels)
    found = [Unjudged(reason, tuple(sorted(rules[reason])), in_order(ranks[reason])) for reason in rules]
    return tuple(sorted(found, key=lambda one: (-len(one.rules), one.reason)))
