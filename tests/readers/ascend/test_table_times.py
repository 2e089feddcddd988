"""Times in the cells of CSV tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from traceanalyze.readers.ascend.shared import ABSENT
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
    ],
)
def test_a_time_is_exact_or_none(tmp_path: Path, cell: str, expected: int) -> None:
    """An empty cell is a release that never came; spreadsheets save times so that they are lost."""
    path = tmp_path / "t.csv"
    path.write_text(f"Name,Time\nx,{cell}\n")
    table = read_table(path, {"at": ("Time",)})
    assert table is not None
    assert table.times("at").tolist() == [expected]
