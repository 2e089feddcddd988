"""The profile's own tables of collectives: communication.json and communication_matrix.json.

Times in ms, sizes in MB of 10⁶ bytes. `Total Op Info`, sums over all, is left out: its parts are here. Of the matrix
only the sums by type (`allreduce-total`) are taken; its other entries are single examples of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import Lost, Phrase
from traceanalyze.model.collectives import VendorCollective, VendorCollectives, VendorLink, collective_type
from traceanalyze.model.patterns import regex
from traceanalyze.readers.ascend.folder import Profile
from traceanalyze.readers.ascend.info import About
from traceanalyze.readers.ascend.shared import ABSENT, Texts
from traceanalyze.readers.ascend.tables import step_number
from traceanalyze.readers.header import json_object, lenient_json

HCOM = regex(r"(?P<name>\w+?)_*__(?P<digits>\d{1,3})_\d+(_\d+)*$")
FIRST_STREAM = -1000
"""Stream of the first group's collectives; each further group has one less, so that none is one of the hardware."""
_DTYPES = {
    "INT8": "Char",
    "UINT8": "Byte",
    "INT16": "Short",
    "INT32": "Int",
    "INT64": "Long",
    "UINT16": "UInt16",
    "UINT32": "UInt32",
    "UINT64": "UInt64",
    "FP16": "Half",
    "FP32": "Float",
    "FP64": "Double",
    "BFP16": "BFloat16",
    "BF16": "BFloat16",
}


def _element_type(hccl: str) -> str | None:
    """Element type of a collective in PyTorch's words; None for "invalid" and the like."""
    found = _DTYPES.get(hccl.strip().upper())
    return found or (hccl if hccl.upper().startswith("FP8") or hccl.upper().startswith("HIF8") else None)


def collective_fields(
    texts: Texts,
    about: About,
    names: Sequence[str],
    groups: Sequence[str],
    dtypes: Sequence[str | None],
    count: NDArray[np.int64],
    ranks: NDArray[np.int64] | None = None,
) -> dict[str, NDArray[Any]]:
    """Fields of group-level collectives for a `Block`: collective, group, group_size, in_elements, out_elements, dtype.

    Of each operation: its name (`hcom_allReduce__586_0_1`), what its group goes by in the profile (a name, an address,
    a hash, or empty), the element type in HCCL's words (`FP32`), the elements that it counts, and the ranks of the
    group; `ABSENT` where unknown. HCCL counts what each rank gives to an all_gather and gets of a reduce_scatter.
    """
    plain = [found["name"] if (found := HCOM.match(name)) else name for name in names]
    label = [group_label(name, group, about) for name, group in zip(names, groups, strict=True)]
    size = np.array([len(about.groups.get(text, ())) or ABSENT for text in label], np.int64)
    if ranks is not None:
        size = np.where(ranks > 0, ranks, size)
    kinds = [collective_type(name) for name in plain]
    known = count >= 0
    whole = np.where(known & (size > 0), count * size, ABSENT)
    output = np.array([kind == "reduce_scatter" for kind in kinds], np.bool_)
    gathers = np.array([kind == "all_gather" for kind in kinds], np.bool_)
    return {
        "collective": texts.codes(plain),
        "group": texts.codes(text or None for text in label),
        "group_size": size,
        "in_elements": np.where(output, whole, np.where(known, count, ABSENT)),
        "out_elements": np.where(gathers, whole, np.where(known, count, ABSENT)),
        "dtype": texts.codes(None if text is None else _element_type(text) for text in dtypes),
    }


def group_label(name: str, group: str, about: About) -> str:
    """What reports call the group of a collective: its name in the program, else the number in its operations' names.

    That number (three digits of a hash) is the same in both forms of a profile; addresses are never shown.
    """
    if group in about.group_names:
        return about.group_names[group]
    found = HCOM.match(name)
    return f"group {found['digits']}" if found else ""


TIMES, MATRIX = "communication.json", "communication_matrix.json"
MOST_BYTES = 1 << 25
"""Larger files are not read: they only serve to check numbers, and would take longer than the timeline."""
_TOTAL = regex(r"(.+)-total$")
_ALL = "Total Op Info"
"""Sums over all collectives."""
_SUMS = frozenset({"SDMA"})
"""Of links: what is the sum of the others."""
_UNIT = 10**6
"""ns in the files' ms, bytes in their MB."""
_MOST = (1 << 62) / _UNIT
Row = tuple[object, ...]
Collective = tuple[object, object, object, Sequence[object], Sequence[Row]]
"""Cells as written, whatever they are."""


def communication_tables(profile: Profile, about: About, notes: list[str]) -> VendorCollectives | None:
    """Both files of a profile's text form; None where there is neither. `notes` grows by what cannot be used."""
    times, matrix = (_object_of(profile.table(name), notes) for name in (TIMES, MATRIX))
    return vendor_collectives((TIMES, TIMES, MATRIX), _collectives(times), _pairs(matrix), about, notes)


