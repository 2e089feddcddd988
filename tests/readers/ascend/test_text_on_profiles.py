"""Real Ascend profiles in text form against their own tables, published figures, and a count over the raw JSON."""

from __future__ import annotations

import json
from functools import cache

import pytest

from tests.ascend_builder import load, of_category, texts
from traceanalyze.analyses.analyze import analyze_trace

LEVEL_1 = "ascend/msinsight_2rank_torch/text/level1"


@cache
def analysed(path):
    return analyze_trace(load(path))


@pytest.fixture(params=[0, 1])
def rank(request):
    return request.param


@pytest.fixture
def folder(shared_traces, rank):
    return shared_traces / LEVEL_1 / f"rank{rank}_ascend_pt"


def microseconds(text):
    whole, _, fraction = text.partition(".")
    return int(whole + fraction[:3].ljust(3, "0"))


class Raw:
    """The timeline read with the standard library, one event at a time."""

    def __init__(self, folder):
        self.events = json.loads((folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text())
        names = [event for event in self.events if event["ph"] == "M" and event["name"] == "process_name"]
        self.processes = {event["pid"]: event["args"]["name"] for event in names}

    def spans(self, process, wanted):
        found = []
        for event in self.events:
            if event["ph"] == "X" and self.processes.get(event["pid"]) == process and wanted(event):
                start = microseconds(event["ts"])
                found.append((start, start + round(event["dur"] * 1000)))
        return found


def union(spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return [(start, end) for start, end in merged if end > start]


def length(spans):
    return sum(end - start for start, end in spans)


def common(left, right):
    return union([(max(a, c), min(b, d)) for a, b in left for c, d in right if max(a, c) < min(b, d)])


KERNELS = {"AI_CORE", "MIX_AIV", "DSA_SQE", "AI_CPU", "MIX_AIC"}
MOVES = {"Memcpy", "Reduce_Inline"}


def raw_parts(raw):
    compute = union(raw.spans("Ascend Hardware", lambda event: event["args"]["Task Type"] in KERNELS))
    comm = union(raw.spans("HCCL", lambda event: event["name"].startswith("hcom_")))
    moved = union(raw.spans("HCCL", lambda event: event["name"] in MOVES))
    copies = union(raw.spans("Ascend Hardware", lambda event: event["name"] == "MEMCPY_ASYNC"))
    exposed = length(comm) - length(common(comm, compute))
    exposed_transfer = length(moved) - length(common(moved, compute))
    return {
        "compute": length(compute),
        "comm": length(comm),
        "exposed": exposed,
        "wait": exposed - exposed_transfer,
        "copies": length(copies),
    }


def test_the_partition_is_that_of_a_count_over_the_raw_events(folder):
    expected = raw_parts(Raw(folder))
    analysis = analysed(folder)
    (part,) = analysis.partitions
    assert int(part.compute.sum()) == expected["compute"]
    assert int(part.comm_total.sum()) == expected["comm"]
    assert int(part.comm_exposed.sum()) == expected["exposed"]
    assert int(part.mem_total.sum()) == expected["copies"]
    rows = list(analysis.records("collectives"))
    assert sum(row.exposed_wait_ns for row in rows) == expected["wait"]
    assert sum(row.exposed_ns for row in rows) == expected["exposed"]
    assert all(row.wait_ns + row.transfer_ns == row.device_time_ns for row in rows)


FIGURES = {
    0: {"compute": 8.8738, "comm": 105.9919, "exposed": 101.9632, "wait": 98.0273, "transfer": 3.9359},
    1: {"compute": 8.8783, "comm": 100.3753, "exposed": 96.3590, "wait": 92.4121, "transfer": 3.9469},
}


def test_the_published_figures(folder, rank):
    (span,) = analysed(folder).tables["device_spans"].records()
    expected = FIGURES[rank]
    rows = analysed(folder).records("collectives")
    wait = sum(row.exposed_wait_ns for row in rows)
    assert span.compute_ns / 1e6 == pytest.approx(expected["compute"], abs=1e-4)
    assert span.communication_total_ns / 1e6 == pytest.approx(expected["comm"], abs=1e-4)
    assert span.communication_ns / 1e6 == pytest.approx(expected["exposed"], abs=1e-4)
    assert wait / 1e6 == pytest.approx(expected["wait"], abs=1e-4)
    assert (span.communication_ns - wait) / 1e6 == pytest.approx(expected["transfer"], abs=1e-4)


def test_the_profiles_own_step_times_agree(folder):
    analysis = analysed(folder)
    (span,), (stated,) = analysis.tables["device_spans"].records(), analysis.trace.vendor.steps
    # The vendor cuts every duration to whole ns.
    assert span.compute_ns == pytest.approx(stated.computing, abs=200)
    assert span.communication_total_ns == pytest.approx(stated.communication, abs=200)
    assert span.communication_ns == pytest.approx(stated.not_overlapped, abs=200)
    assert not any(check.message.startswith("vendor_differs") for check in analysis.checks)


def test_what_the_events_are(folder):
    trace = analysed(folder).trace
    assert len(of_category(trace, "kernel")) == 187 + 4
    assert len(of_category(trace, "gpu_memcpy")) == 24
    assert len(of_category(trace, "hccl_task")) == 4 * 74 == len(trace.events.fields["part_of"].row)
    assert len(texts(trace, "op_type")) == 187
    assert set(texts(trace, "core")) == {"AI_CORE", "AI_VECTOR_CORE", "MIX_AIV", "DSA_SQE"}
    assert trace.origin.level == "Level1"


def test_every_launch_is_linked_and_has_its_operator(folder):
    analysis = analysed(folder)
    (launches,) = analysis.records("launches")
    assert (launches.linked, launches.unlinked) == (215, 0)
    ops = {op.op: op for op in analysis.records("operators")}
    assert ops
    device_time = sum(row.device_time_ns for row in analysis.records("kernel_groups"))
    assert sum(op.device_self_ns for op in ops.values()) == device_time
    assert ops["aten::item"].calls == 27


def test_host_waits_are_sync_points(shared_traces):
    analysis = analysed(shared_traces / LEVEL_1 / "rank0_ascend_pt")
    blocked = {
        site.op: site.blocked_ns / 1e6
        for site in analysis.tables["sync_points"].records()
        if site.blocked_ns > 1_000_000
    }
    assert blocked["aten::_local_scalar_dense"] == pytest.approx(91.9, abs=0.2)
    assert blocked["aten::copy_"] == pytest.approx(6.1, abs=0.1)


def test_modules_have_forward_and_backward(folder):
    modules = list(analysed(folder).records("modules"))
    convolutions = [row for row in modules if "Conv2d" in row.module]
    assert len(convolutions) == 5
    assert all(row.forward_self_ns > 0 and row.backward_self_ns > 0 for row in convolutions)


def test_both_ranks_wait_for_rank_5(folder):
    longest = max(analysed(folder).records("collectives"), key=lambda row: row.wait_ns)
    assert longest.waited_for == 5
    assert longest.wait_ns > 70_000_000


def test_the_ranks_are_one_run_without_leftovers(shared_traces):
    from traceanalyze import load_runs

    (run,) = load_runs(shared_traces / LEVEL_1)
    assert (run.name, run.ranks, run.notes) == ("level1", (0, 1), ())


def test_no_address_is_kept(folder):
    trace = analysed(folder).trace
    assert b"%enp" not in trace.strings.blob.tobytes()
