"""The stages of a pipeline over one step: what each computes, sends and receives when, and where it waits (§12)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import description_rows, types
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.steps.phases import event_phases
from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare, sentences
from traceanalyze.model.vocabulary import DeviceClass, EventKind, Phase
from traceanalyze.ranks.match import POINT_TO_POINT, clock_offsets
from traceanalyze.ranks.overview import groupings
from traceanalyze.ranks.results import MANY, Cluster, Moved, Stages, spans
from traceanalyze.ranks.sends import Between, moves

_SAY = sentences(
    pipeline_some_ranks="Of {count} ranks the first of each stage is shown.",
    pipeline_first_ranks="Of {count} ranks the first {shown} are shown.",
    pipeline_clocks="The clocks of ranks {ranks} are not known against the others: their steps begin at 0.",
    pipeline_least=(
        "Waiting is what a send or receive takes beyond its partner, and a batch beyond its partners together; where "
        "one is not known, at least what it takes beyond the shortest of its kind, group and size."
    ),
)
PARTS = (
    "phase_forward",
    "phase_backward",
    "phase_optimizer",
    "compute",
    "send",
    "recv",
    "send_recv",
    "bubble",
    "communication",
    "idle",
)
"""What a stage does at an instant; the first that holds."""
_FORWARD, _BACKWARD, _OPTIMIZER, _COMPUTE, _SEND, _RECEIVE, _BOTH, _BUBBLE, _COLLECTIVE, _IDLE = range(len(PARTS))
_PHASE_PARTS = {
    Phase.FORWARD: _FORWARD,
    Phase.BACKWARD: _BACKWARD,
    Phase.RECOMPUTE: _BACKWARD,
    Phase.OPTIMIZER: _OPTIMIZER,
}
_OF_KIND = {TYPES.index("send"): _SEND, TYPES.index("recv"): _RECEIVE, TYPES.index("send_recv"): _BOTH}
KEPT = 3
"""Steps of a rank that are kept, the last: one of them is shown."""
_MOST = 20_000
"""Pieces: of a rank with more one step is kept, and of more ranks than have so many one of each stage is shown."""
_TRIFLE = 0.01
"""Own: idle time and transfers up to this part of the step, between kernels of one piece of work, do not end it."""
_SCHEDULED = regex(r"PP:\d+([FIBW])(\d+)$")
"""torch.distributed.pipelining: stage, what is computed, micro-batch."""
_RANGE = regex(r"(?:^|[\W_])(?:forward|backward)(?:$|[\W_])", re.IGNORECASE)
"""Ranges of the program that Ascend profiles do not tell from operators; nodes of autograd are written as one word."""
_LAST = regex(r"(\d+)\D*$")
_UNNAMED = 1_000_000
"""Numbers from here on tell passes of micro-batches apart that have none."""


def stages(context: Context, event: NDArray[np.int64]) -> Stages:
    """The last steps of one rank; `event` are its collectives in their order. Empty where it sends to no single rank.

    NCCL runs an all_to_all in a kernel of the name of sends: without a record that describes it, it is none.
    """
    device, steps = context.device, context.steps
    described = description_rows(context, event)
    kind = types(context, event, described)
    single = POINT_TO_POINT[kind] & ((described >= 0) | (context.trace.origin.format == "ascend"))
    if not context.devices or not single.any():
        return Stages()
    of_part, of_number = _work(context, event[single])
    place = np.full(len(device), -1, np.int64)
    place[event[single]] = np.flatnonzero(single)
    of_part[event[single]] = [_OF_KIND[one] for one in kind[single].tolist()]
    shown = device.device == context.devices[0]
    computing = shown & (device.klass == DeviceClass.COMPUTE)
    # Of several transfers at once that to a single rank counts, as the part of a step that only a pipeline has.
    layers = computing, shown & (place >= 0), shown & (device.klass == DeviceClass.COMM) & (place < 0)
    found = []
    for row in np.flatnonzero(steps.counted)[-KEPT:].tolist():
        window = int(steps.start[row]), int(steps.end[row])
        event_at, start, end = _timeline(context, layers, window)
        busy = event_at >= 0
        part = np.where(busy, of_part[event_at], _IDLE)
        number = np.where(busy & (part <= _BACKWARD), of_number[event_at], -1)
        found.append(_pieces(row, (part, number, np.where(busy, place[event_at], -1)), start, end))
    if sum(len(one.step) for one in found) > _MOST:
        found = found[-1:]
    columns = [np.concatenate(each) for each in zip(*found, strict=True)]
    base = context.trace.base_ns
    return Stages(*columns)._replace(start=columns[2] + base, end=columns[3] + base) if found else Stages()


def _work(context: Context, single: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Part and number of each device event: by the annotation around its launch, else by autograd.

    Without annotations what is launched between two sends or receives is of one micro-batch.
    """
    phase = context.once(event_phases)
    part = np.full(len(context.device), _COMPUTE, np.int64)
    for each, own in _PHASE_PARTS.items():
        part[phase == each] = own
    part[context.device.klass == DeviceClass.COMM] = _COLLECTIVE
    time, known = context.ownership
    number = _UNNAMED + np.searchsorted(np.sort(time[single[known[single]]]), time)
    start, end, said, batch = _annotated(context)
    computes = context.device.klass == DeviceClass.COMPUTE
    if len(start):
        at = np.searchsorted(start, time, "right") - 1
        inside = known & computes & (at >= 0) & (time < end[np.maximum(at, 0)])
        part[inside], number[inside] = said[at[inside]], batch[at[inside]]
    return part, number


