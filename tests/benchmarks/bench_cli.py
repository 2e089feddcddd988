"""The whole command from start to report: `python tests/benchmarks/bench_cli.py [--help]`."""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.benchmarks.child import Spent

ROOT = Path(__file__).resolve().parents[2]
_MB = 1_000_000
_COMMAND = [sys.executable, "-c", "import sys; from traceanalyze.cli.main import main; sys.exit(main())"]
_GOALS = {
    "--help": (0.3, None),
    "tiny": (0.5, None),
    "20 MB gz": (0.5, None),
    "200 MB gz": (0.9, 200 * _MB),
    "200 MB gz to xlsx": (3.0, 300 * _MB),
    "200 MB gz compared": (2.8, 300 * _MB),
    "1000 MB gz": (2.5, None),
}
"""What is run → seconds and bytes allowed."""
_REFERENCE = "import numpy"
_CPU_OF_REFERENCE = {"tiny": 1.4, "tiny, verdict only": 1.4}
"""What is run → CPU time allowed, in that of importing NumPy in the same rounds: true on any machine."""
_OF_TEXT = {
    "json.loads": ("import json, sys; json.loads(open(sys.argv[1], 'rb').read())", ".json", 200, 1 / 9),
    "inflate": (
        "import sys; from isal import igzip; f = igzip.open(sys.argv[1])\nwhile f.read(1 << 20): pass",
        "",
        1000,
        4,
    ),
    "HTA": (
        "import sys, hta.trace_analysis as hta; hta.TraceAnalysis({0: sys.argv[1]}).get_temporal_breakdown(False)",
        "",
        200,
        1 / 40,
    ),
}
"""Reference on the same text → its program, the file that it reads (plain or packed), and from so many MB on the CPU
time allowed to the default report, in that of the reference."""
_LOADED_MB = 400
"""Larger texts are not given to references that take five times as much memory: all but inflating."""
_QUIET_OF_HTA = 1 / 50
"""CPU time allowed to the verdict alone, in that of HTA where it is installed."""
_BASE, _PER_BYTE = 60 * _MB, 0.29
"""Memory allowed: so much, and for each byte of the text."""
_TRACES = ("gpu_two_ranks/rank0.json.gz", "cpu_slow_loader/trace.json.gz")
"""What is tiled by default: many kernels, and the stacks of a program in Python."""
_EXPONENT = 1.05
"""Largest growth of CPU time from the smallest text to the largest, as a power of the size."""


def _line(label: str, runs: list[Spent]) -> str:
    wall = statistics.median(run.wall for run in runs)
    cpu = statistics.median(run.cpu for run in runs)
    peak = statistics.median(run.peak for run in runs)
    return f"{label:24}{wall:9.3f}{cpu:9.3f}{peak / _MB:9.0f}"


def _cases(folder: Path, trace: Path, sizes: list[float], *, only_reports: bool) -> dict[str, list[str]]:
    """What is run → its arguments; tiles the trace to every size."""
    from tests.benchmarks import child

    tiny = str(ROOT / "sample_traces/gpu_two_ranks/rank0.json.gz")
    cases = {"--help": ["--help"], "tiny": [tiny], "tiny, verdict only": [tiny, "-q"]}
    for megabytes in sizes:
        packed, plain = (folder / f"{megabytes:g}{suffix}" for suffix in (".json.gz", ".json"))
        child.tiled(trace, megabytes, packed)
        child.tiled(trace, megabytes, plain)
        cases[f"{megabytes:g} MB gz"] = [str(packed)]
        cases[f"{megabytes:g} MB plain"] = [str(plain)]
        cases[f"{megabytes:g} MB gz, verdict only"] = [str(packed), "-q"]
        if only_reports:
            continue
        cases[f"{megabytes:g} MB gz compared"] = ["compare", str(packed), str(packed)]
        cases[f"{megabytes:g} MB gz to xlsx"] = [str(packed), "-o", str(folder / "report.xlsx")]
    return cases


def _references(folder: Path, sizes: list[float]) -> dict[str, list[str]]:
    """What else is run on the tiles, as commands."""
    return {
        f"{mb:g} MB {name}": [sys.executable, "-c", program, str(folder / f"{mb:g}{plain or '.json.gz'}")]
        for mb in sizes
        for name, (program, plain, _, _) in _OF_TEXT.items()
        if (name == "inflate" or mb <= _LOADED_MB) and (name != "HTA" or importlib.util.find_spec("hta"))
    }


