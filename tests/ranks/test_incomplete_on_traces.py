"""Some of the ranks of real runs: what is said of them is what the whole set tells, or a bound of it."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest

from traceanalyze.analyses.options import Options
from traceanalyze.model.table import NotMeasured
from traceanalyze.pipeline.recordings import rank_summary
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.sources import expand
from traceanalyze.rules.across_ranks import evaluate_run
from traceanalyze.rules.evaluate import plan

RUNS = {
    "dlrm": "kineto/param/dlrm_8rank",
    "nanogpt": "kineto/modded_nanogpt/2025-12-11_NorMuonOptimsAndFixes",
    "torchrec": "pairs/torchrec_ladder/sst_long_a2a_optimizer_3",
}


@cache
def summaries(folder):
    found = [rank_summary(read_trace(one), Options()).summary for one in expand([str(folder)]).sources]
    return sorted(found, key=lambda one: one.rank)


def late(cluster):
    return {rank for one in evaluate_run(cluster, plan()).findings if one.rule == "RNK101" for rank in one.scope.ranks}


@pytest.mark.parametrize("name", RUNS)
def test_of_some_ranks_of_a_run_nothing_is_told_that_the_whole_run_contradicts(name, shared_traces):
    every = summaries(shared_traces / RUNS[name])
    if len(every) < 4:
        pytest.skip("not all ranks are here")
    whole = compare_ranks(every)
    waits = dict(zip((one.rank for one in every), whole.exposed_waits.by_step.sum(axis=1), strict=True))
    sets = [*combinations(every, len(every) - 1), every[::2], every[1::2], every[:2], every[-2:]]
    for some in sets:
        cluster = compare_ranks(some)
        assert cluster.missing_ranks == tuple(sorted(waits.keys() - {one.rank for one in some}))
        found = cluster.exposed_waits
        if cluster.steps != whole.steps or isinstance(found, NotMeasured):
            continue
        assert found.bound
        assert cluster.stragglers == NotMeasured("ranks_missing")
        assert late(cluster) == set()
