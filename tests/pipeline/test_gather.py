"""What becomes of each recording of a search, and what is kept of a trace that was analysed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.builder import TraceBuilder
from traceanalyze.errors import InputError
from traceanalyze.pipeline.gather import collected, gather, progress_of, without_events


def selection(*names, skipped=()):
    others = tuple(SimpleNamespace(name=name, reason=reason, text=f"{name}: {reason}") for name, reason in skipped)
    return SimpleNamespace(sources=[SimpleNamespace(name=name, size=9) for name in names], skipped=others)


def trace():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 10)
    return builder.trace()


def test_what_cannot_be_read_is_left_out_with_a_note():
    one = trace()
    found = collected(selection("a", "b"), [InputError("{name}: is empty", "a"), one])
    assert found.traces == (one,)
    assert found.failed == (("a", "a: is empty"),)
    assert [str(note) for note in found.notes] == ["left out: a: is empty"]


def test_where_nothing_can_be_read_the_first_reason_is_the_error():
    errors = [InputError("first"), InputError("second")]
    with pytest.raises(InputError, match="first"):
        collected(selection("a", "b"), errors)
    assert collected(selection("a", "b"), errors, required=False).traces == ()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("a", "files passed over: 1 (a: odd)"),
        ("abc", "files passed over: 3 (a: odd, b: odd, c: odd)"),
        ("abcd", "files passed over: 4 (a: odd, b: odd, c: odd, …)"),
    ],
)
def test_files_passed_over_are_named_as_far_as_there_is_room(names, said):
    others = [*((name, "odd") for name in names), ("fine", ""), ("known", "odd")]
    found = collected(selection("t", skipped=others), [trace()], known={"known"})
    assert [str(note) for note in found.notes] == [said]


def test_recordings_are_read_one_after_another(tmp_path):
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 10)
    builder.write(tmp_path / "a.json")
    (tmp_path / "b.json").write_text('{"traceEvents": [')
    told = []
    found = gather([str(tmp_path)], without_events, progress=lambda *seen: told.append(seen))
    assert len(found.traces) == 1
    assert {name for name, *_ in told} == {"1/2 a.json", "2/2 b.json"}
    assert progress_of(None, None) is None


@pytest.mark.parametrize("count", [1, 10, 5000])
def test_of_an_analysed_trace_begin_and_end_are_kept_and_what_tells_it_apart(count):
    builder = TraceBuilder()
    builder.op("last", 500_000, 400_000)
    for number in range(count - 1):
        builder.op("x", 100 + 10 * number, 5)
    whole = builder.trace()
    few = without_events(whole)
    assert few.content == whole.content != replace(whole, events=replace(whole.events, ts=whole.events.ts + 1)).content
    assert few.span == whole.span
    assert few.span[1] == few.base_ns + 900_000_000
    assert without_events(few).span == few.span
    assert few.events.fields == {}
    assert len(few.strings) == 1
    assert len(few.events) == len(few.tracks) == 0
    assert len(few.instants.ts) == len(few.flows.ts) == 0
