"""Which steps count on all ranks of a run: the numbers of its ranks are about the same steps (definitions §18)."""

from collections.abc import Collection, Mapping, Sequence
from itertools import compress

from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.steady import StepKey, step_keys
from traceanalyze.model.trace import Trace
from traceanalyze.readers.runs import group_runs

_FEWEST = 2
"""Where fewer steps would be left for all, each rank keeps its own."""


def disagreeing(
    traces: Sequence[Trace], analyses: Mapping[str, RankAnalysis], lost: Collection[str] = ()
) -> dict[str, frozenset[StepKey]]:
    """Recordings that count steps which another rank of their run leaves out, by path, and what their run counts.

    A step counts if it does on every whole recording that has it. `lost` is as for `group_runs`.
    """
    if len(traces) < 2 or len({_counted(one) for one in analyses.values()}) < 2:
        return {}
    found: dict[str, frozenset[StepKey]] = {}
    for run in group_runs([trace for trace in traces if trace.origin.path in analyses], lost):
        ranks = {trace.origin.path: analyses[trace.origin.path] for trace in run.traces}
        whole = [one for one in ranks.values() if one.trace.read.whole]
        shown = frozenset().union(*(step_keys(one.steps.name) for one in whole))
        left_out = frozenset().union(*({*step_keys(one.steps.name)} - _counted(one) for one in whole))
        agreed = shown - left_out
        for path, one in ranks.items():
            own = _counted(one)
            if own & left_out and len(own & agreed) >= _FEWEST:
                found[path] = agreed
    return found


def _counted(one: RankAnalysis) -> frozenset[StepKey]:
    return frozenset(compress(step_keys(one.steps.name), one.steps.counted.tolist()))
