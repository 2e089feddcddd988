"""Of which rank a snapshot is: by record's own list, names and numbers; never by a guess."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from traceanalyze.readers.memory_sources import device_memory, memory_ranks, trace_ranks
from traceanalyze.readers.memory_timeline import statistics_beside
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("out/rank3_memory_snapshot.pickle", (3, "file name")),
        ("out/snapshot_rank_12.pickle", (12, "file name")),
        ("out/mem_r7.pickle.gz", (7, "file name")),
        ("out/snapshot_rank0_oom.pickle", (0, "file name")),
        ("out/rank3/snapshot.pickle", (3, "folder")),
        ("out/rank3/rank5.pickle", (5, "file name")),
        ("out/snapshot.pickle", (None, "")),
        ("out/snapshot_3.pickle", (None, "")),
        ("out/error5.pickle", (None, "")),
    ],
)
def test_names_tell_the_rank(path: str, told: tuple[int | None, str]) -> None:
    assert memory_ranks([path, "out/other.pickle"], [0, 1, 2, 3])[0] == told


def test_numbers_count_when_they_are_ranks_of_the_traces() -> None:
    paths = ["a/snapshot_0.pickle", "a/snapshot_1.pickle"]
    assert memory_ranks(paths, [1, 0, 2]) == ((0, "file name"), (1, "file name"))
    assert memory_ranks(paths, [1, 2]) == ((None, ""), (None, ""))
    assert memory_ranks(["a/x_1.pickle", "b/x_1.pickle"], [0, 1]) == ((None, ""), (None, ""))
    assert memory_ranks(paths, []) == ((None, ""), (None, ""))


def test_one_trace_and_one_snapshot_belong_together() -> None:
    assert memory_ranks(["a/snapshot.pickle"], [5]) == ((5, "only one"),)
    assert memory_ranks(["a/snapshot.pickle"], [None]) == ((None, "only one"),)
    assert memory_ranks(["a/snapshot.pickle"], [0, 1]) == ((None, ""),)
    assert memory_ranks(["a/x.pickle", "a/y.pickle"], [0]) == ((None, ""), (None, ""))


def test_the_list_of_record_counts_first(tmp_path: Path) -> None:
    for rank, name in ((0, "run.json"), (4, "run_rank4.json")):
        content = {"schema": "traceanalyze.run/1", "rank": rank, "files": [f"rank9_{rank}.pickle"]}
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "run_rank8.json").write_text("not JSON")
    paths = [str(tmp_path / "rank9_0.pickle"), str(tmp_path / "rank9_4.pickle"), str(tmp_path / "rank9_8.pickle")]
    assert memory_ranks(paths, [0, 4]) == ((0, "run.json"), (4, "run.json"), (9, "file name"))


def test_another_run_json_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"schema": "else", "rank": 4, "files": ["snapshot.pickle"]}))
    assert memory_ranks([str(tmp_path / "snapshot.pickle")], []) == ((None, ""),)


def test_ranks_of_traces_before_they_are_read(tmp_path: Path) -> None:
    def ranks(*names: str) -> tuple[int | None, ...]:
        return trace_ranks([Source(str(tmp_path / name)) for name in names])

    assert ranks("rank1.json", "trace.json") == (1, None)
    assert ranks("trace_0.json", "trace_1.json") == (0, 1)
    assert ranks() == ()


def test_a_trace_that_states_its_rank_is_believed(tmp_path: Path) -> None:
    """Names as torch's handler gives them tell nothing, the header does."""
    sources = []
    for rank in (1, 0):
        path = tmp_path / f"host_{40 - rank}.1767225600000000000.pt.trace.json.gz"
        header = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "pg_config": [{"rank": 7}]}}
        path.write_bytes(gzip.compress(json.dumps({**header, "traceEvents": []}).encode()))
        sources.append(Source(str(path)))
    assert trace_ranks(sources) == (1, 0)
    assert memory_ranks(["a/snapshot_0.pickle", "a/snapshot_1.pickle"], trace_ranks(sources)) == (
        (0, "file name"),
        (1, "file name"),
    )


def test_an_ascend_profile_states_its_rank_by_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "host_1_2_ascend_pt"
    folder.mkdir()
    (folder / "profiler_info_5.json").write_text("{}")
    assert trace_ranks([Source(str(folder / "x"), folder=str(folder))]) == (5,)


def _statistics(folder: Path, **retries: int) -> None:
    for name, count in retries.items():
        (folder / f"memory_stats{name}.json").write_text(json.dumps({"num_alloc_retries": count}))


def test_of_several_statistics_those_of_the_rank(tmp_path: Path) -> None:
    _statistics(tmp_path, _rank0=1, _rank1=2)
    found, remark = statistics_beside(str(tmp_path / "snapshot_rank1.pickle"), 1)
    assert found is not None
    assert (found.retries, remark) == (2, None)


def test_statistics_of_another_rank_are_not_used_and_that_is_said(tmp_path: Path) -> None:
    _statistics(tmp_path, _rank0=1)
    found, remark = statistics_beside(str(tmp_path / "snapshot_rank1.pickle"), 1)
    assert found is None
    assert remark is not None
    assert "memory_stats_rank0.json" in remark


def test_several_statistics_that_nobody_can_tell_apart_are_named(tmp_path: Path) -> None:
    _statistics(tmp_path, _a=1, _b=2)
    for rank in (None, 1):
        found, remark = statistics_beside(str(tmp_path / "snapshot.pickle"), rank)
        assert found is None
        assert remark is not None
        assert "memory_stats_a.json, memory_stats_b.json" in remark


def test_without_statistics_nothing_is_said(tmp_path: Path) -> None:
    assert statistics_beside(str(tmp_path / "snapshot.pickle"), 1) == (None, None)


def test_what_cannot_be_opened_states_nothing(tmp_path: Path) -> None:
    """An archive is none; a file is not there; a gzip stream breaks off."""
    (tmp_path / "run.zip").write_text("no archive")
    (tmp_path / "short.gz").write_bytes(gzip.compress(b'{"distributedInfo": {"rank": 3}}')[:12])
    broken = [Source(str(tmp_path / "run.zip"), "gone.json"), *(Source(str(tmp_path / n)) for n in ("no", "short.gz"))]
    assert trace_ranks(broken) == (None, None, None)
    assert device_memory(broken) is None


@pytest.mark.parametrize(
    ("devices", "found"),
    [
        ([[80 << 30], [80 << 30, 80 << 30]], 80 << 30),
        ([[80 << 30], [40 << 30]], None),
        ([[80 << 30], []], 80 << 30),
        ([[]], None),
    ],
)
def test_the_memory_of_devices_that_are_alike(tmp_path: Path, devices: list[list[int]], found: int | None) -> None:
    sources = []
    for rank, sizes in enumerate(devices):
        path = tmp_path / f"{rank}.json"
        listed = [{"id": at, "totalGlobalMem": size} for at, size in enumerate(sizes)]
        path.write_text(json.dumps({"deviceProperties": listed, "traceEvents": []}))
        sources.append(Source(str(path)))
    assert device_memory(sources) == found
