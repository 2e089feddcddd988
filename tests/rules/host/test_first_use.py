"""Libraries that are loaded and graphs that are captured make no slow host; small copies pay for small copies only."""

from __future__ import annotations

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.rules.host.cases import copied, optimized, stopped
from tests.rules.host.cases_edges import waited_lines
from tests.rules.kernel.test_on_traces import outcome_of, said
from tests.rules.make import STEP, busy, crowded, finding, judged, kernel, known, program, waited
from traceanalyze.model import intervals
from traceanalyze.rules.common.one_off import one_off
from traceanalyze.rules.finding import Severity

US = 1000


def values(found):
    return {each.label: each.value for each in found.evidence}


def loading(api="cudaLaunchKernel"):
    """A step of 60 ms with a call of 40 ms that the device waits for; the others are busy."""

    def body(b, at, number):
        if number == 1:
            b.op("aten::conv2d", at, 40_020)
            b.launch(at + 5, 40_000, at + 40_020, 500, api=api)
            at += 40_510
        period = 150 if number == 1 else 460
        for part in range(129):
            kernel(b, at + part * period, period - 22)

    return program(body, length=60_000)


def test_a_call_that_is_long_only_once_is_a_note_without_saving():
    (one,) = judged(loading(), "HST101", "CGR106").findings
    assert (one.rule, one.sentence, one.saving, one.once) == ("CGR106", "", None, True)
    assert one.severity == Severity.INFO
    # 40.02 ms in one of four steps; the place is that gap.
    assert values(one)["idle"] == pytest.approx(40_020 * US / 4, rel=0.01)
    assert one.cost == values(one)["idle"]
    assert one.evidence[2].start // US == 60_000
    assert values(one)["longest"] == pytest.approx(40_020 * US, rel=0.01)


def allocating(slow):
    """Steps of 40 ms, which are kernels but for an allocation of 20 ms at the start of some."""

    def body(b, at, number):
        time = 20_000 if number in slow else 20
        b.op("aten::empty", at, time + 20)
        b.api("cudaMalloc", at + 5, time)
        period = (40_000 - time - 50) // 44
        for part in range(44):
            kernel(b, at + time + 30 + part * period, period - 22)

    return body


@pytest.mark.parametrize(
    ("steps", "slow", "rule"), [(2, {1}, "CGR106"), (2, {0, 1}, "HST101"), (4, {0, 1, 2, 3}, "HST101")]
)
def test_a_long_call_in_every_step_is_not_for_the_first_time(steps, slow, rule):
    (one,) = judged(program(allocating(slow), steps=steps, length=40_000), "HST101", "CGR106").findings
    assert (one.rule, one.once) == (rule, rule == "CGR106")
    assert one.severity == (Severity.INFO if one.once else Severity.HIGH)


def test_what_comes_back_in_steps_that_were_not_chosen_is_not_done_once(tmp_path):
    program(allocating(range(4)), length=40_000).write(tmp_path / "trace.json")
    found = traceanalyze.analyze(tmp_path / "trace.json", steps="1", select=["HST101", "CGR106"]).findings
    assert [one.rule for one in found] == ["HST101"]


@pytest.mark.parametrize(("length", "first"), [(199, True), (201, True), (201, False)])
def test_the_long_first_launch_of_a_kernel_loads_its_code(length, first):
    """Ten times the usual 20 µs; of a kernel that ran before it is slow launching."""

    def body(b, at, number):
        for part in range(20):
            kernel(b, at + 100 * part, 40, host=40)
        name = "other" if first or number != 1 else "kernel"
        kernel(b, at + 2000, 40, host=2 * (length if number == 1 else 20), name=name if number else "kernel")

    facts = known(program(body, length=8000))
    once = pytest.approx(length * US, rel=0.01) if first and length > 200 else 0
    assert intervals.total(one_off(facts).every) == once


