"""What the rules say about a simulated run, one rank and all ranks together, as the product would tell it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from tests.simulate.compare_npu import npu_trace
from tests.simulate.simulate import simulate
from tests.simulate.writers.ascend_layouts import AscendLayout
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import LAYOUTS, TODAY
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.summary import summarize
from traceanalyze.readers.kineto import read_text
from traceanalyze.rules.across_ranks import drop_rank_rules, evaluate_run, subtract_waiting
from traceanalyze.rules.evaluate import evaluate, plan
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Severity

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule
    from tests.simulate.workload import Workload
    from traceanalyze.model.trace import Trace
    from traceanalyze.rules.finding import Finding

RULES = plan()
"""All of them, with their defaults."""


@dataclass(frozen=True)
class Verdict:
    """Findings by rank, those that save most first, and findings about all ranks."""

    ranks: tuple[tuple[Finding, ...], ...]
    run: tuple[Finding, ...] = ()

    @property
    def loud(self) -> list[str]:
        """Rules of all findings above a note."""
        every = (*self.run, *(one for rank in self.ranks for one in rank))
        return [one.rule for one in every if one.severity is not None and one.severity > Severity.INFO]


@cache
def judge(workload: Workload, layout: str = TODAY.name) -> Verdict:
    """Every rule on every rank: of GPUs from a trace in one of the layouts, of NPUs from the text export."""
    traces = [_trace(schedule, layout) for schedule in simulate(workload)]
    outcomes, summaries = [], []
    for number, trace in enumerate(traces):
        context = Context(trace, Options())
        analysis = analyze_context(context)
        outcomes.append(evaluate(Facts(analysis, context), RULES))
        if len(traces) > 1:
            summaries.append(replace(summarize(context, analysis), rank=number, label=str(number)))
    if not summaries:
        return Verdict((outcomes[0].findings,))
    cluster = compare_ranks(summaries)
    ranks = subtract_waiting([drop_rank_rules(one) for one in outcomes], cluster, RULES)
    return Verdict(tuple(one.findings for one in ranks), evaluate_run(cluster, RULES).findings)


def _trace(schedule: Schedule, layout: str) -> Trace:
    if schedule.workload.device.vendor == "ascend":
        return npu_trace(schedule, AscendLayout())
    return read_text(write(schedule, next(one for one in LAYOUTS if one.name == layout)))
