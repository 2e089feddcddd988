"""What an engineer works through who moves a model from a GPU to an NPU: operators and other parts by time to win."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import collectives, description_rows, types
from traceanalyze.analyses.communication.parts import NETWORK, SDMA_GBS, SDMA_REACHED, went_over
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.idle.syncs import sync_points
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.comparison import columns
from traceanalyze.comparison.align import fused_names
from traceanalyze.comparison.attribution import headline, to_check
from traceanalyze.comparison.collectives import link_rates, sent
from traceanalyze.comparison.migrated_operators import (
    AMOUNTS,
    WORTH,
    amounts,
    dynamic_share,
    on_host,
    operator_rows,
    paired,
    said,
    to_win,
    work_of,
)
from traceanalyze.comparison.names import canonical
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.reasons import Reasons
from traceanalyze.comparison.results import Pair, Pairs, Part, Time
from traceanalyze.comparison.side import CompareOptions, Side
from traceanalyze.model import intervals
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, Word, declare, sentences
from traceanalyze.model.vocabulary import DeviceClass

_SAY = sentences(
    to_static=(
        "the shapes of {share} of the kernels are known only when they run, and the host prepares each: fixed shapes, "
        "or torch_npu.npu.set_compile_mode(jit_compile=False) and torch_npu.npu.config.allow_internal_format = False"
    ),
    to_host="the host runs {ops}, the other side its device: take other types or operators",
    to_queue="TASK_QUEUE_ENABLE is {level}: 2 takes work off the thread that launches",
    to_bind="CPU_AFFINITY_CONF is off: 2 keeps each process on cores near its device",
    to_wait="{time} of it waits for other ranks: find what makes them late",
    to_wait_for=(
        "{time} of it waits for other ranks, longest for rank {rank}: look in its recording for what makes it late"
    ),
    to_move="{time} of it moves data{links}: look at the links, or compute beside it",
    to_move_slow=(
        "{time} of it moves data{links}; a transfer between devices reaches {rate} GB/s, where {expected} are usual: "
        "look at the links, or compute beside it"
    ),
    to_move_fast=(
        "{time} of it moves data{links}; a transfer between devices reaches {rate} GB/s, and {expected} are usual: "
        "send less, or compute beside it"
    ),
    to_join="{time} of it moves data{links}, {size} at a time: fewer and larger messages, or compute beside it",
    to_resend=(
        "one sends by RDMA for {time}, which repeats after 4 s what is lost: look at the network between the machines "
        "(hccn_tool)"
    ),
    to_in="{time} of it in {op}{line}",
    to_before="{time} of it before {op}{line}",
    to_gaps=(
        "{count} pieces of queued work begin {time} after the one before them, as long as the device takes from one to "
        "the next while it is recorded: fewer and larger kernels, by fused operators and without changes of layout"
    ),
    to_check="{check}",
)
TO_WAIT, TO_WAIT_FOR, TO_CHECK = (_SAY[key] for key in ("to_wait", "to_wait_for", "to_check"))
_MOST = 0.5
"""Own: share of the kernels from which on something about them is said of all."""

_TABLE = declare(
    "migration",
    "From GPU to NPU: what there is to win (per step)",
    columns.PLACE,
    Column("op", Kind.NAME, "operator, kind of collective, or part of the step", heading="what"),
    *columns.both(time_ns=""),
    Column("win_ns", Kind.DURATION, "time above what the base takes, by the peaks of both devices", heading="to win"),
    columns.ratio(),
    Column("peak_ratio", Kind.RATIO, "candidate over base as the peaks of both devices allow", heading="peaks allow"),
    Column("bound", Kind.TERM, "unit of the cores that works longest", heading="bound by"),
    Column("bound_share", Kind.SHARE, "part of the time in which it works", heading="of the time"),
    Column("to_do", Kind.LIST, "what to do about it", heading="what to do"),
    *columns.minor(
        Column("kernels", Kind.NAME, "types of the candidate's kernels, and how many a call", heading="kernel types"),
        Column("core", Kind.TEXT, "cores they ran on"),
        Column("blocks", Kind.NUMBER, "blocks of its longest kernel"),
        Column(
            "cores",
            Kind.COUNT,
            "most blocks that one kernel of the profile runs at once on such cores as its longest",
        ),
        Column("layout_ns", Kind.DURATION, "time of kernels that only change layout or type"),
        Column("layout_bytes", Kind.BYTES, "what these read"),
        Column(
            "base_precision", Kind.TEXT, "base: type that its kernels, or its products if any, compute in", side="base"
        ),
        Column("candidate_precision", Kind.TEXT, "candidate: the same", side="candidate"),
        Column(
            "base_shapes",
            Kind.NAME,
            "base: shapes of the tensors of the longest call with those of the candidate, if any has",
            side="base",
        ),
        Column("candidate_shapes", Kind.NAME, "candidate: those of the longest call", side="candidate"),
        Column("base_dtypes", Kind.TEXT, "base: their types", side="base"),
        Column("candidate_dtypes", Kind.TEXT, "candidate: their types", side="candidate"),
        *(
            Column(
                f"{side}_roof",
                Kind.SHARE,
                f"{side}: least time that its device needs over the time taken",
                heading=f"{side} of roofline",
                side=side,
            )
            for side in ("base", "candidate")
        ),
        Column(
            "dynamic",
            Kind.SHARE,
            "of the candidate's kernels those whose shapes are known only when they run",
            heading="dynamic shapes",
        ),
        Column("clock", Kind.NUMBER, "clock of its cores, MHz, mean weighted by time", heading="clock (MHz)"),
        *(
            Column(
                f"{side}_rate",
                Kind.NUMBER,
                f"{side}: bytes of collectives over their time, waiting included, 10⁹ a second",
                heading=f"{side} GB/s",
                side=side,
            )
            for side in ("base", "candidate")
        ),
        Column(
            "links",
            Kind.TEXT,
            "candidate: kinds of links of the collectives, and what all of a kind reach while any moves data",
        ),
        Column("frame", Kind.PLACE, "candidate: source line of the longest piece", heading="source line"),
    ),
    *columns.SUMS,
    ranked=True,
)


class _Place(NamedTuple):
    """Where a part of the step is longer in the candidate."""

    longer: int
    """By how much, ns a step."""
    message: str
    op: str
    frame: str | None


class _Moves(NamedTuple):
    """How collectives of a kind move data."""

    rates: str | NotMeasured
    """What each kind of link reaches."""
    size: int | None
    """Mean of what is sent at a time, bytes."""
    rate: float | None
    """10⁹ bytes a second of one large transfer between devices of a machine, in the mean by time."""
    longest: int
    """How long the one takes that sends longest over a network (RDMA), ns."""


class _About(NamedTuple):
    """What else is known of the candidate's idle time."""

    environment: Mapping[str, str]
    on_host: Sequence[str]
    """Operators that the host runs instead."""
    between: NDArray[np.int64]
    """Gaps between queued work."""
    check: Mapping[str, str]
    """By part what to check."""
    waits: frozenset[str]
    """Operators in which the host waits for the device."""
    dynamic: float | NotMeasured
    """Share of the kernels whose shapes are known only when they run."""