@pytest.mark.parametrize("name", ["cudaOccupancyMaxActiveBlocksPerMultiprocessor", "cuModuleLoadData", "cudaGetDevice"])
def test_a_long_call_that_asks_for_code_loads_it(name):
    def body(b, at, number):
        for part in range(20):
            kernel(b, at + 100 * part, 40, host=40)
        if number == 1:
            b.api(name, at + 3000, 900)
        kernel(b, at + 3950, 4000)

    once = intervals.total(one_off(known(program(body, length=8000))).every)
    assert once == (0 if name == "cudaGetDevice" else 900 * US)


def growing(*slow, freed=()):
    """Steps of 8 ms with twenty allocations of 200 µs that the device waits for; memory is given back in some."""

    def body(b, at, number):
        if number in freed:
            b.api("cudaFree", at + 10, 5)
        for part in range(20):
            t = at + 400 * part
            if number in slow:
                b.api("cudaMalloc", t + 20, 200)
                kernel(b, t + 220, 159)
            else:
                kernel(b, t, 379)

    return program(body, length=8000)


@pytest.mark.parametrize(
    ("slow", "freed", "once"),
    [((1,), (), True), ((0, 1), (0,), True), ((0, 1), (1,), False), ((0, 1, 2), (), False), ((0, 2, 3), (), False)],
)
def test_what_a_pool_that_only_grows_takes_in_first_steps_is_taken_once(slow, freed, once):
    """Twenty calls of 200 µs in each of those steps, over four steps; before it grows a library may give some back."""
    found = {one.rule: one for one in judged(growing(*slow, freed=freed), "HST101", "CGR106").findings}
    taken = len(slow) * 20 * 200 * US / 4
    assert set(found) == ({"CGR106"} if once else {"HST101"})
    (one,) = found.values()
    assert one.cost == taken if once else one.saving > taken


def test_a_pass_that_takes_its_memory_is_done_once(shared_traces):
    """After the last cudaFree 36 calls take memory, 21.7 ms in all; before that the libraries start."""
    path = "kineto/switch_transformers/22fff6*"
    found = {one.rule: one for one in said(shared_traces, path, "HST101", "CGR106")}
    assert "HST101" not in found
    assert found["CGR106"].cost > 225_000_000


@pytest.mark.parametrize(("length", "where", "once"), [(10_000, 3, True), (9_999, 3, False), (10_000, 1, False)])
def test_nothing_recorded_at_the_end_of_the_last_step_is_told_once(length, where, once):
    """One of four steps goes on for so long after its last kernel, 1 µs before its 2 ms are over."""
    b, at = TraceBuilder(), 0
    for number in range(4):
        more = (length - 1) * (number == where)
        b.step(number, at, STEP + more)
        busy(b, at, number)
        at += STEP + more
    found = [(one.sentence, one.cost) for one in judged(b, "HST107", "CGR106").findings]
    assert found == ([("end", length * US / 4)] if once else [])


def test_a_recording_that_goes_on_without_work_says_so_in_its_verdict(shared_traces):
    """80.42 ms after the last kernel of step 21, of six steps of 142.8 ms."""
    (path,) = shared_traces.glob("kineto/kineto_tb/samples/resnet50_num_workers_4/*1623213129365*")
    (values,) = (one.values for one in traceanalyze.analyze(path).verdict_messages if one.key == "last_end")
    assert [value for _, _, value in values] == [80_423_000, pytest.approx(80_423 / 6 / 142_808, rel=0.001)]


def middle(first=3, again=None):
    """A kernel at once; another stream's first work waits 50 ms, then kernels without a pause for 20 ms."""
    b = TraceBuilder()
    for part in range(41):
        b.launch(100 + 10 * part, 5, 50_000 + 500 * part + (again or 0) * (part == 40), 500, stream=3)
    b.launch(0, 5, 10, 90, stream=first)
    return b


