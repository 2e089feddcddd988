"""Laws of the device tables on random traces: nothing is lost, nothing counts twice."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builder import TraceBuilder

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


@settings(deadline=None, max_examples=60)
@given(EVENTS, st.booleans())
def test_every_table_agrees_with_the_partition(events, marked):
    b = TraceBuilder()
    if marked:
        b.step(1, 50, 80)
        b.step(2, 150, 70)
    for (cat, name), at, dur, device, stream in events:
        b.device(at, dur, cat=cat, name=name, device=device, stream=stream)
    found = b.analyze()
    work, parts = found.device_work, found.partitions
    durations = sum(int((part.compute_dur + part.comm_dur + part.mem_dur).sum()) for part in parts)
    assert sum(row.total for row in work.groups) == sum(row.time.total for row in work.kernels) == durations
    assert sum(row.time for row in work.overlaps) == int(found.steps.time.sum())
    assert sum(row.time for row in work.overlaps if row.compute) == int(parts[0].compute.sum())
    collectives = work.collectives if isinstance(work.collectives, tuple) else ()
    assert sum(row.exposed for row in collectives) == sum(int(part.comm_exposed.sum()) for part in parts)
    for row in collectives:
        assert row.exposed + row.overlapped <= row.time.total
