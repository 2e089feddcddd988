"""What a recording's own oddities are told as."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import NEED_CALLS


def suspected(duration):
    """Names of kernels that may be communication."""
    b = TraceBuilder()
    b.op("record_param_comms", 10, duration)
    b.launch(12, 2, 20, 30, name="my_own_reduce")
    b.launch(60, 2, 70, 30, name="gemm")
    found = (dict(check.values) for check in b.analyze().checks if check.message == "suspected_communication")
    return [values["names"] for values in found]


def test_a_kernel_launched_inside_a_collective_is_suspected():
    assert suspected(10) == ["my_own_reduce"]


def test_collectives_that_took_no_time_on_a_coarse_clock_hold_nothing():
    assert suspected(0) == []


def checks(b, options=None):
    """Level and values of what is told, by its key."""
    return {check.message: (check.level.name, *dict(check.values).values()) for check in b.analyze(options).checks}


def steps(*lengths, kernels=(4,), gap=0, unlinked=0):
    """Steps of µs on end, each with kernels of 5 µs, `kernels` of each; some of them without a launch record."""
    b, at = TraceBuilder(), 0.0
    for number, length in enumerate(lengths):
        b.step(number, at, length)
        b.op("aten::mm", at, 4)
        for kernel in range(kernels[number % len(kernels)]):
            b.launch(at + 1 + kernel / 10, 0.05, at + 5 + 6 * kernel, 5, name="gemm")
        at += length + gap
    for kernel in range(unlinked):
        b.device(50 + 6 * kernel, 5, name="gemm")
    return b


def test_a_plain_recording_only_lacks_what_was_not_recorded():
    found = checks(steps(100, 100, 100))
    assert found == {"no_python": ("INFO",), "no_memory": ("INFO",)}


def test_what_was_not_recorded_is_told():
    b = TraceBuilder()
    b.device(10, 20.5)
    assert checks(b) == {
        "no_api": ("WARN",),
        "no_steps": ("WARN",),
        **dict.fromkeys(("no_host_ops", "no_python", "no_memory"), ("INFO",)),
    }
    host = TraceBuilder()
    host.op("aten::mm", 0, 10)
    host.python("train.py(1): f", 0, 10)
    host.memory(1, 64)
    told = checks(host)
    assert told["no_api"] == told["no_steps_host"] == ("INFO",)
    assert told["profiler_cost"] == ("INFO", "with_stack, profile_memory")
    assert not {"no_python", "no_memory", "no_host_ops", "no_steps"} & set(told)


@pytest.mark.parametrize(("unlinked", "known", "level"), [(1, 19, "INFO"), (1, 18, "WARN")])
def test_work_without_a_launch_record_matters_beyond_a_twentieth_of_the_time(unlinked, known, level):
    found = checks(steps(1000, kernels=(known,), unlinked=unlinked))
    total = known + unlinked
    assert found["unlinked"] == (level, unlinked, total, unlinked / total)


@pytest.mark.parametrize(("early", "of", "told"), [(1, 1000, False), (2, 1000, True), (1, 999, True), (3, 40, True)])
@pytest.mark.parametrize(
    ("by", "message", "level"), [(2, "clock_moved", "WARN"), (10_000, "kernel_before_launch", "ERROR")]
)
def test_kernels_before_their_launch_matter_beyond_a_thousandth(early, of, told, by, message, level):
    b = TraceBuilder()
    b.step(0, 0, 10 * of)
    for at in range(of):
        b.launch(10 * at + 3, 1, 10 * at + (3 - by if at < early else 5), 1)
    found = checks(b)
    assert {"clock_moved", "kernel_before_launch"} & set(found) == ({message} if told else set())
    assert found.get(message) == ((level, 0, early, early / of, by * 1000) if told else None)


def test_categories_that_nobody_knows_are_listed_with_their_number():
    b = steps(100)
    for at, category in enumerate(("odd", "strange", "odd")):
        b.event(category, "x", at, 1)
    assert checks(b)["unknown_categories"] == ("WARN", 3, 13, "odd × 2, strange × 1", "odd", 0)


def test_steps_without_work_and_with_little_of_it():
    found = checks(steps(*[100] * 5, kernels=(5, 5, 5, 4, 3)))
    assert found["incomplete_steps"] == ("WARN", 1, "ProfilerStep#4")
    assert found["last_step_cut"] == ("WARN", "ProfilerStep#4")
    assert "steps_without_device_events" not in found
    idle = checks(steps(*[100] * 7, kernels=(5, 0, 0, 0, 0, 0, 0)))
    names = ", ".join(f"ProfilerStep#{number}" for number in range(1, 6)) + ", … (6)"
    assert idle["steps_without_device_events"] == ("ERROR", 6, names)
    assert idle["incomplete_steps"] == ("WARN", 6, names)
    five = checks(steps(*[100] * 6, kernels=(5, 0, 0, 0, 0, 0)))
    assert five["steps_without_device_events"][2] == ", ".join(f"ProfilerStep#{number}" for number in range(1, 6))


def test_a_trace_whose_steps_own_no_work_at_all():
    b = steps(100, 100, kernels=(0,))
    b.device(20, 10)
    assert checks(b)["steps_without_device_events"] == ("WARN", 2, "ProfilerStep#0, ProfilerStep#1")


@pytest.mark.parametrize(("gap", "told"), [(2, None), (2.1, ("WARN", 2100, 2100 / 200_000))])
def test_time_between_steps_matters_beyond_a_hundredth(gap, told):
    assert checks(steps(100, 100, gap=gap)).get("between_steps") == told


@pytest.mark.parametrize(
    ("until", "told"), [(1, None), (1.1, ("INFO", 1_100)), (4.8, ("INFO", 4_800)), (4.9, ("WARN", 4_900))]
)
def test_a_first_step_that_begins_late(until, told):
    """Of 101 µs; the device still runs what was launched before."""
    b = steps(101)
    b.device(-10, 10 + until, name="before", stream=8)
    found = checks(b).get("lead_in")
    assert found == told


def left_over():
    """A step whose device still runs earlier work until all that the host does for it is done."""
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(-10, 60, name="before", stream=8)
    b.op("aten::mm", 5, 10)
    b.launch(6, 2, 60, 30)
    return b


def test_work_without_a_launch_record_outside_of_the_steps_changes_nothing():
    found = checks(left_over())
    assert found["unlinked_outside"] == ("INFO", 1, 2, 60 / 90)
    assert "unlinked" not in found


@pytest.mark.parametrize(
    ("table", "device", "host"),
    [
        ("operators", "device_self_ns", "calls"),
        ("call_paths", "device_self_ns", "calls"),
        ("phases", "device_ns", "host_ns"),
    ],
)
def test_what_the_host_did_before_a_step_that_begins_late_is_not_measured(table, device, host):
    (row,) = left_over().rows(table)
    assert (getattr(row, device), getattr(row, host)) == (30_000, NotMeasured("launched_before"))


def test_a_step_inside_the_one_before_has_no_time_of_its_own():
    b = TraceBuilder()
    b.step(0, 0, 20)
    b.launch(2, 1, 10, 90)
    b.step(1, 20, 20)
    b.launch(22, 1, 100, 0)
    assert checks(b)["empty_steps"] == ("INFO", 1, "ProfilerStep#1")


@pytest.mark.parametrize(
    ("lengths", "told"),
    [
        ((130, 100, 100), None),
        ((131, 100, 100), ("WARN", "ProfilerStep#0", 1.31)),
        ((131, 100, 200, 100), ("WARN", "ProfilerStep#0", 1.31)),
        ((500, 100), None),
    ],
)
def test_a_first_step_that_is_slow(lengths, told):
    assert checks(steps(*lengths)).get("first_step_slow") == told


@pytest.mark.parametrize(("mine", "level"), [(50, "INFO"), (51, "WARN")])
def test_kernels_inside_collectives_matter_beyond_a_twentieth_of_device_time(mine, level):
    b = TraceBuilder()
    b.op("c10d::allreduce_", 10, 10)
    b.launch(12, 2, 20, mine, name="my_own_reduce")
    b.launch(40, 2, 200, 1000 - mine, name="gemm")
    # Launched by another thread at that time, and before and after.
    b.launch(13, 2, 1300, 0, name="elsewhere", tid=2)
    assert checks(b)["suspected_communication"] == (level, 1, mine * 1000, "my_own_reduce")


@pytest.mark.parametrize(("known", "told"), [(9, True), (8, False)])
def test_what_runs_on_a_stream_of_collectives_is_suspected(known, told):
    b = TraceBuilder()
    for at in range(known):
        b.launch(100 * at, 2, 100 * at + 10, 10, name="ncclDevKernel_AllReduce", stream=13)
    b.launch(5000, 2, 5010, 10, name="reduce_own", stream=13)
    b.launch(6000, 2, 6010, 10, name="gemm", stream=7)
    assert ("suspected_communication" in checks(b)) is told


def test_several_processes_that_launch_work():
    b = steps(100)
    assert "several_processes" not in checks(b)
    b.event("cuda_runtime", "cudaLaunchKernel", 50, 2, pid=200, correlation=9000)
    b.device(60, 5, correlation=9000)
    assert checks(b)["several_processes"] == ("WARN", 2, "100, 200")


def test_collectives_without_description_are_counted():
    b = steps(100)
    b.launch(40, 1, 50, 5, name="ncclDevKernel_AllReduce")
    b.launch(45, 1, 60, 5, name="ncclDevKernel_AllReduce", **{"Collective name": "allreduce", "In msg nelems": 8})
    assert checks(b)["collectives_without_metadata"] == ("INFO", 1, 2)


def test_damage_of_the_file_is_told():
    b = steps(100, 100)
    b.events += [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": -3, "pid": 100, "tid": 1}] * 2
    b.events += [{"ph": "X", "cat": "cpu_op", "name": "a", "dur": 3, "pid": 100, "tid": 1}]
    found = checks(b)
    assert found["skipped_negative_dur"][:2] == ("WARN", 2)
    assert found["skipped_no_ts"][:2] == ("WARN", 1)


def test_what_is_worst_comes_first():
    levels = [check.level for check in steps(*[100] * 7, kernels=(5, 0, 5)).analyze().checks]
    assert levels == sorted(levels, reverse=True)
    assert len(set(levels)) == 3


def test_a_runtime_whose_calls_nobody_knows_leaves_sync_and_launches_not_measured():
    """0 would say that the host never waited. Known names of most calls make it known, or one of each kind."""
    b = TraceBuilder()
    b.step(1, 0, 400)
    for at in (0, 100):
        b.launch(at, 10, at + 20, 30, api="fooSubmit")
        b.api("fooJoin", at + 12, 40)
        b.op("aten::mm", at + 60, 10)
    why, found = NotMeasured("unknown_runtime"), b.analyze()
    assert {found.idle.missing[cause] for cause in NEED_CALLS} == {why}
    split = {row.part: row.mean_ns for row in found.records("split")}
    assert (split["sync"], split["dispatch"], split["data_loading"], split["compute"]) == (why, why, 0, 60_000)
    (launches,) = found.records("launches")
    assert (launches.linked, launches.late, launches.delay_p50_ns) == (2, why, why)
    assert found.tables["sync_points"].absent == found.tables["step_launches"].absent == why
    assert checks(b)["unknown_runtime"] == ("WARN", "fooSubmit, fooJoin")
    b.api("cudaGetDevice", 390, 1)
    b.api("INVALID", 392, 1)
    assert set(b.analyze().idle.missing.values()) == {why}
    for at in (394, 396, 398):
        b.api("cudaGetDevice", at, 1)
    assert b.analyze().idle.missing == {}
    del b.events[-3:]
    for event, name in ((b.events[-1], "drvLaunchKernel"), (b.events[-2], "drvStreamSynchronize")):
        event |= {"name": name, "cat": "privateuse1_runtime"}
    assert b.analyze().idle.missing == {}
