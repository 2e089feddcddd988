"""Prefill and decode of a language model's inference, and its steady state.

An iteration (`model.phases`: what names them) is a step in the sense of definitions §3 with its annotation as the
marker: it lasts until the device is done with what was launched before the next one, wherever that was launched.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.idle import idle_begun_before
from traceanalyze.analyses.steps.steps import outermost_markers, step_windows
from traceanalyze.analyses.steps.window import Steps, rounded
from traceanalyze.model import intervals
from traceanalyze.model.columns import quantile
from traceanalyze.model.phases import STYLES, WORDS, InferencePhase, Iteration, Role, iteration_style, op_role
from traceanalyze.model.table import Column, Kind, Layout, Message, NotMeasured, Table, Values, declare, sentences
from traceanalyze.model.vocabulary import EventKind

_SAY = sentences(
    inference_left_out=(
        "Not counted, as they lie inside these or on other threads: {count} more range(s) named like iterations."
    ),
    inference_begun_before=(
        "Tokens a second are at least as many: the recording begins in the middle, and for {time} its first iteration "
        "waits for work that was launched before."
    ),
    inference_in_part="Tokens are at least as many: {count} of {iterations} iterations do not tell theirs.",
)
_AT_LEAST = Column(
    "tokens_at_least",
    Kind.FLAG,
    "whether that is a lower bound: some iterations do not tell their tokens, or wait for work launched before the "
    "recording",
    heading="at least",
)

_MEAN = Column(
    "iteration_mean_ns",
    Kind.DURATION,
    "mean of an iteration: annotation's start to the end of its last device work",
    heading="mean iteration",
)
_PHASES = declare(
    "inference_phases",
    "Prefill and decode (sum over the analysed steps)",
    Column("phase", Kind.TERM, "prefill reads prompts, decode generates the next tokens, mixed does both"),
    Column("iterations", Kind.COUNT, "runs of the model that begin in the analysed steps, by their annotations"),
    Column("iteration_share", Kind.SHARE, "part of the time of all iterations", heading="share"),
    Column(
        "iteration_sum_ns",
        Kind.DURATION,
        "from the annotation's start to the end of its last device work, all iterations",
        heading="time",
        scale="sum",
    ),
    _MEAN,
    Column("iteration_p50_ns", Kind.DURATION, "half of the iterations take no longer", heading="median", minor=True),
    Column("iteration_p90_ns", Kind.DURATION, "nine of ten iterations take no longer", heading="90 %"),
    Column(
        "busy_sum_ns",
        Kind.DURATION,
        "anything runs on the headline device, all iterations",
        heading="device busy",
        scale="sum",
        minor=True,
    ),
    Column(
        "busy_mean_ns", Kind.DURATION, "anything runs on the headline device, mean of an iteration", heading="mean busy"
    ),
    Column(
        "busy_p50_ns",
        Kind.DURATION,
        "anything runs on the headline device, median of the iterations",
        heading="busy, median",
        minor=True,
    ),
    Column(
        "busy_p90_ns",
        Kind.DURATION,
        "anything runs on the headline device; no more in nine of ten iterations",
        heading="busy, 90 %",
        minor=True,
    ),
    Column(
        "host_sum_ns",
        Kind.DURATION,
        "host inside the annotations, all iterations",
        heading="host",
        scale="sum",
        minor=True,
    ),
    Column("host_mean_ns", Kind.DURATION, "host inside the annotation, mean of an iteration", heading="mean host"),
    Column(
        "host_p50_ns",
        Kind.DURATION,
        "host inside the annotation, median of the iterations",
        heading="host, median",
        minor=True,
    ),
    Column(
        "host_p90_ns",
        Kind.DURATION,
        "host inside the annotation; no longer in nine of ten iterations",
        heading="host, 90 %",
        minor=True,
    ),
    Column("requests_mean", Kind.NUMBER, "requests an iteration works on, by its name", heading="requests at once"),
    Column("tokens", Kind.COUNT, "tokens that go into the model in these iterations, by their names"),
    Column("tokens_per_second", Kind.NUMBER, "tokens over the time of these iterations"),
    _AT_LEAST,
)
_STEADY = declare(
    "steady_state",
    "Steady state: the longest run of like iterations",
    Column("phase", Kind.TERM, "what the iterations do for their requests"),
    Column("iterations", Kind.COUNT, "iterations in a row of one batch size, all within 20 % of their median"),
    Column("start_ns", Kind.DURATION, "start, counted from the time base of the file", scale="at"),
    Column("end_ns", Kind.DURATION, "end, counted from the time base of the file", scale="at"),
    _MEAN,
    Column("requests", Kind.COUNT, "requests that each iteration works on, by its name", heading="requests at once"),
    Column("tokens", Kind.COUNT, "tokens that go into the model in these iterations, by their names"),
    Column("tokens_per_second", Kind.NUMBER, "tokens over the time from start to end"),
    _AT_LEAST,
    layout=Layout.RECORD,
)

TOLERANCE_PERCENT = 20


def longest_steady(values: Sequence[int]) -> tuple[int, int]:
    """Bounds `[first, stop)` of the longest run of positive values all within ±20 % of the run's median.

    Of several the first. Where no value of a run is more than 1.5 times another it may still not be steady, but where
    one is it never is, so few runs are looked at.
    """
    low, high = 100 - TOLERANCE_PERCENT, 100 + TOLERANCE_PERCENT
    best = (0, 0)
    for first in range(len(values)):
        if len(values) - first <= best[1] - best[0]:
            break
        ordered: list[int] = []
        for stop in range(first + 1, len(values) + 1):
            insort(ordered, values[stop - 1])
            if low * ordered[-1] > high * ordered[0]:
                break
            twice = ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
            steady = 200 * ordered[0] >= low * twice and 200 * ordered[-1] <= high * twice
            if steady and stop - first > best[1] - best[0]:
                best = (first, stop)
    return best


FEWEST_ITERATIONS = 3
"""A run of fewer is no steady state."""


class _Iterations(NamedTuple):
    """Iterations in order of time."""

    names: tuple[Iteration, ...]
    """What their annotations say."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    host: NDArray[np.int64] | None
    busy: NDArray[np.int64] | None
    held: NDArray[np.int64]
    """How long each waits for what was launched before the recording."""
    unfinished: NDArray[np.bool_]
    """Recorded up to somewhere in their middle."""

    @property
    def time(self) -> NDArray[np.int64]:
        return self.end - self.start


