"""What rules say of programs that compute on the host, with savings worked out on paper (µs a step)."""

from __future__ import annotations

from pathlib import Path

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.rules.make import STEP, finding, judged, kernel, program
from tests.rules.on_host import Op, Range, steps
from traceanalyze.locales import texts
from traceanalyze.pipeline import load
from traceanalyze.report.console import Style, render
from traceanalyze.rules.finding import Confidence, Severity

SAMPLES = Path(__file__).parents[2] / "sample_traces"
US = 1000
SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
SEVERAL = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
DOUBLE = (("Input Dims", [[8, 8]]), ("Input type", ["double"]))
FLOAT = (("Input Dims", [[8, 8]]), ("Input type", ["float"]))


def loading(time: float, name: str = SINGLE) -> Range:
    return Range(name, (Op("aten::stack", 10),), time)


def optimizer(name: str, op: str, count: int, time: float, *more: Op) -> Range:
    """As many operators, 5 µs apart."""
    return Range(f"Optimizer.step#{name}.step", (*more, *(Op(op, time) for _ in range(count))), 5.0 * count)


def zeroing(name: str) -> Range:
    return Range(name, tuple(Op("aten::zero_", 30, (Op("aten::fill_", 25),)) for _ in range(10)))


def attention(*between: Op) -> tuple[Op, ...]:
    """Two products of 200 µs, and what is done with the scores."""
    product = Op("aten::matmul", 220, (Op("aten::expand", 10), Op("aten::bmm", 200)))
    return product, *between, product


SCALE = Op("aten::div", 80)
SOFTMAX = Op("aten::softmax", 100, (Op("aten::_softmax", 90),))
BACK = Op("autograd::engine::evaluate_function: BmmBackward0", 210, (Op("aten::bmm", 200),))
SOFTMAX_BACK = Op(
    "autograd::engine::evaluate_function: SoftmaxBackward0", 100, (Op("aten::_softmax_backward_data", 90),)
)


def checked(by):
    """A function of the backward pass, and what autograd does after it."""
    inside = (Op("MulBackward0", 100), Op(by, 100), Op("aten::_is_any_true", 100), Op("aten::item", 100))
    return Op("autograd::engine::evaluate_function: MulBackward0", 400, inside)


CASES = [
    # All of it but the 600 µs that fetching a batch takes that workers have ready.
    ("DAT101", "host_single", (loading(900),), 300, 900),
    ("DAT101", "host", (loading(900, SEVERAL),), 300, 900),
    # 1500 µs in two stretches; what is shorter than a millisecond is Python between two operators.
    # The function's own operator takes 100 µs of 400, the checks of what it returns the rest.
    ("HST105", "anomaly", (checked("aten::isnan"),), 300, 300),
    ("HST107", "host_place", (1200.0, Op("aten::add", 10), 300.0), 1200, 1200),
    # 120 operators of 4 µs: 2 µs each are their work, of which 7/20 stay; of the rest, less 0.6 µs each, a fifth.
    ("HST111", "host", (optimizer("AdamW", "aten::addcdiv_", 120, 4),), 240 * 0.65 + (600 - 72 - 240) * 0.8, 600),
    ("HST111", "host", (optimizer("SGD", "aten::mul_", 120, 4),), 240 * 3 / 8 + (600 - 72 - 240) * 0.8, 600),
    (
        "HST111",
        "host_foreach",
        (optimizer("Adam", "aten::_foreach_add_", 120, 4),),
        240 * 0.65 + (600 - 72 - 240) * 0.65,
        600,
    ),
    ("HST112", "", (zeroing("Optimizer.zero_grad#AdamW.zero_grad"),), 300, 300),
    # Between the products: 10 µs of the first matmul, 100 of the softmax, 10 of the second; 4 operators begin there.
    # At most the time from the one product's start to the other's end.
    ("KRN104", "host", attention(SCALE, SOFTMAX), 0.8 * (200 - 5 * 0.6), 600),
    ("KRN117", "host", (Op("aten::add", 402, (), DOUBLE),), 200, 200),
]


@pytest.mark.parametrize(("rule", "sentence", "parts", "saving", "bound"), CASES)
def test_a_finding_says_what_the_host_would_save(rule, sentence, parts, saving, bound):
    found = finding(steps(*parts), rule)
    assert (found.rule, found.sentence) == (rule, sentence)
    assert found.saving == pytest.approx(saving * US, abs=2 * US)
    assert found.low < found.saving <= min(found.bound, (bound + 2) * US)


