"""Walk a recorded ladder: what the tool says at each rung against what the next one gained.

`python -m tests.ladder.walk sample_traces/ladder_cpu` prints the table that docs/whatif.md shows.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from prettytable import PrettyTable, TableStyle

import traceanalyze
from tests.ladder.rungs import HOST, SPEED, Rung

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.rules.finding import Finding


@dataclass(frozen=True, slots=True)
class Recorded:
    """One rung as it was recorded."""

    name: str
    step_ms: float
    """The median step without the profiler."""
    samples: int
    """In one step."""
    recorded_ms: float
    """The mean step under the profiler."""
    findings: tuple[Finding, ...]
    """Most saving first."""

    @property
    def first(self) -> Finding | None:
        """What leads; None where nothing is left to save."""
        return next((one for one in self.findings if one.saving), None)

    @property
    def first_rule(self) -> str:
        """Its rule."""
        return self.first.rule if self.first else "none"

    @property
    def first_cause(self) -> str:
        """Its rule with the name."""
        return f"{self.first.rule} {self.first.slug}" if self.first else "none"

    def predicted(self, removes: Sequence[str]) -> float:
        """What the findings that these rules made would save, as a share of the step."""
        saved = sum(one.saving or 0 for one in self.findings if one.rule in removes)
        return saved / 1e6 / self.recorded_ms

    def measured(self, above: Recorded) -> float:
        """What the rung above saves of this one's step, for as many samples, without the profiler."""
        return 1 - above.step_ms / above.samples * self.samples / self.step_ms


def rungs(ladder: Path) -> list[Recorded]:
    """The rungs of a folder, lowest first."""
    return [_recorded(folder) for folder in sorted(ladder.iterdir()) if (folder / "case.toml").is_file()]


def _recorded(folder: Path) -> Recorded:
    known = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    report = traceanalyze.analyze(folder / "trace.json.gz")
    (analysis,) = report.analyses
    findings = report.ranks[0].findings
    mean = float(analysis.steps.time.mean()) / 1e6
    return Recorded(folder.name.split("_", 1)[1], known["step_ms"], known["samples_per_step"], mean, findings)


def removed_by(above: Recorded, ladder: Sequence[Rung]) -> tuple[str, ...]:
    """The rules whose cause a rung removes."""
    return next(rung.removes for rung in ladder if rung.name == above.name)


def table(climbed: Sequence[Recorded], ladder: Sequence[Rung]) -> str:
    """A line a rung: its step, the cause that leads, and what it was to save and did save."""
    made = PrettyTable(["rung", "step ms", "first cause", "the next rung", "predicted", "measured"])
    made.set_style(TableStyle.MARKDOWN)
    made.align = "r"
    for column in ("rung", "first cause", "the next rung"):
        made.align[column] = "l"
    for below, above in pairwise(climbed):
        removes = removed_by(above, ladder)
        made.add_row(
            [
                below.name,
                f"{below.step_ms:.1f}",
                below.first_cause,
                above.name,
                f"{below.predicted(removes):.0%}",
                f"{below.measured(above):.0%}",
            ]
        )
    top = climbed[-1]
    made.add_row([top.name, f"{top.step_ms:.1f}", top.first_cause, "", "", ""])
    return made.get_string()


def main() -> None:
    # Of memory and of faults alone no rung saves time.
    for ladder in (Path(argument) / "speed" for argument in sys.argv[1:]):
        climbed = rungs(ladder)
        known = {rung.name for rung in HOST}
        chosen = HOST if {each.name for each in climbed} <= known else SPEED
        sys.stdout.write(f"{ladder}\n{table(climbed, chosen)}\n")


if __name__ == "__main__":
    main()
