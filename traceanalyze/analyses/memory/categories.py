"""What each block is for: by its call stack, by when it was freed, or by its size.

Blocks from before the history have no stacks. A training gives them away by their sizes: every parameter has a gradient
of its size, and states of the optimizer of that size or of twice or half of it (32 bits beside 16).
"""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.lifetimes import BEFORE, Lifetimes
from traceanalyze.analyses.memory.sites import frame_text
from traceanalyze.analyses.memory.steps import leaks, step_starts
from traceanalyze.model.phases import OPTIMIZER_STEP
from traceanalyze.model.snapshot import Action, History
from traceanalyze.model.table import NotMeasured

CATEGORIES = (
    *("preexisting", "transient", "communication", "compile", "gradients", "backward", "optimizer", "leaked"),
    *("activations", "parameters", "other"),
)
"""The first that fits, after what the user names: allocated before the history and not known by size; freed again at
once, or with the optimizer's step that made it; buffers of collectives; made while torch.compile compiles; made on the
autograd engine and alive after its pass; the rest of the engine's; under a step of torch.optim; left behind by every
step; under a module call, or alive when the backward pass begins; outside modules and alive at the dump; the rest."""
SHORT = 10
"""Later allocations within which a block is freed again to be short-lived (own)."""
KNOWN = 0.8
"""Share of the gradients' bytes that early blocks must have the sizes of to be named by them (own)."""
_FORWARD, _BACKWARD, _OPTIMIZER = range(3)
PHASES = ("forward", "backward", "optimizer")


class Categories(NamedTuple):
    """Of every block."""

    code: NDArray[np.int64]
    names: tuple[str, ...]
    """Term of each code; the user's own after those of the tool."""
    own: NDArray[np.int64]
    """The tool's categories, whatever the user names."""

    def of(self, *names: str) -> NDArray[np.bool_]:
        """Whether a block is of one of the tool's categories."""
        return np.isin(self.own, [CATEGORIES.index(name) for name in names])


def short_lived(lives: Lifetimes, history: History) -> NDArray[np.bool_]:
    """Blocks freed within `SHORT` later allocations, and not because a request failed meanwhile."""
    count = len(history)
    inside = (lives.begin != BEFORE) & (lives.end < count)
    first, last = np.maximum(lives.begin, 0) + 1 if count else 0, np.minimum(lives.end, count)
    allocations, failures = (
        np.concatenate(([0], np.cumsum(history.action == action))) for action in (Action.ALLOC, Action.OOM)
    )
    found: NDArray[np.bool_] = inside & (allocations[last] - allocations[first] <= SHORT)
    found &= failures[last] == failures[first]
    return found


class Phases(NamedTuple):
    """The allocations of a history in runs of one phase each."""

    event: NDArray[np.int64]
    """Every allocation but those of collectives, which are made in all phases."""
    phase: NDArray[np.int64]
    """Index into `PHASES`; forward stands for all that is neither of the others."""
    over: NDArray[np.int64]
    """First allocation of another phase after it; the number of events where none follows."""

    firm: NDArray[np.bool_]
    """Allocations of the model, the backward pass or the optimizer: others belong to the phase before them."""

    def during(self, count: int) -> NDArray[np.int64]:
        """The phase that each event is in."""
        last = np.maximum.accumulate(np.where(self.firm, np.arange(len(self.firm)), -1))
        known = np.append(np.append(self.phase, _FORWARD)[last], _FORWARD)
        found: NDArray[np.int64] = known[np.searchsorted(self.event, np.arange(count), "right") - 1]
        return found

    def spans(self, phase: int, count: int) -> NDArray[np.bool_]:
        """Whether each event is in the phase."""
        place = np.searchsorted(self.event, np.arange(count), "right") - 1
        found: NDArray[np.bool_] = (place >= 0) & (np.append(self.phase, _FORWARD)[place] == phase)
        return found


