"""What would make the peak smaller, each with its bytes.

Every lever changes sizes or lifetimes of blocks; what it saves is the peak minus the highest sum of the changed blocks:
where another moment is then the highest, no more than that is promised. Levers are not added up.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory import CATEGORY, LINE
from traceanalyze.analyses.memory.categories import PHASES, Categories, categories, phases
from traceanalyze.analyses.memory.composition import live_at
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.lifetimes import BEFORE
from traceanalyze.analyses.memory.sites import ModuleCall, frame_line
from traceanalyze.analyses.memory.whatif import expandable_saving
from traceanalyze.model.columns import distinct
from traceanalyze.model.snapshot import Action
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare

LEVERS = declare(
    "memory_levers",
    "What would make the peak smaller",
    Column("lever", Kind.TERM, "what to change"),
    replace(CATEGORY, meaning="what it makes smaller", minor=True),
    Column("saved_bytes", Kind.MEMORY, "by so much the peak would be lower, each alone", heading="saves"),
    Column("share", Kind.SHARE, "part of the peak"),
    Column("count", Kind.COUNT, "calls of the module", heading="calls", minor=True),
    LINE,
)
RANKS, CHUNKS = 2, 8
"""Ranks that share states or parameters; pieces of the loss (own: more save more)."""
WORTH = 0.01
"""Part of the peak that a lever must save (own)."""
CACHED = 0.05
"""Part of the reserve that no block ever used, from which on other segments are asked about (own)."""
_MODULES = 3
"""Modules that are named, those that save most."""
_LARGE = 1 / 64
"""Part of the largest block of the loss from which on blocks of its size are logits (own)."""


class _Blocks(NamedTuple):
    """Blocks as a lever leaves them: `size` from `begin` until before `end`."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    size: NDArray[np.int64]


class _Lever(NamedTuple):
    name: str
    part: str
    saved: int
    line: str | None = None
    calls: int | None = None


def levers(device: Device) -> Table:
    """Every lever that lowers the peak, or what was in blocks when a request failed; most bytes first."""
    peak = max(_highest(device, _as_is(device)), 1)
    worth = (one for one in _levers(device) if one.saved >= WORTH * peak)
    found = sorted(worth, key=lambda one: (-one.saved, one.name))
    rows: list[dict[str, Value]] = [
        {
            "lever": f"lever_{one.name}",
            "memory_category": f"category_{one.part}",
            "saved_bytes": one.saved,
            "share": one.saved / peak,
            "count": one.calls,
            "source_line": one.line,
        }
        for one in found
    ]
    return LEVERS.fill_records(rows)


def _as_is(device: Device) -> _Blocks:
    return _Blocks(device.lives.begin, device.lives.end, device.layout.size)


def _highest(device: Device, blocks: _Blocks) -> int:
    """Most bytes in blocks, or those at the first failed request."""
    change = np.zeros(device.events + 2, np.int64)
    np.add.at(change, blocks.begin + 1, blocks.size)
    np.subtract.at(change, blocks.end + 1, blocks.size)
    after = np.cumsum(change)[: device.events + 1]
    return int(after[device.failures[0] + 1] if device.failures else after.max())


def _levers(device: Device) -> Iterator[_Lever]:
    known, base, of_stack = device.once(categories), _as_is(device), device.of_stack
    peak = _highest(device, base)

    def smaller(name: str, part: str, rows: NDArray[np.bool_], left: float) -> _Lever:
        size = np.where(rows, (base.size * left).astype(np.int64), base.size)
        return _Lever(name, part, peak - _highest(device, base._replace(size=size)))

    states, gradients, optimizer = known.of("optimizer"), known.of("gradients"), of_stack("optimizer")
    yield smaller("shard_optimizer", "optimizer", states, 1 / RANKS)
    # States smaller than the gradients they are for have fewer bits already, or are shared; beside larger ones
    # gradients have half the bits already.
    state, gradient = (int(device.lives.requested[rows].max(initial=0)) for rows in (states, gradients))
    mixed = state > gradient > 0
    eight = states & ~_copies(device, known) if mixed else states & (state >= gradient)
    yield smaller("eight_bit_optimizer", "optimizer", eight, 1 / 4)
    yield smaller("fused_optimizer", "transient", known.of("transient") & optimizer, 0)
    yield smaller("half_gradients", "gradients", gradients & (not mixed), 1 / 2)
    yield smaller("shard_parameters", "parameters", known.of("parameters"), 1 / RANKS)
    yield smaller("smaller_buckets", "communication", known.of("communication"), 1 / 2)
    yield smaller("drop_references", "leaked", known.of("leaked"), 0)
    yield smaller("chunked_loss", "activations", _logits(device, known), 1 / CHUNKS)
    of_batch = known.of("activations", "backward", "transient") & ~optimizer
    yield smaller("smaller_batch", "activations", of_batch, 1 / 2)
    temporary = known.of("transient") & ~optimizer
    yield smaller("in_place", "transient", temporary, 0)
    yield from _by_module(device, known, base, peak)
    worth = device.reserved.peak[0] - device.blocks.peak[0] >= CACHED * device.reserved.peak[0]
    saved = device.once(expandable_saving) if worth else 0
    yield _Lever("expandable_segments", "cached", 0 if isinstance(saved, NotMeasured) else saved)


