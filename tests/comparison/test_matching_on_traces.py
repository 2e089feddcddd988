"""Public pairs: every table sums to all device time, and what can be matched is; skipped where the traces are not."""

from __future__ import annotations

import pytest

from tests.comparison.make import compared
from tests.comparison.real_pairs import PAIRS, comparison, sides
from traceanalyze.comparison.apis import APIS
from traceanalyze.comparison.modules import ALL_OPERATORS
from traceanalyze.comparison.pairs import PerStep


def ranges(rows, value):
    return [sum(value(side) for side in (getattr(row, name) for row in rows) if side) for name in ("base", "candidate")]


def check(found):
    """The comparison, after checking that every table has all device time."""
    whole = [found.base.device_time, found.candidate.device_time]
    assert ranges(found.operators, lambda side: side["device_ns"]) == whole
    assert ranges(found.operator_pairs, lambda side: side["device_ns"]) == whole
    assert ranges(found.operator_pairs, lambda side: sum(ns for _, ns in side["kernels"])) == whole
    assert ranges(found.kernels, lambda side: side["total_ns"]) == whole
    assert ranges(found.kernel_types, lambda side: side["total_ns"]) == whole
    if isinstance(found.modules, list):
        inside = [row for row in found.modules if row.shared["op"] != ALL_OPERATORS]
        assert ranges(inside, lambda side: side["self_ns"]) == whole
        modules = [row for row in found.modules if row.shared["op"] == ALL_OPERATORS]
        assert ranges(modules, lambda side: side["self_ns"]) == whole
    assert all(side["self_ns"] >= 0 for row in found.apis for side in (row.base, row.candidate) if side)
    return found


def matched(found, section):
    return {row.side: 1 - row.share for row in found.unmatched if row.section == section}


@pytest.mark.parametrize("name", PAIRS)
def test_every_table_has_all_device_time(name):
    check(comparison(name))


@pytest.mark.parametrize("name", PAIRS)
def test_a_side_against_itself_is_matched_completely_and_without_difference(name):
    base, _ = sides(name)
    found = check(compared(base, base, max_kernel_num=2))
    assert all(row.count == row.time == 0 for row in found.unmatched)
    assert all(pair.base == pair.candidate for pair in found.operator_pairs)
    rows = [*found.operators, *found.kernels, *found.kernel_types, *found.apis]
    rows += [*found.modules] if isinstance(found.modules, list) else []
    assert all(row.base == row.candidate for row in rows)


@pytest.mark.parametrize("name", ["bert", "qwen", "hta"])
def test_swapping_the_sides_swaps_the_rows(name):
    found, swapped = check(comparison(name)), check(comparison(name, swapped=True))
    for table in ("operators", "operator_pairs", "kernels", "kernel_types", "apis"):
        once = sorted(str((row.base, row.candidate)) for row in getattr(found, table))
        again = sorted(str((row.candidate, row.base)) for row in getattr(swapped, table))
        assert once == again, table


@pytest.mark.parametrize("name", ["bert", "qwen", "resnet50"])
def test_equal_models_are_matched_to_operators(name):
    found = check(comparison(name))
    assert all(share >= 0.95 for share in matched(found, "operators").values())
    products = [row for row in found.operators if row.shared["op"] == "aten::mm"]
    assert all(row.base["calls"] == row.candidate["calls"] for row in products)


def test_kernels_of_two_vendors_meet_by_family():
    found = check(comparison("bert"))
    families = {row.shared["kernel_type"]: row for row in found.kernel_types}
    assert families["work_matmul"].base["calls"] > 0
    assert families["work_matmul"].candidate["calls"] > 0
    kernels = [row for row in found.kernels if row.shared["work"] not in {"work_copy", "work_fill"}]
    assert sum(row.base["calls"] for row in kernels if row.base) == 60


def test_convolutions_have_a_backward_pass():
    rows = {row.shared["op"]: row for row in check(comparison("resnet50")).operators}
    assert rows["aten::convolution (backward)"].base["device_ns"] == 273_428_000
    assert rows["aten::convolution"].base["device_ns"] == 126_619_000


def test_collectives_of_one_library_are_told_apart():
    found = check(comparison("hta"))
    base = {row.shared["collective"]: row.base["calls"] for row in found.collectives if row.base}
    assert base == {"all_to_all": 42, "all_reduce": 18}
    assert ranges(found.collectives, lambda side: side["exposed_ns"]) == [87_921_000, 73_298_000]


def test_both_data_loaders_are_one_row_and_the_largest_change_of_the_host():
    found = check(comparison("resnet50"))
    row = next(row for row in found.apis if row.shared["api"] == "enumerate(DataLoader)")
    assert round(row.base["total_ns"] / 10**6, 2) == 415.79
    assert row.candidate is not None
    table = APIS.fill(found.apis, PerStep.of(found.base, found.candidate))
    assert table.column("api")[0] == "enumerate(DataLoader)"