def _measure(cases: dict[str, list[str]], references: dict[str, list[str]], rounds: int) -> dict[str, list[Spent]]:
    """Every command once a round, and the reference."""
    from tests.benchmarks import child

    commands = {label: [*_COMMAND, *arguments] for label, arguments in cases.items()}
    commands |= references
    commands[_REFERENCE] = [sys.executable, "-c", _REFERENCE]
    for command in commands.values():
        child.run(command)  # compiles the modules that it needs
    runs: dict[str, list[Spent]] = {label: [] for label in commands}
    for _ in range(rounds):
        for label, spent in runs.items():
            spent.append(child.run(commands[label]))
    return runs


def _ratio(runs: dict[str, list[Spent]], label: str, reference: str = _REFERENCE) -> float:
    """CPU time in that of a reference: the median of the rounds, in each of which both were run."""
    return statistics.median(run.cpu / of.cpu for run, of in zip(runs[label], runs[reference], strict=True))


def _of_text(runs: dict[str, list[Spent]], sizes: list[float]) -> Iterator[tuple[str, float, float | None]]:
    """What large texts are measured by, the measure, and its bar if it has one at that size."""
    for mb in sizes:
        label = f"{mb:g} MB gz"
        for name, (_, _, least, most) in _OF_TEXT.items():
            if f"{mb:g} MB {name}" in runs:
                bar = most if mb >= least else None
                yield f"{label}: CPU time in that of {name}", _ratio(runs, label, f"{mb:g} MB {name}"), bar
        if f"{mb:g} MB HTA" in runs:
            quiet = f"{label}, verdict only"
            yield f"{quiet}: CPU time in that of HTA", _ratio(runs, quiet, f"{mb:g} MB HTA"), _QUIET_OF_HTA
        for case in (label, f"{mb:g} MB plain"):
            peak = statistics.median(run.peak for run in runs[case])
            yield f"{case}: memory in that allowed", peak / (_BASE + _PER_BYTE * mb * _MB), 1.0
    small, large = (statistics.median(run.cpu for run in runs[f"{mb:g} MB gz"]) for mb in (min(sizes), max(sizes)))
    if max(sizes) > min(sizes):
        power = math.log(large / small) / math.log(max(sizes) / min(sizes))
        yield f"{min(sizes):g} to {max(sizes):g} MB gz: CPU time grows with the size to the power of", power, _EXPONENT


def _broken(runs: dict[str, list[Spent]], sizes: list[float]) -> list[str]:
    broken = [f"{what} {value:.2f} > {bar:.2f}" for what, value, bar in _of_text(runs, sizes) if bar and value > bar]
    for label, (seconds, memory) in _GOALS.items():
        if label not in runs:
            continue
        wall = statistics.median(run.wall for run in runs[label])
        peak = statistics.median(run.peak for run in runs[label])
        if wall > seconds:
            broken.append(f"{label}: {wall:.2f} s > {seconds} s")
        if memory is not None and peak > memory:
            broken.append(f"{label}: {peak / _MB:.0f} MB > {memory / _MB:.0f} MB")
    for label, most in _CPU_OF_REFERENCE.items():
        if (ratio := _ratio(runs, label)) > most:
            broken.append(f"{label}: {ratio:.2f} times the CPU time of {_REFERENCE} > {most}")
    return broken


def main() -> None:
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__)
    every = [ROOT / "sample_traces" / name for name in _TRACES]
    parser.add_argument("--trace", type=Path, nargs="+", default=every, help="what is tiled, one after the other")
    parser.add_argument(
        "--mb", type=float, nargs="+", default=[20, 200], help="sizes of the text; 20 … 4000 show growth"
    )
    parser.add_argument("--only-reports", action="store_true", help="no comparison and no workbook, for large texts")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="fail where a goal is missed")
    parser.add_argument("--smoke", action="store_true", help="tiny input, one round: does it run at all")
    options = parser.parse_args()
    sizes, rounds = ([2.0], 1) if options.smoke else (options.mb, options.rounds)
    broken: list[str] = []
    for trace in options.trace:
        with tempfile.TemporaryDirectory() as folder:
            cases = _cases(Path(folder), trace, sizes, only_reports=options.only_reports)
            runs = _measure(cases, _references(Path(folder), sizes), rounds)
        print(f"whole process, median of {rounds} interleaved runs, {trace.parent.name}/{trace.name} tiled")
        print(f"{'':24}{'wall s':>9}{'CPU s':>9}{'MB peak':>9}")
        for label, spent in runs.items():
            print(_line(label, spent))
        for label in _CPU_OF_REFERENCE:
            print(f"{label}: {_ratio(runs, label):.2f} times the CPU time of {_REFERENCE}")
        for what, value, bar in _of_text(runs, sizes):
            print(f"{what} {value:.3g}" + (f" (at most {bar:.3g})" if bar else ""))
        broken += [f"{trace.parent.name}, {each}" for each in _broken(runs, sizes)]
    if options.check and broken:
        sys.exit("goals missed:\n" + "\n".join(broken))


if __name__ == "__main__":
    main()
