"""Two analysed sides to everything this version says about their difference."""

from collections.abc import Callable, Iterator

from traceanalyze.analyses.context import Context
from traceanalyze.comparison.apis import APIS, api_pairs
from traceanalyze.comparison.attribution import headline, parts
from traceanalyze.comparison.caveats import caveats, unmatched_table
from traceanalyze.comparison.collectives import COLLECTIVES, collective_pairs
from traceanalyze.comparison.kernels import KERNEL_TYPES, KERNELS, kernel_pairs, kernel_type_pairs
from traceanalyze.comparison.memory import MEMORY, MEMORY_CALLS, memory_call_pairs, memory_pairs
from traceanalyze.comparison.modules import module_pairs, module_tables
from traceanalyze.comparison.operators import CALLS, operator_pairs, operator_totals, operators_table
from traceanalyze.comparison.overall import overall_table, parts_table, time_rows
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.peaks import peak_rows, peak_table, rate_rows, rate_table
from traceanalyze.comparison.reasons import causes_table, reasons
from traceanalyze.comparison.results import Comparison, Pairs, Part
from traceanalyze.comparison.side import CompareOptions, Side
from traceanalyze.model.table import Table


def compare_sides(base: Side, candidate: Side, options: CompareOptions | None = None) -> Comparison:
    """Compare two sides; sections that the options leave out have no tables and cost nothing."""
    whole = parts(base, candidate)
    tables = {table.key: table for table in _tables(base, candidate, whole, options or CompareOptions())}
    return Comparison(base.info, candidate.info, whole, tables, caveats(base, candidate))


def _tables(base: Side, candidate: Side, whole: tuple[Part, ...], options: CompareOptions) -> Iterator[Table]:
    sums = ((each.base, each.candidate) for each in headline(whole))
    known = ((old, new) for old, new in sums if isinstance(old, int) and isinstance(new, int))
    per, steps = PerStep.of(base.info, candidate.info).over(known), (base.info.step_time, candidate.info.step_time)

    def compared(
        name: str, how: Callable[[Context, Context, CompareOptions], Pairs], *, wanted: bool = True
    ) -> Pairs | None:
        return how(base.context, candidate.context, options) if wanted and name in options.sections else None

    yield parts_table(whole, steps, per)
    if "profiling" in options.sections:
        yield overall_table(time_rows(base, candidate, whole), steps, per)
        yield from peak_table(peak_rows(base, candidate))
        yield from rate_table(rate_rows(base, candidate))
    yield causes_table(reasons(base, candidate, options), per)
    collectives = compared("communication", collective_pairs)
    if collectives is not None:
        yield COLLECTIVES.fill(collectives, per)
    modules = compared("operator", module_pairs, wanted=options.modules)
    if modules is not None:
        yield from module_tables(modules, per)
    operators = compared("operator", operator_totals)
    if operators is not None:
        yield operators_table(operators, per)
    calls = compared("operator", operator_pairs, wanted=options.details)
    kernels = compared("kernel", kernel_pairs)
    for section, pairs in (
        (CALLS, calls),
        (MEMORY, compared("memory", memory_pairs)),
        (MEMORY_CALLS, compared("memory", memory_call_pairs, wanted=options.details)),
        (APIS, compared("api", api_pairs)),
        (KERNELS, kernels),
        (KERNEL_TYPES, compared("kernel", kernel_type_pairs)),
    ):
        if pairs is not None:
            yield section.fill(pairs, per)
    yield from unmatched_table(operators, calls, modules, collectives, kernels, per)
