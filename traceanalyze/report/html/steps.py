"""The split of every step as stacked columns."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyze.model.table import Kind, Row, Table
from traceanalyze.report.format import Formatter
from traceanalyze.report.html.curve import ticks
from traceanalyze.report.html.frame import element, safe
from traceanalyze.report.html.tables import rows_of

MAX_STEPS = 500
_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 960, 250, 70, 10, 10, 34
_LABELS = 20
_LINES = 4


def step_chart(split: Table, steps: Table, formatter: Formatter) -> str:
    """A column for each step of the parts named in the split; nothing where no step has any, or there is one step."""
    rows = rows_of(steps)[:MAX_STEPS]
    keys = [column.key for column in steps.columns]
    named = [str(part) for part in split.column("part")] if rows_of(split) else []
    parts = [
        (part, keys.index(f"{part}_ns"))
        for part in named
        if f"{part}_ns" in keys and any(_ns(row, keys.index(f"{part}_ns")) for row in rows)
    ]
    highest = max((sum(_ns(row, at) for _, at in parts) for row in rows), default=0)
    if len(rows) < 2 or not highest:
        return ""
    body = [*_scale(highest), *_columns(rows, parts, highest), *_names(rows, steps, formatter)]
    body += [_over(row, index, len(rows), parts, steps, formatter) for index, row in enumerate(rows)]
    words = formatter.texts.messages
    picture = element("svg", "".join(body), viewBox=f"0 0 {_WIDE} {_HIGH}", role="img", class_="steps")
    legend = "".join(
        f'<li><i style="background:var(--part-{part},var(--part-idle))"></i>{safe(_term(part, formatter))}</li>'
        for part, _ in parts
    )
    total = len(rows_of(steps))
    left_out = words["steps_left_out"].format(kept=f"{len(rows):,}", count=f"{total:,}") if total > len(rows) else ""
    caption = element("figcaption", safe(words["step_chart"]))
    note = element("p", safe(left_out), class_="aside") if left_out else ""
    scroll = element("div", picture, class_="scroll")
    return f'<figure>{caption}{scroll}<ul class="legend">{legend}</ul>{note}</figure>'


def _ns(row: Row, at: int) -> int:
    value = row[at]
    return value if isinstance(value, int) else 0


def _y(ns: float, highest: int) -> float:
    return _TOP + (_HIGH - _TOP - _BOTTOM) * (1 - ns / highest)


def _x(index: int, count: int) -> float:
    return _LEFT + (_WIDE - _LEFT - _RIGHT) * index / count


def _scale(highest: int) -> list[str]:
    """Lines at round times."""
    found = []
    for time, label in ticks(highest, _LINES):
        y = _y(time, highest)
        found.append(f'<path class="grid" d="M{_LEFT},{y:.1f}H{_WIDE - _RIGHT}"/>')
        found.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    return found


def _columns(rows: Sequence[Row], parts: Sequence[tuple[str, int]], highest: int) -> list[str]:
    """One path a part."""
    count = len(rows)
    wide = (_WIDE - _LEFT - _RIGHT) / count * (0.75 if count < 100 else 0.95)
    base = [0] * count
    found = []
    for part, at in parts:
        boxes = []
        for index, row in enumerate(rows):
            time = _ns(row, at)
            if time:
                x, low, high = _x(index, count), _y(base[index], highest), _y(base[index] + time, highest)
                boxes.append(f"M{x:.2f},{low:.2f}h{wide:.2f}V{high:.2f}h{-wide:.2f}z")
                base[index] += time
        found.append(f'<path style="fill:var(--part-{part},var(--part-idle))" d="{"".join(boxes)}"/>')
    return found


def _names(rows: Sequence[Row], steps: Table, formatter: Formatter) -> list[str]:
    """Step numbers below, as many as there is room for."""
    count = len(rows)
    every = -(-count // _LABELS)
    half = (_WIDE - _LEFT - _RIGHT) / count * 0.375
    y = _HIGH - _BOTTOM + 14
    found = [
        f'<text x="{_x(index, count) + half:.1f}" y="{y}" text-anchor="middle">{_short(row[0])}</text>'
        for index, row in enumerate(rows)
        if index % every == 0
    ]
    middle, title = (_LEFT + _WIDE) / 2, safe(formatter.texts.heading(steps.columns[0]))
    return [*found, f'<text x="{middle}" y="{_HIGH - 4}" text-anchor="middle">{title}</text>']


def _short(label: object) -> str:
    text = str(label)
    return safe(text if len(text) <= 8 else f"{text[:7]}…")


def _over(
    row: Row, index: int, count: int, parts: Sequence[tuple[str, int]], steps: Table, formatter: Formatter
) -> str:
    """What the pointer is told over a step."""
    lines = [str(row[0])]
    lines += [f"{_term(part, formatter)}: {formatter.value(Kind.DURATION, row[at])}" for part, at in parts]
    if "complete" in steps.keys and row[steps.keys.index("complete")] is False:
        lines[0] += f" ({formatter.texts.heading(steps['complete'])}: {formatter.value(Kind.FLAG, value=False)})"
    title = "\n".join(safe(line) for line in lines)
    x, wide = _x(index, count), (_WIDE - _LEFT - _RIGHT) / count
    return (
        f'<rect class="over" x="{x:.2f}" y="{_TOP}" width="{wide:.2f}" height="{_HIGH - _TOP - _BOTTOM}">'
        f"<title>{title}</title></rect>"
    )


def _term(part: str, formatter: Formatter) -> str:
    return formatter.texts.terms.get(part, part)
