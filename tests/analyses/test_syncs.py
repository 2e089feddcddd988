"""Sync points and the idle time they cause: hand-made traces, answers on paper."""

import pytest

from tests.builder import HOST, TraceBuilder
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Cause


def sites(b):
    """Rows of the table of sync points."""
    return list(b.analyze().tables["sync_points"].records())


def synced(sync_at=20, sync_dur=40, launch_at=90):
    """Kernel 0-50, a sync on the host, next kernel launched after it and run from 100 to 150."""
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 1, 0, 50)
    b.op("aten::item", sync_at - 2, sync_dur + 4)
    b.op("aten::_local_scalar_dense", sync_at - 1, sync_dur + 2)
    b.api("cudaStreamSynchronize", sync_at, sync_dur)
    b.launch(launch_at, 5, 100, 50)
    b.launch(120, 1, 150, 50)
    return b


def test_a_drained_device_is_charged_the_whole_gap():
    (site,) = sites(synced())
    assert (site.op, site.call, site.kind, site.count) == (
        "aten::_local_scalar_dense",
        "cudaStreamSynchronize",
        "sync_explicit",
        1,
    )
    assert (site.blocked_ns, site.idle_caused_ns, site.data_dependent) == (40_000, 50_000, True)


def test_without_steps_a_sync_counts_as_every_call_does_whole_and_at_any_time():
    b = TraceBuilder()  # the device works from 10 to 60, the host from -20 to 70
    b.api("cudaDeviceSynchronize", -20, 5)
    b.launch(0, 1, 10, 10)
    b.launch(40, 1, 50, 10)
    b.api("cudaDeviceSynchronize", 15, 20)
    b.op("aten::item", 44, 27)
    b.api("cudaStreamSynchronize", 45, 25)
    first = {site.call: (site.count, site.blocked_ns) for site in sites(b)}
    assert first == {"cudaDeviceSynchronize": (2, 25_000), "cudaStreamSynchronize": (1, 25_000)}
    costs = {site.call: site.idle_caused_ns for site in sites(b)}
    assert costs == {"cudaDeviceSynchronize": 30_000, "cudaStreamSynchronize": NotMeasured("terminal_sync")}
    calls = {row.call: (row.count, row.sum_ns) for row in b.analyze().tables["runtime_calls"].records()}
    assert first.items() <= calls.items()


def test_data_loading_after_the_sync_is_not_the_syncs_fault():
    b = synced()
    b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 65, 20)
    assert sites(b)[0].idle_caused_ns == 30_000


def test_a_sync_that_leaves_work_queued_costs_nothing():
    b = synced(sync_at=20, sync_dur=10)  # returns at 30; the device works until 50
    assert sites(b)[0].idle_caused_ns == 0


def test_a_sync_inside_a_gap_it_did_not_open_costs_its_own_part():
    b = synced(sync_at=60, sync_dur=20)  # gap 50-100 began before
    assert sites(b)[0].idle_caused_ns == 20_000
    assert b.analyze().idle.by_step[0, Cause.SYNC] == 20_000


def test_calls_under_one_operator_are_one_sync_point():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 1, 0, 50)
    b.op("aten::copy_", 5, 70)
    b.copy(10, 55, 51, 5, name="Memcpy DtoH (Device -> Pageable)")
    b.api("cudaStreamSynchronize", 66, 4)
    b.launch(90, 5, 100, 50)
    b.launch(120, 1, 150, 50)
    (site,) = sites(b)
    assert (site.op, site.call, site.count) == ("aten::copy_", "cudaMemcpyAsync + cudaStreamSynchronize", 1)
    assert site.kind == "sync_blocking_in_effect"
    assert site.blocked_ns == 59_000
    assert site.idle_caused_ns == 1_000 + 44_000  # before its own copy, and until the next kernel


def test_an_asynchronous_copy_that_returns_first_is_no_sync():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.copy(0, 60, 61, 20)
    b.copy(90, 10, 95, 20)  # outlasts the start of its copy, but is short
    b.launch(120, 1, 130, 50)
    assert sites(b) == []


def test_queries_and_waits_on_the_device_are_no_syncs():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 1, 0, 50)
    for i, name in enumerate(("cudaEventQuery", "cudaStreamWaitEvent", "cudaEventRecord", "cudaStreamQuery")):
        b.api(name, 10 + i, 1)
    b.launch(120, 1, 150, 50)
    assert sites(b) == []


def test_the_traces_own_ending_has_no_cost():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 1, 0, 50)
    b.api("cudaDeviceSynchronize", 60, 30)
    (site,) = sites(b)
    assert (site.blocked_ns, site.idle_caused_ns) == (30_000, NotMeasured("terminal_sync"))


def test_a_wait_that_ends_the_trace_is_told_from_the_same_one_before():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 1, 0, 50)
    for at in (60, 150):
        b.api("cudaDeviceSynchronize", at, 20)
    b.launch(100, 1, 110, 20)
    assert sorted((site.at_end, site.blocked_ns) for site in sites(b)) == [(False, 20_000), (True, 20_000)]
    # Where there is none, nothing is said.
    assert [site.at_end for site in sites(synced())] == [None]


def test_sites_are_told_apart_by_the_users_line():
    b = TraceBuilder()
    b.step(1, 0, 400)
    for n, line in enumerate((10, 10, 20)):
        t = n * 100
        b.launch(t, 1, t, 30)
        b.python(f"train.py({line}): loop", t + 5, 60)
        b.op("aten::item", t + 6, 40)
        b.api("cudaStreamSynchronize", t + 10, 20.5)
    b.launch(350, 1, 360, 10)
    assert {site.frame: site.count for site in sites(b)} == {"train.py(10): loop": 2, "train.py(20): loop": 1}


