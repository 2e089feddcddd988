"""The native scanner: what is easy to get wrong, and agreement with its twin on whatever can be made up."""

from __future__ import annotations

import gc
import io
import json
import random
import re
import threading
import weakref
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import TIMES, examples
from tests.fuzz.agreement import (
    EVENT_FIELDS,
    HAND_MADE,
    INSTANT_FIELDS,
    difference,
    documents,
    head,
    meaning,
    read,
    real_traces,
    scan_native,
    scan_twin,
)
from traceanalyze.readers.scan import native
from traceanalyze.readers.scan.result import MAX_DEPTH, Field, Kind, Part

pytestmark = pytest.mark.skipif(not native.available(), reason="the native scanner was not built")

# Enough bytes in a real trace for all its kinds of events to occur, few enough for the twin to be quick.
HEAD_BYTES = 400_000


def agree(text: bytes, *blocks: int, **options) -> dict:
    """Scan with the twin, and natively: whole, without learning, and in blocks of the given sizes. One result."""
    expected = meaning(scan_twin(text, **options))
    for block, learn in ((1 << 18, True), (1 << 18, False), *((block, True) for block in blocks)):
        wrong = difference(meaning(scan_native(text, block, learn=learn, **options)), expected)
        assert not wrong, f"blocks of {block}, learn={learn}: {wrong}"
    return expected


def event(**members) -> dict:
    return {"ph": "X", "cat": "c", "name": "n", "pid": 1, "tid": 2, "ts": 5, "dur": 3, **members}


def written(*events, compact: bool = True) -> bytes:
    separators = (",", ":") if compact else (", ", ": ")
    return json.dumps({"traceEvents": events}, separators=separators).encode()


@pytest.mark.parametrize("text", HAND_MADE)
def test_cut_anywhere_in_blocks_of_any_size(text):
    for end in range(len(text) + 1):
        agree(text[:end], 1 + end % 9)
    agree(text, *range(1, 20))