def phases(device: Device) -> Phases:
    """What the program is doing at each allocation."""
    history, count = device.history, device.events
    event = np.flatnonzero(history.action == Action.ALLOC)
    sites, stack = device.sites, history.stack[event]
    flags = [(one.backward, one.optimizer, one.communication, one.in_module) for one in sites]
    backward, optimizer, collective, model = np.array(flags, np.bool_)[stack].T
    # Stacks of Python alone have no frames of the engine's threads, which run no Python.
    native = any("::" in frame.name for frame in device.snapshot.stacks.frames)
    if not native and (stack >= 0).any():
        backward = backward | (stack < 0)
    # A step with a closure is around all that is trained.
    inside = _within(device, OPTIMIZER_STEP)[event]
    if not (inside & model).any():
        optimizer = optimizer | ((stack < 0) & inside)
    event, phase = event[~collective], np.select((optimizer, backward), (_OPTIMIZER, _BACKWARD), _FORWARD)[~collective]
    last = np.flatnonzero(np.append(phase[1:] != phase[:-1], True)[: len(phase)])
    following = np.append(event, count)[last + 1]
    over = following[np.searchsorted(last, np.arange(len(event)))]
    return Phases(event, phase, over, model[~collective] | (phase != _FORWARD))


def _within(device: Device, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    """Whether each event lies in a user's range whose name matches."""
    notes, time = device.snapshot.annotations, device.history.clock
    inside = np.zeros(device.events + 1, np.int64)
    if notes is not None and time is not None:
        known = np.array([pattern.search(name) is not None for name in notes.name], np.bool_)
        np.add.at(inside, np.searchsorted(time, notes.time[known], "right"), np.where(notes.start[known], 1, -1))
    depth = np.cumsum(inside)[: device.events]
    # A range that began before the history has an end alone.
    found: NDArray[np.bool_] = depth > np.minimum(np.minimum.accumulate(depth), 0)
    return found


def categories(device: Device) -> Categories:
    """The category of every block."""
    lives, of_stack, count = device.lives, device.of_stack, device.events
    runs = device.once(phases)
    alive, begun = lives.end == count, lives.begin != BEFORE
    # Buffers of collectives belong to the phase that they are made in.
    place = np.searchsorted(runs.event, lives.begin, "right") - 1
    known = place >= 0
    phase, over = np.full(len(lives), _FORWARD), np.full(len(lives), count)
    phase[known], over[known] = runs.phase[place[known]], runs.over[place[known]]
    phase[~known & of_stack("backward")], phase[~known & of_stack("optimizer")] = _BACKWARD, _OPTIMIZER
    stays = ~known | (lives.end > over) | (alive & (over == count))
    transient, collective = short_lived(lives, device.history), of_stack("communication")
    transient |= (phase == _OPTIMIZER) & ~stays & ~collective
    backward = phase == _BACKWARD
    # What a sharded module reduces and keeps after the pass are its gradients.
    gradient = (of_stack("gradient") | (backward & stays)) & ~transient
    collective &= ~gradient
    passes = np.append(runs.event[runs.phase == _BACKWARD], count)
    saved = begun & (passes[np.searchsorted(passes, lives.begin)] < lives.end) & ~alive
    # What a step leaves is overwritten by the next one; what was made in the first one is there for good.
    starts = device.once(step_starts).first
    recent = lives.begin >= (starts[-2] if len(starts) > 1 else BEFORE if count <= 1 else 0)
    old = lives.begin < (starts[1] if len(starts) > 1 else count)
    told, texts = _told(device)
    tests = {
        "transient": transient,
        "communication": collective,
        "compile": np.array([unit != "" for _, unit in texts], np.bool_)[told],
        "gradients": gradient,
        "backward": backward,
        "optimizer": phase == _OPTIMIZER,
        "leaked": _leaked(device) & alive & begun,
        "activations": np.where(of_stack("in_module"), ~alive | recent, saved),
        "parameters": ~of_stack("in_module") & alive & old,
    }
    codes = [CATEGORIES.index(name) for name in tests]
    code = np.select(list(tests.values()), codes, CATEGORIES.index("other")).astype(np.int64)
    early = np.flatnonzero(~begun & (lives.stack < 0))
    code[early] = _by_size(device, early, gradient)
    return _named(device, code)


def _told(device: Device) -> tuple[NDArray[np.int64], tuple[tuple[str, str], ...]]:
    """What each block's allocation tells beside its stack: index into the texts, of which the last is empty."""
    history, begin = device.history, device.lives.begin
    texts = (*history.texts, ("", ""))
    if history.told is None:
        return np.full(len(begin), len(texts) - 1), texts
    return np.append(history.told, len(texts) - 1).astype(np.int64)[begin], texts


def _leaked(device: Device) -> NDArray[np.bool_]:
    found = device.once(leaks)
    lines = set() if isinstance(found, NotMeasured) else {one.line for one in found}
    return np.array([one.line in lines for one in device.sites], np.bool_)[device.lives.stack]


def _by_size(device: Device, early: NDArray[np.int64], gradient: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The categories of blocks without stacks from before the history, by the sizes of the gradients."""
    lives, runs, count = device.lives, device.once(phases), device.events
    category = np.full(len(early), CATEGORIES.index("preexisting"))
    grown = np.zeros(count + 1, np.int64)
    held = np.flatnonzero(gradient)
    np.add.at(grown, np.maximum(lives.begin[held], 0), lives.requested[held])
    np.subtract.at(grown, lives.end[held], lives.requested[held])
    at = int(np.cumsum(grown).argmax())
    held = held[(lives.begin[held] <= at) & (lives.end[held] > at)]
    size, copies = np.unique(lives.requested[held], return_counts=True)
    if len(size) == 0 or len(early) == 0:
        return category
    # Parameters and states outlive all work; gradients of the step before are given back first.
    work = runs.event[runs.phase != _FORWARD]
    end = lives.end[early]
    lasting = (end == count) | (end > work.max(initial=BEFORE))
    in_optimizer = np.append(runs.spans(_OPTIMIZER, count), False)[end] & ~lasting
    order = np.lexsort((lives.address[early], lives.requested[early]))
    ascending, free = lives.requested[early[order]], np.ones(len(early), np.bool_)

    def of_size(bytes_: int, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Blocks of a size that are not named yet."""
        first, last = np.searchsorted(ascending, (bytes_, bytes_ + 1))
        rows = order[first:last]
        found: NDArray[np.int64] = rows[free[rows] & chosen[rows]]
        return found

    def name(rows: NDArray[np.int64], as_: str) -> None:
        category[rows], free[rows] = CATEGORIES.index(as_), False

    pairs = list(zip(size.tolist(), copies.tolist(), strict=True))
    # Parameters may have twice the bits of their gradients.
    for bits in (1, 2):
        there = sum(bytes_ * min(len(of_size(bits * bytes_, lasting)), number) for bytes_, number in pairs)
        if there >= KNOWN * int((size * copies).sum()):
            break
    else:
        return category
    for bytes_, number in pairs:
        name(of_size(bits * bytes_, lasting)[:number], "parameters")
    for bytes_, number in pairs:
        name(of_size(bits * bytes_, in_optimizer), "optimizer")
        name(of_size(bytes_, ~lasting)[:number], "gradients")
        for other in (bits * bytes_, 2 * bits * bytes_, bits * bytes_ // 2, bits * bytes_ // 4):
            more = of_size(other, lasting)
            name(more[: len(more) // number * number], "optimizer")
    return category


def _named(device: Device, code: NDArray[np.int64]) -> Categories:
    """The categories with those that the user names: by patterns, else by what the program said of a block."""
    terms = [f"category_{name}" for name in CATEGORIES]
    lives, stacks = device.lives, device.snapshot.stacks
    told, said = _told(device)
    names = list(dict.fromkeys((*device.patterns, *(text for text, _ in said if text))))
    if not names:
        return Categories(code, tuple(terms), code)
    chosen = np.array([names.index(text) if text else -1 for text, _ in said], np.int64)[told]
    texts = ["\n".join(frame_text(stacks.frames[at]) for at in stack) for stack in stacks.stacks]
    for name, pattern in reversed([*device.patterns.items()]):
        hit = np.array([*(pattern.search(text) is not None for text in texts), False], np.bool_)[lives.stack]
        hit |= np.array([any(text and pattern.search(text) for text in pair) for pair in said], np.bool_)[told]
        hit |= np.append(_within(device, pattern), False)[lives.begin]
        chosen[hit] = names.index(name)
    return Categories(np.where(chosen >= 0, len(terms) + chosen, code), (*terms, *names), code)
