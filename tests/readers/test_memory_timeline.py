"""Both forms of exported memory timelines give the same bytes by category; anything else is one clear line."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from traceanalyze.errors import InputError
from traceanalyze.pipeline.memory import memory_reports
from traceanalyze.readers.memory_timeline import read_memory_timeline
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from pathlib import Path

RAW = [[-1, 1, 100, 0], [-1, 1, 50, 7], [2000, 2, 30, 4], [3000, 3, -30, 4], [3000, 3, 30, 5], [4000, 4, -100, 0]]
"""Parameters of 100 from before, 30 of activation that become a gradient, and the parameters go."""


def written(folder: Path, content: object, name: str = "timeline.json") -> Source:
    text = json.dumps(content).encode()
    path = folder / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    return Source(str(path), size=path.stat().st_size)


def test_raw_changes_are_summed_by_category(tmp_path: Path) -> None:
    found = read_memory_timeline(written(tmp_path, RAW, "t.raw.json.gz"))
    assert found.bytes.sum(axis=1).tolist() == [100, 150, 180, 150, 180, 80]
    assert found.bytes[-1].tolist() == [0, 0, 0, 0, 0, 30, 0, 50]
    assert found.time.tolist() == [2000, 2000, 2000, 3000, 3000, 4000]


def test_sums_have_an_empty_first_column_and_microseconds(tmp_path: Path) -> None:
    sizes = [[0, 100, 0, 0, 0, 0, 0, 0, 50], [0, 100, 0, 0, 0, 30, 0, 0, 50]]
    found = read_memory_timeline(written(tmp_path, [[1, 2], sizes]))
    assert found.bytes.tolist() == [[100, 0, 0, 0, 0, 0, 0, 50], [100, 0, 0, 0, 30, 0, 0, 50]]
    assert found.time.tolist() == [1000, 2000]


@pytest.mark.parametrize(
    "content", [[], [[1, 2], [[0] * 9]], [[1], [[0] * 3]], [[1, 9, 5, 0]], [[1, 2, 5, 99]], [[1, 2, "x", 0]]]
)
def test_anything_else_is_refused(tmp_path: Path, content: object) -> None:
    with pytest.raises(InputError, match="timeline"):
        read_memory_timeline(written(tmp_path, content))


def test_peaks_of_real_timelines_equal_a_plain_sum(shared_traces: Path) -> None:
    files = sorted(shared_traces.glob("kineto/torchao_memory_timeline/*.json.gz"))
    assert files
    for path in files:
        times, sizes = json.loads(gzip.decompress(path.read_bytes()))
        (report,) = memory_reports([str(path)])
        total = report.tables["timeline_at_peak"].total
        assert total is not None
        assert total[1] == max(map(sum, sizes))
        assert len(times) == len(sizes)


def test_the_real_raw_timeline_ends_where_its_changes_lead(shared_traces: Path) -> None:
    path = shared_traces / "kineto" / "hta" / "memory_analysis" / "memory_timeline.raw.gz"
    rows = json.loads(gzip.decompress(path.read_bytes()))
    found = read_memory_timeline(Source(str(path), size=path.stat().st_size))
    assert int(found.bytes[-1].sum()) == sum(row[2] for row in rows)
    assert (np.diff(found.time) >= 0).all()
