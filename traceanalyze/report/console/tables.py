"""Tables of a report as lines of text."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from traceanalyze.model.table import LABELLED, NUMBERS, Column, Kind, Layout, NotMeasured, Quantity, Row, Table, Value
from traceanalyze.report.console.style import Style, display_width, padded
from traceanalyze.report.format import Formatter, printable, shown_columns
from traceanalyze.report.view import below_side, common_folder, side_runs, with_columns

MANY_ROWS = 12


class Picked(NamedTuple):
    """Rows of a table that a view shows, and how many it left out."""

    rows: tuple[Row, ...]
    left_out: int
    worst_first: bool = False


def pick(table: Table, top: int, *, everything: bool) -> Picked:
    """Rows worth their place: the first of ranked ones, the worst of many, those that say something."""
    rows = table.known_rows
    if table.ranked:
        return Picked(rows[:top], max(len(rows) - top, 0))
    if everything:
        return Picked(rows, 0)
    if table.skip_zero is not None:
        rows = tuple(row for row in rows if row[table.keys.index(table.skip_zero)] != 0)
    if table.worst is not None and len(rows) > max(MANY_ROWS, top):
        by = table.keys.index(table.worst)
        ordered = sorted(rows, key=lambda row: -_measured(row[by]))
        return Picked(tuple(ordered[:top]), len(rows) - top, worst_first=True)
    return Picked(rows, 0)


SMALL = 0.005
"""Share of the whole below which a part is not worth a row of a screen."""


def large(table: Table) -> int:
    """How many parts are worth a row; as good as all where no share says."""
    shares = table.column(table.bar) if table.bar else ()
    return sum(amount(share) >= SMALL for share in shares) if shares else 5


def telling(table: Table, lead: str) -> list[int]:
    """Places of the rows that say something, the most telling first; that of the rank `lead` before other ranks."""
    rows = table.known_rows
    amounts = NUMBERS - {Kind.RATIO}
    numbers = [at for at, column in enumerate(table.columns) if column.kind in amounts and not column.machine]
    every = range(len(rows))
    places = [at for at in every if any(amount(rows[at][index]) for index in numbers)] or list(every)
    if table.telling is not None:
        by = table.keys.index(table.telling)
        return sorted(every, key=lambda at: -amount(rows[at][by]))
    if table.level is not None:
        by = table.keys.index("diff_ns") if "diff_ns" in table.keys else numbers[0]
        depth = {at: table.depth(rows[at]) or 0 for at in places}
        shown = (at for at in places if depth[at] <= 1)
        return sorted(shown, key=lambda at: (depth[at], -amount(rows[at][by])))
    if table.bar is not None:
        by = table.keys.index(table.bar)
        return [at for at in sorted(places, key=lambda at: -amount(rows[at][by])) if amount(rows[at][by]) >= SMALL]
    if table.worst is not None:
        cells = {index: [_measured(row[index]) for row in rows] for index in numbers}
        # How far off the middle a rank is, in parts of the largest.
        odd = {at: max(abs(c[at] - sorted(c)[len(c) // 2]) / (max(c) or 1) for c in cells.values()) for at in places}
        return sorted(places, key=lambda at: (rows[at][0] != lead, -odd[at]))
    return places


def amount(value: Value) -> float:
    """How much it is; what was not measured may be anything."""
    if isinstance(value, NotMeasured):
        return float("inf")
    number = value.number if isinstance(value, Quantity) else value
    return abs(float(number)) if isinstance(number, int | float) else 0.0


def _measured(value: Value) -> float:
    """The same; nothing where it was not measured, which is not the worst."""
    return 0.0 if isinstance(value, NotMeasured) else amount(value)


MIN_FLEXIBLE = 12
"""A shortened name narrower than this tells nothing."""
_READABLE = 24
"""A name this wide can be told from others; on a screen amounts beside it matter more."""
EASY = 32
"""A name this wide can be read; columns that matter less do not make it narrower."""


class Field(NamedTuple):
    """A column ready to print: heading lines, cells, and what may happen to it when there is no room."""

    heading: str
    unit: str
    cells: tuple[str, ...]
    natural: int
    """Width it would like to have."""
    right: bool = False
    flexible: bool = False
    """Its cells may be shortened."""
    idle: bool = False
    """Every value is zero: the first to go."""
    minor: bool = False
    """Goes before those that are not, and before names are shortened much."""
    colours: tuple[str, ...] = ()
    """Of each cell; nothing for those without."""
    cut_start: bool = False
    """Its cells are shortened at their beginning."""
    least: int = 0
    """Width below which cells that differ would look alike."""
    kept: bool = False
    """A difference is what a comparison is about, and the verdict what a gate is: it never goes."""

    def colour(self, index: int) -> str:
        """Of one cell."""
        return self.colours[index] if self.colours else ""


class Fit(NamedTuple):
    """Columns chosen, their widths, and the spaces between them."""

    fields: tuple[Field, ...]
    widths: tuple[int, ...]
    gap: int


def fit(fields: tuple[Field, ...], width: int, least: int = 0) -> Fit:
    """Keep every column if possible, and names that are not shorter than `least`.

    First narrower gaps, then without columns that are all zero, then without minor ones, then without the last ones;
    where names must be readable, gaps must be before there are minor columns.
    """
    chosen = fields
    while True:
        for gap in (2,) if least and any(field.minor for field in chosen) else (2, 1):
            widths = _widths(chosen, width - gap * (len(chosen) - 1), least)
            if widths is not None:
                return Fit(chosen, widths, gap)
        if len(chosen) <= 2:
            return Fit(chosen, tuple(min(field.natural, (width - 1) // len(chosen)) for field in chosen), 1)
        drop = _least(chosen)
        chosen = chosen[:drop] + chosen[drop + 1 :]


def _least(fields: tuple[Field, ...]) -> int:
    """Place of the column that is missed least."""
    silent = [index for index, field in enumerate(fields) if field.idle and index > 1 and not field.kept]
    minor = [index for index, field in enumerate(fields) if field.minor]
    others = [index for index, field in enumerate(fields) if index and not field.kept] or [len(fields) - 1]
    return (silent or minor or others)[-1]


def _widths(fields: tuple[Field, ...], room: int, least: int) -> tuple[int, ...] | None:
    """Width of each column, the flexible ones sharing what the others leave; None if there is too little room."""
    left = room - sum(field.natural for field in fields if not field.flexible)
    pending = sorted((field.natural, index) for index, field in enumerate(fields) if field.flexible)
    widths = [field.natural for field in fields]
    least = max(least, EASY if any(field.minor for field in fields) else MIN_FLEXIBLE)
    for position, (natural, index) in enumerate(pending):
        fair = left // (len(pending) - position)
        widths[index] = min(natural, fair)
        if widths[index] < min(natural, max(least, fields[index].least, display_width(fields[index].heading))):
            return None
        left -= widths[index]
    return tuple(widths) if left >= 0 else None


WIDE = 110
"""Terminal width from which explanations and secondary columns are shown."""
_VERDICT = "verdict"
"""Key of the column that judges a row."""
_PATH = "path"
"""Key of the columns that name files."""
_BAR_CELLS = (10, 40)


def table_lines(table: Table, picked: Picked, formatter: Formatter, style: Style) -> list[str]:
    """The rows as aligned text; a single record as names and values."""
    if table.layout == Layout.RECORD and len(picked.rows) == 1:
        return _record(table, picked.rows[0], formatter, style)
    rows = (*picked.rows, *((table.total,) if table.total else ()))
    fields = _fields(table, rows, formatter, style)
    fitted = fit(tuple(fields), style.width)
    bars = _bars(table, rows, formatter, style, sum(fitted.widths) + fitted.gap * len(fitted.widths))
    columns = list(zip(fitted.fields, fitted.widths, strict=True))
    lines = [
        [
            style.paint(style.shorten(field.cells[index], width, start=field.cut_start), field.colour(index))
            for field, width in columns
        ]
        for index in range(len(rows))
    ]
    if bars:
        lines = [[*line, bar] for line, bar in zip(lines, bars, strict=True)]
    folder = printable(_folder_of(table, rows))
    below = style.wrap(formatter.texts.messages["files_below"].format(folder=folder)).splitlines() if folder else ()
    printed = _printed(fitted, lines, style, total=table.total is not None)
    return [*printed, *(style.paint(line, "dim") for line in below)]


def compact(table: Table, rows: Sequence[Row], formatter: Formatter, style: Style) -> tuple[str, list[str]]:
    """Headings on one line, and a line a row; where there are bars, names and amounts with their units need none."""
    if table.bar is not None:
        kept = [*range(table.keys.index(table.bar) + 1)]
        table = replace(table, totals=None)
    else:
        # What no row has is told below, unless there is no amount at all.
        known = [at for at in range(len(table.columns)) if at == 0 or any(_known(row[at]) for row in rows)]
        told = any(table.columns[at].kind in NUMBERS and not table.columns[at].machine for at in known)
        kept = known if told else [*range(len(table.columns))]
    table, rows = with_columns(table, kept), [tuple(row[at] for at in kept) for row in rows]
    # Room is for long names and for what parts mean, not for more columns.
    narrow = style if table.bar else style._replace(width=min(style.width, WIDE - 1))
    fields = [_on_one_line(field, headed=table.bar is None) for field in _fields(table, rows, formatter, narrow)]
    # A word on what kind of thing the first column names is missed less than an amount, where that tells rows apart.
    if table.columns[0].kind != Kind.TERM and len(set(fields[0].cells)) == len(rows):
        fields[1:2] = [field._replace(minor=field.minor or not field.right) for field in fields[1:2]]
    fitted = fit(tuple(fields), style.width, _READABLE)
    bars = _bars(table, rows, formatter, style, sum(fitted.widths) + fitted.gap * len(fitted.widths))
    lines = []
    for index in range(-1, len(rows)):
        line = []
        for field, width in zip(fitted.fields, fitted.widths, strict=True):
            text = field.heading if index < 0 else field.cells[index]
            text = style.shorten(text, width, start=field.cut_start and index >= 0)
            blank = " " * (width - display_width(text))
            text = style.paint(text, "dim" if index < 0 else field.colour(index))
            line.append(blank + text if field.right else text + blank)
        lines.append((" " * fitted.gap).join([*line, *bars[index : index + 1]] if index >= 0 else line).rstrip())
    return lines[0], lines[1:]


def _known(value: Value) -> bool:
    return value is not None and not isinstance(value, NotMeasured)


def _on_one_line(field: Field, *, headed: bool) -> Field:
    """The unit beside the heading, or beside each amount."""
    if headed:
        heading, cells = " ".join(filter(None, (field.heading, field.unit))), field.cells
    else:
        said = f" {field.unit}" if field.right and field.unit else ""
        heading, cells = "", tuple(f"{cell}{said}" if cell[-1:].isdigit() else cell for cell in field.cells)
    return field._replace(heading=heading, cells=cells, natural=max(map(display_width, (heading, *cells))))


def _folder_of(table: Table, rows: Sequence[Row]) -> str:
    """The folder that all files of a list lie in, which its rows need not repeat."""
    if _PATH not in table.keys:
        return ""
    paths = [row[table.keys.index(_PATH)] for row in rows]
    return common_folder(list(map(str, paths))) if all(isinstance(path, str) for path in paths) else ""


def absent_lines(table: Table, picked: Picked, formatter: Formatter, style: Style) -> list[str]:
    """Why cells say that they were not measured; of a flag that no row tells, which has no column, its name, too."""
    cells = [
        (column, value.reason)
        for row in picked.rows
        for column, value in zip(table.columns, row, strict=True)
        if isinstance(value, NotMeasured) and _has_room(column, style)
    ]
    counts = Counter(column.key for column, _ in cells)
    unshown = {column.key for column, _ in cells if column.kind == Kind.FLAG and counts[column.key] == len(picked.rows)}
    reasons = dict.fromkeys(reason for column, reason in cells if column.key not in unshown)
    flags = ((formatter.texts.heading(table, column), why) for column, why in cells if column.key in unshown)
    return [
        *([formatter.legend(reasons)] if reasons else ()),
        *(formatter.missing([why], of=name) for name, why in dict.fromkeys(flags)),
    ]


def _printed(fitted: Fit, lines: list[list[str]], style: Style, *, total: bool) -> list[str]:
    """Cells as aligned lines: headings, their units, a rule, the rows, and a rule above the total."""
    # Imported here: a verdict alone has no tables.
    from prettytable import HRuleStyle, PrettyTable, VRuleStyle

    count = len(lines[0])
    printed = PrettyTable([str(index) for index in range(count)], header=False)
    printed.hrules, printed.vrules = HRuleStyle.HEADER, VRuleStyle.NONE
    printed.horizontal_char = printed.junction_char = "─" if style.unicode else "-"
    # Where there are no vertical lines prettytable still leaves their column blank: it is part of the gap.
    printed.left_padding_width, printed.right_padding_width = 0, fitted.gap - 1
    for index in range(count):
        right = index < len(fitted.fields) and fitted.fields[index].right
        printed.align[str(index)] = "r" if right else "l"
    blank = [""] * (count - len(fitted.fields))
    units = [field.unit for field in fitted.fields]
    printed.add_row([*(field.heading for field in fitted.fields), *blank], divider=not any(units))
    if any(units):
        printed.add_row([*units, *blank], divider=True)
    for index, line in enumerate(lines):
        printed.add_row(line, divider=total and index == len(lines) - 2)
    return [line[1 : len(line) - fitted.gap].rstrip() for line in printed.get_string().splitlines()]


def _fields(table: Table, rows: Sequence[Row], formatter: Formatter, style: Style) -> list[Field]:
    fields: list[Field] = []
    worth = [
        shown
        for shown in shown_columns(table, rows, formatter.resolution_ns)
        if _worth_showing(shown[1], [row[shown[0]] for row in rows], style)
    ]
    apart = any(side is not None and count > 1 for side, count in side_runs([column for _, column, *_ in worth]))
    for index, column, unit, unit_name in worth:
        values = [row[index] for row in rows]
        if column.key == _PATH:
            folder = _folder_of(table, rows)
            values = [value.removeprefix(folder) if isinstance(value, str) else value for value in values]
        cells = tuple(printable(formatter.cell(column, value, unit)) for value in values)
        if not fields:
            cells = tuple("  " * (table.depth(row) or 0) + cell for row, cell in zip(rows, cells, strict=True))
        heading, name = formatter.texts.heading(table, column), unit_name
        if apart and column.side is not None:
            name = " ".join(filter(None, (below_side(table, column, formatter.texts), unit_name)))
            heading = formatter.texts.messages[column.side]
        natural = max(display_width(text) for text in (heading, name, *cells))
        fields.append(
            Field(
                heading,
                name,
                cells,
                natural=natural,
                right=column.kind in NUMBERS,
                flexible=column.kind in {Kind.NAME, *LABELLED},
                idle=all(value == 0 or value is None for value in values),
                minor=column.minor,
                colours=tuple("dim" if table.is_faint(row) else _colour(column, row[index]) for row in rows),
                cut_start=column.cut_start,
                least=_told_apart(cells, natural, style) if column.kind in LABELLED else 0,
                kept=column.kind == Kind.CHANGE or column.key == _VERDICT,
            )
        )
    meanings = [formatter.texts.meanings.get(f"{table.key}.{row[0]}", "") for row in rows]
    if style.width >= WIDE and any(meanings):
        heading = formatter.texts.messages["meaning"]
        fields.append(
            Field(heading, "", tuple(meanings), natural=max(map(display_width, (heading, *meanings))), flexible=True)
        )
    return fields


def _told_apart(cells: Sequence[str], natural: int, style: Style) -> int:
    """The smallest width at which names of kernels are as different as they are whole."""
    names = set(cells)
    widths = range(MIN_FLEXIBLE, natural)
    return next(
        (width for width in widths if len({style.shorten(cell, width) for cell in names}) == len(names)), natural
    )


def _colour(column: Column, value: Value) -> str:
    """Worse is red and better green."""
    if column.par is None or not isinstance(value, int | float) or value == column.par:
        return ""
    return "red" if value > column.par else "green"


def _worth_showing(column: Column, values: Sequence[Value], style: Style) -> bool:
    """Secondary columns need room; flags and optional texts need something to tell."""
    says = column.kind != Kind.FLAG or len({value for value in values if value is not None}) > 1
    return says and _has_room(column, style)


def _has_room(column: Column, style: Style) -> bool:
    return not column.machine and (not column.minor or style.width >= WIDE)


def _bars(table: Table, rows: Sequence[Row], formatter: Formatter, style: Style, used: int) -> list[str]:
    """A bar for each row but the total, as long as the room allows; none where there is too little."""
    cells = min(style.width - used, _BAR_CELLS[1])
    if table.bar is None or cells < _BAR_CELLS[0]:
        return []
    at = table.keys.index(table.bar)
    shown = rows[:-1] if table.total else rows
    shares = [0.0 if isinstance(row[at], NotMeasured) else cast("float", row[at]) for row in shown]
    bars = [style.paint(style.bar(share, cells), "cyan") for share in shares]
    return bars + [""] * (len(rows) - len(shown))


def _record(table: Table, row: Row, formatter: Formatter, style: Style) -> list[str]:
    """One name and value a line; what there is not is left out, and so are minor values of zero.

    A reason that has no room is left to the legend below.
    """
    named = [
        (column, value)
        for column, value in zip(table.columns, row, strict=True)
        if not column.machine and value not in (None, "") and (value != 0 or not column.minor)
    ]
    names = [formatter.texts.heading(table, column) for column, _ in named]
    width = max(map(display_width, names), default=0)
    lines = []
    for name, (column, value) in zip(names, named, strict=True):
        text = printable(formatter.label(column, value) or formatter.value(column.kind, value))
        if isinstance(value, NotMeasured) and display_width(text) > style.width - width - 2:
            text = formatter.cell(column, value, None)
        lines.append(f"{padded(name, width)}  {style.shorten(text, style.width - width - 2)}")
    return lines