@pytest.mark.parametrize(("first", "again", "before"), [(7, 0, True), (3, 0, False), (7, 30_000, False)])
def test_what_was_launched_before_the_recording_is_no_cause(first, again, before):
    """Idle from 105 µs to 50 ms; the same stream ran before, or waits as long again: something in the program."""
    outcome = judged(middle(first, again), "SYN109", "HST110")
    assert [one.rule for one in outcome.findings] == ([] if before else ["SYN109", "HST110"])
    parts = [(one.part, one.why) for one in judged(middle(first, again)).unexplained if one.part != "compute"]
    assert parts == ([("device_dependency", "begun_before")] if before else [])


def test_decoding_that_waits_for_its_prefill_is_no_underused_device(shared_traces):
    """Launched at 0.12 ms after a hipStreamWaitEvent, begun at 463.38 ms; from there on it is busy 9.8 of 10.4 ms."""
    outcome = outcome_of(shared_traces, "kineto/tracelens/inference/*/sglang_Qwen3*")
    assert {"SYN109", "HST110"}.isdisjoint(one.rule for one in outcome.findings)
    (part,) = outcome.unexplained
    assert (part.why, part.share) == ("begun_before", pytest.approx(463.24 / 473.75, abs=0.001))


def test_an_excerpt_has_no_slow_host_and_no_python_between_its_operators():
    """Seven launches in two steps say nothing about the host; eight do, and so do three steps."""
    rules = "HST101", "HST107", "HST114", "SYN109"

    def launching(*counts):
        def body(b, at, number):
            for part in range(counts[number]):
                kernel(b, at + 300 * part, 5, host=100)

        return program(body, steps=len(counts), length=20_000)

    assert judged(launching(4, 3), *rules).findings == ()
    assert [one.rule for one in judged(launching(4, 4), *rules).findings] == ["HST107"]
    assert [one.rule for one in judged(launching(2, 2, 2), *rules).findings] == ["HST107"]
    (part,) = judged(launching(4, 3)).unexplained
    assert (part.part, part.why) == ("idle", "excerpt")
    # 35 µs of 40 ms.
    assert part.share == pytest.approx(1 - 35 / 40_000, rel=0.01)
    # Beside 32 kernels without launches it is the launches that were not recorded.
    for count in (28, 29):
        trace = launching(3)
        for part in range(count):
            trace.device(10_000 + 5 * part, 5)
        assert len(judged(trace, "HST107").findings) == (count == 29)


def test_a_host_that_is_always_slow_is_told_as_before():
    (one,) = judged(program(crowded), "HST101").findings
    assert one.sentence == ""
    assert one.saving > 0


def test_a_slow_host_is_not_told_again_as_too_little_work():
    assert judged(program(crowded), "HST110").findings != ()
    assert [one.rule for one in judged(program(crowded), "HST101", "HST110").findings] == ["HST101"]


def captured(*in_steps):
    """A graph is captured in some steps, for 1840 µs from 2102 µs on; all others are busy."""

    def body(b, at, number):
        if number not in in_steps:
            busy(b, at, number)
            return
        for part in range(3):  # As many kernels as in the other steps, so that it is complete.
            kernel(b, at + 30 * part, 5)
        b.op("aten::mm", at + 100, STEP - 120)
        b.api("cudaStreamBeginCapture", at + 102, 3)
        b.api("cudaStreamEndCapture", at + STEP - 40, 3)
        b.launch(at + STEP - 30, 5, at + STEP - 20, 10)

    return program(body)


def test_the_capture_of_a_graph_is_no_slow_host():
    (one,) = judged(captured(1), "HST101", "HST107", "CGR106").findings
    assert (one.sentence, one.once, one.cost) == ("capture", True, (STEP - 40 + 3 - 102) * US / 4)


def test_graphs_that_are_captured_in_every_step_are_slow_launching():
    assert [one.rule for one in judged(captured(0, 1, 2, 3), "HST101", "HST107", "CGR106").findings] == ["HST101"]


