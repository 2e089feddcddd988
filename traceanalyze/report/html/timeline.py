"""The trace around a finding as a picture: threads, streams and idle time over a time axis, in plain SVG."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from traceanalyze.analyses.excerpt.excerpt import Box, Excerpt, Lane, LaneKind, Launch
from traceanalyze.analyses.excerpt.window import Place
from traceanalyze.model.table import Kind, Message, Table, labels_of, sentences
from traceanalyze.report.format import Formatter
from traceanalyze.report.html.curve import ticks
from traceanalyze.report.html.frame import element, safe, sentence
from traceanalyze.report.model import FindingExcerpt, RankReport

_SAY = sentences(
    excerpt_title="{rule} {finding}: where it is longest",
    excerpt_stream="stream {name}",
    excerpt_calls="runtime calls",
    excerpt_links="In the trace:",
    excerpt_from="The picture begins {start} after the first event of the trace and covers {length}.",
    excerpt_merged="{count} events too short to be seen alone share boxes, filled as far as they are busy.",
    excerpt_hidden_events="Not drawn: {count} deeper operator(s).",
    excerpt_hidden_threads="Not drawn: {count} further thread(s).",
    excerpt_hidden_streams="Not drawn: {count} further stream(s).",
    excerpt_several="{count} events, busy {busy}; the longest: {name}",
    excerpt_several_unnamed="{count} intervals, {busy} in all",
    excerpt_ends_outside="It goes on after the end of the picture.",
)

WIDE, LEFT, RIGHT = 1056, 150, 6
LANE, HIGH = 20, 17
"""From lane to lane, and the height of a box."""
_LETTER = 6.9
"""Width of most letters in wide fonts."""
_WIDER, _NARROWER = frozenset("mwMW@%"), frozenset("ijlftI.,:;|!()[]")
_LEAST = 0.8
"""Width of a box that is shorter than a pixel."""
_LONGEST_NAME = 160
_FEW = 3
"""Letters of a name below which it says nothing."""
_BUDGET = 33_000
"""Bytes of boxes after which more of them, narrow ones first, have nothing for the pointer."""
_SOLID = 0.9
"""Share of its time from which on several events are as good as one."""
_EVALUATES = "autograd::engine::evaluate_function: "


class Scale(NamedTuple):
    """From time to place."""

    length: int

    def x(self, at: int) -> float:
        """Place of a time since the beginning, ns."""
        return LEFT + (WIDE - LEFT - RIGHT) * at / max(self.length, 1)


class _Drawn(NamedTuple):
    """One box: where it is, and how it is written with and without its tooltip."""

    lane: int
    kind: str
    wide: float
    whole: str
    bare: str


def drawn(lanes: Sequence[Lane], tops: Sequence[int], scale: Scale, formatter: Formatter) -> Iterator[str]:
    """All boxes, lane by lane; the widest can be pointed at, the others too as long as there is room in the page."""
    every = [_box(index, lane, box, scale, formatter) for index, lane in enumerate(lanes) for box in lane.boxes]
    detailed, used = set[int](), sum(len(one.bare) for one in every)
    for at in sorted(range(len(every)), key=lambda at: -every[at].wide):
        used += len(every[at].whole.encode()) - len(every[at].bare)
        if used > _BUDGET:
            break
        detailed.add(at)
    for index, top in enumerate(tops):
        own = [(at, one) for at, one in enumerate(every) if one.lane == index]
        kinds = dict.fromkeys(one.kind for _, one in own)
        groups = []
        for kind in kinds:
            shapes = "".join(one.whole if at in detailed else one.bare for at, one in own if one.kind == kind)
            groups.append(f'<g class="k {kind}">{shapes}</g>')
        yield f'<g class="{lanes[index].kind}" transform="translate(0 {top})">{"".join(groups)}</g>'


def _box(index: int, lane: Lane, box: Box, scale: Scale, formatter: Formatter) -> _Drawn:
    left = scale.x(box.start)
    wide = max(scale.x(box.end) - left, _LEAST)
    title = f"<title>{safe(_tooltip(lane, box, formatter))}</title>"
    span = max(box.end - box.start, 1)
    place = f'x="{left:.1f}" width="{wide:.1f}"'
    if box.count > 1 and box.busy < _SOLID * span:
        high = max(HIGH * box.busy / span, 1.5)
        fill = f'<rect {place} y="{HIGH - high:.1f}" height="{high:.1f}"/>'
        whole = f'{fill}<rect class="of" {place} height="{HIGH}">{title}</rect>'
        bare = fill
    else:
        whole = f'<rect {place} height="{HIGH}">{title}</rect>'
        bare = f'<rect {place} height="{HIGH}"/>'
    name = label(lane, box, wide - 6, formatter)
    text = f'<text x="{left + 3:.1f}" y="{HIGH - 5}">{safe(name)}</text>' if name else ""
    return _Drawn(index, box.kind, wide, whole + text, bare)


def _tooltip(lane: Lane, box: Box, formatter: Formatter) -> str:
    """What is shown under the pointer."""
    words = formatter.texts.messages
    kind = formatter.texts.terms.get(box.kind, box.kind)
    name = box.name or kind
    name = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    if box.count > 1:
        busy = formatter.value(Kind.DURATION, box.busy)
        template = words[_SAY["excerpt_several" if box.name else "excerpt_several_unnamed"]]
        name = template.format(count=f"{box.count:,}", busy=busy, name=name)
    time = formatter.value(Kind.DURATION, box.end - box.start)
    begins = formatter.value(Kind.DURATION, box.start)
    what = "" if lane.kind == LaneKind.STEPS or not box.name else f" · {kind}"
    return f"{name} · {time} (+{begins}){what}"


def label(lane: Lane, box: Box, room: float, formatter: Formatter) -> str:
    """The name as far as there is room; of several events their number, of idle time nothing else."""
    name = formatter.texts.terms[box.kind] if lane.kind == LaneKind.IDLE else _short(lane, box)
    if box.count == 1:
        return fitted(name, room)
    number = f"{box.count:,} ×"
    if fitted(number, room) != number:
        return ""
    whole = f"{number} {name}"
    both = fitted(whole, room)
    says_more = both == whole or len(both) > len(number) + 1 + _FEW
    return both if says_more and lane.kind != LaneKind.IDLE else number


def _short(lane: Lane, box: Box) -> str:
    """A kernel by its label, an autograd evaluation by its node."""
    if lane.kind == LaneKind.STREAM:
        return labels_of(Kind.KERNEL, [box.name])[box.name]
    return box.name.removeprefix(_EVALUATES)


def fitted(name: str, room: float) -> str:
    """As much of a name as there is room for, with a sign that there is more; nothing where that is too little."""
    widths = [_width(char) for char in name]
    if sum(widths) <= room:
        return name
    used, kept = _width("m"), 0
    for width in widths:
        if used + width > room:
            break
        used += width
        kept += 1
    return f"{name[:kept].rstrip()}…" if kept >= _FEW else ""


def _width(char: str) -> float:
    if unicodedata.east_asian_width(char) in "WF":
        return 1.7 * _LETTER
    return _LETTER * (1.5 if char in _WIDER else 0.6 if char in _NARROWER else 1)


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
    title = formatter.fill(words[_SAY["excerpt_title"]], Message(_SAY["excerpt_title"], values))
    caption_text = formatter.sentences(one.sentences)
    caption = element("figcaption", element("strong", safe(title)) + " " + sentence(caption_text))
    picture = element("div", _picture(one.place, f"{title}. {caption_text}", formatter), class_="scroll")
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
            return words[_SAY["excerpt_stream"]].format(name=lane.name)
        case LaneKind.IDLE:
            return words["excerpt_idle_lane"]
        case LaneKind.CALLS if before is not None and before.track == lane.track:
            return words[_SAY["excerpt_calls"]]
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
    yield Message(_SAY["excerpt_from"], (start, ("length", Kind.DURATION, found.length)))
    if place.start + place.length > found.length:
        yield Message(_SAY["excerpt_ends_outside"])
    for key, count in (
        ("merged", found.merged_events),
        ("hidden_events", found.hidden_events),
        ("hidden_threads", found.hidden_threads),
        ("hidden_streams", found.hidden_streams),
    ):
        if count:
            yield Message(_SAY[f"excerpt_{key}"], (("count", Kind.COUNT, count),))


class Picture(NamedTuple):
    """One picture of a page."""

    excerpt: FindingExcerpt
    at: str
    """Where links lead."""
    rank: int | None


def pictures_of(rank: RankReport, at: str) -> tuple[list[Picture], list[Picture]]:
    """Pictures of a rank that stand among its own tables, and those whose rule none of these names."""
    named = {rule for table in rank.tables for rule in rules_of(table)}
    every = [Picture(one, f"{at}-at-{index}", rank.rank) for index, one in enumerate(rank.excerpts)]
    return [one for one in every if one.excerpt.rule in named], [one for one in every if one.excerpt.rule not in named]


def rules_of(table: Table) -> frozenset[object]:
    """Ids of the rules that a table names."""
    named = len(table) and "rule_id" in table.keys
    return frozenset(table.column("rule_id")) if named else frozenset()


def by_table(tables: Sequence[Table], pictures: Sequence[Picture]) -> Mapping[str, Sequence[Picture]]:
    """Pictures by the first table that names their rule."""
    found: dict[str, list[Picture]] = {}
    for one in pictures:
        first = next((table.key for table in tables if one.excerpt.rule in rules_of(table)), None)
        if first is not None:
            found.setdefault(first, []).append(one)
    return found


def links(pictures: Sequence[Picture], formatter: Formatter) -> str:
    """A line that leads to pictures elsewhere in the page; nothing without any."""
    if not pictures:
        return ""
    words, found = formatter.texts.messages, []
    for one in pictures:
        name = f"{one.excerpt.rule} {formatter.value(Kind.TERM, one.excerpt.finding)}"
        name += "" if one.rank is None else words["rank"].format(rank=one.rank)
        found.append(f'<a href="#{one.at}">{safe(name)}</a>')
    return element("p", f"{safe(words[_SAY['excerpt_links']])} {safe(words['group_mark']).join(found)}")
