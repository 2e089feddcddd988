"""What would change: against the same program simulated without it, against findings, and what is not measured."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.ranks.simulated import workload
from tests.real import SHARED
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import step_time
from tests.simulate.workload import MS, US, Fault, Host, Loader, Model, Ranks, Script, Workload
from tests.simulate.writers.kineto import write
from traceanalyze.model.table import NotMeasured

LIGHT = Workload(
    model=Model(layers=4, batch=2),
    host=Host(op=2 * US, python=2 * US),
    loader=Loader(cost=1 * MS),
    warmup=2,
    steps=4,
    seed=5,
)


def files(folder, work):
    folder.mkdir(exist_ok=True)
    for rank, schedule in enumerate(simulate(work)):
        (folder / f"rank{rank}.json").write_bytes(write(schedule))
    return folder


def rows(report):
    return list(report.tables["whatif"].records())


def mean_step(work):
    return step_time(work) / work.steps


@pytest.mark.parametrize(
    ("faulty", "asked", "within"),
    [
        (replace(LIGHT, loader=Loader(cost=40 * MS, workers=0)), {"without": ["data_loading"]}, 0.03),
        (replace(LIGHT, loader=Loader(cost=120 * MS, workers=2)), {"without": ["data_loading"]}, 0.05),
        (replace(LIGHT, script=Script(pause=15 * MS)), {"without": ["untraced"]}, None),
        (replace(LIGHT, script=Script(items=4)), {"without": ["sync"]}, 0.25),
    ],
)
def test_the_gain_is_that_of_the_program_without_it(tmp_path, faulty, asked, within):
    (row,) = rows(traceanalyze.whatif(files(tmp_path / "run", faulty), **asked))
    true = mean_step(faulty) - mean_step(LIGHT)
    assert true > 0
    if within is None:
        # Python between operators is not traced either.
        assert row.gain_ns >= 0.99 * true
    else:
        assert row.gain_ns == pytest.approx(true, rel=within)
    assert row.then_ns == pytest.approx(mean_step(faulty) - row.gain_ns, rel=0.01)


@pytest.mark.parametrize("factor", [1.5, 3])
def test_faster_kernels_are_worth_what_the_simulator_says(tmp_path, factor):
    """A program that its device limits; kernels that are faster still have their shortest time and its gaps."""
    slow = replace(LIGHT, model=Model(layers=2, batch=8), host=Host(op=1 * US, python=1 * US, launch=2 * US))
    quick = replace(slow.device, flops=factor * slow.device.flops, bandwidth=factor * slow.device.bandwidth)
    true = mean_step(slow) - mean_step(replace(slow, device=quick))
    (row,) = rows(traceanalyze.whatif(files(tmp_path / "run", slow), faster={"compute": factor}))
    assert row.gain_ns == pytest.approx(true, rel=0.1)
    assert row.factor == factor


def test_faster_by_name_is_faster_by_part_of_it(tmp_path):
    folder = files(tmp_path / "run", LIGHT)
    (all_of_it,) = rows(traceanalyze.whatif(folder, faster={"compute": 2}))
    found = rows(traceanalyze.whatif(folder, faster={".": 2, "gemm": 2}))
    assert found[0].gain_ns >= all_of_it.gain_ns
    assert 0 <= found[1].gain_ns <= found[0].gain_ns
    assert [row.subject for row in found] == [".", "gemm", None]


def test_kernels_go_by_the_short_names_of_tables_too(tmp_path):
    folder = files(tmp_path / "run", LIGHT)
    shown = traceanalyze.analyze(folder).tables["kernels"]["name"]
    short = next(label for name, label in shown.labels.items() if label not in name)
    (by_label,) = rows(traceanalyze.whatif(folder, faster={re.escape(short): 2}))
    whole = next(name for name, label in shown.labels.items() if label == short)
    (by_name,) = rows(traceanalyze.whatif(folder, faster={re.escape(whole): 2}))
    assert by_label.gain_ns == by_name.gain_ns


def test_together_is_one_replay(tmp_path):
    """Loader and pause lie one after the other on the host: together they are worth both, or what the device leaves."""
    faulty = replace(LIGHT, loader=Loader(cost=40 * MS, workers=0), script=Script(pause=15 * MS))
    report = traceanalyze.whatif(files(tmp_path / "run", faulty), without=["data_loading", "untraced"])
    first, second, both = rows(report)
    assert max(first.gain_ns, second.gain_ns) < both.gain_ns <= 1.01 * (mean_step(faulty))
    assert both.supposed == "whatif_together"
    then = report.tables["whatif_split"].column("then_ns")
    assert sum(then) == pytest.approx(both.then_ns, abs=10)


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_late_rank_costs_the_run_what_it_costs(tmp_path, ranks):
    slow = workload(Fault("late_host", 3.0), ranks=ranks)
    last = ranks - 1
    folder = files(tmp_path / "run", slow)
    true = mean_step(slow) - mean_step(workload(ranks=ranks))
    report = traceanalyze.whatif(folder, ranks={last: "median"})
    (row,) = rows(report)
    assert row.gain_ns == pytest.approx(true, rel=0.1)
    (other,) = rows(traceanalyze.whatif(folder, ranks={0: "median"}))
    assert other.gain_ns == 0


def test_what_all_ranks_do_all_of_them_gain(tmp_path):
    plain = workload(ranks=2)
    slow = replace(plain, loader=Loader(cost=20 * MS, workers=0))
    fast = replace(plain, loader=Loader(cost=10 * US, workers=0))
    (row,) = rows(traceanalyze.whatif(files(tmp_path / "run", slow), without=["data_loading"]))
    assert row.gain_ns == pytest.approx(mean_step(slow) - mean_step(fast), rel=0.05)


def test_overlap_is_what_the_rule_says(tmp_path):
    slow = replace(workload(ranks=2), ranks=Ranks(count=2, bucket=2**30, extra=2 * MS))
    folder = files(tmp_path / "run", slow)
    (row,) = rows(traceanalyze.whatif(folder, overlap=["communication"]))
    (gone,) = rows(traceanalyze.whatif(folder, without=["communication"]))
    assert 0 <= row.gain_ns <= gone.gain_ns


def host_only():
    b = TraceBuilder()
    b.op("aten::mm", 0, 100)
    b.api("cudaLaunchKernel", 10, 5)
    return b


def unlinked():
    b = TraceBuilder()
    b.step(1, 0, 1000)
    b.op("aten::mm", 0, 100)
    b.device(100, 500)
    return b


def without_operators():
    b = TraceBuilder()
    b.launch(0, 5, 10, 100)
    b.launch(500, 5, 510, 400)
    return b


@pytest.mark.parametrize(
    ("builder", "name", "reason"),
    [
        (host_only, "sync", "no_device_events"),
        (unlinked, "compute", "no_api"),
        (without_operators, "data_loading", "no_host_ops"),
        (without_operators, "SYN103", "no_such_finding"),
        (without_operators, "KRN101", None),
        (without_operators, "RNK101", None),
    ],
)
def test_what_cannot_be_measured_is_said(tmp_path, builder, name, reason):
    report = traceanalyze.whatif(builder().write(tmp_path / "trace.json"), without=[name])
    (row,) = rows(report)
    for value in (row.gain_ns, row.share, row.then_ns, row.limit):
        assert isinstance(value, NotMeasured)
        assert reason in {None, value.reason}
    assert "not measured" in str(report.verdict_messages) or report.verdict_messages[1].key == "whatif_unknown"


def test_one_rank_waits_for_nobody(tmp_path):
    trace = unlinked().write(tmp_path / "trace.json")
    with pytest.raises(traceanalyze.UsageError, match="no rank"):
        traceanalyze.whatif(trace, ranks={3: "median"})


def test_a_trace_whose_events_have_no_duration_is_no_crash(tmp_path):
    path = tmp_path / "trace.json"
    event = {"ph": "i", "name": "x", "pid": 1, "tid": 1, "ts": 1, "s": "t"}
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    (row,) = rows(traceanalyze.whatif(path, without=["compute"]))
    assert isinstance(row.gain_ns, NotMeasured)


def test_where_the_host_computes_its_time_is_the_step(tmp_path):
    b = TraceBuilder()
    for number in range(3):
        b.step(number, 1000 * number, 1000)
        b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1000 * number, 400)
        b.op("aten::mm", 1000 * number + 400, 600)
    report = traceanalyze.whatif(b.write(tmp_path / "trace.json"), without=["data_loading", "compute"])
    first, second, _ = rows(report)
    assert first.gain_ns == 400_000
    assert second.gain_ns.reason == "no_device_used"


RUNS = ["kineto/kineto_tb/samples/resnet50_num_workers_0", "pairs/torchrec_ladder/sst_long_a2a_optimizer_4"]


@pytest.mark.parametrize("name", RUNS)
def test_real_recordings_have_steps_that_add_up(name):
    if not (SHARED / name).exists():
        pytest.skip("no trace")
    path = min((SHARED / name).iterdir()) if "resnet" in name else SHARED / name
    report = traceanalyze.whatif(path, without=["data_loading", "dispatch"], faster={"compute": 2})
    step = sum(report.tables["whatif_split"].column("then_ns"))
    *each, both = rows(report)
    assert step == pytest.approx(both.then_ns, rel=0.02)
    assert both.gain_ns >= max(row.gain_ns for row in each)


def test_nothing_is_replayed_where_the_clocks_disagree(tmp_path):
    """Neither each change nor all together, on one rank or several: launches and their work do not fit."""
    folder = files(tmp_path / "run", replace(LIGHT, ranks=Ranks(count=2)))
    path = folder / "rank1.json"
    trace = json.loads(path.read_text())
    for event in trace["traceEvents"]:
        if event.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}:
            event["ts"] = float(event["ts"]) - 20_000
    path.write_text(json.dumps(trace))
    for run in (folder, path):
        found = rows(traceanalyze.whatif(run, without=["sync", "dispatch"]))
        assert [one.gain_ns for one in found] == [NotMeasured("clocks_disagree")] * 3


@pytest.mark.parametrize("steps", ["0", "1", "2", "3"])
def test_a_step_waits_for_the_batch_of_its_own_host(tmp_path, steps):
    """Each window but the first begins within its own batch, with the end of the device's work for the step before, and
    ends within the next batch: of 1,600 µs of loading the first 630 µs lie under that work."""
    b = TraceBuilder()
    for number in range(5):
        at = 2000 * number
        if number < 4:
            b.step(number, at, 2000)
            b.op("aten::mm", at + 1610, 20)
            b.launch(at + 1615, 10, at + 1630, 1000)
        b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 1600)
    path = b.write(tmp_path / "trace.json")
    (row,) = rows(traceanalyze.whatif(path, without=["data_loading"], steps=steps))
    assert row.gain_ns == (1_600_000 if steps == "0" else 970_000)
    found = traceanalyze.analyze(path, steps=steps).tables["findings"]
    assert [one.count for one in found.records() if one.rule_id == "DAT101"] == [1]


DEVICE_BOUND = replace(LIGHT, model=Model(batch=8), host=Host(), steps=6)
"""Steps of 7 ms; the first recorded one begins on an idle device."""


@pytest.mark.parametrize(
    ("faulty", "ranks", "asked"),
    [
        # A batch comes every 8 ms, however fast the device is.
        (replace(DEVICE_BOUND, loader=Loader(cost=8 * MS, workers=1)), 1, {"faster": {"gemm": 2}}),
        (replace(DEVICE_BOUND, loader=Loader(cost=3 * MS, workers=0)), 1, {"without": ["data_loading"]}),
        (replace(DEVICE_BOUND, faults=(Fault("late_host", 4.0),)), 2, {"ranks": {1: "median"}}),
    ],
)
def test_what_the_first_recorded_step_alone_gains_a_long_run_does_not(tmp_path, faulty, ranks, asked):
    folder = files(tmp_path / "run", replace(faulty, ranks=Ranks(ranks, block=512)))
    (row,) = rows(traceanalyze.whatif(folder, **asked))
    assert row.low_ns == 0
    assert row.gain_ns < 0.005 * mean_step(faulty)


def test_all_ranks_named_leave_none_to_be_like(tmp_path):
    """Each alone has an answer: the others wait for the last rank, and nobody for the first."""
    folder = files(tmp_path / "run", workload(Fault("late_host", 3.0), ranks=2))
    first, last, both = rows(traceanalyze.whatif(folder, ranks={0: "median", 1: "median"}))
    assert first.gain_ns == 0 < last.gain_ns
    assert both.gain_ns == NotMeasured("all_ranks_named")


def test_a_rank_of_a_group_that_was_not_recorded_whole_is_not_measured(tmp_path):
    folder = files(tmp_path / "run", workload(Fault("late_host", 3.0), ranks=3))
    (folder / "rank2.json").unlink()
    (row,) = rows(traceanalyze.whatif(folder, ranks={1: "median"}))
    assert row.gain_ns == NotMeasured("ranks_missing")


def test_waiting_inside_collectives_of_the_device_is_no_part_of_the_host(tmp_path):
    folder = files(tmp_path / "run", workload(Fault("late_host", 3.0), ranks=2))
    (row,) = rows(traceanalyze.whatif(folder, without=["peer_wait"]))
    assert row.gain_ns == NotMeasured("waits_in_communication")


LATE = workload(Fault("late_host", 4.0), ranks=3)


def test_of_a_run_whatif_and_findings_give_the_same_numbers(tmp_path):
    """Value and range of each finding, those about ranks as well, and of all that one rank has together."""
    folder = files(tmp_path / "run", LATE)
    report = traceanalyze.analyze(folder)
    found = {one.rule: one.saving for one in report.findings if one.saving is not None}
    assert {"RNK101", "HST113"} <= set(found)
    for row in rows(traceanalyze.whatif(folder, without=list(found)))[: len(found)]:
        assert (row.gain_ns, row.low_ns, row.high_ns) == found[row.rule_id]
    several = [rank for rank in report.ranks if rank.together is not None]
    assert several
    for rank in several:
        own = list(dict.fromkeys(one.rule for one in rank.findings if one.saving))
        *_, both = rows(traceanalyze.whatif(folder, without=own))
        assert (both.gain_ns, both.low_ns, both.high_ns) == rank.together
        assert both.low_ns < both.gain_ns < both.high_ns


def test_together_with_the_findings_about_the_ranks_is_told_too(tmp_path):
    folder = files(tmp_path / "run", LATE)
    report = traceanalyze.analyze(folder)
    own = [one.rule for one in report.ranks[report.focus[0]].findings if one.saving]
    about = [one.rule for one in report.run_findings if one.saving]
    *_, both = rows(traceanalyze.whatif(folder, without=list(dict.fromkeys([*own, *about]))))
    (note,) = (one for one in report.tables["findings"].notes if one.key == "together_ranks")
    (saving, *_) = (value for name, _, value in note.values if name == "saving")
    assert (saving.low, saving, saving.high) == (both.low_ns, both.gain_ns, both.high_ns)


def test_of_one_rank_that_waits_for_others_whatif_and_findings_give_the_same_numbers(tmp_path):
    """What it waits is taken once off the least that its findings save together, not once off each."""
    work = replace(LATE, loader=Loader(cost=30 * MS, workers=0), script=Script(items=6, optimizer="for_loop"))
    path = files(tmp_path / "run", work) / "rank0.json"
    (rank,) = traceanalyze.analyze(path).ranks
    assert "COM120" in {one.rule for one in rank.findings}
    own = list(dict.fromkeys(one.rule for one in rank.findings if one.saving))
    *_, both = rows(traceanalyze.whatif(path, without=own))
    assert (both.gain_ns, both.low_ns, both.high_ns) == rank.together
    assert 0 < both.low_ns < both.gain_ns


SAME = [
    "kineto/kineto_tb/samples/resnet50_num_workers_4/worker0.1623213129365.pt.trace.json.gz",
    "kineto/hta/trace_diff/control/control.json.gz",
    "kineto/param/dlrm_8rank",
    "kineto/param/dlrm_8rank/worker7_step_12.1694128201553.pt.trace.json.gz",
]


@pytest.mark.parametrize("name", SAME)
def test_of_real_recordings_too(name):
    if not (SHARED / name).exists():
        pytest.skip("no trace")
    report = traceanalyze.analyze(SHARED / name)
    found = {one.rule: one.saving for one in report.findings if one.saving is not None}
    *each, both = rows(traceanalyze.whatif(SHARED / name, without=list(found)))
    for row in each:
        assert (row.gain_ns, row.low_ns, row.high_ns) == found[row.rule_id]
    if len(report.ranks) == 1:
        assert (both.gain_ns, both.low_ns, both.high_ns) == report.ranks[0].together
        assert both.low_ns < both.gain_ns < both.high_ns


def test_one_name_is_no_list_of_letters(tmp_path):
    folder = files(tmp_path / "run", LIGHT)
    report = traceanalyze.whatif(folder, without="data_loading", overlap="communication")
    assert [row.subject for row in rows(report)] == ["data_loading", "communication", None]


@pytest.mark.parametrize("factor", ["2", None, 1, 1e300, float("nan")])
def test_a_factor_is_a_number_that_makes_sense(tmp_path, factor):
    with pytest.raises(traceanalyze.UsageError, match="write a factor above 1, of 1000000 at most"):
        traceanalyze.whatif(files(tmp_path / "run", LIGHT), faster={"compute": factor})


def test_what_is_asked_twice_counts_once(tmp_path):
    """All kernels twice and four times as fast are worth the larger of both, whether or not that is said of a sum."""
    folder = files(tmp_path / "run", replace(LIGHT, model=Model(layers=2, batch=8)))
    report = traceanalyze.whatif(folder, faster={".": 2, "compute": 4}, without=["compute"])
    assert rows(report)[-1].gain_ns == max(row.gain_ns for row in rows(report)[:-1])
    late = files(tmp_path / "late", LATE)
    report = traceanalyze.whatif(late, without=["RNK101"], ranks={2: "median"})
    first, second, both = rows(report)
    assert first.gain_ns == second.gain_ns == both.gain_ns
    assert [one.key for one in report.verdict_messages][1] == "whatif_together_alone"


def test_what_gains_nothing_gains_nothing_together(tmp_path):
    b = TraceBuilder()
    b.op("aten::mm", 0, 100)
    b.launch(0, 5, 10, 1000)
    report = traceanalyze.whatif(b.write(tmp_path / "trace.json"), without=["sync", "data_loading"])
    assert [row.gain_ns for row in rows(report)] == [0, 0, 0]
    assert report.verdict_messages[1].key == "whatif_together_nothing"


def test_where_nothing_is_measured_each_says_why_and_no_sum_is_told(tmp_path):
    report = traceanalyze.whatif(unlinked().write(tmp_path / "trace.json"), without=["sync", "SYN103"])
    assert [one.key for one in report.verdict_messages] == ["whatif_now", "whatif_unknown", "whatif_unknown"]
    assert all(isinstance(row.share, NotMeasured) for row in rows(report))


def test_it_is_told_what_is_missing_and_which_clocks_were_moved(tmp_path):
    """A device whose clock shows 50 µs too little, in a file that ends in the middle of an event."""
    folder = files(tmp_path / "run", replace(LIGHT, ranks=Ranks(count=2)))
    trace = json.loads((folder / "rank1.json").read_text())
    for event in trace["traceEvents"]:
        if event.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}:
            event["ts"] = float(event["ts"]) - 50
    text = json.dumps(trace)
    (folder / "rank1.json").write_text(text[: text.rindex('"dur"')])
    assert [rank.rank for rank in traceanalyze.whatif(folder, without=["dispatch"]).ranks] == [0]
    report = traceanalyze.whatif(folder / "rank1.json", without=["dispatch"])
    assert "cut_short" in [one.key for one in report.verdict_messages]
    (found,) = report.ranks
    assert [one.id for one in found.checks if one.message.key == "clock_moved"] == ["Q04"]
    said = {one.message.key for one in traceanalyze.analyze(folder).ranks[1].checks}
    assert said == {one.message.key for one in found.checks}
