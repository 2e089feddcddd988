"""A side: which rank, which steps, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builder import TraceBuilder
from tests.comparison.make import longest, side_from, side_of, training
from traceanalyze.analyses.options import Options
from traceanalyze.comparison.side import median_step


def steps_of(*lengths):
    """Steps of these lengths in µs, with one kernel each."""
    b, at = TraceBuilder(), 0
    for number, length in enumerate(lengths):
        b.step(number, at, length)
        b.launch(at, 1, at + 5, 10)
        at += length
    return b


def test_complete_steps_count_and_their_median_stands_beside():
    b = steps_of(100, 120, 400, 110)
    b.step(4, 730, 50)  # without device work: the recording ended
    found = side_from(b).info
    assert found.steps == tuple(f"ProfilerStep#{n}" for n in range(4))
    assert (found.step_choice, found.count, found.left_out) == ("complete", 4, 1)
    assert (found.step_time, found.median_step) == (730_000, 115_000)


def test_the_median_step_alone():
    found = side_from(steps_of(100, 400, 120), Options(steps=median_step)).info
    assert (found.steps, found.step_choice, found.step_time) == (("ProfilerStep#2",), "median", 120_000)
    assert found.median_step == 120_000


def test_of_an_even_number_the_median_step_is_the_shorter_middle_one():
    assert side_from(steps_of(100, 400, 120, 130), Options(steps=median_step)).info.step_time == 120_000


def test_steps_that_were_asked_for():
    chosen = Options(steps=lambda steps: np.arange(len(steps)) == 1)
    found = side_from(steps_of(100, 400, 120), chosen).info
    assert (found.steps, found.step_choice, found.left_out) == (("ProfilerStep#1",), "asked", 2)


def test_without_markers_the_whole_trace_counts():
    b = TraceBuilder()
    b.launch(0, 1, 5, 10)
    b.launch(20, 1, 30, 10)
    found = side_from(b).info
    assert (found.step_choice, found.count, found.step_time) == ("whole_trace", 1, 35_000)


def test_the_rank_with_the_longest_mean_step_decides():
    # The second rank has the longest single step, the third the longest mean.
    ranks = [steps_of(100, 100, 100), steps_of(90, 150, 90), steps_of(115, 115, 115)]
    traces = [each.trace() for each in ranks]
    assert longest(traces, Options()) == 2
    found = side_of(traces).info
    assert (found.ranks, found.rank_choice, found.step_time) == (3, "decides", 345_000)


def test_of_equal_ranks_the_first_decides():
    assert longest([steps_of(100).trace(), steps_of(100).trace()], Options()) == 0
    assert side_of([steps_of(100).trace()]).info.rank_choice == "only"


def test_device_time_is_counted_on_all_devices_and_linked_time_is_told_apart():
    b = steps_of(100)
    b.launch(2, 1, 20, 30, device=1)
    b.device(60, 7)
    found = side_from(b).info
    assert (found.device_time, found.linked_time) == (47_000, 40_000)


def test_vendors():
    def vendor(b):
        return side_from(b).info.vendor

    assert vendor(training()) == "cuda"
    rocm = TraceBuilder()
    rocm.launch(0, 1, 5, 10, api="hipLaunchKernel")
    rocm.header = {"cuda_runtime_version": 12000}  # as torch on ROCm writes it
    assert vendor(rocm) == "rocm"
    silent = TraceBuilder()
    silent.device(0, 5)
    assert vendor(silent) == "unknown"
    silent.header = {"deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X"}]}
    assert vendor(silent) == "rocm"
    host = TraceBuilder()
    host.op("aten::mm", 0, 5)
    assert vendor(host) == "cpu"


@pytest.mark.parametrize(
    ("api", "header", "expected"),
    [
        ("cudaLaunchKernel", {}, "cuda"),
        ("cuLaunchKernel", {"deviceProperties": [{"id": 0, "name": "Ascend910B"}]}, "cuda"),
        ("hipLaunchKernel", {"cuda_runtime_version": 12000}, "rocm"),
        ("aclrtLaunchKernel", {}, "ascend"),
        ("launch", {"cuda_runtime_version": 12000}, "cuda"),
        ("launch", {"cupti_version": 20}, "cuda"),
        ("launch", {"cuda_runtime_version": 12000, "hip_runtime_version": 60000}, "rocm"),
        ("launch", {"roctracer_version": 4}, "rocm"),
        ("launch", {"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]}, "cuda"),
        ("launch", {"deviceProperties": [{"id": 0, "name": "H100"}]}, "cuda"),
        ("launch", {"deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X"}]}, "rocm"),
        ("launch", {"deviceProperties": [{"id": 0, "name": "Ascend910B"}]}, "ascend"),
        ("launch", {"deviceProperties": [{"id": 0, "name": "Gaudi"}]}, "unknown"),
        ("launch", {}, "unknown"),
    ],
)
def test_who_made_the_device_is_told_by_calls_before_versions_before_its_name(api, header, expected):
    b = TraceBuilder()
    b.launch(0, 1, 5, 10, api=api)
    b.header = header
    assert side_from(b).info.vendor == expected


def test_the_name_of_the_device_that_leads():
    b = training()
    devices = [{"id": 0, "name": "Tesla V100"}, {"id": 1, "name": "Tesla T4"}]
    b.header = {"deviceProperties": devices}
    assert side_from(b).info.device_name == "Tesla V100"
    b.header = {"deviceProperties": [{"id": 5, "name": "AMD Instinct MI300X"}]}
    assert side_from(b).info.device_name == "AMD Instinct MI300X"