@pytest.mark.parametrize(
    ("rule", "parts"),
    [
        ("DAT101", (loading(90),)),
        ("DAT101", (loading(590, SEVERAL),)),
        # What the program asks itself is no anomaly detection.
        ("HST105", (Op("aten::isnan", 300),)),
        ("HST105", (checked("aten::ne"),)),
        ("HST107", (900.0, Op("aten::add", 10), 900.0)),
        ("HST111", (optimizer("AdamW", "aten::_fused_adamw_", 120, 4),)),
        ("HST111", (optimizer("AdamW", "aten::addcdiv_", 90, 4),)),
        ("HST111", (optimizer("Adamax", "aten::addcdiv_", 120, 4),)),  # Which has no fused form.
        ("HST111", (optimizer("SGD", "aten::add_", 120, 4),)),  # Without momentum one operator does it all.
        ("HST112", (zeroing("my own zeros"),)),
        ("KRN104", (Op("aten::_scaled_dot_product_flash_attention_for_cpu", 600),)),
        ("KRN104", attention(SCALE)),
        ("KRN117", (Op("aten::add", 402, (), FLOAT),)),
        ("KRN117", (Op("aten::add", 402, (Op("aten::copy_", 400, (), FLOAT),), DOUBLE),)),
        ("HST110", ()),
    ],
)
def test_what_only_looks_like_it_is_no_finding(rule, parts):
    assert finding(steps(*parts), rule) is None


def test_optimizer_steps_are_counted_one_by_one_where_steps_are_not_marked():
    """Four times 60 operators are not 240."""
    b = TraceBuilder()
    for number in range(4):
        b.annotation("Optimizer.step#AdamW.step", number * STEP, 600)
        for place in range(60):
            b.op("aten::addcdiv_", number * STEP + 10 * place, 9)
        b.op("aten::addmm", number * STEP + 600, 1400)
    assert finding(b, "HST111") is None


EVERYTHING = (loading(2900), 1500.0, *attention(SCALE, SOFTMAX), optimizer("AdamW", "aten::addcdiv_", 120, 4))


def test_in_all_they_save_no_more_than_the_step_and_each_its_own_time():
    outcome = judged(steps(*EVERYTHING, length=8000))
    told = {one.rule: one.saving for one in outcome.findings if one.saving}
    assert set(told) == {"DAT101", "HST107", "KRN104", "HST111"}
    assert sum(one.saving or 0 for one in outcome.findings) == sum(told.values()) < 8000 * US
    assert told["DAT101"] == 2300 * US
    assert told["HST107"] == 1500 * US


@pytest.mark.parametrize("sign", ["aten::pin_memory", "aten::cudnn_convolution", "nccl:all_reduce"])
def test_a_host_that_works_for_a_device_is_not_judged(sign):
    """The same recording with a sign of a device: its host time may be hidden behind that."""
    outcome = judged(steps(*EVERYTHING, Op(sign, 20), length=8000))
    assert [one.rule for one in outcome.findings if (one.saving or 0) > 0] == []
    reasons = {one.rule: one.reason for one in outcome.not_applicable}
    assert {reasons[rule] for rule in ("DAT101", "HST107", "HST111", "KRN104")} == {"no_device_events"}


def test_rules_about_devices_stay_unjudged_where_the_host_computes():
    reasons = {one.rule: one.reason for one in judged(steps(*EVERYTHING, length=8000)).not_applicable}
    assert reasons["HST101"] == reasons["SYN101"] == reasons["KRN101"] == "no_device_used"
    assert "DAT101" not in reasons


def test_the_device_of_a_program_without_one_is_not_missing():
    assert "device" not in finding(steps(), "CAP102").evidence[0].value
    assert finding(steps(Op("aten::pin_memory", 20)), "CAP102").evidence[0].value.startswith("device, runtime calls")


def test_a_healthy_program_has_no_finding_above_a_note():
    few = optimizer("AdamW", "aten::_fused_adamw_", 1, 4)
    outcome = judged(steps(loading(50), Op("aten::addmm", 900), few))
    assert [one.rule for one in outcome.findings if one.severity > Severity.INFO] == []


