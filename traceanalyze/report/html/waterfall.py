"""From the base's step to the candidate's: a bar for what each part adds or takes away, largest first.

Times are nanoseconds times both numbers of steps, so that they are whole numbers and sum exactly; ends of bars are
rounded where they lie, so that each bar begins where the one before it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from traceanalyze.frozen import frozen
from traceanalyze.report.html.axis import ticks
from traceanalyze.report.html.tables import rows_of
from traceanalyze.report.html.text import element, safe, sentence
from traceanalyze.report.model import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.report.format import Formatter
    from traceanalyze.report.model import Table

_WIDE, _HIGH = 1_000_000, 100
_BAR = (22, 78)
"""Top and bottom of a bar within its line."""
_FROM_ZERO = 0.25
"""Changes this large beside the steps can be seen on an axis that starts at zero."""
_ROOM = 0.08
"""Share of the changes that is left free at either end of an axis that does not."""
_LINES = 5
_WANTED = ("part", "base_sum_ns", "candidate_sum_ns", "base_time_ns", "candidate_time_ns")


@frozen
class Move:
    """What one part changes."""

    part: str
    """Key of a term; empty for what one side did not measure."""
    change: int
    """Candidate minus base per step, ns times both numbers of steps."""
    base: int | None = None
    candidate: int | None = None
    """Time per step, ns."""


@frozen
class Axis:
    """Times at the ends of the picture."""

    start: int
    end: int
    per_ns: int

    def at(self, time: int) -> int:
        """How far from the left end, in units of the picture."""
        return _WIDE * (time - self.start) // (self.end - self.start)


def waterfall(parts: Table, sides: Table, formatter: Formatter) -> str:
    """The picture; nothing where no part differs.

    Args:
        parts: Table `step_difference`: the parts of the step, its total the step itself.
        sides: Table `compare_sides`: how many steps each side has.
        formatter: How values are written.
    """
    base_steps, candidate_steps = (max(cast("int", count), 1) for count in sides.column("steps_compared"))
    moves = moves_of(parts, base_steps, candidate_steps)
    if not moves or parts.total is None:
        return ""
    keys = [column.key for column in parts.columns]
    total = dict(zip(keys, parts.total, strict=True))
    places = [cast("int", total["base_sum_ns"]) * candidate_steps]
    for move in moves:
        places.append(places[-1] + move.change)
    axis = _axis(places, base_steps * candidate_steps)
    words = formatter.texts.messages
    ends = (("base", places[0], total["base_time_ns"]), ("candidate", places[-1], total["candidate_time_ns"]))
    first, last = (
        _line(words[side], _whole(axis, place, side), formatter.value(Kind.DURATION, time), "whole")
        for side, place, time in ends
    )
    body = [_move(move, place, axis, formatter) for move, place in zip(moves, places, strict=False)]
    told = [Message("waterfall")]
    if axis.start:
        told.append(Message("waterfall_cut", (("start", Kind.DURATION, axis.start // axis.per_ns),)))
    caption = element("figcaption", sentence(formatter.sentences(told)))
    table = element("table", f"<tbody>{first}{''.join(body)}{last}{_scale(axis)}</tbody>")
    return f'<figure class="waterfall">{caption}{table}</figure>'


def moves_of(parts: Table, base_steps: int, candidate_steps: int) -> list[Move]:
    """Parts that differ, largest change first; together they are the difference of the steps."""
    keys = [column.key for column in parts.columns]
    wanted = [keys.index(key) for key in _WANTED]
    found = []
    for row in (*rows_of(parts), *((parts.total,) if parts.total else ())):
        part, base, candidate, *times = (row[at] for at in wanted)
        if isinstance(base, int) and isinstance(candidate, int):
            change = candidate * base_steps - base * candidate_steps
            found.append(Move(str(part), change, *cast("list[int]", times)))
    whole = found.pop().change if parts.total and found else 0
    rest = whole - sum(move.change for move in found)
    moves = [*found, Move("", rest)]
    return sorted((move for move in moves if move.change), key=lambda move: (not move.part, -abs(move.change)))


def _axis(places: Sequence[int], per_ns: int) -> Axis:
    low, high = min(places), max(places)
    if high - low >= _FROM_ZERO * high:
        return Axis(0, high, per_ns)
    room = max(round((high - low) * _ROOM), 1)
    return Axis(max(low - 2 * room, 0), high + room, per_ns)


def _move(move: Move, place: int, axis: Axis, formatter: Formatter) -> str:
    """The bar, between the levels before and after it."""
    css = "worse" if move.change > 0 else "better"
    before, after = axis.at(place), axis.at(place + move.change)
    top, bottom = _BAR
    left, wide = min(before, after), abs(after - before)
    bar = (
        f'<path class="level" d="M{before},0V{top}M{after},{bottom}V{_HIGH}"/>'
        f'<rect class="{css}" x="{left}" y="{top}" width="{wide}" height="{bottom - top}"/>'
    )
    words = formatter.texts.messages
    name = formatter.value(Kind.TERM, move.part) if move.part else words["not_measured"].lower()
    change = formatter.value(Kind.CHANGE, round(move.change / axis.per_ns))
    told = ""
    if move.base is not None and move.candidate is not None:
        base, candidate = (formatter.value(Kind.DURATION, time) for time in (move.base, move.candidate))
        told = f"{words['base']} {base}, {words['candidate']} {candidate}"
    return _line(name, _picture(bar, ": ".join(filter(None, (name, told)))), change, css)


def _whole(axis: Axis, place: int, side: str) -> str:
    """A step: a bar from the left, torn where it does not begin at zero."""
    end = axis.at(place)
    top, bottom = _BAR
    level = f"{end},{bottom}V{_HIGH}" if side == "base" else f"{end},0V{top}"
    inside = (
        f'<path class="level" d="M{level}"/><rect class="step" x="0" y="{top}" width="{end}" height="{bottom - top}"/>'
    )
    if axis.start:
        tears = "".join(f"M{left},{bottom + 10}L{left + 8_000},{top - 10}" for left in (12_000, 22_000))
        inside += f'<path class="torn" d="{tears}"/>'
    return _picture(inside, "")


def _picture(inside: str, title: str) -> str:
    told = f"<title>{safe(title)}</title>" if title else ""
    return element("svg", told + inside, viewBox=f"0 0 {_WIDE} {_HIGH}", preserveAspectRatio="none", aria_hidden="true")


def _line(name: str, picture: str, value: str, css: str) -> str:
    label, shown = element("th", safe(name), scope="row"), element("td", safe(value), class_=f"n {css}")
    return f'<tr class="{css}">{label}<td class="picture">{picture}</td>{shown}</tr>'


def _scale(axis: Axis) -> str:
    """Round times below."""
    first, last = -(-axis.start // axis.per_ns), axis.end // axis.per_ns
    labels = [
        f'<span style="left:{axis.at(time * axis.per_ns) / _WIDE:.2%}">{safe(label)}</span>'
        for time, label in ticks(last - first, _LINES, first)
    ]
    return f'<tr class="scale" aria-hidden="true"><td></td><td class="picture">{"".join(labels)}</td><td></td></tr>'
