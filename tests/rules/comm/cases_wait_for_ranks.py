"""Waiting that one rank's recording shows: tasks that move no data, and collectives far longer than their siblings."""

from __future__ import annotations

from tests.ascend_builder import AscendBuilder
from tests.rules.comm.cases import MB, compute, reduce, steps
from tests.rules.make import Fires, Silent, program
from tests.rules.sequences import STEP, read_npu

KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def waits(wait, *, peer=1, parts=True, named=True):
    """After compute of 2000 µs a collective that waits so long, then moves data for 500 µs, in each of three steps."""
    b = AscendBuilder()
    for number in range(3):
        at = number * STEP
        b.step(number, at, STEP)
        b.kernel("aclnnMatMul_1", at + 100, 2000, op_type="MatMulV2", launch=at + 10)
        # Two planes: what one of them moves while the other waits is no waiting.
        tasks = [
            (0, "Notify_Wait", at + 2100, wait, peer),
            (0, "Memcpy", at + 2100 + wait, 400, peer),
            (1, "Notify_Wait", at + 2100, wait + 400, peer),
            (1, "Reduce_Inline", at + 2500 + wait, 100, peer),
        ]
        tasks = tasks if named else [(plane, "N/A", *rest) for plane, _, *rest in tasks]
        b.collective(f"hcom_allReduce__1_{number}_1", at + 2100, wait + 500, tasks if parts else [])
    return read_npu(b)


def siblings(long, *, short=50, others=4, sizes=None, when=lambda number: True, beside=0):
    """So many collectives of 50 µs, then one of equal size that takes longer, with some compute beside its begin."""

    def body(b, at, number):
        compute(b, at, at + 20, 1000)
        for part in range(others):
            reduce(b, at + 30 + 15 * part, at + 1020 + part * short, short, tid=2)
        begin = at + 1020 + others * short
        dur = long if when(number) else short
        reduce(b, at + 300, begin, dur, tid=2, **({} if sizes is None else {"size": sizes}))
        if beside:
            compute(b, at + 400, begin, beside)

    return body


def unsized(b, at, number):
    """As `siblings`, but nothing tells how large the collectives are."""
    compute(b, at, at + 20, 1000)
    for part, dur in enumerate((50, 50, 50, 50, 1000)):
        b.launch(at + 30 + 15 * part, 3, at + 1020 + 50 * part, dur, name=KERNEL, tid=2, stream=20)


def by_the_byte(long):
    """Four reductions of 50 µs, then one of twice their bytes, in each step."""

    def body(b, at, number):
        compute(b, at, at + 20, 1000)
        for part, dur in enumerate((50, 50, 50, 50, long)):
            more = {
                "Collective name": "allreduce",
                "In msg nelems": (32 if part == 4 else 16) * MB,
                "Out msg nelems": (32 if part == 4 else 16) * MB,
                "dtype": "Float",
                "Group size": 8,
                "Process Group Name": "0",
            }
            b.op("c10d::allreduce_", at + 28 + 15 * part, 10, tid=2)
            b.launch(at + 30 + 15 * part, 3, at + 1020 + 50 * part, dur, name=KERNEL, tid=2, stream=20, **more)

    return body


def beside_larger(long, *, described=True):
    """A reduction of 64 MB in 100 µs, then a smaller one; or as PyTorch 2.0 describes them, by shapes alone."""

    def body(b, at, number):
        compute(b, at, at + 20, 1000)
        for part, (size, begin, dur) in enumerate(((64 * MB, 1020, 100), (MB, 1120, long))):
            asked = at + 30 + 15 * part
            if described:
                reduce(b, asked, at + begin, dur, size=size, tid=2)
            else:
                b.op("nccl:all_reduce", asked, 10, tid=2, **{"Input Dims": [[size // 4]], "Input type": ["float"]})
                b.launch(asked + 2, 3, at + begin, dur, name=KERNEL, tid=2, stream=20)

    return body


def beyond(program, waiting, *, times, begin, count=4):
    """So much a step is beyond what siblings take, from one place of the first step on."""
    share = waiting / STEP
    return Fires(
        program,
        cost=waiting,
        severity="HIGH" if share >= 0.2 else "MEDIUM",
        confidence="MEDIUM",
        sentence="siblings",
        count=count,
        evidence={"waiting": waiting, "share": share, "count": count, "times": times},
        ops=(KERNEL,),
        draws="comm_exposed",
        each=waiting,
        first=(begin, begin + waiting),
        look=(begin, begin + waiting),
        options={"share": (0.05, share, share + 0.001)},
    )


FIRES = {
    "COM120": [
        # Nothing is moved for 1000 µs of each step of 4000; the rank that it waits for is in no header.
        Fires(
            waits(1000),
            cost=1000,
            severity="HIGH",
            sentence="rank",
            count=3,
            evidence={"waiting": 1000, "share": 0.25, "rank": "1"},
            ops=("rank 1", "hcom_allReduce__1_0_1", "hcom_allReduce__1_1_1", "hcom_allReduce__1_2_1"),
            draws="comm_exposed",
            each=1000,
            first=(2100, 3100),
            look=(2100, 3100),
            options={"share": (0.05, 0.25, 0.251)},
        ),
        # 1000 µs where four others take 50; the first 200 of the 950 beyond that lie beside compute.
        beyond(steps(siblings(1000, beside=200)), 750, times=20, begin=1420),
        # One long and one short collective in each of four steps: the short ones are the usual ones.
        beyond(steps(siblings(500, others=1)), 450, times=10, begin=1070),
        # All of one size take 500 µs; of half the bytes others take 50, so that 100 are enough.
        beyond(steps(by_the_byte(500)), 400, times=5, begin=1220),
        # 64 times as much took 100 µs, so that 300 of 400 are waiting.
        *(beyond(steps(beside_larger(400, described=each)), 300, times=4, begin=1120) for each in (True, False)),
        # Three of one size, of which the shortest took 50.
        beyond(program(siblings(1000, others=2), steps=1, length=STEP), 950, times=20, begin=1120, count=1),
    ]
}
SILENT = {
    "COM120": [
        # Not ten times as long; larger; once in four steps; not three times as long as a larger one; no size; no tasks.
        steps(siblings(499)),
        steps(by_the_byte(499)),
        steps(siblings(1000, sizes=128 * MB)),
        steps(siblings(1000, when=lambda number: number == 1)),
        steps(beside_larger(299)),
        steps(unsized),
        waits(1000, parts=False),
        # What its tasks do is not told.
        waits(1000, named=False),
        Silent(waits(100), share=0.03),
    ]
}
