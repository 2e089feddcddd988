"""The sample of a GPU and an NPU: every injected difference is found at its size, in order, and nothing else."""

from __future__ import annotations

import re
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.comparison.make import compared, side_of
from traceanalyze.pipeline import load

SAMPLE = Path(__file__).resolve().parents[2] / "sample_traces" / "gpu_npu_pair"
FACTS = tomllib.loads((SAMPLE / "case.toml").read_text(encoding="utf-8"))
_PARTS = {"compute": "compute", "communication": "comm_exposed", "memory_ops": "mem_exposed"}


@pytest.fixture(scope="module")
def comparison() -> Any:
    base, candidate = (side_of(load(SAMPLE / name).traces) for name in ("gpu", "npu"))
    return compared(base, candidate)


def truth(part: str) -> int:
    """What all differences together add to a part, over all steps."""
    return sum(one["parts"].get(part, 0) for one in FACTS["difference"])


@pytest.mark.parametrize("table", ["module_compare_statistic", "module_compare"])
def test_kernels_of_modules_are_told_per_step_as_their_times(comparison: Any, table: str) -> None:
    for row in comparison.tables[table].records():
        for kernels, own in ((row.base_kernels, row.base_self_ns), (row.candidate_kernels, row.candidate_self_ns)):
            times = re.findall(r"\[([\d.]+) µs", kernels or "")
            assert sum(map(float, times)) * 1000 == pytest.approx(own or 0, abs=len(times) + 1)


def test_every_part_changes_by_what_was_put_in(comparison: Any) -> None:
    assert comparison.base.count == comparison.candidate.count == 3
    seen = {part.key: part.candidate - part.base for part in comparison.parts}
    for key, name in _PARTS.items():
        assert seen[key] == truth(name)
    for key in ("data_loading", "sync", "host_op", "untraced"):
        assert seen[key] == truth(key)
    idle = {name for one in FACTS["difference"] for name in one["parts"]} - set(_PARTS.values())
    steps = [sum(one["steps"]) for one in FACTS["trace"]]
    assert sum(truth(name) for name in idle | set(_PARTS.values())) == steps[1] - steps[0]


def test_causes_are_ranked_by_the_size_of_what_was_put_in(comparison: Any) -> None:
    change = comparison.candidate.step_time - comparison.base.step_time
    causes = [(one.part, one.name, one.candidate - one.base) for one in comparison.contributions]
    loud = [(part, name) for part, name, diff in causes if abs(diff) > Fraction(change, 100)]
    assert loud == [
        ("data_loading", "DataLoader"),
        ("communication", "all_reduce"),
        ("compute", "aten::mm (backward)"),
        ("untraced", "aten::local_scalar_dense"),
        ("compute", "aten::addmm"),
        ("compute", "aten::mm (backward) › TransData"),
        ("compute", "aten::addmm › TransData"),
    ]
    by_part = {(part, name): diff for part, name, diff in causes}
    assert by_part["data_loading", "DataLoader"] == truth("data_loading")
    assert by_part["communication", "all_reduce"] == truth("comm_exposed")
    # The vendor itself moves a little (fills become kernels), so operators are compared with what names them.
    sizes = {one["name"]: one["parts"].get("compute", 0) for one in FACTS["difference"]}
    slower = {name: diff for (part, name), diff in by_part.items() if part == "compute" and "mm" in name}
    changes = sum(diff for name, diff in slower.items() if name.endswith("TransData"))
    assert (changes, sum(slower.values()) - changes) == (sizes["layout_changes"], sizes["slower_matmul"])
    work = [one for one in comparison.contributions if one.part == "compute"]
    calls = {one.name: (one.base_count, one.candidate_count) for one in work}
    # A product is one call, however many kernels change its operands.
    assert calls["aten::addmm"] == (15, 15)


def test_all_of_the_difference_is_in_the_causes(comparison: Any) -> None:
    change = comparison.candidate.step_time - comparison.base.step_time
    assert sum(one.candidate - one.base for one in comparison.contributions) == change


def test_numbered_kernels_of_the_npu_are_one_row_by_their_type(comparison: Any) -> None:
    assert isinstance(comparison.kernels, list)
    names = [str(row.shared["kernel"]) for row in comparison.kernels if row.candidate]
    assert len(names) == len(set(names))
    assert not [name for name in names if name[-1].isdecimal() and name.rstrip("0123456789").endswith("_")]
    (layout,) = [row for row in comparison.kernels if row.shared["kernel"] == "TransData"]
    assert layout.base is None
    assert layout.candidate is not None
    assert layout.candidate["calls"] == 15 * comparison.candidate.count
    for side in ("base", "candidate"):
        rows = [getattr(row, side) for row in comparison.kernels]
        assert sum(row["total_ns"] for row in rows if row) == getattr(comparison, side).device_time
