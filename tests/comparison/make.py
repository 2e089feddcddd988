"""Hand-made sides for tests of comparisons."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

from tests.builder import TraceBuilder
from traceanalyze.analyses.options import Options
from traceanalyze.comparison.apis import api_pairs
from traceanalyze.comparison.collectives import collective_pairs
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.comparison.kernels import kernel_pairs, kernel_type_pairs
from traceanalyze.comparison.modules import module_pairs
from traceanalyze.comparison.operators import operator_pairs, operator_totals
from traceanalyze.comparison.overall import time_rows
from traceanalyze.comparison.reasons import reasons
from traceanalyze.comparison.side import CompareOptions, side


def side_from(builder: TraceBuilder, options: Options | None = None, **more):
    """A side of a hand-made trace."""
    return side(builder.trace(), options, **more)


def training(*, wait: float = 0, kernel: float = 30, steps: int = 2, launches: bool = True, ops: bool = True):
    """Steps in which the loader takes `wait` µs, then one matrix product runs `kernel` µs and one copy 5 µs.

    The product is launched 10 µs after the loader is done and begins 4 µs later; the copy follows it at once.
    """
    b = TraceBuilder()
    length = wait + kernel + 30
    for number in range(steps):
        at = number * length
        b.step(number, at, length)
        if wait:
            b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, wait)
        begin = at + wait + 14
        if ops:
            b.op("aten::mm", at + wait + 8, 6)
        if launches:
            b.launch(at + wait + 10, 2, begin, kernel, name="volta_sgemm_128x64_nn")
            b.copy(at + wait + 16, 2, begin + kernel, 5, name="Memcpy HtoD (Pinned -> Device)")
        else:
            b.device(begin, kernel, name="volta_sgemm_128x64_nn")
            b.device(begin + kernel, 5, cat="gpu_memcpy", name="Memcpy HtoD (Pinned -> Device)")
    return b


def amounts(pair, key):
    """A number of both sides of a pair, 0 where a side has none."""
    return tuple(0 if side is None else side[key] for side in (pair.base, pair.candidate))


def parts_of(found):
    """Parts by key, in µs over all steps."""
    return {
        part.key: tuple(time / 1000 if isinstance(time, int) else time for time in (part.base, part.candidate))
        for part in found
    }


def longest(traces, options):
    """Position of the trace whose mean step is longest; of equals the first."""
    found = [side(trace, options).info for trace in traces]
    means = [Fraction(one.step_time, max(one.count, 1)) for one in found]
    return means.index(max(means))


def side_of(traces):
    """The side of a run: that of the rank whose mean step is longest."""
    choice = "decides" if len(traces) > 1 else "only"
    return side(traces[longest(traces, Options())], Options(), ranks=len(traces), rank_choice=choice)


def reason_rows(base, candidate, options=None):
    """Every reason with time and number of both sides, also those that do not differ; largest change per step first."""
    old, new = reasons(base, candidate, options or CompareOptions())
    rows = []
    for part, what, name in old | new:
        one, other = (side.get((part, what, name)) for side in (old, new))
        times = {"base": one.time if one else 0, "candidate": other.time if other else 0}
        counts = {"base_count": one.count if one else 0, "candidate_count": other.count if other else 0}
        rows.append(SimpleNamespace(part=part, what=what, name=name, **times, **counts))

    def change(row):
        return abs(row.candidate * base.info.count - row.base * candidate.info.count)

    return sorted(rows, key=lambda row: (-change(row), row.part, row.what, row.name))


def unmatched_rows(found):
    """Work without a partner: number and time (ns) over all steps, and the time of all such work."""
    rows = []
    for row in found.tables["unmatched"].records() if "unmatched" in found.tables else ():
        name = row.side.removeprefix("side_")
        steps = getattr(found, name).count
        rows.append(
            SimpleNamespace(
                section=row.section.removeprefix("section_"),
                side=name,
                count=row.number * steps,
                time=row.unmatched_ns * steps,
                of_time=row.of_ns * steps,
                share=row.unmatched_share,
            )
        )
    return rows


def compared(base, candidate, **options):
    """The comparison with the exact sums behind its tables."""
    chosen = CompareOptions(**options)
    found = compare_sides(base, candidate, chosen)
    both = base.context, candidate.context, chosen
    return SimpleNamespace(
        base=found.base,
        candidate=found.candidate,
        parts=found.parts,
        tables=found.tables,
        caveats=found.caveats,
        unmatched=unmatched_rows(found),
        contributions=reason_rows(base, candidate, chosen),
        overall=list(time_rows(base, candidate, found.parts)),
        operators=operator_totals(*both),
        operator_pairs=operator_pairs(*both),
        modules=module_pairs(*both),
        collectives=collective_pairs(*both),
        kernels=kernel_pairs(*both),
        kernel_types=kernel_type_pairs(*both),
        apis=api_pairs(*both),
    )
