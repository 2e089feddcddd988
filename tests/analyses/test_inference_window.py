from __future__ import annotations

import re

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.analyze import analyze_context, context_of
from traceanalyze.analyses.options import Options
from traceanalyze.model.classify import ClassifyOptions
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.contents.verdict import verdict

US, MS = 1_000, 1_000_000
PREFILL, DECODE, MIXED, OTHER = (f"inference_{name}" for name in ("prefill", "decode", "mixed", "other"))


class Found:
    """Both tables of an analysis."""

    def __init__(self, analysis):
        self.table, self.steady_table = (analysis.tables[key] for key in ("inference_phases", "steady_state"))
        self.phases = list(self.table.records())
        self.notes = {note.key: {name: value for name, _, value in note.values} for note in self.table.notes}
        self.left_out = set(self.notes.get("inference_left_out", {}).values())
        self.absent = self.table.absent

    @property
    def steady(self):
        (row,) = self.steady_table.records()
        return row


class Server(TraceBuilder):
    """Iterations one after another; µs. Each launches one kernel that ends with it."""

    def __init__(self):
        super().__init__()
        self.now = 1000.0

    def run(self, name, time, *, host=50.0, idle=100.0, wait=0.0):
        self.annotation(name, self.now, host)
        self.op("aten::mm", self.now + 5, 20)
        self.launch(self.now + 10, 5, self.now + idle, time - idle)
        self.now += time + wait
        return self

    def found(self, options=None):
        return Found(self.analyze(options))


def serving():
    """A prefill of 4 ms; six decodes of about 1 ms; a mixed one; three more decodes."""
    server = Server().run("step[EXTEND bs=2 toks=96]", 4000)
    for time in (1000, 1100, 900, 1000, 1010, 990):
        server.run("step[DECODE bs=2]", time)
    server.run("step[MIXED bs=3 toks=40]", 3000)
    for time in (1000, 1000, 1000):
        server.run("step[DECODE bs=3]", time)
    return server


def test_phases_add_up():
    found = serving().found()
    assert [(each.phase, each.iterations, each.iteration_sum_ns) for each in found.phases] == [
        (PREFILL, 1, 4 * MS),
        (DECODE, 9, 9 * MS),
        (MIXED, 1, 3 * MS),
    ]
    assert [each.busy_sum_ns for each in found.phases] == [3900 * US, 8100 * US, 2900 * US]
    assert [each.host_sum_ns for each in found.phases] == [50 * US, 450 * US, 50 * US]
    decode = found.phases[1]
    times = decode.iteration_sum_ns, decode.iteration_mean_ns, decode.iteration_p50_ns, decode.iteration_p90_ns
    assert times == (9 * MS, MS, MS, 1028 * US)
    assert found.left_out == set()


def test_the_steady_state_is_the_longest_run_of_like_iterations():
    steady = serving().found().steady
    assert steady == (DECODE, 6, 5 * MS, 11 * MS, MS, 2, 12, 2000.0, False)


def test_another_batch_size_ends_the_run():
    server = Server()
    for size in (4, 4, 4, 4, 3, 3, 3, 3, 3):
        server.run(f"execute_context_0(0)_generation_{size}({size})", 1000)
    steady = server.found().steady
    assert (steady.iterations, steady.requests, steady.tokens) == (5, 3, 15)
    assert (steady.start_ns, steady.end_ns) == (5 * MS, 10 * MS)


def test_a_slow_iteration_ends_the_run():
    server = Server()
    for time in (1000, 1000, 1000, 1250, 1000, 1000, 1000, 1000):
        server.run("step[DECODE bs=2]", time)
    assert server.found().steady.iterations == 4


def test_waiting_for_requests_is_in_no_iteration():
    server = Server()
    for _ in range(4):
        server.run("decode", 1000, wait=5000)
    found = server.found()
    assert found.phases[0].iteration_sum_ns == 4 * MS
    assert (found.steady.iterations, found.steady.iteration_mean_ns) == (4, MS)
    assert found.steady.end_ns - found.steady.start_ns == 19 * MS


@pytest.mark.parametrize(("wait", "told"), [(148, None), (148.5, 0.1), (5000, 15 / 19)])
def test_the_verdict_tells_the_time_between_iterations_from_a_tenth_on(wait, told):
    """Four iterations of 1 ms, and three times so much between them."""
    server = Server()
    for _ in range(4):
        server.run("step[DECODE bs=2]", 1000, wait=wait)
    between = [each for each in verdict(server.analyze()) if each.key == "between_iterations"]
    assert [{label: value for label, _, value in each.values} for each in between] == (
        [] if told is None else [{"time": wait * US, "share": pytest.approx(told, abs=1e-3)}]
    )


def test_device_work_launched_after_the_annotation_belongs_to_the_iteration():
    server = Server().run("decode", 1000, wait=1000)
    server.launch(1100, 5, 2000, 300)
    server.run("decode", 1000)
    assert server.found().phases[0].iteration_sum_ns == 2300 * US