def _copies(device: Device, known: Categories) -> NDArray[np.bool_]:
    """Copies of 16-bit parameters among what only its size names the optimizer's: one of an odd number in 32 bits."""
    lives, found = device.lives, np.zeros(len(device.lives), np.bool_)
    live = live_at(lives, device.failures[0] if device.failures else device.blocks.peak[1])
    parameters, states = (live[known.of(name)[live]] for name in ("parameters", "optimizer"))
    states = states[lives.stack[states] < 0]
    for size, number in zip(*np.unique(lives.requested[parameters], return_counts=True), strict=True):
        twice = states[lives.requested[states] == 2 * size]
        found[twice[: number * (len(twice) // number % 2)]] = True
    return found


def _logits(device: Device, known: Categories) -> NDArray[np.bool_]:
    """Blocks of the size of the loss's largest one, or of twice or half of it: other types of the same numbers."""
    lives = device.lives
    loss = device.of_stack("loss") & (lives.begin != BEFORE)
    largest = int(lives.requested[loss].max(initial=0))
    alike = np.zeros(len(lives), np.bool_)
    for size in distinct(lives.requested[loss & (lives.requested >= largest * _LARGE)]).tolist():
        alike |= np.isin(lives.requested, (size, 2 * size, size // 2))
    found: NDArray[np.bool_] = alike & (lives.begin != BEFORE)
    return found & known.of("activations", "transient", "backward", "other") & ~device.of_stack("optimizer")


def _by_module(device: Device, known: Categories, base: _Blocks, peak: int) -> Iterator[_Lever]:
    """Checkpointing, and keeping on the host, of modules that are called several times; those that save most."""
    lives, sites = device.lives, device.sites
    rows = np.flatnonzero(known.of("activations") & device.of_stack("in_module") & (lives.begin != BEFORE))
    held = np.bincount(lives.stack[rows], device.layout.size[rows], minlength=len(sites))
    amount: dict[ModuleCall, float] = {}
    for stack in np.flatnonzero(held).tolist():
        for call in sites[stack].calls:
            amount[call] = amount.get(call, 0.0) + held[stack]
    found: dict[str, dict[int, _Lever]] = {"checkpoint": {}, "offload": {}}
    for call in sorted(amount, key=lambda call: -amount[call])[: 4 * _MODULES]:
        inside = np.array([call in one.calls for one in sites], np.bool_)
        saved = _saved(device, rows[inside[lives.stack[rows]]], inside)
        if saved is None or saved.number < 2:
            continue
        # One line may stand for several calls, such as those of a torch.nn.Sequential.
        line = frame_line(device.snapshot.stacks.frames[call.frame])
        for name, of_name in found.items():
            less = peak - _highest(device, _without(base, saved, inputs=name == "checkpoint"))
            of_name.setdefault(less, _Lever(name, "activations", less, line, saved.number))
    for of_name in found.values():
        yield from (of_name[less] for less in sorted(of_name, reverse=True)[:_MODULES])


class _Saved(NamedTuple):
    """The blocks that the calls of a module keep for the backward pass, by call and age."""

    row: NDArray[np.int64]
    over: NDArray[np.int64]
    """Event at which the call of each is over."""
    again: NDArray[np.int64]
    """Event at which the backward pass of its call begins."""
    input: NDArray[np.bool_]
    """The last one of each call, which is what the next one gets."""
    number: int
    """Calls that keep blocks at the peak."""


def _saved(device: Device, rows: NDArray[np.int64], inside: NDArray[np.bool_]) -> _Saved | None:
    """A call begins with a block of the stack and size of the first one that follows other work."""
    lives, history, runs = device.lives, device.history, device.once(phases)
    rows = rows[np.argsort(lives.begin[rows], kind="stable")]
    allocs = np.flatnonzero(history.action == Action.ALLOC)
    outside = np.append(allocs[~inside[history.stack[allocs]]], device.events)
    place = np.searchsorted(outside, lives.begin[rows])
    fresh = np.flatnonzero(place[1:] != place[:-1]) + 1
    if len(rows) == 0:
        return None
    model = rows[fresh[0] if place[0] == 0 and len(fresh) else 0]
    starts = (lives.stack[rows] == lives.stack[model]) & (lives.requested[rows] == lives.requested[model])
    rows, call = rows[starts.argmax() :], (np.cumsum(starts) - 1)[starts.argmax() :]
    first = np.flatnonzero(np.diff(call, prepend=-1))
    last = np.append(first[1:], len(rows)) - 1
    over = np.minimum(
        outside[np.searchsorted(outside, lives.begin[rows[last]])],
        np.append(lives.begin[rows[first[1:]]], device.events),
    )
    # A pass that never came, as the run ended, keeps what lives then.
    ends = np.array([*device.failures, device.events - 1], np.int64)
    backward = np.append(runs.event[runs.phase == PHASES.index("backward")], device.events)
    passes = np.minimum(
        backward[np.searchsorted(backward, over)], ends[np.minimum(np.searchsorted(ends, over), len(ends) - 1)]
    )
    kept = lives.end[rows] > passes[call]
    rows, call = rows[kept], call[kept]
    if len(rows) == 0:
        return None
    again = np.full(len(first), device.events)
    np.minimum.at(again, call, lives.end[rows])
    top = device.failures[0] if device.failures else device.blocks.peak[1]
    live = (lives.begin[rows] <= top) & (lives.end[rows] > top)
    return _Saved(rows, over[call], again[call], np.append(call[1:] != call[:-1], True), len(distinct(call[live])))


def _without(base: _Blocks, saved: _Saved, *, inputs: bool) -> _Blocks:
    """What a module keeps is there until its call is over, and again in its backward pass; inputs may stay."""
    chosen = ~saved.input if inputs else np.ones(len(saved.row), np.bool_)
    row = saved.row[chosen]
    end = base.end.copy()
    end[row] = np.minimum(saved.over[chosen], end[row])
    begin = np.minimum(saved.again[chosen], base.end[row])
    return _Blocks(
        np.concatenate((base.begin, begin)),
        np.concatenate((end, base.end[row])),
        np.concatenate((base.size, base.size[row])),
    )
