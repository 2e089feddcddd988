"""From the summaries of thousands of ranks to a report: `python tests/benchmarks/bench_many.py [RANKS …]` (Linux).

Each number of ranks in a process of its own: CPU time and memory of choosing ranks and comparing all, and of writing
the report, whose sizes are printed. No file is read: the summaries are those of `tests.ranks.fleet`, every rank with
numbers of its own, and the split of each is that of one small trace.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIZES = (8, 64, 256, 1024, 4096, 16384)
_SECONDS, _MB = 20, 1000
"""Goals for 16,384 ranks."""


def _peak() -> float:
    """MB of this process, the most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(count: int) -> None:
    from tests.ranks.fleet import MS, fleet_summaries, late_fleet
    from tests.ranks.simulated import traces, workload
    from traceanalyze.analyses.options import Options
    from traceanalyze.pipeline.recordings import rank_summary
    from traceanalyze.pipeline.run_report import run_report, side_by_side
    from traceanalyze.ranks.compare import compare_ranks
    from traceanalyze.ranks.overview import worth_full
    from traceanalyze.ranks.results import MANY
    from traceanalyze.readers.runs import group_runs
    from traceanalyze.rules.evaluate import plan

    (trace, _) = traces(workload())
    small = rank_summary(trace, Options())
    ranks = []
    for each in fleet_summaries(late_fleet(count, extra={count - 3: MS}, layers=12)):
        origin = trace.origin._replace(rank=each.rank, path=f"rank{each.rank}.json", host=each.host)
        analysis = small.analysis._replace(trace=replace(trace, origin=origin))
        ranks.append(small._replace(analysis=analysis, compared=each))
    calls, made, rules = len(ranks[0].summary.collectives), _peak(), plan()
    begin = time.process_time()
    (run,) = group_runs([rank.analysis.trace for rank in ranks])
    known = compare_ranks([one.summary for one in ranks]) if count > MANY else None
    chosen = dict.fromkeys(range(count), "") if known is None else worth_full(known)
    ranks = [rank._replace(why=chosen.get(at)) for at, rank in enumerate(ranks)]
    found = side_by_side(ranks, rules, known)
    reduced, memory = time.process_time() - begin, _peak()
    begin, sizes = time.process_time(), {}
    report = run_report(run, found)
    built = time.process_time() - begin
    assert f"Rank {count - 3} makes the others wait" in report.verdict
    with tempfile.TemporaryDirectory() as name:
        for ending in ("txt", "html", "xlsx", "json", "md"):
            path = Path(name) / f"report.{ending}"
            report.write(path)
            sizes[ending] = path.stat().st_size // 1000
    written = time.process_time() - begin - built
    print(
        f"{count:6} ranks, {calls} collectives each: reduce {reduced:6.2f} s, tables {built:6.2f} s, 5 formats "
        f"{written:6.2f} s; MB: {made:.0f} made, {memory:.0f} reduced, {_peak():.0f} written; kB: {sizes}",
        flush=True,
    )
    if count == SIZES[-1] and (reduced + built > _SECONDS or memory > _MB):
        sys.exit("goals missed")


def main() -> None:
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] == ["--one"]:
        one(int(sys.argv[2]))
        return
    for count in map(int, sys.argv[1:] or SIZES):
        subprocess.run([sys.executable, __file__, "--one", str(count)], check=True)


if __name__ == "__main__":
    main()