def test_operators_that_do_hardly_anything_are_told_without_a_saving():
    """400 operators of 2 µs with 2 µs between them: 3.4 of 4 µs each are calls, once recording is taken off."""
    b = TraceBuilder()
    for number in range(4):
        b.step(number, number * STEP, STEP)
        for place in range(500):
            b.op("aten::add", number * STEP + 4 * place, 2)
    found = finding(b, "HST110")
    assert (found.sentence, found.saving, found.severity) == ("host", None, Severity.INFO)
    assert found.bound == pytest.approx(3.4 * 500 * US, rel=0.01)


def test_workers_that_start_anew_cost_what_their_batches_take_longer():
    """Two of eight batches take 900 µs instead of 20."""
    b = TraceBuilder()
    for number in range(8):
        time = 900 if number in {3, 6} else 20
        b.step(number, number * STEP, STEP)
        if time == 900:
            b.python("torch/utils/data/dataloader.py(438): _get_iterator", number * STEP - 10, 5)
        b.annotation(SEVERAL, number * STEP, time)
        b.op("aten::addmm", number * STEP + time, STEP - time)
    assert finding(b, "DAT102").saving == 2 * 880 * US // 8


def test_a_list_of_gradients_is_filled_one_by_one():
    """The call for the list, of 310 µs, is no fill of its own, but its time is that of the fills."""
    fills = tuple(Op("aten::zero_", 30, (Op("aten::fill_", 25),)) for _ in range(10))
    zero_grad = Range("Optimizer.zero_grad#AdamW.zero_grad", (Op("aten::_foreach_zero_", 310, fills),))
    found = finding(steps(zero_grad), "HST112")
    assert (found.saving, found.count) == (310 * US, 40)


PIPES = ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "enumerate(DataPipe)#BatcherIterDataPipe")


@pytest.mark.parametrize("outer", PIPES)
def test_pipes_that_read_from_each_other_are_one_batch_a_step(outer):
    """16 samples of 50 µs make one batch: that saves all but fetching one that is ready, and restarts no workers."""
    b = TraceBuilder()
    for number in range(4):
        at = number * STEP
        b.step(number, at, STEP)
        b.annotation(outer, at, 900)
        for sample in range(16):
            b.annotation("enumerate(DataPipe)#MapperIterDataPipe", at + 55 * sample, 50)
        b.op("aten::addmm", at + 900, 1100)
    found = finding(b, "DAT101")
    assert (found.saving, found.count) == (300 * US, 4)
    assert [finding(b, rule) for rule in ("DAT102", "DAT104", "DAT105")] == [None] * 3


def test_operators_shorter_than_their_recording_tell_nothing():
    """4000 operators of 0.2 µs, one after the other: 0.6 µs each are more than the step."""
    b = TraceBuilder()
    for number in range(4):
        b.step(number, number * 800, 800)
        for place in range(4000):
            b.op("aten::add", number * 800 + 0.2 * place, 0.2)
    assert finding(b, "HST110") is None


def test_an_empty_recording_does_not_call_operators():
    b = TraceBuilder()
    for number in range(4):
        b.step(number, number * STEP, STEP)
        b.op("aten::add", number * STEP, STEP / 10)
    assert finding(b, "HST110") is None


def test_waiting_for_other_ranks_is_no_work_of_this_host():
    """Of 1300 and 1400 µs without operators, the first are spent in a collective that another thread runs."""
    b = steps(1300.0, Op("aten::add", 10), 1400.0, length=4000)
    for number in range(4):
        b.annotation("gloo:all_reduce", number * 4000 + 50, 1200, tid=2)
    assert finding(b, "HST107").saving == 1400 * US


@pytest.mark.parametrize("where", [1, 9])
def test_a_recorded_collection_costs_its_length(where):
    """Whichever thread it is told on: it holds the interpreter."""
    b = steps(count=4, length=20_000)
    b.event("gc", "Python GC", 20_100, 8_000, tid=where)
    found = finding(b, "HST104")
    assert (found.sentence, found.saving, found.count) == ("host", 2_000 * US, 1)


@pytest.mark.parametrize(("ranges", "place"), [((), ""), ((("epoch", 6000), ("eval 1", 1500)), "eval 1: ")])
def test_the_operators_around_the_longest_stretch_and_its_innermost_range_are_named(ranges, place):
    b = steps(Op("aten::add", 10), 1200.0, Op("aten::mul", 10), 100.0)
    for name, length in ranges:
        b.annotation(name, 5, length)
    found = finding(b, "HST107")
    assert found.scope.ops == (f"{place}aten::add … aten::mul",)
    assert found.evidence[-1].value == f"{place}aten::add … aten::mul"


