"""Dumps of the flight recorder of collectives (NCCL, HCCL, gloo), as pickle and as JSON, of every version.

`torch/csrc/distributed/c10d/FlightRecorder*.hpp` writes them. Pickles are of plain values and read as such; what a
version lacks is unknown, and keys that are not known are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import InputError
from traceanalyze.incident.evidence import UNKNOWN, Collectives, Evidence, FileRead, Flight, Group, Source
from traceanalyze.incident.stacks import frame_of
from traceanalyze.model.patterns import regex
from traceanalyze.readers.snapshot import load_plain
from traceanalyze.readers.streams import Stream

_MARKS: Final = regex(rb"pg_config|pg_status|profiling_name|(?:nccl|hccl)_comm_state|comm_lib_version")
_TRACE: Final = regex(rb"schemaVersion|traceEvents|distributedInfo")
"""Kineto names the groups, too."""
_LAST_NUMBER: Final = regex(r"(\d{1,7})\D*")
_RANKS: Final = regex(r"\d{1,7}")
_TEXT: Final = 256 << 20
"""Bytes of a dump as JSON; 20,000 entries are 20 MB."""
_MOST: Final = 1 << 62


def is_flight(head: bytes) -> bool:
    """Whether a file is a dump, by its first bytes."""
    return head[:1] in {b"\x80", b"{", b"["} and _MARKS.search(head) is not None and not _TRACE.search(head)


def rank_of_name(path: str) -> int | None:
    """The number with which the name ends, a further `.json` aside."""
    found = _LAST_NUMBER.findall(PurePath(path).name.removesuffix(".json").removesuffix(".gz"))
    return int(found[-1]) if found else None


def read_flight(stream: Stream, path: str, size: int) -> Evidence:
    """The dump in a file, and what became of it."""
    read = FileRead(path, "flight_recorder", size, rank=rank_of_name(path), clock="utc")
    try:
        pickled = stream.head[:1] == b"\x80"
        value = load_plain(stream, path, size) if pickled else _json(stream, path)
        flight = _flight(value, path, size)
    except InputError as error:
        return Evidence(files=(read._replace(fault=str(error).removeprefix(f"{path}: ")),))
    if flight is None:
        return Evidence(files=(read._replace(fault="it holds no entries and no groups", rank=None),))
    created = flight.entries.created[flight.entries.created != UNKNOWN]
    count = len(flight.entries.record)
    read = read._replace(lines=count, understood=count, rank_source=flight.rank_source)
    if len(created):
        read = read._replace(first_ns=int(created.min()), last_ns=int(created.max()))
    return Evidence(flights=(flight,), files=(read,))


def _json(stream: Stream, path: str) -> object:
    buffer, parts, length = memoryview(bytearray(1 << 20)), list[bytes](), 0
    while count := stream.readinto(buffer):
        parts.append(bytes(buffer[:count]))
        length += count
        if length > _TEXT:
            raise InputError("{name}: more than {most:,} bytes of JSON are no dump of a flight recorder", path, _TEXT)
    try:
        return json.loads(b"".join(parts))
    except (ValueError, RecursionError) as error:
        raise InputError("{name}: this JSON ends early or is damaged ({error})", path, error) from error


def _flight(value: object, path: str, size: int) -> Flight | None:
    # The earliest dumps are a bare list of entries.
    content: Mapping[str, Any] = (
        {"entries": value} if isinstance(value, list) else value if isinstance(value, dict) else {}
    )
    found = content.get("entries", [])
    if not isinstance(found, list | tuple) or len(found) > size:
        # Shared references let a small file stand for any number of entries.
        raise InputError("{name}: its entries are no list of its size", path)
    entries = [each for each in found if isinstance(each, dict)]
    if not entries and not content.get("pg_config") and not content.get("pg_status"):
        return None
    rows, group_row = _groups(content, entries)
    columns = _Codes()
    collectives = Collectives(
        record=_numbers(entries, "record_id"),
        group=np.array(group_row, np.int64),
        # Before 2.0 one counter stood for all.
        seq=_first(_numbers(entries, "collective_seq_id"), _numbers(entries, "seq_id")),
        p2p_seq=_numbers(entries, "p2p_seq_id"),
        op=columns.of([_operation(each) for each in entries]),
        sizes=columns.of([_pair(_sizes, each, "sizes") for each in entries]),
        dtypes=columns.of([_pair(_words, each, "dtypes") for each in entries]),
        state=columns.of([_word(each.get("state")) for each in entries]),
        stack=columns.of(_stacks(entries)),
        created=_numbers(entries, "time_created_ns", unset=0),
        started=_numbers(entries, "time_discovered_started_ns", unset=0),
        completed=_numbers(entries, "time_discovered_completed_ns", unset=0),
        duration=_floats(entries, "duration_ms"),
        timeout=_numbers(entries, "timeout_ms"),
        p2p=np.array([each.get("is_p2p") is True for each in entries], np.bool_),
        retired=np.array([each.get("retired") is True for each in entries], np.bool_),
        names=columns.names(),
    )
    rank = rank_of_name(path)
    return Flight(
        rank,
        _word(content.get("version")),
        _with_counts(rows, collectives),
        collectives,
        Source(path),
        "the number at the end of its name" if rank is not None else "",
        timed=bool((collectives.started != UNKNOWN).any()),
    )


def _groups(content: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> tuple[list[Group], list[int]]:
    """Groups of the configuration, then those that only entries name; and the row of each entry's."""
    groups: dict[str, Group] = {}
    config = content.get("pg_config")
    for key, each in config.items() if isinstance(config, dict) else ():
        # gloo writes one without name and ranks.
        if isinstance(each, dict) and (name := _word(each.get("name")) or _word(key)):
            ranks = tuple(int(found) for found in _RANKS.findall(_word(each.get("ranks"), 1 << 20)))
            groups[name] = Group(name, _word(each.get("desc")), ranks)
    order: list[int] = []
    places = {name: at for at, name in enumerate(groups)}
    for each in entries:
        pair = each.get("process_group")
        parts = [_word(part) for part in pair[:2]] if isinstance(pair, list | tuple) else [_word(pair)]
        number, name = _integer(each.get("pg_id")), parts[0] if parts and parts[0] else ""
        name = name or (f"{number}" if number is not None else "")
        if name not in places:
            places[name] = len(places)
            groups[name] = Group(name, parts[1] if len(parts) > 1 else "", ())
        known = groups[name]
        if (known.id < 0 and number is not None) or not known.library:
            library = (
                _word(each.get("profiling_name")).partition(":")[0] if ":" in _word(each.get("profiling_name")) else ""
            )
            desc = known.desc or (parts[1] if len(parts) > 1 else "")
            groups[name] = known._replace(id=known.id if number is None else number, library=library, desc=desc)
        order.append(places[name])
    return _with_status(content.get("pg_status"), list(groups.values())), order


