"""Every detector finds an injected fault at its true size and line, and stays silent on a healthy loop."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import KIB, MIB, Allocator
from tests.simulate.allocator.programs import (
    CACHE_LINE,
    LEAK_LINE,
    Loop,
    empty_cache,
    module,
    shred,
    train,
    user,
)
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.findings import memory_findings
from traceanalyze.model.table import NotMeasured
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis


def analysed(allocator: Allocator, folder: Path, *, capacity: int | None = None, **how: Any) -> AllocatorAnalysis:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(dump(allocator, **how)))
    (found,) = analyze_snapshot(read_snapshot(Source(str(path), size=path.stat().st_size)), capacity)
    assert found.reconciled
    return found


@pytest.mark.parametrize("expandable", [False, True])
@pytest.mark.parametrize("annotated", [False, True])
@pytest.mark.parametrize("vendor", ["cuda", "npu"])
def test_a_healthy_loop_has_no_finding(tmp_path: Path, expandable: bool, annotated: bool, vendor: str) -> None:
    pad = 32 if vendor == "npu" else 0
    allocator = train(Loop(annotated=annotated), Allocator(expandable=expandable, pad=pad))
    found = analysed(allocator, tmp_path, capacity=1 << 40, vendor=vendor)
    assert found.leaks == ()
    assert not isinstance(found.churn, NotMeasured)
    assert not found.churn.flagged
    assert (len(found.runs), found.ooms) == (0, ())
    assert not isinstance(found.fragmentation, NotMeasured)
    assert found.fragmentation.level == "none"
    assert not isinstance(found.spike, NotMeasured)
    assert not found.spike.flagged
    assert not isinstance(found.gradients, NotMeasured)
    assert not found.gradients.flagged
    assert found.near_limit is False
    assert found.settings == ()


@pytest.mark.parametrize("annotated", [False, True])
@pytest.mark.parametrize(("steps", "confidence"), [(3, "suspected"), (4, "suspected"), (5, "likely"), (8, "likely")])
@pytest.mark.parametrize("leak", [40 * MIB, 700 * KIB])
def test_a_leak_is_found_at_its_line_with_its_size(
    tmp_path: Path, annotated: bool, steps: int, confidence: str, leak: int
) -> None:
    found = analysed(train(Loop(steps=steps, annotated=annotated, leak=leak), Allocator()), tmp_path)
    assert not isinstance(found.leaks, NotMeasured)
    (one,) = found.leaks
    assert (one.line, one.per_step, one.confidence) == (f"train.py:{LEAK_LINE} train", leak, confidence)


def test_a_leak_is_found_when_the_ring_forgot_the_beginning(tmp_path: Path) -> None:
    allocator = train(Loop(steps=12, leak=10 * MIB), Allocator())
    found = analysed(allocator, tmp_path, keep=len(allocator.events) * 2 // 3)
    assert not isinstance(found.leaks, NotMeasured)
    assert [(one.line, one.per_step) for one in found.leaks] == [(f"train.py:{LEAK_LINE} train", 10 * MIB)]


def test_layers_that_keep_activations_are_no_leak(tmp_path: Path) -> None:
    allocator = Allocator()
    for _ in range(32):
        allocator.free(allocator.malloc(8 * MIB, module(41)))
        allocator.malloc(4 * MIB, module(40))
    found = analysed(allocator, tmp_path)
    assert found.leaks == NotMeasured("no_memory_steps")


def test_emptying_the_cache_every_step_is_churn_at_its_line(tmp_path: Path) -> None:
    allocator = train(Loop(empty_cache=True, batch=60 * MIB, activation=30 * MIB), Allocator())
    found = analysed(allocator, tmp_path)
    released = sum(event["size"] for event in allocator.events if event["action"] == "segment_free")
    assert not isinstance(found.churn, NotMeasured)
    assert found.churn.flagged
    assert (found.churn.kind, found.churn.released) == ("release_empty_cache", released)
    assert set(found.runs.column("source_line")) == {f"train.py:{CACHE_LINE} train"}
    assert len(found.runs) == 8


def test_a_retry_is_told_from_emptying_the_cache_and_its_cost_is_bounded(tmp_path: Path) -> None:
    allocator = Allocator(capacity=100 * MIB)
    for address in [allocator.malloc(30 * MIB, user(50)) for _ in range(2)]:
        allocator.free(address)
    allocator.step_us = 400
    allocator.malloc(80 * MIB, user(51))
    found = analysed(allocator, tmp_path)
    (run,) = found.runs.records()
    assert (run.release_kind, run.released_bytes, run.source_line) == ("release_retry", 60 * MIB, "train.py:51 train")
    assert run.cost_ns == 4 * 400_000  # two releases, growth, allocation


@pytest.mark.parametrize("size", [9 * MIB, 10 * MIB])
def test_fragmentation_names_request_holes_and_pinners(tmp_path: Path, size: int) -> None:
    def run(expandable: bool) -> Allocator:
        allocator = Allocator(expandable=expandable)
        shred(allocator, pieces=40, size=size, line=60)
        allocator.malloc(2 * size, user(70))
        allocator.malloc(2 * size, user(70))
        return allocator

    allocator = run(expandable=False)
    found = analysed(allocator, tmp_path, capacity=2 * allocator.reserved)
    worst = found.fragmentation
    assert not isinstance(worst, NotMeasured)
    assert (worst.request, worst.line, worst.level) == (2 * size, "train.py:70 train", "warn")
    assert worst.largest_hole < 2 * size <= worst.free
    assert worst.avoidable == allocator.reserved - run(expandable=True).reserved
    assert worst.pinners.column("source_line") in (("train.py:60 train",), ())


def test_fragmentation_that_cannot_be_weighed_is_information(tmp_path: Path) -> None:
    allocator = Allocator()
    shred(allocator, pieces=400, size=8 * MIB)
    allocator.malloc(24 * MIB, user(70))
    found = analysed(allocator, tmp_path)
    assert not isinstance(found.fragmentation, NotMeasured)
    assert found.fragmentation.level == "info"


@pytest.mark.parametrize(
    ("kind", "capacity", "outside"),
    [("capacity", 400 * MIB, 0), ("other_processes", 900 * MIB, 500 * MIB)],
)
def test_running_out_of_memory_has_its_class_and_moment(tmp_path: Path, kind: str, capacity: int, outside: int) -> None:
    allocator = Allocator(capacity=capacity, outside=outside)
    blocks = [allocator.malloc(40 * MIB, user(80)) for _ in range(9)]
    with pytest.raises(Exception, match=str(60 * MIB)):
        allocator.malloc(60 * MIB, user(81))
    for address in blocks:
        allocator.free(address)
    found = analysed(allocator, tmp_path, capacity=capacity)
    (oom,) = found.ooms
    assert (oom.kind, oom.request, oom.line) == (kind, 60 * MIB, "train.py:81 train")
    assert oom.device_free == capacity - outside - 360 * MIB
    (moment,) = [one for one in found.moments.records() if one.moment == "moment_oom"]
    assert moment.block_bytes == 360 * MIB
    (at_oom,) = (table for table in found.held if table.key == "memory_at_oom")
    held = [(one.source_line, one.block_bytes) for one in at_oom.records()]
    assert held == [("train.py:80 train", 360 * MIB)]
    (dump_moment,) = [one for one in found.moments.records() if one.moment == "moment_dump"]
    assert dump_moment.block_bytes == 0


def test_running_out_of_memory_by_fragmentation_and_by_another_stream(tmp_path: Path) -> None:
    allocator = Allocator(capacity=200 * MIB)
    shred(allocator, pieces=20, size=10 * MIB)
    for one in list(allocator.live)[::3]:
        allocator.free(one)
    with pytest.raises(Exception, match=str(150 * MIB)):
        allocator.malloc(150 * MIB, user(81))
    found = analysed(allocator, tmp_path)
    assert [one.kind for one in found.ooms] == ["capacity"]  # whole segments were given back before it failed
    other = Allocator(capacity=200 * MIB)
    other.free(other.malloc(150 * MIB, user(1), stream=5))
    tail = other.malloc(512 * KIB + MIB, user(2), stream=5)
    with pytest.raises(Exception, match=str(100 * MIB)):
        other.malloc(100 * MIB, user(3), stream=6)
    assert tail in other.live
    assert [one.kind for one in analysed(other, tmp_path).ooms] == ["isolation"]


def freed_within_ten(allocator: Allocator) -> int:
    """Bytes at the peak in blocks that are freed within ten later allocations, one event after another."""
    requested = [state.requested for state in allocator.truth]
    peak = requested.index(max(requested))
    total = 0
    for begin, event in enumerate(allocator.events[: peak + 1]):
        if event["action"] != "alloc":
            continue
        later = 0
        for index, other in enumerate(allocator.events[begin + 1 :], begin + 1):
            later += other["action"] == "alloc"
            if other["action"] == "free_completed" and other["addr"] == event["addr"]:
                total += event["size"] if index > peak and later <= 10 else 0
                break
    return total


def test_a_short_lived_block_at_the_peak_is_named(tmp_path: Path) -> None:
    allocator = train(Loop(spike=200 * MIB), Allocator())
    found = analysed(allocator, tmp_path)
    assert not isinstance(found.spike, NotMeasured)
    assert (found.spike.flagged, found.spike.line) == (True, "train.py:24 train")
    assert found.spike.bytes == freed_within_ten(allocator)
    assert found.spike.bytes >= 200 * MIB


def test_gradients_kept_through_forward_are_counted(tmp_path: Path) -> None:
    found = analysed(train(Loop(keep_gradients=True), Allocator()), tmp_path)
    assert not isinstance(found.gradients, NotMeasured)
    assert (found.gradients.flagged, found.gradients.bytes) == (True, 6 * 2 * MIB)


def test_the_peak_is_made_of_its_categories(tmp_path: Path) -> None:
    allocator = train(Loop(), Allocator())
    found = analysed(allocator, tmp_path)
    peak = next(found.moments.records())
    assert peak.moment == "moment_peak"
    assert found.at_peak.array("block_bytes").sum() == peak.block_bytes
    sums: dict[str, int] = {}
    for one in found.at_peak.records():
        sums[one.memory_category] = sums.get(one.memory_category, 0) + one.requested_bytes
    assert sums["category_parameters"] == 6 * 2 * MIB
    assert sums["category_optimizer"] == 6 * 4 * MIB
    assert peak.requested_bytes == max(state.requested for state in allocator.truth)


@pytest.mark.parametrize(
    ("settings", "remark"),
    [
        ({"expandable_segments": True, "max_split_size": 64 * MIB}, "expandable_with_max_split"),
        ({"garbage_collection_threshold": 0.8}, "gc_threshold_without_fraction"),
    ],
)
def test_settings_that_do_nothing_are_remarked(tmp_path: Path, settings: dict[str, Any], remark: str) -> None:
    found = analysed(train(Loop(), Allocator()), tmp_path, settings=settings)
    assert found.settings == (remark,)


def test_a_state_only_dump_says_so(tmp_path: Path) -> None:
    found = analysed(train(Loop(), Allocator()), tmp_path, keep=1)
    assert "state_only_recording" in found.settings
    assert found.churn == NotMeasured("no_memory_history")


def test_one_empty_cache_between_two_phases_is_no_finding(tmp_path: Path) -> None:
    allocator = Allocator()
    for size in (60 * MIB, 90 * MIB):
        for _ in range(4):
            allocator.free(allocator.malloc(size, user(50)))
        if size == 60 * MIB:
            allocator.empty_cache(empty_cache())
    found = analysed(allocator, tmp_path)
    assert not isinstance(found.churn, NotMeasured)
    assert (found.churn.kind, found.churn.released) == ("release_empty_cache", 60 * MIB)
    assert "empty_cache" not in {one.key for one in memory_findings(found)}


def test_a_peak_at_the_dump_says_that_memory_was_still_rising(tmp_path: Path) -> None:
    """And in every report stands what was reserved and never used."""
    allocator = Allocator()
    first = allocator.malloc(30 * MIB, user(50))
    allocator.malloc(3 * MIB, user(51))
    found = analysed(allocator, tmp_path)
    assert (found.rising, found.unused) == (True, 17 * MIB)  # a segment of 20 MiB has 17 left
    allocator.free(first)
    found = analysed(allocator, tmp_path)
    assert (found.rising, found.unused) == (False, 17 * MIB)


@pytest.mark.parametrize(
    ("settings", "vendor", "variable"),
    [
        ({"graph_capture_record_stream_reuse": False}, "cuda", "PYTORCH_ALLOC_CONF"),
        ({}, "cuda", "PYTORCH_CUDA_ALLOC_CONF"),
        (None, "cuda", "PYTORCH_ALLOC_CONF / PYTORCH_CUDA_ALLOC_CONF"),
        (None, "npu", "PYTORCH_NPU_ALLOC_CONF"),
    ],
)
def test_the_variable_of_the_settings_is_what_the_version_reads(
    tmp_path: Path, settings: dict[str, Any] | None, vendor: str, variable: str
) -> None:
    allocator = Allocator(pad=32 if vendor == "npu" else 0)
    allocator.malloc(MIB, user(50), stream=1 << 40 if vendor == "npu" else 0)
    content = dump(allocator, settings=settings, vendor=vendor)
    if settings is None:
        content.pop("allocator_settings", None)
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(content))
    (found,) = analyze_snapshot(read_snapshot(Source(str(path), size=path.stat().st_size)))
    assert found.variable == variable


@pytest.mark.parametrize(
    ("vendor", "base", "module", "variable"),
    [
        ("cuda", 0, "torch.cuda.memory", "PYTORCH_ALLOC_CONF / PYTORCH_CUDA_ALLOC_CONF"),
        ("npu", 0, "torch_npu.npu.memory", "PYTORCH_NPU_ALLOC_CONF"),
        ("cuda", (1 << 64) - (1 << 56), "torch.xpu.memory", "PYTORCH_ALLOC_CONF"),
    ],
)
def test_advice_names_the_functions_of_the_device(
    tmp_path: Path, vendor: str, base: int, module: str, variable: str
) -> None:
    """Addresses of the upper half are those of Intel's GPUs."""
    allocator = Allocator(pad=32 if vendor == "npu" else 0)
    allocator.malloc(MIB, user(50), stream=1 << 40 if vendor == "npu" else 0)
    content = {**dump(allocator, vendor=vendor), "device_traces": []}
    content.pop("allocator_settings", None)
    for row in (row for segment in content["segments"] for row in (segment, *segment["blocks"])):
        row["address"] += base
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(content))
    (found,) = analyze_snapshot(read_snapshot(Source(str(path), size=path.stat().st_size)))
    assert (found.module, found.variable) == (module, variable)
    (advice,) = (one.advice for one in memory_findings(found) if one.key == "history_never_recorded")
    assert str(module) in str(advice.values)