def test_the_lines_of_stretches_without_operators_are_named():
    b = steps(1300.0)
    for number in range(4):
        at = number * STEP
        b.python("train.py(10): train", at, STEP)
        b.python("train.py(40): tokenise", at + 5, 1250)
    found = finding(b, "HST107")
    assert (found.sentence, found.scope.ops) == ("host_lines", ("train.py(40): tokenise",))
    assert found.advice == ("move_python", "host_light_run")


def test_a_backward_pass_of_attention_counts_too():
    parts = (*attention(SCALE, SOFTMAX), BACK, SOFTMAX_BACK, BACK)
    there, back = finding(steps(*attention(SCALE, SOFTMAX)), "KRN104"), finding(steps(*parts), "KRN104")
    # 10 µs of the product's own step, and the 100 of the softmax, of which recording takes 0.6 each of three operators.
    assert back.saving - there.saving == pytest.approx(0.8 * (110 - 3 * 0.6) * US, abs=2 * US)


def test_without_steps_amounts_are_those_of_the_whole_recording(tmp_path):
    b = TraceBuilder()
    for number in range(4):
        b.annotation(SINGLE, number * STEP, 900)
        b.op("aten::addmm", number * STEP + 900, 1100)
    said = render(traceanalyze.analyze(b.write(tmp_path / "trace.json")), texts(), Style(width=200))
    assert "DAT101: Making batches takes 3.600 ms in all (45 % of the time)" in said


def test_a_recorded_training_with_a_slow_loader_is_told_what_workers_would_save():
    """82 % of its step is the loader (see the sample's figures); all but 0.6 ms of that is to be had."""
    (trace,) = load(SAMPLES / "cpu_slow_loader").traces
    first = judged(trace).findings[0]
    assert (first.rule, first.sentence, first.severity) == ("DAT101", "host_single", Severity.HIGH)
    assert 48_000_000 / 3 - 600_000 < first.saving < 24_545_586


NAMES = ("aten::add", "aten::mul", "aten::sub", "aten::div")


@pytest.mark.parametrize(("places", "sure"), [((1, 1, 1, 1), True), ((0, 1, 1, 2), True), ((0, 1, 2, 3), False)])
def test_a_host_that_stops_now_here_and_now_there_may_stop_without_it(places, sure):
    """400 µs of work in four operators a step, and a stretch of 1600 before one of them."""
    b = TraceBuilder()
    for number, place in enumerate(places):
        at = number * STEP
        b.step(number, at, STEP)
        for each, name in enumerate(NAMES):
            at += 1600 if each == place else 0
            b.op(name, at, 100)
            at += 100
    found = finding(b, "HST107")
    assert found.bound == pytest.approx(1600 * US, rel=0.1)
    assert (found.low > 0, found.confidence > Confidence.LOW) == (sure, sure)


def test_where_nothing_of_the_host_is_recorded_no_work_is_claimed():
    b = TraceBuilder()
    for number in range(4):
        b.step(number, number * STEP, STEP)
    b.op("aten::add", 4 * STEP + 10, 5)
    found = finding(b, "HST107")
    assert (found.sentence, found.low, found.confidence) == ("host_nothing", 0, Confidence.LOW)


def test_what_anomaly_detection_costs_a_device_is_told_once():
    """Ten functions of 100 µs of the device in 1900; after each a check of 40 and the wait for it: 880 go with them."""

    def checks(b, at, number):
        for part in range(10):
            begin = at + 190 * part
            kernel(b, begin, 100)
            b.op("autograd::engine::evaluate_function: MulBackward0", begin, 185)
            b.op("aten::isnan", begin + 25, 20)
            b.launch(begin + 30, 5, begin + 125, 40, name="isnan")
            b.op("aten::item", begin + 50, 130)
            b.op("aten::_local_scalar_dense", begin + 55, 120)
            b.api("cudaStreamSynchronize", begin + 60, 110)

    outcome = judged(program(checks, length=1900), "HST105", "SYN101", "HST101")
    first, *others = outcome.findings
    assert (first.rule, first.sentence, first.count) == ("HST105", "anomaly", 40)
    assert first.saving == pytest.approx(880 * US, rel=0.05)
    assert all(one.severity <= Severity.LOW for one in others)
