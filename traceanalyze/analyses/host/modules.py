"""Host and device time of every module of the model, forward and backward, and of which forward a backward is (§11)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.computes import for_recording
from traceanalyze.analyses.host.frames import python_rows
from traceanalyze.analyses.host.nesting import DEEPER, Nest, innermost, nest_rows, paths
from traceanalyze.analyses.host.operators import added
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.steps.phases import event_phases, launch_places
from traceanalyze.model.columns import MISSING, Rows, distinct, find
from traceanalyze.model.phases import hierarchy, is_layer_annotation, module_class, module_name
from traceanalyze.model.table import Column, Kind, Table, Value, declare
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import EventKind, Phase

BACKWARD_UNKNOWN = "<backward, module unknown>"
"""In place of a module: device time of the backward pass whose forward operator was not found."""

_MODULES = declare(
    "modules",
    "Modules by {by} (sum over the analysed steps)",
    Column("module", Kind.NAME, "place in the model"),
    Column("module_class", Kind.NAME, "class of the module", heading="class", minor=True),
    Column("calls", Kind.COUNT, "calls that begin in the analysed steps"),
    Column(
        "forward_self_ns",
        Kind.DURATION,
        "device time of what the module launched itself in the forward pass; of a graph that tells no pass, all of it",
        heading="forward",
    ),
    Column(
        "backward_self_ns", Kind.DURATION, "device time of the backward pass of its own operators", heading="backward"
    ),
    Column("forward_total_ns", Kind.DURATION, "with modules inside", heading="fwd with inner"),
    Column("backward_total_ns", Kind.DURATION, "with modules inside", heading="bwd with inner"),
    Column("host_self_ns", Kind.DURATION, "host time without modules inside", heading="host", minor=True),
    Column("host_total_ns", Kind.DURATION, "host time with all that is inside", heading="host with inner", minor=True),
    ranked=True,
    # The classes are what a short view shows.
    detail=True,
)
_SUMS = _MODULES.drop("module", "module_class").columns
_CLASSES = declare(
    "module_classes",
    "Modules of each class by {by} (sum over the analysed steps)",
    Column("modules_of", Kind.NAME, "class of the modules, and how many of them there are", heading="modules"),
    replace(_MODULES["module_class"], machine=True),
    Column("modules", Kind.COUNT, "how many modules of the class have any time", machine=True),
    *_SUMS,
    ranked=True,
)


class Place(NamedTuple):
    """A module by its place in the model."""

    path: str
    name: str
    """Class."""
    parent: int


class Places(NamedTuple):
    """All modules, parents before children, and the host events that tell when they run."""

    places: tuple[Place, ...]
    nest: Nest
    of: NDArray[np.int64]
    """Module of each event of the nest."""
    calls: bool
    """The events are calls of modules, not operators that name their module."""
    only: int | None
    """The one thread of the events, when it is not identified: all threads are looked up there."""
    stated: Mapping[int, int]
    """Module of each text by which a kernel of a CUDA graph names its own: nothing runs on the host then."""

    def at(self, track: NDArray[np.int32], t: NDArray[np.int64]) -> NDArray[np.int64]:
        """Module that is running on a thread at an instant each, -1 for none."""
        if self.only is not None:
            track = np.full(len(track), self.only, np.int32)
        inner = innermost(self.nest, track, t)
        found = np.full(len(t), -1, np.int64)
        found[inner >= 0] = self.of[inner[inner >= 0]]
        return found


def module_calls(context: Context) -> NDArray[np.int64]:
    """Python events that are calls of modules."""
    return python_rows(context, lambda text: module_name(text) is not None)


def module_places(context: Context) -> Places | None:
    """Modules from Python events; else from the operators' arguments; else from annotations; None without any.

    To these come those that kernels name themselves.
    """
    found = _on_host(context)
    codes = _stated(context.trace, context.device.row)
    every = distinct(codes[codes != MISSING]).tolist()
    if not every:
        return found
    nothing = nest_rows(context.trace, np.zeros(0, np.int64))
    found = found or Places((), nothing, np.zeros(0, np.int64), calls=False, only=None, stated={})
    places = list(found.places)
    return found._replace(stated=_grown(context.trace, every, places), places=tuple(places))


def marked(found: Places) -> bool:
    """Whether these are parts that annotations mark, not modules."""
    return any(is_layer_annotation(place.name) for place in found.places)


def _stated(trace: Trace, row: Rows) -> NDArray[np.int64]:
    """Text by which each kernel names its module, or else what its program marked it as."""
    module, mark = (trace.events.numbers(name, row) for name in ("module", "mark"))
    return np.where(module == MISSING, mark, module)


def _on_host(context: Context) -> Places | None:
    trace, kind = context.trace, context.kind
    names = trace.events.name
    rows = module_calls(context)
    if len(rows) == 0:
        found = _from_arguments(context)
        if found is not None:
            return found
        marks = np.flatnonzero(kind == EventKind.ANNOTATION)
        rows = marks[trace.strings.matches(names[marks], is_layer_annotation)]
    return _from_calls(trace, rows) if len(rows) else None


def _from_calls(trace: Trace, rows: NDArray[np.int64]) -> Places:
    """The path of a module is the chain of the calls around its own."""
    nested = nest_rows(trace, rows)
    chains = paths(nested, trace.events.name[nested.row])
    places: list[Place] = []
    for code, parent in zip(chains.name.tolist(), chains.parent.tolist(), strict=True):
        text = DEEPER if code < 0 else trace.strings.text(code)
        own = module_name(text) or text
        path = own if parent < 0 else f"{places[parent].path}/{own}"
        places.append(Place(path, module_class(own), parent))
    return Places(tuple(places), nested, chains.of, calls=True, only=unidentified(trace, rows), stated={})


def unidentified(trace: Trace, rows: NDArray[np.int64]) -> int | None:
    """The thread of Python events of process 0, thread 0: they belong to the only thread there is, not identified."""
    tracks = distinct(trace.events.track[rows]).tolist()
    return tracks[0] if len(tracks) == 1 and trace.track_text(tracks[0]) == ("0", "0") else None


def _from_arguments(context: Context) -> Places | None:
    """Operators recorded with `with_modules` carry the text of their module's path."""
    if "module" not in context.trace.events.fields:
        return None
    ops = np.flatnonzero(context.kind == EventKind.HOST_OP)
    own = context.trace.events.numbers("module", ops)
    places: list[Place] = []
    ends = _grown(context.trace, distinct(own[own != MISSING]).tolist(), places)
    rows = ops[np.isin(own, list(ends))]
    if len(rows) == 0:
        return None
    nested = nest_rows(context.trace, rows)
    codes = context.trace.events.numbers("module", nested.row).tolist()
    of = np.array([ends[code] for code in codes], np.int64)
    return Places(tuple(places), nested, of, calls=False, only=None, stated={})