def migrated(base: Side, candidate: Side) -> bool:
    """Whether the candidate is of an NPU and the base of another vendor's device."""
    return candidate.info.vendor == "ascend" and base.info.vendor in {"cuda", "rocm"}


def migration_table(
    base: Side,
    candidate: Side,
    every: Sequence[Part],
    pairs: Pairs | None,
    idle: Mapping[str, Sequence[_Place]],
    options: CompareOptions,
    per: PerStep,
) -> Table:
    """Operators, collectives and other parts of the step by what the candidate would win at the base's pace.

    An operator of matrix products may take as much longer as the peak rates of both devices in the types they compute
    in differ, any other as their memory bandwidths; where a device is not known, as long as in the base. What only the
    candidate has is to win as a whole. Of communication counts what nothing hides. Copies and fills inside the base's
    memory count for operators for which the candidate has kernels instead, and not as copies.
    """
    fused = fused_names(base.context, candidate.context, options)
    old, new = (work_of(side.context, options, fused) for side in (base, candidate))
    before, after = paired(old, new)
    inside = np.concatenate([old.event[own[~old.computes[own]]] for own in before.values()] or [old.event[:0]])
    copied = int(base.exclusive[inside].sum())
    parts = [
        part._replace(base=part.base - copied) if part.key == "memory_ops" and isinstance(part.base, int) else part
        for part in headline(every)
    ]
    collectives = list(_collectives(candidate.context, pairs, per))
    about = _About(
        candidate.context.trace.environment or {},
        on_host(old, new),
        _between(candidate.context),
        {part.key: to_check(base.info, candidate.info, every, part.key) for part in parts},
        frozenset(canonical(row.op, options) for row in sync_points(candidate.context).records() if row.op),
        dynamic_share(new, np.flatnonzero(new.computes)),
    )
    others = _others(parts, idle, about, per)
    others = (row for row in others if row["op"] != "communication" or not collectives)
    rows = [*operator_rows((old, before), (new, after), per), *collectives, *others]
    # What a side did not measure comes last, and says so.
    rows.sort(key=lambda row: (isinstance(row["win_ns"], NotMeasured) or -row["win_ns"], row["op"]))
    unknown = dict.fromkeys(_TABLE.keys)
    return _TABLE.fill_records({**unknown, "place": place, **row} for place, row in enumerate(rows, start=1))