def _with_status(status: object, groups: list[Group]) -> list[Group]:
    """The counts of the dump, which outlive the ring; one of a group without entries is a group of its own."""
    if not isinstance(status, dict):
        return groups
    by_id = {group.id: at for at, group in enumerate(groups) if group.id >= 0}
    for key, each in status.items():
        number = _integer(key)
        if number is None or not isinstance(each, dict):
            continue
        counts = [_integer(each.get(f"last_{what}_collective")) for what in ("enqueued", "started", "completed")]
        at = by_id.get(number)
        if at is None:
            # Groups that never ran a collective are told by their number alone, which one configuration may share.
            at = next((at for at, group in enumerate(groups) if group.id < 0 and group.name == str(number)), None)
        if at is None:
            at = len(groups)
            groups.append(Group("", "", (), number))
        groups[at] = groups[at]._replace(id=number, enqueued=counts[0], started=counts[1], completed=counts[2])
    return groups


def _with_counts(groups: Sequence[Group], entries: Collectives) -> tuple[Group, ...]:
    """Counts by the entries, where the version of the dump has none."""
    code = {name: at for at, name in enumerate(entries.names)}
    own = (entries.seq != UNKNOWN) & ~entries.p2p
    done = own & (entries.state == code.get("completed", -1))
    begun = done | (own & (entries.state == code.get("started", -1)))

    def last(rows: NDArray[np.bool_]) -> list[int]:
        found = np.full(len(groups), -1, np.int64)
        np.maximum.at(found, entries.group[rows], entries.seq[rows])
        return found.tolist()

    known = set(entries.group[own].tolist())
    counts = zip(groups, last(own), last(begun), last(done), strict=True)
    return tuple(
        group._replace(enqueued=enqueued, started=started, completed=completed)
        if group.enqueued is None and at in known
        else group
        for at, (group, enqueued, started, completed) in enumerate(counts)
    )


