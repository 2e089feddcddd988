"""Memory snapshots: reading and the whole analysis against plain `pickle.load`, each in a process of its own.

    python tests/benchmarks/bench_memory.py [--events 1000000] [--depth 63] [--rounds 3] [--smoke]

The snapshot is a steady step of the simulated training loop, repeated; every call, of malloc and of free, has a stack
object of its own, as in real files (context "all").
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_READERS = {
    "pickle.load": "import pickle; pickle.load(open({path!r}, 'rb'))",
    "traceanalyze, read": (
        "from traceanalyze.readers.snapshot import read_snapshot; from traceanalyze.readers.source import Source; "
        "read_snapshot(Source({path!r}, size={size}))"
    ),
    "traceanalyze, whole analysis": "import traceanalyze; r = traceanalyze.memory({path!r}); "
    "assert r.tables['memory_check'].column('reconciled') == (True,)",
    "torch _memory_viz stats": (
        "import pickle; from torch.cuda._memory_viz import segsum; segsum(pickle.load(open({path!r}, 'rb')))"
    ),
}
_CHILD = """
import json, resource
{code}
usage = resource.getrusage(resource.RUSAGE_SELF)
try:
    # What getrusage tells begins with the peak of the process that started this one.
    peak = next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM'))
except OSError:
    peak = usage.ru_maxrss
print(json.dumps([usage.ru_utime + usage.ru_stime, peak / 1024]))
"""
GOAL_READING, GOAL_WHOLE, GOAL_PEAK = 0.25, 0.45, 0.32
"""Against `pickle.load` in the same run: CPU of reading, CPU and peak memory of the whole."""
GOAL_CPU, GOAL_MEMORY = 1.5, 250
"""CPU seconds and MB of the whole for a million events (performance.md)."""


def snapshot(events: int, depth: int) -> dict[str, Any]:
    """A snapshot with at least this many events and stacks of this depth."""
    sys.path.insert(0, str(ROOT))
    from tests.simulate.allocator.dump import dump
    from tests.simulate.allocator.pool import Allocator
    from tests.simulate.allocator.programs import Loop, train

    allocator = train(Loop(steps=8), Allocator())
    begins = [note["time_us"] for note in allocator.notes if note["stage"] == "START"]
    last = [event for event in allocator.events if begins[-2] < event["time_us"] <= begins[-1]]
    span = begins[-1] - begins[-2]
    package = "/usr/lib/python3.12/site-packages/lib"
    below = [{"name": f"call_{i}", "filename": f"{package}/m{i}.py", "line": i} for i in range(depth)]
    found = dump(allocator)
    kept = [event for event in allocator.events if event["time_us"] <= begins[-1]]
    rest = [event for event in allocator.events if event["time_us"] > begins[-1]]
    repeats = max((events - len(kept) - len(rest)) // len(last), 0)
    tiled = []
    for number in range(repeats):
        frames: list[dict[str, Any]] | None = None
        for event in last:
            frames = frames or (event.get("frames") or []) + below
            tiled.append({**event, "time_us": event["time_us"] + (number + 1) * span, "frames": frames})
            if event["action"] in {"alloc", "free_completed"}:
                frames = None  # the call is over
    shift = repeats * span
    late = [{**event, "time_us": event["time_us"] + shift} for event in rest]
    found["device_traces"] = [[*kept, *tiled, *late], []]
    found["external_annotations"] = []
    return found


def measure(path: Path, rounds: int) -> dict[str, tuple[float, float]]:
    """Median CPU seconds and peak MB of every reader, rounds interleaved."""
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in _READERS}
    for _ in range(rounds):
        for name, code in _READERS.items():
            child = _CHILD.format(code=code.format(path=str(path), size=path.stat().st_size))
            done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, cwd=ROOT, check=False)
            if done.returncode == 0:
                runs[name].append(tuple(json.loads(done.stdout)))
            elif not name.startswith("torch"):
                raise SystemExit(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    return {
        name: (statistics.median(cpu for cpu, _ in found), statistics.median(peak for _, peak in found))
        for name, found in runs.items()
        if found
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--depth", type=int, default=63)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="fail when the goals are missed")
    parser.add_argument("--smoke", action="store_true", help="small and once: does it run?")
    given = parser.parse_args()
    if given.smoke:
        given.events, given.depth, given.rounds = 20_000, 10, 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        made = snapshot(given.events, given.depth)
        path.write_bytes(pickle.dumps(made, protocol=4))
        count = len(made["device_traces"][0])
        del made
        print(f"{count:,} events, stacks {given.depth} deep, {path.stat().st_size / 1e6:.0f} MB")
        found = measure(path, given.rounds)
    base = found["pickle.load"]
    for name, (cpu, peak) in found.items():
        print(f"{name:<30} {cpu:7.2f} s CPU ({cpu / base[0]:5.2f}×)  {peak:7.0f} MB ({peak / base[1]:4.2f}×)")
    if given.check:
        whole = found["traceanalyze, whole analysis"]
        reached = [found["traceanalyze, read"][0] / base[0], *(one / of for one, of in zip(whole, base, strict=True))]
        reached += [each * 1e6 / count for each in whole]
        goals = GOAL_READING, GOAL_WHOLE, GOAL_PEAK, GOAL_CPU, GOAL_MEMORY
        if any(each > goal for each, goal in zip(reached, goals, strict=True)):
            raise SystemExit(f"the goals are missed: {reached} instead of {goals}")


if __name__ == "__main__":
    main()
