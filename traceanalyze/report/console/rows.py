"""Which rows of a table a page or a screen shows."""

from typing import NamedTuple, cast

from traceanalyze.model.table import NUMBERS, Kind, NotMeasured, Quantity, Row, Table, Value

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
        ordered = sorted(rows, key=lambda row: -cast("int", row[by]))
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
        upper = [at for at in places if not table.depth(rows[at])]
        by = table.keys.index("diff_ns") if "diff_ns" in table.keys else numbers[0]
        return upper + sorted((at for at in places if table.depth(rows[at]) == 1), key=lambda at: -amount(rows[at][by]))
    if table.bar is not None:
        by = table.keys.index(table.bar)
        return [at for at in sorted(places, key=lambda at: -amount(rows[at][by])) if amount(rows[at][by]) >= SMALL]
    if table.worst is not None:
        cells = {index: [amount(row[index]) for row in rows] for index in numbers}
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
