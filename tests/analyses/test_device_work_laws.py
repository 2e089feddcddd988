"""Laws of the device tables on random traces: nothing is lost, nothing counts twice."""

from hypothesis import given
from hypothesis import strategies as st

from tests.builder import TraceBuilder
from tests.examples import examples

KINDS = (
    ("kernel", "void at::native::add"),
    ("kernel", "nvjet_tst_256x128"),
    ("kernel", "ncclDevKernel_AllReduce"),
    ("kernel", "ncclDevKernel_AllGather"),
    ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"),
    ("gpu_memset", "Memset (Device)"),
)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(KINDS), st.integers(0, 300), st.integers(0, 60), st.integers(0, 1), st.integers(1, 9)
    ),
    min_size=1,
    max_size=25,
)  # fmt: skip


@examples(20)
@given(EVENTS, st.booleans())
def test_every_table_agrees_with_the_partition(events, marked):
    b = TraceBuilder()
    if marked:
        b.step(1, 50, 80)
        b.step(2, 150, 70)
    for (cat, name), at, dur, device, stream in events:
        b.device(at, dur, cat=cat, name=name, device=device, stream=stream)
    found = b.analyze()
    parts = found.partitions
    durations = sum(int((part.compute_dur + part.comm_dur + part.mem_dur).sum()) for part in parts)
    assert sum(found.tables["kernel_groups"].column("device_time_ns")) == durations
    assert sum(found.tables["kernels"].column("device_time_ns")) == durations
    overlaps = list(found.records("device_overlap"))
    assert sum(row.wall_ns for row in overlaps) == int(found.steps.time.sum())
    assert sum(row.wall_ns for row in overlaps if "compute" in row.running) == int(parts[0].compute.sum())
    collectives = list(found.records("collectives"))
    assert sum(row.exposed_ns for row in collectives) == sum(int(part.comm_exposed.sum()) for part in parts)
    for row in collectives:
        assert row.exposed_ns + row.overlapped_ns <= row.device_time_ns
