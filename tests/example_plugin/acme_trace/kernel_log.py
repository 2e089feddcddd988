"""Reads kernel logs of Acme's runtime, which are CSV files.

acme kernel log, rank 0 of 2
start_us,duration_us,stream,kernel
12.5,3.25,7,acme_mix_heads_fp16
"""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING

from traceanalyze.errors import InputError
from traceanalyze.readers.kineto import read_text
from traceanalyze.readers.plugin import Reader

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.model.trace import Trace

_FIRST_LINE = re.compile(r"acme kernel log, rank (\d+) of (\d+)\n")


def recognises(path: Path) -> bool:
    """Whether the first line is that of a kernel log."""
    with path.open("rb") as file:
        return file.read(16) == b"acme kernel log,"


def read(path: Path) -> Trace:
    """The kernels of one rank."""
    with path.open() as file:
        about = _FIRST_LINE.fullmatch(file.readline())
        if about is None:
            raise InputError(f"{path}: the first line does not tell the rank")
        rank, world_size = map(int, about.groups())
        events = [_event(row) for row in csv.DictReader(file)]
    trace = {"distributedInfo": {"rank": rank, "world_size": world_size}, "traceEvents": events}
    return read_text(json.dumps(trace).encode(), str(path))


def _event(row: dict[str, str]) -> dict[str, object]:
    """A row as a complete event of a Chrome trace: times in µs, the stream in `args`."""
    return {
        "ph": "X",
        "cat": "kernel",
        "name": row["kernel"],
        "pid": 0,
        "tid": f"stream {row['stream']}",
        "ts": float(row["start_us"]),
        "dur": float(row["duration_us"]),
        "args": {"device": 0, "stream": int(row["stream"])},
    }


READER = Reader(recognises, read, suffixes=(".csv",))