def test_a_copy_that_waits_for_its_own_end_drains_the_device():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 1, 0, 50)
    b.copy(20, 70, 80, 10, api="cudaMemcpy", name="Memcpy DtoH (Device -> Pageable)")
    b.launch(60, 1, 90, 50, tid=2)
    b.launch(145, 1, 150, 50)
    (site,) = sites(b)
    assert (site.call, site.idle_caused_ns) == ("cudaMemcpy", 30_000)
    assert b.table("gaps").column("trigger")[0] == "sync_drained"


def test_a_kernel_of_unknown_launch_may_have_been_launched_after_the_wait():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 1, 0, 50)
    b.api("cudaStreamSynchronize", 20, 100)
    b.device(100, 50)
    b.launch(140, 1, 150, 50)
    assert [site.idle_caused_ns for site in sites(b)] == [50_000]
    assert b.table("gaps").column("trigger") == ("sync_drained",)


def test_calls_under_the_very_first_operator_are_one_sync_point_too():
    b = TraceBuilder()
    b.op("aten::item", 10, 40)
    b.step(1, 0, 200)
    b.launch(0, 1, 1, 5)
    b.api("cudaStreamSynchronize", 15, 5)
    b.api("cudaStreamSynchronize", 25, 5)
    b.launch(90, 1, 100, 50)
    (site,) = sites(b)
    assert (site.op, site.call, site.count, site.blocked_ns) == ("aten::item", "cudaStreamSynchronize", 1, 10_000)


def test_the_only_call_of_a_trace_may_be_a_wait():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(0, 50)
    b.api("cudaStreamSynchronize", 10, 45)
    assert [(site.call, site.count, site.blocked_ns) for site in sites(b)] == [("cudaStreamSynchronize", 1, 45_000)]


@pytest.mark.parametrize("pid", [HOST, -1])
def test_a_wait_on_an_intel_device_is_no_dispatch_and_counts_once(pid):
    """The device works from 15 to 25, the host waits for it from 12 to 40 and goes on at 60; both layers tell it."""
    b = TraceBuilder()
    b.step(1, 0, 90)
    b.launch(0, 10, 15, 10, api="urEnqueueKernelLaunch")
    b.api("urEventWait", 12, 28)
    b.event("xpu_sync", "zeEventHostSynchronize", 13, 26, pid=pid, correlation=2)
    b.event("xpu_sync", "zeCommandListAppendBarrier", 15, 5, pid=pid, correlation=3)
    b.launch(60, 5, 70, 20, api="urEnqueueKernelLaunch")
    for event in b.events:
        event["cat"] = event["cat"].replace("cuda_runtime", "xpu_runtime")
    (site,) = b.rows("sync_points")
    assert (site.call, site.count, site.blocked_ns, site.idle_caused_ns) == ("urEventWait", 1, 28_000, 45_000)
    split = {row.part: row.mean_ns for row in b.rows("split")}
    assert (split["sync"], split["dispatch"]) == (15_000, 25_000)


def test_where_only_calls_that_submit_work_were_recorded_waits_are_not_measured():
    """Intel's profiler (PTI ≥ 0.12) tells nothing of the wait inside `item`; launches are what they are."""
    b = TraceBuilder()
    b.step(1, 0, 90)
    b.launch(0, 10, 15, 10, api="urEnqueueKernelLaunchWithArgsExp")
    b.op("aten::item", 12, 30)
    b.copy(13, 2, 26, 1, api="urEnqueueUSMMemcpy", name="Memcpy D2M (Device -> Memory)")
    b.launch(60, 5, 70, 20, api="urEnqueueKernelLaunchWithArgsExp")
    for event in b.events:
        event["cat"] = event["cat"].replace("cuda_runtime", "xpu_runtime")
    a = b.analyze()
    assert "no_wait_calls" in {check.message for check in a.checks}
    unknown = NotMeasured("no_wait_calls")
    (site,) = a.tables["sync_points"].records()
    assert (site.op, site.kind, site.blocked_ns, site.idle_caused_ns) == (
        "aten::item",
        "sync_suspected",
        *2 * [unknown],
    )
    split = {row.part: row.mean_ns for row in a.tables["split"].records()}
    assert (split["sync"], split["dispatch"]) == (unknown, 15_000 + 15_000 + 10_000)
    (launches,) = a.tables["launches"].records()
    assert (launches.linked, launches.late) == (3, 2)


def test_a_wait_between_two_steps_is_in_neither():
    """A call from 95 to 205 is 5 + 5 µs inside the steps, one from 120 to 180 is in none: as `runtime_calls` has it."""
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.step(2, 200, 100)
    b.launch(10, 5, 20, 40)
    b.api("cudaDeviceSynchronize", 95, 110)
    b.api("cudaStreamSynchronize", 120, 60, tid=2)
    b.launch(210, 5, 220, 40)
    (site,) = b.rows("sync_points")
    assert (site.call, site.count, site.blocked_ns) == ("cudaDeviceSynchronize", 1, 10_000)
    calls = {row.call: (row.count, row.sum_ns) for row in b.rows("runtime_calls") if row.kind == "api_sync"}
    assert calls == {"cudaDeviceSynchronize": (1, 10_000)}
