"""Habits of the program and of the recording.

Blocks that live too short or too long (MEM114, MEM115, MEM117), requests that do not fit what is free (MEM105, MEM106),
settings (MEM119), a history without its beginning.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.memory.caching import SMALL
from traceanalyze.analyses.memory.categories import short_lived
from traceanalyze.analyses.memory.composition import live_at
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.device_calls import RETRIES, device_calls
from traceanalyze.analyses.memory.replay import replay
from traceanalyze.analyses.memory.steps import step_starts
from traceanalyze.analyses.memory.whatif import as_recorded, expandable_saving, saving, unknown
from traceanalyze.model.snapshot import Action, History, Snapshot
from traceanalyze.model.table import NotMeasured

SPIKE_SHARE = 0.2
"""Real offenders have 0.26–1.0 of their peak in short-lived blocks, others at most 0.17."""
GRADIENT_SHARE = 0.05


class Spike(NamedTuple):
    """Short-lived blocks at the peak."""

    share: float
    bytes: int
    line: str
    flagged: bool


def spike(device: Device) -> Spike | NotMeasured:
    """Share of the peak held by blocks that were freed again at once."""
    if device.events <= 1:
        return NotMeasured("no_memory_history")
    lives, (peak, event) = device.lives, device.active.peak
    live = live_at(lives, event)
    live = live[short_lived(lives, device.history)[live]]
    size = int(lives.requested[live].sum())
    share = size / peak if peak else 0.0
    largest = int(live[lives.requested[live].argmax()]) if len(live) else -1
    line = device.sites[int(lives.stack[largest])].line if largest >= 0 else ""
    return Spike(share, size, line, share >= SPIKE_SHARE)


class HeldGradients(NamedTuple):
    """Gradients still alive while the next forward pass reaches its peak."""

    bytes: int
    share: float
    step: str
    flagged: bool


def held_gradients(device: Device) -> HeldGradients | NotMeasured:
    """Gradients of the step before that are alive at the peak of a later step's forward pass.

    The forward pass of a step lasts from its begin to the first allocation of its backward pass.
    """
    starts, lives, active = device.once(step_starts), device.lives, device.active
    if len(starts.first) < 2:
        return NotMeasured("no_memory_steps")
    gradient, backward = device.of_stack("gradient"), device.of_stack("backward")
    if not gradient.any():
        return NotMeasured("no_gradient_stacks")
    begins = np.append(np.sort(lives.begin[backward & (lives.begin >= 0)]), device.events)
    first, until = starts.first, np.append(starts.first[1:], device.events)
    end = np.minimum(begins[np.searchsorted(begins, first)], until)
    step = np.flatnonzero(end > first)
    step = step[step > 0]
    first = first[step]
    top = np.array([a + int(active.after[a:b].argmax()) for a, b in zip(first, end[step], strict=True)], np.int64)
    # Each gradient is held from the first step that begins after it to the last one whose peak it lives to see.
    rows = np.flatnonzero(gradient)
    held = np.zeros(len(step) + 1, np.int64)
    since, last = np.searchsorted(first, lives.begin[rows], "right"), np.searchsorted(top, lives.end[rows])
    seen = since < last
    np.add.at(held, since[seen], lives.requested[rows[seen]])
    np.subtract.at(held, last[seen], lives.requested[rows[seen]])
    held = np.cumsum(held)[: len(step)]
    most = int(held.max(initial=0))
    worst = max(((most, starts.name[at]) for at in step[held == most].tolist()), default=(0, ""))
    share = worst[0] / active.peak[0] if active.peak[0] else 0.0
    return HeldGradients(worst[0], share, worst[1], share >= GRADIENT_SHARE)


def settings_remarks(device: Device) -> tuple[str, ...]:
    """Keys of what is odd about the configuration and the recording."""
    settings = device.snapshot.settings
    expandable = settings.get("expandable_segments") is True
    split = settings.get("max_split_size")
    threshold = settings.get("garbage_collection_threshold")
    text = str(settings.get("PYTORCH_CUDA_ALLOC_CONF", "")) + str(settings.get("PYTORCH_ALLOC_CONF", ""))
    found = []
    if expandable and isinstance(split, int) and split > 0:
        found.append("expandable_with_max_split")
    if isinstance(threshold, int | float) and threshold > 0 and "fraction" not in text:
        found.append("gc_threshold_without_fraction")
    if device.events == 0:
        found.append("history_never_recorded")
    elif device.events == 1:
        found.append("state_only_recording")
    if not device.snapshot.stacks.stacks:
        found.append("no_memory_stacks")
    return tuple(found)


def settings_variable(snapshot: Snapshot) -> str:
    """Environment variable of the allocator's settings; both of torch's names where the file does not tell which."""
    if snapshot.vendor == "npu":
        return "PYTORCH_NPU_ALLOC_CONF"
    if snapshot.vendor == "xpu":
        return "PYTORCH_ALLOC_CONF"
    # A setting that came with the new name, in torch 2.9.
    if "graph_capture_record_stream_reuse" in snapshot.settings:
        return "PYTORCH_ALLOC_CONF"
    return "PYTORCH_CUDA_ALLOC_CONF" if snapshot.settings else "PYTORCH_ALLOC_CONF / PYTORCH_CUDA_ALLOC_CONF"


def memory_module(snapshot: Snapshot) -> str:
    """Module of torch that records the allocator of such a device."""
    return {"npu": "torch_npu.npu.memory", "xpu": "torch.xpu.memory"}.get(snapshot.vendor, "torch.cuda.memory")


STEPS = 3
"""Steps after the first; own. The first step, and what is made when first needed, grow in every program."""
_SIZE_BITS = 42
"""4 TiB: no request is larger."""


class GrowingSizes(NamedTuple):
    """Memory taken from the device because one line asked for more than ever before, step after step."""

    line: str
    """Of the largest part of it; empty where there is none."""
    steps: int
    """Steps after the first with such growth."""
    smallest: int
    """The first of the line's requests that were larger than all before, in a step after the first."""
    largest: int
    """The last of them."""
    grown: int
    """Bytes taken from the device for them, all lines."""
    retries: int
    """Calls among them that found the device full."""
    flagged: bool
    saved: int | NotMeasured = 0
    """Bytes that expandable segments would save, by the replay."""


