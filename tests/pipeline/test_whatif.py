"""What would change: against the same program simulated without it, against findings, and what is not measured."""

from __future__ import annotations

import json
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
    with pytest.raises(traceanalyze.UsageError, match="this rank was not recorded"):
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
        reasons = ["clocks_disagree", "clocks_disagree", "saving_not_replayed"]
        assert [one.gain_ns for one in found] == [NotMeasured(reason) for reason in reasons]


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


def keys(report):
    return [message.key for message in report.verdict_messages]


def test_findings_are_worth_the_same_together_in_both_commands(tmp_path):
    """A slow loader and a pause: what both cost is one number, with one range."""
    faulty = replace(LIGHT, loader=Loader(cost=40 * MS, workers=0), script=Script(pause=15 * MS, items=4))
    folder = files(tmp_path / "run", faulty)
    report = traceanalyze.analyze(folder)
    together = report.ranks[0].together
    ids = [one.rule for one in report.findings if one.saving]
    assert len(ids) > 1
    *_, both = rows(traceanalyze.whatif(folder, without=dict.fromkeys(ids)))
    assert (both.gain_ns, both.low_ns, both.high_ns) == (together.ns, together.low_ns, together.high_ns)


def test_all_ranks_at_once_have_an_answer(tmp_path):
    folder = files(tmp_path / "run", workload())
    asked = dict.fromkeys(range(len(list(folder.iterdir()))), "median")
    *_, both = rows(traceanalyze.whatif(folder, ranks=asked))
    assert both.gain_ns >= 0


def test_where_nothing_can_be_measured_no_number_is_said(tmp_path):
    unlinked().write(tmp_path / "trace.json")
    report = traceanalyze.whatif(tmp_path / "trace.json", without=["dispatch", "sync"])
    assert keys(report) == ["whatif_now", "whatif_unknown", "whatif_unknown", "whatif_together_unknown"]
    assert all(isinstance(row.share, NotMeasured) for row in rows(report))


def test_what_the_file_lacks_stands_beside_the_answer(tmp_path):
    text = (files(tmp_path / "run", LIGHT) / "rank0.json").read_bytes()
    (tmp_path / "cut.json").write_bytes(text[: len(text) * 9 // 10])
    report = traceanalyze.whatif(tmp_path / "cut.json", without=["sync"])
    assert "cut_short" in keys(report)
    assert {check.id for check in report.ranks[0].checks} >= {"Q01"}