def test_few_or_only_prefill_iterations_are_no_steady_state():
    assert Server().run("decode", 10).run("decode", 10).found().steady_table.absent == NotMeasured("no_steady_state")
    server = Server()
    for _ in range(5):
        server.run("prefill", 1000)
    assert server.found().steady_table.absent == NotMeasured("no_steady_state")


def test_of_nested_styles_the_one_that_tells_most_counts():
    server = Server()
    for _ in range(3):
        server.annotation("step[DECODE bs=8]", server.now, 60)
        server.run("execute_context_0(0)_generation_8(8)", 1000)
    found = server.found()
    assert [(each.phase, each.iterations) for each in found.phases] == [(DECODE, 3)]
    assert (found.left_out, found.steady.tokens) == ({3}, 24)


def test_iterations_without_a_phase_are_counted():
    server = Server()
    server.annotation("execute_model", 1001, 40)
    found = server.run("step[IDLE]", 1000).found()
    assert [(each.phase, each.iterations) for each in found.phases] == [(OTHER, 1)]
    assert found.left_out == {1}


def test_training_with_a_range_named_decode_is_no_inference():
    server = Server().run("decode", 1000)
    server.op("AddmmBackward0", server.now, 10)
    assert server.found().absent == NotMeasured("no_inference_annotations")


def test_annotations_of_the_device_alone():
    trace = TraceBuilder()
    for number in range(3):
        at = 1000.0 * number
        trace.event("gpu_user_annotation", "step[DECODE bs=1]", at, 800, pid=0, tid=7)
        trace.device(at, 600)
    found = Found(trace.analyze())
    assert [(each.phase, each.iterations, each.iteration_sum_ns, each.busy_sum_ns) for each in found.phases] == [
        (DECODE, 3, 2400 * US, 1800 * US)
    ]
    assert found.phases[0].host_sum_ns == NotMeasured("no_annotations")
    assert found.steady.iterations == 3


def test_without_a_device_the_host_is_measured():
    trace = TraceBuilder()
    for number in range(3):
        trace.annotation("decode", 1000.0 * number, 500)
    found = Found(trace.analyze())
    assert (found.phases[0].host_sum_ns, found.phases[0].busy_sum_ns) == (1500 * US, NotMeasured("no_device_events"))


def test_only_iterations_of_the_chosen_steps():
    server = Server()
    server.step(1, 1000, 1500)
    server.run("decode", 1000, wait=1000)
    server.step(2, 3000, 1500)
    server.run("decode", 1000)
    found = server.found(Options(steps=lambda steps: steps.start > 2 * MS))
    assert found.phases[0].iterations == 1


def test_other_traces():
    trace = TraceBuilder()
    trace.annotation("## forward ##", 0, 10)
    trace.event("gpu_user_annotation", "capture_32_DECODE", 0, 10, pid=0, tid=7)
    assert trace.analyze().tables["inference_phases"].absent == NotMeasured("no_inference_annotations")


def test_iterations_are_the_steps_where_there_are_no_others():
    analysis = serving().analyze()
    assert analysis.steps.name == tuple(f"iteration {number}" for number in range(11))
    # The prefill is the first and four times as long as a decode: it is neither a slow start nor incomplete.
    assert analysis.steps.counted.all()
    assert int(analysis.steps.time.sum()) == 16 * MS
    assert not [check for check in analysis.checks if check.id in {"Q06", "Q07"}]


def test_tokens_and_requests_by_phase():
    decode, mixed = serving().found().phases[1:]
    # Six iterations of two requests, three of three: 21 tokens in 9 ms.
    assert (decode.requests_mean, decode.tokens, round(decode.tokens_per_second)) == (21 / 9, 21, 2333)
    assert (mixed.requests_mean, mixed.tokens) == (3, 40)
    unknown = Server().run("step[MIXED bs=3]", 1000).found().phases[0]
    cells = unknown.tokens, unknown.tokens_per_second, unknown.tokens_at_least
    assert cells == (NotMeasured("not_in_name"),) * 3


def test_an_iteration_that_waits_for_work_before_the_recording_has_at_least_its_tokens():
    """Its stream's first work begins 4 ms after its launch; the next iteration takes 1 ms: 4 tokens in 6 ms."""
    server = Server().run("step[DECODE bs=2]", 5000, idle=4000).run("step[DECODE bs=2]", 1000)
    found = server.found()
    (row,) = found.phases
    assert (row.tokens, round(row.tokens_per_second), row.tokens_at_least) == (4, 667, True)
    # Without the host's 15 µs and a latency of 10 µs.
    assert found.notes == {"inference_begun_before": {"time": (4000 - 15 - 10) * US}}
    assert serving().found().phases[1].tokens_at_least is False
    # 2 iterations of decode, 3.000 ms each: at least …
    (sentence,) = [each for each in verdict(server.analyze()) if each.key.startswith("served")]
    assert (sentence.key, round(sentence.values[-1][2])) == ("served_at_least", 667)


