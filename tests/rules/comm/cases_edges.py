"""Rules about communication just at their thresholds: id → programs."""

from __future__ import annotations

from dataclasses import replace

from tests.ascend_builder import AscendBuilder
from tests.rules.comm.cases import (
    DDP,
    LARGE,
    MB,
    SQUARE,
    buckets,
    compute,
    exposed,
    micro_steps,
    normalised,
    npu_messages,
    npu_transfers,
    reduce,
    steps,
)
from tests.rules.make import Fires, waited
from tests.rules.sequences import STEP, read_npu


def half_hidden(b, at, number):
    """Compute of 3000 µs, the last of it beside communication that takes 900 µs more."""
    compute(b, at, at + 20, 3000)
    reduce(b, at + 10, at + 2020, 1900, tid=2)


def backward(bucket):
    """Compute of 1000 µs in forward, 1500 in backward, then gradients of so many MB for 1000 µs."""

    def body(b, at, number):
        b.op("aten::mm", at, 8, **{"Sequence number": number + 1})
        b.launch(at + 2, 3, at + 20, 1000)
        b.op("autograd::engine::evaluate_function: MmBackward0", at + 30, 100, tid=2)
        b.op("MmBackward0", at + 31, 98, tid=2, **{"Sequence number": number + 1})
        compute(b, at + 40, at + 1020, 1500, tid=2)
        reduce(b, at + 60, at + 2520, 1000, size=bucket * MB, tid=2)

    return body


def with_waiting():
    """A collective of 1500 µs of which a transfer takes 500."""
    b = AscendBuilder()
    for number in range(3):
        at = number * STEP
        b.step(number, at, STEP - 100)
        b.kernel("aclnnMatMul_1", at + 100, 2000, op_type="MatMulV2", launch=at + 10)
        parts = [(0, "Notify_Wait", at + 2200, 1000, 1), (0, "Memcpy", at + 3200, 500, 1)]
        b.collective(f"hcom_allReduce__1_{number}_1", at + 2200, 1500, parts)
        b.call("AscendCL@aclrtSynchronizeDevice", at + 100, 3600)
    return read_npu(b)


def sized(*sizes, ranks=8, dur=100):
    """Messages of these sizes one after the other, after compute of a millisecond."""

    def body(b, at, number):
        compute(b, at, at + 20, 1000)
        for part, size in enumerate(sizes):
            reduce(b, at + 30 + 15 * part, at + 1030 + part * dur, dur, size=size, ranks=ranks, tid=2)

    return steps(body)


def two_buckets(count):
    """So many reductions, of which the last lies open for 600 µs."""

    def body(b, at, number):
        b.annotation(DDP, at, 50)
        compute(b, at + 60, at + 80, 2000)
        for part in range(count - 1):
            reduce(b, at + 200 + 20 * part, at + 300 + 700 * part, 600, tid=2)
        reduce(b, at + 300, at + 2080, 600, tid=2)

    return steps(body)


def joined(gap):
    """A gather into a list, and a `cat` so many µs after the call."""

    def body(b, at, number):
        compute(b, at, at + 20, 1000)
        b.op("c10d::allgather_", at + 100, 100)
        b.launch(at + 102, 3, at + 1030, 500, name="ncclDevKernel_AllGather_RING_LL()", stream=20)
        b.op("aten::copy_", at + 110, 80)
        b.launch(at + 112, 5, at + 1540, 300, cat="gpu_memcpy", name="Memcpy DtoD (Device -> Device)")
        b.op("aten::cat", at + 200 + gap, 20)
        b.launch(at + 202 + gap, 5, at + 2000, 300, name="CatArrayBatchedCopy")
        compute(b, at + 1300, at + 2400, 1000)

    return steps(body)


