"""The exclusive partition: hand-made answers, and the law that the parts sum to the window."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.builder import TraceBuilder


def parts(partition):
    names = ("compute", "comm_exposed", "mem_exposed", "idle", "comm_total", "mem_total", "busy")
    return {name: int(getattr(partition, name).sum()) for name in names}


def test_compute_hides_communication_hides_copies():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 1, 10, 30)  # compute 10-40
    b.launch(1, 1, 30, 30, name="ncclDevKernel_AllReduce_Sum_f32", stream=20)  # comm 30-60
    b.copy(2, 1, 50, 30, stream=21)  # copy 50-80
    a = b.analyze()
    assert parts(a.partitions[0]) == {
        "compute": 30_000,
        "comm_exposed": 20_000,
        "mem_exposed": 20_000,
        "idle": 30_000,
        "comm_total": 30_000,
        "mem_total": 30_000,
        "busy": 70_000,
    }
    assert int(a.partitions[0].comm_overlapped.sum()) == 10_000
    assert int(a.partitions[0].mem_overlapped.sum()) == 10_000


def test_kernels_nobody_launched_here_count_as_device_time():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 1, 10, 10)
    b.device(50, 25)
    assert parts(b.analyze().partitions[0])["compute"] == 35_000


def test_instrumentation_records_are_not_work():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 1, 10, 10)
    b.device(20, 70, cat="cuda_sync", name="Stream Sync")
    b.device(20, 70, cat="gpu_user_annotation", name="ProfilerStep#1")
    assert parts(b.analyze().partitions[0])["busy"] == 10_000


def test_each_device_has_its_own_partition_and_the_busiest_leads():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 1, 10, 10, device=0)
    b.launch(1, 1, 10, 60, device=1)
    a = b.analyze()
    assert [p.device for p in a.partitions] == [1, 0]
    assert [parts(p)["compute"] for p in a.partitions] == [60_000, 10_000]


def test_sums_of_durations_count_concurrent_kernels_each():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 1, 10, 40, stream=7)
    b.launch(1, 1, 20, 40, stream=8)
    a = b.analyze()
    assert int(a.partitions[0].compute.sum()) == 50_000
    assert int(a.partitions[0].compute_dur.sum()) == 80_000


kernels = st.lists(
    st.tuples(
        st.integers(0, 300),
        st.integers(0, 60),
        st.sampled_from(["gemm", "ncclDevKernel_AllGather", "Memcpy DtoD"]),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=15,
)


@given(kernels, st.integers(1, 4))
def test_parts_sum_to_every_window_exactly(items, steps):
    b = TraceBuilder()
    for n in range(steps):
        b.step(n, n * 80, 80)
    for i, (at, dur, name, stream) in enumerate(items):
        cat = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        b.launch(i, 0.5, at + 0.25, dur, name=name, stream=stream, cat=cat)
    a = b.analyze()
    p = a.partitions[0]
    assert (p.compute + p.comm_exposed + p.mem_exposed + p.idle == a.steps.time).all()
    assert (np.minimum.reduce([p.compute, p.comm_exposed, p.mem_exposed, p.idle]) >= 0).all()
    assert (a.idle.by_step.sum(axis=1) == p.idle).all()
    assert (a.idle.by_step >= 0).all()