class _Codes:
    """Texts as codes."""

    def __init__(self) -> None:
        self._code: dict[str, int] = {"": 0}

    def of(self, texts: Sequence[str]) -> NDArray[np.int64]:
        code = self._code
        return np.array([code.setdefault(text, len(code)) for text in texts], np.int64)

    def names(self) -> tuple[str, ...]:
        return tuple(self._code)


def _integer(value: object) -> int | None:
    """A number, or the text of one: JSON dumps have those of the status as texts."""
    if isinstance(value, str) and len(value) < 20:
        try:
            value = int(value)
        except ValueError:
            return None
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST else None


def _numbers(entries: Sequence[Mapping[str, Any]], key: str, unset: int | None = None) -> NDArray[np.int64]:
    values = (_integer(each.get(key)) for each in entries)
    return np.array([UNKNOWN if value is None or value == unset else value for value in values], np.int64)


def _floats(entries: Sequence[Mapping[str, Any]], key: str) -> NDArray[np.float64]:
    values = [each.get(key) for each in entries]
    known = [value if isinstance(value, int | float) and abs(value) < _MOST else np.nan for value in values]
    return np.array(known, np.float64)


def _first(main: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(main == UNKNOWN, other, main)


def _word(value: object, most: int = 200) -> str:
    return value[:most] if isinstance(value, str) else ""


def _operation(entry: Mapping[str, Any]) -> str:
    """`all_reduce` of `nccl:all_reduce`."""
    name = _word(entry.get("profiling_name"))
    return name.partition(":")[2] or name


def _pair(text: Any, entry: Mapping[str, Any], what: str) -> str:
    first, second = text(entry.get(f"input_{what}")), text(entry.get(f"output_{what}"))
    return f"{first} -> {second}" if first or second else ""


def _sizes(value: object) -> str:
    """Shapes; not by `repr`, as nested references would make it endless."""
    if not isinstance(value, list | tuple):
        return ""
    shapes = [
        f"[{', '.join(str(size) for size in shape[:16] if isinstance(size, int) and abs(size) < _MOST)}]"
        for shape in value[:64]
        if isinstance(shape, list | tuple)
    ]
    return f"[{', '.join(shapes)}]"


def _words(value: object) -> str:
    if not isinstance(value, list | tuple):
        return _word(value)
    words = list(dict.fromkeys(_word(each) for each in value[:64]))
    return ", ".join(words)


def _stacks(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The stacks as texts; that of one place in the program is made once."""
    made: dict[int, str] = {}
    texts = []
    for each in entries:
        frames = each.get("frames")
        if not isinstance(frames, list | tuple) or not frames:
            texts.append("")
            continue
        text = made.get(id(frames))
        if text is None:
            text = made[id(frames)] = "\n".join(_frame(frame) for frame in frames[:100] if isinstance(frame, dict))
        texts.append(text)
    return texts


def _frame(frame: Mapping[str, Any]) -> str:
    line = _integer(frame.get("line"))
    return frame_of(_word(frame.get("name")), _word(frame.get("filename")), "?" if line is None else line)
