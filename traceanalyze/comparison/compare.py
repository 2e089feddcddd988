"""Two analysed sides to everything this version says about their difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from traceanalyze.analyses.context import Context
from traceanalyze.comparison.attribution import parts
from traceanalyze.comparison.caveats import caveats, unmatched, unmatched_table
from traceanalyze.comparison.collectives import COLLECTIVES, collective_pairs
from traceanalyze.comparison.kernels import KERNEL_TYPES, KERNELS, kernel_pairs, kernel_type_pairs
from traceanalyze.comparison.memory import MEMORY, MEMORY_CALLS, memory_call_pairs, memory_pairs
from traceanalyze.comparison.modules import module_pairs, module_tables
from traceanalyze.comparison.operators import APIS, CALLS, api_pairs, operator_pairs, operator_totals, operators_table
from traceanalyze.comparison.overall import overall, overall_tables, parts_table
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.reasons import causes_table, contributions
from traceanalyze.comparison.results import Comparison, Pairs
from traceanalyze.comparison.side import CompareOptions, Side
from traceanalyze.model.table import Table


def compare_sides(base: Side, candidate: Side, options: CompareOptions | None = None) -> Comparison:
    """Compare two sides; sections that were not asked for are None and cost nothing."""
    chosen = options or CompareOptions()

    def section(
        name: str, compared: Callable[[Context, Context, CompareOptions], Pairs], *, wanted: bool = True
    ) -> Pairs | None:
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


def tables(found: Comparison, per: PerStep) -> Iterator[Table]:
    """Tables of the sections that were asked for, in reading order."""
    yield parts_table(found, per)
    yield from overall_tables(found, per)
    yield causes_table(found, per)
    if found.collectives is not None:
        yield COLLECTIVES.fill(found.collectives, per)
    if found.modules is not None:
        yield from module_tables(found.modules, per)
    if found.operators is not None:
        yield operators_table(found.operators, per)
    for section, pairs in (
        (CALLS, found.operator_pairs),
        (MEMORY, found.memory),
        (MEMORY_CALLS, found.memory_calls),
        (APIS, found.apis),
        (KERNELS, found.kernels),
        (KERNEL_TYPES, found.kernel_types),
    ):
        if pairs is not None:
            yield section.fill(pairs, per)
    if found.unmatched:
        yield unmatched_table(found.unmatched, per)