def _object_of(path: Path | None, notes: list[str]) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            sizes = path.name, size, MOST_BYTES
            notes += [Phrase("{name} has {size:,} bytes, more than {most:,}: not compared with the timeline", *sizes)]
            return {}
        # A pipe of that name would be waited for without end; as an empty file it is no JSON.
        found = lenient_json(path.read_bytes() if path.is_file() else b"")
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        notes.append(Lost("{name} cannot be read and was left out", path.name))
        return {}
    return found


def _entries(found: dict[str, Any]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Step, name, group's hash and content of all entries below the steps and the kinds (collective, p2p)."""
    for step, kinds in found.items():
        for _, entries in _objects(kinds):
            for key, value in _objects(entries):
                name, _, group = key.partition("@")
                yield step, name, group, value


def _objects(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield from ((key, each) for key, each in value.items() if isinstance(each, dict))


def _collectives(found: dict[str, Any]) -> Iterator[Collective]:
    for step, name, group, content in _entries(found):
        times = json_object(content.get("Communication Time Info"))
        if name != _ALL:
            links = [
                (link, values.get("Transit Size(MB)"), values.get("Transit Time(ms)"))
                for link, values in _objects(content.get("Communication Bandwidth Info"))
            ]
            stated = [times.get(f"{what} Time(ms)") for what in ("Elapse", "Transit", "Wait", "Idle")]
            yield name, group, step, stated, links


def _pairs(found: dict[str, Any]) -> Iterator[Row]:
    for _, name, group, pairs in _entries(found):
        for pair, values in _objects(pairs):
            source, _, target = pair.partition("-")
            sums = (values.get(key) for key in ("Transport Type", "Transit Size(MB)", "Transit Time(ms)", "Op Name"))
            yield name, group, source, target, *sums


def vendor_collectives(
    sources: tuple[str, str, str],
    collectives: Iterable[Collective],
    pairs: Iterable[Row],
    about: About,
    notes: list[str],
) -> VendorCollectives | None:
    """Both tables from their rows; None where nothing can be used.

    `sources` are the names of the tables of times, of links and of pairs. A collective is its name, group, step, times
    (elapsed, transit, wait, idle; ms) and links (kind, MB, ms); a pair its name, group, source, target, kind of link,
    MB, ms, and an operation of the group. `notes` grows by the rows that could not be read.
    """
    lost = dict.fromkeys(sources, 0)
    times, links, matrix = sources
    found = tuple(_collective(row, about, lost, links) for row in collectives)
    stated = [(one.elapsed, one.transit, one.wait, one.idle) for one in found]
    # Versions tell all or none of one kind.
    told = [any(time is not None for time in column) for column in zip(*stated, strict=True)]
    lost[times] += sum(any(time is None for time in compress(row, told)) for row in stated)
    sums = _links(pairs, about, lost, matrix)
    for table, count in lost.items():
        if count:
            notes.append(Lost("{name}: {count:,} row(s) without a readable size or time were left out", table, count))
    return VendorCollectives(times, found, matrix, sums) if found or sums else None


def _collective(row: Collective, about: About, lost: dict[str, int], table: str) -> VendorCollective:
    name, group, step, times, written = row
    links: dict[str, tuple[int, int]] = {}
    for link, *moved in written:
        size, time = map(_scaled, moved)
        if link in _SUMS:
            continue
        if size is None or time is None or (size and not time):
            # Nothing moves in no time: a key that stands in the file twice.
            lost[table] += 1
        elif size > 0:
            links[str(link or "")] = size, time
    label = group_label(str(name or ""), str(group or ""), about)
    listed = tuple((link, *moved) for link, moved in links.items())
    elapsed, transit, wait, idle = map(_scaled, times)
    number = step_number(str(step or ""))
    return VendorCollective(str(name or ""), label, number, elapsed, transit, wait, idle, listed)


def _links(pairs: Iterable[Row], about: About, lost: dict[str, int], table: str) -> tuple[VendorLink, ...]:
    """All steps together, by type, group and pair of ranks; a group is named by one of its operations."""
    sums: dict[tuple[str, str, int, int, str], list[int]] = {}
    rows = list(pairs)
    names = {str(group or ""): str(operation) for _, group, *_, operation in reversed(rows) if operation}
    for name, group, source, target, link, *moved, _ in rows:
        total, ends = _TOTAL.match(str(name or "")), (str(source), str(target))
        if total is None or not all(map(str.isdecimal, ends)):
            continue
        size, time = map(_scaled, moved)
        if size is None or time is None or not str(group).isdecimal():
            lost[table] += 1
            continue
        label = group_label(names.get(str(group or ""), ""), str(group or ""), about)
        kind = collective_type(total[1]) or total[1]
        both = sums.setdefault((kind, label, int(ends[0]), int(ends[1]), str(link or "")), [0, 0])
        both[0], both[1] = both[0] + size, both[1] + time
    return tuple(VendorLink(*key, *both) for key, both in sums.items())


def _scaled(value: object) -> int | None:
    """An amount in the file in the unit's smallest parts; None for what is no number, or none that can be meant."""
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    # A comparison holds for integers of any size, and fails for NaN.
    return round(number * _UNIT) if number is not None and 0 <= number < _MOST else None
