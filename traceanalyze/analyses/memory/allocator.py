"""All analyses of an allocator snapshot, one device after another: their curves must never be summed.

Fragmentation is growth of the reserve although enough was free, but in pieces too small. It is judged where the
allocator had to grow, never at the dump: there most of the reserve is free in healthy programs, too.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.memory import BLOCK_BYTES, BLOCKS, CATEGORY, LINE, patterns
from traceanalyze.analyses.memory.caching import Rules
from traceanalyze.analyses.memory.categories import PHASES, phases
from traceanalyze.analyses.memory.composition import (
    AT_DUMP,
    AT_OOM,
    AT_PEAK,
    by_category,
    first_of_line,
    holders,
    live_at,
    moments,
)
from traceanalyze.analyses.memory.device import Device, Patterns
from traceanalyze.analyses.memory.device_calls import (
    RETRIES,
    Churn,
    DeviceCalls,
    OutOfMemory,
    churn,
    device_calls,
    out_of_memory,
    release_runs,
)
from traceanalyze.analyses.memory.dump import segments, self_check, statistics
from traceanalyze.analyses.memory.groups import memory_over_time
from traceanalyze.analyses.memory.holes import past_segments
from traceanalyze.analyses.memory.layout import Growth, LostWay
from traceanalyze.analyses.memory.levers import LEVERS, levers
from traceanalyze.analyses.memory.lifetimes import Curve
from traceanalyze.analyses.memory.sites import sites
from traceanalyze.analyses.memory.steps import Leak, leaks, step_marks, step_memory
from traceanalyze.analyses.memory.whatif import expandable_saving, missing, with_expandable, without_empty_cache
from traceanalyze.model.snapshot import Action, History, Snapshot, SnapshotDevice, State
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, Word, declare

INFO, WARN = 0.10, 0.20
"""Share of the reserve that was free in the domain (own; so are the next two)."""
AVOIDABLE = 0.01
"""Of the capacity, that fragmentation must have cost to be a warning."""
ASSUMED_CAPACITY = 1 << 30
"""In place of an unknown capacity; then nothing is more than information."""
MOST_PINNERS = 5
PINNERS = declare(
    "pinners",
    "Who keeps free segments from being used whole",
    LINE,
    BLOCKS,
    BLOCK_BYTES,
    Column(
        "held_bytes",
        Kind.MEMORY,
        "free bytes in the segments these blocks keep, shared out by their bytes",
        heading="holds back",
    ),
    detail=True,
)


class Fragmentation(NamedTuple):
    """Growth although enough was free, but in pieces."""

    share: float
    """Largest share of reserved memory that was free in the domain at such a growth."""
    request: int
    free: int
    largest_hole: int
    growths: int
    """Growths of this kind."""
    avoidable: int
    """Bytes by which expandable segments would lower the reserved peak, as the replay has it."""
    line: str
    pinners: Table
    """Who was in the way, most bytes held back first."""
    level: str
    """none, info, warn or critical"""

    @property
    def pinner(self) -> str:
        """Line of those most in the way; where nobody is, that of the request."""
        return next((str(line) for line in self.pinners.column("source_line")), self.line)


def fragmentation(device: Device, *, pressed: bool) -> Fragmentation | NotMeasured:
    """The worst growth of this kind, what expandable segments would save, and who was in the way.

    Args:
        device: The allocator.
        pressed: A retry or a failed request happened, so that every byte counted.
    """
    history, reserved = device.history, device.reserved
    if device.events <= 1:
        return NotMeasured("no_memory_history")
    if device.layout.lost:
        return NotMeasured("layout_not_exact")
    found = [
        (growth.free.bytes / max(reserved.at(growth.event - 1), 1), growth, request)
        for growth in device.layout.growths
        if (request := _request(history, growth, device.rules)) is not None
        and growth.free.bytes >= request > growth.free.largest
    ]
    if not found:
        none = PINNERS.fill(**dict.fromkeys(PINNERS.keys, ()))
        return Fragmentation(0.0, 0, 0, 0, 0, 0, "", none, "none")
    share, growth, request = max(found, key=lambda one: one[0])
    avoidable = device.once(expandable_saving) if share >= INFO else 0
    if isinstance(avoidable, NotMeasured):
        return avoidable
    level = _level(share, avoidable, device.capacity, reserved.peak[0], pressed=pressed)
    free, line, pinners = growth.free, device.line(growth.event), _pinners(device, growth)
    return Fragmentation(share, request, free.bytes, free.largest, len(found), avoidable, line, pinners, level)


def _request(history: History, growth: Growth, rules: Rules) -> int | None:
    """Bytes needed by the allocation that the growth was for: the next one of the same call, else the next at all."""
    after = np.flatnonzero(history.action[growth.event : growth.event + 4096] == Action.ALLOC)
    if len(after) == 0:
        return None
    return rules.rounded(int(history.size[growth.event + int(after[0])]))


def _pinners(device: Device, growth: Growth) -> Table:
    """Lines of the blocks in those segments of the domain that were free for the larger part."""
    lives, layout, sites = device.lives, device.layout, device.sites
    past = past_segments(device.device, device.rules, growth.event)
    ranges = [one for one in past.ranges if one.domain == growth.free.domain]
    start, end = np.array([(one.start, one.end) for one in ranges], np.int64).reshape(-1, 2).T
    live = live_at(lives, growth.event - 1)
    at = np.searchsorted(start, lives.address[live], "right") - 1
    inside = (at >= 0) & (lives.address[live] < end[at]) if ranges else np.zeros(len(live), np.bool_)
    live, at = live[inside], at[inside]
    used = np.bincount(at, layout.size[live], minlength=len(ranges)).astype(np.int64)
    held = (end - start) - used
    loose = (held > used) & (used > 0)
    live, at = live[loose[at]], at[loose[at]]
    line = first_of_line(sites)[lives.stack[live]]
    rows, size = group(line), layout.size[live]
    # What a segment holds back is shared out over its blocks by their bytes; products may exceed 64 bits.
    shares = held[at].astype(object) * size // used[at]
    found = PINNERS.fill(
        source_line=[sites[one].line for one in line[rows.first].tolist()],
        blocks=rows.count(),
        block_bytes=rows.sum(size),
        held_bytes=rows.sum(shares.astype(np.int64)),
    ).sort("-held_bytes", "source_line")
    return found.take(np.arange(min(len(found), MOST_PINNERS)))


def _level(share: float, avoidable: int, capacity: int | None, peak: int, *, pressed: bool) -> str:
    if share < INFO or avoidable < AVOIDABLE * (capacity or ASSUMED_CAPACITY):
        return "none"
    if share < WARN or capacity is None:
        return "critical" if pressed and share >= WARN else "info"
    return "critical" if pressed or peak >= 0.9 * capacity else "warn"


NEAR_LIMIT = 0.95
"""Of the capacity, as MEM109."""
_DIFFERENCE = declare(
    "memory_difference",
    "What changed at the peak",
    LINE,
    CATEGORY,
    Column("base_block_bytes", Kind.MEMORY, "bytes of live blocks at the base's peak", heading="base"),
    Column("candidate_block_bytes", Kind.MEMORY, "bytes of live blocks at the candidate's peak", heading="candidate"),
    Column("change_bytes", Kind.MEMORY_CHANGE, "candidate minus base", par=0.0),
    Column("base_blocks", Kind.COUNT, "live blocks at the base's peak"),
    Column("candidate_blocks", Kind.COUNT, "live blocks at the candidate's peak"),
    ranked=True,
)


class AllocatorAnalysis(NamedTuple):
    """Everything this version says about one device of a snapshot; events are indices into its history."""

    device: int
    events: int
    active: Curve
    """Requested bytes."""
    time: NDArray[np.int64] | None
    check: Table
    """One row: whether history and dump agree."""
    lost: LostWay | None
    """Why the layout is not exact."""
    moments: Table
    """Peak first, then reserved peak, out-of-memory events, dump."""
    at_peak: Table
    """Who holds the memory at the first of the moments."""
    steps: Table
    runs: Table
    """Segments given back to the device in one go."""
    calls: DeviceCalls
    marks: tuple[tuple[str, int], ...]
    """Begins of the annotated steps: name and ns since 1970; empty where the steps are not annotated."""
    churn: Churn | NotMeasured
    fragmentation: Fragmentation | NotMeasured
    ooms: tuple[OutOfMemory, ...]
    leaks: tuple[Leak, ...] | NotMeasured
    spike: patterns.Spike | NotMeasured
    gradients: patterns.HeldGradients | NotMeasured
    rounding_waste: float
    """Block bytes beyond the requested ones at the dump, over the requested."""
    capacity: int | None
    """Bytes the device has, where known."""
    settings: tuple[str, ...]
    """Keys of configuration remarks."""
    variable: str
    """Environment variable of the allocator's settings."""
    module: str
    """Module of torch whose functions record the allocator."""
    growing: patterns.GrowingSizes | NotMeasured
    oversized: patterns.OversizedBlocks | NotMeasured
    small: patterns.SmallBlocks | NotMeasured
    unused: int | None
    """Bytes reserved at most, less the most in blocks at any time of the history; None: the layout is not exact."""
    rising: bool
    """The peak is at the dump: more may have followed."""
    missing: int | None
    """Bytes that the first failed request lacked; None where nothing failed, or nothing tells."""
    truncation: str
    """What says that the history lacks its beginning; empty where nothing does."""
    held: tuple[Table, ...]
    """For the report: the moments, and who holds the memory, over time and then."""
    source: Device
    """What all of this is of."""
    state: tuple[Table, ...]
    """For the report: steps, what was given back, what was free, and the self-check."""

    @property
    def reconciled(self) -> bool:
        """Whether sums, segments and order of history and dump agree; the layout may still not be exact."""
        return bool(self.check.column("reconciled")[0])

    @property
    def retries(self) -> Table:
        """Runs for requests that found the device full, whether or not the second try succeeded."""
        return self.runs.take([row for row, kind in enumerate(self.runs.column("release_kind")) if kind in RETRIES])

    @property
    def most_reserved(self) -> int:
        """Bytes reserved at the moment with most."""
        return int(max(self.moments.array("reserved_bytes")))

    @property
    def near_limit(self) -> bool | None:
        """Whether nearly all of the device was reserved, where its capacity is known."""
        return None if self.capacity is None else self.most_reserved >= NEAR_LIMIT * self.capacity

    @property
    def levers(self) -> Table:
        """What would make the peak smaller, most bytes first."""
        return next(table for table in self.held if table.key == "memory_levers")

    @property
    def activations(self) -> tuple[int, float, str]:
        """Block bytes of activations at the peak, their share of it, and the line that holds most of them."""
        held = [one for one in self.at_peak.records() if one.memory_category == "category_activations"]
        amount = sum(one.block_bytes for one in held)
        return amount, amount / max(int(self.moments.array("block_bytes")[0]), 1), held[0].source_line if held else ""


