"""Two analysed sides to everything this version says about their difference."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.operators import OUTSIDE_OPS, UNLINKED
from traceanalyze.analyses.memory.recorded import memory
from traceanalyze.analyses.steps.window import rounded
from traceanalyze.comparison import columns
from traceanalyze.comparison.apis import APIS, api_pairs, sync_table
from traceanalyze.comparison.attribution import headline, headline_keys, parts
from traceanalyze.comparison.caveats import caveats
from traceanalyze.comparison.collectives import COLLECTIVES, collective_pairs, link_rates
from traceanalyze.comparison.kernels import KERNEL_TYPES, KERNELS, kernel_pairs, kernel_type_pairs
from traceanalyze.comparison.memory import MEMORY, MEMORY_CALLS, memory_call_pairs, memory_pairs
from traceanalyze.comparison.migration import idle_places, migrated, migration_table
from traceanalyze.comparison.modules import ALL_OPERATORS, OUTSIDE_MODULES, module_pairs, module_tables
from traceanalyze.comparison.operators import CALLS, operator_pairs, operator_totals, operators_table
from traceanalyze.comparison.overall import overall_table, parts_table, time_rows
from traceanalyze.comparison.pairs import PerStep, lacking
from traceanalyze.comparison.reasons import causes_table, chance_of_parts, reasons
from traceanalyze.comparison.results import Comparison, Pair, Pairs, Part, Time
from traceanalyze.comparison.same_work import OTHER_WORK, unmatched_work
from traceanalyze.comparison.side import CompareOptions, Side
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare


def compare_sides(base: Side, candidate: Side, options: CompareOptions | None = None) -> Comparison:
    """Compare two sides; sections that the options leave out have no tables.

    What makes the difference is not ranked where the sides do not do the same work, unless the options say so. Whether
    they do depends on no choice of sections or details.
    """
    whole, chosen = parts(base, candidate), options or CompareOptions()
    contexts, per = (base.context, candidate.context), PerStep.of(base.info, candidate.info)
    work = {section: how(*contexts, chosen) for section, how in _BY_NAME.items()}
    tables = {table.key: table for table in _tables(base, candidate, whole, work, chosen)}
    said = (*unmatched_work(base, candidate, _alone(work, per), chosen), *caveats(base, candidate, chosen))
    if not chosen.rank_anyway and any(each.key in OTHER_WORK for each in said):
        tables["causes"] = replace(tables["causes"], totals=None).missing("other_work")
    return Comparison(base.info, candidate.info, whole, tables, said)


_BY_NAME = {"operators": operator_totals, "modules": module_pairs, "kernels": kernel_pairs}
"""What tells whether both sides do the same work, by section of the work without a partner."""


def _tables(
    base: Side, candidate: Side, whole: tuple[Part, ...], work: Mapping[str, Pairs], options: CompareOptions
) -> Iterator[Table]:
    sums = ((each.base, each.candidate) for each in headline(whole))
    known = ((old, new) for old, new in sums if isinstance(old, int) and isinstance(new, int))
    per, steps = PerStep.of(base.info, candidate.info).over(known), (base.info.step_time, candidate.info.step_time)

    def compared(
        name: str, how: Callable[[Context, Context, CompareOptions], Pairs], *, wanted: bool = True
    ) -> Pairs | None:
        return how(base.context, candidate.context, options) if wanted and name in options.sections else None

    cycles = base.info.cycle, candidate.info.cycle
    # Of parts that a side does not measure nothing is known to be gone or new.
    told = {part.key for part in whole if isinstance(part.base, int) and isinstance(part.candidate, int)}
    every = reasons(base, candidate, options)
    old, new = ({key: why for key, why in side.items() if key[0] in told} for side in every)
    found = old, new
    yield parts_table(whole, steps, per, chance_of_parts(found, headline_keys(whole), per, cycles))
    if "profiling" in options.sections:
        yield overall_table(time_rows(base, candidate, whole), steps, per)
        yield from peak_table(peak_rows(base, candidate))
        yield from rate_table(rate_rows(base, candidate))
    yield causes_table(found, per, cycles)
    if base.partition is not None and candidate.partition is not None:
        yield sync_table(base.context, candidate.context, options, per)
    collectives = compared("communication", collective_pairs)
    if migrated(base, candidate) and "operator" in options.sections:
        idle = idle_places(found, headline_keys(whole), per)
        yield migration_table(base, candidate, whole, collectives, idle, options, per)
    if collectives is not None:
        yield COLLECTIVES.fill(collectives, per)
    named = {f"{section}s": work[f"{section}s"] for section in ("operator", "kernel") if section in options.sections}
    if "operators" in named:
        if options.modules:
            named["modules"] = work["modules"]
            yield from module_tables(work["modules"], per)
        yield operators_table(work["operators"], per)
    calls = compared("operator", operator_pairs, wanted=options.details)
    for section, pairs in (
        (CALLS, calls),
        (MEMORY, compared("memory", memory_pairs)),
        (MEMORY_CALLS, compared("memory", memory_call_pairs, wanted=options.details)),
        (APIS, compared("api", api_pairs)),
        (KERNELS, named.get("kernels")),
        (KERNEL_TYPES, compared("kernel", kernel_type_pairs)),
    ):
        if pairs is not None:
            yield section.fill(pairs, per)
    yield from unmatched_table(named | {"calls": calls, "collectives": collectives}, per)


_NO_OPERATOR = frozenset({UNLINKED, OUTSIDE_OPS})
_UNMATCHED = declare(
    "unmatched",
    "Work without a partner on the other side (per step)",
    Column("section", Kind.TERM, "which kind of work", heading="work"),
    Column("side", Kind.TERM, "which side"),
    Column("number", Kind.NUMBER, "how many per step have no partner"),
    Column("unmatched_ns", Kind.DURATION, "their time per step"),
    Column("of_ns", Kind.DURATION, "time of all of that kind per step"),
    Column("unmatched_share", Kind.SHARE, "the one over the other", heading="share"),
    detail=True,
)


def unmatched_table(sections: Mapping[str, Pairs | None], per: PerStep) -> Iterator[Table]:
    """Number and device time without a partner, of all of the section on that side; of sections that were compared."""
    if rows := _alone(sections, per):
        yield _UNMATCHED.fill_records(rows)


def _alone(sections: Mapping[str, Pairs | None], per: PerStep) -> list[dict[str, Value]]:
    """What one side has, and the other has none of, by section and side.

    Operators, collectives and kernels are names with the number of their calls; work of no operator is no part of
    these. Modules are those with work of their own.
    """
    found = (
        ("operators", _of_operators, "device_ns", "calls"),
        ("calls", _of_operators, "device_ns", ""),
        ("modules", _whole_modules, "self_ns", ""),
        ("collectives", None, "total_ns", "calls"),
        ("kernels", None, "total_ns", "calls"),
    )
    rows: list[dict[str, Value]] = []
    for section, of, amount, number in found:
        pairs = sections.get(section)
        if pairs is not None and not isinstance(pairs, NotMeasured):
            pairs = of(pairs) if of else pairs
            if not any(lacking(each, amount) for each in pairs):
                rows += _of_section(section, pairs, amount, number, per)
    return rows


def _of_operators(pairs: Sequence[Pair]) -> Sequence[Pair]:
    names = [pair.shared.get("op") or (pair.base or pair.candidate or {}).get("op") for pair in pairs]
    return [pair for pair, name in zip(pairs, names, strict=True) if name not in _NO_OPERATOR]


def _whole_modules(pairs: Sequence[Pair]) -> Sequence[Pair]:
    return [pair for pair in pairs if pair.shared["op"] == ALL_OPERATORS and pair.shared["module"] != OUTSIDE_MODULES]


def _of_section(
    section: str, pairs: Sequence[Pair], amount: str, number: str, per: PerStep
) -> Iterator[dict[str, Value]]:
    """Rows count once, or by a number of theirs."""
    sides = [(pair.base, pair.candidate) for pair in pairs]
    numbers = [[0 if side is None else side[number] if number else 1 for side in pair] for pair in sides]
    for at, (name, steps) in enumerate((("base", per.base_steps), ("candidate", per.candidate_steps))):
        times = [0 if (side := pair[at]) is None else side[amount] for pair in sides]
        alone = [index for index, each in enumerate(numbers) if each[at] and not each[1 - at]]
        time, every = sum(times[index] for index in alone), sum(times)
        yield {
            "section": f"section_{section}",
            "side": f"side_{name}",
            "number": sum(numbers[index][at] for index in alone) / steps,
            "unmatched_ns": rounded(time, steps),
            "of_ns": rounded(every, steps),
            "unmatched_share": time / every if every else 0.0,
        }


Row = tuple[str, Time, Time]
"""What it is, and the amount of base and candidate."""
_PEAKS = ("peak_allocated", "peak_reserved", "peak_recorded", "peak_process")
"""Highest totals of the allocator; highest sum of recorded allocations minus frees, without what was there before;
highest memory of the whole process, the libraries' own included: never the same quantity as the allocator's."""
_PEAK_MEMORY = declare(
    "memory_peak",
    "Peak memory",
    columns.INDEX,
    *columns.both(peak_bytes="Mem Usage"),
    columns.diff("diff_bytes"),
    columns.ratio(alias=""),
)
_LINK_RATES = declare(
    "link_rates",
    "Speed of the links between devices (10⁹ bytes a second)",
    Column("link", Kind.TEXT, "kind of link: HCCS, RoCE, PCIe …"),
    *columns.both(rate_gbs="SDMA Bandwidth, RDMA Bandwidth"),
    Column("rate_ratio", Kind.RATIO, "candidate over base; above 1 is faster", heading="ratio"),
)


def peak_table(rows: Iterable[Row]) -> Iterator[Table]:
    """The peaks side by side; nothing without any."""
    found = [_peak(*row) for row in rows]
    if found:
        yield _PEAK_MEMORY.fill_records(found)


def _peak(index: str, base: Time, candidate: Time) -> dict[str, Value]:
    cells: dict[str, Value] = {"index": index, "base_peak_bytes": base, "candidate_peak_bytes": candidate}
    if isinstance(base, NotMeasured) or isinstance(candidate, NotMeasured):
        return cells | dict.fromkeys(("diff_bytes", "ratio"), base if isinstance(base, NotMeasured) else candidate)
    return cells | {"diff_bytes": candidate - base, "ratio": candidate / base if base else None}


def peak_rows(base: Side, candidate: Side) -> Iterator[Row]:
    """Peaks of the allocator and of the process over the whole recording; left out where neither side can tell."""
    for row in zip(_PEAKS, *((*_allocator(side), _process(side)) for side in (base, candidate)), strict=True):
        if not all(isinstance(peak, NotMeasured) for peak in row[1:]):
            yield row


def _allocator(side: Side) -> tuple[Time, Time, Time]:
    """The allocator's peaks. Some profilers number devices otherwise in memory records; the only one is meant."""
    found = [each for each in memory(side.context).records() if each.memory_of == "memory_of_device"]
    if side.partition is not None and len(found) > 1:
        found = [each for each in found if each.device == side.partition.device]
    if side.partition is None or len(found) != 1:
        missing = NotMeasured("no_memory_records")
        return missing, missing, missing
    return found[0].peak_allocated_bytes, found[0].peak_reserved_bytes, found[0].relative_peak_bytes


