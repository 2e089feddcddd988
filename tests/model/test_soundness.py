"""A trace that others made is taken only when its columns fit together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.builder import TraceBuilder
from traceanalyze.model.columns import Sparse
from traceanalyze.pipeline import load
from traceanalyze.readers.header import DTYPES
from traceanalyze.readers.plugin import require_sound

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def whole():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 5, 20, Input_Dims="[[1]]")
    b.launch(10, 5, 20, 30)
    b.memory(30, 1024)
    return b.trace()


def test_what_the_tool_reads_is_sound():
    trace = whole()
    assert require_sound(trace, DTYPES) is trace


@pytest.mark.parametrize("sample", ["gpu_two_ranks", "npu_training", "cpu_training", "gpu_2021_layout"])
def test_so_are_the_samples(sample):
    for trace in load(SAMPLES / sample).traces:
        assert require_sound(trace, DTYPES) is trace


def events(**columns):
    trace = whole()
    return replace(trace, events=replace(trace.events, **columns))


def field(row, value):
    column = Sparse(np.array(row, np.uint32), np.array(value))
    return events(fields={"stream": column})


def spread_strings():
    trace = whole()
    blob = np.repeat(trace.strings.blob, 2)[::2]
    return replace(trace, strings=replace(trace.strings, blob=blob))


N = len(whole().events)


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        ({}, "dict is no traceanalyze.model.trace.Trace"),
        (events(ts=[0] * N), "events.ts is no column of int64"),
        (events(dur=np.zeros(N)), "events.dur is no column of int64"),
        (events(dur=np.full(N, -1)), "events.dur has values outside 0"),
        (events(dur=np.zeros(1, np.int64)), f"events.dur has 1 rows, not {N}"),
        (events(ts=np.full(N, 2**62)), "events.ts has values outside"),
        (events(name=np.full(N, 999, np.int32)), "events.name has values outside 0"),
        (events(track=np.full(N, -1, np.int32)), "events.track has values outside 0"),
        (field([1, 0], [7, 7]), r"events.fields\[stream\].row does not ascend"),
        (field([N], [7]), r"events.fields\[stream\].row has values outside"),
        (field([0, 1], [7]), r"events.fields\[stream\].row has 2 rows, not 1"),
        (field([0], ["7"]), r"events.fields\[stream\] is no column of"),
        (field([0], [7.5]), r"events.fields\[stream\] is no column of int64"),
        (replace(whole(), tracks=np.full((9, 2), 999, np.int32)), "tracks has values outside"),
        (replace(whole(), tracks=np.zeros((9, 3), np.int32)), "tracks is no"),
        (replace(whole(), tracks=[(0, 0)]), "tracks is no"),
        (replace(whole(), base_ns=2**70), "base_ns is no int of ns since 1970"),
        (replace(whole(), base_ns=0.5), "base_ns is no int of ns since 1970"),
        (replace(whole(), origin=None), "origin is no Origin"),
        (replace(whole(), origin=whole().origin._replace(rank="0")), "origin.rank is no int from 0 on: '0'"),
        (spread_strings(), "strings.blob does not lie in one piece"),
    ],
)
def test_what_does_not_fit_is_told(trace, why):
    with pytest.raises((TypeError, ValueError), match=why):
        require_sound(trace, DTYPES)


def test_without_any_event_there_is_nothing_to_analyse():
    trace = whole()
    none = np.zeros(0, np.int64)
    codes = none.astype(np.int32)
    empty = {"ts": none, "cat": codes, "track": codes}
    trace = replace(
        trace,
        events=replace(trace.events, **empty, dur=none, name=codes, fields={}),
        instants=trace.instants._replace(**empty, name=codes, fields={}),
        flows=trace.flows._replace(**empty, id=none, phase=none.astype(np.uint8)),
    )
    with pytest.raises(ValueError, match="it has no event"):
        require_sound(trace, DTYPES)