def _unmeasured(op: str, base: Time, candidate: Time, per: PerStep) -> dict[str, Any]:
    """A row of which a side is not measured."""
    amounts = per.amounts(base, candidate)
    why = base if isinstance(base, NotMeasured) else candidate
    return {"op": op, **{key: amounts[key] for key in AMOUNTS}, "win_ns": why, "to_do": ()}


def _exposed(sides: Sequence[Any]) -> Time:
    """Exposed time of collectives of a side."""
    times = [side["exposed_ns"] for side in sides if side]
    return next((time for time in times if isinstance(time, NotMeasured)), None) or sum(times)


def _collectives(candidate: Context, pairs: Pairs | None, per: PerStep) -> Iterator[dict[str, Any]]:
    """Kinds of collectives, by what of them nothing hides."""
    found: dict[str, list[Pair]] = {}
    for pair in () if pairs is None or isinstance(pairs, NotMeasured) else pairs:
        found.setdefault(str(pair.shared["collective"]), []).append(pair)
    links, waits = (_links(candidate), _waits(candidate)) if found else ({}, {})
    for kind, each in found.items():
        old, new = (_exposed(sides) for sides in _sides(each))
        if isinstance(old, NotMeasured) or isinstance(new, NotMeasured):
            yield _unmeasured(kind, old, new, per)
        elif new:
            cells, moves = _plain(kind, (old, new), "communication_tasks", per), links.get(kind)
            if cells["to_do"] and kind in waits:
                cells["to_do"] = tuple(_of_collective(new, waits[kind], moves, per)) or cells["to_do"]
            rates = {f"{side}_rate": _rate(each, side) for side in ("base", "candidate")}
            yield {**cells, **rates, "links": None if moves is None else moves.rates}


def _waits(context: Context) -> dict[str, tuple[int, int | None]]:
    """By kind of collective the exposed time in which it waits for other ranks, where tasks tell, and for which most.

    The rank is one inside the group unless the group's ranks are known.
    """
    found: dict[str, list[Any]] = {}
    table = context.once(collectives)
    for row in table.records() if "exposed_wait_ns" in table.keys else ():
        found.setdefault(row.collective, []).append(row)
    return {
        kind: (sum(row.exposed_wait_ns for row in rows), _longest_for(rows))
        for kind, rows in found.items()
        if all(isinstance(row.exposed_wait_ns, int) for row in rows)
    }


def _longest_for(rows: Sequence[Any]) -> int | None:
    rank = max(rows, key=lambda row: row.exposed_wait_ns).waited_for
    return rank if isinstance(rank, int) else None


