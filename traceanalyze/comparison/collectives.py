"""Collectives of both sides by type, group and size, whatever the library calls them."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import description_rows, ranks_label, sizes, types
from traceanalyze.analyses.communication.parts import collective_parts
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import distinct, group
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.steps.partition import exclusive_time
from traceanalyze.comparison import columns
from traceanalyze.comparison.pairs import section
from traceanalyze.comparison.results import Pair, Pairs, Time
from traceanalyze.comparison.side import CompareOptions, measured
from traceanalyze.model import intervals
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.columns import Rows, occurs
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, NotMeasured
from traceanalyze.model.vocabulary import DeviceClass

Simplify = Callable[[str], str]

Names = dict[str, str]
"""What a side calls a group (empty where it does not say) → what both sides are to call it."""


def event_groups(context: Context, event: Rows) -> tuple[list[str], NDArray[np.int64]]:
    """Groups (ranks, else name, else empty), and the position of that of each communication event."""
    described = description_rows(context, event)
    ranks, name = (context.trace.events.numbers(field, described) for field in ("group_ranks", "group"))
    code = np.maximum(np.where(ranks >= 0, ranks, name), -1)
    rows = group(code)
    texts = [context.trace.strings.text(int(code[f])) if code[f] >= 0 else "" for f in rows.first.tolist()]
    return distinct(map(ranks_label, texts), rows.of)


def common_names(base: Context, candidate: Context) -> tuple[Names, Names]:
    """What to call the groups of both sides.

    Where each side has one group, these are compared whatever their ranks. Of several those that are named alike; what
    is left, in the order of first use, with the next group of as many ranks.
    """
    labels = [_labels(context) for context in (base, candidate)]
    if len(labels[0]) == len(labels[1]) == 1 and labels[0] != labels[1]:
        both = " → ".join(label or "?" for (label,) in labels)
        return {labels[0][0]: both}, {labels[1][0]: both}
    names = {label: label for label in labels[0]}, {label: label for label in labels[1]}
    left = [label for label in labels[1] if label not in names[0]]
    for label in labels[0]:
        partner = next((other for other in left if _size(other) == _size(label)), None)
        if label not in names[1] and partner is not None:
            left.remove(partner)
            names[0][label] = names[1][partner] = f"{label or '?'} → {partner or '?'}"
    return names


def _labels(context: Context) -> list[str]:
    """Groups in the order of first use."""
    event = context.once(device_work).event
    labels, of = event_groups(context, event[context.device.klass[event] == DeviceClass.COMM])
    return [labels[each] for each in dict.fromkeys(of.tolist())]


_EVENLY = regex(r"(\d{1,9})(?:-(\d{1,9}))?, (\d{1,9})(?:-\d{1,9})?, …, (\d{1,9})(?:-\d{1,9})?")


def _size(label: str) -> int | None:
    """Ranks of a group that is called by them, see `ranks_label`."""
    if found := _EVENLY.fullmatch(label):
        first, to, second, last = (int(each or found[1]) for each in found.groups())
        return (to - first + 1) * ((last - first) // max(second - first, 1) + 1)
    if not re.fullmatch(r"\d{1,9}(-\d{1,9})?(, \d{1,9}(-\d{1,9})?)*", label):
        return None
    rows = (row.partition("-") for row in label.split(", "))
    return sum(int(last or first) - int(first) + 1 for first, _, last in rows)


def several(names: tuple[Mapping[str, str], Mapping[str, str]]) -> bool:
    """Whether there is more than one group, so that rows must name theirs."""
    return len({*names[0].values(), *names[1].values()}) > 1


_UNKNOWN = -1
"""Size of a collective that does not state it."""


class _Key(NamedTuple):
    kind: str
    group: str
    bytes: int


COLLECTIVES = section(
    "communication_compare",
    "Collectives (per step)",
    replace(columns.PLACE, alias="Order Id"),
    Column("collective", Kind.TEXT, "type, the same for all libraries"),
    Column("group", Kind.NAME, "ranks of the process group, or its name"),
    Column("size_bytes", Kind.BYTES, "input of one collective (all_gather: output)", heading="size of one"),
    *columns.both(
        name="Communication OP Name",
        calls="Calls",
        total_ns="Total Duration(us)",
        avg_ns="Avg Duration(us)",
        max_ns="Max Duration(us)",
        min_ns="Min Duration(us)",
        wait_ns="Task Name (Notify_Wait)",
        transfer_ns="Task Name (Memcpy, Reduce_Inline, RDMASend)",
        exposed_ns="",
    ),
    columns.diff(alias="Diff Duration(us)"),
    columns.ratio(),
    columns.diff("exposed_diff_ns", heading="exposed diff", meaning="candidate minus base of the exposed time"),
    columns.STEP_SHARE,
    columns.MATCH,
    *columns.SUMS,
    by=("exposed_ns", "total_ns"),
    of="total_ns",
)


def collective_pairs(base: Context, candidate: Context, _: CompareOptions) -> Pairs:
    """Collectives by type, group and size.

    Types are those of definitions §12, whatever the library; groups are matched by `common_names`. Sizes count
    where both sides state them and share them: of one type and group the collectives that only one side has in their
    size are compared together, in the order in which they ran. Times are inside the steps and on all devices, and sum
    to all device time of communication; so do the exposed times to the time of communication in the step, which are
    not measured without compute, as all of a side whose communication is lost. NotMeasured if neither communicates.
    """
    names = common_names(base, candidate)
    sides = [_side(context, own) for context, own in zip((base, candidate), names, strict=True)]
    if not any(kinds for _, kinds, _ in sides):
        return NotMeasured("no_communication")
    shared = _shared_sizes(set(sides[0][1]), set(sides[1][1]))
    amounts = []
    for context, (work, kinds, of) in zip((base, candidate), sides, strict=True):
        keys, row = distinct((shared.get(key, key) for key in kinds), of)
        parts = _parts(context, work, row, np.array([key.bytes for key in kinds], np.int64)[of])
        amounts.append({keys[at]: cells | parts[at] for at, cells in measured(context, work, row).items()})
    every = amounts[0] | amounts[1]
    for context, own in zip((base, candidate), amounts, strict=True):
        if not own and (lost := context.unmeasured.get("communication")):
            own.update(dict.fromkeys(every, dict.fromkeys(next(iter(every.values())), NotMeasured(lost))))
    return [
        Pair(
            {"collective": key.kind, "group": key.group, "size_bytes": None if key.bytes == _UNKNOWN else key.bytes},
            *(side.get(key) for side in amounts),
        )
        for key in sorted(every, key=lambda key: (key.kind, key.group, max(key.bytes, 0)))
    ]


def _side(context: Context, names: Mapping[str, str]) -> tuple[Rows, list[_Key], NDArray[np.int64]]:
    """Positions of collectives in `device_work`, their distinct keys, and the key of each."""
    every = context.once(device_work).event
    work = np.flatnonzero(context.device.klass[every] == DeviceClass.COMM)
    event = every[work]
    if len(event) == 0:
        return work, [], work
    described = description_rows(context, event)
    kind = types(context, event, described)
    labels, which = event_groups(context, event)
    size = sizes(context, described, kind)
    rows = group(kind, which, size)
    kinds = [
        _Key(TYPES[int(kind[first])], names.get(labels[int(which[first])], labels[int(which[first])]), int(size[first]))
        for first in rows.first.tolist()
    ]
    # Groups that are called the same have the same key.
    return work, *distinct(kinds, rows.of)


def _shared_sizes(base: set[_Key], candidate: set[_Key]) -> dict[_Key, _Key]:
    """Keys of sizes that only one side has, under a key that both have."""
    alone = base - candidate, candidate - base
    both = [{key[:2] for key in side} for side in alone]
    return {
        key: _Key(key.kind, key.group, _UNKNOWN)
        for side in alone
        for key in side
        if key[:2] in both[0] and key[:2] in both[1]
    }


def _parts(
    context: Context, work: NDArray[np.int64], of: NDArray[np.int64], size: NDArray[np.int64]
) -> dict[int, dict[str, Time]]:
    """Wait, transfer and exposed time, and bytes, by row.

    Waiting is what is left of a collective without the time in which some plane moves data.
    """
    of_device = context.once(device_work)
    event, time = of_device.event[work], of_device.time[work]
    windows = intervals.merge(context.steps.start, context.steps.end)
    exposed = np.zeros(len(context.device), np.int64)
    for one in context.devices if len(work) else ():
        exposed += exclusive_time(context.device, one, windows)
    rows, lost = group(of), context.unmeasured.get("communication")
    keys = of[rows.first].tolist()
    bare: list[Time] = [NotMeasured(lost)] * len(keys) if lost else rows.sum(exposed[event]).tolist()
    parts = context.once(collective_parts)
    why: Time = NotMeasured("of_all_together" if parts is None else "no_collective_tasks")
    untold: list[int] = rows.sum(np.where(size < 0, 1, 0)).tolist()
    total: list[Time] = [
        NotMeasured("no_bytes") if number else each
        for number, each in zip(untold, rows.sum(size).tolist(), strict=True)
    ]
    wait: list[Time] = [why] * len(keys)
    transfer = list(wait)
    if parts is not None:
        moved = parts.by_event(intervals.coverage(windows, parts.start, parts.end))[event]
        waited, sent = rows.sum(time - moved), rows.sum(moved)
        for row in np.flatnonzero(rows.sum(~parts.recorded[event]) == 0).tolist():
            wait[row], transfer[row] = int(waited[row]), int(sent[row])
    return {
        key: dict(zip(("wait_ns", "transfer_ns", "exposed_ns", "bytes"), each, strict=True))
        for key, *each in zip(keys, wait, transfer, bare, total, strict=True)
    }


_LOCAL = frozenset({"ON_CHIP", "LOCAL", "INVALID_TYPE", ""})
"""Not a way between devices."""


def link_rates(context: Context, of: NDArray[np.int64] | None = None) -> dict[str, int] | None:
    """Bytes a second by kind of link (HCCS, RoCE, PCIe …) inside the steps; transfers run in parallel, so the union.

    Of the collectives in these rows of the trace, if some are given. None where the profile does not hold their tasks.
    """
    if "part_of" not in context.trace.events.fields:
        return None
    row, link, size = _sent(context, of)
    found: dict[str, int] = {}
    for each in np.unique(link).tolist():
        busy = intervals.total(context.trace.events.active(row[link == each]))
        if busy:
            found[context.trace.strings.text(each)] = int(size[link == each].sum()) * 10**9 // busy
    return found


def sent(context: Context, of: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and bytes of the tasks inside the steps with which these collectives send something to another device."""
    if "part_of" not in context.trace.events.fields:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    row, _, size = _sent(context, of)
    return row, size