@pytest.mark.parametrize("device", [True, False])
def test_a_verdict_alone_is_told_in_tokens_as_well(device):
    server = serving() if device else TraceBuilder()
    for at in () if device else (0, 1000):
        server.annotation("step[DECODE bs=2]", at, 1000)
    of_detail = (analyze_context(context_of(server.trace(), Options()), detail) for detail in Detail)
    alone, *others = ([each for each in verdict(analysis) if each.key.startswith("served")] for analysis in of_detail)
    assert alone
    assert others == [alone, alone]


def test_where_some_iterations_tell_no_tokens_there_are_at_least_those_of_others():
    server = Server().run("step[EXTEND bs=2 toks=96]", 4000).run("step[EXTEND bs=1]", 1000)
    found = server.run("step[DECODE bs=3]", 1000).found()
    told = [(row.tokens, round(row.tokens_per_second), row.tokens_at_least) for row in found.phases]
    assert told == [(96, 19_200, True), (3, 3000, False)]
    assert found.notes == {"inference_in_part": {"count": 1, "iterations": 3}}


@pytest.mark.parametrize("before", [2, 0])
def test_an_iteration_under_way_when_recording_stops_counts_with_no_tokens_a_second(before):
    """Torch ends its annotation with the recording; of its device work only 150 µs are there."""
    server = Server()
    for _ in range(before):
        server.run("step[DECODE bs=2]", 1000)
    server.run("step[DECODE bs=2]", 250, host=300)
    server.event("Trace", "PyTorch Profiler (0)", 900, server.now + 50 - 900, pid="Traces", tid="PyTorch Profiler")
    (row,) = server.found().phases
    cut = NotMeasured("iteration_cut")
    assert (row.iterations, row.tokens_per_second) == ((2, 2000.0) if before else (1, cut))


def test_an_iteration_without_device_work_counts_in_no_mean():
    server = serving()
    server.annotation("step[DECODE bs=2]", server.now, 50)
    analysis = server.analyze()
    assert analysis.steps.complete.tolist() == [True] * 11 + [False]
    assert [row.iterations for row in analysis.records("inference_phases")] == [1, 9, 1]


def test_marked_steps_and_expressions_of_the_user_come_first():
    server = Server()
    server.step(7, 1000, 1500)
    server.run("step[DECODE bs=2]", 1000)
    assert server.analyze().steps.name == ("ProfilerStep#7",)
    marker = ClassifyOptions(step_marker=re.compile("^other$"))
    assert serving().analyze(Options(classify=marker)).steps.name == ("whole trace",)


def test_ranges_of_any_program_named_decode_are_no_steps():
    assert Server().run("decode", 1000).analyze().steps.name == ("whole trace",)


@pytest.mark.parametrize(
    "function",
    [
        "vllm/v1/worker/gpu_model_runner.py(3380): execute_model",
        "/sgl-workspace/sglang/python/sglang/srt/managers/tp_worker.py(445): forward_batch_generation",
    ],
)
def test_without_annotations_the_loop_of_the_server_tells_iterations(function):
    server = Server()
    for _ in range(4):
        server.python(function, server.now, 60)
        server.python("torch/nn/modules/module.py(1): forward", server.now + 1, 40)
        server.run("aten", 1000)
    analysis = server.analyze()
    assert len(analysis.steps) == 4
    assert analysis.steps.time.tolist() == [MS] * 4
    assert [(row.phase, row.iterations) for row in analysis.records("inference_phases")] == [(OTHER, 4)]


def test_a_replayed_graph_is_one_launch():
    server = Server()
    for number in range(3):
        server.annotation("step[DECODE bs=4]", server.now, 50)
        server.api("cudaGraphLaunch", server.now + 10, 20, correlation=900 + number)
        for kernel in range(8):
            server.device(server.now + 100 + 100 * kernel, 100, correlation=900 + number)
        server.now += 1000
    analysis = server.analyze()
    assert analysis.steps.time.tolist() == [900 * US] * 3
    assert [(row.call, row.count) for row in analysis.records("runtime_calls")] == [("cudaGraphLaunch", 3)]


@pytest.mark.parametrize(
    ("file", "left_out"), [("sglang_decode/sglang_Qwen3-8B_decode", {1}), ("vllm_decode_full/graph_execution", set())]
)
def test_recorded_servers(shared_traces, file, left_out):
    from traceanalyze import analyze

    found = Found(analyze(shared_traces / "kineto" / "tracelens" / "inference" / f"{file}.json.gz").analyses[0])
    assert [(each.phase, each.iterations, each.tokens_at_least) for each in found.phases] == [(DECODE, 1, True)]
    assert found.left_out == left_out
