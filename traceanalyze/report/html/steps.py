"""The split of every step as stacked columns."""

from collections.abc import Iterable, Sequence

from traceanalyze.model.table import Kind, Row, Table
from traceanalyze.report.format import Formatter
from traceanalyze.report.html.curve import ticks
from traceanalyze.report.html.frame import aside, element, safe

MAX_STEPS = 500
_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 960, 250, 70, 10, 10, 34
_LABELS = 20
_LINES = 4


def step_chart(split: Table, steps: Table, formatter: Formatter) -> str:
    """A column for each step of the parts named in the split; nothing where no step has any, or there is one step."""
    rows = steps.known_rows[:MAX_STEPS]
    places = {key.removesuffix("_ns"): at for at, key in enumerate(steps.keys) if key.endswith("_ns")}
    named = [(str(part), places[str(part)]) for part in split.column("part") if part in places]
    parts = [(part, at) for part, at in named if any(_ns(row, at) for row in rows)]
    highest = max((sum(_ns(row, at) for _, at in parts) for row in rows), default=0)
    if len(rows) < 2 or not highest:
        return ""
    body = [*_scale(highest), *_columns(rows, parts, highest), *_names(rows, steps, formatter)]
    body += [_over(row, index, len(rows), parts, steps, formatter) for index, row in enumerate(rows)]
    words = formatter.texts.messages
    picture = element(
        "svg", "".join(body), viewBox=f"0 0 {_WIDE} {_HIGH}", role="img", aria_label=words["step_chart"], class_="steps"
    )
    note = ""
    if len(steps) > len(rows):
        note = aside(words["steps_left_out"].format(kept=f"{len(rows):,}", count=f"{len(steps):,}"))
    return figure(words["step_chart"], picture, legend_of((part for part, _ in parts), formatter) + note)


def figure(caption: str, picture: str, below: str, css: str | None = None) -> str:
    """A picture under its caption; it scrolls where there is no room for it."""
    above, scroll = element("figcaption", safe(caption)), element("div", picture, class_="scroll", tabindex="0")
    return element("figure", above + scroll + below, class_=css)


def legend_of(parts: Iterable[str], formatter: Formatter) -> str:
    """Colours of parts of a step."""
    items = (f'<li><i style="background:{colour_of(part)}"></i>{safe(term_of(part, formatter))}</li>' for part in parts)
    return f'<ul class="legend">{"".join(items)}</ul>'


def colour_of(part: str) -> str:
    """Of a part of a step, as CSS has it."""
    return f"var(--part-{part},var(--part-idle))"


def term_of(part: str, formatter: Formatter) -> str:
    """Its name."""
    return formatter.texts.terms.get(part, part)


def over(bounds: str, lines: Iterable[str], css: str = "over") -> str:
    """A box, by its attributes, of which the script shows these lines under the pointer."""
    return f'<rect class="{css}" {bounds} data-tip="{"&#10;".join(map(safe, lines))}"/>'


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
        found.append(f'<path style="fill:{colour_of(part)}" d="{"".join(boxes)}"/>')
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
    middle, title = (_LEFT + _WIDE) / 2, safe(formatter.texts.heading(steps, steps.columns[0]))
    return [*found, f'<text x="{middle}" y="{_HIGH - 4}" text-anchor="middle">{title}</text>']


def _short(label: object) -> str:
    text = str(label)
    return safe(text if len(text) <= 8 else f"{text[:7]}…")


def _over(
    row: Row, index: int, count: int, parts: Sequence[tuple[str, int]], steps: Table, formatter: Formatter
) -> str:
    """What the pointer is told over a step."""
    lines = [str(row[0])]
    lines += [f"{term_of(part, formatter)}: {formatter.value(Kind.DURATION, row[at])}" for part, at in parts]
    if "counted" in steps.keys and row[steps.keys.index("counted")] is False:
        lines[0] += f" ({formatter.texts.heading(steps, steps['complete'])}: {formatter.value(Kind.FLAG, value=False)})"
    x, wide = _x(index, count), (_WIDE - _LEFT - _RIGHT) / count
    return over(f'x="{x:.2f}" y="{_TOP}" width="{wide:.2f}" height="{_HIGH - _TOP - _BOTTOM}"', lines)
