"""Tasks on an Ascend device: what each is by its type, and what the kernel table knows about it."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import Lost
from traceanalyze.model.patterns import regex
from traceanalyze.model.trace import VendorNumbers
from traceanalyze.readers.ascend import shared
from traceanalyze.readers.ascend.comm_tables import HCOM
from traceanalyze.readers.ascend.shared import ABSENT, Texts, index_of, values_at
from traceanalyze.readers.ascend.tables import COMMUNICATION, Table, step_number

CORES = frozenset({"AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU", "DSA_SQE"})
_KERNEL = regex(r"AI_?CORE|AI_VECTOR_CORE|MIX_AI[CV]|AI_?CPU|DSA\w*|KERNEL_\w+|AIC|AIV", re.IGNORECASE)
_COPY = regex(r"(PCIE_DMA|SDMA)_SQE|MEMCPY_ASYNC|ASYNC_MEMCPY", re.IGNORECASE)
_CONTROL = regex(
    r"EVENT|PLACE_?HOLDER|PROFILING|NOTIFY|WRITE.?VALUE|WAIT.?VALUE|STARS_COMMON|SDMA$|RDMA|FLIP|CAPTURE|CMO|HCCL",
    re.IGNORECASE,
)
_CONTROL_TYPE = regex(
    r"(REMOTE|IPC|STREAM|LABEL|MODEL|PROFILER|TASK|DEBUG|MEM)_|REDUCE_ASYNC|MAINTENANCE|PC_TRACE|DATA_?DUMP|NOP$|CCU_",
    re.IGNORECASE,
)
"""Types of the runtime's own tasks, and of parts of collectives, that kernels may be named as."""
_PART_OF_COLLECTIVE = regex(r"\w*(Aicpu|Aiv)Kernel")


def task_category(task_type: str, name: str) -> str:
    """Category of a device task by its type, and where that says little ("Other", none) by its name.

    Kernels that implement a collective are part of it; everything that is no copy, event or part counts as a kernel.
    """
    if _PART_OF_COLLECTIVE.fullmatch(name):
        return shared.CONTROL
    if _KERNEL.fullmatch(task_type):
        return shared.KERNEL
    if name.upper().startswith(("MEMSET_ASYNC", "ASYNC_MEMSET")):
        return shared.SET
    if _COPY.match(task_type):
        return shared.COPY
    if _CONTROL.match(task_type) or _CONTROL_TYPE.match(task_type) or _CONTROL.match(name):
        return shared.CONTROL
    return shared.COPY if _COPY.match(name) else shared.KERNEL


def timeline_of(table: Table, rows: NDArray[np.bool_] | None = None, device: int | None = None) -> bytes:
    """Rows of the kernel table as msprof draws them, for a profile whose timeline lacks these, or lacks all of them.

    Of all rows also the steps, each from its first row to the end of its last. Rows without a stream (level 0) are put
    side by side.
    """
    start, dur, core = table.times("start"), table.durations("dur"), table.texts("core")
    step, stream, task = map(step_number, table.texts("step")), table.integers("stream"), table.integers("task")
    used = np.flatnonzero((start != ABSENT) & (dur >= 0))
    if lost := table.rows - len(used):
        table.notes.append(Lost("{name}: {count:,} row(s) without a start and a duration left out", table.name, lost))
    used = used[np.argsort(start[used], kind="stable")]
    used = used if rows is None else used[rows[used]]
    names, steps = table.texts("name"), list(step)
    lanes: list[int] = []
    spans: dict[int, tuple[int, int]] = {}
    groups: dict[str, int] = {}
    events = [_meta("process_name", _FIRST + pid, 0, name=name) for pid, name in enumerate(_DRAWN)]
    if device is not None:
        events += [_meta("process_labels", _FIRST + pid, 0, labels=f"NPU {device}") for pid in range(len(_DRAWN))]
    for row in used.tolist():
        begin, end, name = int(start[row]), int(start[row] + dur[row]), names[row] or ""
        if (number := steps[row]) is not None:
            first, last = spans.get(number, (begin, end))
            spans[number] = first, max(last, end)
        if core[row] in COMMUNICATION:
            group = found["digits"] if (found := HCOM.match(name)) else ""
            events.append(_drawn(_COMMUNICATION, groups.setdefault(group, len(groups)), name, begin, end))
            continue
        place = int(stream[row])
        if place == ABSENT:
            place = next((lane for lane, until in enumerate(lanes) if until <= begin), len(lanes))
            lanes[place : place + 1] = [end]
        args = {"Task Type": core[row] or "", "Stream Id": place, "Task Id": int(task[row])}
        events.append(
            _drawn(_HARDWARE, place, name, begin, end, {key: one for key, one in args.items() if one != ABSENT})
        )
    for name, tid in groups.items():
        events.append(_meta("thread_name", _COMMUNICATION, tid, name=f"Group {name} Communication"))
    if rows is None:
        events += [_drawn(_STEPS, 0, f"Iteration {number}", *span) for number, span in spans.items()]
    return json.dumps(events).encode()


