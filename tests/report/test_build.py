from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.builder import TraceBuilder
from tests.report.make import (
    MS,
    analysis,
    empty,
    host_only,
    ints,
    partition_of,
    steps_of,
    whole_trace,
    with_tables,
)
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.steps.split import overlap_notes, totals
from traceanalyze.analyses.steps.window import step_labels, window_of
from traceanalyze.errors import UsageError
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Cause
from traceanalyze.pipeline.selection import parse_numbers, step_chooser
from traceanalyze.report.contents import Scope, build_report
from traceanalyze.report.format import Formatter


def report_of(*analyses, **options):
    return build_report("run", analyses, version="0", **options)


def sentences(report):
    formatter = Formatter(texts(), 1)
    return [formatter.message(message) for message in report.verdict_messages]


def test_the_split_sums_to_the_step_exactly():
    table = report_of(analysis(comm=0.2, hidden=0.1)).tables["split"]
    assert sum(table.column("sum_ns")) == table.total[-1] == 533 * MS
    assert sum(table.column("share")) == pytest.approx(1)


def test_idle_causes_sum_to_idle_exactly():
    one = analysis()
    table = report_of(one).tables["idle_causes"]
    assert sum(table.column("sum_ns")) == table.total[-1] == int(one.partitions[0].idle.sum())


def test_dispatch_is_launching_and_running_operators():
    table = report_of(analysis()).tables
    causes = dict(zip(table["idle_causes"].column("cause"), table["idle_causes"].column("sum_ns"), strict=True))
    split = dict(zip(table["split"].column("part"), table["split"].column("sum_ns"), strict=True))
    assert split["dispatch"] == causes["dispatch_launch"] + causes["host_op"]
    assert split["idle"] == causes["untraced"]


def test_steps_keep_their_own_numbers_and_incomplete_ones_are_outside_the_means():
    report = report_of(analysis(times=(100.0, 100.0, 40.0), complete=[True, True, False]))
    steps = report.tables["steps"]
    assert steps.column("step") == ("5", "6", "7")
    assert steps.column("time_ns") == (100 * MS, 100 * MS, 40 * MS)
    assert steps.total[1] == 100 * MS


def test_all_steps_count_where_none_is_complete():
    window = window_of(steps_of(10.0, 20.0, complete=[False, False]))
    assert (window.count, window.mean(window.total)) == (2, 15 * MS)


def test_overlap_is_not_measured_without_communication():
    totals = report_of(analysis(comm=0.0)).tables["totals"]
    assert totals.column("overlap_ratio")[1] == NotMeasured("no_communication")
    with_comm = report_of(analysis(comm=0.1, hidden=0.3)).tables["totals"]
    assert with_comm.column("overlap_ratio")[1] == pytest.approx(0.75)


def test_hidden_work_is_said_in_words_only_where_there_is_some():
    steps = steps_of(100.0)
    window = window_of(steps)
    assert overlap_notes(totals(partition_of(steps, compute=0.5, comm=0.1), window)) == ()
    (note,) = overlap_notes(totals(partition_of(steps, compute=0.5, comm=0.1, hidden=0.1), window))
    assert note.key == "communication_overlap"


def test_the_verdict_names_the_data_loader():
    assert sentences(report_of(analysis())) == [
        "Step 177.7 ms: the device is idle 44 % of it, mostly waiting for the data loader (33 % of the step)."
    ]


def test_the_verdict_tells_allocation_from_other_dispatch():
    found = sentences(report_of(analysis(causes={"dispatch_alloc": 0.7, "dispatch_launch": 0.2})))
    assert "mostly waiting for the host to allocate device memory" in found[0]


@pytest.mark.parametrize("one", [analysis(), host_only(1.0)])
def test_the_verdict_says_when_the_file_is_cut_short(one):
    cut = one._replace(trace=replace(one.trace, read=one.trace.read._replace(truncated=True)))
    # Nothing tells whether a device was recorded in the part that is missing.
    before = sentences(report_of(one))[0].replace(
        "No device was recorded", "What is left of the recording has no device event: compute is not measured"
    )
    assert sentences(report_of(cut)) == [before, "The file is cut short: what came later in it is missing here."]


def test_the_verdict_of_a_busy_device_names_what_it_does():
    busy = analysis(times=(116.0,), compute=0.79, comm=0.1, mem=0.07)
    (text,) = sentences(report_of(busy))
    assert text.startswith("Step 116.0 ms: the device is busy 96 % of it; compute is 79 %, ")
    assert text.endswith("exposed communication 10 %, exposed memory ops 7.0 %.")


def test_exposed_communication_comes_before_less_idle_time():
    text = sentences(report_of(analysis(compute=0.4, comm=0.4)))[0]
    assert "busy 81 %" in text
    assert "exposed communication 40 %" in text


def test_no_cause_is_most_of_the_idle_time():
    text = sentences(report_of(analysis(causes={"data_loading": 0.4, "sync": 0.3})))[0]
    assert "above all waiting for the data loader" in text


def test_idle_causes_that_were_not_measured_are_not_guessed():
    one = analysis()
    missing = NotMeasured("no_api")
    unknown = IdleCauses(one.idle.by_step, dict.fromkeys(Cause, missing))
    report = report_of(with_tables(one._replace(idle=unknown), [one.tables["sync_points"]]))
    assert sentences(report) == ["Step 177.7 ms: the device is idle 44 % of it."]
    split = report.tables["split"]
    measured = [row.part for row in split.records() if row.sum_ns != missing]
    assert measured == ["compute", "communication", "memory_ops", "idle"]
    assert split.column("sum_ns")[-1] == one.partitions[0].idle.sum()


