"""Prefill and decode of a language model's inference, and its steady state, by annotations that name iterations.

An iteration is a step in the sense of definitions §3 with its annotation as the marker: it lasts until the device is
done with what was launched before the next one, wherever that was launched. Names of iterations:

`execute_32_context_2(sq96sk128…)_generation_30(sq30sk900…)`, `execute_context_2(96)_generation_30(30)`
    vLLM 0.11 and later, and tools that patch SGLang. Context requests are prefill, generation requests decode, both
    are mixed; `sq` or the number in brackets are tokens.
`execute_new_2_cached_30`
    vLLM of 2025. New requests are prefill, cached ones decode (a prompt's later chunks count as cached).
`step[DECODE bs=32]`, `step[EXTEND bs=2 toks=96]`
    SGLang. EXTEND and PREFILL are prefill, DECODE is decode, MIXED is mixed; of other modes it is not known.
`prefill`, `model.decode`, `forward_decode`, `Decode step 3`
    Any program: the whole word; both words are mixed.
`execute_model`
    vLLM, other programs. The phase is not known.

Of several styles in one recording the one that stands higher here counts, because they lie inside each other.
Captures of device graphs (`capture_32_DECODE`) and warm-up are no iterations.
"""

import re
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.steps.steps import Markers, outermost_markers, step_windows
from traceanalyze.analyses.steps.window import rounded
from traceanalyze.model import intervals
from traceanalyze.model.columns import quantile
from traceanalyze.model.patterns import regex
from traceanalyze.model.phases import Role, op_role
from traceanalyze.model.table import Column, Kind, Layout, Message, NotMeasured, Table, Values, declare, sentences
from traceanalyze.model.vocabulary import EventKind


class InferencePhase(IntEnum):
    """What an iteration does for its requests."""

    PREFILL = 0
    """Reads prompts."""
    DECODE = 1
    """Generates the next tokens."""
    MIXED = 2
    OTHER = 3
    """The name does not tell."""


class Iteration(NamedTuple):
    """What the name of an iteration tells; None for what it does not."""

    phase: InferencePhase
    requests: int | None = None
    tokens: int | None = None
    """Tokens that go into the model."""


_CONTEXT = regex(
    r"execute_(?:\d+_)?context_(?P<new>\d+)(?:\((?P<new_of>[^()]*)\))?"
    r"_generation_(?P<old>\d+)(?:\((?P<old_of>[^()]*)\))?"
)
_NEW = regex(r"execute_new_(?P<new>\d+)_cached_(?P<old>\d+)")
_STEP = regex(r"step\[(?P<mode>\w+)(?: bs=(?P<requests>\d+))?(?: toks=(?P<tokens>\d+))?[^\]]*\]")
_MODEL = regex(r"(.*[.:/ ])?execute_model(_?\d+)?")
_WORD = regex(r"(?<![a-z])(prefill|decode)(?![a-z])", re.IGNORECASE)
_NO_ITERATION = regex(r"captur|warm_?up|image|jpe?g|png|video|audio|base64|json|utf|batch_decode", re.IGNORECASE)
_TOKENS = regex(r"(?:sq)?(\d+)")
_MODES = {
    "DECODE": InferencePhase.DECODE,
    "EXTEND": InferencePhase.PREFILL,
    "PREFILL": InferencePhase.PREFILL,
    "MIXED": InferencePhase.MIXED,
}


def _of_requests(new: int, old: int) -> InferencePhase:
    if new and old:
        return InferencePhase.MIXED
    if new or old:
        return InferencePhase.PREFILL if new else InferencePhase.DECODE
    return InferencePhase.OTHER


def _context(name: str) -> Iteration | None:
    if (found := _CONTEXT.fullmatch(name)) is None:
        return None
    new, old = int(found["new"]), int(found["old"])
    counts = [_TOKENS.match(text or "") for text in (found["new_of"], found["old_of"])]
    tokens = sum(int(count[1]) for count in counts if count) if all(counts) else None
    return Iteration(_of_requests(new, old), new + old, tokens)


