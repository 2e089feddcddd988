"""Which recordings of one folder are of one job: programs made by hand, and real ones of one device."""

from __future__ import annotations

import shutil

import pytest

from tests.builder import TraceBuilder
from traceanalyze.locales import texts
from traceanalyze.pipeline.choices import Choices
from traceanalyze.pipeline.postmortem import postmortem_reports
from traceanalyze.report.format import Formatter

HOUR = 3600 * 10**9
START = 1_750_000_000 * 10**9
TRAINING = {"gemm": 60, "gemm_backward": 30, "adam": 10}
EVALUATION = {"gemm": 55, "argmax": 5}
OTHER = {"conv": 80, "adam": 10}


def record(folder, name, kernels, *, at=START, first=0, **header):
    """Four steps of one GPU that run these kernels for so many ms each."""
    trace = TraceBuilder()
    trace.header |= {"baseTimeNanoseconds": at, "deviceProperties": [{"id": 0, "name": "Example GPU"}], **header}
    for step in range(4):
        begin = 1_000 + 200_000 * step
        trace.step(first + step, begin, 150_000)
        for kernel, length in kernels.items():
            trace.launch(begin + 10, 5, begin + 20, 1_000 * length, name=kernel)
            begin += 1_000 * length + 100
    return trace.write(folder / f"{name}.json")


def jobs(folder):
    """Of each job the recordings, and what is said of why they are together or apart."""
    formatter = Formatter(texts())
    found = {}
    for report in postmortem_reports([str(folder)], Choices()):
        told = [formatter.message(one) for one in report.note_messages if one.key.startswith("job_")]
        found[tuple(sorted(rank.path.rpartition("/")[2].split(".")[0] for rank in report.ranks))] = told
    return found


def test_a_job_may_be_recorded_again_and_again_over_days(tmp_path):
    for day in range(3):
        record(tmp_path, f"day{day}", TRAINING, at=START + 24 * day * HOUR, first=1000 * day)
    assert jobs(tmp_path) == {
        ("day0", "day1", "day2"): [
            "3 recordings are taken as one job, in the order of time: device, number of ranks and work are alike."
        ]
    }


def test_its_evaluation_is_part_of_a_training(tmp_path):
    record(tmp_path, "evaluation", EVALUATION, at=START + HOUR)
    record(tmp_path, "training", TRAINING)
    record(tmp_path, "later", TRAINING, at=START + 2 * HOUR)
    assert list(jobs(tmp_path)) == [("evaluation", "later", "training")]


def test_programs_that_run_other_kernels_are_jobs_of_their_own(tmp_path):
    record(tmp_path, "one", TRAINING)
    record(tmp_path, "other", OTHER, at=START + HOUR)
    assert jobs(tmp_path) == {
        ("one",): [],
        ("other",): ["A job of its own beside others in this input: it runs other kernels or operators."],
    }


def test_what_runs_at_the_same_time_on_the_same_rank_is_not_one_job(tmp_path):
    record(tmp_path, "first", TRAINING)
    record(tmp_path, "second", TRAINING, at=START + 10**8)
    found = jobs(tmp_path)
    assert list(found) == [("first",), ("second",)]
    assert "cannot be recorded twice at one time" in found["second",][0]


def test_clocks_that_begin_anywhere_tell_nothing_about_the_time(tmp_path):
    record(tmp_path, "first", TRAINING, at=0)
    record(tmp_path, "second", TRAINING, at=10**8)
    assert list(jobs(tmp_path)) == [("first", "second")]


def test_another_version_of_torch_is_another_job(tmp_path):
    record(tmp_path, "before", TRAINING, pytorch_version="2.6.0")
    record(tmp_path, "after", TRAINING, at=START + HOUR, pytorch_version="2.7.1")
    found = jobs(tmp_path)
    assert list(found) == [("before",), ("after",)]
    assert "versions of its libraries differ" in found["after",][0]


@pytest.mark.parametrize(
    ("place", "count"), [("tracelens/h100", 3), ("tracelens/mi300", 3), ("deepview", 1), ("switch_transformers", 2)]
)
def test_real_programs_of_one_device(shared_traces, tmp_path, place, count):
    for file in (shared_traces / "kineto" / place).glob("*.gz"):
        shutil.copy(file, tmp_path)
    assert len(jobs(tmp_path)) == count
