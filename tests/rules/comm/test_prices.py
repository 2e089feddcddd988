"""What findings about communication say they save, worked out on paper: µs a step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.ascend_builder import AscendBuilder
from tests.rules.comm.cases import (
    MB,
    beside,
    buckets,
    compute,
    exposed,
    gathered,
    gathering,
    layers,
    messages,
    micro_steps,
    normalised,
    pipeline,
    reduce,
    searching,
    stages,
    steps,
    waiting,
)
from tests.rules.make import finding, judged, waited
from tests.rules.sequences import STEP, read_npu
from tests.rules.test_faults import HEALTHY
from tests.simulate.cost import with_slower_link
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import step_time
from tests.simulate.workload import Fault, Ranks
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import TODAY
from traceanalyze.readers.kineto import read_text
from traceanalyze.rules.finding import Confidence
from traceanalyze.rules.waiting import alone

US = 1000

CASES = [
    # 1200 µs of communication after 2760 µs of compute, which could hide all of it unless it is needed for that.
    ("COM101", exposed(0.3), 600, 1200),
    # 2800 µs, but only 1160 µs of compute to hide it.
    ("COM101", exposed(0.7), 580, 2800),
    # Four reductions of 400 µs, the first three of which are for nothing; 10 µs of each lie under compute.
    ("COM102", micro_steps(4, every=True), None, 1200),
    ("COM105", buckets(last=True), 750, 1500),
    ("COM106", gathered(as_list=True, cat=False), 406, 400),
    ("COM106", gathered(as_list=True, cat=True), 707.5, 700),
    ("COM107", waiting(wait=True), 450, 900),
    # Four kernels take 300 µs in place of 200.
    ("COM108", beside(1.5), 200, 400),
    ("COM115", pipeline(1500), 750, 1500),
    ("COM118", normalised(30), 1200, 1200),
]


def of_kind(kind, *, count=1):
    """Compute of 2760 µs, then so many collectives of 1200 µs in all, each 1.4 times as long as the one before it."""

    def body(b, at, number):
        compute(b, at, at + 20, 2760)
        begin, dur = at + 2790, 1200 / sum(1.4**part for part in range(count))
        for part in range(count):
            reduce(b, at + 10 + 12 * part, begin, dur * 1.4**part, kind=kind, tid=2)
            begin += dur * 1.4**part

    return body


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("all_to_allv", "overlap_all_to_all"),
        ("_allgather_base", "overlap_gathers"),
        ("_reduce_scatter_base", "overlap_gathers"),
        ("allreduce", "overlap_reductions"),
        ("send", "overlap_transfers"),
        ("barrier", "overlap_others"),
    ],
)
def test_what_hides_communication_depends_on_its_type(kind, advice):
    assert finding(steps(of_kind(kind)), "COM101").advice == (advice, "compare_ranks_first")


@pytest.mark.parametrize(("kind", "sure"), [("all_to_allv", False), ("_allgather_base", True), ("allreduce", False)])
def test_what_may_need_the_compute_before_it_is_hidden_by_none_for_certain(kind, sure):
    """All begin as 2760 µs of compute end; parameters were asked for only then, so nothing but that held them up."""

    def body(b, at, number):
        compute(b, at, at + 20, 2760)
        reduce(b, at + (2785 if sure else 10), at + 2790, 1200, kind=kind, tid=2)

    found = finding(steps(body), "COM101")
    assert found.saving == pytest.approx((1200 if sure else 600) * US, rel=0.01)
    assert found.most == pytest.approx(1200 * US, rel=0.01)
    assert (found.low > 0, found.confidence > Confidence.LOW) == (sure, sure)
    # Of one rank alone half of it may be waiting: the middle is the same.
    (one,) = (each for each in alone(judged(steps(body), "COM101")).findings)
    assert (one.saving, one.low) == (pytest.approx(600 * US, rel=0.01), 0)


@pytest.mark.parametrize(("count", "possible"), [(1, 1200), (3, 1200), (4, 1200 - 4 * 168.9)])
def test_what_the_shortest_of_four_collectives_needs_is_no_waiting(count, possible):
    """The shortest of four takes 168.9 µs for as many bytes; fewer than four have no usual time."""
    known = {each.label: each.value for each in finding(steps(of_kind("allreduce", count=count)), "COM101").evidence}
    assert known["wait_possible"] == pytest.approx(possible * US, rel=0.01)


@pytest.mark.parametrize(("rule", "body", "saving", "bound"), CASES)
def test_a_finding_says_what_it_saves(rule, body, saving, bound):
    found = finding(steps(body), rule)
    assert found.explains <= 1.02 * bound * US
    if saving is not None:
        # Copies that are not there leave no gaps between them either.
        assert found.saving == pytest.approx(saving * US, rel=0.02)


@pytest.mark.parametrize(("count", "calculate", "chain"), [(3, 300, False), (7, 70, False), (7, 75, True)])
def test_layers_of_a_chain_are_several_and_compute(count, calculate, chain):
    """Three may be metrics; what computes for less than a quarter of the 300 µs scales gradients between reductions."""
    assert (finding(layers(count, 300, calculate=calculate), "COM101").sentence == "chain") == chain


def test_only_the_bubble_of_a_pipeline_shrinks_with_more_micro_batches():
    """The first of six waits for 900 µs, the others for 200: half of the 700 goes with twice as many."""
    stage, bubble = judged(stages(900, 200), "COM115").findings
    assert (stage.sentence, stage.saving, stage.cost) == ("stages", None, 5 * 200 * US)
    assert (bubble.saving, bubble.cost) == (pytest.approx(350 * US, rel=0.02), 900 * US)


@pytest.mark.parametrize(("size", "said"), [(1 << 17, "stages"), (1 << 18, "perhaps")])
def test_a_stage_that_receives_at_a_usual_rate_may_wait_for_none(size, said):
    """In 200 µs 131 kB are 0.66 GB/s, which no link between devices needs; twice as much may be transfer."""
    (stage,) = judged(stages(200, 200, size=size), "COM115").findings
    assert (stage.sentence, stage.saving, stage.cost) == (said, None, 6 * 200 * US)


def test_a_long_receive_is_the_bubble_of_a_pipeline_and_no_waiting_for_ranks_that_were_not_recorded():
    found = judged(stages(2000, 150), "COM115", "COM120").findings
    assert {one.rule for one in found} == {"COM115"}
    assert [one.cost for one in found if not one.sentence] == [2000 * US]


def test_small_messages_are_priced_by_the_bandwidth_of_large_ones():
    """20 messages of 64 KiB take 2000 µs. No larger ones prove that they are slow: half of it is taken, or nothing."""
    found = finding(steps(messages(20, 64 * 1024, 100)), "COM104")
    assert (found.low, found.saving, found.bound) == (0, 1000 * US, 2000 * US)


def test_parameters_gathered_late_are_priced_by_their_exposed_time():
    """Three all-gathers of 380 µs a step; the first begins after compute, as the others do.

    Compute was asked for shortly before it began, and would still not begin sooner than that allows.
    """
    found = finding(steps(gathering(790)), "COM112")
    assert found.saving == pytest.approx(3 * 380 * US, rel=0.02)


def test_the_search_for_unused_parameters_costs_the_idle_time_inside_it():
    """The kernel ends at 1020 µs, the search at 2000 µs: without all of it the host is ahead by the other 20, too."""
    found = finding(steps(searching), "COM103")
    assert found.saving == 1000 * US


def test_a_cause_takes_the_time_before_exposed_communication_does():
    found = {one.rule: one for one in judged(steps(normalised(30)), "COM").findings}
    assert "COM118" in found
    assert sum(one.saving or 0 for one in found.values()) <= STEP * US


@pytest.mark.parametrize("size", [2, 4, 8])
def test_exposed_communication_is_found_with_its_price(size):
    """Against the simulation in which gradients are reduced in DDP's own buckets, over the same slow link."""
    plain = replace(HEALTHY, ranks=Ranks(count=2, bucket=25 * 2**20, first_bucket=2**20))
    workload = replace(plain, faults=(Fault("exposed_comm", size),))
    true = (step_time(workload) - step_time(with_slower_link(plain, size))) / workload.steps
    found = judged(read_text(write(simulate(workload)[0], TODAY)), "COM").findings
    assert [one.rule for one in found] == ["COM101"]
    assert found[0].saving == pytest.approx(true, rel=0.05)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_healthy_run_has_no_finding_above_a_note(ranks):
    workload = replace(HEALTHY, ranks=Ranks(count=ranks))
    found = judged(read_text(write(simulate(workload)[0], TODAY)), "KRN", "CGR", "COM", "NPU").findings
    assert [one.rule for one in found if one.severity > 0] == []