def _annotated(context: Context) -> tuple[NDArray[np.int64], ...]:
    """Begin, end, part and number of the outermost annotations that say which pass of a micro-batch they are.

    Those of one thread of the program; where names have no number, their place beyond `_UNNAMED`.
    """
    events, strings = context.trace.events, context.trace.strings
    own = context.kind == EventKind.ANNOTATION
    if context.trace.origin.format == "ascend":
        own |= (context.kind == EventKind.HOST_OP) & strings.matches(events.name, _is_range)
    rows = np.flatnonzero(own)
    part = strings.lookup(events.name[rows], _pass_of).astype(np.int64)
    rows, part = rows[part >= 0], part[part >= 0]
    order = np.lexsort((-events.dur[rows], events.ts[rows]))
    rows, part = rows[order], part[order]
    end: NDArray[np.int64] = np.maximum.accumulate(events.ts[rows] + events.dur[rows])
    outer = np.ones(len(rows), np.bool_)
    outer[1:] = events.ts[rows[1:]] >= end[:-1]
    rows, part, end = rows[outer], part[outer], end[outer]
    named = strings.lookup(events.name[rows], _batch_of).astype(np.int64)
    number = np.where(named >= 0, named, _UNNAMED + np.arange(len(rows)))
    return events.ts[rows], end, part, number


def _is_range(name: str) -> bool:
    return "::" not in name and _RANGE.search(name) is not None


def _pass_of(name: str) -> int:
    """Part that an annotation stands for; -1 for none, and for both passes at once."""
    scheduled = _SCHEDULED.search(name)
    if scheduled:
        return _FORWARD if scheduled[1] == "F" else _BACKWARD
    text = name.lower()
    forward, backward = "forward" in text, "backward" in text or "weightgradstore" in text
    return -1 if forward == backward else _FORWARD if forward else _BACKWARD


def _batch_of(name: str) -> int:
    scheduled = _SCHEDULED.search(name)
    found = scheduled[2] if scheduled else (last[1] if (last := _LAST.search(name)) else "")
    return int(found) if found and len(found) < 6 else -1


