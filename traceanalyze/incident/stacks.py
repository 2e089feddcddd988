"""What threads did: dumps of py-spy and faulthandler, and tracebacks, wherever in a text they stand.

py-spy and faulthandler name the innermost frame first, a traceback the outermost. Of a chain of exceptions the first is
the cause.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from traceanalyze.incident.evidence import Event, Source, Stack, Value, What
from traceanalyze.incident.lines import Line, message_of, stamp_of, stamped, text_of
from traceanalyze.incident.text import Block, Made
from traceanalyze.model.patterns import regex

_LIBRARIES: Final = regex(r"^.*(?:site-packages|dist-packages|/lib/python3\.\d+)/")
_LIBRARY: Final = regex(
    r"site-packages|dist-packages|lib/python3|^<|^torch(?:_npu)?/|^megatron/|^deepspeed/|^transformers/|^threading\.py|"
    r"^(?:multiprocessing|concurrent|asyncio|importlib|selectors|socket|queue|ssl|subprocess|runpy|contextlib)\b"
)
_STANDARD: Final = sys.stdlib_module_names - {"test"}
_STATES: Final = (
    # What a frame calls, innermost frame first; the first that tells decides.
    (
        "checkpoint",
        regex(
            r"\b(?:torch/serialization\.py|fsync|_save_state_dict|save_checkpoint|dist_checkpointing|checkpoint/filesystem)"
        ),
    ),
    ("starved", regex(r"_try_get_data|_get_data|_next_data|torch/utils/data|\bqueue\.py|multiprocessing/queues\.py")),
    (
        "waiting",
        regex(r"distributed_c10d|\b(?:ncclGroupEnd|cudaStreamSynchronize|cudaDeviceSynchronize|aclrtSynchronize\w*)"),
    ),
)
_WAITS: Final = regex(
    r"^(?:wait|synchronize|all_reduce|all_gather\w*|reduce_scatter\w*|all_to_all\w*|broadcast\w*|barrier|"
    r"monitored_barrier|recv|send|isend|irecv|item|_engine_run_backward|_local_scalar_dense)\b"
)
"""Names of what waits for a device or for others, but also of what waits for data: frames around them come first."""


def state_of(frames: Sequence[str]) -> str:
    """What a thread with these frames (innermost first) is doing."""
    own = next((at for at, frame in enumerate(frames) if not is_library(frame)), len(frames))
    for frame in frames[: own + 1]:
        for state, pattern in _STATES:
            if pattern.search(frame):
                return state
    # A function of the program may be called `wait`, too.
    if any(_WAITS.search(frame) for frame in frames[:own]):
        return "waiting"
    return "own" if own < len(frames) else "unknown"


def is_library(frame: str) -> bool:
    """Whether a frame, `function (file:line)`, is not of the program itself."""
    file = frame.rpartition("(")[2]
    package, slash, _ = file.partition("/")
    return _LIBRARY.search(file) is not None or ":" not in file or (bool(slash) and package in _STANDARD)


def frame_of(function: str, file: str, line: object) -> str:
    """A frame as text, the file without the folders of libraries."""
    return f"{function} ({short(file)}:{line})"


def short(file: str) -> str:
    """A path from the package on, where it is of a library."""
    cut = _LIBRARIES.sub("", file)
    return cut if cut != file else file[-200:]


_TRACEBACK: Final = regex(rb"Traceback \(most recent call last\):")
_FRAME: Final = regex(rb'^\s+File "([^"]*)", line (\d+), in (.*)$')
_CHAIN: Final = regex(
    rb"(?:During handling of the above exception, another exception occurred|"
    rb"The above exception was the direct cause of the following exception):"
)
_ERROR: Final = regex(rb"^([A-Za-z_][\w.]*)(?:: (.*))?$")
_GLUE: Final = regex(rb"^(?:\[[^\]]*\]:? ?)+")


class _Raised(NamedTuple):
    """One exception of a chain."""

    type: str
    message: str
    frames: list[tuple[str, str, int]]
    """File, function and line, outermost first."""


def _traceback(lines: Sequence[Line], _: int, path: str) -> Made | None:
    """The exception of one process, with the first of its chain as the cause."""
    chain, end = _chain(lines)
    if not chain:
        return None
    if chain[-1].type.endswith("ChildFailedError"):
        # The launcher's own end; its table tells of the ranks.
        return Made(end, closed=True)
    cause = chain[0]
    data: dict[str, Value] = {"type": cause.type, "frames": len(cause.frames)}
    if len(chain) > 1:
        data |= {"chained": len(chain) - 1, "last": chain[-1].message}
    for file, function, line in cause.frames:
        if not is_library(f"({short(file)}:{line})"):
            data |= {"own": f"{short(file)}:{line}", "own_function": function}
    # What is caught and told begins where it is caught.
    data |= {"uncaught": 1} if chain[-1].frames[0][1] == "<module>" else {}
    file, function, line = cause.frames[-1]
    data["at"] = frame_of(function, file, line)
    return Made(end, (Event(What.EXCEPTION, cause.message, Source(path, lines[0].number), data=data),))


def _chain(lines: Sequence[Line]) -> tuple[list[_Raised], int]:
    """The exceptions that a traceback tells, the first first, and the number of its lines."""
    lead = _TRACEBACK.search(lines[0].body)
    margin = 0 if lead is None else _indent(lines[0].body, lead.start())
    chain, frames = list[_Raised](), list[tuple[str, str, int]]()
    at, end = 1, 1
    while at < len(lines):
        body = lines[at].body[margin:]
        if found := _FRAME.match(body):
            frames.append((text_of(found[1]), text_of(found[3]).strip(), int(found[2])))
        elif frames and (found := _ERROR.match(body)):
            chain.append(_Raised(text_of(found[1]), message_of(body), frames))
            frames, end = [], at + 1
            at = _chained(lines, end, margin) or len(lines)
        elif body[:1].strip() and not _TRACEBACK.search(body):
            # The next line of another writer in the same stream.
            break
        at += 1
    return chain, end


def traceback_of(text: bytes, path: str) -> Event | None:
    """The exception that a text holds."""
    lines = [Line(number, body, b"") for number, body in enumerate(text[: 1 << 20].split(b"\n"), 1)]
    first = next((at for at, line in enumerate(lines) if _TRACEBACK.search(line.body)), None)
    made = None if first is None else _traceback(lines[first : first + 1000], 0, path)
    return None if made is None else made.events[0]


def _indent(body: bytes, start: int) -> int:
    """Width of what stands before a traceback in each of its lines, where that is only white space."""
    return start if not body[:start].strip() else 0


def _chained(lines: Sequence[Line], at: int, margin: int) -> int | None:
    """The line with which the next traceback of a chain begins."""
    for place in range(at, min(at + 4, len(lines))):
        if _CHAIN.search(lines[place].body[margin:]):
            rest = range(place + 1, min(place + 4, len(lines)))
            return next((each for each in rest if _TRACEBACK.search(lines[each].body)), None)
    return None


_FAULT_THREAD: Final = regex(
    rb"^(?:(?:Current thread|Thread) 0x([0-9a-f]+)(?: \[([^\]]*)\])?|Stack) \(most recent call first\):"
)
_FAULT_FRAME: Final = regex(rb'^  File "([^"]*)", line (\d+|\?+) in (.*)$')


def _faulthandler(lines: Sequence[Line], _: int, path: str) -> Made | None:
    head = _FAULT_THREAD.match(lines[0].body)
    if head is None:
        return None
    frames, at = [], 1
    while at < len(lines):
        body = lines[at].body
        if found := _FAULT_FRAME.match(body):
            frames.append(frame_of(text_of(found[3]).strip(), text_of(found[1]), text_of(found[2])))
        elif body.strip() not in {b"...", b"<no Python frame>"}:
            break
        at += 1
    thread = f"0x{text_of(head[1]).lstrip('0')}" if head[1] else ""
    thread += f" {text_of(head[2])}" if head[2] else ""
    main = any("<module>" in frame for frame in frames[-3:])
    return Made(at, stacks=(_stack(frames, path, lines[0].number, thread, None, main, None),))


_FATAL: Final = regex(rb"^Fatal Python error: (?P<message>.*)$")


def _fatal(lines: Sequence[Line], _: int, path: str) -> Made | None:
    data: dict[str, Value] = {"type": message_of(lines[0].body.partition(b": ")[2]), "fatal": 1}
    # The stack of the thread that it happened in comes first.
    head = next((at for at, line in enumerate(lines[1:4], 1) if _FAULT_THREAD.match(line.body)), None)
    made = None if head is None else _faulthandler(lines[head:], 0, path)
    frames = () if made is None else made.stacks[0].frames
    own = next((one for one in frames if not is_library(one)), None)
    data |= {} if own is None else {"own": own.rpartition("(")[2].rstrip(")")}
    return Made(1, (Event(What.EXCEPTION, message_of(lines[0].body), Source(path, lines[0].number), data=data),))


_SPY_THREAD: Final = regex(rb'^Thread (?:0x)?([0-9A-Fa-f]+) \((active|idle)(\+gil)?\)(?:: "([^"]*)")?$')
_SPY_FRAME: Final = regex(rb"^    (\S.*) \((.+?)(?::(\d+))?\)$")
_SPY_PROCESS: Final = regex(rb"^(?:Parent )?Process (\d+): ")


def _spy(lines: Sequence[Line], head: int, path: str) -> Made | None:
    found = _SPY_THREAD.match(lines[head].body)
    if found is None:
        return None
    frames, at = [], head + 1
    while at < len(lines) and (body := lines[at].body).startswith(b"    "):
        if (frame := _SPY_FRAME.match(body)) and not body.startswith(b"     "):
            line = text_of(frame[3] or b"")
            frames.append(
                frame_of(text_of(frame[1]), text_of(frame[2]), line)
                if line
                else f"{text_of(frame[1])} ({text_of(frame[2])})"
            )
        at += 1
    pids = [int(one[1]) for line in lines[:head] if (one := _SPY_PROCESS.match(line.body))]
    name = text_of(found[4] or found[1])
    stack = _stack(
        frames, path, lines[head].number, name, pids[-1] if pids else None, name == "MainThread", found[3] is not None
    )
    return Made(at, stacks=(stack,))


_FAILED: Final = regex(rb"Stack trace of the failed collective: ")
_FAILED_FRAME: Final = regex(rb"#\d+ (\S+) from (\S+?):(\d+)(?=$|\s|\\n)")


def _failed_collective(lines: Sequence[Line], _: int, path: str) -> Made | None:
    """Where the program enqueued the collective that timed out; on one line with written line feeds, or on several."""
    count = next((at for at, line in enumerate(lines[1:], 1) if not line.body.startswith(b"#")), len(lines))
    found = [each for line in lines[:count] for each in _FAILED_FRAME.finditer(line.body)]
    frames = [frame_of(text_of(each[1]), text_of(each[2]), int(each[3])) for each in found]
    return (
        Made(count, stacks=(_stack(frames, path, lines[0].number, "watchdog", None, False, None),)) if frames else None
    )


_NPU_THREAD: Final = regex(rb"^thread (<.*>|\d+):\s*$")


def _npu(lines: Sequence[Line], _: int, path: str) -> Made | None:
    """A thread of what torch_npu writes beside its dump, the outermost frame first."""
    frames, at = [], 1
    while at < len(lines) and (found := _FRAME.match(lines[at].body) or lines[at].body.startswith(b"    ")):
        if not isinstance(found, bool):
            frames.append(frame_of(text_of(found[3]).strip(), text_of(found[1]), int(found[2])))
        at += 1
    name = text_of(lines[0].body).removeprefix("thread ").rstrip(": \r")
    stack = _stack(frames[::-1], path, lines[0].number, name, None, "MainThread" in name, None)
    return Made(at, stacks=(stack,)) if frames else None


def _stack(
    frames: Sequence[str], path: str, line: int, thread: str, pid: int | None, main: bool, gil: bool | None
) -> Stack:
    return Stack(tuple(frames), state_of(frames), Source(path, line), None, thread, pid, main, gil)


def spy_json(threads: Sequence[Any], path: str) -> list[Stack]:
    """The threads of `py-spy dump --json`."""
    made = []
    for thread in threads:
        if not isinstance(thread, Mapping) or not isinstance(thread.get("frames"), list):
            continue
        frames = [
            frame_of(
                str(each.get("name", "?")),
                str(each.get("filename") or each.get("short_filename", "?")),
                each.get("line", 0),
            )
            for each in thread["frames"][:1000]
            if isinstance(each, Mapping)
        ]
        name, pid = str(thread.get("thread_name") or thread.get("thread_id", "")), thread.get("pid")
        gil = thread.get("owns_gil")
        made.append(
            _stack(
                frames,
                path,
                0,
                name,
                pid if isinstance(pid, int) else None,
                name == "MainThread",
                gil if isinstance(gil, bool) else None,
            )
        )
    return made


# --- What launchers write as blocks ----------------------------------------------------------------------------------

_TABLE_LINE: Final = regex(rb"^\s+(time|host|rank|exitcode|error_file|traceback)\s*: ?(.*)$")
_TABLE_NEXT: Final = regex(rb"^(?:\[\d+\]:|[-=]{5})")
_TABLE_RANK: Final = regex(rb"(\d+) \(local_rank: (\d+)\)")
_TABLE_EXIT: Final = regex(rb"(-?\d+) \(pid: (\d+)\)(?:\s+\((\w+)\))?")


def _elastic(lines: Sequence[Line], head: int, path: str) -> Made | None:
    """One failure of the table that torchrun ends with."""
    root = any(b"Root Cause" in line.body for line in lines[:head])
    fields: dict[bytes, bytes] = {}
    at = head
    while at < len(lines) and (found := _TABLE_LINE.match(lines[at].body)):
        fields[found[1]] = found[2]
        at += 1
    rank, exited = _TABLE_RANK.match(fields.get(b"rank", b"")), _TABLE_EXIT.match(fields.get(b"exitcode", b""))
    if rank is None or exited is None:
        return None
    data: dict[str, Value] = {"exitcode": int(exited[1]), "pid": int(exited[2]), "local_rank": int(rank[2])}
    data |= {"root_cause": 1} if root else {}
    text = message_of(fields.get(b"traceback", b""))
    if text.startswith("Traceback"):
        # It goes on below; its last line is what was raised.
        while at < len(lines) and lines[at].body.strip() and not _TABLE_NEXT.match(lines[at].body):
            body = lines[at].body.strip()
            text = message_of(body) if _ERROR.match(body) and not lines[at].body.startswith(b"    ") else text
            at += 1
    if text:
        data["reason"] = text
    event = Event(
        What.EXIT,
        f"rank {int(rank[1])} exitcode {message_of(fields[b'exitcode'])}" + (f": {text}" if text else ""),
        Source(path, lines[head].number),
        rank=int(rank[1]),
        host=message_of(fields.get(b"host", b"")) or None,
        data=data,
    )
    event = stamped(event, stamp_of(fields.get(b"time", b"")))
    return Made(at, (event,), closed=True)


_TABLE_HEAD: Final = regex(rb"^\s+time\s+: \d{4}-")
_POD: Final = regex(rb"^\s+(?:Last )?State:\s+Terminated")
_POD_FIELD: Final = regex(rb"^\s+(Reason|Exit Code|Signal|Finished|Started|Message):\s+(.*)$")


def _pod(lines: Sequence[Line], _: int, path: str) -> Made | None:
    """What `kubectl describe pod` tells of a container that ended."""
    fields: dict[bytes, str] = {}
    at = 1
    while at < len(lines) and (found := _POD_FIELD.match(lines[at].body)):
        fields[found[1]] = text_of(found[2]).strip()
        at += 1
    event = terminated(fields.get(b"Reason", ""), fields.get(b"Exit Code", ""), Source(path, lines[0].number))
    return None if event is None else Made(at, (event,))


def terminated(reason: str, code: str, source: Source, name: str = "container") -> Event | None:
    """What Kubernetes says of a container that ended."""
    if reason == "Completed" or not (reason or code):
        return None
    what = What.HOST_OOM if reason == "OOMKilled" else What.EXIT
    data: dict[str, Value] = {"reason": reason}
    if code.lstrip("-").isdigit():
        # A shell's code of a signal is 128 and its number.
        data["exitcode"] = 128 - int(code) if 128 < int(code) < 160 else int(code)
    if what is What.HOST_OOM:
        data |= {"scope": "cgroup", "oom_kill": 1}
    return Event(what, f"{name} terminated: {reason}, exit code {code}", source, data=data)


BLOCKS: tuple[Block, ...] = (
    Block(b"Traceback (most recent call last)", _TRACEBACK, "Python: traceback.py", _traceback),
    Block(b"(most recent call first):", _FAULT_THREAD, "Python: faulthandler", _faulthandler),
    Block(b"Fatal Python error: ", _FATAL, "Python: faulthandler", _fatal),
    Block(b"Stack trace of the failed collective", _FAILED, "pt: ProcessGroupNCCL.cpp", _failed_collective, bare=True),
    Block(b"thread ", _NPU_THREAD, "npu: ProcessGroupHCCL.cpp", _npu),
    Block(b"Thread ", _SPY_THREAD, "benfred/py-spy: dump", _spy, before=3),
    Block(b" time", _TABLE_HEAD, "pt: elastic/multiprocessing/errors", _elastic, before=3),
    Block(b"State:", _POD, "kubectl describe", _pod),
)
