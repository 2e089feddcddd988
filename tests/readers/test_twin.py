"""The scanner's specification, seen from outside: texts in, columns and counts out."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.readers.text import document, kernel, names, reasons, scan_text
from traceanalyze.readers.scan import backend, grammar, native, scan
from traceanalyze.readers.scan.grammar import canonical_integer, integer, nanoseconds, real

if TYPE_CHECKING:
    from pathlib import Path

INT64_MIN = -(2**63)


def one(event: str):
    """Scan a list of one event."""
    return scan_text(f"[{event}]")


# --- what a well-formed trace gives -------------------------------------------------------------------------------


def test_a_complete_event_gives_exact_times_names_tracks_and_arguments():
    scan = scan_text(
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 3, "tid": "stream 7", '
        '"ts": 1700000000000001.257, "dur": 0.5, "args": {"correlation": 9, "memory bandwidth (GB/s)": 1.5, '
        '"Input Dims": [[1, 2], []]}}]}'
    )
    assert scan.events.ts.tolist() == [1_700_000_000_000_001_257]
    assert scan.events.dur.tolist() == [500]
    assert names(scan) == ["gemm"]
    assert [scan.strings.text(code) for code in scan.events.cat] == ["kernel"]
    assert [scan.strings.text(code) for code in scan.tracks[0]] == ["3", "stream 7"]
    assert scan.events.fields["correlation"].value.tolist() == [9]
    assert scan.events.fields["bandwidth"].value.tolist() == [1.5]
    assert scan.strings.text(scan.events.fields["shapes"].value[0]) == "[[1, 2], []]"
    assert (scan.root, scan.truncated, scan.fault, reasons(scan)) == ("object", False, None, {})
    assert scan.fractional


def test_columns_have_the_types_of_the_contract_even_when_empty():
    scan = scan_text("[]")
    assert [scan.events.ts.dtype, scan.events.name.dtype, scan.flows.phase.dtype] == [np.int64, np.int32, np.uint8]
    assert scan.tracks.shape == (0, 2)
    assert scan.tracks.dtype == np.int32
    assert scan.events.fields["correlation"].row.dtype == np.uint32
    assert len(scan.strings) == 1


def test_instants_flows_and_metadata_have_their_own_columns():
    scan = scan_text(
        '[{"ph": "i", "name": "[memory]", "pid": 1, "tid": 2, "ts": 5, "args": {"Bytes": -512}},'
        ' {"ph": "s", "cat": "ac2g", "id": 18446744073709551615, "pid": 1, "tid": 2, "ts": 1},'
        ' {"ph": "f", "cat": "ac2g", "id": "42", "pid": 1, "tid": 2, "ts": 2},'
        ' {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},'
        ' {"ph": "C", "name": "counter", "ts": 1}]'
    )
    assert scan.instants.ts.tolist() == [5000]
    assert scan.instants.fields["bytes"].value.tolist() == [-512]
    assert [chr(phase) for phase in scan.flows.phase] == ["s", "f"]
    assert scan.flows.id[1] == 42
    assert scan.strings.text(scan.flows.id[0] - INT64_MIN) == "18446744073709551615"
    (record,) = scan.metadata
    assert (record.name, record.pid, record.args) == (b"process_name", b"1", b'{"name": "python"}')
    assert scan.phases == {"i": 1, "s": 1, "f": 1, "M": 1, "C": 1}


def test_header_members_before_and_after_the_events_are_kept_as_written():
    scan = scan_text('{"a": [1, {"b": 2}], "traceEvents": [], "traceEvents": [' + kernel(1) + '], "a": null, "c": "x"}')
    assert scan.header == {b"a": b"null", b"c": b'"x"'}
    assert names(scan) == ["k1"]


@pytest.mark.parametrize("prefix", ["\ufeff", " \n\t", "\ufeff \n"])
@pytest.mark.parametrize("block", [1, 2, 5, 1 << 20])
def test_a_byte_order_mark_and_blanks_before_the_root_do_not_matter(prefix, block):
    scan = scan_text(prefix + document([kernel(1), "?", kernel(2)]), block=block)
    assert names(scan) == ["k1", "k2"]
    assert scan.fault == (prefix + document([kernel(1), "?", kernel(2)])).encode().index(b"?")


def test_the_last_of_equal_members_wins_and_all_args_objects_count():
    scan = one(
        '{"ph": "B", "ph": "X", "ts": 1, "ts": 2, "dur": 1, "pid": 1, "args": {"correlation": 1, "external id": 1}, '
        '"args": {"correlation": 2}, "args": 7}'
    )
    assert scan.events.ts.tolist() == [2000]
    assert scan.events.fields["correlation"].value.tolist() == [2]
    assert scan.events.fields["external_id"].value.tolist() == [1]


@pytest.mark.parametrize("args", ['"external id": 5, "External id": 6', '"External id": 6, "external id": 5'])
def test_of_two_keys_of_a_column_the_first_that_it_names_wins(args):
    scan = one(f'{{"ph": "X", "ts": 1, "dur": 1, "pid": 1, "args": {{{args}}}}}')
    assert scan.events.fields["external_id"].value.tolist() == [6]


# --- faulty input -------------------------------------------------------------------------------------------------

EVENTS = [kernel(index) for index in range(40)]


@pytest.mark.parametrize("root", ["object", "list"])
def test_a_cut_anywhere_loses_only_the_event_it_hits(root):
    text = document(EVENTS) if root == "object" else "[" + ",".join(EVENTS) + "]"
    ends = [text.index(event) + len(event) for event in EVENTS]
    for cut in range(1, len(text), 97):
        scan = scan_text(text[:cut])
        kept = sum(end <= cut for end in ends)
        assert names(scan) == [f"k{index}" for index in range(kept)], cut
        assert scan.truncated
        assert scan.size == cut
        assert scan.counts["malformed"] <= 1


def test_a_trailing_comma_and_missing_brackets_lose_nothing():
    assert names(scan_text("[" + kernel(1) + ",]")) == ["k1"]
    assert names(scan_text('{"traceEvents": [' + kernel(1) + ",],}")) == ["k1"]
    unclosed = scan_text('{"traceEvents": [' + kernel(1) + ",")
    assert (names(unclosed), unclosed.truncated, reasons(unclosed)) == (["k1"], True, {})


def test_a_broken_event_is_skipped_and_its_place_is_told():
    text = "[" + kernel(1) + ', {"ph": "X" "name": "bad"}, ' + kernel(2) + "]"
    scan = scan_text(text)
    assert names(scan) == ["k1", "k2"]
    assert scan.fault == text.index('{"ph": "X" "name"')
    assert reasons(scan) == {"malformed": 1, "skipped_bytes": text.index(kernel(2)) - scan.fault}


def test_reading_does_not_resume_inside_the_args_of_a_broken_event():
    scan = scan_text(
        '[{"ph": "X", "oops" "args": {"name": "not an event", "ph": "X", "ts": 1, "dur": 1}}, ' + kernel(1) + "]"
    )
    assert names(scan) == ["k1"]


def test_bad_escapes_control_characters_and_other_encodings_stay_in_the_name():
    scan = scan_text(
        b'[{"ph": "X", "name": "a\\qb\x01\n\xff\\u00e9\\ud83d\\ude00\\ud800", "pid": 1, "ts": 1, "dur": 1}]'
    )
    assert scan.strings.raw(scan.events.name[0]) == b"a\\qb\x01\n\xff" + "é😀\ufffd".encode()


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ('"ts": NaN, "dur": 1', "bad_ts"),
        ('"ts": Infinity, "dur": 1', "bad_ts"),
        ('"ts": null, "dur": 1', "bad_ts"),
        ('"ts": "1 ", "dur": 1', "bad_ts"),
        ('"ts": 1e99, "dur": 1', "bad_ts"),
        ('"ts": [1], "dur": 1', "bad_ts"),
        ('"dur": 1', "no_ts"),
        ('"ts": 1', "no_dur"),
        ('"ts": 1, "dur": -Infinity', "bad_dur"),
        ('"ts": 1, "dur": 1e16', "bad_dur"),
        ('"ts": 9000000000000000, "dur": 900000000000000', "bad_dur"),
        ('"ts": 1, "dur": -1', "negative_dur"),
        ('"ts": 1, "dur": -0.001', "negative_dur"),
    ],
)
def test_an_event_without_usable_times_is_dropped_with_its_reason(members, reason):
    scan = scan_text('[{"ph": "X", "pid": 1, ' + members + "}, " + kernel(1) + "]")
    assert names(scan) == ["k1"]
    assert reasons(scan) == {reason: 1}
    assert scan.phases == {"X": 2}


@pytest.mark.parametrize(
    ("ts", "dur", "expected"),
    [
        ("0", "0", (0, 0)),
        ('"1736408883688177.930"', "145.57", (1_736_408_883_688_177_930, 145_570)),
        ("-5", "1", (-5000, 1000)),
        ("1.0E3", "+2.", (1_000_000, 2000)),
        (".5", "-0.0001", (500, 0)),
        ("0.0005", "0.0015", (0, 2)),
        ("9223372036854775.807", "0", (2**63 - 1, 0)),
        ("-9223372036854775.808", "0", (INT64_MIN, 0)),
        ("0e99999999999999999999", "1", (0, 1000)),
        ("1e-99999999999999999999", "1", (0, 1000)),
    ],
)
def test_times_are_exact_decimals_quoted_or_not(ts, dur, expected):
    scan = one(f'{{"ph": "X", "pid": 1, "ts": {ts}, "dur": {dur}}}')
    assert (scan.events.ts.tolist(), scan.events.dur.tolist()) == ([expected[0]], [expected[1]])


def test_whole_microseconds_are_a_coarse_clock_however_they_are_written():
    assert not one('{"ph": "X", "pid": 1, "ts": 1.000, "dur": 2e0}').fractional
    assert one('{"ph": "X", "pid": 1, "ts": 1, "dur": 0.0000001}').fractional
    assert not one('{"ph": "X", "pid": 1, "ts": 1.5}').fractional


def test_an_event_without_pid_is_kept_and_counted():
    scan = one('{"ph": "X", "ts": 0, "dur": 1, "cat": "kernel"}')
    assert (len(scan.events.ts), reasons(scan)) == (1, {"no_pid": 1})
    assert scan.strings.text(scan.tracks[0, 0]) == ""


@pytest.mark.parametrize("phase", ['""', "5", "null", '["X"]'])
def test_an_event_without_a_phase_is_counted(phase):
    assert reasons(one(f'{{"ph": {phase}, "ts": 1}}')) == {"no_phase": 1}


def test_values_of_the_wrong_kind_are_dropped_but_not_their_event():
    scan = one(
        '{"ph": "X", "pid": 1, "ts": 1, "dur": 1, "args": {"correlation": "0x0", "External id": 1.5, '
        '"memory bandwidth (GB/s)": Infinity}}'
    )
    assert (len(scan.events.ts), reasons(scan)) == (1, {"bad_value": 3})


def test_things_in_the_event_list_that_are_not_objects_are_counted():
    assert reasons(scan_text('[1, "two", [3], null, ' + kernel(1) + "]")) == {"not_object": 4}


def test_bytes_behind_the_document_are_counted():
    assert reasons(scan_text("[]  ]]x ")) == {"trailing_bytes": 4}


def test_a_broken_header_member_is_skipped_up_to_the_events():
    scan = scan_text('{"deviceProperties": [{"id": 0,, ], "traceEvents": [' + kernel(1) + "]}")
    assert names(scan) == ["k1"]
    assert scan.counts["malformed"] == 1
    assert not scan.truncated


@pytest.mark.parametrize("text", ["", "   ", "\n" * 5000, "plain text", "\x00\x01", '"x"'])
def test_a_text_without_a_root_is_only_counted(text):
    scan = scan_text(text)
    assert (scan.root, scan.size, len(scan.events.ts), reasons(scan)) == ("none", len(text), 0, {})


def test_limits_of_nesting_and_of_length():
    nested = '{"ph": "X", "pid": 1, "ts": 1, "dur": 1, "deep": ' + "[" * 63 + "]" * 63 + "}"
    assert len(one(nested).events.ts) == 1
    assert len(one(nested.replace("[]", "[[]]")).events.ts) == 0
    event = kernel(1)
    assert len(scan_text(f"[{event}]", max_value_bytes=len(event)).events.ts) == 1
    assert len(scan_text(f"[{event}]", max_value_bytes=len(event) - 1).events.ts) == 0


# --- properties ---------------------------------------------------------------------------------------------------

DECIMALS = st.from_regex(r"[+-]?(?:[0-9]{1,22}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:[eE][+-]?[0-9]{1,3})?", fullmatch=True)


@given(DECIMALS)
@examples(150)
def test_nanoseconds_agree_with_decimal_arithmetic(text):
    with localcontext() as context:
        context.prec = 2500
        exact = Decimal(text) * 1000
        rounded = int(exact.to_integral_value(ROUND_HALF_EVEN)) if abs(exact) < 2**65 else None
        fits = rounded is not None and INT64_MIN <= rounded < 2**63
        expected = (rounded, Decimal(text) != Decimal(text).to_integral_value()) if fits else None
    assert nanoseconds(text.encode()) == expected


@given(st.integers(-(2**66), 2**66))
def test_integers_wrap_at_the_end_of_an_unsigned_id(value):
    expected = None if not INT64_MIN <= value < 2**64 else value if value < 2**63 else value - 2**64
    assert integer(str(value).encode()) == expected
    assert canonical_integer(str(value).encode()) == (value if INT64_MIN <= value < 2**63 else None)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_reals_are_those_of_python(value):
    assert real(repr(value).encode()) == value


@pytest.mark.parametrize("text", ["", "+", ".", "1e", "0x1", "1_0", " 1", "1\n", "١", "--1", "NaN", "1" * 5000 + "x"])
def test_what_is_not_a_decimal_number_is_none(text):
    assert nanoseconds(text.encode()) is None
    assert real(text.encode()) is None


MUTATIONS = st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(b'{}[]",:\\ x1\n')), max_size=6)
PATTERN = (
    b'{"ph": "X", "name": "a\\u00e9\\"b", "ts": 12.5, "dur": 3, "pid": 1, '
    b'"args": {"correlation": [1,[2,[3,{"k":[]}]]], "Input Dims": "x", "external id": -7,}, }'
)


def mutated(pattern: bytes, changes: list[tuple[int, int]]) -> bytes:
    text = bytearray(pattern)
    for place, byte in changes:
        text[place % len(text)] = byte
    return bytes(text)


@given(MUTATIONS)
@examples(150)
def test_the_shortcut_for_shallow_objects_accepts_what_the_grammar_does(changes):
    text = mutated(PATTERN, changes)
    shortcut, descent = (read(text, 0, len(text)) for read in (grammar.object_members, grammar.members))
    assert shortcut[1] == descent[1]
    assert shortcut == descent or descent[1] < 0


@given(MUTATIONS, st.integers(1, 60))
@examples(50)
def test_the_result_does_not_depend_on_the_blocks(changes, block):
    text = mutated(b"[" + PATTERN + b",\n" + PATTERN + b"]", changes)
    whole, parts = scan_text(text), scan_text(text, block=block)
    assert names(whole) == names(parts)
    assert whole.events.ts.tolist() == parts.events.ts.tolist()
    assert (whole.counts, whole.fault, whole.header, whole.truncated, whole.size) == (
        (parts.counts, parts.fault, parts.header, parts.truncated, parts.size)
    )


# --- real traces --------------------------------------------------------------------------------------------------


def read_json(path: Path) -> tuple[bytes, list[dict[str, object]]]:
    text = path.read_bytes()
    text = gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text
    root = json.loads(text, parse_float=str, parse_int=str)
    return text, root["traceEvents"] if isinstance(root, dict) else root


def test_real_traces_have_the_events_a_json_parser_finds(shared_traces):
    paths = [path for path in sorted(shared_traces.rglob("*.json.gz")) if path.stat().st_size < 70_000]
    paths = [path for path in paths if "memory" not in path.name] + sorted(shared_traces.rglob("trace[12].json"))
    assert len(paths) > 20
    for path in paths:
        text, events = read_json(path)
        scan = scan_text(text)
        complete = [event for event in events if event["ph"] == "X"]
        assert scan.phases == Counter(event["ph"] for event in events), path
        assert names(scan) == [event.get("name", "") for event in complete]
        assert scan.events.ts.tolist() == [int(Decimal(event["ts"]) * 1000) for event in complete]
        ids = [event["args"]["correlation"] for event in complete if "correlation" in event.get("args", {})]
        assert scan.events.fields["correlation"].value.tolist() == [int(value) for value in ids]
        assert (scan.truncated, scan.fault) == (False, None)


def test_without_its_library_the_native_scanner_is_replaced_by_the_twin(monkeypatch):
    monkeypatch.setattr(native, "available", lambda: False)
    assert backend() == "python"
    found = scan(io.BytesIO(f"[{kernel(1)}]".encode()).readinto, event_fields=(), instant_fields=())
    assert names(found) == ["k1"]
