"""What costs time or memory, as every output tells it: in words of one language, with its numbers and its proof."""

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from traceanalyze.model.patterns import dataclass
from traceanalyze.model.table import Column, Kind, Table, Value, declare
from traceanalyze.report.formats import function_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_INTERVALS = 100
"""In JSON, the longest ones: a page of findings has tens of thousands, which programs get from Python."""


class Saving(NamedTuple):
    """By how much steps get shorter without it, ns a step; of a trace without steps in all."""

    ns: int
    low_ns: int
    high_ns: int


class Scope(NamedTuple):
    """Where it holds; what is empty, everywhere, or is not known."""

    ranks: tuple[int, ...] = ()
    steps: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    """Operators, kernels, calls or groups."""
    source_lines: tuple[str, ...] = ()
    """`file.py(12): function`."""


class Evidence(NamedTuple):
    """One measured value that it rests on."""

    label: str
    value: int | float | str
    """Times in nanoseconds, sizes in bytes, shares as fractions of 1; a text where it is no number."""
    unit: str | None
    """nanoseconds, bytes or fraction; None of counts, other numbers and texts."""
    text: str
    """The value as pages show it."""
    start_ns: int | None = None
    """Where to look in the trace, ns from the time base of its file; with `end_ns`."""
    end_ns: int | None = None
    source_line: str | None = None


class Link(NamedTuple):
    """Where there is more to read."""

    command: str
    """Prints the page of its rule; empty of what no rule has found."""
    page: str
    """Address of the documentation."""
    trace: str
    """File that the times of intervals and evidence are of; empty of what several files show together."""


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing that costs time or memory.

    `severity` (high, medium, low, note) and `confidence` (high, medium, low) are the same in every language, so that
    programs can tell them; `grade` says both to people.
    """

    id: str
    """The same in every analysis in which the rule finds it at the same place on the same rank."""
    rule: str
    """Empty of what only a post-mortem or a memory snapshot tells."""
    title: str
    sentence: str
    price: str
    """What it costs and what it saves in words, where that is not one number; else empty."""
    advice: tuple[str, ...]
    """The most useful first."""
    saving: Saving | None
    """None: not measured, or done once."""
    cost_ns: int | None
    """Idle or exposed time that it explains, ns a step; None where only the saving is known."""
    once: bool
    """Done once in a run: later steps do without it, so that there is no saving."""
    share: float | None
    """Saving over the mean step; the cost over it where no saving was measured."""
    severity: str
    confidence: str
    grade: str
    scope: Scope
    evidence: tuple[Evidence, ...]
    link: Link
    count: int
    """Instances, over the analysed steps."""
    intervals: "NDArray[np.int64]" = field(repr=False)
    """(n, 2) ns from the time base of the file: the idle or exposed time behind it."""
    intervals_left_out: int = 0
    """How many more there are: of each of several recordings only the longest are kept."""

    def __repr__(self) -> str:
        """Rule, title and sentence."""
        return f"<finding {' '.join(filter(None, (self.rule, self.title)))}: {self.sentence}>"[:2000]

    def _repr_html_(self) -> str:
        return str(function_of("html.notebook:finding")(self))

    def as_json(self, most: int | None = None) -> dict[str, Any]:
        """All of it as plain values, with the longest of its intervals in the order of time."""
        longest = (self.intervals[:, 0] - self.intervals[:, 1]).argsort(kind="stable")[: most or MOST_INTERVALS]
        whole = {key: value for key, value in vars(self).items() if not key.startswith("intervals")}
        plain = {key: value._asdict() if hasattr(value, "_asdict") else value for key, value in whole.items()}
        return {
            **plain,
            "evidence": [each._asdict() for each in self.evidence],
            "intervals_ns": self.intervals[sorted(longest)].tolist(),
            "intervals_left_out": self.intervals_left_out + len(self.intervals) - len(longest),
        }


_FLAT = declare(
    "findings_in_words",
    "Findings",
    *(Column(key, Kind.TEXT) for key in ("id", "rule", "title", "severity", "confidence", "grade")),
    *(Column(key, Kind.DURATION) for key in ("saving_ns", "saving_low_ns", "saving_high_ns", "cost_ns")),
    Column("share", Kind.SHARE),
    Column("once", Kind.FLAG),
    Column("count", Kind.COUNT),
    *(Column(key, Kind.TEXT) for key in ("sentence", "price", "advice", *Scope._fields, "evidence", *Link._fields)),
)


def as_table(found: Sequence[Finding]) -> Table:
    """A row a finding, for files of tables: lists are joined by `; `, intervals are left to JSON."""
    return _FLAT.fill_records(map(_flat, found))


def _flat(one: Finding) -> dict[str, Value]:
    saving = one.saving or (None, None, None)
    lists = {"advice": one.advice, **one.scope._asdict()}
    return {
        **{key: value for key, value in vars(one).items() if key in _FLAT.keys},
        **dict(zip(("saving_ns", "saving_low_ns", "saving_high_ns"), saving, strict=True)),
        **{key: "; ".join(map(str, values)) for key, values in lists.items()},
        "evidence": "; ".join(f"{each.label}: {each.text}" for each in one.evidence),
        **one.link._asdict(),
    }
