"""The laws of the replay on programs of any kind: simulated ones, random events, and every real trace at hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builder import TraceBuilder
from tests.examples import examples
from tests.replay.laws import gives_itself_back, growing, never_later
from tests.simulate.simulate import simulate
from tests.simulate.workload import MS, US, Host, Loader, Model, Script, Workload
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import LAYOUTS
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.errors import TraceAnalyzeError
from traceanalyze.model.vocabulary import Mode
from traceanalyze.readers.kineto import read_text


def hold(context, seed):
    gives_itself_back(context)
    never_later(context, growing(context, seed))


workloads = st.builds(
    Workload,
    model=st.builds(Model, layers=st.integers(1, 2), batch=st.sampled_from([1, 8])),
    loader=st.builds(Loader, cost=st.sampled_from([MS, 12 * MS]), workers=st.sampled_from([0, 1, 4])),
    script=st.builds(
        Script,
        optimizer=st.sampled_from(["fused", "for_loop"]),
        items=st.integers(0, 3),
        device_syncs=st.integers(0, 2),
        pinned=st.booleans(),
        empty_cache=st.booleans(),
        pause=st.sampled_from([0, 3 * MS]),
        side_kernels=st.sampled_from([0, 5]),
    ),
    host=st.builds(Host, op=st.sampled_from([2 * US, 20 * US])),
    warmup=st.just(1),
    steps=st.integers(1, 3),
    seed=st.integers(0, 9),
    tick=st.just(1000),
)


@examples(12)
@given(workloads, st.sampled_from(LAYOUTS), st.integers(0, 99))
def test_simulated_programs(workload, layout, seed):
    hold(Context(read_text(write(simulate(workload)[0], layout)), Options()), seed)


CALLS = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemcpy", "cudaStreamSynchronize", "cudaDeviceSynchronize",
         "cudaEventSynchronize", "cudaStreamWaitEvent", "cudaFree", "cudaGraphLaunch")  # fmt: skip
events = st.lists(
    st.tuples(
        st.sampled_from([*CALLS, "kernel", "copy", "aten::mm", "step", "batch"]),
        st.integers(0, 3000),
        st.one_of(st.just(0), st.integers(1, 40), st.integers(60, 1500)),
        st.integers(1, 2),
        st.integers(1, 12),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=40,
)


@examples(120)
@given(events, st.integers(0, 99))
def test_random_events(drawn, seed):
    """Also what no profiler writes: kernels before their launch, calls that overlap, events without a launch."""
    b = TraceBuilder()
    for number, (what, at, length, tid, correlation, device) in enumerate(drawn):
        if what == "step":
            b.step(number, at, length, tid=1)
        elif what == "batch":
            b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, length, tid=tid)
        elif what == "aten::mm":
            b.op(what, at, length, tid=tid)
        elif what in {"kernel", "copy"}:
            cat = "kernel" if what == "kernel" else "gpu_memcpy"
            b.device(at, length, cat=cat, stream=6 + tid, device=device, correlation=correlation)
        else:
            b.api(what, at, length, tid=tid, correlation=correlation)
    context = Context(b.trace(), Options())
    if context.mode != Mode.EMPTY:
        hold(context, seed)


def test_real_traces(real_trace):
    try:
        context = real_trace.context
    except TraceAnalyzeError:
        pytest.skip("no trace")
    if context.mode != Mode.EMPTY:
        hold(context, 7)
