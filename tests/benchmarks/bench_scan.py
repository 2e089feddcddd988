"""The scanner against what bounds it and what replaces it: `python tests/benchmarks/bench_scan.py [--help]`."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_MB = 1_000_000
_READERS = str(Path(__file__).with_name("readers.py"))
_SMALL = 300
"""Above this many MB of text, readers that keep it all are left out."""


@dataclass(slots=True)
class Row:
    """One way of reading: what it is measured on, and its runs."""

    label: str
    reader: str
    packed: bool
    cores: int
    against: str
    walls: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    before: int = 0
    result: int = 0

    @property
    def wall(self) -> float:
        return statistics.median(self.walls)

    @property
    def peak(self) -> int:
        return int(statistics.median(self.peaks))


def _rows(megabytes: float) -> list[Row]:
    rows = [
        Row("read() into a ring", "read", False, 1, ""),
        Row("scanner, plain, 1 core", "scanner", False, 1, "read() into a ring"),
        Row("isal inflate alone", "inflate", True, 1, ""),
        Row("scanner, gz, 1 core", "scanner", True, 1, "isal inflate alone"),
        Row("scanner, gz, 2 cores", "scanner", True, 2, "isal inflate alone"),
    ]
    if megabytes <= _SMALL:
        rows += [
            Row("msgspec, typed", "msgspec", False, 1, "scanner, plain, 1 core"),
            Row("json", "json", False, 1, "scanner, plain, 1 core"),
        ]
    return rows


def measure(source: Path, megabytes: float, rounds: int, folder: Path) -> tuple[list[Row], int, int]:
    """All rows on one input, rounds interleaved; bytes of text and events."""
    from tests.benchmarks import child

    plain, packed = folder / "trace.json", folder / "trace.json.gz"
    size = child.tiled(source, megabytes, plain)
    child.tiled(source, megabytes, packed)
    rows = _rows(megabytes)
    for _ in range(rounds):
        for row in rows:
            file = str(packed if row.packed else plain)
            spent = child.run([sys.executable, _READERS, row.reader, file], cores=row.cores)
            found = json.loads(spent.output)
            row.walls.append(found["wall"])
            row.peaks.append(spent.peak)
            row.before, row.result = found["before"], found["result"]
    events = {row.result for row in rows if row.reader not in {"read", "inflate"}}
    if len(events) != 1:
        raise RuntimeError(f"the readers found different numbers of events: {events}")
    return rows, size, events.pop()


def table(rows: list[Row], size: int, events: int) -> str:
    """The figures, one row a reader."""
    by_label = {row.label: row for row in rows}
    lines = [
        f"{size / _MB:,.1f} MB of JSON, {events:,} events, median of {len(rows[0].walls)} interleaved runs",
        f"{'':24}{'seconds':>9}{'GB/s':>8}{'ratio':>8}{'MB peak':>9}{'B/event':>9}  ratio is",
    ]
    for row in rows:
        ratio, meaning = "", ""
        if row.against:
            other = by_label[row.against]
            slower = row.reader in {"json", "msgspec"}
            ratio = f"{row.wall / other.wall:.1f}×" if slower else f"{other.wall / row.wall:.2f}"
            meaning = f"times {other.label}" if slower else f"of {other.label}"
        own = f"{(row.peak - row.before) / events:.0f}" if row.reader in {"scanner", "json", "msgspec"} else ""
        figures = f"{row.wall:9.3f}{size / row.wall / 1e9:8.2f}{ratio:>8}{row.peak / _MB:9.0f}{own:>9}"
        lines.append(f"{row.label:24}{figures}  {meaning}".rstrip())
    return "\n".join(lines)


def broken_goals(rows: list[Row], size: int, events: int) -> list[str]:
    """Goals of the scanner that this run misses."""
    wall = {row.label: row.wall for row in rows}
    scanner = next(row for row in rows if row.label == "scanner, plain, 1 core")
    goals = [
        ("plain ≥ 0.30 of read()", wall["read() into a ring"] / scanner.wall, 0.30),
        ("gz, 1 core ≥ 0.40 of inflate", wall["isal inflate alone"] / wall["scanner, gz, 1 core"], 0.40),
        ("gz, 2 cores ≥ 0.75 of inflate", wall["isal inflate alone"] / wall["scanner, gz, 2 cores"], 0.75),
        ("memory ≤ 60 B an event + 60 MB", (60 * events + 60 * _MB) / scanner.peak, 1.0),
    ]
    if size > _SMALL / 2 * _MB:
        goals.append(("memory ≤ 0.35 of the JSON", 0.35 * size / scanner.peak, 1.0))
    for label, least in (("msgspec, typed", 10.0), ("json", 25.0)):
        if label in wall:
            goals.append((f"≥ {least:.0f}× {label}", wall[label] / scanner.wall, least))
    return [f"{goal}: {value:.2f}" for goal, value, least in goals if value < least]


def main() -> None:
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, default=ROOT / "sample_traces/gpu_two_ranks/rank0.json.gz")
    parser.add_argument("--mb", type=float, nargs="+", default=[20, 200], help="sizes of the JSON text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="fail where a goal is missed")
    parser.add_argument("--smoke", action="store_true", help="tiny input, one round: does it run at all")
    options = parser.parse_args()
    sizes, rounds = ([2.0], 1) if options.smoke else (options.mb, options.rounds)
    broken = []
    for megabytes in sizes:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(options.trace, megabytes, rounds, Path(folder))
        print(table(*found), end="\n\n")
        broken += broken_goals(*found)
    if options.check and broken:
        sys.exit("goals missed:\n" + "\n".join(broken))


if __name__ == "__main__":
    main()