def analyze_snapshot(
    snapshot: Snapshot, capacity: int | None = None, patterns: Patterns | None = None
) -> tuple[AllocatorAnalysis, ...]:
    """What every device's allocator did.

    Args:
        snapshot: As a reader returns it.
        capacity: Bytes of device memory, if the user or a profile tells.
        patterns: Categories of the user's own.
    """
    known = sites(snapshot.stacks)
    return tuple(_analysis(Device(snapshot, device, known, capacity, patterns)) for device in snapshot.devices)


def _analysis(device: Device) -> AllocatorAnalysis:
    decisive, free = moments(device)
    kinds, events = decisive.column("moment"), decisive.column("event")
    check, runs, steps = self_check(device), device.once(release_runs), step_memory(device)
    contradicts = None if check.column("reconciled")[0] else NotMeasured("snapshot_contradicts_itself")
    pressed = bool(device.failures) or not RETRIES.isdisjoint(runs.column("release_kind"))
    pieces = contradicts or fragmentation(device, pressed=pressed)

    def held(table: Table, moment: int) -> Table:
        event = events[moment]
        return holders(table, device, event if isinstance(event, int) else -1)

    at_peak = held(AT_PEAK, 0)
    at_oom = (held(AT_OOM, kinds.index("moment_oom")),) if device.failures else ()
    # Where the dump is the peak, once is enough.
    at_dump = (held(AT_DUMP, len(kinds) - 1),) if "moment_dump" in kinds[1:] else ()
    pinners = PINNERS.missing(pieces.reason) if isinstance(pieces, NotMeasured) else pieces.pinners
    counted, active, reserved = device.snapshot.statistics, device.active, device.reserved.peak[0]
    ooms = with_expandable(device, out_of_memory(device))
    return AllocatorAnalysis(
        device=device.device.id,
        events=device.events,
        active=device.active,
        time=device.history.time,
        check=check,
        lost=device.layout.lost,
        moments=decisive,
        at_peak=at_peak,
        steps=steps,
        runs=runs,
        calls=device.once(device_calls),
        marks=step_marks(device.snapshot),
        churn=_churn(device),
        fragmentation=pieces,
        ooms=ooms,
        leaks=contradicts or device.once(leaks),
        spike=patterns.spike(device),
        gradients=patterns.held_gradients(device),
        rounding_waste=_waste(device.device),
        capacity=device.capacity,
        settings=patterns.settings_remarks(device),
        variable=patterns.settings_variable(device.snapshot),
        module=patterns.memory_module(device.snapshot),
        growing=patterns.growing_sizes(device),
        oversized=patterns.oversized_blocks(device),
        small=patterns.small_blocks(device),
        unused=None if device.layout.lost else reserved - device.blocks.peak[0],
        rising=not ooms
        and device.events > 1
        and active.peak[1] >= 0
        and active.at(device.events - 1) == active.peak[0],
        missing=missing(device),
        truncation=patterns.truncation(device),
        source=device,
        held=(
            decisive,
            *memory_over_time(device),
            by_category(at_peak, reserved),
            LEVERS.missing(contradicts.reason) if contradicts else levers(device),
            at_peak,
            *at_oom,
            *at_dump,
        ),
        state=(steps, runs, pinners, free, segments(device.device), *([statistics(counted)] if counted else []), check),
    )