def _sent(context: Context, of: NDArray[np.int64] | None) -> tuple[NDArray[np.int64], ...]:
    """Rows of such tasks, their kinds of links, and their bytes."""
    events, part = context.trace.events, context.trace.events.fields["part_of"]
    row = part.row.astype(np.int64)
    size, link, transport = (events.numbers(field, row) for field in ("bytes", "link_type", "transport"))
    code = np.where(link >= 0, link, transport)
    moved = (
        (size > 0)
        & (code >= 0)
        & intervals.contains(intervals.merge(context.steps.start, context.steps.end), events.ts[row])
    )
    moved[moved] = ~np.isin(
        code[moved], [each for each in np.unique(code[moved]) if context.trace.strings.text(int(each)) in _LOCAL]
    )
    if of is not None:
        moved &= occurs(np.asarray(part.value, np.int64), of)
    return row[moved], code[moved], size[moved]


_COUNTER = regex(r"_?(?<![Vv\d])\d+$")
_ACLNN = regex(r"^(?:aclnn\w+?|te_\w+?)_(?=[A-Z])(?:\w+_)?(?=[A-Z])")
_HCCL = regex(r"^(hcom_[A-Za-z]+)__.*")
_API = regex(r"^(?:AscendCL@)?(?:cuda|hip|aclrt|cu(?=[A-Z]))(?:Module|ExtModule|Ext)?(?=[A-Z])")
_SUFFIX = regex(r"(ExC|Ex)?(_v\d+|_ptsz)*$")
_SYNC = {
    "SynchronizeStream": "StreamSynchronize",
    "SynchronizeDevice": "DeviceSynchronize",
    "SynchronizeEvent": "EventSynchronize",
    "SynchronizeStreamWithTimeout": "StreamSynchronize",
    "SynchronizeDeviceWithTimeout": "DeviceSynchronize",
}
"""CANN's names and those of CUDA and HIP."""