def timeline_of_sums(numbers: VendorNumbers, notes: list[str]) -> bytes:
    """Steps of which the profile's own sums alone are known, of several devices those of the first.

    Computing first, communication as far beside it, what a stage of a pipeline receives, then nothing.
    """
    events = [_meta("process_name", _FIRST + pid, 0, name=name) for pid, name in enumerate(_DRAWN)]
    at, lost, odd = _FIRST, 0, 0
    events.append(_meta("thread_name", _COMMUNICATION, 0, name="Group  Communication"))
    for place, step in enumerate(numbers.steps):
        parts = step.computing, step.not_overlapped, step.overlapped, step.free
        if None in parts or step.device != numbers.steps[0].device:
            lost += 1
            continue
        computing, bare, hidden, free = (part or 0 for part in parts)
        whole, span = step.communication, step.stage
        odd += (whole is not None and abs(bare + hidden - whole) > _ROUNDED_NS) or (
            span is not None and abs(computing + bare + free - (step.bubble or 0) - span) > max(_STAGE_NS, span >> 20)
        )
        number, end = place if step.step is None else step.step, at + computing
        passed = end + bare - min(step.bubble or 0, bare)
        sums = (
            (_HARDWARE, "computing", at, end),
            (_COMMUNICATION, "communication", end - hidden, passed),
            (_COMMUNICATION, "receive", passed, end + bare),
        )
        events += [_drawn(pid, 0, name, begin, until) for pid, name, begin, until in sums if until > begin]
        events.append(_drawn(_STEPS, 0, f"Iteration {number}", at, end + bare + free))
        at = end + bare + free
    if lost:
        notes.append(
            Lost("{name}: {count:,} row(s) of another device, or without a sum, left out", numbers.source, lost)
        )
    if odd:
        notes.append(Lost("{name}: in {count:,} row(s) the parts do not add up to their sums", numbers.source, odd))
    return json.dumps(events).encode()


_ROUNDED_NS, _STAGE_NS = 3, 500
"""How far sums may be from their parts: each is rounded, and a stage the difference of two large floats."""
_DRAWN = ("Ascend Hardware", "HCCL", "Step Trace")
_FIRST = 1 << 50
"""Process ids that no profile has."""
_HARDWARE, _COMMUNICATION, _STEPS = range(_FIRST, _FIRST + len(_DRAWN))


def _meta(what: str, pid: int, tid: int, **args: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _drawn(pid: int, tid: int, name: str, begin: int, end: int, args: dict[str, Any] | None = None) -> dict[str, Any]:
    ts, dur = (f"{time // 1000}.{time % 1000:03}" for time in (begin, end - begin))
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args or {}}


_SLACK_NS = 1000
"""How far start times may lie apart that are one: some tools keep whole microseconds, old versions round."""