def _churn(device: Device) -> Churn | NotMeasured:
    found = churn(device)
    if isinstance(found, NotMeasured) or found.kind != "release_empty_cache":
        return found
    return found._replace(avoided=without_empty_cache(device))


def _waste(device: SnapshotDevice) -> float:
    blocks = device.blocks
    live = blocks.state != State.INACTIVE
    requested = int(blocks.requested[live].sum())
    return (int(blocks.size[live].sum()) - requested) / requested if requested else 0.0


def difference(base: Sequence[Device], candidate: Sequence[Device]) -> tuple[Table, tuple[str, str] | None]:
    """Two snapshots by category and line, each of the device that reserves most; largest change first.

    Rows sum to what both hold, without those that are equal: at their peaks, or where these are in different phases of
    a step, both at the highest moment of the base's. Returned are these two phases, None where the peaks are meant.
    """
    one, other = (max(side, key=lambda each: each.reserved.at(each.active.peak[1])) for side in (base, candidate))
    moments_, apart = [one.active.peak[1], other.active.peak[1]], None
    during = [np.append(each.once(phases).during(each.events), -1) for each in (one, other)]
    wanted, own = (int(known[event]) for known, event in zip(during, moments_, strict=True))
    alike = during[1][:-1] == wanted
    if wanted != own and min(moments_) >= 0 and alike.any():
        moments_[1] = int(np.flatnonzero(alike)[other.active.after[alike].argmax()])
        apart = PHASES[wanted], PHASES[own]
    sums: dict[tuple[str, str], list[int]] = {}
    for at, (device, event) in enumerate(zip((one, other), moments_, strict=True)):
        for row in holders(AT_PEAK, device, event).records():
            entry = sums.setdefault((row.source_line, row.memory_category), [0, 0, 0, 0])
            entry[at] += row.block_bytes
            entry[2 + at] += row.blocks
    found = _DIFFERENCE.fill_records(
        {
            "source_line": line,
            "memory_category": category,
            "base_block_bytes": before,
            "candidate_block_bytes": after,
            "change_bytes": after - before,
            "base_blocks": blocks_before,
            "candidate_blocks": blocks_after,
        }
        for (line, category), (before, after, blocks_before, blocks_after) in sorted(sums.items())
        if (before, blocks_before) != (after, blocks_after)
    )
    held = [device.blocks.at(event) for device, event in zip((one, other), moments_, strict=True)]
    totals: dict[str, Value] = {
        "source_line": Word("moment_peak" if apart is None else f"phase_{apart[0]}"),
        "base_block_bytes": held[0],
        "candidate_block_bytes": held[1],
        "change_bytes": held[1] - held[0],
    }
    order = np.argsort(-np.abs(found.array("change_bytes")), kind="stable")
    return replace(found.take(order), totals=totals), apart