def contended(under, *, cover=1.0, alone=1, dur=500, count=3):
    """Kernels of so many µs beside communication (or beside it for a part), and some of 200 µs alone; in each step."""

    def body(b, at, number):
        begin = at + 100
        for part in range(under):
            compute(b, at + 10 * part, begin, dur, name="gemm", grid=[8, 1, 1], shapes=SQUARE)
            reduce(b, at + 10 * part + 5, begin, dur * cover, tid=2)
            begin += dur
        for part in range(alone):
            compute(b, at + 10 * (under + part), begin, 200, name="gemm", grid=[8, 1, 1], shapes=SQUARE)
            begin += 200
        compute(b, at + 500, begin, 20, name="other")

    return waited(body, steps=count, length=STEP)


def driven(devices, name):
    """One process that launches on so many devices."""

    def body(b, at, number):
        b.op(name, at, 500)
        for device in range(devices):
            compute(b, at + 20 * device, at + 20 * device + 10, 3000, device=device)

    return steps(body)


def micro(*reduced, forwards):
    """Forward passes of 900 µs of which some are reduced after; then the optimizer."""

    def body(b, at, number):
        for part in range(forwards):
            t = at + part * 900
            b.annotation(DDP, t, 50)
            compute(b, t + 10, t + 30, 400)
            compute(b, t + 120, t + 845, 10)
            if part in reduced:
                reduce(b, t + 100, t + 440, 400, tid=2)
        b.annotation("Optimizer.step#AdamW.step", at + 3700, 100)
        compute(b, at + 3710, at + 3730, 200)

    return body


def gathering(launched, *, hidden=False):
    """Parameters gathered after compute of 780 µs, asked for at some time; others are gathered or reduced beside."""

    def body(b, at, number):
        compute(b, at + 10, at + 20, 780)
        reduce(b, at + launched, at + 820, 380, kind="_allgather_base", tid=2)
        compute(b, at + launched + 20, at + 1200, 800)
        if hidden:
            reduce(b, at + 1150, at + 1210, 300, kind="_allgather_base", tid=2)
            reduce(b, at + 2020, at + 2040, 100, tid=2)

    return steps(body)


def some_buckets(several):
    """Two reductions in the first steps, and one in the others; the last one lies open for 600 µs."""

    def body(b, at, number):
        b.annotation(DDP, at, 50)
        compute(b, at + 60, at + 80, 2000)
        for part in range(8):
            compute(b, at + 320 + 10 * part, at + 2685 + 15 * part, 10)
        if number < several:
            reduce(b, at + 200, at + 300, 600, tid=2)
        reduce(b, at + 300, at + 2080, 600, tid=2)

    return steps(body)


