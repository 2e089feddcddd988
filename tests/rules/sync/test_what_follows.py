"""Six steps of 10 ms: 4 ms of the device, a read that the host waits for until 4 ms, and what follows until 10 ms."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from tests.rules import make
from tests.rules.make import judged, known
from traceanalyze.analyses.idle.syncs import WORTH_NAMING, synced
from traceanalyze.rules.finding import Severity

MS = 1_000_000


def long(number: int) -> float:
    return 9_000 if number % 2 else 11_000


def peers(b: TraceBuilder, at: float, number: int) -> None:
    """The other process is there every 10 ms."""
    b.op("c10d::barrier", at + 4_100, 5_800)


def tick(b: TraceBuilder, at: float, number: int) -> None:
    """It sleeps until the next step is due; nothing tells."""


def loader(b: TraceBuilder, at: float, number: int) -> None:
    """A thread makes batches one after the other, of 11 and 9 ms."""
    b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at - 10, long(number) - 20, tid=9)


def computes(b: TraceBuilder, at: float, number: int) -> None:
    """The host computes in operators that launch nothing."""
    for part in range(14):
        b.op("aten::index", at + 4_200 + part * 400, 390)


def picks(b: TraceBuilder, at: float, number: int) -> None:
    """Python chooses the next token, 5.6 ms, and calls a small operator of the host every 0.4 ms."""
    for part in range(14):
        b.op("aten::eq", at + 4_400 + part * 400, 5)


def test_a_pause_of_one_length_ends_sooner_where_it_begins_sooner():
    """5.4 ms in every step, and then work of other lengths: without the call it sleeps while the device works."""
    b = TraceBuilder()
    for number, later in enumerate((0, 300, 100, 400, 200, 500)):
        at, after = number * 10_000.0 + later, (300, -200, 300, -200, 300, 0)[number]
        b.step(number, at, 9_990 + after)
        for part in range(4):
            b.launch(at + 20 + 10 * part, 5, at + 30 + 990 * part, 980)
        b.api("cudaDeviceSynchronize", at + 115, 3_890)
        b.op("aten::ones", at + 9_410, 570 + after)
    (one,) = [each for each in judged(b).findings if each.rule == "SYN103"]
    # In the last of six steps nothing follows.
    assert one.saving / MS == pytest.approx(3.9 * 5 / 6, rel=0.01)
    assert one.least / one.saving == pytest.approx(0.88, rel=0.01)


def program(after, *, size: int = 4) -> TraceBuilder:
    b = TraceBuilder()
    for number in range(6):
        at = number * 10_000.0 + (1_000 if after is loader and number % 2 else 0)
        b.step(number, at, (long(number) if after is loader else 10_000) - 10)
        for part in range(4):
            b.launch(at + 20 + 10 * part, 5, at + 30 + 990 * part, 980)
        b.op("aten::item" if size == 4 else "aten::copy_", at + 90, 3_930)
        b.copy(at + 100, 10, at + 3_990, 5, name="Memcpy DtoH (Device -> Pinned)", bytes=size)
        b.api("cudaStreamSynchronize", at + 115, 3_890)
        after(b, at, number)
    return b


@pytest.mark.parametrize(("after", "size"), [(peers, 4), (tick, 4), (loader, 4), (computes, 1 << 20)])
def test_a_sync_saves_nothing_where_the_host_goes_on_no_earlier_without_it(after, size):
    found = judged(program(after, size=size)).findings
    assert [one.rule for one in found if one.rule.startswith("SYN") and one.saving] == []


def test_a_loader_of_another_thread_is_what_the_steps_wait_for():
    first, *_ = judged(program(loader)).findings
    assert (first.rule, first.sentence) == ("DAT101", "")
    assert first.saving / MS == pytest.approx(6, rel=0.05)


def test_whether_work_needs_the_number_that_was_read_before_it_is_not_known():
    """5.9 ms of it beside the 4 ms of the device would take 3.9 less, after it nothing less."""
    (one,) = [each for each in judged(program(computes)).findings if each.rule == "SYN101"]
    assert 3.9 * 5 / 6 < one.saving / MS < 3.9  # In the last of six steps nothing follows.
    # Brief Python between two operators goes with the number; 0.2 ms after the read, and before the next step, may not.
    assert one.least == pytest.approx(0.145 * 5 / 6 * MS, rel=0.02)


def test_python_that_small_operators_cut_into_pieces_may_need_the_number_all_the_same():
    """Beside the 4 ms of the device it takes 3.9 less, after it nothing less; it does not go with the read."""
    (one,) = [each for each in judged(program(picks)).findings if each.rule == "SYN101"]
    assert 3.5 * 5 / 6 < one.saving / MS < 3.9
    assert one.least == 0


@pytest.mark.parametrize(("after", "share"), [(peers, 0.02 * 5 / 6), (tick, 0), (computes, 0.6 * 5 / 6)])
def test_what_ends_at_its_own_time_is_no_cost_of_the_sync_before_it(after, share):
    facts = known(program(after))
    found = facts.context.once(synced)
    assert sum(found.values()) / 60 / MS == pytest.approx(share, abs=0.01)
    # Less than is worth naming need not be told to a verdict.
    assert facts.analysis.synced in ([found] if share >= WORTH_NAMING else [found, {}])


def indexes(*, collective: bool) -> TraceBuilder:
    """Four steps: 3 ms on the device, meanwhile an index that lies on the host is copied, and 1 ms of idle time."""
    b = TraceBuilder()
    for number in range(4):
        at = number * 5_000.0
        b.step(number, at, 5_000)
        name = "ncclDevKernel_AllReduce_Sum_f32" if collective else "gemm"
        b.launch(at + 10, 5, at + 20, 3_000, name=name)
        b.op("aten::index", at + 90, 2_960)
        b.copy(at + 100, 2_940, at + 3_025, 5, name="Memcpy HtoD (Pageable -> Device)", bytes=64)
        for part in range(25):
            b.op("aten::mm", at + 3_060 + 40 * part, 35)
        b.launch(at + 4_050, 5, at + 4_060, 930)
    return b


@pytest.mark.parametrize("collective", [True, False])
def test_a_copy_of_an_index_that_waits_for_other_ranks_may_save_nothing(collective):
    (one,) = judged(indexes(collective=collective), "SYN105").findings
    assert one.sentence == "index"
    assert one.cost / MS > 0.9
    # What waits for other ranks in the collective would wait in the next one.
    assert one.low == 0 if collective else one.low / MS > 0.9
    assert one.severity == (Severity.MEDIUM if collective else Severity.HIGH)


def test_python_after_a_read_that_is_no_brief_use_of_it_is_not_promised():
    """Four times a step of 2 ms a simulation goes on for 400 µs with the number that a kernel of 60 has computed."""

    def plays(b, at, number):
        for part in range(4):
            begin = at + 500 * part
            make.kernel(b, begin, 60)
            b.op("aten::item", begin + 30, 70)
            b.op("aten::_local_scalar_dense", begin + 35, 60)
            b.copy(begin + 40, 5, begin + 81, 2, name="Memcpy DtoH (Device -> Pageable)", bytes=4)
            b.api("cudaStreamSynchronize", begin + 46, 44)

    first, *others = judged(make.program(plays)).findings
    assert (first.rule, first.severity) == ("HST107", Severity.HIGH)
    (read,) = [one for one in others if one.rule == "SYN101"]
    assert read.low < read.saving < 0.15 * 2 * MS < first.low