def inference(context: Context) -> tuple[Table, Table]:
    """Iterations by phase, and the longest run of like ones; host annotations before those of the device."""
    steps = context.counted
    if steps.iterations is not None:
        on_device = context.markers is not None and context.markers.track < 0
        found = _windows(context, steps.iterations, steps, on_device=on_device)
        named = _named(context, EventKind.DEVICE_ANNOTATION if on_device else EventKind.ANNOTATION)[0]
        return _tables(found, max(len(named) - len(steps), 0))
    for kind in (EventKind.ANNOTATION, EventKind.DEVICE_ANNOTATION):
        rows, style = _named(context, kind)
        if len(rows):
            # Of the style that tells most.
            on_device = kind == EventKind.DEVICE_ANNOTATION
            markers = outermost_markers(context.trace, rows[style == style.min()], on_device=on_device)
            windows = step_windows(markers, context.device, *context.ownership)
            names = tuple(filter(None, map(STYLES[int(style.min())], markers.name)))
            found = _windows(context, names, windows, on_device=on_device)
            return _tables(found, len(rows) - len(markers.start))
    reason = "no_inference_annotations"
    return _PHASES.missing(reason, detail=True), _STEADY.missing(reason, detail=True)


def _tables(found: _Iterations, left_out: int) -> tuple[Table, Table]:
    """`left_out`: ranges named like iterations that lie inside others, or on other threads."""
    notes = [Message(_SAY["inference_left_out"], (("count", Kind.COUNT, left_out),))] if left_out else []
    known = sum(each.tokens is not None for each in found.names)
    if known and found.held.any():
        held = ("time", Kind.DURATION, int(found.held.sum()))
        notes.append(Message(_SAY["inference_begun_before"], (held,)))
    if 0 < known < len(found.names):
        counts = ("count", Kind.COUNT, len(found.names) - known), ("iterations", Kind.COUNT, len(found.names))
        notes.append(Message(_SAY["inference_in_part"], counts))
    return replace(_phases(found), notes=tuple(notes)), _steady(found)