def test_sizes_are_those_of_the_description():
    found = finding(steps(messages(10, 4 * MB, 200)), "COM104")
    assert {each.label: each.value for each in found.evidence}["size"] == 4 * MB


@pytest.mark.parametrize("rule", ["COM104", "COM115"])
def test_collectives_without_description_cannot_be_judged(rule):
    def body(b, at, number):
        b.op("c10d::send", at, 10)
        b.launch(at + 1, 3, at + 20, 3000, name="ncclDevKernel_SendRecv()", stream=20)

    said = judged(steps(body), rule)
    assert [(one.rule, one.reason) for one in said.not_applicable] == [(rule, "no_collective_metadata")]
    assert judged(steps(lambda b, at, number: b.launch(at, 3, at + 10, 3000)), rule).not_applicable == ()


def test_where_tasks_are_recorded_waiting_for_other_ranks_is_no_saving():
    """A collective of 1500 µs of which a transfer takes 500; there is room for all under the compute."""
    b = AscendBuilder()
    for number in range(3):
        at = number * STEP
        b.step(number, at, STEP - 100)
        b.kernel("aclnnMatMul_1", at + 100, 2000, op_type="MatMulV2", launch=at + 10)
        parts = [(0, "Notify_Wait", at + 2200, 1000, 1), (0, "Memcpy", at + 3200, 500, 1)]
        b.collective(f"hcom_allReduce__1_{number}_1", at + 2200, 1500, parts)
        b.call("AscendCL@aclrtSynchronizeDevice", at + 100, 3600)
    found = finding(read_npu(b), "COM101")
    assert {each.label: each.value for each in found.evidence}["wait_exposed"] == 1000 * US
    assert (found.sentence, found.saving, found.cost) == ("waiting", 250 * US, 500 * US)


