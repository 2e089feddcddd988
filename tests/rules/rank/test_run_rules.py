"""Rules of other families that need all ranks: what they are about, and what looks like it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.ranks.make import rank
from tests.ranks.simulated import summaries, workload
from tests.rules.rank.test_rank_rules import said
from tests.simulate.workload import Fault, Model, Ranks
from traceanalyze.ranks.results import Group, KernelTimes
from traceanalyze.rules.finding import Severity

MS, MB = 1_000_000, 1 << 20
STEPS = tuple(f"ProfilerStep#{number}" for number in range(4))
LENGTH = 10 * MS


def run(*ranks, kind="all_reduce", size=64, **parts):
    """Ranks with collectives of (start, end) in ns from the begin of each of four steps."""
    return [
        rank(
            number,
            *[
                (step, kind, size, LENGTH * step + start, LENGTH * step + end)
                for step in range(4)
                for start, end in times
            ],
            steps=STEPS,
            length=LENGTH,
            **{key: value[number] for key, value in parts.items()},
        )
        for number, times in enumerate(ranks)
    ]


def values(found):
    return {each.label: each.value for each in found.evidence}


def reasons(ranks, rule):
    return [one.reason for one in said(ranks, rule).not_applicable]


def reading(wait, *, kind="broadcast", loading=(2 * MS, 0)):
    """Rank 0 reads for 2 ms, the other waits so long in the first collective."""
    return run([(3 * MS, 4 * MS)], [(3 * MS - wait, 4 * MS)], kind=kind, data_loading=loading)


class TestReaderRank:
    def test_the_others_wait_for_the_rank_that_reads(self):
        (one,) = said(reading(2 * MS), "DAT106").findings
        assert (one.saving, one.bound, one.scope.ranks, one.severity) == (2 * MS, 2 * MS, (0,), Severity.HIGH)
        assert values(one) == {"rank": "0", "time": 2 * MS, "wait": 2 * MS}

    def test_the_saving_is_no_more_than_the_loading(self):
        (one,) = said(reading(3 * MS, loading=(MS, 0)), "DAT106").findings
        assert (one.saving, one.bound) == (MS, MS)

    @pytest.mark.parametrize(
        "ranks",
        [reading(MS // 10), reading(2 * MS, kind="all_reduce"), reading(2 * MS, loading=(MS // 4, 0))],
        ids=["nobody waits", "no broadcast", "little loading"],
    )
    def test_what_looks_like_it_is_none(self, ranks):
        assert said(ranks, "DAT106").findings == ()

    def test_broadcasts_of_one_step_are_those_of_parameters(self):
        first = [
            rank(
                number,
                (0, "broadcast", 64, 3 * MS - 2 * MS * number, 4 * MS),
                *[(step, "all_reduce", 64, LENGTH * step, LENGTH * step + MS) for step in range(1, 4)],
                steps=STEPS,
                length=LENGTH,
                data_loading=[2 * MS * (1 - number)] * 4,
            )
            for number in range(2)
        ]
        assert said(first, "DAT106").findings == ()

    def test_all_ranks_may_read(self):
        (one,) = said(reading(0, loading=(2 * MS, MS)), "DAT106").findings
        assert (one.sentence, one.saving) == ("all", None)
        assert values(one) == {"ranks": 2, "least": MS, "most": 2 * MS}

    def test_without_host_operators_it_cannot_be_judged(self):
        assert reasons(run([(0, MS)], [(0, MS)], compute=(MS, MS)), "DAT106") == ["no_host_ops"]

    def test_without_a_device_nothing_waits_for_the_reader(self):
        """Of ranks that compute on the host no device is missing, unlike of those whose device was not recorded."""
        ranks = run([(0, MS)], [(0, MS)])
        alone = [replace(one, host_computes=True) for one in ranks]
        assert reasons(ranks, "DAT106") == ["no_device_events"]
        assert reasons(alone, "DAT106") == reasons(alone, "KRN118") == ["no_device_used"]
        assert reasons([alone[0], ranks[1]], "DAT106") == ["no_device_events"]


def timed(*kernels):
    """Kernels as (name, what, count, time, median)."""
    names, what, *numbers = zip(*kernels, strict=True)
    return KernelTimes(names, what, *(np.array(each, np.int64) for each in numbers))


def clocked(*medians, what="[[64, 64]]", others=()):
    """Ranks with ten runs a kernel, of which one takes so long, and kernels that only the first has."""
    ranks = run(*[[(0, MS)]] * len(medians))
    return [
        replace(
            one,
            kernels=timed(
                ("gemm", what, 10, 10 * median, median),
                ("relu", what, 10, 10 * 10_000, 10_000),
                *(others if number == 0 else ()),
            ),
        )
        for number, (one, median) in enumerate(zip(ranks, medians, strict=True))
    ]


class TestLowClock:
    def test_the_rank_whose_kernels_take_longer_is_named(self):
        (one,) = said(clocked(100_000, 100_000, 125_000), "KRN118").findings
        assert (one.scope.ranks, one.saving) == ((2,), None)
        assert values(one) == {"rank": "2", "slower": 0.25, "lost": 62_500, "kernels": 2, "kernel": "gemm"}
        # Ten runs of 25 µs more, over four steps.
        assert one.bound == 62_500

    def test_many_such_ranks_are_told_together(self):
        (one,) = said(clocked(*[100_000] * 20, *[125_000] * 4, 150_000), "KRN118").findings
        assert (one.scope.ranks, one.bound) == ((20, 21, 22, 23, 24), 125_000)
        own = {"rank": "24", "slower": 0.5, "lost": 125_000, "kernels": 2, "kernel": "gemm"}
        assert values(one) == {"which": "20-24", **own}
        assert one.scope.ops[0] == "rank 24"

    def test_less_than_a_tenth_is_usual(self):
        assert said(clocked(100_000, 100_000, 108_000), "KRN118").findings == ()

    def test_other_work_is_no_clock(self):
        more = (("attention", "[[64, 64]]", 10, 9_000_000, 900_000),)
        assert said(clocked(130_000, 100_000, others=more), "KRN118").findings == ()

    def test_without_kernels_of_all_ranks_it_cannot_be_judged(self):
        assert reasons(run([(0, MS)], [(0, MS)]), "KRN118") == ["no_kernel_shapes"]

    def test_a_simulated_slow_device_is_found_with_its_factor_and_a_healthy_one_is_not(self):
        slow = replace(workload(Fault("straggler", 1.5)), model=Model(), ranks=Ranks(count=2))
        (one,) = said(summaries(slow), "KRN118").findings
        assert one.scope.ranks == (1,)
        assert values(one)["slower"] == pytest.approx(0.5, abs=0.1)
        assert said(summaries(replace(slow, faults=())), "KRN118").findings == ()


def parallel(hosts, *, name="tp", time=MS, networked=None):
    """Two ranks of a named group on these machines, whose collectives take so long."""
    ranks = run([(0, time)], [(0, time)], group=[Group(name, (0, 1), 2)] * 2)
    return [replace(one, host=host, networked=networked) for one, host in zip(ranks, hosts, strict=True)]


class TestParallelLayout:
    def test_a_tensor_parallel_group_on_two_machines_is_found(self):
        (one,) = said(parallel(("a", "b")), "COM116").findings
        assert (one.saving, one.bound, one.severity) == (None, MS, Severity.MEDIUM)
        assert values(one) == {"group": "tp", "role": "role_tensor", "exposed": MS, "share": 0.1}

    def test_tasks_over_a_network_tell_it_without_machines(self):
        assert len(said(parallel((None, None), networked=frozenset({"tp"})), "COM116").findings) == 1

    @pytest.mark.parametrize(
        "ranks",
        [
            parallel(("a", "a")),
            parallel(("a", "b"), name="dp"),
            parallel(("a", "b"), time=MS // 10),
            parallel(("a", "b"), networked=frozenset()),
        ],
        ids=["one machine", "data parallel", "short", "no task over a network"],
    )
    def test_what_looks_like_it_is_none(self, ranks):
        found = said(ranks, "COM116")
        assert (found.findings, found.not_applicable) == ((), ())

    def test_without_machines_it_cannot_be_judged(self):
        assert reasons(parallel((None, None)), "COM116") == ["no_machines"]


def bandwidth(rate, *, device="NVIDIA A100-SXM4-80GB", world=2, size=256 * MB, kind="all_reduce"):
    """Two ranks whose all-reduces reach so many GB/s: of two ranks bytes over time."""
    time = round(size / rate)
    ranks = run(*[[(4 * MS * part, 4 * MS * part + time) for part in range(3)]] * 2, size=size, kind=kind)
    return [replace(one, device=device, world_size=world) for one in ranks]


class TestLowBusBandwidth:
    def test_less_than_half_of_the_links_of_the_board_is_found_with_its_price(self):
        (one,) = said(bandwidth(100), "COM119").findings
        exposed = 3 * round(256 * MB / 100)
        assert values(one)["bandwidth"] == pytest.approx(100)
        assert values(one)["expected"] == 300
        # At 150 GB/s a third of the time is saved, at 300 two thirds.
        assert (one.saving, one.bound) == pytest.approx((exposed / 3, exposed * 2 / 3), rel=1e-6)

    def test_what_ranks_wait_for_each_other_is_no_matter_of_bandwidth(self):
        """The first rank comes half a ms sooner: its collectives take as much longer, the transfer does not."""
        time, late = round(256 * MB / 100), MS // 2
        begins = [3_300_000 * part for part in range(3)]
        waiting = run(
            *[[(begin + by, begin + late + time) for begin in begins] for by in (0, late)],
            size=256 * MB,
        )
        ranks = [replace(one, device="NVIDIA A100-SXM4-80GB", world_size=2) for one in waiting]
        (one,) = said(ranks, "COM119").findings
        assert values(one)["exposed"] == 3 * time

    @pytest.mark.parametrize(
        ("device", "expected"),
        [
            ("Tesla V100-SXM2-32GB", 150),
            ("NVIDIA A100-SXM4-80GB", 300),
            ("NVIDIA H100 80GB HBM3", 450),
            ("NVIDIA H100 PCIe", None),
            ("NVIDIA H100 NVL", None),
            ("NVIDIA H200", 450),
            ("NVIDIA H200 NVL", None),
            ("NVIDIA B200", 900),
            ("AMD Instinct MI300X", 448),
            ("Tesla T4", None),
        ],
    )
    def test_links_of_boards_are_known_by_the_name_of_the_device(self, device, expected):
        """GB/s in one direction: half of what the makers state for both."""
        found = said([replace(one, group_names={}) for one in bandwidth(50, device=device)], "COM119")
        assert [values(one)["expected"] for one in found.findings] == ([expected] if expected else [])

    def test_of_what_is_shared_out_half_moves_between_two(self):
        (one,) = said(bandwidth(100, kind="reduce_scatter"), "COM119").findings
        assert values(one)["bandwidth"] == pytest.approx(50)

    def test_messages_are_large_from_a_size_on(self):
        assert len(said(bandwidth(50, size=16 * MB), "COM119").findings) == 1

    def test_what_has_no_bus_bandwidth_is_left_out(self):
        """Barriers of any size, and of whatever length."""
        with_barriers = []
        for number in range(2):
            times = [*[("all_reduce", 2 * MS)] * 3, ("barrier", MS)]
            rows = [
                (step, kind, 256 * MB, LENGTH * step + 2 * MS * at, LENGTH * step + 2 * MS * at + time)
                for step in range(4)
                for at, (kind, time) in enumerate(times)
            ]
            made = rank(number, *rows, steps=STEPS, length=LENGTH)
            with_barriers.append(replace(made, device="NVIDIA A100-SXM4-80GB", world_size=2))
        (one,) = said(with_barriers, "COM119").findings
        assert (values(one)["bandwidth"], one.count) == (pytest.approx(256 * MB / (2 * MS)), 12)

    @pytest.mark.parametrize(
        "ranks",
        [bandwidth(200), bandwidth(100, size=MB), bandwidth(50, size=16 * MB - 1)],
        ids=["fast", "small", "somewhat small"],
    )
    def test_what_looks_like_it_is_none(self, ranks):
        found = said(ranks, "COM119")
        assert (found.findings, found.not_applicable) == ((), ())

    @pytest.mark.parametrize(
        "ranks",
        [bandwidth(10, device="NVIDIA A100-PCIE-40GB"), bandwidth(10, world=64)],
        ids=["no board", "many machines"],
    )
    def test_links_that_are_not_known_cannot_be_judged(self, ranks):
        assert reasons([replace(one, group_names={}) for one in ranks], "COM119") == ["unknown_links"]

    def test_missing_ranks_make_the_transfer_uncertain(self):
        ranks = [replace(one, groups=(Group("0-3", (0, 1, 2, 3), 4),)) for one in bandwidth(100)]
        assert reasons(ranks, "COM119") == ["ranks_missing"]


def stated(*settings, environment=None):
    ranks = run(*[[(0, MS)]] * len(settings))
    return [
        replace(one, recorded={"with_stack": value}, environment=None if environment is None else environment[number])
        for number, (one, value) in enumerate(zip(ranks, settings, strict=True))
    ]


class TestMixedOptions:
    def test_the_rank_that_was_recorded_otherwise_is_named(self):
        (one,) = said(stated("off", "on", "off"), "CAP106").findings
        assert values(one) == {"settings": "with_stack", "setting": "on", "elsewhere": "off", "ranks": "1"}

    def test_variables_that_differ_are_named(self):
        given = [{"HCCL_RDMA_TC": "132"}, {"HCCL_RDMA_TC": "132"}, {}]
        (one,) = said(stated("on", "on", "on", environment=given), "CAP106").findings
        assert one.sentence == "environment"
        assert values(one) == {"settings": "HCCL_RDMA_TC", "setting": "-", "elsewhere": "132", "ranks": "2"}

    def test_equal_settings_are_none(self):
        assert said(stated("on", "on", environment=[{"A": "1"}] * 2), "CAP106").findings == ()

    def test_simulated_ranks_are_recorded_alike(self):
        assert said(summaries(workload()), "CAP106").findings == ()