def rows_not_drawn(
    table: Table, start: NDArray[np.int64], tasks: NDArray[np.int64], collectives: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Rows of the kernel table, and their starts, that lack among those on the hardware and of collectives."""
    cores, core = table.coded("core")
    collective = np.array([text in COMMUNICATION for text in cores], np.bool_)[core]
    lacking: NDArray[np.bool_] = start != ABSENT
    for rows, known in ((collective, np.sort(collectives)), (~collective, np.sort(tasks))):
        first = np.searchsorted(known, start[rows] - _SLACK_NS)
        lacking[rows] &= first == np.searchsorted(known, start[rows] + _SLACK_NS, "right")
    return lacking


_TIMES = (
    *("aicore_time", "aiv_time", "mac_time", "vec_time", "scalar_time_aic", "scalar_time_aiv", "mte1_time"),
    *("mte2_time_aic", "mte2_time_aiv", "mte3_time", "fixpipe_time"),
)
_TEXTS = (
    "op_type",
    "core",
    "kernel_shapes",
    "kernel_dtypes",
    "kernel_formats",
    "kernel_outputs",
    "kernel_output_dtypes",
    "op_state",
    "hf32",
)


def kernel_columns(table: Table, row: NDArray[np.int64], texts: Texts) -> dict[str, NDArray[Any]]:
    """What the kernel table says, by canonical name, in the order of `row`, positions in the table."""
    out: dict[str, NDArray[Any]] = shared.of_busier_core({name: table.durations(name)[row] for name in _TIMES})
    out |= {name: table.integers(name)[row] for name in ("block_dim", "step")}
    cycles = {name: table.sizes(name, 1)[row] for name in ("aic_cycles", "aiv_cycles")}
    out["aic_cycles"], out["core_clock"] = cycles["aic_cycles"], shared.core_clock(out | cycles, out["block_dim"])
    out["cube_utilisation"] = table.reals("cube_utilisation")[row]
    for name in _TEXTS:
        said, code = table.coded(name)
        out[name] = texts.codes(None if text is None else _plain(name, text) for text in said)[code[row]]
    return out


def _plain(name: str, text: str) -> str:
    if name in {"kernel_shapes", "kernel_outputs"}:
        return text.strip('"')
    return shared.kernel_dtypes(text) if name in {"kernel_dtypes", "kernel_output_dtypes"} else text


def kernel_rows(
    table: Table, times: NDArray[np.int64], start: NDArray[np.int64], stream: NDArray[np.int64], task: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Row of the kernel table, whose rows start at `times`, for each task of the timeline, -1 for none.

    A row belongs to the task with exactly its start, stream and task number; a row without numbers (level 0) to the
    only task with its start.
    """
    numbered = table.integers("stream") != ABSENT
    moments = np.unique(times)
    at = np.minimum(np.searchsorted(moments, start), max(len(moments) - 1, 0))
    row = np.full(len(start), -1, np.int64)
    if len(moments) == 0:
        return row
    exact = np.flatnonzero((moments[at] == start) & (start != ABSENT))
    own = _key(at[exact], stream[exact], task[exact])
    rows = np.flatnonzero(numbered)
    theirs = _key(np.searchsorted(moments, times[rows]), table.integers("stream")[rows], table.integers("task")[rows])
    row[exact] = values_at(rows, index_of(theirs, own), -1)
    alone = exact[row[exact] < 0]
    rows = np.flatnonzero(~numbered)
    row[alone] = values_at(rows, index_of(np.searchsorted(moments, times[rows]), at[alone]), -1)
    return row


def hit_rates(
    table: Table,
    names: Callable[[Callable[[str], int]], NDArray[Any]],
    stream: NDArray[np.int64],
    task: NDArray[np.int64],
) -> NDArray[np.float64]:
    """What l2_cache.csv says of each kernel, NaN for nothing: of the only one with a row's stream, task and name.

    `names` gives a number for the name of each kernel. Numbers of tasks begin again after 65,535, so that some rows
    may be of several kernels.
    """
    said, name = table.coded("name")
    place = {text: number for number, text in enumerate(said)}
    rate, streams, tasks = table.sizes("hit_rate", _MILLION), table.integers("stream"), table.integers("task")
    usable = np.flatnonzero((rate >= 0) & (rate <= _MILLION) & (streams != ABSENT) & (tasks != ABSENT))
    theirs, rows = _once(_key(name, streams, tasks)[usable])
    own, kernels = _once(_key(names(lambda text: place.get(text, -1)).astype(np.int64), stream, task))
    _, left, right = np.intersect1d(theirs, own, assume_unique=True, return_indices=True)
    out = np.full(len(stream), np.nan)
    out[kernels[right]] = rate[usable[rows[left]]] / _MILLION
    if lost := int(np.count_nonzero(rate != ABSENT)) - len(left):
        table.notes.append(
            Lost(
                "{name}: {count:,} hit rate(s) left out, of no kernel, of several, or not from 0 to 1", table.name, lost
            )
        )
    return out


_MILLION = 1_000_000
"""Rates are written with six decimals."""


def _once(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Those that stand there only once, and where."""
    distinct, at, count = np.unique(keys, return_index=True, return_counts=True)
    return distinct[count == 1], at[count == 1]


def _key(moment: NDArray[np.int64], stream: NDArray[np.int64], task: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for a moment or name (as its place among all), a stream and a task, whose numbers have 16 bits."""
    key: NDArray[np.int64] = (moment << 32) | ((stream & 0xFFFF) << 16) | (task & 0xFFFF)
    return key
