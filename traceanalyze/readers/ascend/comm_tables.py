"""The profile's own tables of collectives: communication.json and communication_matrix.json.

Times in ms, sizes in MB of 10⁶ bytes. `Total Op Info`, sums over all, is left out: its parts are here. Of the matrix
only the sums by type (`allreduce-total`) are taken; its other entries are single examples of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.collectives import VendorCollective, VendorCollectives, VendorLink, collective_type
from traceanalyze.model.patterns import regex
from traceanalyze.readers.ascend.folder import Profile
from traceanalyze.readers.ascend.info import About
from traceanalyze.readers.ascend.shared import ABSENT, Texts
from traceanalyze.readers.ascend.tables import step_number
from traceanalyze.readers.header import lenient_json

_HCOM = regex(r"(?P<name>\w+?)_*__(?P<digits>\d{1,3})_\d+(_\d+)*$")
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

    Args:
        texts: Dictionary of the trace.
        about: What the profile says of itself.
        names: Of the operations, `hcom_allReduce__586_0_1`.
        groups: Of each operation what its group goes by in the profile: a name, an address, a hash, or empty.
        dtypes: Element types in HCCL's words (`FP32`).
        count: Elements that the operation counts, `ABSENT` where unknown. HCCL counts what each rank gives to an
            all_gather and what each one gets of a reduce_scatter.
        ranks: Ranks of the group where the profile says so, else `ABSENT`.
    """
    plain = [found["name"] if (found := _HCOM.match(name)) else name for name in names]
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
    found = _HCOM.match(name)
    return f"group {found['digits']}" if found else ""


TIMES, MATRIX = "communication.json", "communication_matrix.json"
MOST_BYTES = 1 << 25
"""Larger files are not read: they only serve to check numbers, and would take longer than the timeline."""
TOTAL = regex(r"(.+)-total$")
SUMS = frozenset({"SDMA"})
"""Of links: what is the sum of the others."""
_MOST = 1 << 62


def communication_tables(profile: Profile, about: About, notes: list[str]) -> VendorCollectives | None:
    """Both files of a profile's text form; None where there is neither. What cannot be used is noted.

    Args:
        profile: The files of one rank.
        about: What it says of itself; names groups.
        notes: Grows by what was left out.
    """
    found = {name: path for name in (TIMES, MATRIX) if (path := profile.table(name)) is not None}
    read = {name: value for name, path in found.items() if (value := _object_of(path, notes)) is not None}
    lost = {TIMES: 0, MATRIX: 0}
    collectives = tuple(_collectives(read.get(TIMES, {}), about, lost))
    links = _links(read.get(MATRIX, {}), about, lost)
    notes.extend(lost_rows(lost))
    return VendorCollectives(TIMES, collectives, MATRIX, links) if collectives or links else None


def _object_of(path: Path, notes: list[str]) -> dict[str, Any] | None:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            notes.append(f"{path.name} has {size:,} bytes, more than {MOST_BYTES:,}: not compared with the timeline")
            return None
        # A pipe of that name would be waited for without end; as an empty file it is no JSON.
        found = lenient_json(path.read_bytes() if path.is_file() else b"")
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        notes.append(f"{path.name} cannot be read and was left out")
        return None
    return found


def _entries(found: dict[str, Any]) -> Iterator[tuple[int | None, str, str, dict[str, Any]]]:
    """Step, name, group's hash and content of all entries below the steps and the kinds (collective, p2p)."""
    for step, kinds in found.items():
        for entries in _values(kinds):
            for key, value in entries.items():
                name, _, group = key.partition("@")
                if isinstance(value, dict):
                    yield step_number(step), name, group, value


def _values(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield from (each for each in value.values() if isinstance(each, dict))


def lost_rows(lost: Mapping[str, int]) -> Iterator[str]:
    """Notes on rows that could not be read, by where they stood."""
    for name, count in lost.items():
        if count:
            yield f"{name}: {count:,} row(s) without a readable size or time were left out"


def _collectives(found: dict[str, Any], about: About, lost: dict[str, int]) -> Iterator[VendorCollective]:
    for step, name, group, content in _entries(found):
        times = content.get("Communication Time Info")
        if not group or not isinstance(times, dict):
            continue
        elapsed, transit, wait, idle = (
            scaled(times.get(f"{what} Time(ms)"), 10**6) for what in ("Elapse", "Transit", "Wait", "Idle")
        )
        links = tuple(_transfers(content.get("Communication Bandwidth Info"), lost))
        yield VendorCollective(name, group_label(name, group, about), step, elapsed, transit, wait, idle, links)


def _transfers(found: object, lost: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    if not isinstance(found, dict):
        return
    for link, values in found.items():
        if link not in SUMS and isinstance(values, dict):
            size, time = scaled(values.get("Transit Size(MB)"), 10**6), scaled(values.get("Transit Time(ms)"), 10**6)
            if size is None or time is None:
                lost[TIMES] += 1
            elif size > 0:
                yield str(link), size, time


def _links(found: dict[str, Any], about: About, lost: dict[str, int]) -> tuple[VendorLink, ...]:
    rows: list[MatrixRow] = []
    names: dict[str, str] = {}
    for _, name, group, pairs in _entries(found):
        total = TOTAL.match(name)
        for pair, values in pairs.items():
            if not isinstance(values, dict):
                continue
            if values.get("Op Name"):
                names.setdefault(group, str(values["Op Name"]))
            source, _, target = pair.partition("-")
            if total and source.isdecimal() and target.isdecimal():
                size, time = (scaled(values.get(f"Transit {what}"), 10**6) for what in ("Size(MB)", "Time(ms)"))
                link = str(values.get("Transport Type") or "")
                if size is None or time is None:
                    lost[MATRIX] += 1
                else:
                    rows.append(MatrixRow(total[1], group, int(source), int(target), link, size, time))
    return summed(rows, names, about)


class MatrixRow(NamedTuple):
    """Sums of one pair of ranks, as written: type, hash of the group, ranks, kind of link, bytes, ns."""

    collective: str
    group: str
    source: int
    target: int
    link: str
    bytes: int
    time: int


def summed(rows: Iterable[MatrixRow], names: Mapping[str, str], about: About) -> tuple[VendorLink, ...]:
    """All steps together, by type, group and pair; `names` holds one operation of each group, to name it by."""
    sums: dict[tuple[str, str, int, int, str], list[int]] = {}
    for row in rows:
        group = group_label(names.get(row.group, ""), row.group, about)
        kind = collective_type(row.collective) or row.collective
        sizes = sums.setdefault((kind, group, row.source, row.target, row.link), [0, 0])
        sizes[0], sizes[1] = sizes[0] + row.bytes, sizes[1] + row.time
    return tuple(VendorLink(*key, *sizes) for key, sizes in sums.items())


def scaled(value: object, unit: int) -> int | None:
    """A number of the file in the unit's smallest parts; None for what is no number, or none that can be meant."""
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    # A comparison holds for integers of any size, and fails for NaN.
    return round(number * unit) if number is not None and abs(number) < _MOST / unit else None