def growing_sizes(device: Device) -> GrowingSizes | NotMeasured:
    """Calls of the device for a request larger than any before with the same stack, in steps after the first."""
    history, calls, starts = device.history, device.once(device_calls), device.once(step_starts)
    if len(starts.first) < STEPS + 1:
        return NotMeasured("no_memory_steps")
    asking = np.minimum(calls.last + 1, max(len(history) - 1, 0))
    known = history.stack[asking] >= 0
    chosen = np.flatnonzero((calls.grown > 0) & (calls.request > 0) & _records(history)[asking] & known)
    step = np.searchsorted(starts.first, asking[chosen], "right") - 1
    chosen, step = chosen[step > 0], step[step > 0]
    if len(chosen) == 0:
        return GrowingSizes("", 0, 0, 0, 0, 0, flagged=False)
    stack = history.stack[asking[chosen]]
    stacks = group(stack)
    steps = np.bincount(stacks.of[group(stack, step).first], minlength=len(stacks))
    # The user can change a line of the program; what grows in the backward pass follows from it.
    named = np.array([device.sites[code].path is not None for code in stack[stacks.first].tolist()], np.bool_)
    best = int(np.lexsort((stacks.sum(calls.grown[chosen]), named, steps >= STEPS))[-1])
    requests = calls.request[chosen[stacks.of == best]]
    return GrowingSizes(
        line=device.sites[int(stack[stacks.first[best]])].line,
        steps=int(steps[best]),
        smallest=int(requests[0]),
        largest=int(requests[-1]),
        grown=int(calls.grown[chosen].sum()),
        retries=sum(calls.kind[row] in RETRIES for row in chosen.tolist()),
        flagged=bool(steps[best] >= STEPS),
        saved=device.once(expandable_saving) if steps[best] >= STEPS else 0,
    )


def _records(history: History) -> NDArray[np.bool_]:
    """Allocations larger than all before with the same stack; the first of a stack is none."""
    allocs = np.flatnonzero(history.action == Action.ALLOC)
    order = allocs[np.argsort(history.stack[allocs], kind="stable")]
    stack = history.stack[order].astype(np.int64) + 1
    highest = np.maximum.accumulate((stack << _SIZE_BITS) + history.size[order])
    larger = np.zeros(len(order), np.bool_)
    larger[1:] = (stack[1:] == stack[:-1]) & (highest[1:] > highest[:-1])
    out = np.zeros(len(history), np.bool_)
    out[order[larger]] = True
    return out


WINDOW = 20 << 20
"""A block above max_split_size goes whole to a request that is at most so much smaller (max_non_split_rounding_mb)."""


class OversizedBlocks(NamedTuple):
    """Growth although a free block was large enough, but by too much for the allocator to give it away whole."""

    line: str
    """Of the largest such request; empty where there is none."""
    growths: int
    request: int
    """The largest such request."""
    unused: int
    """The free block that it could not have."""
    saved: int | NotMeasured
    """Bytes by which less would be reserved at most if every block were split, by the replay."""


