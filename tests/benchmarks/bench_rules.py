"""What rules and replays take beside the analyses: `python tests/benchmarks/bench_rules.py [--help]`."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TRACES = ("gpu_launch_bound/trace.json.gz", "gpu_two_ranks/rank0.json.gz", "ladder_cpu/speed/0_baseline/trace.json.gz")
_MOST = 0.25
"""CPU time of rules and replays allowed, in that of the analyses of the same process: true on any machine."""


def _once(trace: Path) -> tuple[float, float]:
    """CPU seconds of all analyses of a trace, and of all rules with their replays."""
    import traceanalyze
    from traceanalyze.analyses.analyze import analyze_context, context_of
    from traceanalyze.analyses.options import Options
    from traceanalyze.rules.evaluate import evaluate, plan
    from traceanalyze.rules.facts import Facts

    (read,) = traceanalyze.load(trace).traces
    begin = time.process_time()
    context = context_of(read, Options())
    analysis = analyze_context(context)
    between = time.process_time()
    evaluate(Facts(analysis, context), plan())
    return between - begin, time.process_time() - between


def _measure(traces: list[Path], rounds: int) -> dict[Path, list[tuple[float, float]]]:
    """Every trace once a round, in a process of its own that has run a tiny one before: nothing is imported anew."""
    from tests.benchmarks import child

    runs: dict[Path, list[tuple[float, float]]] = {trace: [] for trace in traces}
    for _ in range(rounds):
        for trace, found in runs.items():
            spent = child.run([sys.executable, __file__, "--once", str(trace)])
            found.append(tuple(json.loads(spent.output)))
    return runs


def main() -> None:
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, nargs="+", default=[ROOT / "sample_traces" / name for name in _TRACES])
    parser.add_argument("--mb", type=float, default=200, help="size of the JSON text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="fail where the goal is missed")
    parser.add_argument("--smoke", action="store_true", help="tiny input, one round: does it run at all")
    parser.add_argument("--once", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once is not None:
        for name in _TRACES:
            _once(ROOT / "sample_traces" / name)
        print(json.dumps(_once(options.once)))
        return
    from tests.benchmarks import child

    size, rounds = (2.0, 1) if options.smoke else (options.mb, options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        tiled = {Path(folder) / f"{at}.json.gz": trace for at, trace in enumerate(options.trace)}
        for target, trace in tiled.items():
            child.tiled(trace, size, target)
        runs = _measure(list(tiled), rounds)
    print(f"CPU time, median of {rounds} interleaved runs, tiled to {size:g} MB")
    print(f"{'':40}{'analyses s':>12}{'rules s':>10}{'ratio':>8}")
    ratios = {}
    for target, found in runs.items():
        label = "/".join(tiled[target].parts[-3:])
        ratios[label] = statistics.median(rules / analyses for analyses, rules in found)
        analyses, rules = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"{label[-39:]:40}{analyses:12.3f}{rules:10.3f}{ratios[label]:8.2f}")
    broken = [f"{label}: {ratio:.2f} > {_MOST}" for label, ratio in ratios.items() if ratio > _MOST]
    if options.check and broken:
        sys.exit("goals missed:\n" + "\n".join(broken))


if __name__ == "__main__":
    main()