def _named(context: Context, kind: EventKind) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Annotations named like iterations that begin in the analysed windows, and how they are named."""
    events = context.trace.events
    rows = np.flatnonzero(context.kind == kind)
    style = context.trace.strings.lookup(events.name[rows], iteration_style)
    known = (style < len(STYLES)) & intervals.contains(context.host_windows, events.ts[rows])
    if (known & (style == WORDS)).any() and _trains(context):
        known &= style != WORDS
    return rows[known], style[known]


def _trains(context: Context) -> bool:
    """Whether the recording has a backward pass."""
    ops = np.flatnonzero(context.kind == EventKind.HOST_OP)
    names = context.trace.events.name[ops]
    return bool(context.trace.strings.matches(names, lambda text: op_role(text) & Role.BACKWARD).any())


def _windows(context: Context, names: tuple[Iteration, ...], windows: Steps, *, on_device: bool) -> _Iterations:
    """Windows of the iterations, and how long the device was busy in each."""
    busy, held = None, np.zeros(len(windows), np.int64)
    if len(context.device):
        active = intervals.union(*context.class_sets(context.devices[0]).values())
        busy = intervals.coverage(active, windows.start, windows.end)
        held = intervals.coverage(context.once(idle_begun_before), windows.start, windows.end)
    host = None if on_device else windows.host_end - windows.host_start
    return _Iterations(names, windows.start, windows.end, host, busy, held, context.unfinished(windows))


def _phases(found: _Iterations) -> Table:
    phase = np.array([each.phase for each in found.names])
    there = [each for each in InferencePhase if (phase == each).any()]
    members = [phase == each for each in there]
    total = [int(found.time[member].sum()) for member in members]
    names = [[found.names[at] for at in np.flatnonzero(member).tolist()] for member in members]
    tokens, rates, least = zip(*map(_tokens, repeat(found), members, total), strict=True)
    return _PHASES.fill(
        phase=[f"inference_{each.name.lower()}" for each in there],
        iterations=[int(member.sum()) for member in members],
        requests_mean=[_requests(each) for each in names],
        tokens=tokens,
        tokens_per_second=rates,
        tokens_at_least=least,
        iteration_share=[time / max(sum(total), 1) for time in total],
        **_distribution("iteration", found.time, members, ""),
        **_distribution("busy", found.busy, members, "no_device_events"),
        **_distribution("host", found.host, members, "no_annotations"),
    )


def _requests(names: Sequence[Iteration]) -> float | NotMeasured:
    """Mean of the requests that iterations work on."""
    known = [each.requests for each in names if each.requests is not None]
    return sum(known) / len(known) if len(known) == len(names) else NotMeasured("not_in_name")


def _tokens(
    found: _Iterations, member: NDArray[np.bool_], time: int
) -> tuple[int | NotMeasured, float | NotMeasured, bool | NotMeasured]:
    """Tokens of some iterations, by the second of a time, ns, and whether both are what there is at least."""
    names = [found.names[at] for at in np.flatnonzero(member).tolist()]
    known = [each.tokens for each in names if each.tokens is not None]
    if not known:
        return (NotMeasured("not_in_name"),) * 3
    least = len(known) < len(names) or bool(found.held[member].any())
    if found.unfinished[member].any() or time <= 0:
        why = NotMeasured("no_duration" if time <= 0 else "iteration_cut")
        return sum(known), why, why
    return sum(known), sum(known) / time * 1e9, least


def _distribution(
    name: str, time: NDArray[np.int64] | None, members: Sequence[NDArray[np.bool_]], reason: str
) -> dict[str, Values]:
    """Columns of total, mean, median and 90th percentile."""
    keys = [f"{name}_{what}_ns" for what in ("sum", "mean", "p50", "p90")]
    if time is None:
        return dict.fromkeys(keys, NotMeasured(reason))
    rows = []
    for member in members:
        total, own = int(time[member].sum()), time[member]
        rows.append((total, rounded(total, len(own)), *(round(quantile(own, part)) for part in (0.5, 0.9))))
    return dict(zip(keys, zip(*rows, strict=True), strict=True))


def _steady(found: _Iterations) -> Table:
    """Longest run of decode or of mixed iterations of one batch size and nearly one length."""
    best, at = (0, 0), 0
    time = found.time.tolist()
    for (phase, _), group in groupby(found.names, key=lambda each: (each.phase, each.requests)):
        size = len(list(group))
        if phase in {InferencePhase.DECODE, InferencePhase.MIXED} and size > best[1] - best[0]:
            first, stop = longest_steady(time[at : at + size])
            if stop - first > best[1] - best[0]:
                best = at + first, at + stop
        at += size
    first, stop = best
    if stop - first < FEWEST_ITERATIONS:
        return _STEADY.missing("no_steady_state")
    run = found.names[first:stop]
    start, end = int(found.start[first]), int(found.end[stop - 1])
    rows = np.arange(len(found.names))
    tokens, rate, least = _tokens(found, (first <= rows) & (rows < stop), end - start)
    requests = run[0].requests
    return _STEADY.fill(
        phase=[f"inference_{run[0].phase.name.lower()}"],
        iterations=[len(run)],
        start_ns=[start],
        end_ns=[end],
        # What lies between the iterations belongs to none.
        iteration_mean_ns=[rounded(sum(time[first:stop]), len(run))],
        requests=[NotMeasured("not_in_name") if requests is None else requests],
        tokens=[tokens],
        tokens_per_second=[rate],
        tokens_at_least=[least],
    )