def _timeline(
    context: Context, layers: Sequence[NDArray[np.bool_]], window: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Events that follow each other in a window without overlap, -1 for none, with begin and end.

    At an instant the first layer counts that has an event; of its events the one that ends first: what a send or
    receive moves, it moves at its end.
    """
    device = context.device
    within = (device.start < window[1]) & (device.end > window[0])
    start, end = (np.clip(each, *window) for each in (device.start, device.end))
    own = np.flatnonzero(within & np.logical_or.reduce(layers))
    edges = np.unique(np.concatenate([window, start[own], end[own]]))
    found = np.full(len(edges) - 1, -1, np.int64)
    for layer in reversed(layers):
        last = np.flatnonzero(within & layer)
        last = last[np.argsort(-end[last], kind="stable")]
        first, stop = (np.searchsorted(edges, each[last]).tolist() for each in (start, end))
        for event, low, high in zip(last.tolist(), first, stop, strict=True):
            found[low:high] = event
    return found, edges[:-1], edges[1:]


def _pieces(
    row: int,
    events: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
) -> Stages:
    """What follows each other as pieces of work: collectives and what is short inside one belong to it.

    `events` are part, number and row of the collectives of each.
    """
    part, number, single = events
    key, works = group(part, number, single).of, part <= _COMPUTE
    work, place = np.flatnonzero(works), np.cumsum(works)
    of = np.arange(len(part))
    inside = np.flatnonzero(~works & (place > 0) & (place < len(work)))
    before, after = work[place[inside] - 1], work[place[inside]]
    # A gap counts as a whole: several events in a row may lie in one.
    gone = np.concatenate(([0], np.cumsum(np.where(works | (part == _COLLECTIVE), 0, end - start))))
    short = gone[after] - gone[before] <= _TRIFLE * (end[-1] - start[0])
    own = short & (key[before] == key[after])
    of[inside[own]] = before[own]
    changes = np.flatnonzero(np.diff(key[of], prepend=-1))
    first = of[changes]
    busy = np.add.reduceat(np.where(works, end - start, 0), changes)
    stop = np.append(start[changes[1:]], end[-1])
    told = _numbered(part[first], number[first])
    return Stages(np.full(len(first), row), part[first], start[changes], stop, busy, told, single[first])


def _numbered(part: NDArray[np.int64], number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Micro-batches that annotations name; of each pass without them their order."""
    found = np.full(len(part), -1, np.int64)
    for each in (_FORWARD, _BACKWARD):
        own = np.flatnonzero(part == each)
        named = number[own] < _UNNAMED
        found[own[named]] = number[own[named]]
        _, first, of = np.unique(number[own[~named]], return_index=True, return_inverse=True)
        found[own[~named]] = np.argsort(np.argsort(first))[of]
    return found


_STAGES = declare(
    "pipeline_stages",
    "Stages of the pipeline (last step of all ranks)",
    Column("stage", Kind.COUNT, "place in the pipeline"),
    Column("rank", Kind.TEXT, "rank of the process; ?n where the profile does not tell"),
    Column("step", Kind.TEXT, "number of the step, or its name", minor=True),
    Column("step_ns", Kind.DURATION, "step time"),
    Column("batches", Kind.COUNT, "forward passes of micro-batches", heading="micro-batches"),
    Column("forward_ns", Kind.DURATION, "forward pass, from the first to the last kernel of each micro-batch"),
    Column("backward_ns", Kind.DURATION, "backward pass, the same"),
    Column("bubble_ns", Kind.DURATION, "waiting in sends and receives with nothing beside it", heading="bubble"),
    Column("bubble_share", Kind.SHARE, "of the step"),
    Column("transfer_ns", Kind.DURATION, "the rest of sends and receives with nothing beside them"),
    Column("communication_ns", Kind.DURATION, "collectives with nothing beside them, between pieces of work"),
    Column("idle_ns", Kind.DURATION, "nothing runs, between pieces of work"),
    Column("other_ns", Kind.DURATION, "optimizer, and compute of neither pass"),
    worst="bubble_ns",
    detail=True,
)
_PIPELINE = declare(
    "pipeline",
    "Pipeline over time (last step of all ranks)",
    Column("stage", Kind.COUNT, "place in the pipeline"),
    Column("rank", Kind.TEXT, "rank of the process; ?n where the profile does not tell"),
    Column("step", Kind.TEXT, "number of the step, or its name", minor=True),
    Column("part", Kind.TERM, "what the stage does"),
    Column("number", Kind.COUNT, "micro-batch, or its place in the order of passes", heading="micro-batch"),
    Column("start_ns", Kind.DURATION, "since the first rank began the step", heading="begins at"),
    Column("time_ns", Kind.DURATION, "how long it takes", heading="time"),
    Column("busy_ns", Kind.DURATION, "of it time in which its kernels run; short gaps belong to a pass"),
    worst="time_ns",
    detail=True,
)


def pipeline_tables(cluster: Cluster, pairs: Between) -> tuple[Table, Table]:
    """A step of a pipeline, the last that all ranks kept: sums of each stage, and what it does when."""
    known = [rank.ran.stages if rank.ran else Stages() for rank in cluster.ranks]
    last = _last_step(cluster, known)
    if last is None:
        return _STAGES.missing("no_pipeline", detail=True), _PIPELINE.missing("no_pipeline", detail=True)
    step, own = last
    places = _places(cluster, pairs)
    shown = [at for at, one in enumerate(own) if len(one.step)]
    shown.sort(key=lambda at: (places[at] if places else 0, at))
    notes = [Message(_SAY["pipeline_least"])]
    many = len(shown) > MANY or sum(len(own[at].step) for at in shown) > _MOST
    chosen = list({places[at]: at for at in reversed(shown)}.values())[::-1] if places and many else shown
    if len(chosen) < len(shown):
        notes.append(Message(_SAY["pipeline_some_ranks"], (("count", Kind.COUNT, len(shown)),)))
        shown = chosen
    if len(shown) > MANY:
        counts = ("shown", Kind.COUNT, MANY), ("count", Kind.COUNT, len(shown))
        notes.append(Message(_SAY["pipeline_first_ranks"], counts))
        shown = shown[:MANY]
    zero, unknown = _zeros(cluster, own, shown)
    if unknown:
        notes.append(Message(_SAY["pipeline_clocks"], (("ranks", Kind.TEXT, spans(unknown)),)))
    moved = moves(pairs)
    records, sums = [], []
    for at in shown:
        head: dict[str, Value] = {
            "stage": places[at] if places else NotMeasured("no_rank_groups"),
            "rank": cluster.ranks[at].label,
            "step": step,
        }
        pieces = list(_with_bubbles(own[at], cluster.ranks[at].collectives.end, moved[at]))
        records += [{**head, **_piece(each, zero[at])} for each in pieces]
        sums.append({**head, **_summed(pieces)})
    first, second = (
        replace(table.fill_records(rows), notes=tuple(notes)) for table, rows in ((_STAGES, sums), (_PIPELINE, records))
    )
    return first, second


class _Piece(NamedTuple):
    part: int
    number: int
    start: int
    end: int
    busy: int


def _last_step(cluster: Cluster, known: Sequence[Stages]) -> tuple[str, list[Stages]] | None:
    """The last common step that all ranks with stages kept, and their pieces of it."""
    labels = step_labels(cluster.steps)
    kept = range(len(cluster.steps) - 1, -1, -1) if any(len(one.step) for one in known) else ()
    for at in kept:
        own = [
            Stages(*(column[one.step == row] for column in one))
            for one, row in zip(known, cluster.rows[:, at].tolist(), strict=True)
        ]
        told = [len(part.step) > 0 for part, one in zip(own, known, strict=True) if len(one.step)]
        if len(told) > 1 and all(told):
            return labels[at], own
    return None


def _places(cluster: Cluster, pairs: Between) -> list[int]:
    """Stage of each rank; empty where nothing tells it.

    By the groups that are named pipelines, else after those before it with which it sends and receives. Where these are
    not all told, after the member before it of the groups in which ranks send; one of all ranks beside others may be of
    several pipelines.
    """
    ranks = cluster.ranks
    named = next((one for one in groupings(ranks) if one.kind == "by_stage"), None)
    if named is not None and (named.of >= 0).all():
        return [int(each) for each in named.of]
    if len(pairs.way) and (pairs.way >= 0).all():
        ends = pairs.ends.source.tolist(), pairs.ends.target.tolist()
        follows = {(min(pair), max(pair)) for pair in zip(*ends, strict=True)}
    else:
        members = {
            rank.groups[number].ranks
            for rank in ranks
            for number in np.unique(rank.collectives.group[POINT_TO_POINT[rank.collectives.kind]]).tolist()
        }
        every = {one.ranks for rank in ranks for one in rank.groups} - members
        if () in members or (every and any(len(one) == len(ranks) > 2 for one in members)):
            return []
        place = {rank.rank: at for at, rank in enumerate(ranks)}
        follows = {(place[a], place[b]) for one in members for a, b in pairwise(sorted(one)) if {a, b} <= {*place}}
    stage = [0] * len(ranks)
    for before, after in sorted(follows, key=lambda pair: pair[1]):
        stage[after] = max(stage[after], stage[before] + 1)
    return stage


def _zeros(cluster: Cluster, own: Sequence[Stages], shown: Sequence[int]) -> tuple[dict[int, int], list[str]]:
    """When, on the clock of each rank, the first of them began the step; and ranks that do not know it."""
    table = clock_offsets(cluster)
    ahead = {} if table.absent else dict(zip(table.column("rank"), table.numbers("offset_ns"), strict=True))
    label = {at: cluster.ranks[at].label for at in shown}
    begun = {at: int(own[at].start[0]) - ahead[label[at]] for at in shown if label[at] in ahead}
    first = min(begun.values(), default=0)
    unknown = [label[at] for at in shown if at not in begun]
    return {at: first + ahead[label[at]] if at in begun else int(own[at].start[0]) for at in shown}, unknown


def _with_bubbles(own: Stages, ends: NDArray[np.int64], moved: Moved) -> Iterator[_Piece]:
    """Pieces of a step; of a send or receive the transfer is its end, and what lies before it waiting."""
    time = dict(zip(moved.row.tolist(), moved.time.tolist(), strict=True))
    columns = (each.tolist() for each in (own.part, own.number, own.start, own.end, own.busy, own.collective))
    for part, number, start, end, busy, row in zip(*columns, strict=True):
        begin = start if row < 0 else min(max(int(ends[row]) - time[row], start), end)
        if start < begin:
            yield _Piece(_BUBBLE, -1, start, begin, 0)
        if begin < end:
            yield _Piece(part, number, begin, end, busy if row < 0 else 0)


def _piece(one: _Piece, zero: int) -> dict[str, Value]:
    return {
        "part": PARTS[one.part],
        "number": one.number if one.number >= 0 else None,
        "start_ns": one.start - zero,
        "time_ns": one.end - one.start,
        "busy_ns": one.busy if one.part <= _COMPUTE else None,
    }


def _summed(pieces: Sequence[_Piece]) -> dict[str, Value]:
    time = [0] * len(PARTS)
    for one in pieces:
        time[one.part] += one.end - one.start
    step = sum(time)
    return {
        "step_ns": step,
        "batches": len({one.number for one in pieces if one.part == _FORWARD}),
        "forward_ns": time[_FORWARD],
        "backward_ns": time[_BACKWARD],
        "bubble_ns": time[_BUBBLE],
        "bubble_share": time[_BUBBLE] / step if step else None,
        "transfer_ns": time[_SEND] + time[_RECEIVE] + time[_BOTH],
        "communication_ns": time[_COLLECTIVE],
        "idle_ns": time[_IDLE],
        "other_ns": time[_OPTIMIZER] + time[_COMPUTE],
    }