def _grown(trace: Trace, codes: Iterable[int], places: list[Place]) -> dict[int, int]:
    """Place of the module that each text names; those that are new come to the places."""
    known = {place.path: at for at, place in enumerate(places)}
    ends: dict[int, int] = {}
    for code in codes:
        parent, chain = -1, hierarchy(trace.strings.text(code))
        for name, klass in chain:
            path = name if parent < 0 else f"{places[parent].path}/{name}"
            if path not in known:
                known[path] = len(places)
                places.append(Place(path, klass, parent))
            parent = known[path]
        if chain:
            ends[code] = parent
    return ends


_BACKWARD = (Phase.BACKWARD, Phase.RECOMPUTE)


def modules(context: Context) -> Table:
    """Modules, most device time of their own first.

    Calls and host times are empty where operators name their module, but its calls were not recorded.
    """
    found, phase = module_places(context), context.once(event_phases)
    if found is None:
        return for_recording(_MODULES.missing("no_modules"), device=len(context.device) > 0)
    forward, backward, unknown = _device_time(context, found, phase)
    calls, total, own = _host_time(context, found)
    with_inner = [_with_descendants(found, column) for column in (forward, backward)]
    names = [place.path for place in found.places]
    order = np.lexsort((np.array(names), -own if found.calls else np.zeros_like(own), -forward - backward))
    shown = order[(calls + total + own + with_inner[0] + with_inner[1] > 0)[order]]
    rest = np.array([unknown] if unknown else [], np.int64)

    def on_host(values: NDArray[np.int64]) -> list[int | None]:
        known: list[int | None] = values[shown].tolist() if found.calls else [None] * len(shown)
        return [*known, *[None] * len(rest)]

    table = _MODULES.fill(
        module=[*(names[at] for at in shown.tolist()), *[BACKWARD_UNKNOWN] * len(rest)],
        module_class=[*(found.places[at].name for at in shown.tolist()), *[""] * len(rest)],
        calls=on_host(calls),
        forward_self_ns=np.concatenate((forward[shown], 0 * rest)),
        backward_self_ns=np.concatenate((backward[shown], rest)),
        forward_total_ns=np.concatenate((with_inner[0][shown], 0 * rest)),
        backward_total_ns=np.concatenate((with_inner[1][shown], rest)),
        host_self_ns=on_host(own),
        host_total_ns=on_host(total),
    )
    return for_recording(table, device=len(context.device) > 0)


