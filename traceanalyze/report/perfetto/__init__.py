"""Analyses as tracks over a trace, in the JSON that Perfetto (and chrome://tracing) loads.

`overlay` makes the tracks of one rank from its analyses, `events` writes them as Chrome trace events, `splice` puts
them into the text of the trace, `merge` puts the texts of several ranks together.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.memory.lifetimes import active_curve, reserved_curve
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.window import window_of
from traceanalyze.locales import Texts
from traceanalyze.model.snapshot import Snapshot, SnapshotDevice
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Mode
from traceanalyze.report.contents.words import said, setting_of
from traceanalyze.report.perfetto.events import MIB, Counter, Overlay, Slices
from traceanalyze.report.perfetto.tracks import (
    collective_tracks,
    finding_tracks,
    gap_track,
    memory_counters,
    path_track,
    phase_tracks,
    queue_counter,
    steps_track,
    sync_tracks,
    utilisation_counter,
)
from traceanalyze.rules.finding import Finding

Track = Slices | Counter
Made = tuple[str, Track | tuple[Track, ...] | NotMeasured]


def overlay(context: Context, analysis: RankAnalysis, findings: tuple[Finding, ...], texts: Texts) -> Overlay:
    """Tracks of one rank, from its analyses and ranked findings; what the profile cannot give is listed as missing."""
    made = _made(context, analysis, texts)
    every: list[Track] = []
    missing = []
    for title, tracks in made:
        if isinstance(tracks, NotMeasured):
            missing.append((texts.terms[title], tracks))
        else:
            every += tracks if isinstance(tracks, tuple) else (tracks,)
    slices = tuple(track for track in every if isinstance(track, Slices) and len(track.start))
    counters = tuple(track for track in every if isinstance(track, Counter) and len(track.t))
    return with_findings(Overlay(slices, counters, tuple(missing)), analysis, findings, texts)


def with_findings(tracks: Overlay, analysis: RankAnalysis, findings: tuple[Finding, ...], texts: Texts) -> Overlay:
    """The tracks with those of findings, right below the steps: they are what somebody opens the picture for."""
    told = said(findings, setting_of(analysis, window_of(analysis.steps)))
    found, unplaced = finding_tracks([one.in_words(texts) for one in told], texts.terms)
    slices = (*tracks.slices[:1], *found, *tracks.slices[1:])
    return replace(tracks, slices=slices, unplaced=tracks.unplaced + unplaced)


def _made(context: Context, analysis: RankAnalysis, texts: Texts) -> list[Made]:
    terms = texts.terms
    made: list[Made] = [
        ("overlay_steps", steps_track(analysis.steps, terms)),
        ("overlay_phases", phase_tracks(context, terms)),
    ]
    if context.mode in {Mode.HOST_ONLY, Mode.EMPTY}:
        missing = NotMeasured("no_device_events")
        names = ("gaps", "syncs", "path", "collectives", "queue", "utilisation")
        made += [(f"overlay_{name}", missing) for name in names]
    else:
        made += [
            ("overlay_gaps", gap_track(context, terms)),
            ("overlay_syncs", sync_tracks(context, terms)),
            ("overlay_path", path_track(context, terms)),
            ("overlay_collectives", collective_tracks(context, terms)),
            ("overlay_queue", queue_counter(context, terms)),
            ("overlay_utilisation", utilisation_counter(context, terms)),
        ]
    return [*made, ("overlay_memory", memory_counters(analysis, terms))]


def snapshot_overlay(snapshot: Snapshot, terms: Mapping[str, str]) -> tuple[Overlay, int]:
    """Requested and reserved memory of every device after each event, and the time of the first event, ns since 1970.

    Times of the overlay count from that one.
    """
    dated = [device for device in snapshot.devices if device.history.time is not None and len(device.history)]
    if not dated:
        return Overlay((), (), ((terms["overlay_memory"], NotMeasured("no_event_times")),)), 0
    zero = min(int(device.history.time.min()) for device in dated if device.history.time is not None)
    return Overlay((), tuple(_counter(device, zero, terms) for device in dated)), zero


def _counter(device: SnapshotDevice, zero: int, terms: Mapping[str, str]) -> Counter:
    """Where several events have one time, the value after the last of them; threads may write them out of order."""
    history = device.history
    t = (np.zeros(len(history), np.int64) if history.time is None else history.time) - zero
    t = np.maximum.accumulate(t)
    last = np.flatnonzero(np.concatenate((t[1:] > t[:-1], [True])))
    values = {
        terms["overlay_requested"]: active_curve(device).after[last] / MIB,
        terms["overlay_reserved"]: reserved_curve(device).after[last] / MIB,
    }
    return Counter(f"{terms['overlay_memory']} · {terms['overlay_device']} {device.id}", t[last], values)
