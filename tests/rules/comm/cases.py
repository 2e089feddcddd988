"""What the rules about communication must find, and what not: id → programs."""

from __future__ import annotations

from dataclasses import replace

from tests.ascend_builder import AscendBuilder
from tests.rules.make import Fires, Silent, waited
from tests.rules.sequences import STEP, read_npu

MB = 1 << 20
DDP = "DistributedDataParallel.forward"
NCCL = 20
"""Stream of communication."""


def reduce(b, at, begin, dur, *, kind="allreduce", size=64 * MB, ranks=8, tid=1, wait=False, under=None, stream=NCCL):
    """A collective, asked for at one time; with `wait` the compute stream waits for it at once."""
    kernel = {"allreduce": "AllReduce", "_allgather_base": "AllGather", "send": "SendRecv"}.get(kind, "AllReduce")
    if under:
        b.op(under, at - 1, 14, tid=tid)
    b.op(f"c10d::{kind}_", at, 10, tid=tid)
    more = {
        "Collective name": kind,
        "In msg nelems": size // 4,
        "Out msg nelems": size // 4,
        "dtype": "Float",
        "Group size": ranks,
    }
    name = f"ncclDevKernel_{kernel}_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    b.launch(at + 2, 3, begin, dur, name=name, tid=tid, stream=stream, **more)
    if wait:
        b.api("cudaStreamWaitEvent", at + 11, 1, tid=tid)


def compute(b, at, begin, dur, *, op="aten::mm", tid=1, name="kernel", shapes=None, **more):
    b.op(op, at, 8, tid=tid, **({} if shapes is None else {"Input Dims": shapes}))
    b.launch(at + 2, 3, begin, dur, name=name, tid=tid, **more)


def exposed(share):
    """Compute, then communication that takes so much of the step."""

    def body(b, at, number):
        compute(b, at, at + 20, STEP * (1 - share) - 40)
        reduce(b, at + 10, at + STEP * (1 - share) - 10, STEP * share, tid=2)

    return body


def hidden(b, at, number):
    compute(b, at, at + 20, 3900)
    reduce(b, at + 10, at + 1000, 2000)


def micro_steps(forwards, every):
    """Forward passes with their reductions, then the optimizer."""

    def body(b, at, number):
        for part in range(forwards):
            t = at + part * 900
            b.annotation("DistributedDataParallel.forward", t, 50)
            compute(b, t + 10, t + 30, 400)
            if every or part == forwards - 1:
                reduce(b, t + 100, t + 440, 400, tid=2)
        b.annotation("Optimizer.step#AdamW.step", at + 3700, 100)
        compute(b, at + 3710, at + 3730, 200)

    return body


def searching(b, at, number):
    compute(b, at, at + 20, 1000)
    b.python("torch/nn/parallel/distributed.py(290): _find_tensors", at + 1000, 1000)
    compute(b, at + 2100, at + 2120, 1800)


def busy_search(b, at, number):
    b.python("torch/nn/parallel/distributed.py(290): _find_tensors", at + 100, 1000)
    compute(b, at, at + 20, 3900)


def messages(count, size, dur):
    """So many messages of one size after each other, with nothing beside them."""

    def body(b, at, number):
        compute(b, at, at + 20, 1000)
        for part in range(count):
            reduce(b, at + 30 + 15 * part, at + 1030 + part * dur, dur, size=size, tid=2)

    return body


def buckets(last):
    """Two hidden buckets and one that is not; others run beside compute."""

    def body(b, at, number):
        b.annotation("DistributedDataParallel.forward", at, 50)
        compute(b, at + 60, at + 80, 2000)
        for part in range(2):
            reduce(b, at + 200 + 20 * part, at + 300 + 700 * part, 600, tid=2)
        reduce(b, at + 300, at + 2080 - (0 if last else 400), 1500 if last else 380, tid=2)

    return body


