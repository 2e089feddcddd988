"""Promises of the tool against the simulation without each fault: a few programs, and what the READMEs show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.simulate.cost import step_of
from tests.simulate.healthy import on_npu
from tests.simulate.matrix.cases import DEVICE_BOUND, Case, alone, case_of, every, healthy
from tests.simulate.matrix.causes import BOTH, BY_NAME, mended, with_causes
from tests.simulate.matrix.figures import by_group, spearman
from tests.simulate.matrix.pairs import GROUP, PAIRS, judged, measured
from tests.simulate.matrix.readme import READMES, rounded_off, shown, stored, told
from tests.simulate.matrix.verdicts import judge
from tests.simulate.workload import MS, US, Fault, Host, Loader, Model, Ranks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulate.matrix.verdicts import Verdict
    from tests.simulate.workload import Workload

SAMPLE = (
    "gpu/device/slow_loader",
    "npu/host/pinning",
    "gpu/device/item_sync",
    "npu/device/norm_read",
    "gpu/device/zero_fill",
    "npu/device/empty_cache",
    "npu/device/collections+blocking_metric",
    "gpu/device/loaded_in_loop+device_sync",
    "gpu/host/slow_loader+small_copies+host_barrier",
    "gpu/device/small_copies+compile_again+host_barrier",
)
"""Their first cause is right, and their savings are in range."""
CASES = {case.name: case for case in every()}
FAST, SLOW = Host(op=2 * US, python=2 * US), Host(op=7 * US, python=8 * US)
MIDDLE = Host(op=5 * US, python=6 * US)
NARROW, LOW = Model(layers=1, hidden=768, sequence=256, vocabulary=4096), Model(layers=3, hidden=512, batch=1)
OTHERS: tuple[tuple[str, dict[str, float], Model, Host, int, int], ...] = (
    # Pauses of two kinds at one place; some that are irregular; one of which the device has other work beside.
    ("nvidia", {"program_pause": 4.18, "collections": 6.4}, NARROW, FAST, 1, 7),
    ("nvidia", {"collections": 3.8}, replace(LOW, vocabulary=4096), SLOW, 1, 3),
    ("nvidia", {"program_pause": 6}, Model(), FAST, 1, 7),
    # Of a cause that all ranks have one waits for the other.
    ("ascend", {"pinning": 9.4, "late_host": 7.5}, replace(NARROW, hidden=1024, batch=16), FAST, 2, 7),
    # A queue's task launches what stays, and so does a function between two operators.
    ("ascend", {"layout_changes": 35}, replace(NARROW, layers=4, batch=2), SLOW, 2, 7),
    ("nvidia", {"slow_op": 3740, "quantized": 1}, Model(sequence=256, batch=6), FAST, 1, 7),
    # Gaps after kernels that go.
    ("ascend", {"zero_fill": 2}, replace(NARROW, layers=2), FAST, 2, 7),
    # What holds one rank before a barrier on the host holds all.
    ("ascend", {"host_barrier": 2.1, "device_sync": 2}, Model(layers=4, hidden=768, batch=3), SLOW, 3, 7),
    # What only the first step gains, which begins on an idle device.
    (
        "ascend",
        {"pageable_copy": 0.6, "late_batches": 4.84},
        replace(NARROW, layers=2, hidden=1024, batch=8),
        MIDDLE,
        3,
        7,
    ),
    # Gradients are ready when what a queue launches for them is done.
    ("ascend", {"late_buckets": 6.56}, Model(layers=1, sequence=256, batch=4), FAST, 2, 7),
    ("nvidia", {"norm_read": 400, "late_buckets": 4}, Model(layers=3, hidden=768), SLOW, 2, 7),
    # Matrices of scores take memory.
    ("ascend", {"device_sync": 3, "churn": 4, "plain_attention": 512}, Model(batch=6), FAST, 1, 7),
    # Freeing memory waits for the device, whoever waited before.
    ("nvidia", {"device_sync": 2, "empty_cache": 0.43}, replace(NARROW, layers=3, batch=4), Host(), 1, 7),
    # What uses a norm is gone with it.
    ("nvidia", {"norm_read": 1170}, replace(NARROW, hidden=512, batch=2), SLOW, 1, 7),
    # A compiler's operators are none that view tensors; two pauses of one place have two lengths.
    ("nvidia", {"slow_op": 1870, "compile_again": 21}, Model(layers=3), FAST, 1, 7),
    ("nvidia", {"program_pause": 8.5, "unused_search": 8.9}, Model(layers=3, hidden=512), FAST, 1, 7),
    # What a fused optimizer leaves is no work of chains.
    ("nvidia", {"written_out": 4, "loop_optimizer": 4}, Model(layers=4, batch=3), SLOW, 1, 7),
)
"""Programs of other sizes: vendor, causes, model, host, ranks and seed."""


def _judged(
    vendor: str, sizes: dict[str, float], model: Model, host: Host, ranks: int, steps: int, seed: int
) -> Verdict:
    causes = tuple(replace(BY_NAME[name], device=size, host=size) for name, size in sizes.items())
    plain = replace(DEVICE_BOUND, steps=steps, model=model, host=host, seed=seed, loader=Loader(cost=MS))
    if ranks > 1:
        plain = replace(plain, ranks=Ranks(ranks, block=512), device=replace(plain.device, name="Example GPU"))
    plain = on_npu(plain) if vendor == "ascend" else plain
    return judge(Case("", with_causes(plain, "device", causes), "device", causes))


@pytest.mark.parametrize(("vendor", "sizes", "model", "host", "ranks", "seed"), OTHERS)
def test_savings_come_true_in_programs_of_other_sizes(
    vendor: str, sizes: dict[str, float], model: Model, host: Host, ranks: int, seed: int
) -> None:
    found = _judged(vendor, sizes, model, host, ranks, 6, seed)
    assert [row for row in found.rows if not row.inside or row.off > 0.1] == []


DRAWN: tuple[tuple[str, dict[str, float], Model, Host, int, int, int], ...] = (
    # Of collections some find the device at work, and two may be between operators of the same names.
    (
        "ascend",
        {"collections": 4.41, "odd_vocabulary": 1.56},
        Model(sequence=256, batch=3, vocabulary=4096),
        Host(op=6 * US, python=8 * US),
        1,
        8,
        3267,
    ),
    ("ascend", {"collections": 12.99, "plain_attention": 1024}, Model(1, 768, 16, 1024, 6), FAST, 1, 5, 6671),
    # A full queue holds the host up no longer where kernels are shorter.
    ("nvidia", {"compile_again": 18.16, "loop_optimizer": 3, "fp32": 4}, Model(3, 1536), FAST, 1, 6, 998),
    # The mean of a metric is no reduction of gradients; compute could hide a tenth of it.
    ("ascend", {"blocking_metric": 95.17, "always_synced": 1}, Model(4, batch=4, vocabulary=4096), Host(), 4, 6, 691),
)
"""The same with so many steps before the seed, of which some are uncertain."""


@pytest.mark.parametrize(("vendor", "sizes", "model", "host", "ranks", "steps", "seed"), DRAWN)
def test_savings_are_in_range_in_programs_that_were_drawn(
    vendor: str, sizes: dict[str, float], model: Model, host: Host, ranks: int, steps: int, seed: int
) -> None:
    assert [row for row in _judged(vendor, sizes, model, host, ranks, steps, seed).rows if not row.inside] == []


@pytest.mark.parametrize("name", SAMPLE)
def test_first_cause_and_saving_come_true(name: str) -> None:
    found = judge(CASES[name])
    assert found.right
    assert [row for row in found.rows if not row.inside] == []


@pytest.mark.parametrize("vendor", BOTH)
def test_a_wait_that_goes_through_a_queue_is_one(vendor: str) -> None:
    """The program waits for a metric at once; on an NPU the wait is put into its task queue."""
    found = judge(case_of(vendor, "device", (BY_NAME["blocking_metric"],)))
    assert [row.rules for row in found.rows] == [("COM107",)]
    assert found.rows[0].inside


@pytest.mark.parametrize("name", ["gpu/device/plain", "npu/device/two", "gpu/graph", "npu/clock"])
def test_healthy_programs_have_no_finding_above_a_note(name: str) -> None:
    case = next(case for case in healthy() if case.name in {name, name.replace("/", "/device/", 1)})
    assert judge(case).loud == ()


def test_every_cause_costs_something_somewhere() -> None:
    """A fault that no program notices would prove nothing."""
    gained: dict[str, float] = {}
    for case in alone():
        (cause,) = case.causes
        if gained.get(cause.fault, 0) < 0.02:
            step = step_of(case.workload)
            gained[cause.fault] = (step - step_of(mended(case.workload, cause))) / step
    assert {name for name, gain in gained.items() if gain < 0.02} == set()


def test_a_sync_that_nothing_waits_behind_is_worth_nothing() -> None:
    """The loader decides how long a step takes, whenever the loop asks for the next batch."""
    plain = CASES["gpu/host/slow_loader"]
    causes = (*plain.causes, BY_NAME["device_sync"])
    both = Case("", _with(plain, "device_sync", 3), "host", causes)
    step = step_of(both.workload)
    assert step - step_of(mended(both.workload, causes[1])) < 0.005 * step


def _with(case: Case, fault: str, size: float) -> Workload:
    return replace(case.workload, faults=(*case.workload.faults, Fault(fault, size)))


def test_rank_correlation() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert spearman([1, 2, 3, 4], [40, 30, 20, 10]) == -1
    # Ranks 1, 2, 3, 4 and 2, 1, 4, 3: 1 - 6 · 4 / (4 · 15).
    assert spearman([1, 2, 3, 4], [20, 10, 40, 30]) == pytest.approx(0.6)


def test_there_are_as_many_programs_as_the_figures_say() -> None:
    groups = [case.group for case in CASES.values()]
    assert {name: groups.count(name) for name in ("one", "two", "three")} == {
        name: one.programs for name, one in stored().items() if name not in {"all", GROUP}
    }


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.name)
def test_the_readme_shows_the_stored_figures(path: Path) -> None:
    assert shown(path) == told(path, stored())


def test_recordings_before_and_after_a_change_are_those_of_the_stored_figures() -> None:
    """What became of each step was measured by hand, ms; of median steps."""
    found = measured()
    if not found:
        pytest.skip("no traces")
    true = [judged(pair).rows[0].true / 1e6 for pair in PAIRS]
    assert true == pytest.approx([50.8, 54.6, 25.4, 29.2, 236.6, 6.3], abs=0.06)
    assert rounded_off(found[GROUP]) == rounded_off(stored()[GROUP])


def test_figures_of_no_program_are_none() -> None:
    assert by_group([]) == {}
