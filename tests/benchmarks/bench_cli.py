"""The whole command from start to report: `python tests/benchmarks/bench_cli.py [--help]`."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.benchmarks.child import Spent

ROOT = Path(__file__).resolve().parents[2]
_MB = 1_000_000
_COMMAND = [sys.executable, "-c", "import sys; from traceanalyze.cli.main import main; sys.exit(main())"]
_GOALS = {20.0: (0.5, None), 200.0: (0.9, 200 * _MB), 1000.0: (2.5, None)}
"""Size in MB → seconds and bytes allowed for the packed file."""
_HELP = 0.3


def _line(label: str, runs: list[Spent]) -> str:
    wall = statistics.median(run.wall for run in runs)
    cpu = statistics.median(run.cpu for run in runs)
    peak = statistics.median(run.peak for run in runs)
    return f"{label:24}{wall:9.3f}{cpu:9.3f}{peak / _MB:9.0f}"


def _measure(files: dict[str, Path], rounds: int) -> dict[str, list[Spent]]:
    """Every command once a round."""
    from tests.benchmarks import child

    runs: dict[str, list[Spent]] = {label: [] for label in ("--help", *files)}
    for _ in range(rounds):
        for label, spent in runs.items():
            arguments = ["--help"] if label == "--help" else [str(files[label])]
            spent.append(child.run([*_COMMAND, *arguments]))
    return runs


def _broken(runs: dict[str, list[Spent]], sizes: list[float]) -> list[str]:
    walls = {label: statistics.median(run.wall for run in spent) for label, spent in runs.items()}
    peaks = {label: statistics.median(run.peak for run in spent) for label, spent in runs.items()}
    broken = [f"--help: {walls['--help']:.2f} s > {_HELP} s"] if walls["--help"] > _HELP else []
    for megabytes in sizes:
        seconds, memory = _GOALS.get(megabytes, (None, None))
        label = f"{megabytes:g} MB gz"
        if seconds is not None and walls[label] > seconds:
            broken.append(f"{label}: {walls[label]:.2f} s > {seconds} s")
        if memory is not None and peaks[label] > memory:
            broken.append(f"{label}: {peaks[label] / _MB:.0f} MB > {memory / _MB:.0f} MB")
    return broken


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from tests.benchmarks import child

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, default=ROOT / "sample_traces/gpu_two_ranks/rank0.json.gz")
    parser.add_argument("--mb", type=float, nargs="+", default=[20, 200], help="sizes of the JSON text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="fail where a goal is missed")
    parser.add_argument("--smoke", action="store_true", help="tiny input, one round: does it run at all")
    options = parser.parse_args()
    sizes, rounds = ([2.0], 1) if options.smoke else (options.mb, options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for megabytes in sizes:
            for label, suffix in ((f"{megabytes:g} MB gz", ".json.gz"), (f"{megabytes:g} MB plain", ".json")):
                files[label] = Path(folder) / f"{megabytes:g}{suffix}"
                child.tiled(options.trace, megabytes, files[label])
        runs = _measure(files, rounds)
    print(f"whole process, median of {rounds} interleaved runs, {options.trace.name} tiled")
    print(f"{'':24}{'wall s':>9}{'CPU s':>9}{'MB peak':>9}")
    for label, spent in runs.items():
        print(_line(label, spent))
    if options.check and (broken := _broken(runs, sizes)):
        sys.exit("goals missed:\n" + "\n".join(broken))


if __name__ == "__main__":
    main()
