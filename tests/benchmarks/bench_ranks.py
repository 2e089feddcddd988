"""Several ranks at once against one at a time: `python tests/benchmarks/bench_ranks.py [--help]` (Linux).

Memory of all processes together (shared pages counted once) in units of the largest rank's own run a process, and time
in units of the single runs shared out over the cores; with an empty cache, and a second time with what is in it.

With `--many 1024` so many ranks of the least size, no two alike, in one process: CPU time of the default report with an
empty cache, the full analyses of some included, and from the cache; what a rank takes in units of `json.loads` of its
text and of inflating it, measured in the same run; and what is kept of a rank, from half as many to all of them. With
`--plain` of text that is not compressed, as PyTorch writes it unless it is asked to: 1024 ranks take 32 GB of disk.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_COMMAND = [sys.executable, "-m", "traceanalyze"]
_MB = 1_000_000
_EVERY_S = 0.02
_WALL_GOAL, _MEMORY_GOAL, _AGAIN_GOAL_S = 1.2, 1.0, 2.0
_CPU_GOAL, _AGAIN_GOAL, _KEPT_GOAL = 1 / 12, 1 / 46, 60_000
"""Of many ranks: CPU time of one in units of `json.loads` of it, which takes 0.37 s where 30 ms are wanted, and 2 s for
256 from the cache; bytes of one."""
_FULL_GOAL = 1024
"""Ranks from which on the time is judged: the full analyses of 32 are shared out over all."""


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


_KERNEL = re.compile(rb'("cat": "kernel"[^{}]*?"dur": \d+(?:\.\d*)?)\d\b')
_PIECES, _KINDS = 16, 4
_YARDSTICKS = """
import gzip, json, sys, time
from isal import igzip
def cpu(use):
    begin = time.process_time()
    use()
    return time.process_time() - begin
def inflate():
    with igzip.open(sys.argv[1]) as file:
        while file.read(1 << 18):
            pass
text = gzip.open(sys.argv[1]).read()
print(min(cpu(inflate) for _ in range(5)), cpu(lambda: json.loads(text)))
"""


def distinct(source: Path, folder: Path, count: int, *, plain: bool = False) -> None:
    """Ranks of one job as copies of a trace whose kernels take some nanoseconds more or less, on no two the same ones.

    Each is put together from pieces that are compressed once, a gzip member each, unless they are to be `plain`.
    """
    text, draw = gzip.decompress(source.read_bytes()), random.Random(0)
    begin = text.index(b"[", text.index(b'"traceEvents"')) + 1
    head, size = text[:begin], (len(text) - begin) // _PIECES + 1
    pieces = [text[at : at + size] for at in range(begin, len(text), size)]
    packed = bytes if plain else partial(gzip.compress, compresslevel=6)
    kinds = [[packed(_KERNEL.sub(rb"\g<1>%d" % (2 * kind), each)) for kind in range(_KINDS)] for each in pieces]
    folder.mkdir()
    for rank in range(count):
        own = re.sub(rb'"rank": \d+, "world_size": \d+', b'"rank": %d, "world_size": %d' % (rank, count), head)
        body = b"".join(map(draw.choice, kinds))
        (folder / f"rank{rank}.json{'' if plain else '.gz'}").write_bytes(packed(own) + body)


_MAKE = """
import sys
from pathlib import Path
from tests.benchmarks.bench_ranks import distinct
distinct(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), plain=sys.argv[4] == "True")
"""


def many(source: Path, home: Path, count: int, *, plain: bool) -> bool:
    """Whether the goals for many ranks are reached."""
    from tests.benchmarks import child

    measure, sticks, spent = [sys.executable, "-c", _YARDSTICKS, str(source)], [], {}
    for ranks in (count // 2, count):
        child.run([sys.executable, "-c", _MAKE, str(source), str(home / str(ranks)), str(ranks), str(plain)])
        for run in ("first", "again"):
            sticks.append([float(each) for each in child.run(measure).output.split()])
            spent[ranks, run] = child.run(
                [*_COMMAND, str(home / str(ranks)), "--workers", "1", "--cache", str(home / f".{ranks}")]
            )
    inflate, loads = map(statistics.median, zip(*sticks, strict=True))
    found = {}
    for run in ("first", "again"):
        cpu, (less, more) = spent[count, run].cpu / count, (spent[ranks, run].peak for ranks in (count // 2, count))
        found[run] = cpu / loads, (more - less) / (count - count // 2)
        print(
            f"{run}  CPU {1e3 * cpu:6.2f} ms a rank = {cpu / inflate:5.2f} of inflating it = {cpu / loads:6.4f} of "
            f"json.loads; {found[run][1] / 1000:.0f} kB a rank more than {count // 2}; {spent[count, run].wall:.1f} s"
        )
    print(f"goals: {_CPU_GOAL:.4f} and {_AGAIN_GOAL:.4f} of json.loads, {_KEPT_GOAL / 1000:.0f} kB")
    slow = count >= _FULL_GOAL and found["first"][0] > _CPU_GOAL
    return not slow and found["again"][0] <= _AGAIN_GOAL and all(kept <= _KEPT_GOAL for _, kept in found.values())


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from tests.benchmarks import child

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, default=ROOT / "sample_traces/gpu_two_ranks/rank0.json.gz")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--mb", type=float, nargs=2, default=[20, 60], help="least and most MB of JSON text of a rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--many", type=int, metavar="RANKS", help="so many distinct ranks instead")
    parser.add_argument("--plain", action="store_true", help="these not compressed")
    parser.add_argument("--smoke", action="store_true", help="two small ranks, one round: does it run at all")
    parser.add_argument("--check", action="store_true", help="fail where a goal is missed")
    options = parser.parse_args()
    if options.smoke:
        options.ranks, options.mb, options.rounds = 2, [2.0, 2.0], 1
    with tempfile.TemporaryDirectory() as name:
        if options.many or options.smoke:
            source = Path(name) / "source.json.gz"
            child.tiled(options.trace, options.mb[0] if options.many else 0.5, source)
            if not many(source, Path(name), options.many or 4, plain=options.plain) and options.check:
                sys.exit("goals missed")
            if options.many:
                return
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