@pytest.mark.parametrize("text", HAND_MADE)
def test_cut_anywhere_in_parts(text):
    """Wherever a part begins, in a string or in what is broken: the codes are the same, too."""
    whole = scan_native(text)
    for cut in range(1, len(text)):
        parts = scan_native(text, cuts=sorted({cut, (cut + len(text)) // 2}))
        wrong = difference(meaning(parts), meaning(whole))
        assert not wrong, (cut, wrong)
        assert parts.strings.blob.tobytes() == whole.strings.blob.tobytes()
        assert np.array_equal(parts.events.name, whole.events.name)


def test_keys_after_args_at_a_block_boundary():
    text = written(*({"args": {"stream": i, "x": "y" * i}, "dur": i, "ts": i, "ph": "X"} for i in range(60)))
    found = agree(text, *range(50, 150), 255, 256, 257)
    assert found["events.dur"][1] == [1000 * i for i in range(60)]


def test_phase_need_not_come_first():
    ascend = [{"name": "a", "pid": 1, "tid": 2, "ts": "1.5", "dur": "2.25", "args": {}, "ph": "X"}] * 5
    assert agree(written(*ascend), 7)["events.ts"][1] == [1500] * 5


@pytest.mark.parametrize("value", ['"7"', "null", "[7]", '{"a":7}', "7.0", "7e0", "+7", '""', "7x", '"7 "', "true"])
def test_integer_edge_meets_something_else(value):
    usual = json.dumps(event(args={"stream": 7}))
    odd = usual.replace('"stream": 7', f'"stream": {value}')
    found = agree(f"[{usual},{usual},{odd},{usual},{odd}]".encode(), 3, 64)
    is_integer = value in ('"7"', "+7")
    assert found["events.fields.stream"][2] == [7] * (5 if is_integer else 3)
    # As a field of two kinds, x is read as text from stream too, and any text will do.
    assert found["counts"]["bad_value"] == (0 if is_integer else 2)


@pytest.mark.parametrize("value", ['"s"', "null", "[1]", "{}", "-5", "1.5", "x.y", '"\\u0041"'])
def test_text_edge_meets_something_else(value):
    usual = json.dumps(event())
    texts = [usual.replace(f'"{key}": {old}', f'"{key}": {value}') for key, old in (("tid", 2), ("name", '"n"'))]
    agree("[{0},{0},{1},{0},{2},{1},{0}]".format(usual, *texts).encode(), 5, 100)


def test_state_is_level_and_not_only_the_last_key():
    inner = {"args": {"name": "inner", "ts": 1, "dur": 2}}
    agree(written(event(), event(**inner), {**inner, **event()}, event(args={"dur": 1}), event(args=[{"dur": 1}])), 9)


def test_ids_have_64_bits():
    ids = [2**63 - 1, -(2**62), 2**63, 2**64 - 1, 2**64, 2**53 + 1, 0, "0x1f", "007", "-0", "", -1]
    flows = [{"ph": "s", "ts": 1, "id": i} for i in ids]
    kernels = [event(args={"correlation": i}) for i in ids]
    found = agree(written(*flows, *kernels), 10)
    numbers = [2**63 - 1, -(2**62), b"9223372036854775808", b"18446744073709551615", b"18446744073709551616", 2**53 + 1]
    assert found["flows.id"] == [*numbers, 0, b"0x1f", b"007", b"-0", b"", -1]
    assert found["events.fields.correlation"][2] == [2**63 - 1, -(2**62), -(2**63), -1, 2**53 + 1, 0, 7, 0, -1]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0.0005", 0),
        ("0.0015", 2),
        ("0.00050000000000000000001", 1),
        ("1697770410320665", 1697770410320665000),
        ("6322354313682.646", 6322354313682646),
        ("1736408883688177.930", 1736408883688177930),
        ("9223372036854775.807", 2**63 - 1),
        ("9223372036854775.8070000000", 2**63 - 1),
        ("9223372036854775.8075", None),
        ("9223372036854775.8079", None),
        ("-9223372036854775.808", -(2**63)),
        ("1e3", 1_000_000),
        ("1.5E-3", 2),
        (".5", 500),
        ("5.", 5000),
        ("+5", 5000),
        ("0e99999999999999999999", 0),
        ("1e-99999999999999999999", 0),
        ("1e99999999999999999999", None),
        ("00000000000000000000000000001", 1000),
        ("1_0", None),
        ("1e", None),
        (".", None),
        ("", None),
        ("NaN", None),
        ("0x10", None),
        ("1 ", None),
    ],
)
def test_times_are_exact(text, ns):
    found = agree(f'[{{"ph":"X","ts":"{text}","dur":0}},{{"ph":"i","ts":{text or "x"}}}]'.encode(), 1)
    assert found["events.ts"][1] == ([] if ns is None else [ns])


def test_numbers_of_every_length():
    texts = [f"{'-' * sign}{'1234567890' * 3}"[: 1 + n + sign] for n in range(25) for sign in (0, 1)]
    texts += [f"{'9' * whole}.{'5' * places}" for whole in range(20) for places in range(6)]
    events = [f'{{"ph":"X","ts":{text},"dur":"{text}","args":{{"stream":{text},"x":{text}}}}}' for text in texts]
    agree(f"[{','.join(events)}]".encode(), 64)
    agree("\n".join(["[", *(f"{one}," for one in events)]).encode(), 1000)


def test_a_string_at_every_length_and_place():
    events = [
        event(name="n" * i, args={"Call stack": "s" * (i * 7 % 90) + '\\"\n' * (i % 3), "y": "é" * i})
        for i in range(80)
    ]
    agree(written(*events, compact=False), 61, 256)


def test_arrays_valid_and_not():
    good = r"""[]  [ ]  [[]]  [1,2]  [1,]  ["a]",[1 ,2] , ["[" ] ]  [{"a":[1]},2]  ["\"]"]  [[1],[2],]  [null,-1e+3]"""
    bad = (
        """[1 2]  [,]  [1,,2]  ["a""b"]  ["a"b]  [b"a"]  [1][  []]  [[1]2]  [1:2]  [\0]  ["a" "b"]  [1/2]  [[1] [2]]"""
    )
    for key in ("Input Dims", "other"):
        for pad in (0, 25, 29, 30, 31, 32, 33, 60, 64):
            for array in (*good.split("  "), *bad.split("  "), "[\t1\r\n]"):
                padded = array.replace("[", "[" + " " * pad, 1)
                one = json.dumps(event(args={key: 0})).replace(": 0}", f": {padded}}}")
                agree(f"[{one},{one},{json.dumps(event())}]".encode())


@pytest.mark.parametrize("depth", [MAX_DEPTH - 3, MAX_DEPTH - 2, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 500])
@pytest.mark.parametrize("key", ["Input Dims", "other"])
def test_depth_is_limited(depth, key):
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        nested = opening * depth + "1" + closing * depth
        inner = f'{{"ph":"X","ts":1,"dur":1,"args":{{"{key}":{nested}}}}}'
        agree(f'[{inner},{{"ph":"i","ts":1}},{nested},{{"ph":"i","ts":2}}]'.encode(), 33)
        agree(f'{{"{key}":{nested},"traceEvents":[{inner}]}}'.encode(), 33)


def test_values_may_be_as_long_as_allowed():
    text = written(event(name="x" * 100), event(), event(args={"y": ["z" * 50]}))[:-1] + b',"k":"' + b"v" * 80 + b'"}'
    for longest in (*range(60, 200), 0, 1):
        agree(text, 1 + longest % 50, max_value_bytes=longest)


def test_large_values_take_linear_time():
    text = written(event(name="x" * 3_000_000), event())
    found = meaning(scan_native(text, 100))
    assert [len(name) for name in found["events.name"]] == [3_000_000, 1]


def test_text_that_never_repeats_is_not_learned_for_ever():
    events = [
        {f"k{i}": 1, "ph": "X", "cat": f"c{i}", "pid": i, "tid": -i, "ts": i, f"l{i}": 2, "dur": 1}
        for i in range(30_000)
    ]
    found = scan_native(written(*events))
    assert len(found.events.ts) == len(found.tracks) == 30_000
    agree(written(*events[:2000]))


def test_many_constants_at_one_place():
    events = [event(cat=f"c{i % 50}", pid=i % 7, tid=i % 41, args={"stream": i % 3}) for i in range(1500)]
    agree(written(*events, compact=False), 1000)


@pytest.mark.parametrize("few", [1, 3, 40])
def test_names_of_arrows_and_flags_nobody_asks_for(few):
    """Part of the literal where there are few of them, and read as ever where there are many or they are long."""
    flags = ("e", "t", 0, 7, 64, "", "\\", "1e", None, 3.5, -1, True, [], "long", 123)
    events = [
        event(ph=phase, s="t", id=i, name=f"{i % few}", bp=flags[i % min(few, len(flags))], a=i % few)
        | {"args": {"x": flags[i % few % len(flags)], "Bytes": i, "y": i % few, "stream": i % few, "z" * 90: 1, "w": 2}}
        for i, phase in enumerate(("s", "i", "X", "f", "I", "t") * 100)
    ]
    agree(written(*events), 1000)
    agree(written(*events, compact=False), 77)
    agree(written(*({"bp": one.pop("bp"), **one} for one in events), compact=False))


def test_nothing_at_all():
    for text in (b"", b" ", b"\xef\xbb", b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf[]", b"nul", b"\x00", b"{", b"["):
        agree(text, 1)


def test_arrays_outlive_the_scan():
    scan = scan_native(written(*(event(name=f"n{i}", args={"stream": i}) for i in range(5000))))
    ts, stream = scan.events.ts, scan.events.fields["stream"].value
    part = ts[100:200]
    del scan, ts
    gc.collect()
    scan_native(written(event()))
    assert part.tolist() == [5000] * 100
    assert stream.sum() == sum(range(5000))
    assert part.dtype == np.int64
    assert part.flags.writeable
    # Each can be let go by itself.
    memory = weakref.ref(stream.base)
    del stream
    gc.collect()
    assert memory() is None


def test_errors_of_the_source_pass_through():
    def readinto(_: memoryview) -> int:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        native.scan(readinto, event_fields=(), instant_fields=())


def test_too_many_keys_are_refused():
    fields = [Field("f", Kind.INT, tuple(f"k{i}" for i in range(100)))]
    with pytest.raises(ValueError, match="too many keys"):
        native.scan(io.BytesIO().readinto, event_fields=fields, instant_fields=())


def test_fields_in_use_fit():
    native.scan(io.BytesIO(b"[]").readinto, event_fields=EVENT_FIELDS, instant_fields=INSTANT_FIELDS)


def test_mutated_documents():
    rng = random.Random(4)
    for text in islice(documents(rng), round(250 * TIMES)):
        expected = agree(text, rng.choice((1, 5, 17, 64, 300)))
        braces = [place for place, byte in enumerate(text) if byte == ord("{") and place]
        cuts = sorted(rng.sample(braces, min(3, len(braces))))
        assert not difference(meaning(scan_native(text, cuts=cuts)), expected), cuts


@pytest.mark.parametrize("path", real_traces(), ids=lambda path: path.name)
def test_real_traces(path):
    text = read(path)
    agree(text if len(text) < HEAD_BYTES else head(text, HEAD_BYTES), 5000)
    # The twin is too slow for all of a large one; the generic way through the native scanner is not.
    if len(text) >= HEAD_BYTES:
        whole = scan_native(text)
        generic = scan_native(text, 50_000, learn=False)
        events = [found.start() for found in re.finditer(rb'(?<=,)\s*\{\s*"(?:ph|name)"', text)]
        parts = scan_native(text, cuts=events[:: len(events) // 3 + 1][1:])
        assert parts.strings.blob.tobytes() == whole.strings.blob.tobytes()
        assert all(np.array_equal(getattr(parts.events, key), getattr(whole.events, key)) for key in ("name", "ts"))
        assert whole.counts == generic.counts
        assert whole.phases == generic.phases
        assert np.array_equal(whole.events.ts, generic.events.ts)
        assert np.array_equal(whole.events.name, generic.events.name)
        assert np.array_equal(whole.strings.blob, generic.strings.blob)


odd_texts = ["X", "i", "M", "s", "7", "1.5", "-0.0005", "a\\b", 'q"', "\ud800", ""]
texts = st.text(max_size=12) | st.sampled_from(odd_texts)
scalars = st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=True) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
odd_keys = ["x", "y", "stream", "bytes", "size", "Input Dims", "Bytes", "External id", "external id", "args", "ph"]
arg_keys = st.sampled_from(odd_keys) | texts
members = {
    "ph": st.sampled_from(["X", "X", "X", "i", "I", "s", "f", "t", "M", "C", "", "XX", "é"]) | scalars,
    "ts": st.integers(-(2**54), 2**54) | st.decimals(allow_nan=False, allow_infinity=False).map(str) | scalars,
    "dur": st.integers(0, 2**40) | st.decimals(0, 10**9).map(str) | scalars,
    "name": values,
    "cat": values,
    "pid": scalars,
    "tid": scalars,
    "id": scalars,
    "args": st.dictionaries(arg_keys, values, max_size=6) | values,
    "s": values,
}
events = st.lists(st.sampled_from(sorted(members)), min_size=2, max_size=10, unique=True).flatmap(
    lambda keys: st.tuples(*(st.tuples(st.just(key), members[key]) for key in keys)).map(dict)
)
layouts = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n  ", " : "), (",\r\n", ":\t")])


@examples(40)
@given(st.lists(events | values, max_size=8), layouts, st.booleans(), st.integers(1, 80), st.sampled_from([None, 1]))
def test_whatever_json_writes(elements, separators, is_object, block, indent):
    found = elements * (1 + block % 3)
    document = {"a": 1, "traceEvents": found, "b": [{}]} if is_object else found
    agree(json.dumps(document, separators=separators, indent=indent).encode("utf-8", "surrogatepass"), block)


@examples(40)
@given(st.lists(events, min_size=1, max_size=4), st.integers(1, 40), st.integers(), st.integers(20, 2000))
def test_whatever_is_left_of_it(elements, block, seed, cut):
    rng = random.Random(seed)
    text = bytearray(json.dumps({"traceEvents": elements, "b": [{}]}).encode())
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text))
        text[at : at + rng.randrange(3)] = rng.choice([b'"', b"\\", b"}", b"{", b",", b"[", b"]", b" ", b"\x00", b"9"])
    agree(bytes(text[:cut]), block)


def test_tabs_behind_a_quoted_number_are_no_part_of_it():
    found = agree(rb'[{"ph":"X","ts":"1.5\t","dur":"2\t\t","args":{"stream":"7\t"}}]', 1, 3)
    assert found["events.ts"][1] == [1500]
    assert found["events.dur"][1] == [2000]
    assert agree(rb'[{"ph":"X","ts":"\t","dur":1},{"ph":"X","ts":"1t","dur":1}]', 1)["events.ts"][1] == []


def test_who_interrupts_a_scan_finds_no_thread_at_work_on_what_is_gone():
    begun = threading.Event()

    def endless(block):
        begun.set()
        block[:] = b" " * len(block)
        return len(block)

    def interrupted(block):
        begun.wait()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        native.scan(interrupted, event_fields=(), instant_fields=(), parts=[Part(9, "list", lambda: endless)])
    assert not [each for each in threading.enumerate() if each.name == "traceanalyze-scan"]
