"""Times in the cells of CSV tables."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.readers.ascend.shared import ABSENT, core_clock
from traceanalyze.readers.ascend.tables import read_table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("1736408883704643.212\t", 1736408883704643212),
        ("1736408883704643.2", 1736408883704643200),
        ("1736408883704643", 1736408883704643000),
        ("", ABSENT),
        ("N/A", ABSENT),
        ("1.69512E+15", ABSENT),
        ("17364088837046.4E+2", ABSENT),
        ("9" * 16, ABSENT),
        ("9" * 25, ABSENT),
        ("9" * 5000, ABSENT),
    ],
)
def test_a_time_is_exact_or_none(tmp_path: Path, cell: str, expected: int) -> None:
    """An empty cell is a release that never came; spreadsheets save times so that they are lost."""
    path = tmp_path / "t.csv"
    path.write_text(f"Name,Time\nx,{cell}\n")
    table = read_table(path, {"at": ("Time",)}, [])
    assert table is not None
    assert table.times("at").tolist() == [expected]


_WHOLE = st.one_of(st.integers(0, 10**16 - 1), st.integers(1736408883704640, 1736408883704649)).map(str)
_FRACTION = st.sampled_from(["", ".", ".2", ".212", ".250", ".2129"])
_CELL = st.one_of(
    st.tuples(st.sampled_from(["", " "]), _WHOLE, _FRACTION, st.sampled_from(["", "\t", "\r"])).map("".join),
    st.sampled_from(["", "N/A", "1.69512E+15", "1736408883704643:212\t", "17364088837o4643.212\t", "\t"]),
)


def _exact(cell: str) -> int:
    text = cell.strip()
    if not text.replace(".", "").isdigit() or text[-1] == ".":
        return ABSENT
    time = int(Decimal(text) * 1000)
    return time if time < 1 << 62 else ABSENT


@given(st.lists(_CELL, min_size=1, max_size=12), st.integers(20, 200))
def test_times_of_any_layouts_in_one_column_are_exact(tmp_path_factory, cells: list[str], block: int) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_text("".join(f"{row}\n" for row in ("Name,Time", *(f"x,{cell}" for cell in cells))), newline="")
    table = read_table(path, {"at": ("Time",)}, (notes := []), block)
    assert table is not None
    expected = [_exact(cell) for cell in cells]
    assert table.times("at").tolist() == expected
    lost = sum(time == ABSENT and cell.strip() not in {"", "N/A"} for time, cell in zip(expected, cells, strict=True))
    said = [f"t.csv: {lost} number(s) cannot be read (was it saved by a spreadsheet?): at"] if lost else []
    assert [str(note) for note in notes] == said


@pytest.mark.parametrize(("cell", "expected"), [("2.5", 5 << 19), ("1e13", ABSENT), ("-1e13", ABSENT), ("x", ABSENT)])
def test_a_size_that_cannot_be_meant_is_none(tmp_path: Path, cell: str, expected: int) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"Name,Size\nx,{cell}\n")
    table = read_table(path, {"size": ("Size",)}, [])
    assert table is not None
    assert table.sizes("size", 1 << 20).tolist() == [expected]


def test_module_memory_is_summed_up_by_component(tmp_path):
    from traceanalyze.model.trace import ModuleMemory
    from traceanalyze.readers.ascend.sampled_memory import module_memory

    path = tmp_path / "npu_module_mem.csv"
    path.write_text(
        "Component,Timestamp(us),Total Reserved(MB),Device\r\n"
        "HCCL,1736408883677036.730\t,2.0,NPU:0\r\n"
        "HCCL,1736408883657086.220\t,1.5,NPU:0\r\n"
        "SLOG,1736408883657086.220\t,0.0,NPU:0\r\n"
        "APP,1736408883657086.220\t,9.0,NPU:0\r\n"
        "RUNTIME,1736408883657086.220\t,4.0,NPU:1\r\n"
    )
    mib = 1 << 20
    assert module_memory(path, []) == (
        ModuleMemory("RUNTIME", 1, 4 * mib, 4 * mib, 1),
        ModuleMemory("HCCL", 0, 2 * mib, 2 * mib, 2),
    )


def test_counters_without_a_possible_clock_tell_none() -> None:
    """A kernel of 20 µs in 8 blocks at 1,800 MHz; then counters of damaged files, products above an int64 too."""
    cycles = np.array([8 * 20 * 1800, 2**62, 2**62, 288_000, 0, 288_000])
    time = np.array([20_000, 20_000, 2**61, 20_000, 20_000, 999])
    blocks = np.array([8, 8, 16, 0, 8, 8])
    none = np.zeros(len(cycles), np.int64)
    expected = [1800, ABSENT, 125, ABSENT, ABSENT, ABSENT]
    for unit, other in (("aic", "aiv"), ("aiv", "aic")):
        names = {"aic": "aicore_time", "aiv": "aiv_time"}
        counters = {f"{unit}_cycles": cycles, names[unit]: time, f"{other}_cycles": none, names[other]: none}
        assert core_clock(counters, blocks).tolist() == expected


def test_kernels_on_vector_cores_have_a_clock_unless_their_blocks_take_turns() -> None:
    """Cube kernels use 24 cores, so there are 48 vector cores: 256 blocks run on them one after another."""
    zero, time = np.array([0, 0, 0]), np.array([10_000, 10_000, 10_000])
    blocks, cores = np.array([24, 48, 256]), np.array([24, 48, 48])
    cycles = cores * 10 * 1800
    on_cube, on_vector = np.array([1, 0, 0]), np.array([0, 1, 1])
    counters = {"aic_cycles": cycles * on_cube, "aicore_time": time * on_cube}
    counters |= {"aiv_cycles": cycles * on_vector, "aiv_time": time * on_vector}
    assert core_clock(counters, blocks).tolist() == [1800, 1800, ABSENT]
    # As a profile of vector work alone has it: with as many cores as the smallest such device.
    counters |= {"aic_cycles": zero, "aicore_time": zero}
    assert core_clock(counters, np.array([8, 40, 48]))[1:].tolist() == [2160, ABSENT]