def _process(side: Side) -> Time:
    found = side.context.trace.process_memory
    if len(found) > 1 and side.partition is not None:
        found = tuple(each for each in found if each.device == side.partition.device)
    return found[0].peak if len(found) == 1 else NotMeasured("no_process_memory")


def rate_table(rows: Iterable[Row]) -> Iterator[Table]:
    """Rates (bytes a second) by link in 10⁹ bytes; nothing without any."""
    found = [_rate(*row) for row in rows]
    if found:
        yield _LINK_RATES.fill_records(found)


def _rate(link: str, *both: Time) -> dict[str, Value]:
    base, candidate = (rate if isinstance(rate, NotMeasured) else rate / 10**9 for rate in both)
    cells: dict[str, Value] = {"link": link, "base_rate_gbs": base, "candidate_rate_gbs": candidate}
    old, new = both
    faster = new / old if isinstance(old, int) and isinstance(new, int) and old else None
    return cells | {"rate_ratio": faster}


def rate_rows(base: Side, candidate: Side) -> Iterator[Row]:
    """Bytes a second by kind of link; 0 where a side that tells did not use it."""
    sides = [(link_rates(side.context), side.info.vendor) for side in (base, candidate)]
    for link in sorted({link for rates, _ in sides for link in rates or ()}):
        old, new = (
            # Only Ascend profiles can tell, at a higher level; others never do.
            NotMeasured("no_collective_tasks" if vendor == "ascend" else "vendor_does_not_say")
            if rates is None
            else rates.get(link, 0)
            for rates, vendor in sides
        )
        yield link, old, new