def test_a_slow_step_gets_a_second_sentence():
    text = sentences(report_of(analysis(times=(182.0, 126.0, 127.0, 126.5))))[1]
    assert text == "Step 5 took 182.0 ms, 1.44 times the median (126.8 ms)."
    several = sentences(report_of(analysis(times=(200.0, 190.0, 100.0, 100.0, 100.0))))[1]
    assert several.startswith("2 of 5 steps took more than 1.3 times the median (100.0 ms); the slowest, step 5,")


@pytest.mark.parametrize(
    ("one", "start"),
    [
        (whole_trace(), "From first to last device event 996.5 ms: the device is busy 96 % of it; compute is 95 %"),
        (host_only(10.0, 20.0), "No device was recorded. Of 15.00 ms on the host the largest part is host operators"),
        (empty(), "There is nothing to analyse"),
    ],
)
def test_every_mode_has_a_verdict(one, start):
    assert sentences(report_of(one))[0].startswith(start)


def test_several_ranks_are_compared_and_the_slowest_is_shown():
    report = report_of(*(analysis(rank=rank, times=(100.0 + 5 * rank,)) for rank in range(3)))
    assert sentences(report)[0] == "Rank 2 is the slowest of 3: step 110.0 ms, 10 % longer than the fastest (100.0 ms)."
    assert report.focus == (2,)
    assert report.tables["ranks"].column("step_ns") == (100 * MS, 105 * MS, 110 * MS)
    assert any(note.key == "details_of_rank" for note in report.note_messages)


def test_even_ranks_are_called_even():
    report = report_of(*(analysis(rank=rank, times=(100.0,)) for rank in range(2)))
    assert sentences(report)[0] == "The 2 ranks are equally fast: mean step 100.0 ms."
    report = report_of(*(analysis(rank=rank, times=(100.0 + rank,)) for rank in range(2)))
    assert sentences(report)[0] == "The 2 ranks are equally fast: mean steps from 100.0 ms to 101.0 ms."


def test_sync_points_that_drain_the_device_are_named():
    text = sentences(report_of(analysis()._replace(synced={"aten::nonzero": 3 * MS, "aten::item": 50 * MS})))
    assert text[1] == (
        "Sync points leave the device without work for 9.9 % of the time, above all aten::item: 0.4 % while the host "
        "waits in them, the rest until it has launched what comes next."
    )


def test_chosen_ranks_are_all_shown():
    report = report_of(*(analysis(rank=rank) for rank in range(2)), scope=Scope(every_rank=True))
    assert report.focus == (0, 1)


def test_tables_become_data_frames_with_nanoseconds():
    frame = report_of(analysis()).tables["sync_points"].to_pandas(words=False)
    assert frame["blocked_ns"].tolist() == [4 * MS, 3 * MS]
    assert frame["idle_caused_ns"].isna().tolist() == [False, True]
    assert frame["blocked_ns"].dtype == "Int64"


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("ProfilerStep#5", "ProfilerStep#6"), ("5", "6")),
        (("train", "eval"), ("train", "eval")),
        (("iteration 1", "iteration 2"), ("1", "2")),
        (("train", "train"), ("0", "1")),
        (("whole trace",), ("whole trace",)),
    ],
)
def test_step_labels(names, labels):
    assert step_labels(names) == labels


@pytest.mark.parametrize(
    ("text", "chosen"), [("5", [5]), ("5,7-8", [5, 7, 8]), ("7:", [7, 8, 9]), (":7", [5, 6]), ("6:8", [6, 7])]
)
def test_lists_of_numbers(text, chosen):
    numbers = range(5, 10)
    mask = parse_numbers(text, "--steps", "step").chosen(numbers)
    assert [number for number, wanted in zip(numbers, mask, strict=True) if wanted] == chosen


@pytest.mark.parametrize("text", ["", "x", "3-", "5-3", "1,,2", "3:2", "-1"])
def test_lists_that_cannot_be_understood(text):
    with pytest.raises(UsageError, match="steps="):
        parse_numbers(text, "--steps", "step")


def test_a_step_that_does_not_exist_is_an_error_that_says_what_there_is():
    with pytest.raises(UsageError, match=r"steps=9: there is no step 9; there are 5 to 7"):
        step_chooser("9")(steps_of(1.0, 1.0, 1.0))


def test_steps_without_numbers_cannot_be_chosen_by_number():
    with pytest.raises(UsageError, match="no numbered steps"):
        step_chooser("0")(steps_of(1.0, names=("whole trace",)))


def test_chosen_steps_are_a_mask():
    assert step_chooser("6:")(steps_of(1.0, 1.0, 1.0)).tolist() == [False, True, True]


def test_means_round_to_the_nearest():
    steps = steps_of(1.0, 1.0, 1.0)
    assert window_of(steps).mean(window_of(steps).sum(ints(1, 1, 3))) == 2
    assert isinstance(window_of(steps).sum(np.array([1, 2, 3])), int)


def test_causes_that_were_not_recorded_are_not_zero():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 20, 30)
    b.device(0, 10)
    b.device(90, 10)
    report = report_of(b.analyze())
    why = NotMeasured("no_api")
    split = dict(zip(report.tables["split"].column("part"), report.tables["split"].column("sum_ns"), strict=True))
    assert (split["sync"], split["dispatch"]) == (why, why)
    assert (split["data_loading"], split["compute"], split["idle"]) == (0, 20_000, 80_000)
    causes = report.tables["idle_causes"]
    found = dict(zip(causes.column("cause"), causes.column("sum_ns"), strict=True))
    assert (found["host_op"], found["untraced"], found["dispatch_launch"]) == (30_000, 50_000, why)
    assert sentences(report)[0] == "Step 100.0 µs: the device is idle 80 % of it."