def module_classes(context: Context) -> Table:
    """Modules of one class in one row, in the order of `modules`; one inside another counts once in what is inside."""
    every = context.once(modules)
    device = len(context.device) > 0
    if every.absent is not None:
        return for_recording(_CLASSES.missing(every.absent.reason), device=device)
    rows = list(every.records())
    members: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        members.setdefault(row.module_class or row.module, []).append(at)
    outermost = {at for own in members.values() for at in _outermost([rows[at].module for at in own], own)}

    def summed(key: str, own: list[int]) -> Value:
        values = [getattr(rows[at], key) for at in own if at in outermost or not key.endswith("_total_ns")]
        known = [value for value in values if isinstance(value, int)]
        return sum(known) if known else values[0]

    cells: list[dict[str, Value]] = [
        {
            "modules_of": f"{name} ×{len(own)}" if len(own) > 1 else name,
            "module_class": rows[own[0]].module_class,
            "modules": len(own),
            **{column.key: summed(column.key, own) for column in _SUMS},
        }
        for name, own in members.items()
    ]
    return for_recording(_CLASSES.fill_records(sorted(cells, key=_own_time, reverse=True)), device=device)


def _own_time(cells: Mapping[str, Value]) -> tuple[int, int]:
    """On the device, then on the host."""
    forward, backward, host = (
        value if isinstance(value := cells[key], int) else 0
        for key in ("forward_self_ns", "backward_self_ns", "host_self_ns")
    )
    return forward + backward, host