def _new(name: str) -> Iteration | None:
    if (found := _NEW.fullmatch(name)) is None:
        return None
    new, old = int(found["new"]), int(found["old"])
    return Iteration(_of_requests(new, old), new + old)


def _step(name: str) -> Iteration | None:
    if (found := _STEP.fullmatch(name)) is None:
        return None
    requests, tokens = (None if found[key] is None else int(found[key]) for key in ("requests", "tokens"))
    return Iteration(_MODES.get(found["mode"].upper(), InferencePhase.OTHER), requests, tokens)


def _word(name: str) -> Iteration | None:
    words = {word.lower() for word in _WORD.findall(name)}
    if not words or _NO_ITERATION.search(name):
        return None
    return Iteration(InferencePhase.MIXED if len(words) > 1 else InferencePhase[words.pop().upper()])


def _model(name: str) -> Iteration | None:
    return Iteration(InferencePhase.OTHER) if _MODEL.fullmatch(name) else None


STYLES: tuple[Callable[[str], Iteration | None], ...] = (_context, _new, _step, _word, _model)
"""Ways to name iterations, the ones that tell most first."""
WORDS = STYLES.index(_word)
"""The style that says nothing in a recording of training."""


def iteration_style(name: str) -> int:
    """Which of `STYLES` names an iteration so, or the number of styles."""
    return next((style for style, read in enumerate(STYLES) if read(name) is not None), len(STYLES))


_SAY = sentences(
    inference_left_out=(
        "Not counted, as they lie inside these or on other threads: {count} more range(s) named like iterations."
    )
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

    @property
    def time(self) -> NDArray[np.int64]:
        return self.end - self.start


def inference(context: Context) -> tuple[Table, Table]:
    """Iterations by phase, and the longest run of like ones; host annotations before those of the device."""
    for kind in (EventKind.ANNOTATION, EventKind.DEVICE_ANNOTATION):
        rows, style = _named(context, kind)
        if len(rows):
            # Of the style that tells most.
            on_device = kind == EventKind.DEVICE_ANNOTATION
            markers = outermost_markers(context.trace, rows[style == style.min()], on_device=on_device)
            found = _iterations(context, markers, STYLES[int(style.min())])
            # Ranges named like iterations that lie inside others, or on other threads.
            left_out = len(rows) - len(markers.start)
            notes = (Message(_SAY["inference_left_out"], (("count", Kind.COUNT, left_out),)),) if left_out else ()
            return replace(_phases(found), notes=notes), _steady(found)
    reason = "no_inference_annotations"
    return _PHASES.missing(reason, detail=True), _STEADY.missing(reason, detail=True)


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


def _iterations(context: Context, markers: Markers, read: Callable[[str], Iteration | None]) -> _Iterations:
    """Windows of the iterations, and how long the device was busy in each."""
    windows = step_windows(markers, context.device, *context.ownership)
    busy = None
    if len(context.device):
        active = intervals.union(*context.class_sets(context.devices[0]).values())
        busy = intervals.coverage(active, windows.start, windows.end)
    names = tuple(found for found in map(read, markers.name) if found is not None)
    host = None if markers.track < 0 else markers.end - markers.start
    return _Iterations(names, windows.start, windows.end, host, busy)


def _phases(found: _Iterations) -> Table:
    phase = np.array([each.phase for each in found.names])
    there = [each for each in InferencePhase if (phase == each).any()]
    members = [phase == each for each in there]
    total = [int(found.time[member].sum()) for member in members]
    return _PHASES.fill(
        phase=[f"inference_{each.name.lower()}" for each in there],
        iterations=[int(member.sum()) for member in members],
        iteration_share=[time / max(sum(total), 1) for time in total],
        **_distribution("iteration", found.time, members, ""),
        **_distribution("busy", found.busy, members, "no_device_events"),
        **_distribution("host", found.host, members, "no_annotations"),
    )


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
    known = [each.tokens for each in run if each.tokens is not None]
    tokens = sum(known) if len(known) == len(run) else NotMeasured("not_in_name")
    rate: float | NotMeasured = NotMeasured("no_duration")
    if isinstance(tokens, NotMeasured):
        rate = tokens
    elif end > start:
        rate = tokens / (end - start) * 1e9
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
    )
