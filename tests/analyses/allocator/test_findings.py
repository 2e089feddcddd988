"""What is worth telling about a device's memory: severity, amount and order at every threshold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from traceanalyze.analyses.memory.device_calls import Churn, OutOfMemory
from traceanalyze.analyses.memory.findings import findings_table, memory_findings
from traceanalyze.analyses.memory.patterns import GrowingSizes, HeldGradients, OversizedBlocks, SmallBlocks, Spike
from traceanalyze.analyses.memory.steps import Leak
from traceanalyze.model.table import Column, Kind, NotMeasured, Table

if TYPE_CHECKING:
    from traceanalyze.analyses.memory.findings import MemoryFinding

MS = 1_000_000
NONE = NotMeasured("no_memory_history")


def table(*rows: dict[str, Any]) -> Table:
    keys = dict.fromkeys(key for row in rows for key in row)
    columns = tuple(Column(key, Kind.TEXT, key) for key in keys)
    return Table("example", columns).fill_records(rows)


def device(**known: Any) -> Any:
    """An allocator of which only this is known; nothing of it is a finding but what a test says."""
    usual: dict[str, Any] = {
        "ooms": (),
        "leaks": NONE,
        "capacity": None,
        "most_reserved": 800,
        "moments": table({"requested_bytes": 1000}),
        "retries": table(),
        "time": None,
        "steps": (),
        **dict.fromkeys(("churn", "fragmentation", "spike", "gradients", "growing", "oversized", "small"), NONE),
        "runs": table(),
        "activations": (0, 0.0, ""),
        "near_limit": None,
        "rounding_waste": 0.0,
        "settings": (),
        "variable": "PYTORCH_ALLOC_CONF",
        "levers": table(),
    }
    return SimpleNamespace(**(usual | known))


def told(**known: Any) -> list[tuple[str, str, int | None, float | None, int | None, str]]:
    found = memory_findings(device(**known))
    return [(one.severity, one.key, one.amount, one.share, one.count, one.line) for one in found]


def only(**known: Any) -> MemoryFinding:
    (found,) = memory_findings(device(**known))
    return found


def values(found: MemoryFinding) -> dict[str, Any]:
    return {name: value for name, _, value in found.advice.values}


def test_nothing_known_is_nothing_told() -> None:
    assert told() == []


def test_a_failed_request_is_critical() -> None:
    one = OutOfMemory(7, 500, 300, 200, 100, "capacity", "a.py:1 f")
    assert told(ooms=(one,)) == [("critical", "oom_capacity", 500, None, 1, "a.py:1 f")]
    assert values(only(ooms=(one,))) == {
        "request": 500,
        "variable": "PYTORCH_ALLOC_CONF",
        "free": 300,
        "hole": 200,
        "device": 100,
    }


@pytest.mark.parametrize(
    ("capacity", "confidence", "severity"),
    [
        (None, "likely", "warn"),
        (800 + 10_000 - 1, "likely", "critical"),
        (800 + 10_000, "likely", "warn"),
        (801, "suspected", "info"),
    ],
)
def test_a_leak_that_fills_the_device_within_a_thousand_steps_is_critical(
    capacity: int | None, confidence: str, severity: str
) -> None:
    leak = Leak("a.py:1 f", 10, 6, confidence)
    assert told(leaks=(leak,), capacity=capacity) == [(severity, "leak", 10, 0.01, 6, "a.py:1 f")]


def retries(*costs: int | None) -> Table:
    return table(
        *({"cost_ns": cost, "released_bytes": 50, "source_line": f"a.py:{at}"} for at, cost in enumerate(costs))
    )


@pytest.mark.parametrize(
    ("steps", "costs", "severity"),
    [
        (1, (None,), "warn"),
        (100, (None,), "warn"),
        (101, (None,), "info"),
        (200, (None, None), "warn"),
        (201, (None, None), "info"),
        (0, (None,), "info"),
        (1000, (4 * MS, 6 * MS), "warn"),
        (1000, (4 * MS, 6 * MS - 1), "info"),
        (1000, (None, 10 * MS), "warn"),
    ],
)
def test_retries_matter_that_come_in_a_hundredth_of_the_steps_or_cost_a_hundredth_of_the_time(
    steps: int, costs: tuple[int | None, ...], severity: str
) -> None:
    time = np.array([5 * MS, 300 * MS, 1005 * MS], np.int64)
    known = {"retries": retries(*costs), "steps": range(steps), "time": time}
    assert told(**known) == [(severity, "retry", 50 * len(costs), None, len(costs), "a.py:0")]
    cost = sum(each or 0 for each in costs)
    assert values(only(**known)).get("cost", 0) == cost


@pytest.mark.parametrize(
    ("time", "cost", "severity"), [([0, 100], 1, "warn"), ([0, 101], 1, "info"), ([], 1, "info"), (None, 1, "info")]
)
def test_retries_cost_a_hundredth_of_the_time_only_where_that_is_known(
    time: list[int] | None, cost: int, severity: str
) -> None:
    known = {"steps": range(1000), "time": None if time is None else np.array(time, np.int64)}
    assert [row[0] for row in told(retries=retries(cost), **known)] == [severity]


def test_a_leak_is_a_share_of_the_peak_which_is_one_byte_at_least() -> None:
    moments = table({"requested_bytes": 0})
    assert [row[3] for row in told(leaks=(Leak("a.py:1 f", 10, 6, "likely"),), moments=moments)] == [10.0]


def test_retries_before_a_failure_are_critical() -> None:
    one = OutOfMemory(7, 500, 300, 200, None, "unknown", "")
    assert [row[:2] for row in told(retries=retries(None), ooms=(one,))] == [
        ("critical", "oom_unknown"),
        ("critical", "retry"),
    ]


@pytest.mark.parametrize(
    ("kind", "flagged", "expected"),
    [
        ("release_gc", True, ("warn", "churn", 60, 1.5, 4, "a.py:2")),
        ("release_gc", False, None),
        ("release_empty_cache", True, ("warn", "churn", 60, 1.5, 4, "a.py:1")),
        ("release_empty_cache", False, ("info", "empty_cache", 90, 1.5, 2, "a.py:1")),
    ],
)
def test_memory_that_goes_back_and_forth(kind: str, flagged: bool, expected: tuple[Any, ...] | None) -> None:
    runs = table(
        {"release_kind": "release_empty_cache", "source_line": "a.py:1"},
        {"release_kind": "release_gc", "source_line": "a.py:2"},
        {"release_kind": "release_empty_cache", "source_line": "a.py:3"},
    )
    churn = Churn(released=90, recycled=60, cycles=4, ratio=1.5, kind=kind, flagged=flagged, avoided=7)
    assert told(churn=churn, runs=runs) == ([expected] if expected else [])
    assert told(churn=churn._replace(released=0), runs=runs) == []
    if kind == "release_empty_cache":
        # Once between two phases, or without any use of what the replay tells.
        assert told(churn=churn._replace(cycles=1), runs=runs) == told(churn=churn._replace(avoided=0), runs=runs) == []


@pytest.mark.parametrize(
    ("avoided", "said"),
    [
        (7, "advice_churn_empty_cache"),
        (None, "advice_churn_empty_cache_needed"),
        (NONE, "advice_churn_empty_cache_unknown"),
    ],
)
def test_whether_empty_cache_can_go_is_what_the_replay_says(avoided: Any, said: str) -> None:
    churn = Churn(90, 60, 4, 1.5, "release_empty_cache", flagged=True, avoided=avoided)
    assert only(churn=churn).advice.key == said


@pytest.mark.parametrize(("saved", "said"), [(0, ""), (NONE, ""), (5, "_expandable")])
def test_other_segments_are_advised_for_growing_sizes_where_they_save_something(saved: Any, said: str) -> None:
    growing = GrowingSizes("a.py:1", 4, 10, 40, 70, 0, flagged=True, saved=saved)
    assert only(growing=growing).advice.key == f"advice_growing_sizes{said}"


def test_checkpointing_is_advised_with_its_bytes() -> None:
    levers = table({"lever": "lever_checkpoint", "source_line": "m.py:9 forward", "saved_bytes": 400})
    found = only(activations=(500, 0.5, "m.py:1"), levers=levers)
    assert found.advice.key == "advice_activations_module"
    assert values(found) == {"share": 0.5, "line": "m.py:9 forward", "saved": 400}


def test_pieces_have_their_level() -> None:
    pieces = SimpleNamespace(
        level="warn",
        request=30,
        free=40,
        largest_hole=20,
        avoidable=10,
        pinner="b.py",
        share=0.3,
        growths=2,
        line="a.py",
    )
    assert told(fragmentation=pieces) == [("warn", "fragmentation", 10, 0.3, 2, "a.py")]
    assert values(only(fragmentation=pieces))["pinner"] == "b.py"
    pieces.level = "none"
    assert told(fragmentation=pieces) == []


def test_habits_are_told_where_they_are_flagged() -> None:
    for flagged in (True, False):
        spike, gradients = Spike(0.3, 300, "a.py:1", flagged), HeldGradients(50, 0.05, "step", flagged)
        expected = [
            ("warn", "spike", 300, 0.3, None, "a.py:1"),
            ("info", "held_gradients", 50, 0.05, None, ""),
        ]
        assert told(spike=spike, gradients=gradients) == (expected if flagged else [])


@pytest.mark.parametrize(("share", "count"), [(0.5, 1), (0.499, 0)])
def test_activations_are_told_from_half_of_the_peak_on(share: float, count: int) -> None:
    assert told(activations=(500, share, "m.py:1")) == [("info", "activation_peak", 500, share, None, "m.py:1")] * count


def test_patterns_of_requests() -> None:
    growing = GrowingSizes("a.py:1", 4, 10, 40, 70, 0, flagged=True)
    assert told(growing=growing) == [("info", "growing_sizes", 70, None, 4, "a.py:1")]
    assert told(growing=growing._replace(retries=1))[0][0] == "warn"
    assert told(growing=growing._replace(flagged=False)) == []
    assert values(only(growing=growing)) == {"steps": 4, "first": 10, "last": 40, "amount": 70, "line": "a.py:1"}
    oversized = OversizedBlocks("b.py:1", 2, 60, 100, 130)
    assert told(oversized=oversized) == [("info", "oversized_blocks", 130, None, 2, "b.py:1")]
    assert told(oversized=oversized._replace(growths=1)) == told(oversized=oversized._replace(saved=0)) == []
    assert told(oversized=oversized._replace(saved=NotMeasured("replay_off"))) == []
    small = SmallBlocks(1200, 0.4, 6, 90, "c.py:1", flagged=True)
    assert told(small=small) == [("info", "small_blocks", 90, 0.4, 1200, "c.py:1")]
    assert told(small=SmallBlocks(1200, 0.4, 6, 90, "c.py:1", flagged=False)) == []


def test_a_device_that_is_nearly_full() -> None:
    near = {"near_limit": True, "capacity": 1000, "most_reserved": 950}
    assert told(**near) == [("info", "near_limit", 950, 0.95, None, "")]
    found = told(**near, retries=retries(None))
    assert [(row[0], row[1]) for row in found] == [("warn", "near_limit"), ("info", "retry")]
    assert told(near_limit=False, capacity=1000) == []


@pytest.mark.parametrize(("waste", "count"), [(0.05, 1), (0.0499, 0)])
def test_rounding_is_told_from_a_twentieth_on(waste: float, count: int) -> None:
    assert told(rounding_waste=waste) == [("info", "rounding", None, waste, None, "")] * count


def test_order_is_severity_then_failures_and_leaks_then_amount_then_name() -> None:
    found = told(
        ooms=(OutOfMemory(7, 5, 0, 0, 0, "capacity", ""),),
        leaks=(Leak("a.py:1 f", 10, 6, "likely"), Leak("a.py:2 f", 3, 2, "suspected")),
        capacity=801,
        retries=retries(None),
        spike=Spike(0.3, 300, "", flagged=True),
        gradients=HeldGradients(50, 0.05, "", flagged=True),
        activations=(600, 0.6, ""),
        settings=("state_only_recording", "no_memory_stacks"),
    )
    assert [row[1] for row in found] == [
        *("oom_capacity", "leak", "retry"),
        *("spike", "leak"),
        *("activation_peak", "held_gradients", "no_memory_stacks", "state_only_recording"),
    ]


def test_a_failed_request_comes_before_a_leak_of_more_and_a_leak_before_retries_of_more() -> None:
    found = told(
        ooms=(OutOfMemory(7, 5, 0, 0, 0, "capacity", ""),), leaks=(Leak("a.py:1 f", 10, 6, "likely"),), capacity=801
    )
    assert [row[:3] for row in found] == [("critical", "oom_capacity", 5), ("critical", "leak", 10)]
    found = told(leaks=(Leak("a.py:1 f", 10, 6, "likely"),), spike=Spike(0.3, 300, "", flagged=True))
    assert [row[:3] for row in found] == [("warn", "leak", 10), ("warn", "spike", 300)]


def test_of_equal_findings_one_byte_comes_before_none() -> None:
    found = told(gradients=HeldGradients(1, 0.05, "", flagged=True), settings=("expandable_with_max_split",))
    assert [row[:3] for row in found] == [("info", "held_gradients", 1), ("info", "expandable_with_max_split", None)]


def test_the_table_shows_all_of_them_and_each_advice_once() -> None:
    found = memory_findings(device(settings=("no_memory_stacks",), rounding_waste=0.1))
    shown = findings_table((*found, found[0]))
    assert shown.rows == (
        ("info", "no_memory_stacks", None, None, None, None),
        ("info", "rounding", None, 0.1, None, None),
        ("info", "no_memory_stacks", None, None, None, None),
    )
    assert len(shown.notes) == 2