def test_small_copies_do_not_pay_for_large_ones():
    def mixed(b, at, number):
        copied(12, 1024)(b, at, number)
        b.copy(at + 700, 5, at + 710, 280, name="Memcpy HtoD (Pinned -> Device)", bytes=64 << 20)

    small, both = (values(finding(waited(body), "HST109")) for body in (copied(12, 1024), mixed))
    assert both["each"] == 12
    assert both["time"] == pytest.approx(small["time"], rel=0.02)


@pytest.mark.parametrize(
    ("name", "rule"), [("Memcpy HtoD (Pageable -> Device)", "HST109"), ("Memcpy DtoH (Device -> Pageable)", "SYN104")]
)
def test_small_copies_that_hold_the_host_up_are_one_cause_but_not_what_it_reads(name, rule):
    """12 copies of 256 B a step, each in an operator of 50 µs, after which the host needs 20 for a kernel of 30 µs."""

    def body(b, at, number):
        for part in range(12):
            t = at + 100 * part
            b.op("aten::copy_", t, 50)
            b.copy(t + 5, 10, t + 40, 2, name=name, bytes=256)
            b.api("cudaStreamSynchronize", t + 20, 25)
            kernel(b, t + 60, 30, host=10)

    (one,) = judged(waited(body, length=1300), "HST109", "SYN104", "SYN105").findings
    assert one.rule == rule
    if rule == "HST109":
        assert (values(one)["each"], one.cost) == (12, 12 * 70 * US)
        assert one.least < 11 * 50 * US * 0.9 < one.most  # One copy of 12 stays.


def test_without_steps_the_number_of_copies_says_nothing():
    trace = program(copied(12, 1024), steps=1)
    trace.events = [event for event in trace.events if not str(event.get("name", "")).startswith("ProfilerStep")]
    trace.copy(100_000, 5, 100_010, 1, name="Memcpy HtoD (Pinned -> Device)", bytes=1024)
    assert finding(trace, "HST109") is None


def test_a_list_optimizer_of_few_kernels_is_as_good_as_a_fused_one():
    assert finding(program(optimized("aten::_foreach_add_", 2)), "HST111") is None


def test_a_program_that_hardly_uses_the_device_does_not_collect_garbage():
    assert finding(program(stopped({1, 3}), length=20_000), "HST104") is not None

    def idle(b, at, number):
        kernel(b, at, 50)
        kernel(b, at + 13_000, 50)

    assert finding(program(idle, length=20_000), "HST104") is None
    assert finding(program(idle, length=20_000), "HST107") is not None


def test_a_healthy_program_has_neither():
    assert judged(program(busy), "HST101", "HST109").findings == ()


def test_compilation_in_a_first_step_that_no_mean_contains_is_told_with_its_cost():
    trace = program(busy)
    trace.step(9, -10_000, 10_000)
    trace.annotation("_compile.compile_inner (dynamo_timed)", -9_900, 8_000)
    for part in range(4):
        kernel(trace, -9_990 if part == 0 else -1_500 + 100 * part, 50)
    (one,) = judged(trace, "CGR106", "CGR102").findings
    # The device is done with its first kernel at 80 µs, before the compiler begins at 100 µs.
    assert (one.sentence, one.once, one.cost, one.saving) == ("start_compile", True, 8_000 * US, None)


def test_a_slow_host_and_its_work_are_not_told_of_the_same_time():
    """Per step eight kernels of 10 µs every 400 µs with operators between them, then 6 ms of nothing on the host."""

    def body(b, at, number):
        for place in range(8):
            b.op("aten::slow", at + 400 * place, 290)
            b.launch(at + 400 * place + 280, 5, at + 400 * place + 290, 10)
        b.op("aten::last", at + 9_200, 290)
        b.launch(at + 9_480, 5, at + 9_490, 10)

    found = {one.rule: one for one in judged(program(body, length=9_600), "HST101", "HST107").findings}
    idle = {
        rule: next(each.value for each in one.evidence if each.label == "idle") / 1000 for rule, one in found.items()
    }
    # From the end of the last operator of eight, 3090 µs, to 9200; between operators the host is idle for 110 µs.
    assert idle["HST107"] == pytest.approx(9_200 - 3_090, abs=100)
    assert sum(idle.values()) <= 9_600 - 9 * 10


