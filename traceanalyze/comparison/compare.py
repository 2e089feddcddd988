"""Two analysed sides to everything this version says about their difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from traceanalyze.comparison.attribution import parts
from traceanalyze.comparison.caveats import caveats, unmatched
from traceanalyze.comparison.collectives import collective_pairs
from traceanalyze.comparison.kernels import kernel_pairs, kernel_type_pairs
from traceanalyze.comparison.memory import memory_call_pairs, memory_pairs
from traceanalyze.comparison.modules import module_pairs
from traceanalyze.comparison.operators import api_pairs, operator_pairs, operator_totals
from traceanalyze.comparison.overall import overall
from traceanalyze.comparison.reasons import contributions
from traceanalyze.comparison.results import Comparison
from traceanalyze.comparison.side import CompareOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceanalyze.analyses.context import Context
    from traceanalyze.comparison.side import Side

T = TypeVar("T")


def compare_sides(base: Side, candidate: Side, options: CompareOptions | None = None) -> Comparison:
    """Compare two sides; sections that were not asked for are None and cost nothing."""
    chosen = options or CompareOptions()

    def section(
        name: str, compared: Callable[[Context, Context, CompareOptions], T], *, wanted: bool = True
    ) -> T | None:
        if name not in chosen.sections or not wanted:
            return None
        return compared(base.context, candidate.context, chosen)

    whole = parts(base, candidate)
    operators = section("operator", operator_totals)
    pairs = section("operator", operator_pairs, wanted=chosen.details)
    modules = section("operator", module_pairs, wanted=chosen.modules)
    collectives = section("communication", collective_pairs)
    kernels = section("kernel", kernel_pairs)
    return Comparison(
        base=base.info,
        candidate=candidate.info,
        parts=whole,
        contributions=contributions(base, candidate, chosen),
        overall=overall(base, candidate, whole) if "profiling" in chosen.sections else None,
        operators=operators,
        operator_pairs=pairs,
        modules=modules,
        collectives=collectives,
        kernels=kernels,
        kernel_types=section("kernel", kernel_type_pairs, wanted=chosen.kernel_types),
        apis=section("api", api_pairs),
        memory=section("memory", memory_pairs),
        unmatched=unmatched(operators, pairs, modules, collectives, kernels),
        caveats=caveats(base, candidate),
        memory_calls=section("memory", memory_call_pairs, wanted=chosen.details),
    )