def test_a_collective_of_the_last_of_four_steps_is_hidden_by_that_step_alone():
    """3000 µs of it beside 900 µs of compute a step: 900 of four steps at best, where 3 × 900 had none to hide."""

    def body(b, at, number):
        compute(b, at, at + 20, 900)
        if number % 4 == 3:
            reduce(b, at + 10, at + 930, 3000, tid=2)
            b.annotation("Optimizer.step#AdamW.step", at + 3940, 10)

    found = finding(waited(body, steps=8, length=STEP), "COM101")
    assert (found.saving, found.most, found.cost) == (900 * US // 8, 900 * US // 4, 3000 * US // 4)


@pytest.mark.parametrize("passes", [1, 3])
def test_gradients_are_hidden_by_the_pass_that_asks_for_them(passes):
    """A quarter of 100 MB is the last bucket, and a quarter of the last backward pass of 600 µs comes first."""

    def body(b, at, number):
        for part in range(passes):
            t = at + 900 * part
            b.annotation("DistributedDataParallel.forward", t, 60)
            compute(b, t + 10, t + 30, 200)
            compute(b, t + 80, t + 240, 600, op="autograd::MmBackward0", tid=2)
        reduce(b, t + 100, t + 850, 1000, size=100 * MB, tid=2, under="autograd::MmBackward0")

    assert finding(steps(body), "COM101").saving == pytest.approx(0.75 * 600 * US, rel=0.02)


def test_compute_beside_waiting_hides_nothing_else():
    """Of four reductions of 300 µs the first waits for 3.6 ms, beside the backward pass, which is over then."""

    def body(b, at, number):
        b.annotation("DistributedDataParallel.forward", at, 60)
        compute(b, at + 10, at + 20, 200)
        compute(b, at + 80, at + 240, 3600, op="autograd::MmBackward0", tid=2)
        for part in range(4):
            begin, late = at + 340 + 300 * part + 3600 * (part > 0), 3600 * (part == 0)
            reduce(b, at + 100 + 12 * part, begin, 300 + late, size=90 * MB, tid=2, under="autograd::MmBackward0")

    assert judged(waited(body, steps=3, length=2 * STEP), "COM101").findings == ()


@pytest.mark.parametrize(("long", "sentence"), [(1100, "as_fast"), (790, "unknown")])
def test_what_takes_twice_as_long_as_a_larger_collective_is_told_to_wait_for_others(long, sentence):
    """64 MB need 400 µs, then 32 MB take 1100: in 400 these would be there; three times as long would prove it."""

    def body(b, at, number):
        compute(b, at, at + 20, 500)
        reduce(b, at + 30, at + 520, 400, size=64 * MB, tid=2)
        reduce(b, at + 45, at + 920, long, size=32 * MB, tid=2)

    (one,) = [each for each in alone(judged(steps(body))).findings if each.rule == "COM101"]
    values = {each.label: each.value for each in one.evidence}
    assert (one.sentence, one.saving, one.cost, values["exposed"]) == (sentence, None, *[(400 + long) * US] * 2)
    assert values.get("as_fast") == (800 * US if sentence == "as_fast" else None)


def test_communication_that_nothing_hides_is_told_whole_though_part_of_it_is_known_to_wait():
    """Of reductions of 64 MB three take 400 µs and one 8 ms, of which 7.6 ms are told as waiting (COM120)."""

    def body(b, at, number):
        compute(b, at, at + 20, 500)
        for part in range(4):
            late = 7600 * (part == 3)
            reduce(b, at + 30 + 12 * part, at + 520 + 400 * part, 400 + late, size=64 * MB, tid=2)
        reduce(b, at + 80, at + 9720, 1100, size=32 * MB, tid=2)

    found = {each.rule: each for each in alone(judged(waited(body, length=5.5 * STEP))).findings}
    one, waits = found["COM101"], found["COM120"].cost
    values = {each.label: each.value for each in one.evidence}
    assert (one.sentence, one.saving, values["exposed"]) == ("as_fast", None, 10300 * US)
    assert (waits, one.cost) == (7600 * US, 2700 * US)
