"""Findings as tracks: where in the trace the time is that each of them is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.report.build.findings import sentence_of
from traceanalyze.report.perfetto.lanes import lanes
from traceanalyze.report.perfetto.model import Slices, milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.report.format import Formatter
    from traceanalyze.rules.finding import Finding


def finding_tracks(found: Sequence[Finding], platform: str, formatter: Formatter) -> tuple[tuple[Slices, ...], int]:
    """A track for each finding, the costliest first; and how many findings name no place in time."""
    tracks: list[Slices] = []
    unplaced = 0
    for one in found:
        windows = _windows(one)
        unplaced += not windows
        tracks += [_track(one, start, end, platform, formatter) for start, end in windows]
    return tuple(tracks), unplaced


def _windows(one: Finding) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The time behind a finding; without any, the places that its evidence names."""
    if one.intervals is not None and len(one.intervals):
        found = intervals.merge(one.intervals[:, 0], one.intervals[:, 1])
        return [(found.start, found.end)] if len(found.start) else []
    places = [(each.start, each.end) for each in one.evidence if each.start is not None and each.end is not None]
    some = np.array([place for place in places if place[1] > place[0]], np.int64).reshape(-1, 2)
    return [(some[lane, 0], some[lane, 1]) for lane in lanes(some[:, 0], some[:, 1])]


def _track(
    one: Finding, start: NDArray[np.int64], end: NDArray[np.int64], platform: str, formatter: Formatter
) -> Slices:
    terms, messages, count = formatter.texts.terms, formatter.texts.messages, len(start)
    name = one.slug if one.text else terms.get(f"rule_{one.rule}", one.slug)
    told = {
        terms["overlay_arg_sentence"]: formatter.message(sentence_of(one)),
        terms["overlay_arg_saving"]: None if one.saving is None else milliseconds(one.saving),
        terms["overlay_arg_bound"]: None if one.bound is None else milliseconds(one.bound),
    }
    advice = [messages[key] for key in (f"advice_{each}.{platform}" for each in one.advice) if key in messages]
    told[terms["overlay_arg_advice"]] = " ".join(advice) or None
    return Slices(
        f"{terms['overlay_finding']} {one.rule}: {name}",
        start,
        end,
        [name] * count,
        {key: [value] * count for key, value in told.items()},
    )