FIRES = {
    "COM101": [
        Fires(
            steps(exposed(0.7)),
            saving=580,
            low=0,
            bound=1160,
            confidence="LOW",
            cost=2800,
            severity="MEDIUM",
            count=4,
            evidence={
                "exposed": 2800,
                "share": 0.7,
                "overlap": 0,
                "count": 4,
                "needs_compute": 1160,
                "wait_possible": 2800,
                "most_exposed": "all_reduce",
            },
            ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            advice=("overlap_reductions", "compare_ranks_first"),
            draws="comm_exposed",
            each=2800,
            first=(1190, 3990),
            look=(1190, 3990),
            options={"share": (0.1, 0.7, 0.71)},
        ),
        Fires(
            steps(half_hidden),
            saving=450,
            low=0,
            bound=900,
            confidence="LOW",
            severity="MEDIUM",
            count=4,
            evidence={
                "exposed": 900,
                "share": 0.225,
                "overlap": 0.526316,
                "count": 4,
                "needs_compute": 900,
                "wait_possible": 900,
                "most_exposed": "all_reduce",
            },
            ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            advice=("overlap_reductions", "compare_ranks_first"),
            draws="comm_exposed",
            each=900,
            first=(3020, 3920),
            look=(3020, 3920),
            options={"share": (0.1, 0.225, 0.23)},
        ),
        Fires(
            steps(backward(100)),
            saving=750,
            cost=1000,
            severity="MEDIUM",
            count=4,
            evidence={
                "exposed": 1000,
                "share": 0.25,
                "overlap": 0,
                "count": 4,
                "last_bucket": 250,
                "wait_possible": 1000,
                "most_exposed": "all_reduce",
            },
            ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            advice=("overlap_reductions", "compare_ranks_first"),
            draws="comm_exposed",
            each=1000,
            first=(2520, 3520),
            look=(2520, 3520),
            options={"share": (0.1, 0.25, 0.253)},
        ),
        Fires(
            with_waiting(),
            saving=250,
            low=0,
            bound=500,
            confidence="LOW",
            severity="MEDIUM",
            sentence="waiting",
            count=3,
            evidence={
                "exposed": 1500,
                "share": 0.384615,
                "overlap": 0,
                "count": 3,
                "wait_exposed": 1000,
                "needs_compute": 500,
                "most_exposed": "all_reduce",
            },
            ops=("hcom_allReduce__1_0_1", "hcom_allReduce__1_1_1", "hcom_allReduce__1_2_1"),
            advice=("overlap_reductions", "compare_ranks_first"),
            draws="comm_exposed",
            each=500,
            first=(3200, 3700),
            look=(3200, 3700),
            options={"share": (0.1, 500 / 3900, 0.1283)},
        ),
    ],
    "COM112": [
        Fires(
            gathering(798),
            saving=370,
            severity="MEDIUM",
            count=4,
            evidence={"exposed": 380, "count": 4},
            ops=("ncclDevKernel_AllGather_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            draws="comm_exposed",
            each=380,
            first=(820, 1200),
            look=(820, 1200),
            options={"share": (0.05, 0.095, 0.096), "late": (0.5, 1, 1.01)},
        ),
        Fires(
            gathering(810, hidden=True),
            saving=360,
            severity="MEDIUM",
            count=4,
            evidence={"exposed": 380, "count": 4},
            ops=("ncclDevKernel_AllGather_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            draws="comm_exposed",
            each=380,
            first=(820, 1200),
            look=(820, 1200),
            options={"share": (0.05, 0.095, 0.096), "late": (0.5, 1, 1.01)},
        ),
    ],
    "COM102": [
        Fires(
            steps(micro(0, 1, 3, forwards=4)),
            saving=803,  # With the gaps after two launches that are not there.
            severity="HIGH",
            count=8,
            evidence={"exposed": 800, "micro_steps": 4, "count": 8},
            ops=("DistributedDataParallel.forward",),
            draws="comm_exposed",
            each=800,
            first=(440, 840),
            look=(440, 840),
        ),
        Fires(
            waited(micro(0, 1, forwards=2), steps=1, length=STEP),
            saving=401.5,
            severity="MEDIUM",
            evidence={"exposed": 400, "micro_steps": 2, "count": 1},
            ops=("DistributedDataParallel.forward",),
            draws="comm_exposed",
            each=400,
            first=(440, 840),
            look=(440, 840),
        ),
        Fires(
            steps(micro_steps(2, every=True)),
            saving=400,
            severity="MEDIUM",
            count=4,
            evidence={"exposed": 400, "micro_steps": 2, "count": 4},
            ops=("DistributedDataParallel.forward",),
            draws="comm_exposed",
            each=400,
            first=(440, 840),
            look=(440, 840),
        ),
    ],
    "COM104": [
        Fires(
            sized(*[MB - 4] * 8, ranks=9),
            saving=400,
            low=0,
            bound=800,
            severity="MEDIUM",
            confidence="LOW",
            count=32,
            evidence={"time": 800, "part": 1, "size": 1048572, "count": 32},
            ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            draws="comm_exposed",
            each=800,
            first=(1030, 1830),
            look=(1030, 1830),
            options={
                "share": (0.2, 1, 1.01),
                "between_mb": (1, 0.9999961853027345, 0.9999961853027344),
                "least": (8, 8, 9),
            },
        ),
        Fires(
            sized(*[16 * MB - 4] * 8),
            saving=400,
            low=0,
            bound=800,
            severity="MEDIUM",
            confidence="LOW",
            count=32,
            evidence={"time": 800, "part": 1, "size": 16777212, "count": 32},
            ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            draws="comm_exposed",
            each=800,
            first=(1030, 1830),
            look=(1030, 1830),
            options={
                "share": (0.2, 1, 1.01),
                "within_mb": (16, 15.999996185302736, 15.999996185302734),
                "machine": (8, 8, 7),
                "least": (8, 8, 9),
            },
        ),
        # At the bandwidth of the large ones, 64 MB in 100 µs, eight of 4 MB need 50 of 800 µs.
        Fires(
            sized(*[4 * MB] * 8, 64 * MB),
            saving=750,
            severity="MEDIUM",
            count=32,
            evidence={"time": 800, "part": 0.888889, "size": 4194304, "count": 32},
            ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            draws="comm_exposed",
            each=800,
            first=(1030, 1830),
            look=(1030, 1830),
            options={
                "share": (0.2, 0.888888888888889, 0.8888888888888891),
                "within_mb": (16, 5, 4),
                "machine": (8, 8, 7),
                "least": (8, 8, 9),
            },
        ),
    ],
    "COM105": [
        Fires(
            some_buckets(2),
            saving=150,
            bound=300,
            severity="LOW",
            count=2,
            evidence={"exposed": 300, "part": 0.5, "buckets": 1.5},
            ops=("DistributedDataParallel.forward",),
            draws="comm_exposed",
            each=(600, 600, 0, 0),
            first=(2080, 2680),
            look=(2080, 2680),
            options={"part": (0.5, 0.5, 0.51), "share": (0.05, 0.075, 0.076)},
        ),
        Fires(
            two_buckets(2),
            saving=300,
            bound=600,
            severity="MEDIUM",
            count=4,
            evidence={"exposed": 600, "part": 1, "buckets": 2},
            ops=("DistributedDataParallel.forward",),
            draws="comm_exposed",
            each=600,
            first=(2080, 2680),
            look=(2080, 2680),
            options={"part": (0.5, 1, 1.01), "share": (0.05, 0.15, 0.151)},
        ),
        Fires(
            two_buckets(3),
            saving=300,
            bound=600,
            severity="MEDIUM",
            count=4,
            evidence={"exposed": 600, "part": 1, "buckets": 3},
            ops=("DistributedDataParallel.forward",),
            draws="comm_exposed",
            each=600,
            first=(2080, 2680),
            look=(2080, 2680),
            options={"part": (0.5, 1, 1.01), "share": (0.05, 0.15, 0.151)},
        ),
    ],
    "COM106": [
        Fires(
            joined(1000),
            saving=603,
            severity="MEDIUM",
            count=4,
            evidence={"time": 600, "copies": 8, "count": 4},
            ops=("c10d::allgather_",),
            draws="compute",
            each=600,
            first=(1540, 1840),
            look=(1540, 1840),
        )
    ],
    "COM108": [
        Fires(
            contended(1),
            saving=150,
            severity="LOW",
            count=3,
            evidence={"lost": 300, "slower": 1.5, "count": 3},
            ops=("gemm",),
            draws="compute",
            each=500,
            first=(100, 600),
            look=(100, 600),
            options={"slower": (0.2, 1.5000000000000002, 1.5000000000000004), "least_us": (20, 200, 201)},
        ),
        Fires(
            contended(8, dur=240),
            saving=160,
            severity="LOW",
            count=24,
            evidence={"lost": 320, "slower": 0.2, "count": 24},
            ops=("gemm",),
            draws="compute",
            each=1920,
            first=(100, 2020),
            look=(100, 2020),
            options={"slower": (0.2, 0.20000000000000004, 0.20000000000000007), "least_us": (20, 200, 201)},
        ),
    ],
    "COM109": [
        Fires(
            npu_transfers(size=513),
            bound=400,
            count=30,
            evidence={"count": 30, "size": 513, "time": 400, "part": 1},
            ops=("SDMA",),
            draws="comm_exposed",
            look=(2200, 2240),
            options={"align": (512, 512.5, 520), "share": (0.05, 1, 1.01)},
        )
    ],
    "COM110": [
        Fires(
            read_npu(npu_messages(50 * MB + 1)),
            severity="LOW",
            count=3,
            evidence={"largest": 209715204, "buffer": 209715200, "time": 1000, "count": 3},
            ops=("HCCL_BUFFSIZE",),
            options={"default_mb": (200, 200.5, 203)},
        )
    ],
    "COM111": [
        Fires(
            npu_transfers(size=1000, over="RDMA", dur=4_100_000, link="ROCE", times=20_000),
            bound=41000000,
            severity="HIGH",
            sentence="repeated",
            count=30,
            evidence={"count": 30, "time": 41000000},
            ops=("RDMA",),
            draws="comm_exposed",
            look=(2200, 4102200),
            options={"repeat_s": (4, 4.1, 4.14)},
        ),
        Fires(
            replace(LARGE, environment={"HCCL_RDMA_TC": "256"}),
            severity="LOW",
            sentence="invalid",
            evidence={"variable": "HCCL_RDMA_TC", "setting": "256"},
            ops=("HCCL_RDMA_TC",),
        ),
        Fires(
            replace(LARGE, environment={"HCCL_RDMA_TC": "x"}),
            severity="LOW",
            sentence="invalid",
            evidence={"variable": "HCCL_RDMA_TC", "setting": "x"},
            ops=("HCCL_RDMA_TC",),
        ),
        Fires(
            npu_transfers(size=MB, over="RDMA", dur=400, link="ROCE"),
            bound=2322.278,
            severity="LOW",
            count=30,
            evidence={"bandwidth": 2.62144, "expected": 6.25, "time": 4000, "count": 30},
            ops=("RDMA",),
            draws="comm_exposed",
            look=(2200, 2600),
            options={"least_mb": (1, 1, 1.01), "least": (10, 30, 31)},
            prices={"gbs": (12.5, 10, 1902.848), "reached": (0.5, 0.4, 1902.848)},
        ),
    ],
    "COM113": [
        Fires(
            driven(2, "Broadcast"),
            severity="HIGH",
            count=4,
            evidence={"devices": 2, "count": 4},
            ops=("torch.nn.DataParallel",),
        )
    ],
    "COM118": [
        Fires(
            steps(normalised(21)),
            saving=840,
            severity="HIGH",
            count=84,
            evidence={"exposed": 840, "count": 84, "usual": 40},
            ops=("SyncBatchNorm",),
            draws="comm_exposed",
            each=840,
            first=(40, 80),
            look=(40, 80),
            options={"least": (20, 20, 21)},
        )
    ],
}
SILENT = {
    "COM102": [steps(micro(0, 2, forwards=3)), waited(micro(0, forwards=1), steps=1, length=STEP)],
    "COM112": [gathering(797)],
    "COM101": [steps(exposed(0.09)), steps(backward(20))],
    "COM104": [
        sized(*[MB] * 8, ranks=9),
        sized(*[16 * MB] * 8),
        sized(*[4 * MB] * 7),
    ],
    "COM105": [some_buckets(1), two_buckets(1), steps(buckets(last=False))],
    "COM108": [
        contended(1, cover=0.5),
        contended(1, alone=0),
        contended(0),
        contended(8, dur=239),
        contended(1, count=2),
    ],
    "COM109": [npu_transfers(size=512), npu_transfers(size=1536)],
    "COM110": [read_npu(npu_messages(50 * MB))],
    "COM111": [
        npu_transfers(size=1000, over="RDMA", dur=4_000_000, link="ROCE", times=20_000),
        replace(LARGE, environment={"HCCL_RDMA_TC": "252"}),
        replace(LARGE, environment={"HCCL_RDMA_TC": "0", "HCCL_RDMA_SL": "7"}),
        npu_transfers(size=MB - 1, over="RDMA", dur=400, link="ROCE"),
        npu_transfers(size=MB, over="RDMA", dur=150, link="ROCE"),
    ],
    "COM113": [driven(1, "Broadcast")],
    "COM118": [steps(normalised(20))],
}
