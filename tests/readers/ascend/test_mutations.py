"""Damaged copies of what a profile consists of: a number stays, or a loss is told beside it, or one line says why not.

A number or a name that became another one, and a row that is gone as a whole, only other tables can tell: those of
kernels are held against op_statistic.csv. MUTATIONS asks for more of them than a usual run has time for.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.readers.ascend.test_comm_tables import RANKS
from tests.simulate.writers.ascend import OUTPUT, write_ascend
from tests.simulate.writers.ascend_layouts import AscendLayout
from traceanalyze.errors import TraceAnalyzeError
from traceanalyze.model.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MUTATIONS = int(os.environ.get("MUTATIONS", "8"))
"""Of 1,000 of each, nobody can know of step_trace_time.csv 715 and 785 (the last row is gone), database 986 (zeros)."""
COUNTED = {"kernels": ("count", "device_time_ns")}
MEASURED = ("split", "totals", "vendor_collectives")
TIMELINE, DATABASE = "trace_view.json", "ascend_pytorch_profiler_0.db"
DAMAGED = {
    "kernel_details.csv": ("text", (TIMELINE,)),
    "step_trace_time.csv": ("text", (TIMELINE, "kernel_details.csv")),
    "communication.json": ("text", ()),
    "communication_matrix.json": ("text", ()),
    DATABASE: ("db", ()),
    "analysis.db": ("db", ()),
}
"""File → form of the profile, and what is taken away first, so that its numbers are those of the report."""


def mutated(text: bytes, chance: random.Random, name: str) -> bytes:
    """Cut short, or a stretch made zero; in databases a page; in texts parts of lines, of kernels whole ones."""
    at = chance.randrange(len(text))
    end = at + chance.randrange(1, 100)
    ways = [text[:at], text[:at] + bytes(end - at) + text[end:]]
    if name.endswith(".db"):
        page = at // 4096 * 4096
        ways.append(text[:page] + chance.randbytes(4096) + text[page + 4096 :])
    else:
        marks = bytes(chance.choice(b'x",\n\r\0;{}[]\xff') for _ in range(3))
        ways += [text[:at] + text[end:], text[:at] + marks + text[at:], text[:at] + b'"' + text[at:]]
    if name == "kernel_details.csv":
        lines = text.splitlines(keepends=True)
        line = chance.randrange(len(lines))
        ways += [b"".join(lines[:line] + lines[line + 1 :]), b"".join(lines[: line + 1] + lines[line:])]
    return chance.choice(ways)


def flat(rows: object) -> Iterable[float]:
    if isinstance(rows, tuple):
        return (each for row in rows for each in flat(row))
    return [rows] if isinstance(rows, (int, float)) and not isinstance(rows, bool) else []


def numbers(home: Path) -> tuple[dict[str, object], set[str]]:
    """What is measured, and what is told of losses without -v."""
    report = traceanalyze.analyze(home)
    found: dict[str, object] = {
        name: sorted(flat(report.tables[name].rows)) for name in MEASURED if name in report.tables
    }
    for name, columns in COUNTED.items():
        rows = list(report.tables[name].records()) if name in report.tables else []
        found[name] = [sum(getattr(row, column) for row in rows) for column in columns]
    told = {
        f"{check.message.key} {check.message.values}" for check in report.ranks[0].checks if check.level >= Level.WARN
    }
    return found, told


@pytest.mark.parametrize("name", DAMAGED)
def test_no_damage_changes_a_number_in_silence(tmp_path: Path, name: str) -> None:
    form, gone = DAMAGED[name]
    home = write_ascend(tmp_path, RANKS[0], AscendLayout("8.3", level=2), form)
    for other in gone:
        (home / OUTPUT / other).unlink()
    path = home / OUTPUT / name
    whole, (known, known_told) = path.read_bytes(), numbers(home)
    silent = []
    for seed in range(MUTATIONS):
        path.write_bytes(mutated(whole, random.Random(seed), name))
        try:
            found, told = numbers(home)
        except TraceAnalyzeError as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        if found != known and not told - known_told:
            silent.append(seed)
    assert silent == []
