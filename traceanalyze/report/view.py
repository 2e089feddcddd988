"""How much of a report its reader asked for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple, Self, cast

from traceanalyze.errors import UsageError
from traceanalyze.locales import Texts
from traceanalyze.model.table import Column, Table
from traceanalyze.model.vocabulary import Detail

if TYPE_CHECKING:
    from traceanalyze.report.model import Report


class View(NamedTuple):
    """What the reader asked for."""

    detail: Detail = Detail.NORMAL
    top: int = 5
    """Rows of ranked tables."""
    whole: bool = False
    """All of the console's report, not one screen of it."""
    rows: int = 0
    """Of what takes most on a screen; 0: as there is room."""

    @classmethod
    def of(cls, top: int, *, quiet: bool, verbose: bool, whole: bool = False, usual: int = 5) -> Self:
        """As the options of a command say; a screen has as many rows as are asked for, where that is not as usual."""
        if quiet and (verbose or whole):
            raise UsageError("--quiet and {other}: give one of them", "--verbose" if verbose else "--all")
        detail = Detail.QUIET if quiet else Detail.VERBOSE if verbose else Detail.NORMAL
        return cls(detail, top, whole, top if top != usual else 0)


OVERVIEW = ("overall_metrics", "memory_peak", "link_rates")
"""Tables of a comparison that are read from top to bottom."""


def overview(tables: Mapping[str, Table]) -> list[Table]:
    """Those that there are; the parts of the step stand for where its time went, if that was not compared."""
    found = [tables[key] for key in OVERVIEW if key in tables and len(tables[key])]
    instead = [] if found and found[0].key == OVERVIEW[0] else [tables["step_difference"]]
    return instead + found


OF_WEIGHT = 0.001
"""Share of all changes from which a cause is shown without being asked for."""
_ALWAYS = ("comm_wait", "comm_transfer")


class Half(NamedTuple):
    """The causes of one direction."""

    key: str
    """`slower` or `faster`."""
    table: Table
    """All of them, largest first."""
    weighty: int
    """How many of them matter."""

    def first(self, top: int) -> int:
        """How many to show of at most `top`: those that matter; all of them where more are asked for than usual."""
        return min(top, len(self.table) if top > View().top else self.weighty)


def halves(causes: Table, *, least: float = OF_WEIGHT) -> Iterator[Half]:
    """Slower and faster apart; nothing where nothing differs. A cause matters from this share of all changes on."""
    if not len(causes):
        return
    diffs = cast("tuple[int, ...]", causes.column("diff_ns"))
    limit = least * sum(map(abs, diffs))
    for key, sign in (("slower", 1), ("faster", -1)):
        picked = [place for place, diff in enumerate(diffs) if diff * sign > 0]
        weighty = sum(diff * sign > 0 and abs(diff) >= limit for diff in diffs)
        yield Half(key, replace(causes.take(picked), key=key, totals=None), weighty)


def shallow(table: Table) -> Table:
    """Without rows more than one level in, but for what every comparison of several ranks turns on."""
    if table.level is None or table.absent:
        return table
    rows = enumerate(table.known_rows)
    return table.take([place for place, row in rows if table.depth(row) in {0, 1} or row[0] in _ALWAYS])


BESIDE = ("migration", "finding_compare", "sync_compare", "rank_compare")
"""Tables that say what is behind the causes."""
_INPUTS = frozenset({"compare_sides", "compare_options"})
"""Tables on what was compared, which lines above the others say."""


def compared(report: "Report", *, everything: bool) -> Iterator[Table | Half]:
    """Tables over both sides in the order in which a page of text has them, the causes in two halves."""
    tables = report.tables
    if "causes" not in tables:
        yield from (table for table in report.summary if len(table) and (everything or not table.detail))
        return
    first = overview(tables)
    yield from first if everything else map(shallow, first)
    # Slower and faster apart; nothing is said of causes where nothing differs.
    yield from halves(tables["causes"], least=0 if everything else OF_WEIGHT)
    yield from (tables[key] for key in BESIDE if key in tables and len(tables[key]))
    shown = {*OVERVIEW, *_INPUTS, *BESIDE, "causes", first[0].key}
    if everything:
        yield from (table for table in report.summary if table.key not in shown and len(table))


def with_columns(table: Table, kept: Sequence[int]) -> Table:
    """Only these columns, in this order."""
    return replace(table, columns=tuple(table.columns[index] for index in kept))


def side_runs(columns: Sequence[Column]) -> list[tuple[str | None, int]]:
    """Sides of neighbouring columns and how many there are of each, left to right; None: of no side."""
    return [(side, len(list(run))) for side, run in groupby(columns, key=lambda column: column.side)]


def below_side(table: Table, column: Column, texts: Texts) -> str:
    """Heading of a column without its side; empty where it is nothing else."""
    heading = texts.heading(table, column)
    return heading if column.side is None else heading.removeprefix(texts.messages[column.side]).strip()


def common_folder(paths: Sequence[str]) -> str:
    """The folder, with the mark at its end, that several paths all lie in; empty where there is none, or one path."""
    if len(paths) < 2:
        return ""
    parents = (PurePath(path).parts[:-1] for path in paths)
    shared = list(takewhile(lambda parts: len(set(parts)) == 1, zip(*parents, strict=False)))
    folder = str(PurePath(*(parts[0] for parts in shared))) if shared else ""
    return folder if not folder or folder.endswith("/") else f"{folder}/"


def distinct_names(first: str, second: str) -> tuple[str, str]:
    """Names of two files; with as many of their folders as it takes to differ, where that is possible."""
    parts = PurePath(first).parts, PurePath(second).parts
    if parts[0] == parts[1]:
        return PurePath(first).name or first, PurePath(second).name or second
    count = 1
    while parts[0][-count:] == parts[1][-count:]:
        count += 1
    return str(PurePath(*parts[0][-count:])), str(PurePath(*parts[1][-count:]))
