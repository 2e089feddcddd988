"""What a hand-made recording gives, step by step."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.options import Options
from traceanalyze.errors import InputError
from traceanalyze.model.table import NotMeasured
from traceanalyze.regression.budget import Settings
from traceanalyze.regression.environment import KEYS, run_environment
from traceanalyze.regression.explain import Explain
from traceanalyze.regression.rank_sample import rank_sample
from traceanalyze.regression.samples import combined, count_findings
from traceanalyze.rules.finding import Severity

COPY = {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)"}


def training(*, steps=4, wait=0.0, kernels=2, syncs=0, mallocs=0, base=0, slow=0.0):
    """Steps of 1 ms: kernels of 100 µs, one copy of 4096 bytes, and more as asked for; a kernel more in the first."""
    b = TraceBuilder()
    b.header["baseTimeNanoseconds"] = base
    b.header["deviceProperties"] = [{"id": 0, "name": "Example GPU"}]
    period = 1000 + slow
    for number in range(steps):
        at = period * number + 10
        b.step(number, at, period - 10)
        if wait:
            b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, wait)
        begin = at + wait + 20
        for index in range(kernels + (number == 0)):
            t = begin + 110 * index
            b.op("aten::linear", t - 5, 90)
            b.op("aten::mm", t, 20)
            b.launch(t + 1, 5, t + 10, 100, name="gemm_kernel")
        b.copy(begin + 500, 3, begin + 510, 10, name=COPY["name"], bytes=4096)
        for index in range(syncs):
            t = begin + 530 + 50 * index
            b.op("aten::item", t, 30)
            b.api("cudaStreamSynchronize", t + 1, 5)
            b.api("cudaStreamSynchronize", t + 8, 5)
        for index in range(mallocs):
            b.api("cudaMalloc", begin + 700 + 10 * index, 5)
            b.api("cudaFree", begin + 705 + 10 * index, 2)
    # The last launch of the trace, after which sync points are terminal.
    b.launch(period * steps - 20, 2, period * steps - 15, 5, name="tail")
    return b


def measured(builder, selectors=(), **settings):
    return rank_sample(
        builder.trace(), Options(), Settings(**settings), tool_version="0", selectors=selectors, findings=None
    )


def values(builder, name, selectors=(), **settings):
    found = measured(builder, selectors, **settings).values[name]
    return found if isinstance(found, NotMeasured) else found.tolist()


def test_the_first_step_is_warm_up():
    assert measured(training()).steps == ("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3")
    assert len(measured(training(), warmup_steps=0).steps) == 4
    assert values(training(), "kernel.count") == [2, 2, 3]
    assert values(training(), "kernel.count", warmup_steps=0) == [3, 2, 2, 3]


def test_without_a_usable_step_the_trace_is_refused():
    with pytest.raises(InputError, match=r"no usable step: 1 recorded, 1 left out as warm-up \(warmup=0 keeps them\)"):
        measured(training(steps=1))


def test_without_markers_the_whole_trace_is_the_step():
    b = TraceBuilder()
    b.launch(0, 5, 10, 100)
    assert measured(b).steps == ("whole trace",)
    assert values(b, "kernel.count") == [1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kernel.count", [2, 2, 3]),
        ("launch.count", [2, 2, 3]),
        ("sync.count", [3, 3, 3]),
        ("memcpy.h2d_bytes", [4096, 4096, 4096]),
        ("memcpy.d2h_bytes", [0, 0, 0]),
        ("alloc.device_malloc.count", [2, 2, 2]),
        ("alloc.device_free.count", [2, 2, 2]),
        ("collective.count", [0, 0, 0]),
        ("collective.bytes", [0, 0, 0]),
    ],
)
def test_counts_of_every_step(name, expected):
    """Two synchronisations under one operator are one sync point."""
    assert values(training(syncs=3, mallocs=2), name) == expected


def test_times_sum_to_the_step():
    found = measured(training(wait=300)).values
    parts = ("compute.time", "comm.exposed_time", "memops.exposed_time", "idle.time")
    assert sum(found[name] for name in parts).tolist() == found["step.time"].tolist()
    assert found["memops.exposed_time"].tolist() == [10_000] * 3
    assert (found["idle.data_time"] > 299_000).all()
    assert found["gpu.busy_ratio"].tolist() == pytest.approx(
        (100 * (1 - found["idle.time"] / found["step.time"])).tolist()
    )


def test_rates_need_the_number_of_tokens():
    assert "step.tokens_per_s" not in measured(training()).values
    found = measured(training(), tokens_per_step=1000.0, samples_per_step=8.0).values
    assert (found["step.tokens_per_s"] * found["step.time"]).tolist() == pytest.approx([1e12] * 3)
    assert (found["step.samples_per_s"] * found["step.time"]).tolist() == pytest.approx([8e9] * 3)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ('kernel["gemm*"].count', [2, 2, 2]),
        ('kernel["gemm*"].device_time', [200_000] * 3),
        ('op["aten::mm"].count', [2, 2, 2]),
        ('op["aten::*m*"].device_time', [200_000] * 3),
        ('op["aten::mm"].host_time', [40_000] * 3),
        ('op["aten::linear"].device_time', [200_000] * 3),
    ],
)
def test_selectors(selector, expected):
    assert values(training(), selector, (selector,)) == expected


@pytest.mark.parametrize("selector", ['op["aten::nm"].count', 'kernel["x"].count', 'collective["all_*"].count'])
def test_a_selector_that_fits_nothing_says_so(selector):
    assert values(training(), selector, (selector,)) == NotMeasured("selector_matches_nothing")


def test_modules_by_pattern():
    b = training()
    for number in range(4):
        b.python("nn.Module: Layer_0", 1000.0 * number + 20, 300)
        b.python("nn.Module: Linear_1", 1000.0 * number + 21, 200)
    for pattern in ("Layer_0", "*Linear_1", "Layer_0.Linear_1", "Lay*"):
        name = f'module["{pattern}"].device_time'
        assert values(b, name, (name,)) == [200_000] * 3, pattern


def collectives():
    b = TraceBuilder()
    for number in range(3):
        at = 1000.0 * number
        b.step(number, at, 900)
        for index in range(2):
            t = at + 100 + 200 * index
            more = {
                "Collective name": "allreduce",
                "In msg nelems": 1000,
                "Out msg nelems": 1000,
                "dtype": "Float",
                "Group size": 4,
            }
            b.launch(t, 5, t + 20, 100, name="ncclDevKernel_AllReduce", **more)
    return b


def test_collectives_are_counted_with_their_bytes():
    b = collectives()
    assert values(b, "collective.count") == [2, 2]
    assert values(b, "collective.bytes") == [8000, 8000]
    assert values(b, "comm.overlap_ratio") == [0, 0]
    for suffix, expected in (("count", [2, 2]), ("bytes", [8000, 8000]), ("device_time", [200_000] * 2)):
        name = f'collective["all_reduce"].{suffix}'
        assert values(b, name, (name,)) == expected
    name = 'collective["all_reduce"].busbw'
    assert values(b, name, (name,)) == pytest.approx([4000 / 100_000 * 2 * 3 / 4])


def test_compiled_code():
    b = training()
    assert values(b, "compile.graph_break.count") == NotMeasured("no_compiled_regions")
    for index, name in enumerate(("0/0", "0/0", "0/1", "1/0", "2/0")):
        b.op(f"Torch-Compiled Region: {name}", 1100 + 20 * index, 10)
    assert values(b, "compile.graph_break.count") == [2]
    assert values(b, "compile.recompile.count") == [1]


def test_memory_peaks():
    b = training()
    assert values(b, "memory.allocated_peak") == NotMeasured("no_memory_records")
    b.memory(1200, 100, allocated=5000, reserved=9000)
    b.memory(1300, -100, allocated=4900, reserved=9000)
    assert values(b, "memory.allocated_peak") == [5000]
    assert values(b, "memory.reserved_peak") == [9000]


def test_ranks_are_put_together_step_by_step():
    ranks = [(number, measured(training(wait=wait))) for number, wait in enumerate((0.0, 100.0, 300.0))]
    samples, missing, steps = combined(ranks)
    assert steps == 3
    assert samples["kernel.count"].per_step == (2, 2, 3)
    each = [sample.values["idle.time"] for _, sample in ranks]
    assert samples["idle.time"].per_step == tuple(sorted(column)[1] for column in zip(*each, strict=True))
    assert samples["step.time"].value == max(float(sample.values["step.time"][1]) for _, sample in ranks)
    assert samples["rank.skew"].value == 0
    assert "kernel.count" not in missing


def test_one_rank_has_no_skew():
    _, missing, _ = combined([(0, measured(training()))])
    assert missing["rank.skew"] == "one_rank"


def test_the_environment():
    found = measured(training(), warmup_steps=2).environment
    assert found["device"] == "Example GPU"
    assert found["profiler_options"] == ("device", "host", "runtime")
    assert (found["torch"], found["world_size"], found["step_marker"], found["usable_steps"]) == (
        None,
        None,
        "ProfilerStep",
        2,
    )


def test_the_workload_is_runs_of_operators_per_step():
    assert measured(training(syncs=1)).workload == {"aten::linear": 2, "aten::mm": 2, "aten::item": 1}


def test_what_is_kept_to_explain_sums_to_the_steps():
    sample = measured(training(wait=300))
    assert sum(sample.explain.parts.values()) == sample.values["step.time"].sum()
    by_part = {}
    for (part, _, _), amounts in sample.explain.reasons.items():
        by_part[part] = by_part.get(part, 0) + amounts.time
    assert by_part == {part: time for part, time in sample.explain.parts.items() if time}


def test_host_only_traces_have_a_step_time_and_no_device_metrics():
    b = TraceBuilder()
    for number in range(3):
        b.step(number, 1000.0 * number, 900)
        b.op("aten::mm", 1000.0 * number + 10, 300)
    assert values(b, "step.time") == [900_000, 900_000]
    assert values(b, "compute.time") == NotMeasured("no_device_events")
    assert sum(measured(b).explain.parts.values()) == 1_800_000


def test_operators_on_a_host_without_device_have_counts_but_no_device_time():
    b = TraceBuilder()
    for number in range(3):
        b.step(number, 1000.0 * number, 900)
        b.op("aten::mm", 1000.0 * number + 10, 300)
    names = 'op["aten::mm"].count', 'op["aten::mm"].device_time'
    assert values(b, names[0], names) == [1, 1]
    assert values(b, names[1], names) == NotMeasured("no_device_events")


def test_operators_that_took_no_time_on_a_coarse_clock_launched_nothing():
    b = training()
    for number in range(4):
        b.op("aten::alias", 1000.0 * number + 20, 0)
    names = 'op["aten::alias"].count', 'op["aten::alias"].device_time'
    assert values(b, names[0], names) == [1, 1, 1]
    assert values(b, names[1], names) == [0, 0, 0]


def test_findings_are_counted_by_rule():
    found = count_findings(training(wait=400).trace(), Options())
    assert found.by_rule["DAT101"] == 1
    assert found.severe >= 1
    assert "DAT101" not in count_findings(training().trace(), Options()).by_rule


@pytest.mark.parametrize(
    ("wait", "kernels", "rule", "severe", "step"),
    [(300, 2, ("HST107", "python-gap"), True, 990_000), (250, 8, ("DAT101", "loader-wait"), False, 1_010_000)],
)
def test_a_finding_with_a_line_is_kept_with_its_place_and_whether_it_is_severe(wait, kernels, rule, severe, step):
    b = training(wait=wait, kernels=kernels)
    for number in range(4):
        b.python("train.py(3): load", 1000 * number + 10, wait + 110)
    place = count_findings(b.trace(), Options()).places[0]
    assert (place.finding.rule, place.finding.slug) == rule
    assert (place.finding.severity == Severity.HIGH) is severe
    assert (place.file, place.line, place.step, place.platform) == ("train.py", 3, step, "cuda")


def test_steps_marked_on_a_device_that_did_nothing_explain_nothing():
    b = TraceBuilder()
    for number in range(3):
        b.event("gpu_user_annotation", f"ProfilerStep#{number}", 1000 * number, 900, pid=0, tid=7, device=0, stream=7)
    assert measured(b).explain == Explain(2, {})


@pytest.mark.parametrize(("stated", "ranks", "size"), [(None, 1, None), (None, 2, 2), (8, 1, 8), (8, 2, 8)])
def test_a_run_has_as_many_ranks_as_stated_or_as_there_are_of_several(stated, ranks, size):
    one = dict.fromkeys(KEYS) | {"device_count": 1, "world_size": stated}
    found = run_environment([one] * ranks, 3)
    assert (found["world_size"], found["device_count"], found["usable_steps"]) == (size, ranks, 3)


@pytest.mark.parametrize(("calls", "points"), [(0, 0), (1, 1), (2, 1)])
def test_calls_under_the_very_first_operator_are_one_sync_point(calls, points):
    b = TraceBuilder()
    b.op("aten::item", 10, 30)  # the first event of the file
    b.step(0, 0, 100)
    for call in range(calls):
        b.api("cudaStreamSynchronize", 12 + 8 * call, 5)
    b.launch(60, 5, 70, 10)
    b.step(1, 100, 100)
    b.launch(160, 5, 170, 10)
    assert values(b, "sync.count", warmup_steps=0) == [points, 0]