def common_labels(base: Iterable[str], candidate: Iterable[str], *ways: tuple[Simplify, bool]) -> dict[str, str]:
    """What each name of either side is called in a comparison.

    Equal names are. Of the rest, names that one way of simplifying makes equal are called by the simple name, if both
    sides have some; then the next way is tried. A way is a function that simplifies a name, and whether it may join
    several names of a side: if not, names of a side that become equal are left alone.
    """
    rest = set(base), set(candidate)
    same = rest[0] & rest[1]
    label = {name: name for name in rest[0] | rest[1]}
    rest = rest[0] - same, rest[1] - same
    for simplify, several in ways:
        found = [_by_simple(names, simplify) for names in rest]
        for simple in found[0].keys() & found[1].keys():
            names = [side[simple] for side in found]
            if several or all(len(own) == 1 for own in names):
                label.update(dict.fromkeys((*names[0], *names[1]), simple))
                rest = rest[0] - set(names[0]), rest[1] - set(names[1])
    return label


def _by_simple(names: Iterable[str], simplify: Simplify) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(simplify(name), []).append(name)
    return found


def plain_collective(name: str) -> str:
    """A collective of HCCL without the numbers of its group and call; other names as they are."""
    return _HCCL.sub(r"\1", name)


def plain_kernel(name: str) -> str:
    """A kernel's name without return type, parameters and trailing counter; of CANN's the operator that it runs."""
    return _COUNTER.sub("", _ACLNN.sub("", _without_parameters(name.removeprefix("void "))))


def untemplated(name: str) -> str:
    """The same without template arguments."""
    plain, depth = [], 0
    for letter in plain_kernel(name).replace("->", ""):
        depth += letter == "<"
        if depth == 0:
            plain.append(letter)
        depth -= letter == ">"
    return "".join(plain)


def _without_parameters(name: str) -> str:
    """The name up to the bracket that its last one closes."""
    depth = 0
    for at in range(len(name) - 1 if name.endswith(")") else -1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            return name[:at].rstrip()
    return name


def plain_api(name: str) -> str:
    """A runtime call whatever the vendor: `cudaStreamSynchronize` and `aclrtSynchronizeStream` as one."""
    if not _API.match(name):
        return name
    text = _SUFFIX.sub("", _API.sub("", name))
    return _SYNC.get(text, text)
