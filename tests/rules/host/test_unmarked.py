"""Recordings without step markers: a server that has nothing to do, a program that loads its model."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from tests.rules.host.test_first_use import values
from tests.rules.make import judged, kernel, program
from traceanalyze.rules.finding import Severity

US = 1000
GET, BUILTIN = "queue.py(171): get", "<built-in method acquire of _thread.lock object at 0x7f>"


def served(frame="", *, marked=False, host=False):
    """Ten requests of 3 ms, one every 10 ms, and the frame of what the thread does meanwhile."""
    b = TraceBuilder()
    for number in range(10):
        at = 10_000 * number
        if marked:
            b.step(number, at, 10_000)
        for part in range(6):
            if host:
                b.op("aten::addmm", at + 500 * part, 490)
            else:
                kernel(b, at + 500 * part, 470)
        if frame:
            b.python(frame, at + 3000, 6999)
    return b


@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize(
    ("frame", "sentence", "severity"),
    [
        ("", "unmarked", Severity.MEDIUM),
        (GET, "waits", Severity.INFO),
        (BUILTIN, "waits", Severity.INFO),
        ("zmq/sugar/poll.py(80): poll", "waits", Severity.INFO),
        ("<built-in method recv_multipart of Socket object at 0x7f>", "waits", Severity.INFO),
        ("site-packages/engine/core.py(9): wait_for_requests", "waits", Severity.INFO),
        ("serve.py(3): tokenize", "lines", Severity.HIGH),
        ("site-packages/tokens/fast.py(3): await_nothing", "lines", Severity.HIGH),
    ],
)
def test_a_server_without_requests_may_gain_nothing(host, frame, sentence, severity):
    """Nine times 7 ms, less what the last kernel still takes."""
    (one,) = judged(served(frame, host=host), "HST107", "HST113").findings
    expected = f"host_{sentence}" if host and sentence != "waits" else sentence
    assert (one.rule, one.sentence) == ("HST107", "unmarked_place" if expected == "unmarked" else expected)
    assert one.severity == severity
    assert one.explains == pytest.approx(9 * 7000 * US, rel=0.01)
    assert one.least == (None if sentence == "waits" else 0 if sentence == "unmarked" else one.low)
    assert (one.low or 0) > 0 or severity < Severity.HIGH
    if sentence == "waits":
        assert values(one)["what"] == frame


def test_in_steps_a_wait_is_a_pause_of_the_program():
    found = {one.rule: one for one in judged(served(GET, marked=True), "HST107", "HST113").findings}
    assert next(iter(found.values())).severity == Severity.HIGH


@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize(
    ("name", "sentence", "low"),
    [("decode", "place", True), ("wait for a request", "waits", False), ("get_request", "waits", False)],
)
def test_inside_its_ranges_a_program_works_unless_they_say_that_it_waits(host, name, sentence, low):
    b = served(host=host)
    for number in range(9):
        # It begins 25 µs after the stretch and ends 15 µs before it.
        b.annotation("model", 10_000 * number, 3_005)
        b.annotation(name, 10_000 * number + 3_025, 6_960)
    (one,) = judged(b, "HST107").findings
    assert one.sentence == ("host_place" if host and low else sentence)
    assert bool(one.least) == low
    assert one.severity == (Severity.HIGH if low else Severity.INFO)
    assert name in one.scope.ops[0]


@pytest.mark.parametrize("frame", [GET, BUILTIN, "<built-in function sleep>"])
def test_what_training_waits_for_is_no_less_a_cause_where_it_is_recorded(frame):
    found = []
    for recorded in ("", frame):
        b = served(recorded)
        for number in range(10):
            b.op("autograd::engine::evaluate_function: MmBackward0", 10_000 * number + 2990, 8)
        found += judged(b, "HST107").findings
    without, one = found
    assert (one.sentence, values(one)["what"], one.severity) == ("program_waits", frame, Severity.HIGH)
    assert one.saving == pytest.approx(without.saving, rel=0.01)
    assert one.advice == ("wait_less",)
    assert without.sentence == "place"


@pytest.mark.parametrize("host", [False, True])
def test_what_the_profiler_did_is_none_of_the_program(host):
    """Seven milliseconds of each step are its overhead; then of every other one."""
    for which, saving in ((range(10), []), (range(0, 10, 2), [3500 * US])):
        b = served(marked=True, host=host)
        for number in which:
            b.event("overhead", "Activity Buffer Request", 10_000 * number + 3000, 7000)
        assert [one.saving for one in judged(b, "HST107").findings] == pytest.approx(saving, rel=0.15)


@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize("sure", [False, True])
def test_between_backward_passes_a_program_waits_for_nobody(host, sure):
    b = served(host=host)
    for number in range(10 * sure):
        b.op("autograd::engine::evaluate_function: MmBackward0", 10_000 * number + 2990, 8)
    (one,) = judged(b, "HST107").findings
    assert (bool(one.least), one.severity) == ((True, Severity.HIGH) if sure else (False, Severity.MEDIUM))


def test_functions_cost_what_recording_them_costs_too():
    """Three thousand calls in 7 ms, which take 3 ms less where nobody records them, or half of that."""
    b = served("serve.py(3): tokenize", marked=True)
    for number in range(10):
        for at in range(3000):
            b.python("serve.py(9): letter", 10_000 * number + 3001 + 2 * at, 1)
    (one,) = judged(b, "HST107").findings
    assert one.saving - one.least == pytest.approx(1500 * US, rel=0.01)


def loaded(copies, later=0):
    """Copies of 5 ms from pageable memory, then forty kernels of 1 ms, and copies in the middle of some of them."""
    b, at = TraceBuilder(), 0.0
    more = {"name": "Memcpy HtoD (Pageable -> Device)", "bytes": 5_000_000}
    for _ in range(copies):
        b.op("aten::copy_", at, 5020)
        b.copy(at + 5, 5010, at + 10, 5000, **more)
        at += 5030
    for number in range(40):
        kernel(b, at, 1000)
        at += 1030
        if number < later:
            b.op("aten::copy_", at, 1020)
            b.copy(at + 5, 1010, at + 10, 1000, **more)
            at += 1030
    return b


@pytest.mark.parametrize(
    ("copies", "later", "once"), [(20, 0, [True]), (0, 40, [False]), (20, 40, [False, True]), (0, 8, [True])]
)
def test_loading_a_model_is_done_once(copies, later, once):
    found = judged(loaded(copies, later), "SYN105").findings
    assert sorted(one.once for one in found) == once
    assert all((one.saving is None) == one.once for one in found)
    assert {one.sentence for one in found if one.once} <= {"once"}


def test_loading_in_steps_is_as_before():
    def body(b, at, number):
        b.op("aten::copy_", at, 820)
        b.copy(at + 5, 810, at + 10, 800, name="Memcpy HtoD (Pageable -> Device)", bytes=800_000)
        kernel(b, at + 1000, 900)

    assert [one.once for one in judged(program(body), "SYN105").findings] == [False]


def paused(*, around="", elsewhere=0, frame=""):
    """Steps of 10 ms, of which the host does nothing in 6; a range around that, operators of another thread in it."""

    def body(b, at, number):
        kernel(b, at, 1000, op="aten::view")
        if around:
            b.annotation(around, at + 1500, 6000)
        for part in range(elsewhere):
            b.op("aten::mul", at + 1600 + 100 * part, 95, tid=77)
        kernel(b, at + 7600, 2000, op="aten::mm")

    return program(body, steps=4, length=10_000)


def test_a_pause_behind_which_the_loader_comes_later_is_told_though_the_device_never_waits_in_it():
    """Steps of 8.6 ms: 4 in the loader, then 5 on the device, in 4.4 of which the host does nothing."""

    def body(b, at, number):
        b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 4000)
        kernel(b, at + 4000, 5000, op="aten::mm")
        b.op("aten::detach", at + 8500, 50)

    found = {one.rule: one for one in judged(program(body, steps=5, length=8600), "HST113", "DAT101").findings}
    assert found["HST113"].sentence == "busy"
    assert found["HST113"].least < 3600 * US * 4 / 5 < found["HST113"].most  # All but the first step end sooner.
    assert found["DAT101"].severity == Severity.HIGH


@pytest.mark.parametrize(
    ("more", "sentence", "what"),
    [
        ({}, "", "aten::view … aten::mm"),
        ({"around": "bleu_score"}, "", "bleu_score: aten::view … aten::mm"),
        # Of 7.6 ms of silence: half or more of it, and less.
        ({"elsewhere": 58}, "thread", "aten::view … aten::mm"),
        ({"elsewhere": 20}, "", "aten::view … aten::mm"),
    ],
)
def test_a_pause_is_named_after_what_happens_meanwhile(more, sentence, what):
    (one,) = judged(paused(**more), "HST113").findings
    other = "aten::mul" if sentence else None
    assert (one.sentence, values(one)["what"], values(one).get("other")) == (sentence, what, other)
    assert one.severity == Severity.HIGH
    assert one.advice == ("split_thread" if sentence else "find_pause",)
