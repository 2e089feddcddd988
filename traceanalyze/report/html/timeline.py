"""The trace over time as a picture: threads, streams, idle time by cause; packed for the script, which draws it.

Around a finding it shows what lies there; of a whole rank what stays to be seen, and where its findings are.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from traceanalyze.analyses.excerpt import Box, Excerpt, Lane, LaneKind, Place
from traceanalyze.model.table import Kind, Message, labels_of, sentences
from traceanalyze.report.finding import Finding
from traceanalyze.report.format import Formatter, printable
from traceanalyze.report.html.frame import data, element, safe, sentence
from traceanalyze.report.model import FindingExcerpt

_SAY = sentences(
    excerpt_title="{rule} {finding}: where it is longest",
    excerpt_stream="stream {name}",
    excerpt_calls="runtime calls",
    excerpt_from="The picture begins {start} after the first event of the trace and covers {length}.",
    excerpt_merged="{count} events too short to be seen alone share boxes, filled as far as they are busy.",
    excerpt_hidden_events="Not drawn: {count} deeper operator(s).",
    excerpt_hidden_threads="Not drawn: {count} further thread(s).",
    excerpt_hidden_streams="Not drawn: {count} further stream(s).",
    timeline_unmarked="Not marked: {count} shorter instance(s) of findings.",
    excerpt_ends_outside="It goes on after the end of the picture.",
    timeline_title="Timeline",
    timeline_findings="Findings",
    timeline_help=(
        "Drag to move; Ctrl and the wheel, + and - zoom; arrow keys move, Home shows everything; click a finding to "
        "read it, Enter goes to the nearest one."
    ),
)
TITLE, FINDINGS = _SAY["timeline_title"], _SAY["timeline_findings"]
_LONGEST_NAME = 160
_EVALUATES = "autograd::engine::evaluate_function: "
_MARKS = 200
"""Instances of a finding that are marked, the longest ones."""


class Mark(NamedTuple):
    """A finding on the timeline of its rank."""

    finding: Finding
    at: str
    """Where its card is."""


def timeline_html(one: FindingExcerpt, formatter: Formatter, of: str | None = None) -> str:
    """Heading, what one sees, the picture, its colours, and what it leaves out; `of` is the whole timeline."""
    found, place = one.place.excerpt, one.place
    if not found.lanes:
        return ""
    values = (("rule", Kind.TEXT, one.rule), ("finding", Kind.TERM, one.finding))
    title = formatter.fill(formatter.texts.messages[_SAY["excerpt_title"]], Message(_SAY["excerpt_title"], values))
    said = formatter.sentences(one.sentences)
    launch = [] if found.launch is None else list(found.launch)
    instance = [place.start, place.end, formatter.value(Kind.DURATION, place.length)]
    packed = _packed(found, formatter) | {"instance": instance, "launch": launch, "of": of}
    notes = [*_begins_at(place), *_left_out(found)]
    caption = element("strong", safe(title)) + " " + sentence(said)
    return _figure(found, packed, caption, f"{title}. {said}", notes, formatter)


def overview_html(
    found: Excerpt, shown: tuple[int, int], marks: Sequence[Mark], formatter: Formatter, at: str, heading: str
) -> str:
    """The timeline of a rank, at first of the time `shown` (ns), with its findings above."""
    title, marked = formatter.texts.messages[TITLE], [_marked(mark, found) for mark in marks]
    every = sum(len(mark.finding.intervals) + mark.finding.intervals_left_out for mark in marks)
    unmarked = every - sum(len(each["times"]) for each in marked)
    packed = _packed(found, formatter) | {
        "view": [max(shown[0] - found.start, 0), min(shown[1] - found.start, found.length)],
        "marks": marked,
        "findings": formatter.texts.messages[FINDINGS],
    }
    notes = [Message(_SAY["timeline_help"]), *_left_out(found)]
    if unmarked:
        notes.append(Message(_SAY["timeline_unmarked"], (("count", Kind.COUNT, unmarked),)))
    picture = _figure(found, packed, "", title, notes, formatter)
    return element("section", element(heading, safe(title)) + picture, id=at, class_="script")


def _marked(mark: Mark, found: Excerpt) -> dict[str, Any]:
    spans = mark.finding.intervals
    longest = (spans[:, 0] - spans[:, 1]).argsort(kind="stable")[:_MARKS]
    times = (spans[sorted(longest)] - found.start).tolist()
    return {"at": mark.at, "name": printable(mark.finding.title), "css": mark.finding.severity, "times": times}


def _figure(
    found: Excerpt,
    packed: Mapping[str, object],
    caption: str,
    label: str,
    notes: Sequence[Message],
    formatter: Formatter,
) -> str:
    above = element("figcaption", caption) if caption else ""
    canvas = element("canvas", "", role="img", aria_label=label, tabindex="0")
    below = element("p", sentence(formatter.sentences(notes)), class_="aside")
    return element(
        "figure",
        above + canvas + data(packed) + _legend(found, formatter, instance="instance" in packed) + below,
        class_="timeline",
    )


def _packed(found: Excerpt, formatter: Formatter) -> dict[str, object]:
    """Lanes with their boxes, six numbers each, and the names these share."""
    names, kinds = dict[tuple[str, str], int](), dict[str, int]()
    lanes = []
    for at, lane in enumerate(found.lanes):
        flat: list[int] = []
        for box in lane.boxes:
            name = names.setdefault(_name_of(lane, box), len(names))
            kind = kinds.setdefault(box.kind, len(kinds))
            flat += (box.start, box.end, name, kind, box.count, box.busy)
        before = found.lanes[at - 1] if at else None
        key = f"{lane.kind}/{lane.track}/{lane.depth}/{lane.name if lane.kind == LaneKind.STREAM else ''}"
        said = printable(_name(lane, before, formatter))
        lanes.append({"kind": lane.kind, "key": key, "name": said, "apart": _apart(lane, before), "boxes": flat})
    terms = formatter.texts.terms
    return {
        "start": found.start,
        "length": found.length,
        "resolution": formatter.resolution_ns,
        "lanes": lanes,
        # The whole name only where that is another one.
        "names": [[label] if label == name else [label, name] for label, name in names],
        "kinds": [[kind, terms.get(kind, kind)] for kind in kinds],
    }


def _name_of(lane: Lane, box: Box) -> tuple[str, str]:
    """What stands in a box, and the whole name: a kernel by its label, an autograd evaluation by its node."""
    name = printable(box.name)
    whole = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    if lane.kind == LaneKind.STREAM:
        return printable(labels_of(Kind.KERNEL, [box.name])[box.name])[:_LONGEST_NAME], whole
    return whole.removeprefix(_EVALUATES), whole


_DEVICE = frozenset({LaneKind.STREAM, LaneKind.IDLE})


def _apart(lane: Lane, before: Lane | None) -> bool:
    """Whether there is room above a lane: it is the first of its thread, or of the device."""
    if before is None:
        return False
    begins = lane.kind in {LaneKind.OPS, LaneKind.CALLS} and lane.track != before.track
    return begins or (lane.kind in _DEVICE) != (before.kind in _DEVICE)


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


def _legend(found: Excerpt, formatter: Formatter, *, instance: bool) -> str:
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
    if instance:
        items.append(f'<li><span><i class="instance"></i>{safe(terms["instance"])}</span></li>')
    return f'<ul class="legend lanes">{"".join(items)}</ul>'


def _begins_at(place: Place) -> Iterator[Message]:
    """Where the picture begins in the trace."""
    found = place.excerpt
    start = ("start", Kind.DURATION, place.since_first - place.start)
    yield Message(_SAY["excerpt_from"], (start, ("length", Kind.DURATION, found.length)))
    if place.start + place.length > found.length:
        yield Message(_SAY["excerpt_ends_outside"])


def _left_out(found: Excerpt) -> Iterator[Message]:
    for key, count in (
        ("merged", found.merged_events),
        ("hidden_events", found.hidden_events),
        ("hidden_threads", found.hidden_threads),
        ("hidden_streams", found.hidden_streams),
    ):
        if count:
            yield Message(_SAY[f"excerpt_{key}"], (("count", Kind.COUNT, count),))
