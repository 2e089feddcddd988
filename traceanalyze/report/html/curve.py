"""Curves over the first column of a table: a picture that needs no script, and the numbers behind it for the script.

The picture is drawn in units of its own and stretched to the room there is; zooming only chooses which part is seen.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from traceanalyze.model import units
from traceanalyze.model.table import SIZES, TIMES, Kind, Table
from traceanalyze.report.format import Formatter
from traceanalyze.report.html.frame import data, element, safe

WIDE, HIGH = 100_000, 1_000
_TICKS = 5
_LABEL = 0.06
"""Part of the height that a label takes."""


class Band(NamedTuple):
    """One of the areas on top of each other."""

    label: str
    amounts: tuple[int, ...]


def curve_html(table: Table, formatter: Formatter) -> str:
    """The picture of a table with `plot` or `stack`; nothing without two points."""
    if len(table) < 2:
        return ""
    bands = _bands(table, formatter)
    at = table.numbers(table.columns[0].key)
    outer, inner = (table.numbers(key) for key in table.plot[:2]) if table.plot else ([], [])
    levels = list(accumulate((band.amounts for band in bands), _added))
    top = max([1, *outer, *inner, *(levels[-1] if levels else ())])
    paths = []
    if table.plot:
        paths += [_area(at, outer, top, css="outer")] if table.plot[0] != table.plot[1] else []
        paths += [_area(at, inner, top, css="inner")] if not bands else []
    # The highest first, so that each covers what lies below it.
    paths += [
        _area(at, levels[index], top, css=f"band band{index % 8}", number=index)
        for index in reversed(range(len(bands)))
    ]
    words = formatter.texts.messages
    kind = table.columns[0].kind
    amount = table[table.plot[0]] if table.plot else next(each for each in table.columns if each.kind in SIZES)
    ticks = [at[0] + (at[-1] - at[0]) * place // (_TICKS - 1) for place in range(_TICKS)]
    below = "".join(element("span", safe(formatter.value(kind, tick))) for tick in ticks)
    lines, beside = _scale(top, amount.kind, formatter)
    picture = element(
        "svg",
        lines + "".join(paths),
        viewBox=f"0 0 {WIDE} {HIGH}",
        preserveAspectRatio="none",
        role="img",
        aria_label=formatter.title(table),
    )
    heading = element("div", safe(formatter.texts.heading(table, table.columns[0])), class_="x-name")
    drawn = f'<div class="y">{beside}</div><div class="room">{picture}</div><div class="x">{below}</div>{heading}'
    numbers = data(_behind(table, bands, at, formatter))
    help_ = element("p", safe(words["curve_help"]), class_="aside script")
    return f'<figure class="curve" data-top="{top}">{drawn}{numbers}</figure>{_key(table, bands, formatter)}{help_}'


def _added(low: Sequence[int], more: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(low, more, strict=True))


def _bands(table: Table, formatter: Formatter) -> list[Band]:
    """Bands that are not empty throughout, named by their columns."""
    names = [formatter.texts.heading(table, table[key]) for key in table.stack]
    found = [Band(name, tuple(table.numbers(key))) for name, key in zip(names, table.stack, strict=True)]
    return [band for band in found if any(band.amounts)]


def _area(at: Sequence[int], values: Sequence[int], top: int, *, css: str, number: int | None = None) -> str:
    """From the ground up to the values; each holds until the next."""
    first, span = at[0], max(at[-1] - at[0], 1)
    x, y, path = 0, HIGH, [f"M0,{HIGH}"]
    for place, value in zip(at, values, strict=True):
        right, high = (place - first) * WIDE // span, HIGH - round(value * HIGH / top)
        if high != y:
            path.append(f"h{right - x}v{high - y}" if right != x else f"v{high - y}")
            x, y = right, high
    path.append(f"H{WIDE}V{HIGH}z")
    return element("path", "", class_=css, d="".join(path), data_band=None if number is None else str(number))


def _scale(top: int, kind: Kind, formatter: Formatter) -> tuple[str, str]:
    """Lines at round amounts, and their labels."""
    step = 1
    while top / step >= 6:
        step *= 2
    lines, labels = [], []
    amounts = list(range(0, top + 1, step))
    # The highest value, where it has room above the last line.
    amounts += [top] if top - amounts[-1] > top * _LABEL else []
    for amount in amounts:
        share = amount / top
        lines.append(f'<path class="grid" d="M0,{HIGH * (1 - share):.0f}H{WIDE}"/>')
        labels.append(f'<span style="bottom:{share:.2%}">{safe(formatter.value(kind, amount))}</span>')
    return "".join(lines), "".join(labels)


def _key(table: Table, bands: Sequence[Band], formatter: Formatter) -> str:
    """What the colours mean."""
    if not bands:
        keys = dict.fromkeys(table.plot[:2])
        names = [formatter.texts.heading(table, table[key]) for key in keys]
        css = ["outer", "inner"] if len(names) > 1 else ["inner"]
        items = [f'<li><i class="{mark}"></i>{safe(name)}</li>' for mark, name in zip(css, names, strict=True)]
        return f'<ul class="legend">{"".join(items)}</ul>'
    amount = next(column.kind for column in table.columns if column.kind in SIZES)
    items = []
    for number, band in reversed(list(enumerate(bands))):
        most = safe(f"≤ {formatter.value(amount, max(band.amounts))}")
        name = f'<i class="band{number % 8}"></i>{safe(band.label)} <small>{most}</small>'
        items.append(f'<li data-band="{number}">{name}</li>')
    return f'<ul class="legend bands">{"".join(items)}</ul>'


def _behind(table: Table, bands: Sequence[Band], at: Sequence[int], formatter: Formatter) -> dict[str, object]:
    """Numbers and words for the script."""
    texts = formatter.texts
    shown = []
    for column in table.columns:
        values = table.column(column.key)
        if not column.machine and column.key not in table.stack and any(value is not None for value in values):
            numbers = [value if isinstance(value, int | float) else None for value in values]
            shown.append({"name": texts.heading(table, column), "kind": _of(column.kind), "values": numbers})
    return {
        "resolution": formatter.resolution_ns,
        "at": list(at),
        "kind": _of(table.columns[0].kind),
        "shown": shown,
        "bands": [{"name": band.label, "values": band.amounts} for band in bands],
    }


def _of(kind: Kind) -> str:
    return "time" if kind in TIMES else "memory" if kind in {Kind.MEMORY, Kind.MEMORY_CHANGE} else "count"


def ticks(length: int, most: int, start: int = 0) -> list[tuple[int, str]]:
    """Multiples of a round time from `start` over `length` ns, at most `most` beside the first, each with its label."""
    round_times = (digit * 10**power for power in range(18) for digit in (1, 2, 5))
    step = next(step for step in round_times if length / step <= most)
    # Seconds from two of them on: labels stay short.
    unit = units.column_unit(5 * (start + length))._replace(digits=3)
    return [(at, _label(at, unit)) for at in range(-(-start // step) * step, start + length + 1, step)]


def _label(ns: int, unit: units.Unit) -> str:
    if ns == 0:
        return "0"
    number = units.in_unit(ns, unit)
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit.name}"
