"""Pictures of steps and ranks: their parts, who was slower when, and a pipeline over time."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from traceanalyze.model.table import Kind, Row, Table, sentences
from traceanalyze.report.format import Formatter
from traceanalyze.report.html.curve import ticks
from traceanalyze.report.html.frame import aside, element, safe

_SAY = sentences(
    heat_map="Each rank's own time in every step over the mean of all ranks in that step",
    heat_cell="rank {rank}, step {step}: {ratio} of the mean",
    heat_cell_unknown="rank {rank}, step {step}: n/m",
    heat_longest="longest part: {part}, {time}",
    heat_faster="faster",
    heat_slower="slower than the mean",
    heat_cut="Drawn are {steps} of {all_steps} steps and {ranks} of {all_ranks} ranks, those that differ most.",
    rank_chart="Mean step of each rank by part",
    rank_chart_cut="Drawn are the {kept} slowest of {count} ranks.",
    pipeline_chart="One step of the pipeline, rank by rank",
)

MAX_RANKS = 64
_WIDE, _LEFT, _RIGHT, _BOTTOM = 960, 60, 80, 22
_ROOMY = 16
"""Ranks up to which bars are thick."""
_TICKS = 8
_SHARE = "_share"
MAX_STEPS = 500
_SIDE, _TALL, _START, _END, _ABOVE, _BELOW = 960, 250, 70, 10, 10, 34
_STEP_LABELS = 20
_LINES = 4


_LETTER = 6.9
"""Width of most letters in wide fonts."""
_WIDER, _NARROWER = frozenset("mwMW@%"), frozenset("ijlftI.,:;|!()[]")
_FEW = 3
"""Letters of a name below which it says nothing."""


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
    body.append(f'<text x="0" y="{bottom + 15}">{safe(formatter.texts.heading(table, table["rank"]))}</text>')
    picture = element(
        "svg",
        "".join(body),
        viewBox=f"0 0 {_WIDE} {bottom + _BOTTOM}",
        role="img",
        aria_label=words[_SAY["rank_chart"]],
        class_="steps",
    )
    note = ""
    if len(bars) > len(drawn):
        note = aside(words[_SAY["rank_chart_cut"]].format(kept=f"{len(drawn):,}", count=f"{len(bars):,}"))
    return figure(words[_SAY["rank_chart"]], picture, legend_of(parts, formatter) + note, "ranks")


def _bars(table: Table) -> list[_Bar]:
    keys = table.keys
    parts = [(key.removesuffix(_SHARE), at) for at, key in enumerate(keys) if key.endswith(_SHARE)]
    rank, time = keys.index("rank"), keys.index("step_ns")
    found = []
    for row in table.known_rows:
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
            yield f'<rect {box} style="fill:{colour_of(part)}"/>'
            lines.append(f"{term_of(part, formatter)}: {formatter.value(Kind.SHARE, share)}")
    end = _x(bar.time, longest)
    yield f'<text x="{end + 5:.1f}" y="{middle}">{safe(formatter.value(Kind.DURATION, bar.time))}</text>'
    yield over(f'x="{_LEFT}" y="{top}" width="{end - _LEFT:.1f}" height="{high}"', lines)


MAX_STEPS, MAX_CELLS = 200, 1_600
_MAP_BOTTOM = 34
_CELL, _NUMBERED = 46, 30
"""Width of the widest cell, and of the narrowest with its number in it."""
_LABELS = 20
BOUNDS = (0.02, 0.05, 0.10, 0.20, 0.50)
"""Distances from the mean at which the colour changes."""


class _Map(NamedTuple):
    ranks: list[str]
    steps: list[str]
    cells: dict[tuple[str, str], Row]
    """By rank and step."""


def heat_map(table: Table, formatter: Formatter) -> str:
    """The table `rank_steps` as a picture; nothing where there is one rank or one step."""
    keys = {key: at for at, key in enumerate(table.keys)}
    every = _whole(table, keys)
    if len(every.ranks) < 2 or len(every.steps) < 2:
        return ""
    shown = _cut(every, keys["of_mean"])
    wide = min((_WIDE - _LEFT) / len(shown.steps), _CELL)
    high = 22 if len(shown.ranks) <= 16 else 11
    body = [
        _cell(shown.cells.get((rank, step)), (rank, step), (_LEFT + x * wide, y * high, wide, high), keys, formatter)
        for y, rank in enumerate(shown.ranks)
        for x, step in enumerate(shown.steps)
    ]
    body += _labels(shown, wide, high, table, formatter)
    height = len(shown.ranks) * high + _MAP_BOTTOM
    words = formatter.texts.messages
    picture = element(
        "svg", "".join(body), viewBox=f"0 0 {_WIDE} {height}", role="img", aria_label=words[_SAY["heat_map"]]
    )
    note = ""
    if len(shown.ranks) * len(shown.steps) < len(every.ranks) * len(every.steps):
        counts = {"steps": shown.steps, "all_steps": every.steps, "ranks": shown.ranks, "all_ranks": every.ranks}
        text = words[_SAY["heat_cut"]].format(**{name: f"{len(names):,}" for name, names in counts.items()})
        note = aside(text)
    return figure(words[_SAY["heat_map"]], picture, _legend(formatter) + note, "heat")


def _whole(table: Table, keys: dict[str, int]) -> _Map:
    rows = table.known_rows
    cells = {(str(row[keys["rank"]]), str(row[keys["step"]])): row for row in rows}
    return _Map(list(dict.fromkeys(rank for rank, _ in cells)), list(dict.fromkeys(step for _, step in cells)), cells)


def _cut(every: _Map, of_mean: int) -> _Map:
    """The ranks, then the steps that differ most from the mean, in their own order."""
    distance = {place: abs(_ratio(row[of_mean]) - 1) for place, row in every.cells.items()}
    by_rank, by_step = dict.fromkeys(every.ranks, 0.0), dict.fromkeys(every.steps, 0.0)
    for (rank, _), amount in distance.items():
        by_rank[rank] = max(by_rank[rank], amount)
    ranks = _most(every.ranks, by_rank, MAX_RANKS)
    for (rank, step), amount in distance.items():
        if rank in ranks:
            by_step[step] = max(by_step[step], amount)
    steps = _most(every.steps, by_step, min(MAX_STEPS, MAX_CELLS // len(ranks)))
    return _Map(ranks, steps, every.cells)


def _most(names: Sequence[str], amount: dict[str, float], count: int) -> list[str]:
    kept = set(sorted(names, key=lambda name: -amount[name])[:count])
    return [name for name in names if name in kept]


def _ratio(value: object) -> float:
    """What is not measured does not differ."""
    return value if isinstance(value, float) else 1.0


def _cell(
    row: Row | None,
    place: tuple[str, str],
    box: tuple[float, float, float, float],
    keys: dict[str, int],
    formatter: Formatter,
) -> str:
    x, y, wide, high = box
    bounds = f'x="{x:.1f}" y="{y:.1f}" width="{max(wide - 1, wide * 0.9):.1f}" height="{high - 1}"'
    words = formatter.texts.messages
    rank, step = place
    ratio = None if row is None else row[keys["of_mean"]]
    if row is None or not isinstance(ratio, float):
        title = words[_SAY["heat_cell_unknown"]].format(rank=rank, step=step)
        return over(bounds, [title], "unknown")
    number = formatter.value(Kind.RATIO, ratio)
    lines = [words[_SAY["heat_cell"]].format(rank=rank, step=step, ratio=number)]
    part, time = row[keys["longest_part"]], row[keys["longest_ns"]]
    if isinstance(part, str) and isinstance(time, int):
        shown = formatter.value(Kind.DURATION, time)
        lines.append(words[_SAY["heat_longest"]].format(part=formatter.value(Kind.TERM, part), time=shown))
    text = ""
    if wide >= _NUMBERED and high > 14:
        text = f'<text class="in" x="{x + wide / 2:.1f}" y="{y + high - 7:.1f}" text-anchor="middle">{number}</text>'
    return over(bounds, lines, shade(ratio)) + text


def shade(ratio: float) -> str:
    """Class of a colour: `h0` at the mean, `slow1` to `slow5` above it, `fast1` to `fast5` below."""
    level = sum(abs(ratio - 1) >= bound for bound in BOUNDS)
    return "h0" if not level else f"slow{level}" if ratio > 1 else f"fast{level}"


def _labels(shown: _Map, wide: float, high: float, table: Table, formatter: Formatter) -> Iterator[str]:
    """Ranks beside and steps below the map, as many as there is room for."""
    rank_name, step_name = (safe(formatter.texts.heading(table, table[key])) for key in ("rank", "step"))
    bottom = len(shown.ranks) * high
    for y, rank in enumerate(shown.ranks):
        yield f'<text x="0" y="{y * high + high / 2 + 3.5:.1f}">{safe(fitted(rank, _LEFT - 6))}</text>'
    every = max(-(-len(shown.steps) // _LABELS), 1)
    for x, step in enumerate(shown.steps[::every]):
        at = _LEFT + (x * every + 0.5) * wide
        name = fitted(step, max(every * wide, 24))
        yield f'<text x="{at:.1f}" y="{bottom + 14:.1f}" text-anchor="middle">{safe(name)}</text>'
    yield f'<text x="0" y="{bottom + 14:.1f}">{rank_name}</text>'
    middle = _LEFT + len(shown.steps) * wide / 2
    yield f'<text x="{middle:.1f}" y="{bottom + 30:.1f}" text-anchor="middle">{step_name}</text>'


def _legend(formatter: Formatter) -> str:
    """From much faster to much slower."""
    words = formatter.texts.messages
    levels = range(len(BOUNDS), 0, -1)
    marks = "".join(f'<i class="fast{level}" title="{_beyond(level, "−")}"></i>' for level in levels)
    marks += '<i class="h0" title="1.00"></i>'
    marks += "".join(f'<i class="slow{level}" title="{_beyond(level, "+")}"></i>' for level in reversed(levels))
    ends = (
        f"{_beyond(len(BOUNDS), '−')} {words[_SAY['heat_faster']]}",
        f"{_beyond(len(BOUNDS), '+')} {words[_SAY['heat_slower']]}",
    )
    return f'<ul class="legend"><li>{safe(ends[0])} <span class="ramp">{marks}</span> {safe(ends[1])}</li></ul>'


def _beyond(level: int, sign: str) -> str:
    return f"{sign}{100 * BOUNDS[level - 1]:.0f} %"


_SEEN = 0.05
"""Units of a picture below which nothing is seen."""


def pipeline_chart(table: Table, formatter: Formatter) -> str:
    """The table `pipeline` as a lane for each rank; nothing where there are no rows."""
    pieces = [one for one in table.records() if isinstance(one.time_ns, int) and isinstance(one.start_ns, int)]
    lanes = list(dict.fromkeys(one.rank for one in pieces))
    first = min((one.start_ns for one in pieces), default=0)
    longest = max((one.start_ns + one.time_ns - first for one in pieces), default=0)
    if not longest:
        return ""
    high = 26 if len(lanes) <= _ROOMY else 13
    bottom = high * len(lanes)
    body = list(_axis(longest, bottom))
    for at, rank in enumerate(lanes):
        body.append(f'<text x="0" y="{at * high + high / 2 + 4}">{safe(fitted(str(rank), _LEFT - 6))}</text>')
    for one in pieces:
        top, left = lanes.index(one.rank) * high, _x(one.start_ns - first, longest)
        wide = _x(one.start_ns - first + one.time_ns, longest) - left
        if wide < _SEEN:
            continue
        box = f'x="{left:.2f}" y="{top}" width="{wide:.2f}" height="{high - 3}"'
        number = "" if one.number is None else str(one.number)
        body.append(f'<rect {box} style="fill:{colour_of(one.part)}"/>')
        if number and high > _LETTER * 2 and wide > sum(map(_width, number)) + 2:
            body.append(
                f'<text class="in" x="{left + wide / 2:.1f}" y="{top + 16}" text-anchor="middle">{number}</text>'
            )
        said = f"{term_of(one.part, formatter)} {number}".rstrip()
        lines = (
            f"{formatter.texts.heading(table, table[key])}: {formatter.value(Kind.DURATION, time)}"
            for key, time in (("start_ns", one.start_ns), ("time_ns", one.time_ns))
        )
        body.append(over(box, [f"{one.rank}: {said}", *lines]))
    body.append(f'<text x="0" y="{bottom + 15}">{safe(formatter.texts.heading(table, table["rank"]))}</text>')
    name = formatter.texts.messages[_SAY["pipeline_chart"]]
    view = f"0 0 {_WIDE} {bottom + _BOTTOM}"
    picture = element("svg", "".join(body), viewBox=view, role="img", aria_label=name, class_="steps")
    return figure(name, picture, legend_of(dict.fromkeys(one.part for one in pieces), formatter), "ranks")


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
        "svg",
        "".join(body),
        viewBox=f"0 0 {_SIDE} {_TALL}",
        role="img",
        aria_label=words["step_chart"],
        class_="steps",
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


def _at(ns: float, highest: int) -> float:
    return _ABOVE + (_TALL - _ABOVE - _BELOW) * (1 - ns / highest)


def _col(index: int, count: int) -> float:
    return _START + (_SIDE - _START - _END) * index / count


def _scale(highest: int) -> list[str]:
    """Lines at round times."""
    found = []
    for time, label in ticks(highest, _LINES):
        y = _at(time, highest)
        found.append(f'<path class="grid" d="M{_START},{y:.1f}H{_SIDE - _END}"/>')
        found.append(f'<text x="{_START - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    return found


def _columns(rows: Sequence[Row], parts: Sequence[tuple[str, int]], highest: int) -> list[str]:
    """One path a part."""
    count = len(rows)
    wide = (_SIDE - _START - _END) / count * (0.75 if count < 100 else 0.95)
    base = [0] * count
    found = []
    for part, at in parts:
        boxes = []
        for index, row in enumerate(rows):
            time = _ns(row, at)
            if time:
                x, low, high = (
                    _col(index, count),
                    _at(base[index], highest),
                    _at(base[index] + time, highest),
                )
                boxes.append(f"M{x:.2f},{low:.2f}h{wide:.2f}V{high:.2f}h{-wide:.2f}z")
                base[index] += time
        found.append(f'<path style="fill:{colour_of(part)}" d="{"".join(boxes)}"/>')
    return found


def _names(rows: Sequence[Row], steps: Table, formatter: Formatter) -> list[str]:
    """Step numbers below, as many as there is room for."""
    count = len(rows)
    every = -(-count // _STEP_LABELS)
    half = (_SIDE - _START - _END) / count * 0.375
    y = _TALL - _BELOW + 14
    found = [
        f'<text x="{_col(index, count) + half:.1f}" y="{y}" text-anchor="middle">{_short(row[0])}</text>'
        for index, row in enumerate(rows)
        if index % every == 0
    ]
    middle, title = (_START + _SIDE) / 2, safe(formatter.texts.heading(steps, steps.columns[0]))
    return [*found, f'<text x="{middle}" y="{_TALL - 4}" text-anchor="middle">{title}</text>']


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
    x, wide = _col(index, count), (_SIDE - _START - _END) / count
    return over(f'x="{x:.2f}" y="{_ABOVE}" width="{wide:.2f}" height="{_TALL - _ABOVE - _BELOW}"', lines)
