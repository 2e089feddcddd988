"""How true the promises are: figures over all programs, as a table and as the README shows them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulate.matrix.verdicts import error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.simulate.matrix.verdicts import Row, Verdict

GROUPS = {"all": "all", "one": "one fault", "two": "two faults", "three": "three faults"}
NAMES = {**GROUPS, "pairs": "recordings, before and after"}


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one group of programs; shares are of its programs or faults."""

    programs: int
    first: float
    """Shares of programs whose first finding is a fault that costs most."""
    faults: int
    inside: float
    """Shares of faults whose true saving lies in the range."""
    narrow: float
    """And of those whose range is narrow."""
    correlation: float
    """Spearman's, of promised and true savings."""
    error: float
    """Mean of the absolute errors, as parts of the true savings."""
    together: float | None
    """The same of all faults of a program at once; None where others are changed with them."""


def figures(verdicts: Sequence[Verdict]) -> Figures:
    """Figures of programs with faults."""
    rows = [row for one in verdicts for row in one.rows]
    return Figures(
        len(verdicts),
        _share(one.right for one in verdicts),
        len(rows),
        _share(row.inside for row in rows),
        _share(row.narrow for row in rows),
        spearman([row.saving or 0 for row in rows], [row.true for row in rows]),
        _mean([row.off for row in rows]),
        _mean([error(*one.together, one.step) for one in verdicts]),
    )


def by_group(verdicts: Iterable[Verdict]) -> dict[str, Figures]:
    """Figures of all programs with faults, and of each group of them."""
    groups: dict[str, list[Verdict]] = defaultdict(list)
    for one in verdicts:
        if one.group in GROUPS:
            groups[one.group].append(one)
    everything = [one for each in groups.values() for one in each]
    found = {"all": figures(everything)} if everything else {}
    return found | {name: figures(groups[name]) for name in GROUPS if name in groups}


def _share(answers: Iterable[bool]) -> float:
    return _mean([float(each) for each in answers])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Rank correlation; equal values share the mean of their ranks."""
    one, two = _ranks(first), _ranks(second)
    middle = (len(one) + 1) / 2
    both = sum((a - middle) * (b - middle) for a, b in zip(one, two, strict=True))
    each = sum((a - middle) ** 2 for a in one) * sum((b - middle) ** 2 for b in two)
    return both / each**0.5 if each else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(values)
    place: dict[float, list[int]] = defaultdict(list)
    for rank, value in enumerate(order, start=1):
        place[value].append(rank)
    return [_mean(place[value]) for value in values]


HEADS = ("", "programs", "first cause right", "faults", "in range", "narrow", "ρ", "mean error", "together")


def table(found: Mapping[str, Figures], heads: Sequence[str] = HEADS, names: Mapping[str, str] = NAMES) -> str:
    """Markdown, one row a group."""
    rows = [tuple(heads), tuple("--:" if place else ":--" for place in range(len(heads)))]
    for name, one in found.items():
        shares = f"{one.inside:.0%}", f"{one.narrow:.0%}", f"{one.correlation:.2f}", f"{one.error:.0%}"
        counted = str(one.programs), f"{one.first:.0%}", str(one.faults)
        rows.append((names[name], *counted, *shares, "–" if one.together is None else f"{one.together:.0%}"))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def by_fault(verdicts: Iterable[Verdict]) -> str:
    """How often each fault is in range and narrow, and its mean error; the worst first."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in (row for one in verdicts for row in one.rows):
        rows[row.fault].append(row)
    lines = [
        (_share(row.inside for row in each), name, _share(row.narrow for row in each), _mean([row.off for row in each]))
        for name, each in rows.items()
    ]
    return "\n".join(
        f"{name:16} {len(rows[name]):3} in range {inside:4.0%} narrow {narrow:4.0%} error {off:4.0%}"
        for inside, name, narrow, off in sorted(lines)
    )


def misses(verdicts: Iterable[Verdict]) -> str:
    """What does not come true, by the rules that should have told it."""
    lines: dict[str, list[str]] = defaultdict(list)
    for one in verdicts:
        if not one.right:
            lines["first cause"].append(
                f"{one.case}: {', '.join(one.first) or 'nothing'}, not {'/'.join(one.expected)}"
            )
        if one.group == "healthy" and one.loud:
            lines["healthy, yet"].append(f"{one.case}: {', '.join(one.loud)}")
        for row in one.rows:
            if not (row.inside and row.narrow):
                lines[f"{row.fault} [{', '.join(row.rules) or 'untold'}]"].append(f"{one.case}: {_numbers(row)}")
    return "\n".join(f"{name} ({len(each)})\n  " + "\n  ".join(each) for name, each in sorted(lines.items()))


def _numbers(row: Row) -> str:
    """In µs."""
    told = [row.low, row.saving, row.bound]
    words = "/".join("-" if value is None else f"{value / 1e3:.0f}" for value in told)
    width = "" if row.narrow else ", too wide" if row.inside else ", wide"
    return f"told {words}, true {row.true / 1e3:.0f} of {row.step / 1e3:.0f} µs{width}"