@pytest.mark.parametrize(("longest", "sentence"), [(1400, "lines"), (1300, "some_lines")])
def test_most_of_it_is_half_or_more(longest, sentence):
    """The device waits for 4000 less four kernels of 300 µs and operators of 20 µs: 2720 µs, half of it 1360."""
    found = finding(waited_lines(200, longest, 100, 100), "HST107")
    assert (found.saving, found.sentence, found.scope.ops[0]) == (2720 * US, sentence, "train.py(11): part_1")


@pytest.mark.parametrize(
    ("frames", "less", "severity"), [(0, 0, Severity.HIGH), (60, 606, Severity.HIGH), (140, 1200, Severity.MEDIUM)]
)
def test_what_recording_slows_down_is_no_slow_host(frames, less, severity):
    """Ten kernels of 80 µs, one every 200 µs; a function that is not recorded is 1 µs shorter."""

    def body(b, at, number):
        for part in range(10):
            for each in range(frames):
                b.python("torch/nn/modules/module.py(1): forward", at + 200 * part + each / 2, 75 - each / 2)
            kernel(b, at + 200 * part + 80, 80, host=100)

    (one,) = judged(program(body, length=2000), "HST101").findings
    assert 950 * US < one.saving < 1200 * US
    # A replay is trusted to an eighth of what it saves.
    least = min(one.saving - less * US, 0.88 * one.saving)
    assert one.low == pytest.approx(max(0, least), abs=25 * US)
    assert (one.severity, one.confidence < 2) == (severity, frames > 0)


@pytest.mark.parametrize(("queued", "told"), [(False, True), (True, False)])
def test_collectives_that_a_late_host_launches_have_an_owner(queued, told):
    """Three all-gathers of 300 µs a step, each beside no compute: launched just before they begin, or all at first."""
    gather = {"name": "ncclDevKernel_AllGather_RING_LL", "stream": 20}

    def body(b, at, number):
        b.op("aten::zeros", at, 30)
        for part in range(3):
            t = at + 30 + 640 * part
            b.op("c10d::all_gather", t - 25 if queued else t, 20 if queued else 330)
            b.launch(at + 10 + 2 * part if queued else t + 320, 2 if queued else 8, t + 330, 300, **gather)
            b.op("aten::mm", t + 335, 290)
            b.launch(t + 610, 10, t + 631, 338)

    found = judged(program(body), "HST101").findings
    assert [(one.sentence, one.cost, one.saving, one.severity) for one in found] == [
        ("comm", 900 * US, None, Severity.MEDIUM)
    ] * told


@pytest.mark.parametrize(
    ("operators", "first"),
    [
        (("aten::select", "aten::eq", "aten::mul"), "vectorise"),
        (("aten::select", "aten::linear", "aten::mul"), "fewer_kernels"),  # Layers of a model.
        (("aten::relu", "aten::eq", "aten::mul"), "fewer_kernels"),
    ],
)
def test_a_loop_over_parts_of_a_tensor_is_to_be_vectorised(operators, first):
    """Twenty times three operators of 30 µs, of which the first launches nothing, with kernels of 3 µs."""

    def body(b, at, number):
        for place in range(20):
            b.op(operators[0], at + 100 * place, 30)
            for each, name in enumerate(operators[1:]):
                kernel(b, at + 100 * place + 32 + 32 * each, 3, host=30, op=name)

    (one,) = judged(program(body), "HST101").findings
    assert (one.advice or ("fewer_kernels",))[0] == first
