"""Host calls of both sides by name: operators, annotations and calls of the runtime, and where they wait."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import distinct
from traceanalyze.analyses.host.nesting import nest_rows
from traceanalyze.analyses.host.operators import added
from traceanalyze.analyses.idle.syncs import sync_points
from traceanalyze.analyses.steps.window import rounded
from traceanalyze.comparison import columns
from traceanalyze.comparison.collectives import common_labels, plain_api
from traceanalyze.comparison.names import BACKWARD_SUFFIX, canonical, names_backward
from traceanalyze.comparison.pairs import PerStep, how_changed, partners, section
from traceanalyze.comparison.results import Pair, Pairs
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model import calltree
from traceanalyze.model.classify import PROFILER_STEP, is_data_loading, is_step_marker
from traceanalyze.model.columns import distinct_codes
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare
from traceanalyze.model.vocabulary import EventKind

DATA_LOADER = "enumerate(DataLoader)"
"""Stands for the waiting for every kind of data loader."""
APIS = section(
    "api_compare",
    "Host operators and runtime calls (per step)",
    replace(columns.PLACE, alias="Order Id"),
    Column("api", Kind.NAME, "operator or runtime call", heading="call", alias="api name"),
    *columns.both(total_ns="Total Duration(ms)", self_ns="Self Time(ms)", avg_ns="Avg Duration(ms)", calls="Calls"),
    columns.TOTAL_RATIO,
    columns.ratio("self_ratio", "Diff Self Ratio", meaning="candidate over base, time in itself"),
    columns.AVG_RATIO,
    columns.ratio("calls_ratio", "Diff Calls Ratio", meaning="candidate over base, calls per step"),
    columns.TOTAL_DIFF,
    columns.SELF_DIFF,
    columns.CHANGE_SHARE,
    columns.MATCH,
    *columns.minor(*columns.both(runtime_ns="", api="")),
    by="self_ns",
    of="total_ns",
)


def api_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Calls begun in the steps by name.

    Times are sums over threads. A call's own time is what lies in none of the calls inside it on its thread, so it is
    never negative and the rows of a side sum to its host time. Of calls inside calls of the same name only the outer
    one counts in the total. Names are matched as recorded; else as canonical operators, and as runtime calls without
    the vendor's prefix. All data loaders are one row. NotMeasured if neither side has host calls.
    """
    sides = [_names(context) for context in (base, candidate)]
    if not any(names for names, _ in sides):
        return NotMeasured("no_host_ops")

    def operator(name: str) -> str:
        # Calls of a kernel's library are inside the operator of their name.
        return name if "@" in name else canonical(name, options) + (BACKWARD_SUFFIX if names_backward(name) else "")

    label = common_labels(sides[0][0], sides[1][0], (plain_api, True), (operator, True))
    mapped = {name: options.op_name_map.get(own, own) for name, own in label.items()}
    old, new = (_sums(context, *side, mapped) for context, side in zip((base, candidate), sides, strict=True))
    return [Pair({"api": name}, old.get(name), new.get(name)) for name in sorted(old | new)]


def _rows(context: Context) -> NDArray[np.int64]:
    """All calls of all threads, without step markers, which are no calls; torch's own are none of any program's."""
    classify, strings = context.options.classify, context.trace.strings
    rows = np.flatnonzero(np.isin(context.kind, (EventKind.HOST_OP, EventKind.ANNOTATION, EventKind.API)))
    marks = strings.matches(
        context.trace.events.name[rows], lambda text: is_step_marker(text, classify) or PROFILER_STEP.fullmatch(text)
    )
    return rows[~marks]


def _names(context: Context) -> tuple[list[str], NDArray[np.int64]]:
    """Names of the calls, and their codes."""
    classify, strings = context.options.classify, context.trace.strings
    code, _ = distinct_codes(context.trace.events.name[_rows(context)], len(strings))
    return [DATA_LOADER if is_data_loading(name, classify) else name for name in strings.texts(code)], code