def oversized_blocks(device: Device) -> OversizedBlocks | NotMeasured:
    """Growths for requests above `max_split_size` while a block larger by more than 20 MiB was free."""
    if device.events <= 1:
        return NotMeasured("no_memory_history")
    if device.layout.lost:
        return NotMeasured("layout_not_exact")
    none, calls, growths = OversizedBlocks("", 0, 0, 0, 0), device.once(device_calls), device.layout.growths
    limit = device.snapshot.settings.get("max_split_size")
    # Without a limit every free block is split, and growth means that none was large enough.
    if type(limit) is not int or limit <= 0 or not len(calls) or not growths:
        return none
    event = np.array([one.event for one in growths], np.int64)
    hole = np.array([one.free.largest for one in growths], np.int64)
    row = np.searchsorted(calls.first, event, "right") - 1
    request = np.where((row >= 0) & (event <= calls.last[row]), calls.request[row], 0)
    failed = np.flatnonzero((request >= limit) & (hole >= request + WINDOW))
    if len(failed) == 0:
        return none
    worst = failed[int(request[failed].argmax())]
    return OversizedBlocks(
        line=device.line(event[worst]),
        growths=len(failed),
        request=int(request[worst]),
        unused=int(hole[worst]),
        saved=device.once(_split_saving),
    )


def _split_saving(device: Device) -> int | NotMeasured:
    """What is saved where `max_split_size` is left out."""
    base = as_recorded(device)
    whole = base._replace(rules=base.rules._replace(max_split=None))
    return device.once(unknown) or saving(device, replay(device, whole))


COUNT, SHARE, AGE = 1000, 0.30, 0.90
"""Blocks, their share of the live ones, and the share of the history they live (own)."""
HELD = 0.01
"""Free bytes that they keep, of the reserved peak; own, as the avoidable bytes of fragmentation."""


@dataclass(frozen=True)
class SmallBlocks:
    """Small blocks that live nearly throughout, at the peak."""

    count: int
    share: float
    """Of the live blocks."""
    segments: int
    """Segments that nothing else keeps."""
    held: int
    """Free bytes in these segments."""
    line: str
    """That most of them are from."""
    flagged: bool


def small_blocks(device: Device) -> SmallBlocks | NotMeasured:
    """The small long-lived blocks of the peak, and what they alone keep reserved."""
    lives, layout, count = device.lives, device.layout, device.events
    if count <= 1:
        return NotMeasured("no_memory_history")
    live = live_at(lives, device.active.peak[1])
    age = np.minimum(lives.end[live], count) - np.maximum(lives.begin[live], 0)
    small = (layout.size[live] < SMALL) & (age > AGE * count)
    chosen = live[small]
    if len(chosen) == 0:
        return SmallBlocks(0, 0.0, 0, 0, "", flagged=False)
    segments = device.device.segments
    # Of segments given back since then nothing is said.
    place = np.searchsorted(segments.address, lives.address[live], "right") - 1
    known = place >= 0
    known[known] = lives.address[live[known]] < (segments.address + segments.size)[place[known]]

    used, others = np.zeros((2, len(segments)), np.int64)
    np.add.at(used, place[known & small], layout.size[live[known & small]])
    np.add.at(others, place[known & ~small], layout.size[live[known & ~small]])
    alone = (used > 0) & (others == 0)
    # No more than what was reserved and never used.
    unused = device.reserved.peak[0] - device.blocks.peak[0]
    held = min(int((segments.size - used)[alone].sum()), max(unused, 0))
    stack = int(np.bincount(lives.stack[chosen] + 1).argmax()) - 1
    share = len(chosen) / len(live)
    return SmallBlocks(
        count=len(chosen),
        share=share,
        segments=int(alone.sum()),
        held=held,
        line=device.sites[stack].line if stack >= 0 else "",
        flagged=len(chosen) >= COUNT and share >= SHARE and held >= HELD * device.reserved.peak[0],
    )


ROUND = 10_000
"""Rings are asked for in such numbers; a history of just so many events has most likely forgotten older ones (own)."""


def truncation(device: Device) -> str:
    """What says that the history lacks its beginning; empty where nothing does.

    full: the file says that the ring forgot events (torch ≥ 2.12); before that round: as many events as rings are long;
    late: the peak was before the first event.
    """
    overflowed, events, active = device.snapshot.overflowed, device.events, device.active
    if overflowed:
        return "full"
    if overflowed is None and active.base > 0 and events >= ROUND and events % ROUND == 0:
        return "round"
    return "late" if events > 1 and active.peak[1] < 0 else ""
