"""The trace around a finding as a picture: threads, streams and idle time over a time axis, in plain SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.excerpt_lane import LaneKind
from traceanalyze.report.html.axis import ticks
from traceanalyze.report.html.boxes import HIGH, LANE, LEFT, WIDE, Scale, drawn, fitted
from traceanalyze.report.html.text import element, safe, sentence
from traceanalyze.report.model import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.analyses.excerpt import Excerpt, Launch
    from traceanalyze.analyses.excerpt_lane import Lane
    from traceanalyze.analyses.excerpt_window import Place
    from traceanalyze.report.format import Formatter
    from traceanalyze.report.model import FindingExcerpt

_TOP, _BOTTOM, _BETWEEN = 22, 20, 8
"""Room for the label of the instance, for the axis, and between the lanes of threads, streams and idle time."""
_TICKS = 10
_DEVICE = frozenset({LaneKind.STREAM, LaneKind.IDLE})


def timeline_html(one: FindingExcerpt, formatter: Formatter, at: str | None = None) -> str:
    """Heading, what one sees, the picture, what its colours mean, and what it leaves out; `at` is where links lead."""
    words = formatter.texts.messages
    found = one.place.excerpt
    if not found.lanes:
        return ""
    values = (("rule", Kind.TEXT, one.rule), ("finding", Kind.TERM, one.finding))
    title = formatter.fill(words["excerpt_title"], Message("excerpt_title", values))
    told = formatter.sentences(one.told)
    caption = element("figcaption", element("strong", safe(title)) + " " + sentence(told))
    picture = element("div", _picture(one.place, f"{title}. {told}", formatter), class_="scroll")
    notes = element("p", sentence(formatter.sentences(_notes(one.place))), class_="aside")
    return element("figure", caption + picture + _legend(found, formatter) + notes, class_="timeline", id=at)


def _picture(place: Place, label: str, formatter: Formatter) -> str:
    found = place.excerpt
    scale = Scale(found.length)
    tops = _tops(found.lanes)
    bottom = tops[-1] + LANE
    body = [*_axis(scale, bottom), *_instance(place, scale, bottom, formatter)]
    body += _names(found.lanes, tops, formatter)
    body += drawn(found.lanes, tops, scale, formatter)
    if found.launch is not None:
        body.append(_arrow(found.launch, tops, scale))
    return element("svg", "".join(body), viewBox=f"0 0 {WIDE} {bottom + _BOTTOM}", role="img", aria_label=label)


def _tops(lanes: Sequence[Lane]) -> list[int]:
    """Where each lane begins; a little room between different threads and streams."""
    found, y = [], _TOP
    for index, lane in enumerate(lanes):
        before = lanes[index - 1] if index else lane
        y += _BETWEEN if (lane.kind in _DEVICE) != (before.kind in _DEVICE) or _begins(lane, before) else 0
        found.append(y)
        y += LANE
    return found


def _begins(lane: Lane, before: Lane) -> bool:
    """Whether a lane is the first of its thread."""
    return lane.kind in {LaneKind.OPS, LaneKind.CALLS} and lane.track != before.track


def _axis(scale: Scale, bottom: int) -> Iterator[str]:
    for at, label in ticks(scale.length, _TICKS):
        x = scale.x(at)
        anchor = "end" if x > WIDE - 20 else "middle"
        yield f'<path class="grid" d="M{x:.1f},{_TOP}V{bottom + 2}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="{anchor}">{safe(label)}</text>'


def _instance(place: Place, scale: Scale, bottom: int, formatter: Formatter) -> Iterator[str]:
    """The band behind the instance, and how long it is."""
    left, right = scale.x(place.start), scale.x(place.end)
    bounds = f'x="{left:.1f}" y="{_TOP - 3}" width="{max(right - left, 1):.1f}" height="{bottom - _TOP + 5}"'
    yield f'<rect class="instance" {bounds}/>'
    label = formatter.value(Kind.DURATION, place.length)
    middle = min(max((left + right) / 2, LEFT + 30), WIDE - 30)
    yield f'<text class="strong" x="{middle:.1f}" y="{_TOP - 8}" text-anchor="middle">{safe(label)}</text>'


def _names(lanes: Sequence[Lane], tops: Sequence[int], formatter: Formatter) -> Iterator[str]:
    """Name of each lane; of the levels of a thread only the first."""
    for index, (lane, top) in enumerate(zip(lanes, tops, strict=True)):
        before = lanes[index - 1] if index else None
        name = _name(lane, before, formatter)
        if name:
            full = f"<title>{safe(name)}</title>"
            yield f'<text x="0" y="{top + HIGH - 4}">{safe(fitted(name, LEFT - 10))}{full}</text>'


def _name(lane: Lane, before: Lane | None, formatter: Formatter) -> str:
    words, terms = formatter.texts.messages, formatter.texts.terms
    match lane.kind:
        case LaneKind.STEPS:
            return terms["step"]
        case LaneKind.STREAM if lane.name.startswith("-"):
            # Of communication some profiles give the time, but no stream.
            return terms["communication"]
        case LaneKind.STREAM:
            return words["excerpt_stream"].format(name=lane.name)
        case LaneKind.IDLE:
            return words["excerpt_idle_lane"]
        case LaneKind.CALLS if before is not None and before.track == lane.track:
            return words["excerpt_calls"]
    return "" if before is not None and before.track == lane.track else lane.name


def _arrow(launch: Launch, tops: Sequence[int], scale: Scale) -> str:
    """From a call to the beginning of what it launched."""
    x, y = scale.x(launch.at), tops[launch.thread] + HIGH
    to, end = scale.x(launch.start), tops[launch.stream]
    middle = (y + end) / 2
    line = f'<path d="M{x:.1f},{y}C{x:.1f},{middle:.1f} {to:.1f},{middle:.1f} {to:.1f},{end - 4}"/>'
    return f'<g class="launch">{line}<path d="M{to:.1f},{end}l-3,-6h6z"/></g>'


def _legend(found: Excerpt, formatter: Formatter) -> str:
    """What the colours mean, of host, device and idle time apart."""
    words, terms = formatter.texts.messages, formatter.texts.terms
    groups = {
        "excerpt_host": [lane for lane in found.lanes if lane.kind in {LaneKind.OPS, LaneKind.CALLS}],
        "excerpt_device": [lane for lane in found.lanes if lane.kind == LaneKind.STREAM],
        "excerpt_idle_lane": [lane for lane in found.lanes if lane.kind == LaneKind.IDLE],
    }
    items = []
    for key, lanes in groups.items():
        kinds = dict.fromkeys(box.kind for lane in lanes for box in lane.boxes)
        marks = "".join(f'<span><i class="k {kind}"></i>{safe(terms[kind])}</span>' for kind in kinds)
        items += [f"<li><b>{safe(words[key])}</b>{marks}</li>"] if kinds else []
    own = f'<span><i class="instance"></i>{safe(terms["instance"])}</span>'
    if found.launch is not None:
        own += f'<span><i class="launch">→</i>{safe(terms["launched_by"])}</span>'
    return f'<ul class="legend lanes">{"".join(items)}<li>{own}</li></ul>'


def _notes(place: Place) -> Iterator[Message]:
    """Where the picture begins in the trace, and what it leaves out."""
    found = place.excerpt
    start = ("start", Kind.DURATION, place.since_first - place.start)
    yield Message("excerpt_from", (start, ("length", Kind.DURATION, found.length)))
    if place.start + place.length > found.length:
        yield Message("excerpt_ends_outside")
    if found.merged_events:
        yield Message("excerpt_merged", (("count", Kind.COUNT, found.merged_events),))
    if found.hidden_events:
        yield Message("excerpt_hidden_events", (("count", Kind.COUNT, found.hidden_events),))
    if found.hidden_threads:
        yield Message("excerpt_hidden_threads", (("count", Kind.COUNT, found.hidden_threads),))
    if found.hidden_streams:
        yield Message("excerpt_hidden_streams", (("count", Kind.COUNT, found.hidden_streams),))
