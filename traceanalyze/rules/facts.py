"""What rules see of one rank: its analyses, the derived tables behind them, and means over the steps that count."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeVar, cast
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.computes import host_computes
from traceanalyze.analyses.host.frames import user_frames
from traceanalyze.analyses.idle.host_state import HostSplit, host_states
from traceanalyze.analyses.idle.idle import IdleCauses, Pieces, idle_gaps, step_pieces
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.window import Window, cycle_of, window_of
from traceanalyze.model import intervals
from traceanalyze.model.columns import Rows, distinct, occurs, taken
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import DISPATCH_CALLS, IDLE_PARTS, Cause, DeviceClass, EventKind, Mode
from traceanalyze.rules.finding import intervals_of, merged, picked

if TYPE_CHECKING:
    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis

Made = TypeVar("Made")
RANGES = EventKind.ANNOTATION, EventKind.HOST_OP
"""Kinds of events that programs and libraries name as they like."""
_OPTIMIZES = regex(r"^Optimizer\.step#")
CLASSES: dict[str, tuple[Cause, ...]] = {
    **{f"idle.{key}": causes for key, causes in IDLE_PARTS.items() if key != "sync"},
    "idle.dispatch": DISPATCH_CALLS,
    "idle.host_op": (Cause.HOST_OP,),
}
"""Classes of idle time that savings draw from, and their causes. What a sync point causes is idle of several causes, so
`idle.sync`, like `idle`, is all idle time."""
_LOOK_UPS = 128
"""What rules look for among the names of a recording, twice as much."""
HOST_CLASSES = {"host.data_loading": "data_loading", "host.ops": "host_op", "host.untraced": "untraced"}
"""Classes of host time where the host alone computes, and the parts of `HostSplit` they are; `host` is all of it."""


class Facts:
    """One rank's analyses and context; everything else is derived when first asked for. Times int64 ns.

    "The windows" are the complete steps (all where none is complete; without markers the whole trace): the same as in
    the report.
    """

    def __init__(self, analysis: RankAnalysis, context: Context, allocator: AllocatorAnalysis | None = None) -> None:
        self.analysis = analysis
        self.context = context
        self.allocator = allocator
        """What a snapshot of the same rank tells about the headline device, where there is one."""
        self._made: dict[Callable[[Facts], object], object] = {}
        self._idle: dict[tuple[Cause, ...], NDArray[np.int64]] = {}
        self._inside: dict[int, NDArray[np.bool_]] = {}
        self._headline: dict[DeviceClass, NDArray[np.bool_]] = {}
        self._sets: dict[int, tuple[Intervals, Intervals, ref[NDArray[np.int64]]]] = {}
        self._texts: dict[tuple[EventKind, ...], tuple[NDArray[np.int64], tuple[str, ...]]] = {}
        self._rows: dict[tuple[object, object], NDArray[np.int64]] = {}
        self._of_names: dict[tuple[int, ...], NDArray[np.int64]] = {}

    @property
    def snapshot(self) -> AllocatorAnalysis:
        """`allocator`, for rules that need one (N)."""
        assert self.allocator is not None
        return self.allocator

    def once(self, make: Callable[[Facts], Made]) -> Made:
        """What several rules derive from these facts, made when first asked for and dropped with the facts."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("Made", self._made[make])

    @cached_property
    def window(self) -> Window:
        """The steps that count: their number, means and shares."""
        return window_of(self.analysis.steps)

    @cached_property
    def step_time(self) -> int:
        """Mean time of a step."""
        return self.window.mean(self.window.total)

    @property
    def marked(self) -> bool:
        """Whether the windows are steps, not the whole trace."""
        return self.analysis.mode == Mode.STEPS or (
            self.analysis.mode == Mode.HOST_ONLY and self.context.markers is not None
        )

    @property
    def host_computes(self) -> bool:
        """Whether the host alone computed, so that its time is that of the step."""
        return self.context.once(host_computes)

    @property
    def platform(self) -> str:
        """`ascend` or `cuda` (which stands for all others)."""
        return "ascend" if self.context.trace.origin.format == "ascend" else "cuda"

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables that the profile states."""
        return self.context.trace.environment or {}

    @cached_property
    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and ends of the windows."""
        rows = np.array(self.window.rows, np.int64)
        return self.analysis.steps.start[rows], self.analysis.steps.end[rows]

    @cached_property
    def windows(self) -> Intervals:
        """The windows as a set; steps that touch are one member."""
        return intervals.merge(*self.edges)

    def mean(self, amount: int) -> int:
        """A sum over the windows as ns a step."""
        return self.window.mean(amount)

    def per_step(self, times: NDArray[np.int64]) -> int:
        """The sum of times in the windows, ns a step."""
        return self.window.mean(int(times.sum()))

    def share(self, amount: int) -> float:
        """Ns a step as a fraction of the mean step."""
        return amount / self.step_time if self.step_time else 0.0

    def missing(self, needs: str) -> str | None:
        """Reason why a rule with these needs cannot be applied, None if it can. Codes as in `Rule.needs`."""
        lacking = next((reason for code, reason in self._lacking.items() if code in needs), None)
        doubt = self.context.doubt
        felt = not {"L", "A"}.isdisjoint(needs) or ("D" in needs and doubt in {"work_lost", "only_sums"})
        return doubt if lacking is None and felt else lacking

    @cached_property
    def _lacking(self) -> dict[str, str]:
        """By their codes the reasons why what a recording may have is not in this one."""
        context, fields = self.context, self.context.trace.events.fields
        known = {
            "D": self.analysis.mode in {Mode.STEPS, Mode.WHOLE_TRACE},
            "L": len(context.calls) > 0,
            "A": len(context.calls) > 0 and not context.waits_lost,
            "O": bool(occurs(self._names[1], RANGES).any()),
            "P": context.once(user_frames).recorded,
            "H": "shapes" in fields,
            "N": self.allocator is not None,
            "M": self.analysis.measured("memory"),
            "C": "collective" in fields,
            "K": "grid" in fields or self.analysis.measured("kernel_types"),
            "E": self.context.trace.environment is not None,
        }
        reasons = _REASONS | ({"A": context.waits_lost} if context.waits_lost else {})
        return {code: reason for code, reason in reasons.items() if not known.get(code)}

    @cached_property
    def communicates(self) -> bool:
        """Whether any device work is communication."""
        return bool((self.context.device.klass == DeviceClass.COMM).any())

    @cached_property
    def pieces(self) -> Pieces:
        """Idle time of the headline device in the windows, cut by cause."""
        cut, step = self.context.once(step_pieces)
        # A dozen rules look up the gaps of all pieces.
        cut = cut._replace(gap=cut.gap.astype(np.intp))
        if self.window.count == len(self.analysis.steps):
            return cut
        inside = np.flatnonzero(occurs(step, self.window.rows))
        return Pieces._make(column[inside] for column in cut)

    def idle(self, *causes: Cause) -> NDArray[np.int64]:
        """(n, 2) idle time of these causes in the windows, in time order; of all causes where none is named."""
        if not causes:
            return intervals_of(self.pieces.start, self.pieces.end)
        if causes not in self._idle:
            chosen = occurs(self.pieces.cause, causes)
            self._idle[causes] = picked(self.pieces.start, self.pieces.end, chosen)
        return self._idle[causes]

    @cached_property
    def idle_time(self) -> Intervals:
        """Idle time in the windows as a set."""
        gaps = self.context.once(idle_gaps)
        return intervals.intersect(Intervals(gaps.start, gaps.end), self.windows)

    def idle_mean(self, *causes: Cause) -> int:
        """Idle time of these causes, ns a step; 0 where it is unknown, so ask `missing` first."""
        found = self.analysis.idle
        if not isinstance(found, IdleCauses):
            return 0
        return self.mean(self.window.sum(found.by_step[:, list(causes)].sum(axis=1)))

    def host(self, *causes: Cause) -> NDArray[np.int64]:
        """(n, 2) time in the windows in which the thread of the steps was in these states, in time order."""
        states = self.context.once(host_states, self.context.step_track, True)
        if causes == (Cause.UNTRACED,):
            return intervals_of(*intervals.subtract(self.windows, intervals.merge(*states.spans)))
        chosen = occurs(states.cause, causes)
        return intervals_of(*self.clip(picked(states.start, states.end, chosen)))

    def length(self, spans: NDArray[np.int64]) -> int:
        """Length of an (n, 2) set inside the windows, ns a step."""
        return self.mean(intervals.total(self.clip(spans)))

    def clip(self, spans: NDArray[np.int64]) -> Intervals:
        """(n, 2) intervals, any order, as a set inside the windows; kept as long as they are, as it is asked again."""
        return self._as_sets(spans)[1]

    def merged(self, spans: NDArray[np.int64]) -> Intervals:
        """The same wherever they are."""
        return self._as_sets(spans)[0]

    def _as_sets(self, spans: NDArray[np.int64]) -> tuple[Intervals, Intervals, ref[NDArray[np.int64]]]:
        kept, key = self._sets, id(spans)
        if key not in kept:
            whole = merged(spans)
            kept[key] = whole, intervals.intersect(whole, self.windows), ref(spans, lambda _: kept.pop(key, None))
        return kept[key]

    def overlap(self, times: Intervals) -> NDArray[np.int64]:
        """(n, 2) idle time in the windows inside a set."""
        return intervals_of(*intervals.intersect(self.idle_time, times))

    def by_step(self, spans: NDArray[np.int64]) -> NDArray[np.int64]:
        """Length of (n, 2) intervals in each of the windows."""
        return intervals.coverage(merged(spans), *self.edges)

    @cached_property
    def cycle(self) -> int:
        """In how many windows the program comes round: from one optimizer step to the next, else as their times do."""
        steps, rows = self.analysis.steps, np.array(self.window.rows, np.int64)
        if not self.marked:
            return 1
        begun = self.spans(self.rows(RANGES, _OPTIMIZES))[:, 0]
        apart = np.diff(distinct(np.searchsorted(steps.host_start[rows], begun, "right")))
        if len(apart) and 1 < apart.min() == apart.max() <= len(rows) // 2:
            return int(apart[0])
        return cycle_of(steps.time[rows])

    def recurs(self, by_step: NDArray[np.int64], at_least: float) -> bool:
        """Whether a number of each window (`by_step`) reaches a limit in half of them, or of two cycles and more.

        Or three times at one distance, up to the end of the recording; the first window may hide it.
        """
        reached, cycles = by_step >= at_least, len(by_step) // self.cycle
        whole = int(reached[: cycles * self.cycle].reshape(cycles, -1).any(axis=1).sum()) if cycles > 1 else 0
        half = bool(len(reached)) and 2 * int(reached.sum()) >= len(reached)
        at = np.flatnonzero(reached)
        apart = distinct(np.diff(at))
        even = len(at) > 2 and len(apart) == 1 and at[0] <= apart[0] and len(reached) - at[-1] <= apart[0]
        return half or bool(even) or 2 * whole >= max(4, cycles)

    def inside(self, start: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each instant lies in the windows; on the host of a trace without steps, anywhere."""
        if self.analysis.mode == Mode.WHOLE_TRACE:
            return np.ones(len(start), np.bool_)
        nest, known = self.context.op_nest, (self.context.device.start, self.context.calls.start)
        if start is not nest.start and all(start is not each for each in known):
            return intervals.contains(self.windows, start)
        # A dozen rules ask this of all device events, of all calls or of all operators.
        if id(start) not in self._inside:
            inside = nest.begun_in(self.windows) if start is nest.start else intervals.contains(self.windows, start)
            self._inside[id(start)] = inside
            self._inside[id(start)].flags.writeable = False
        return self._inside[id(start)]

    def begun(self, start: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the host is in one of the steps at each instant; of a trace without steps, anywhere."""
        if not self.marked:
            return self.inside(start)
        steps, rows = self.analysis.steps, np.array(self.window.rows, np.int64)
        return intervals.contains(intervals.merge(steps.host_start[rows], steps.host_end[rows]), start)

    def rows(
        self,
        kinds: EventKind | Sequence[EventKind],
        test: re.Pattern[str] | Callable[[str], object],
        anywhere: bool = False,
    ) -> NDArray[np.int64]:
        """Event rows of these kinds whose name fits (`search` of a pattern), by time.

        Those that begin in the windows, unless from anywhere.
        """
        trace = self.context.trace
        rows = self.named((kinds,) if isinstance(kinds, int) else tuple(kinds), test)
        if not anywhere and len(rows):
            rows = rows[self.inside(trace.events.ts[rows])]
        return rows[np.argsort(trace.events.ts[rows], kind="stable")]

    def named(self, kinds: tuple[EventKind, ...], test: re.Pattern[str] | Callable[[str], object]) -> NDArray[np.int64]:
        """Event rows of these kinds whose name fits, in file order; found once a pattern."""
        if (kinds, test) not in self._rows:
            self._rows[kinds, test] = self._look_up(kinds, test)
        return self._rows[kinds, test]

    def _look_up(
        self, kinds: tuple[EventKind, ...], test: re.Pattern[str] | Callable[[str], object]
    ) -> NDArray[np.int64]:
        trace = self.context.trace
        if kinds not in self._texts:
            name, kind = self._names
            known = distinct(name[occurs(kind, kinds)])
            self._texts[kinds] = known, tuple(trace.strings.texts(known))
        known, texts = self._texts[kinds]
        # What a function is made of may hold all of a trace, and is not kept.
        found = _fitting.__wrapped__(texts, test) if callable(test) else _fitting(texts, test.search)
        if not found:
            return np.zeros(0, np.int64)
        # Many patterns find the same few names.
        key = tuple(known[[*found]].tolist())
        rows = self._of_names.get(key)
        if rows is None:
            wanted = np.zeros(len(trace.strings), np.bool_)
            wanted[[*key]] = True
            rows = self._of_names[key] = np.flatnonzero(taken(wanted, trace.events.name))
        return rows[occurs(self.context.kind[rows], kinds)]

    @cached_property
    def _names(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Codes of the names that events have, with each of their kinds: forty rules look for some."""
        names, kinds = self.context.trace.events.name, max(EventKind) + 1
        present = np.zeros(len(self.context.trace.strings) * kinds, np.bool_)
        for part in intervals.chunks(len(names)):
            present[names[part].astype(np.intp) * kinds + self.context.kind[part]] = True
        return np.divmod(np.flatnonzero(present), kinds)

    def spans(self, rows: Rows) -> NDArray[np.int64]:
        """(n, 2) start and end of event rows."""
        start = self.context.trace.events.ts[rows]
        return intervals_of(start, start + self.context.trace.events.dur[rows])

    def name(self, row: int) -> str:
        """Name of an event."""
        return self.context.trace.strings.text(int(self.context.trace.events.name[row]))

    def names(self, rows: Rows) -> tuple[str, ...]:
        """Names of the first three of some events, each once."""
        return tuple(dict.fromkeys(self.name(row) for row in rows[:3].tolist()))

    def headline(self, klass: DeviceClass) -> NDArray[np.bool_]:
        """Which events of `Context.device` are of a class, and of the headline device."""
        if klass not in self._headline:
            self._headline[klass] = self.own_device & (self.context.device.klass == klass)
        return self._headline[klass]

    @cached_property
    def own_device(self) -> NDArray[np.bool_]:
        """Which events of `Context.device` are of the headline device."""
        return occurs(self.context.device.device, self.context.devices[:1])

    def alone(self, rows: NDArray[np.int64]) -> Intervals:
        """Time of some copies (places in `Context.device`) in the windows in which their device does nothing else."""
        device = self.context.device
        other = device.device == self.context.devices[0]
        other[rows] = False
        copies, others = (intervals.merge(device.start[each], device.end[each]) for each in (rows, other))
        return intervals.intersect(intervals.subtract(copies, others), self.windows)

    def busy(self, klass: DeviceClass) -> Intervals:
        """Time in which the headline device does work of a class."""
        return self.context.class_sets(self.context.devices[0])[klass] if self.context.devices else intervals.EMPTY

    def amount_of(self, draws: str) -> int | None:
        """Time of a class that savings draw from, ns a step; None for a class that has none."""
        if not self.analysis.partitions:
            return self._host_amount(draws)
        parts = self.analysis.partitions[0]
        if draws in CLASSES:
            return self.idle_mean(*CLASSES[draws])
        known = {"compute": parts.compute, "comm_exposed": parts.comm_exposed, "mem_exposed": parts.mem_exposed}
        known |= {"idle": parts.idle, "idle.sync": parts.idle}
        return self.mean(self.window.sum(known[draws])) if draws in known else None

    def _host_amount(self, draws: str) -> int | None:
        split = self.analysis.host
        if draws not in HOST_CLASSES or not isinstance(split, HostSplit):
            return self.step_time if draws == "host" else None
        return self.mean(self.window.sum(getattr(split, HOST_CLASSES[draws])))


@lru_cache(_LOOK_UPS)
def _fitting(texts: tuple[str, ...], test: Callable[[str], object]) -> tuple[int, ...]:
    """Places of the texts that pass a test: of many ranks, which mostly have the same names, made once."""
    return tuple(at for at, text in enumerate(texts) if test(text))


_REASONS = {
    "D": "no_device_events",
    "L": "no_api",
    "A": "no_cann_calls",
    "O": "no_host_ops",
    "P": "no_python",
    "H": "no_shapes",
    "M": "no_memory_records",
    "N": "no_snapshot",
    "C": "no_collective_metadata",
    "E": "no_environment",
    "K": "no_launch_configuration",
    "R": "no_other_ranks",
}
