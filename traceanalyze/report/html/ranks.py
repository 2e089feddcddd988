"""The mean step of every rank as a bar of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.model.table import Kind
from traceanalyze.report.html.curve import ticks
from traceanalyze.report.html.frame import element, safe
from traceanalyze.report.html.tables import rows_of
from traceanalyze.report.html.timeline import fitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.model.table import Table
    from traceanalyze.report.format import Formatter

MAX_RANKS = 64
_WIDE, _LEFT, _RIGHT, _BOTTOM = 960, 60, 80, 22
_ROOMY = 16
"""Ranks up to which bars are thick."""
_TICKS = 8
_SHARE = "_share"


class _Bar(NamedTuple):
    label: str
    time: int
    parts: tuple[tuple[str, float], ...]
    """Term and share of the step."""


def rank_chart(table: Table, formatter: Formatter) -> str:
    """A bar for each rank of the table `ranks`; nothing where there is one rank, or no part of a step is known."""
    bars = _bars(table)
    drawn = _slowest(bars)
    longest = max((bar.time for bar in bars), default=0)
    parts = list(dict.fromkeys(part for bar in drawn for part, share in bar.parts if share > 0))
    if len(bars) < 2 or not longest or not parts:
        return ""
    words = formatter.texts.messages
    high = 20 if len(drawn) <= _ROOMY else 13
    bottom = high * len(drawn)
    body = list(_axis(longest, bottom))
    for index, bar in enumerate(drawn):
        body += _bar(bar, (index * high, high - 3), longest, formatter)
    body.append(f'<text x="0" y="{bottom + 15}">{safe(formatter.texts.heading(table["rank"]))}</text>')
    picture = element("svg", "".join(body), viewBox=f"0 0 {_WIDE} {bottom + _BOTTOM}", role="img", class_="steps")
    legend = "".join(
        f'<li><i style="background:{_colour(part)}"></i>{safe(_term(part, formatter))}</li>' for part in parts
    )
    cut = words["rank_chart_cut"].format(kept=f"{len(drawn):,}", count=f"{len(bars):,}")
    note = element("p", safe(cut), class_="aside") if len(bars) > len(drawn) else ""
    caption = element("figcaption", safe(words["rank_chart"]))
    scroll = element("div", picture, class_="scroll")
    return f'<figure class="ranks">{caption}{scroll}<ul class="legend">{legend}</ul>{note}</figure>'


def _bars(table: Table) -> list[_Bar]:
    keys = [column.key for column in table.columns]
    parts = [(key.removesuffix(_SHARE), at) for at, key in enumerate(keys) if key.endswith(_SHARE)]
    rank, time = keys.index("rank"), keys.index("step_ns")
    found = []
    for row in rows_of(table):
        length, shares = row[time], [(part, row[at]) for part, at in parts]
        if isinstance(length, int):
            known = tuple((part, share) for part, share in shares if isinstance(share, float))
            found.append(_Bar(str(row[rank]), length, known))
    return found


def _slowest(bars: Sequence[_Bar]) -> list[_Bar]:
    """The slowest ranks in their own order."""
    order = sorted(range(len(bars)), key=lambda at: -bars[at].time)[:MAX_RANKS]
    return [bars[at] for at in sorted(order)]


def _x(time: float, longest: int) -> float:
    return _LEFT + (_WIDE - _LEFT - _RIGHT) * time / longest


def _axis(longest: int, bottom: int) -> Iterator[str]:
    for at, label in ticks(longest, _TICKS):
        x = _x(at, longest)
        yield f'<path class="grid" d="M{x:.1f},0V{bottom}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{safe(label)}</text>'


def _bar(bar: _Bar, place: tuple[int, int], longest: int, formatter: Formatter) -> Iterator[str]:
    """One rank; `place` is the top of its bar and how high it is."""
    (top, high), before = place, 0.0
    middle = top + high / 2 + 4
    yield f'<text x="0" y="{middle}">{safe(fitted(bar.label, _LEFT - 6))}</text>'
    lines = [f"{bar.label}: {formatter.value(Kind.DURATION, bar.time)}"]
    for part, share in bar.parts:
        left, right = _x(before, longest), _x(before + share * bar.time, longest)
        before += share * bar.time
        if share > 0:
            box = f'x="{left:.2f}" y="{top}" width="{right - left:.2f}" height="{high}"'
            yield f'<rect {box} style="fill:{_colour(part)}"/>'
            lines.append(f"{_term(part, formatter)}: {formatter.value(Kind.SHARE, share)}")
    end = _x(bar.time, longest)
    yield f'<text x="{end + 5:.1f}" y="{middle}">{safe(formatter.value(Kind.DURATION, bar.time))}</text>'
    title = "\n".join(safe(line) for line in lines)
    over = f'x="{_LEFT}" y="{top}" width="{end - _LEFT:.1f}" height="{high}"'
    yield f'<rect class="over" {over}><title>{title}</title></rect>'


def _colour(part: str) -> str:
    return f"var(--part-{part},var(--part-idle))"


def _term(part: str, formatter: Formatter) -> str:
    return formatter.texts.terms.get(part, part)
