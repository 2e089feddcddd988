"""What the rules say about well-known public traces."""

from __future__ import annotations

import pytest

from tests.rules.make import judged
from traceanalyze.pipeline import analyze, load
from traceanalyze.rules.finding import Severity

_RESNET = "kineto/kineto_tb/samples/resnet50_num_workers_"
MS = 1_000_000


def findings(folder, path):
    (trace,) = load(folder / path).traces
    return judged(trace).findings


@pytest.mark.parametrize(
    ("file", "waits"), [("0/worker0.1623143089861", 352_401 / 6), ("0/worker0.1623143566756", 209_870 / 6)]
)
def test_resnet_without_workers_waits_for_its_data(shared_traces, file, waits):
    """Published idle time in data loading (definitions §16), µs a step; with four workers the median step is 51 or 55
    and 25 or 29 ms shorter, and other host work takes longer."""
    first, *_ = findings(shared_traces, f"{_RESNET}{file}.pt.trace.json.gz")
    assert (first.rule, first.sentence) == ("DAT101", "single")
    assert first.cost == pytest.approx(waits * 1000, rel=0.03)
    gains = (50.8, 54.6) if waits > 50_000 else (25.4, 29.2)
    assert all(first.low < gain * MS < first.bound for gain in gains)
    assert first.saving / MS == pytest.approx(sum(gains) / 2, rel=0.1)


@pytest.mark.parametrize(("file", "blocked"), [("4/worker0.1623212756351", 16.2), ("4/worker0.1623213129365", 40.5)])
def test_with_workers_it_no_longer_does(shared_traces, file, blocked):
    found = {one.rule: one for one in findings(shared_traces, f"{_RESNET}{file}.pt.trace.json.gz")}
    assert "DAT101" not in found
    # Its batches are in pageable memory: five copies block a late host for so many ms in six steps. The first one waits
    # for 40 ms or more, for work from before the recording.
    # Part of what comes after them has other causes, too.
    assert 0.5 * blocked / 6 * MS < found["SYN105"].saving < 1.2 * blocked / 6 * MS


def test_a_small_bert_on_a_fast_device_is_bound_by_its_host(shared_traces):
    first, *_ = findings(shared_traces, "kineto/tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz")
    assert (first.rule, first.severity) == ("HST101", Severity.HIGH)


def test_blocking_calls_that_cost_no_device_time_are_no_finding(shared_traces):
    """The host is blocked for 75 ms in 29 copies, but the device loses 2.1 ms of 465 (definitions §7)."""
    found = findings(shared_traces, "kineto/hta/trace_diff/control/control.json.gz")
    assert [one.rule for one in found if one.rule.startswith("SYN") and one.severity > Severity.LOW] == []


def test_ranks_of_a_tuned_gpt_wait_for_one_host_and_communicate_no_more_than_they_must(shared_traces):
    """Compute of all eight is equal to 1 %; rank 1 launches late, and the exposed time of the others is that wait."""
    report = analyze(str(shared_traces / "kineto/modded_nanogpt/2025-12-11_NorMuonOptimsAndFixes"))
    (one,) = report.run_findings
    assert (one.rule, one.sentence, one.scope.ops) == ("RNK101", "phase", ("rank 1",))
    assert {each.label: each.value for each in one.evidence}["phase"] == "late_dispatch"
    assert [each.rule for rank in report.ranks for each in rank.findings if each.rule.startswith("COM")] == []


@pytest.mark.parametrize("name", ["h100/Falconsai", "mi300/Falconsai", "mi300/gaunernst", "h100/gaunernst"])
def test_where_the_host_is_late_no_faster_kernel_is_advised(shared_traces, name):
    (path,) = (shared_traces / "kineto/tracelens").glob(f"{name}*")
    found = findings(shared_traces, path)
    assert found[0].rule == "HST101"
    assert [one.rule for one in found if one.rule.startswith("KRN")] == []


@pytest.mark.parametrize(
    "path",
    [
        "hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz",
        "tracelens/perf_model/normalization/normalization_layer_test.json.gz",
        "tracelens/inference/sglang_decode/capture_bs_32_rank0.json.gz",
    ],
)
def test_loading_libraries_and_capturing_graphs_is_no_slow_host(shared_traces, path):
    found = findings(shared_traces, f"kineto/{path}")
    assert "HST101" not in {one.rule for one in found}
    once = [one for one in found if one.rule == "CGR106"]
    assert once
    assert all(one.once and one.saving is None for one in once)