def _sums(
    context: Context, own_names: list[str], code: NDArray[np.int64], label: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    if not own_names:
        return {}
    rows, place = _rows(context), np.zeros(len(context.trace.strings), np.int64)
    names, place[code] = distinct((label[name] for name in own_names), np.arange(len(code)))
    recorded: dict[str, set[str]] = {}
    for own in own_names:
        recorded.setdefault(label[own], set()).add(own)
    bare, nested = (
        nest_rows(context.trace, each, context.kind) for each in (rows[context.kind[rows] != EventKind.API], rows)
    )
    alone, of = (place[context.trace.events.name[each.row]] for each in (bare, nested))
    counted = nested.begun_in(context.host_windows)
    outer = calltree.outermost(nested.stop, of.astype(np.int32), len(names))
    sums = (
        added(of, counted, len(names)),
        added(of, context.trace.events.dur[nested.row] * (counted & outer), len(names)),
        added(of, nested.own * counted, len(names)),
        added(alone, bare.own * bare.begun_in(context.host_windows), len(names)),
    )
    return {
        name: {
            "calls": calls,
            "total_ns": total,
            "self_ns": own,
            "runtime_ns": max(without - own, 0),
            "api": ", ".join(sorted(recorded[name])),
        }
        for name, calls, total, own, without in zip(names, *(each.tolist() for each in sums), strict=True)
        if calls
    }


_SYNCS = declare(
    "sync_compare",
    "Where the host waits for the device on both sides (per step)",
    columns.OP,
    Column("change", Kind.TERM, "whether both sides have it, and where it costs more", heading="how"),
    *columns.of_base(calls="", idle_ns=""),
    *columns.of_candidate(calls="", idle_ns=""),
    columns.DIFF,
    *columns.minor(*columns.of_base(blocked_ns="", frame=""), *columns.of_candidate(blocked_ns="", frame="")),
)


def sync_table(base: Context, candidate: Context, options: CompareOptions, per: PerStep) -> Table:
    """Sync points of both sides by operator and line, else by call, else by operator; largest change first."""
    tables = [sync_points(context) for context in (base, candidate)]
    absent = next((table.absent for table in tables if table.absent is not None), None)
    if absent is not None:
        return _SYNCS.missing(absent.reason)
    sides = [[*table.records()][::-1] for table in tables]

    def place(row: Any) -> str:
        return canonical(row.op, options) if row.op else call(row)

    def call(row: Any) -> str:
        return plain_api(row.call or "")

    # What the last wait of a recording holds up is not in it: such waits are compared among themselves, if they can be.
    places = (
        lambda row: (place(row), row.frame, row.at_end),
        lambda row: (row.op, call(row), row.at_end),
        lambda row: (place(row), row.frame),
        place,
    )
    cells = [_sync_cells(pair, (per.base_steps, per.candidate_steps)) for pair in partners(sides[0], sides[1], *places)]
    cells.sort(key=lambda row: -abs(row["diff_ns"]) if isinstance(row["diff_ns"], int) else 0)
    return _SYNCS.fill_records(cells)


def _sync_cells(pair: tuple[Any, Any], steps: tuple[int, int]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, row, count in zip(("base", "candidate"), pair, steps, strict=True):
        for key, sums in (("blocked_ns", "blocked_ns"), ("idle_ns", "idle_caused_ns")):
            amount = None if row is None else getattr(row, sums)
            # Why the last wait of a recording has no idle time stands with the sync points of each side.
            amount = None if amount == NotMeasured("terminal_sync") else amount
            cells[f"{name}_{key}"] = rounded(amount, count) if isinstance(amount, int) else amount
        cells |= {f"{name}_calls": row and row.count / count, f"{name}_frame": row and row.frame}
    either = pair[1] or pair[0]
    idle = [cells["base_idle_ns"], cells["candidate_idle_ns"]]
    unknown = next((each for each in idle if isinstance(each, NotMeasured)), None)
    known = unknown is None and all(row is None or each is not None for row, each in zip(pair, idle, strict=True))
    old, new = (None if row is None else each if known else 0 for row, each in zip(pair, idle, strict=True))
    calls = {row.call for row in pair if row is not None}
    # One vendor's name would stand for the call of both.
    op = either.op or (either.call if len(calls) == 1 else plain_api(either.call or ""))
    change = how_changed(old, new)
    return {**cells, "op": op, "change": change, "diff_ns": (new or 0) - (old or 0) if known else unknown}
