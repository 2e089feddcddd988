"""Boxes of a picture of the trace: each with its name where there is room, and with what it is for the pointer."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.analyses.excerpt_lane import LaneKind
from traceanalyze.frozen import frozen
from traceanalyze.report.html.text import safe
from traceanalyze.report.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.analyses.excerpt_boxes import Box
    from traceanalyze.analyses.excerpt_lane import Lane
    from traceanalyze.report.format import Formatter

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
_PLAIN = re.compile(r"^(?:void\s+)?(?P<path>(?:\(anonymous namespace\)::|[\w~]+::)*)(?P<name>\w+)\s*[<(]")


@frozen
class Scale:
    """From time to place."""

    length: int

    def x(self, at: int) -> float:
        """Place of a time since the beginning, ns."""
        return LEFT + (WIDE - LEFT - RIGHT) * at / max(self.length, 1)


class _Drawn(NamedTuple):
    """One box: where it is, and how it is written with and without what the pointer is told."""

    lane: int
    kind: str
    wide: float
    whole: str
    bare: str


def drawn(lanes: Sequence[Lane], tops: Sequence[int], scale: Scale, formatter: Formatter) -> Iterator[str]:
    """All boxes, lane by lane; the widest can be pointed at, the others too as long as there is room in the page."""
    every = [_box(index, lane, box, scale, formatter) for index, lane in enumerate(lanes) for box in lane.boxes]
    told, used = set[int](), sum(len(one.bare) for one in every)
    for at in sorted(range(len(every)), key=lambda at: -every[at].wide):
        used += len(every[at].whole.encode()) - len(every[at].bare)
        if used > _BUDGET:
            break
        told.add(at)
    for index, top in enumerate(tops):
        mine = [(at, one) for at, one in enumerate(every) if one.lane == index]
        kinds = dict.fromkeys(one.kind for _, one in mine)
        groups = []
        for kind in kinds:
            shapes = "".join(one.whole if at in told else one.bare for at, one in mine if one.kind == kind)
            groups.append(f'<g class="k {kind}">{shapes}</g>')
        yield f'<g class="{lanes[index].kind}" transform="translate(0 {top})">{"".join(groups)}</g>'


def _box(index: int, lane: Lane, box: Box, scale: Scale, formatter: Formatter) -> _Drawn:
    left = scale.x(box.start)
    wide = max(scale.x(box.end) - left, _LEAST)
    title = f"<title>{safe(_told(lane, box, formatter))}</title>"
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


def _told(lane: Lane, box: Box, formatter: Formatter) -> str:
    """What the pointer is told."""
    words = formatter.texts.messages
    kind = formatter.texts.terms.get(box.kind, box.kind)
    name = middle_cut(box.name or kind, _LONGEST_NAME)
    if box.count > 1:
        busy = formatter.value(Kind.DURATION, box.busy)
        template = words["excerpt_several" if box.name else "excerpt_several_unnamed"]
        name = template.format(count=f"{box.count:,}", busy=busy, name=name)
    time = formatter.value(Kind.DURATION, box.end - box.start)
    begins = formatter.value(Kind.DURATION, box.start)
    what = "" if lane.kind == LaneKind.STEPS or not box.name else f" · {kind}"
    return f"{name} · {time} (+{begins}){what}"


def label(lane: Lane, box: Box, room: float, formatter: Formatter) -> str:
    """The name as far as there is room; of several events their number, of idle time nothing else."""
    name = formatter.texts.terms[box.kind] if lane.kind == LaneKind.IDLE else short_name(box.name)
    if box.count == 1:
        return fitted(name, room)
    number = f"{box.count:,} ×"
    if fitted(number, room) != number:
        return ""
    whole = f"{number} {name}"
    both = fitted(whole, room)
    says_more = both == whole or len(both) > len(number) + 1 + _FEW
    return both if says_more and lane.kind != LaneKind.IDLE else number


def short_name(name: str) -> str:
    """What tells a name from others: the function of a kernel's signature, the node of an autograd evaluation."""
    name = name.removeprefix(_EVALUATES)
    found = _PLAIN.match(name)
    return found["name"] if found and (found["path"] or name.startswith("void")) else name


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


def middle_cut(name: str, most: int) -> str:
    """A long name without its middle."""
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"