def _of_collective(time: int, waits: tuple[int, int | None], moves: _Moves | None, per: PerStep) -> Iterator[Message]:
    """Of exposed communication what is waiting, and what is not."""
    (wait, rank), worth, links = waits, WORTH * time, "" if moves is None else moves.rates
    if moves is not None and moves.longest >= _RESENT:
        yield said(_SAY["to_resend"], time=(Kind.DURATION, moves.longest))
    if wait >= worth:
        whom = {} if rank is None else {"rank": (Kind.COUNT, rank)}
        yield said(TO_WAIT_FOR if whom else TO_WAIT, time=(Kind.DURATION, per.candidate(wait)), **whom)
    if time - wait >= worth:
        over, size = f" ({links})" if links and isinstance(links, str) else "", moves.size if moves else None
        values: dict[str, tuple[Kind, Value]] = {"time": (Kind.DURATION, per.candidate(time - wait))}
        values["links"] = Kind.TEXT, over
        if size is not None and size < _SMALL:
            yield said(_SAY["to_join"], **values, size=(Kind.BYTES, size))
        elif moves is None or moves.rate is None:
            yield said(_SAY["to_move"], **values)
        else:
            values |= {"rate": (Kind.NUMBER, moves.rate), "expected": (Kind.NUMBER, SDMA_GBS)}
            slow = moves.rate < SDMA_REACHED * SDMA_GBS
            yield said(_SAY["to_move_slow" if slow else "to_move_fast"], **values)


def _sides(each: Sequence[Pair]) -> tuple[list[Any], list[Any]]:
    return [pair.base for pair in each], [pair.candidate for pair in each]


def _rate(each: Sequence[Pair], side: str) -> float | NotMeasured | None:
    """10⁹ bytes a second of a side's collectives."""
    own = [cells for pair in each if (cells := getattr(pair, side))]
    amounts = [cells[key] for cells in own for key in ("bytes", "total_ns")]
    if lost := next((amount for amount in amounts if isinstance(amount, NotMeasured)), None):
        return lost
    time = sum(cells["total_ns"] for cells in own)
    return sum(cells["bytes"] for cells in own) / time if time else None


_RESENT = 4_000_000_000
"""msprof-analyze advisor: RDMA waits as long, ns, before it sends again."""
_SMALL = 1 << 20
"""msprof-analyze advisor: what is small between machines, bytes; HCCL cuts messages, so that inside one less is too."""


def _links(context: Context) -> dict[str, _Moves]:
    """By kind of collective how it moves data."""
    event = context.once(device_work).event
    event = event[context.device.klass[event] == DeviceClass.COMM]
    kind = types(context, event, description_rows(context, event))
    found = dict[str, _Moves]()
    for each in np.unique(kind).tolist():
        own = event[kind == each]
        of = context.device.row[own]
        rates, (task, sizes) = link_rates(context, of), sent(context, of)
        text = ", ".join(f"{link} {rate / 1e9:.3g} GB/s" for link, rate in sorted((rates or {}).items()))
        far = went_over(context, task, NETWORK)
        large, busy = ~far & (sizes >= _SMALL), context.trace.events.dur[task]
        found[TYPES[each]] = _Moves(
            NotMeasured("no_collective_tasks") if rates is None else text,
            int(sizes.mean()) if len(sizes) else None,
            float(sizes[large].sum() / busy[large].sum()) if busy[large].any() else None,
            _longest_far(context, task[far]),
        )
    return found


def _longest_far(context: Context, task: NDArray[np.int64]) -> int:
    """Time in which the collective sends something that does so longest, of these tasks."""
    rows = group(context.trace.events.numbers("part_of", task))
    calls = np.split(task[np.argsort(rows.of, kind="stable")], np.cumsum(rows.count())[:-1])
    return max(intervals.total(context.trace.events.active(each)) for each in calls)


def idle_places(found: tuple[Reasons, Reasons], keys: Mapping[str, str], per: PerStep) -> dict[str, list[_Place]]:
    """By part of the step (`keys`) operators and calls in or before which the device idles longer, the most first."""
    places: dict[str, list[_Place]] = {}
    said = {"in_op": "to_in", "next_op": "to_before"}
    for (part, what, name), after in found[1].items():
        before = found[0].get((part, what, name))
        longer = per.diff(before.time if before else 0, after.time)
        if what in said and longer > 0:
            places.setdefault(keys[part], []).append(_Place(longer, said[what], name, after.frame))
    return {part: sorted(each, key=lambda place: -place.longer) for part, each in places.items()}


