"""Which columns, and how wide, so that a table fits the width of the terminal."""

from __future__ import annotations

from traceanalyze.frozen import frozen
from traceanalyze.report.console.wrap import display_width

MIN_FLEXIBLE = 12
"""A shortened name narrower than this tells nothing."""
EASY = 32
"""A name this wide can be read; columns that matter less do not make it narrower."""


@frozen
class Field:
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

    def colour(self, index: int) -> str:
        """Of one cell."""
        return self.colours[index] if self.colours else ""


@frozen
class Fit:
    """Columns chosen, their widths, and the spaces between them."""

    fields: tuple[Field, ...]
    widths: tuple[int, ...]
    gap: int


def fit(fields: tuple[Field, ...], width: int) -> Fit:
    """Keep every column if possible.

    First narrower gaps, then without columns that are all zero, then without minor ones, then without the last ones.
    """
    chosen = fields
    while True:
        for gap in (2, 1):
            widths = _widths(chosen, width - gap * (len(chosen) - 1))
            if widths is not None:
                return Fit(chosen, widths, gap)
        if len(chosen) <= 2:
            return Fit(chosen, tuple(min(field.natural, (width - 1) // len(chosen)) for field in chosen), 1)
        drop = _least(chosen)
        chosen = chosen[:drop] + chosen[drop + 1 :]


def _least(fields: tuple[Field, ...]) -> int:
    """Place of the column that is missed least."""
    silent = [index for index, field in enumerate(fields) if field.idle and index > 1]
    minor = [index for index, field in enumerate(fields) if field.minor]
    return (silent or minor or [len(fields) - 1])[-1]


def _widths(fields: tuple[Field, ...], room: int) -> tuple[int, ...] | None:
    """Width of each column, the flexible ones sharing what the others leave; None if there is too little room."""
    left = room - sum(field.natural for field in fields if not field.flexible)
    pending = sorted((field.natural, index) for index, field in enumerate(fields) if field.flexible)
    widths = [field.natural for field in fields]
    least = EASY if any(field.minor for field in fields) else MIN_FLEXIBLE
    for position, (natural, index) in enumerate(pending):
        fair = left // (len(pending) - position)
        widths[index] = min(natural, fair)
        if widths[index] < min(natural, max(least, display_width(fields[index].heading))):
            return None
        left -= widths[index]
    return tuple(widths) if left >= 0 else None
