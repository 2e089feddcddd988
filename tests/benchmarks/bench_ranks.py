"""Several ranks at once against one at a time: `python tests/benchmarks/bench_ranks.py [--help]` (Linux).

Memory of all processes together (shared pages counted once) in units of the largest rank's own run a process, and time
in units of the single runs shared out over the cores; with an empty cache, and a second time with what is in it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_COMMAND = [sys.executable, "-m", "traceanalyze"]
_MB = 1_000_000
_EVERY_S = 0.02
_WALL_GOAL, _MEMORY_GOAL, _AGAIN_GOAL_S = 1.2, 1.0, 2.0


class Watched(NamedTuple):
    """What a command and all processes it started took."""

    wall: float
    peak: int
    """Bytes of all together at the worst moment."""


def watch(command: list[str]) -> Watched:
    """Run a command to its end, looking at the memory of its processes all the time."""
    from tests.benchmarks.child import environment

    begin, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    while process.poll() is None:
        peak = max(peak, sum(_memory(each) for each in _family(process.pid)))
        time.sleep(_EVERY_S)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return Watched(time.perf_counter() - begin, peak)


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for each in found:
        for path in Path(f"/proc/{each}/task").glob("*/children"):
            found.extend(map(int, _text(path).split()))
    return found


def _memory(pid: int) -> int:
    """Proportional set size, bytes; 0 for a process that has ended."""
    lines = _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from tests.benchmarks import child

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, default=ROOT / "sample_traces/gpu_two_ranks/rank0.json.gz")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--mb", type=float, nargs=2, default=[20, 60], help="least and most MB of JSON text of a rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="two small ranks, one round: does it run at all")
    parser.add_argument("--check", action="store_true", help="fail where a goal is missed")
    options = parser.parse_args()
    if options.smoke:
        options.ranks, options.mb, options.rounds = 2, [2.0, 2.0], 1
    with tempfile.TemporaryDirectory() as name:
        paths = [Path(name) / f"trace_rank{rank}.json.gz" for rank in range(options.ranks)]
        least, most = options.mb
        for rank, path in enumerate(paths):
            child.tiled(options.trace, least + (most - least) * rank / max(1, options.ranks - 1), path)
        watch([*_COMMAND, str(paths[0])])  # compiles the modules
        rounds = [
            ([watch([*_COMMAND, str(path)]) for path in paths], *(watch([*_COMMAND, name, *cache]) for _ in range(2)))
            for number in range(options.rounds)
            for cache in [("--cache", f"{name}/.cache{number}")]
        ]
    cores = min(len(os.sched_getaffinity(0)), options.ranks)
    wall = statistics.median(together.wall * cores / sum(one.wall for one in alone) for alone, together, _ in rounds)
    memory = statistics.median(together.peak / max(one.peak for one in alone) / cores for alone, together, _ in rounds)
    again = min(second.wall for _, _, second in rounds)
    print(f"{options.ranks} ranks of {least:g} to {most:g} MB, median of {options.rounds} rounds, {cores} cores")
    print(f"wall   {wall:5.2f} of the single runs shared out over the cores (goal {_WALL_GOAL})")
    print(f"memory {memory:5.2f} of the largest single run a process, all together (goal {_MEMORY_GOAL})")
    print(f"again  {again:5.2f} s with the results of the first run (goal {_AGAIN_GOAL_S})")
    if options.check and (wall > _WALL_GOAL or memory > _MEMORY_GOAL or again > _AGAIN_GOAL_S):
        sys.exit("goals missed")


if __name__ == "__main__":
    main()