def _others(
    parts: Sequence[Part],
    idle: Mapping[str, Sequence[_Place]],
    about: _About,
    per: PerStep,
) -> Iterator[dict[str, Any]]:
    """Idle time by cause, and copies."""
    between = about.between
    for part in parts:
        if isinstance(part.base, NotMeasured) or isinstance(part.candidate, NotMeasured):
            yield _unmeasured(Word(part.key), part.base, part.candidate, per)
        elif part.candidate and part.key not in {"compute", "communication"}:
            check = about.check[part.key]
            cells = _plain(Word(part.key), (part.base, part.candidate), check, per)
            if part.key == "device_side" and 2 * int(between.sum()) >= part.candidate:
                each = said(
                    _SAY["to_gaps"],
                    count=(Kind.COUNT, per.candidate(len(between))),
                    time=(Kind.DURATION, int(np.median(between))),
                )
                yield cells | {"to_do": (each,) if cells["to_do"] else ()}
                continue
            longest = [place for place in idle.get(part.key, ())[:2] if place.longer >= WORTH * cells["win_ns"]]
            if cells["to_do"] and longest:
                where = _at(longest)
                # What the device does without after the host has waited for it comes of the waiting.
                waits = [at.message == "to_in" and at.op in about.waits for at in longest if part.key == "untraced"]
                told = () if any(waits[:1]) else cells["to_do"]
                told += (_checked("sync"),) if any(waits) else ()
                cells |= {"to_do": (*where, *told), "frame": longest[0].frame}
            if cells["to_do"] and check in {"dispatch", "dispatch_longer", "host_op"}:
                cells["to_do"] += tuple(_queue(about.environment))
                if isinstance(about.dynamic, float) and about.dynamic > _MOST:
                    cells["to_do"] += (said(_SAY["to_static"], share=(Kind.SHARE, about.dynamic)),)
            if cells["to_do"] and about.on_host and part.key in {"sync", "memory_ops", "host_op"}:
                cells["to_do"] += (said(_SAY["to_host"], ops=(Kind.NAME, ", ".join(about.on_host[:4]))),)
            yield cells


def _at(places: Iterable[_Place]) -> Iterator[Message]:
    told: str | None = ""
    for place in places:
        line = f" ({place.frame})" if place.frame and place.frame != told else ""
        time, op = (Kind.DURATION, place.longer), (Kind.NAME, place.op)
        yield said(_SAY[place.message], time=time, op=op, line=(Kind.TEXT, line))
        told = place.frame


def _between(context: Context) -> NDArray[np.int64]:
    """Idle time, ns, before each piece of work that was launched while other work ran."""
    if not context.devices:
        return np.zeros(0, np.int64)
    gaps, steps = context.once(idle_gaps), context.steps
    inside = intervals.contains(intervals.merge(steps.start, steps.end), gaps.start)
    queued = inside & (gaps.call >= 0) & (gaps.launch_end <= gaps.start)
    found: NDArray[np.int64] = (gaps.end - gaps.start)[queued]
    return found


def _queue(environment: Mapping[str, str]) -> Iterator[Message]:
    """What the environment, where the profile states it, leaves off."""
    level = environment.get("TASK_QUEUE_ENABLE", "2")
    if level != "2":
        yield said(_SAY["to_queue"], level=(Kind.TEXT, level or "1"))
    if environment.get("CPU_AFFINITY_CONF") in {"", "0"}:
        yield said(_SAY["to_bind"])


def _plain(name: str, sums: tuple[int, int], check: str, per: PerStep) -> dict[str, Any]:
    win = to_win(sums, None, per)
    return {"op": name, **amounts(sums, per), "win_ns": win, "to_do": (_checked(check),) if win else ()}


def _checked(check: str) -> Message:
    return said(TO_CHECK, check=(Kind.TERM, f"check_{check}"))