def _outermost(paths_of: list[str], own: list[int]) -> list[int]:
    """Those that lie in no other of them."""
    known = set(paths_of)
    return [at for path, at in zip(paths_of, own, strict=True) if known.isdisjoint(_above(path))]


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _device_time(
    context: Context, found: Places, phase: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Forward and backward time of what each module launched itself, and backward time of no known module."""
    size = len(found.places)
    if len(context.device) == 0:
        return np.zeros(size, np.int64), np.zeros(size, np.int64), 0
    time, of = context.once(device_work).time, event_modules(context, found, phase)
    back, known = np.isin(phase[context.once(device_work).event], _BACKWARD), of >= 0
    forward = added(of[~back & known], time[~back & known], size)
    backward = added(of[back & known], time[back & known], size)
    return forward, backward, int(time[back & ~known].sum())


def event_modules(context: Context, found: Places, phase: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Module that launched each event of the analysed work, -1 for none; `phase` is that of each device event."""
    event = context.once(device_work).event
    track, t = launch_places(context)
    track, t = track[event], t[event]
    of = np.full(len(event), -1, np.int64)
    back = np.isin(phase[event], _BACKWARD)
    ahead = (track >= 0) & np.isin(phase[event], (Phase.FORWARD, Phase.OTHER))
    of[ahead] = found.at(track[ahead], t[ahead])
    of[back] = _of_backward(context, found, track[back], t[back])
    if found.stated:
        own = _stated(context.trace, context.device.row[event])
        codes = np.array(sorted(found.stated), np.int64)
        named = np.isin(own, codes)
        of[named] = np.array([found.stated[code] for code in codes.tolist()])[np.searchsorted(codes, own[named])]
    return of


def _of_backward(context: Context, found: Places, track: NDArray[np.int32], t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Module of the forward operator; else the module that runs on the backward thread itself, as in recomputation."""
    events = context.trace.events
    row = ForwardOps(context).at(track, t)
    of = np.full(len(t), -1, np.int64)
    known = row >= 0
    of[known] = found.at(events.track[row[known]], events.ts[row[known]])
    rest = of < 0
    if found.only is None:
        of[rest] = found.at(track[rest], t[rest])
    return of


def _host_time(context: Context, found: Places) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Calls, their time, and their time outside of modules inside."""
    begun = np.flatnonzero(found.nest.begun_in(context.host_windows))
    of, size = found.of[begun], len(found.places)
    duration = context.trace.events.dur[found.nest.row[begun]]
    return np.bincount(of, minlength=size), added(of, duration, size), added(of, found.nest.own[begun], size)


def _with_descendants(found: Places, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums over each module and all modules inside."""
    total = own.tolist()
    for index in range(len(total) - 1, -1, -1):
        parent = found.places[index].parent
        if parent >= 0:
            total[parent] += total[index]
    return np.array(total, np.int64)


class ForwardOps:
    """Finds the forward operator of the backward operator that runs at an instant."""

    def __init__(self, context: Context) -> None:
        self._context = context
        events, rows = context.trace.events, context.op_nest.row
        sequence, thread = events.numbers("sequence", rows, -1), events.numbers("fwd_thread", rows, 0)
        backward = rows[(sequence >= 0) & (thread > 0)]
        self._backward: Nest = nest_rows(context.trace, backward)
        forward = (sequence >= 0) & (thread == 0)
        # The operator that creates the gradient's node is the last to start with its number, so the last stand first.
        self._forward = rows[forward][::-1]
        self._offered = _joined(events.track[self._forward].astype(np.int64), sequence[forward][::-1])
        self._track_of = self._forward_tracks(backward)

    def at(self, track: NDArray[np.int32], t: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row of the forward operator for the backward operator around each instant of a thread, -1 for none."""
        found = np.full(len(t), -1, np.int64)
        inner = innermost(self._backward, track, t)
        known = np.flatnonzero(inner >= 0)
        row, events = self._backward.row[inner[known]], self._context.trace.events
        thread, ran = events.numbers("fwd_thread", row, 0), events.track[row].astype(np.int64)
        for number, forward_track in self._track_of.items():
            ran[thread == number] = forward_track
        at = find(_joined(ran, events.numbers("sequence", row, -1)), self._offered)
        found[known[at >= 0]] = self._forward[at[at >= 0]]
        return found

    def _forward_tracks(self, backward: Rows) -> dict[int, int]:
        """Thread that each "forward thread id" stands for.

        The arrows from forward to backward tell; without them the most frequent id is that of the step thread. Other
        ids stand for the backward thread itself, which recomputes what it needs.
        """
        known = self._by_arrows(backward)
        if len(backward):
            thread = self._context.trace.events.numbers("fwd_thread", backward, 0)
            ids = group(thread)
            usual = int(thread[ids.first[ids.count().argmax()]])
            known.setdefault(usual, self._context.step_track)
        return known

    def _by_arrows(self, backward: NDArray[np.int64]) -> dict[int, int]:
        flows, strings = self._context.trace.flows, self._context.trace.strings
        if len(flows.ts) == 0 or len(backward) == 0:
            return {}
        arrow = strings.matches(flows.cat, lambda text: text == "fwdbwd")
        source, target = (np.flatnonzero(arrow & (flows.phase == ord(letter))) for letter in "sf")
        at = find(flows.id[target], flows.id[source])
        source, target = source[at[at >= 0]], target[at >= 0]
        inner = innermost(self._backward, flows.track[target], flows.ts[target])
        hit = inner >= 0
        numbers = self._context.trace.events.numbers("fwd_thread", self._backward.row[inner[hit]], 0).tolist()
        counts = Counter(zip(numbers, flows.track[source[hit]].tolist(), strict=True))
        return {number: track for (number, track), _ in sorted(counts.items(), key=itemgetter(1))}


def _joined(track: NDArray[np.int64], sequence: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for a thread and a sequence number."""
    return track * (1 << 40) + sequence
