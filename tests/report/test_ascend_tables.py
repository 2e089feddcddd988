"""What a report says of an Ascend profile that it does not say of others."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import traceanalyze
from tests.ascend_builder import EIGHT, AscendBuilder
from traceanalyze.locales import LANGUAGES, texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console import render
from traceanalyze.report.console.style import Style
from traceanalyze.report.format import Formatter
from traceanalyze.report.view import View

HEADER = ["Step", "Computing", "Communication(Not Overlapped)", "Communication", "Free", "Stage", "Preparing"]


@pytest.fixture
def report(tmp_path):
    built = AscendBuilder()
    built.step(1, 0, 1000)
    built.op("aclnnMm", 15, 30)
    built.queued("aclnnMm", 20, 30, 40)
    built.kernel("aclnnMm_MatMulCommon_MatMulV2", 100, 100, op_type="MatMulV2", launch=35)
    parts = [(0, "Notify_Wait", 300, 250, 3), (1, "Memcpy", 560, 100, 3)]
    built.collective("hcom_allGather__123_0_1", 300, 400, parts)
    built.tables["step_trace_time.csv"] = [HEADER, ["1", "100", "400", "400", "", "600", "100"]]
    return traceanalyze.analyze(built.write(tmp_path / "rank0_ascend_pt"))


def cells(table):
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


def test_collectives_tell_waiting_from_transfer(report):
    (row,) = cells(report.tables["collectives"])
    assert (row["collective"], row["group"]) == ("all_gather", "group 123")
    assert (row["wait_ns"], row["exposed_wait_ns"], row["transfer_ns"], row["waited_for"]) == (
        300_000,
        300_000,
        100_000,
        3,
    )
    shown = render(report, texts(), Style(width=100), View(Detail.VERBOSE))
    assert "300.0 µs is waiting for other ranks and 100.0 µs is transfer" in " ".join(shown.split())


def test_types_and_cores_have_a_table(report):
    (row,) = cells(report.tables["kernel_types"])
    assert (row["op_type"], row["core"], row["work"]) == ("MatMulV2", "AI_CORE", "work_matmul")
    assert (row["share"], row["cube_utilisation"], row["cube_share"]) == (1.0, 0.5, 0.5)
    assert row["vector_share"] == NotMeasured("no_core_counters")


def test_the_profiles_own_step_times_are_shown(report):
    (row,) = cells(report.tables["vendor_steps"])
    assert (row["step"], row["compute_ns"], row["stage_ns"]) == ("1", 100_000, 600_000)
    assert row["free_ns"] == row["bubble_ns"] == NotMeasured("vendor_does_not_say")


def test_other_profiles_have_none_of_it():
    from tests.builder import TraceBuilder
    from traceanalyze.report.contents import build_report

    built = TraceBuilder()
    built.step(1, 0, 100)
    built.launch(10, 5, 20, 30)
    built.device(50, 20, name="ncclDevKernel_AllReduce_Sum_f32", stream=8)
    report = build_report("run", [built.analyze()], version="0")
    assert "vendor_steps" not in report.tables
    assert report.tables["kernel_types"].rows == NotMeasured("no_kernel_types")
    assert "wait_ns" not in [column.key for column in report.tables["collectives"].columns]


CUDA_WORDS = re.compile(r"cuda|nccl|nvidia|\bGPU\b|CUPTI|nsys", re.IGNORECASE)


@pytest.mark.parametrize("language", LANGUAGES)
def test_advice_for_ascend_names_nothing_of_another_vendor(language):
    """Advice on what to change and on what to record; settings of torch that are named so are none of it."""
    words = texts(language)
    advice = {key: text for key, text in words.messages.items() if key.startswith("advice_") and ".ascend" in key}
    assert len(advice) > 50
    assert {key: text for key, text in advice.items() if CUDA_WORDS.search(text)} == {}
    general = {
        key for key, text in words.hints.items() if CUDA_WORDS.search(text) and f"{key}.ascend" not in words.hints
    }
    # What remains is of memory snapshots, which are of no platform.
    assert general <= {"no_memory_stacks"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_hints_of_an_ascend_profile_are_those_of_torch_npu(tmp_path, language):
    """No option records which stream waits for which, so nothing is said of the critical path; calls need Level1."""
    built = AscendBuilder(replace(EIGHT, named_cann=False), level="Level0")
    built.step(1, 0, 1000)
    built.op("aclnnMm", 15, 30)
    built.queued("aclnnMm", 20, 30, 40)
    built.kernel("aclnnMm_MatMulCommon_MatMulV2", 100, 100, op_type="MatMulV2", launch=35)
    built.collective("hcom_allGather__123_0_1", 300, 400)
    report = traceanalyze.analyze(built.write(tmp_path / "rank0_ascend_pt"))
    (rank,) = report.ranks
    assert "no_cann_calls.ascend" in rank.hints
    formatter = Formatter(texts(language), rank.resolution_ns)
    assert formatter.hints(("no_stream_waits.ascend",)) == {}
    hints = formatter.hints(rank.hints)
    assert any("torch_npu.profiler.ProfilerLevel.Level1" in hint for hint in hints)
    assert not [hint for hint in hints if CUDA_WORDS.search(hint)]