def gathered(*, as_list, cat):
    """all_gather, filling a list by copies or one tensor."""

    def body(b, at, number):
        compute(b, at, at + 20, 1000)
        name = "allgather_" if as_list else "_allgather_base_"
        b.op(f"c10d::{name}", at + 100, 100)
        b.launch(at + 102, 3, at + 1030, 500, name="ncclDevKernel_AllGather_RING_LL()", stream=NCCL)
        if as_list:
            b.op("aten::copy_", at + 110, 80)
            for part in range(4):
                args = {"cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "api": "cudaMemcpyAsync"}
                b.launch(at + 112 + 10 * part, 5, at + 1540 + 110 * part, 100, **args)
        if cat:
            b.op("aten::cat", at + 210, 20)
            b.launch(at + 212, 5, at + 2000, 300, name="CatArrayBatchedCopy")
        compute(b, at + 300, at + 2400, 1000)

    return body


def waiting(*, wait, after=2000, under=None, optimizer=False, tid=1):
    """A collective in the middle of compute."""

    def body(b, at, number):
        compute(b, at, at + 20, 980)
        reduce(b, at + 100, at + 1000, 900, wait=wait, under=under, tid=tid)
        if optimizer:
            b.annotation("Optimizer.step#SGD.step", at + 150, 100)
        compute(b, at + 200, at + 1900, after)

    return body


def layers(count, dur=150, *, calculate=300, stream=NCCL):
    """Layers of tensor parallelism: what each computes is reduced, and the next one needs the sum."""

    def body(b, at, number):
        for part in range(count + 1):
            begin, asked = at + 500 + part * (calculate + dur), at + 24 * part
            compute(b, asked, begin, calculate)
            if part < count:
                reduce(b, asked + 12, begin + calculate, dur, size=4 * MB, wait=stream == NCCL, stream=stream)

    return steps(body)


def launched_first(b, at, number):
    """The optimizer's kernel, which follows the collective, was launched by the first call of all."""
    b.annotation("Optimizer.step#SGD.step", at + 2, 20)
    compute(b, at + 3, at + 1900, 2000)
    reduce(b, at + 100, at + 1000, 900, wait=True)


SQUARE = [[512, 512], [512, 512]]


def beside(slower, shapes=SQUARE):
    """Kernels of 200 µs, half of them under communication."""

    def body(b, at, number):
        begin = at + 100
        for part in range(8):
            dur = 200 * (slower if part < 4 else 1)
            compute(b, at + 10 * part, begin, dur, name="gemm", grid=[8, 1, 1], shapes=shapes)
            begin += dur
        reduce(b, at + 90, at + 100, 4 * 200 * slower, tid=2)

    return body


def every_other(slower, more=0):
    """Two persistent kernels of 200 and 1000 µs in one grid; in every other step communication runs beside both."""

    def body(b, at, number):
        begin, slow = at + 100, slower if number % 2 else 1
        for part, dur in enumerate((200, 1000, *(20,) * (more if number == 3 else 0))):
            compute(b, at + 10 * part, begin, dur * slow, name="gemm", grid=[132, 1, 1])
            begin += dur * slow
        if number % 2:
            reduce(b, at + 90, at + 100, 960 * slower, tid=2)

    return waited(body, steps=6, length=STEP)


def gathering(launched):
    """Blocks whose parameters are gathered when the block before is over, or earlier."""

    def body(b, at, number):
        for part in range(3):
            t = at + 1200 * part + 20
            reduce(b, t + launched, t + 800, 380, kind="_allgather_base", tid=2)
            compute(b, t - 10, t, 780)

    return body


def driven(devices, module):
    def body(b, at, number):
        if module:
            b.annotation("DataParallel.forward", at, 500)
        for device in range(devices):
            compute(b, at + 20 * device, at + 20 * device + 10, 3000, device=device)

    return body


def gloo(name, busy, size=4 * MB, late=0):
    """What is copied from the device, sent for 2000 µs; this rank waits longer for others in the first step."""

    def body(b, at, number):
        compute(b, at, at + 20, 3900 if busy else 1000)
        if size:
            b.copy(at + 20, 10, at + 1020, 50, name="Memcpy DtoH (Device -> Pinned)", bytes=size, stream=9)
        b.annotation(name, at + 1100, 2000 + (late if number == 0 else 0))

    return body


def pipeline(dur):
    def body(b, at, number):
        compute(b, at, at + 20, 1900)
        reduce(b, at + 10, at + 2000, dur, kind="send", tid=2)

    return body


def stages(first, each, count=6, size=1 << 16):
    """Micro-batches of 200 µs, each received for so long before; the first for longer."""

    def body(b, at, number):
        begin = at + 20
        for part in range(count):
            dur = each if part else first
            reduce(b, at + 30 * part, begin, dur, kind="send", tid=2, size=size)
            compute(b, at + 30 * part + 12, begin + dur, 200)
            begin += dur + 200

    return steps(body)


def normalised(layers):
    def body(b, at, number):
        for part in range(layers):
            t = at + part * 90
            compute(b, t, t + 15, 20)
            reduce(b, t + 20, t + 40, 40, kind="_allgather_base", size=4096, under="SyncBatchNorm")

    return body


def npu_messages(count):
    b = AscendBuilder()
    for number in range(3):
        b.step(number, number * 4000, 3900)
        b.kernel("aclnnMatMul_1", number * 4000 + 100, 2000, op_type="MatMulV2", launch=number * 4000 + 10)
        b.collective(f"hcom_allReduce__1_{number}_1", number * 4000 + 2200, 1000, count=count)
    return b


def npu_transfers(*, size, over="SDMA", dur=40, link="HCCS", times=1):
    """Collectives of 400 µs with ten transfers one after the other, of one size and over one kind of link."""
    b = AscendBuilder()
    for number in range(3):
        at = number * STEP * times
        b.step(number, at, STEP * times - 100)
        b.kernel("aclnnMatMul_1", at + 100, 2000, op_type="MatMulV2", launch=at + 10)
        parts = [(0, "Memcpy", at + 2200 + dur * part, dur, 1) for part in range(10)]
        b.collective(f"hcom_allReduce__1_{number}_1", at + 2200, 10 * dur, parts)
    for event in b.events:
        if "transport type" in event.get("args", {}):
            event["args"] |= {"size(Byte)": size, "transport type": over, "link type": link}
    return read_npu(b)


def npu_beside(under, alone):
    """Transfers of 4 MB that take so many µs beside matrix products, and without."""
    b = AscendBuilder()
    for number in range(3):
        at = number * STEP
        b.step(number, at, STEP - 100)
        b.kernel("aclnnMatMul_1", at + 100, 2000, op_type="MatMulV2", launch=at + 10)
        first = [(0, "Memcpy", at + 200 + under * part, under, 1) for part in range(3)]
        b.collective(f"hcom_allReduce__1_{number}_1", at + 200, 3 * under, first)
        second = [(0, "Memcpy", at + 2200 + alone * part, alone, 1) for part in range(3)]
        b.collective(f"hcom_allReduce__2_{number}_1", at + 2200, 3 * alone, second)
    for event in b.events:
        if "transport type" in event.get("args", {}):
            event["args"]["size(Byte)"] = 4 * MB
    return read_npu(b)


def sharded(*, left, exposed, name="FullyShardedDataParallel.forward", kind="_allgather_base"):
    """Compute, and gathers that are exposed for so many µs a step; so much of the memory is never used."""

    def body(b, at, number):
        b.annotation(name, at, 50)
        b.annotation("Optimizer.step#AdamW.step", at + 60, 10)
        b.memory(at + 5, 512, allocated=round((1 - left) * 80 * 2**30), reserved=round((1 - left) * 80 * 2**30))
        compute(b, at, at + 20, 3000)
        reduce(b, at + 30, at + 3020 + exposed - 900, 900, kind=kind, tid=2)

    b = steps(body)
    b.header["deviceProperties"] = [{"id": 0, "name": "Example GPU", "totalGlobalMem": 80 * 2**30}]
    return b


def steps(body):
    return waited(body, length=STEP)


LARGE = read_npu(npu_messages(100 * MB))

FIRES = {
    "COM101": [
        Fires(
            steps(exposed(0.3)),
            saving=600,
            low=0,
            bound=1200,
            confidence="LOW",
            severity="MEDIUM",
            count=4,
            evidence={
                "exposed": 1200,
                "share": 0.3,
                "overlap": 0,
                "count": 4,
                "needs_compute": 1200,
                "wait_possible": 1200,
                "most_exposed": "all_reduce",
            },
            ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            advice=("overlap_reductions", "compare_ranks_first"),
            draws="comm_exposed",
            each=1200,
            first=(2790, 3990),
            look=(2790, 3990),
            options={"share": (0.1, 0.3, 0.303)},
        ),
        Fires(
            steps(exposed(0.12)),
            saving=240,
            low=0,
            bound=480,
            confidence="LOW",
            severity="MEDIUM",
            count=4,
            evidence={
                "exposed": 480,
                "share": 0.12,
                "overlap": 0,
                "count": 4,
                "needs_compute": 480,
                "wait_possible": 480,
                "most_exposed": "all_reduce",
            },
            ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            advice=("overlap_reductions", "compare_ranks_first"),
            draws="comm_exposed",
            each=480,
            first=(3510, 3990),
            look=(3510, 3990),
            options={"share": (0.1, 0.12, 0.121)},
        ),
        # Nothing is saved between kernels that need each other's results, on whichever stream.
        *(
            Fires(
                layers(7, stream=stream),
                cost=1050,
                severity="MEDIUM",
                confidence="LOW",
                sentence="chain",
                count=28,
                evidence={"exposed": 1050, "share": 0.2625, "count": 28},
                ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
                advice=("split_chain", "compare_ranks_first"),
                draws="comm_exposed",
                each=1050,
                first=(800, 950),
                look=(800, 950),
                options={"share": (0.1, 0.2625, 0.263)},
            )
            for stream in (NCCL, 7)
        ),
    ],
    "COM102": [
        Fires(
            steps(micro_steps(4, every=True)),
            saving=1200,
            severity="HIGH",
            count=12,
            evidence={"exposed": 1200, "micro_steps": 4, "count": 12},
            ops=("DistributedDataParallel.forward",),
            draws="comm_exposed",
            each=1200,
            first=(440, 840),
            look=(440, 840),
        )
    ],
    "COM103": [
        Fires(
            steps(searching),
            saving=1000,
            severity="HIGH",
            count=4,
            evidence={"idle": 980, "host": 1000, "count": 4},
            ops=("_find_tensors",),
            draws="idle",
            each=980,
            first=(1020, 2000),
            look=(1020, 2000),
        )
    ],
    "COM104": [
        Fires(
            steps(messages(20, 64 * 1024, 100)),
            saving=1000,
            low=0,
            bound=2000,
            severity="MEDIUM",
            confidence="LOW",
            count=80,
            evidence={"time": 2000, "part": 1, "size": 65536, "count": 80},
            ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            draws="comm_exposed",
            each=2000,
            first=(1030, 3030),
            look=(1030, 3030),
            options={"share": (0.2, 1, 1.01), "within_mb": (16, 0.063, 0.0625), "least": (8, 20, 21)},
        ),
        Fires(
            steps(messages(10, 4 * MB, 200)),
            saving=1000,
            low=0,
            bound=2000,
            severity="MEDIUM",
            confidence="LOW",
            count=40,
            evidence={"time": 2000, "part": 1, "size": 4194304, "count": 40},
            ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            draws="comm_exposed",
            each=2000,
            first=(1030, 3030),
            look=(1030, 3030),
            options={"share": (0.2, 1, 1.01), "within_mb": (16, 5, 4), "machine": (8, 8, 7), "least": (8, 10, 11)},
        ),
    ],
    "COM105": [
        Fires(
            steps(buckets(last=True)),
            saving=750,
            bound=1500,
            severity="MEDIUM",
            count=4,
            evidence={"exposed": 1500, "part": 1, "buckets": 3},
            ops=("DistributedDataParallel.forward",),
            draws="comm_exposed",
            each=1500,
            first=(2080, 3580),
            look=(2080, 3580),
            options={"part": (0.5, 1, 1.01), "share": (0.05, 0.375, 0.38)},
        )
    ],
    "COM106": [
        Fires(
            steps(gathered(as_list=True, cat=False)),
            saving=406,
            severity="MEDIUM",
            count=4,
            evidence={"time": 400, "copies": 16, "count": 4},
            ops=("c10d::allgather_",),
            draws="mem_exposed",
            each=400,
            first=(1540, 1640),
            look=(1540, 1640),
        ),
        Fires(
            steps(gathered(as_list=True, cat=True)),
            saving=707.5,
            severity="MEDIUM",
            count=4,
            evidence={"time": 700, "copies": 20, "count": 4},
            ops=("c10d::allgather_",),
            draws="compute",
            each=700,
            first=(1540, 1640),
            look=(2000, 2300),
        ),
    ],
    "COM107": [
        Fires(
            steps(waiting(wait=True)),
            saving=450,
            low=0,
            bound=898.5,
            cost=900,
            severity="MEDIUM",
            count=4,
            evidence={"exposed": 900, "hideable": 900, "count": 4},
            ops=("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            draws="comm_exposed",
            each=900,
            first=(1000, 1900),
            look=(1000, 1900),
            options={"part": (0.1, 2.2222222222222223, 2.2222222222222228)},
        )
    ],
    "COM108": [
        Fires(
            steps(beside(1.5)),
            saving=200,
            severity="MEDIUM",
            count=16,
            evidence={"lost": 400, "slower": 0.5, "count": 16},
            ops=("gemm",),
            draws="compute",
            each=1200,
            first=(100, 1300),
            look=(100, 1300),
            options={"slower": (0.2, 0.5000000000000001, 0.5000000000000002), "least_us": (20, 200, 201)},
        ),
        # Without shapes each is compared with that in its place: 100 and 500 µs in half of the steps.
        Fires(
            every_other(1.5),
            saving=150,
            severity="LOW",
            count=6,
            evidence={"lost": 300, "slower": 0.5, "count": 6},
            ops=("gemm",),
            draws="compute",
            each=(0, 1800, 0, 1800, 0, 1800),
            first=(4100, 5900),
            look=(4100, 5900),
        ),
        Fires(
            npu_beside(400, 240),
            bound=500.949,
            severity="LOW",
            sentence="sdma",
            count=9,
            evidence={"count": 9, "bandwidth": 10.48576, "expected": 18},
            ops=("SDMA",),
            draws="comm_exposed",
            look=(200, 600),
            options={
                "slower": (0.2, 0.6666666666666667, 0.6666666666666669),
                "reached": (0.8, 0.5825422222222224, 0.5825422222222223),
                "large_mb": (1, 4, 5),
            },
            prices={"sdma_gbs": (18, 14.4, 326.187)},
        ),
    ],
    "COM109": [
        Fires(
            npu_transfers(size=1000),
            bound=400,
            count=30,
            evidence={"count": 30, "size": 1000, "time": 400, "part": 1},
            ops=("SDMA",),
            draws="comm_exposed",
            look=(2200, 2240),
            options={"align": (512, 990, 999.5), "share": (0.05, 1, 1.01)},
        )
    ],
    "COM110": [
        Fires(
            LARGE,
            severity="LOW",
            count=3,
            evidence={"largest": 419430400, "buffer": 209715200, "time": 1000, "count": 3},
            ops=("HCCL_BUFFSIZE",),
            options={"default_mb": (200, 396, 399.5)},
        )
    ],
    "COM111": [
        Fires(
            npu_transfers(size=2 * MB, over="RDMA", dur=400, link="ROCE"),
            bound=644.557,
            severity="LOW",
            count=30,
            evidence={"bandwidth": 5.24288, "expected": 6.25, "time": 4000, "count": 30},
            ops=("RDMA",),
            draws="comm_exposed",
            look=(2200, 2600),
            options={
                "least_mb": (1, 2, 2.02),
                "gbs": (12.5, 11, 10.48576),
                "reached": (0.5, 0.4194304000000001, 0.41943040000000004),
                "least": (10, 30, 31),
            },
        ),
        Fires(
            npu_transfers(size=2 * MB, over="RDMA", dur=4_100_000, link="ROCE", times=20_000),
            bound=41000000,
            severity="HIGH",
            sentence="repeated",
            count=30,
            evidence={"count": 30, "time": 41000000},
            ops=("RDMA",),
            draws="comm_exposed",
            look=(2200, 4102200),
        ),
        Fires(
            replace(LARGE, environment={"HCCL_RDMA_TC": "133"}),
            severity="LOW",
            sentence="invalid",
            evidence={"variable": "HCCL_RDMA_TC", "setting": "133"},
            ops=("HCCL_RDMA_TC",),
        ),
        Fires(
            replace(LARGE, environment={"HCCL_RDMA_SL": "8"}),
            severity="LOW",
            sentence="invalid",
            evidence={"variable": "HCCL_RDMA_SL", "setting": "8"},
            ops=("HCCL_RDMA_SL",),
        ),
        Fires(
            replace(LARGE, environment={"HCCL_INTRA_ROCE_ENABLE": "1"}),
            severity="LOW",
            sentence="invalid",
            evidence={"variable": "HCCL_INTRA_ROCE_ENABLE", "setting": "1"},
            ops=("HCCL_INTRA_ROCE_ENABLE",),
        ),
    ],
    "COM112": [
        Fires(
            steps(gathering(790)),
            saving=1123.5,
            severity="HIGH",
            count=12,
            evidence={"exposed": 1140, "count": 12},
            ops=("ncclDevKernel_AllGather_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            draws="comm_exposed",
            each=1140,
            first=(820, 1200),
            look=(820, 1200),
            options={"share": (0.05, 0.285, 0.29), "late": (0.5, 1, 1.01)},
        )
    ],
    "COM113": [
        Fires(
            steps(driven(2, module=True)),
            severity="HIGH",
            count=4,
            evidence={"devices": 2, "count": 4},
            ops=("torch.nn.DataParallel",),
        )
    ],
    "COM114": [
        Fires(
            steps(gloo("gloo:all_reduce", busy=False)),
            saving=2000,
            severity="HIGH",
            count=4,
            evidence={"idle": 2000, "count": 4},
            ops=("gloo:all_reduce",),
            draws="idle",
            each=2000,
            first=(1100, 3100),
            look=(1100, 3100),
        ),
        # The shortest sends for 2000 µs; of a MB, 1 GB/s leaves 1149 µs; nothing copied is nothing sent.
        Fires(
            steps(gloo("gloo:all_reduce", busy=False, late=800)),
            saving=2000,
            severity="HIGH",
            count=4,
            evidence={"idle": 2200, "count": 4},
            ops=("gloo:all_reduce",),
            draws="idle",
            each=(2800, 2000, 2000, 2000),
            first=(1100, 3900),
            look=(1100, 3900),
        ),
        Fires(
            steps(gloo("gloo:all_reduce", busy=False, size=MB)),
            saving=1148.576,
            cost=2000,
            severity="HIGH",
            count=4,
            evidence={"idle": 2000, "count": 4},
            ops=("gloo:all_reduce",),
            draws="idle",
            each=2000,
            first=(1100, 3100),
            look=(1100, 3100),
            prices={"gbs": (1, 2, 624.288)},
        ),
        Fires(
            steps(gloo("gloo:all_reduce", busy=False, size=0)),
            cost=2000,
            severity="MEDIUM",
            confidence="LOW",
            sentence="own",
            count=4,
            evidence={"idle": 2000, "count": 4},
            ops=("gloo:all_reduce",),
            advice=("late_peers",),
            draws="idle",
            each=2000,
            first=(1100, 3100),
            look=(1100, 3100),
        ),
    ],
    "COM115": [
        Fires(
            steps(pipeline(1500)),
            saving=750,
            bound=1500,
            severity="MEDIUM",
            count=4,
            evidence={"exposed": 1500, "share": 0.375, "count": 4},
            ops=("ncclDevKernel_SendRecv_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            draws="comm_exposed",
            each=1500,
            first=(2000, 3500),
            look=(2000, 3500),
            options={"share": (0.1, 0.375, 0.38)},
        ),
        # Another stage takes 200 µs more for each: from one rank nobody knows what evening them out saves.
        Fires(
            stages(200, 200),
            cost=1200,
            severity="MEDIUM",
            sentence="stages",
            count=24,
            evidence={"exposed": 1200, "share": 0.3, "count": 24},
            ops=("ncclDevKernel_SendRecv_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
            advice=("equal_stages",),
            draws="comm_exposed",
            each=1200,
            first=(20, 220),
            look=(20, 220),
        ),
    ],
    "COM117": [
        Fires(
            sharded(left=0.5, exposed=800),
            saving=400,
            bound=800,
            severity="MEDIUM",
            count=4,
            evidence={"exposed": 800, "part": 0.888889, "left": 0.5},
            draws="comm_exposed",
            each=800,
            first=(3020, 3820),
            look=(3020, 3820),
            options={
                "exposed": (0.2, 0.888888888888889, 0.8888888888888891),
                "share": (0.05, 0.2, 0.202),
                "left": (0.2, 0.5, 0.51),
            },
        ),
        Fires(
            sharded(left=0.05, exposed=0, name=DDP, kind="allreduce"),
            sentence="replicated",
            evidence={"used": 0.95, "capacity": 85899345920},
            advice=("shard_more",),
            options={"full": (0.9, 0.94, 0.95)},
        ),
    ],
    "COM118": [
        Fires(
            steps(normalised(30)),
            saving=1200,
            severity="HIGH",
            count=120,
            evidence={"exposed": 1200, "count": 120, "usual": 40},
            ops=("SyncBatchNorm",),
            draws="comm_exposed",
            each=1200,
            first=(40, 80),
            look=(40, 80),
            options={"least": (20, 29, 30)},
        )
    ],
}
SILENT = {
    "COM101": [steps(hidden), steps(exposed(0.08))],
    "COM102": [steps(micro_steps(4, every=False)), steps(micro_steps(1, every=True))],
    "COM103": [steps(busy_search)],
    "COM104": [
        steps(messages(2, 64 * 1024, 100)),
        steps(messages(20, 64 * MB, 100)),
        Silent(layers(7), least=7),
    ],
    "COM105": [steps(buckets(last=False)), steps(exposed(0.3))],
    "COM106": [steps(gathered(as_list=False, cat=False)), steps(gathered(as_list=False, cat=True))],
    "COM107": [
        steps(waiting(wait=False)),
        steps(waiting(wait=True, after=80)),
        steps(waiting(wait=True, optimizer=True)),
        steps(waiting(wait=True, under="autograd::engine::evaluate_function: MyBackward")),
        steps(waiting(wait=True, tid=2)),
        waited(launched_first, steps=1, length=STEP),
        layers(4),
    ],
    "COM108": [
        # Nothing tells that those under communication are problems of the size of the others.
        steps(beside(1.5, shapes=None)),
        # One more in one of the steps: places are not the same.
        every_other(1.5, more=1),
        steps(beside(1.05)),
        npu_beside(250, 240),
        npu_beside(400, 400),
        npu_beside(230, 100),
    ],
    "COM109": [
        npu_transfers(size=1024),
        npu_transfers(size=200),
        npu_transfers(size=1000, over="RDMA", link="ROCE"),
        npu_transfers(size=1000, link="ON_CHIP"),
    ],
    "COM110": [
        read_npu(npu_messages(10 * MB)),
        replace(LARGE, environment={"HCCL_BUFFSIZE": "500"}),
    ],
    "COM111": [
        npu_transfers(size=2 * MB, over="RDMA", dur=200, link="ROCE"),
        npu_transfers(size=1000, over="RDMA", dur=400, link="ROCE"),
        npu_transfers(size=2 * MB, dur=400),
        replace(LARGE, environment={"HCCL_RDMA_TC": "132", "HCCL_RDMA_SL": "4"}),
        replace(LARGE, environment={"HCCL_INTRA_ROCE_ENABLE": "1", "HCCL_INTRA_PCIE_ENABLE": "0"}),
    ],
    "COM112": [steps(gathering(100))],
    "COM113": [steps(driven(2, module=False)), steps(driven(1, module=True))],
    "COM114": [steps(gloo("gloo:barrier", busy=False)), steps(gloo("gloo:all_reduce", busy=True))],
    "COM115": [steps(pipeline(100)), steps(exposed(0.3))],
    "COM117": [
        sharded(left=0.1, exposed=800),
        sharded(left=0.5, exposed=100),
        sharded(left=0.5, exposed=800, name="Megatron.forward"),
        sharded(left=0.5, exposed=0, name=DDP, kind="allreduce"),
    ],
    "COM118": [steps(normalised(10)), steps(hidden)],
}
