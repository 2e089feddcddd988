"""Parts hold what was put in, refuse what is damaged, and make nothing but data of what they hold."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.examples import examples
from traceanalyze.analyses.results import Check
from traceanalyze.errors import InputError, Lost, Phrase
from traceanalyze.model.columns import Sparse
from traceanalyze.model.table import Between, Column, Kind, NotMeasured, Quantity, Sentence, Word
from traceanalyze.model.vocabulary import DeviceClass, Level
from traceanalyze.pipeline import Choices, parts
from traceanalyze.pipeline.cache import Spool
from traceanalyze.pipeline.recordings import AnalysedRank, Job, made
from traceanalyze.pipeline.results import analysed_files, pack, unpack
from traceanalyze.readers.source import Source

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def same(one, other):
    """Equal in kind and in all that they hold."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray) and one.dtype == other.dtype == object:
        return one.shape == other.shape and same(one.ravel().tolist(), other.ravel().tolist())
    if isinstance(one, np.ndarray):
        equal = np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        return one.dtype == other.dtype and one.shape == other.shape and equal
    if isinstance(one, dict):
        return [*one] == [*other] and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one):
        return all(same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one) if each.init)
    if isinstance(one, Phrase):
        return (one, one.template, one.values) == (other, other.template, other.values)
    if isinstance(one, Sentence):
        return (one, one.english) == (other, other.english)
    if isinstance(one, Between):
        return (one, one.low, one.high) == (other, other.low, other.high)
    return repr(one) == repr(other) if isinstance(one, float | InputError) else one == other


def test_numbers_that_are_none_are_the_same():
    assert same(*(np.array([np.nan], object) for _ in range(2)))
    assert not same(np.array([np.nan], object), np.array([1.0], object))


TEXT = st.text(st.characters(codec=None), max_size=9)
NUMBERS = arrays.arrays(
    st.sampled_from(["<i8", "<i4", "<i2", "|u1", "|b1", "<f8", "<u4", "<i1"]),
    arrays.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5),
)
ASCENDING = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9).map(lambda each: np.array(sorted(each), np.int64))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.binary(max_size=9)
OURS = st.one_of(
    st.sampled_from([*Kind, *DeviceClass, *Level]),
    st.builds(Word, TEXT),
    st.builds(Sentence, TEXT, TEXT),
    st.builds(Between.of, st.integers(), st.integers(), st.integers()),
    st.builds(NotMeasured, TEXT),
    st.builds(Quantity, st.floats(), TEXT, st.booleans()),
    st.builds(lambda kind, *each: kind("{a} {b:>3} {a}", *each), st.sampled_from([Phrase, Lost]), TEXT, TEXT),
    st.builds(Phrase, st.just("{a}"), st.builds(Phrase, TEXT.filter(lambda text: "{" not in text and "}" not in text))),
    st.builds(lambda text: InputError("{text}: bad", text), TEXT),
    st.builds(
        Check, TEXT, st.sampled_from(Level), TEXT, st.lists(st.tuples(TEXT, st.integers()), max_size=2).map(tuple)
    ),
    st.builds(
        Column,
        *(TEXT, st.sampled_from(Kind), TEXT),
        minor=st.booleans(),
        par=st.none() | st.floats(allow_nan=False),
        backward=st.frozensets(TEXT, max_size=1),
        values=NUMBERS | st.lists(st.integers()),
    ),
    st.builds(Sparse, NUMBERS, NUMBERS),
    st.builds(range, st.integers(), st.integers(), st.integers(1, 9)),
    NUMBERS.map(lambda each: np.array(each.ravel().tolist(), object)),
    st.lists(TEXT, max_size=3).map(lambda each: np.array(each, "U9")),
)
ALIKE = st.one_of(
    *(
        st.lists(each, min_size=6, max_size=12).map(tuple)
        for each in (
            st.integers(-(2**31), 2**31),
            st.integers(),
            st.floats(),
            st.booleans(),
            st.booleans() | st.integers(0, 1),
            st.sampled_from(["a", "", "a name that is told again and again"]),
            st.builds(Quantity, st.floats(), TEXT, st.booleans()),
            st.builds(Sparse, NUMBERS, NUMBERS),
            st.builds(Word, TEXT),
        )
    )
)
VALUES = st.recursive(
    SCALARS | NUMBERS | ASCENDING | OURS | ALIKE | ALIKE.map(list),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(TEXT, inner, max_size=3),
        st.dictionaries(TEXT | st.integers(), st.integers(-9, 999), min_size=8, max_size=9),
        st.dictionaries(st.integers() | st.tuples(st.integers(), TEXT), inner, max_size=3),
        st.frozensets(TEXT | st.integers(), max_size=3),
        st.sets(TEXT, max_size=3),
    ),
    max_leaves=12,
)


@examples(150)
@example([*range(7), 2**63])
@given(VALUES)
def test_what_is_put_in_comes_out(value):
    assert same(parts.loads(parts.dumps(value)), value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "_SMALL", 0)
        assert same(parts.loads(parts.dumps(value)), value)


def test_of_many_sections_only_what_they_have_in_common_is_remembered(monkeypatch):
    monkeypatch.setattr(parts, "_FIRST", 9)
    known = {}
    for rank in range(30):
        times, flags = np.arange(5) * 10**6 + rank, np.ones(5, np.bool_)
        assert same(parts.loads(parts.dumps((times, flags)), known), (times, flags))
    assert len(known) == 9


def test_the_same_array_is_stored_once_and_is_the_same_again():
    column = np.arange(100_000) ** 3 % 7919
    assert len(parts.dumps([column] * 9)) < 1.1 * len(parts.dumps([column]))
    first, second = parts.loads(parts.dumps([column, column]))
    assert first is second


@pytest.mark.parametrize(
    ("values", "width"),
    [([0, 127], 1), ([0, -129], 2), ([2**40, 2**40 + 9], 1), ([0, 2**40, 7], 8), ([2**62, -(2**62)], 8)],
)
def test_numbers_of_many_are_as_narrow_as_they_or_their_differences_need(monkeypatch, values, width):
    assert [*json.loads(parts.dumps(np.array(values)).split(b"\n", 1)[0])["numbers"]] == ["<i8"]
    monkeypatch.setattr(parts, "_SMALL", 0)
    about, _, rows = parts.dumps(np.array(values)).split(b"\n", 2)
    assert [*json.loads(about)["numbers"]] == [f"<i{width}".replace("<i1", "|i1")]
    assert len(rows) == width * len(values)


def test_sections_share_what_they_have_in_common():
    kinds, times, names = np.arange(9) % 2, np.arange(9) * 10**6, tuple(f"step {at}" for at in range(9))
    value = kinds, times, names, tuple(range(9)), {"on": True}, np.array([0, 1, 0], np.bool_), (1, 0, 1), {"on": 1}
    known = {}
    first, second = (parts.loads(parts.dumps(value), known) for _ in range(2))
    assert same(first, value)
    assert same(second, value)
    assert [a is b for a, b in zip(first, second, strict=True)] == [True, True, True, True, True, True, False, True]
    assert type(second[-1]["on"]) is int
    other = parts.loads(parts.dumps((kinds.astype(np.int32), names[:8], {"on": False}, kinds.reshape(3, 3))), known)
    assert same(other, (kinds.astype(np.int32), names[:8], {"on": False}, kinds.reshape(3, 3)))


def test_what_sections_share_has_its_shape(monkeypatch):
    monkeypatch.setattr(parts, "_SMALL", 0)
    known, differences, column = {}, np.array([1, 101, 201]), np.array([[0], [100], [100]])
    for value in (differences, column):
        assert same(parts.loads(parts.dumps(value), known), value)


def test_equal_arrays_are_stored_once():
    zeros, others = np.zeros(1000, np.int64), np.zeros(1000, np.float64)
    assert len(parts.dumps((zeros, zeros.copy()))) == pytest.approx(len(parts.dumps((zeros, zeros))), abs=8)
    found = parts.loads(parts.dumps((zeros, zeros.copy(), others)))
    assert found[0] is found[1]
    assert found[2].dtype == np.float64


def test_what_is_alike_is_stored_together():
    name = "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal>(Params)"
    rows = [(name, at, 10**9 + at, at / 3) for at in range(4000)]
    value = [Column("key", Kind.NAME, "", values=[*each]) for each in zip(*rows, strict=True)]
    section = parts.dumps(value)
    assert stored(parts.archive({"some": section}))["some"] < 48_000
    assert sum(map(len, section.split(b"\n", 2)[:2])) < 2000


def test_what_is_declared_of_a_column_stands_once():
    column = Column("duration_ns", Kind.DURATION, "a meaning that takes a line of English", minor=True)
    first, second = (parts.dumps([column.of([at]) for at in range(count)]) for count in (1, 9))
    assert len(second) - len(first) <= 8 * 20
    assert [each.values for each in parts.loads(second)] == [[at] for at in range(9)]


def test_a_section_is_read_without_this_package():
    column = np.array([2**40, 2**40 + 300, 2**40 + 1])
    for value in ({"a": np.array([0.5]), "b": column}, {"a": np.random.default_rng(0).random(9999), "b": column}):
        with np.load(io.BytesIO(parts.archive({"summary": parts.dumps(value)})), allow_pickle=False) as file:
            about, made, rows = file["summary"].tobytes().split(b"\n", 2)
        document, (keys, values) = json.loads(about), json.loads(made)["m"]
        name, start, shape, own, *first = document["arrays"][values[keys.index("b")]["a"]]
        before = sum(np.dtype(kind).itemsize * count for kind, count in [*document["numbers"].items()][:1])
        found = np.frombuffer(rows[before:], np.uint8).reshape(np.dtype(name).itemsize, document["numbers"][name])
        numbers = found.T.copy().view(name).ravel()[start : start + shape[0]]
        assert (first[0] + np.cumsum(numbers, dtype=np.int64) if first else numbers).astype(own).tolist() == [*column]


@pytest.mark.parametrize("value", [object(), print, Path(), slice(3), 1j, np.array([1j])])
def test_what_is_no_data_is_refused_when_written(value):
    with pytest.raises(TypeError):
        parts.dumps(("some", value))


@pytest.mark.parametrize(
    "name",
    [
        *("os:system", "builtins:eval", "traceanalyze.cli.main:main", "traceanalyze.errors:re", "traceanalyze:record"),
        *("traceanalyze.model.native:library", "traceanalyze.pipeline.cache:Path", "traceanalyze.model.nothing:X"),
        *("x", ""),
    ],
)
def test_nothing_but_classes_of_data_is_made(name):
    with pytest.raises(parts.DamagedError, match=r"class|IndexError|ModuleNotFound"):
        parts.loads(section({"classes": [name]}, {"0": ["echo"]}))


def section(about, value, rows=b""):
    lines = {"classes": [], "texts": [], "columns": [], "arrays": [], "numbers": {}} | about, value
    return b"\n".join([*(json.dumps(each).encode() for each in lines), rows])


@pytest.mark.parametrize("rows", [pickle.dumps(Path()), bytes(8)])
def test_an_array_of_objects_is_not_made(rows):
    about = {"arrays": [["|O", 0, [1], "|O"]], "numbers": {"|O": 1}}
    with pytest.raises(parts.DamagedError):
        parts.loads(section(about, {"a": 0}, rows))


def results(paths, **choices):
    return [*analysed_files([str(path) for path in paths], Choices(**choices), None)[1].values()]


@pytest.fixture(scope="module")
def ranks():
    return results([SAMPLES / "gpu_two_ranks"])


def packed(one):
    part = pack(one, Source("x"))
    assert part is not None
    return part


def stored(part):
    """Bytes that each section takes."""
    with zipfile.ZipFile(io.BytesIO(part)) as file:
        return {each.filename.removesuffix(".npy"): each.compress_size for each in file.infolist()}


def asked(one):
    """The rank with the times of those calls alone that a replay of its program asks for."""
    if one.program is None:
        return one
    graph = one.program.graph
    calls = np.union1d(graph.waiting.call, graph.returns.call).astype(np.int64)
    times = {key: getattr(one.program, key)[calls] for key in ("call_start", "call_end", "call_track")}
    return one._replace(program=replace(one.program, **times))


def test_a_rank_is_the_same_when_it_was_packed(ranks):
    for one in ranks:
        again = unpack(packed(one), Spool())
        assert isinstance(again, AnalysedRank)
        assert packed(again) == packed(one)
        whole = again._replace(
            analysis=again.analysis._replace(tables=dict(again.analysis.tables)),
            places=dict(again.places),
            costs=dict(again.costs),
        )
        assert same(asked(whole), asked(one))


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir() if path.name != "memory"))
def test_whatever_was_recorded_can_be_packed(sample):
    for one in results([SAMPLES / sample]):
        again = unpack(packed(one), Spool())
        assert packed(again) == packed(one)
        assert same(asked(again).program, asked(one).program)


def test_a_summary_is_small_and_the_rest_is_read_when_it_is_looked_at(ranks, monkeypatch):
    part = packed(ranks[0])
    assert stored(part)["summary"] < 40_000
    assert len(part) < 240_000
    one, read, loads = unpack(part, Spool()), [], parts.loads
    monkeypatch.setattr(parts, "loads", lambda section: read.append(section) or loads(section))
    tables = one.analysis.tables
    assert [*tables] == [*ranks[0].analysis.tables]
    assert "kernels" in tables
    assert "nothing" not in tables
    assert len(tables["split"]) > 0
    assert read == []
    assert tables["kernels"].rows == ranks[0].analysis.tables["kernels"].rows
    assert tables["gaps"].rows == ranks[0].analysis.tables["gaps"].rows
    assert len(read) == 1
    with pytest.raises(KeyError):
        tables["nothing"]


@pytest.mark.parametrize(
    "name", ["pairs/sam_fast_ladder/a73da0_asdf_False.json.gz", "kineto/param/linear_kineto.json.gz"]
)
@pytest.mark.parametrize("together", [False, True])
def test_a_summary_is_small_however_much_was_found(shared_traces, name, together):
    job = Job(Source(str(shared_traces / name)), Choices(), {}, False, False, together, False)
    one = made(job)
    found = stored(packed(one))
    assert found["summary"] < 20_000
    assert sum(size for key, size in found.items() if key not in {"summary", "program"}) < 200_000
    assert ("program" in found) == together
    assert sum(each.left_out for each in one.outcome.findings) > 2000
    again = unpack(packed(one), Spool())
    assert same(again.outcome, one.outcome)
    assert bool(one.outcome.faint) == together


@examples(60)
@given(st.data())
def test_a_damaged_part_is_none_or_tells_the_same(data):
    whole = packed(InputError("{name}: bad", "x")) if data.draw(st.booleans()) else DAMAGED
    at = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        damaged = whole[:at]
    else:
        damaged = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    found = unpack(damaged, Spool())
    assert found is None or packed(found) == whole


DAMAGED = packed(results([SAMPLES / "gpu_healthy"])[0])


def test_a_small_part_may_be_damaged_anywhere():
    whole = packed(InputError("{name}: bad", "x"))
    for at, bit in product(range(len(whole)), range(8)):
        found = unpack(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :], Spool())
        assert found is None or packed(found) == whole


@pytest.mark.parametrize(
    "part", [b"", b"PK", b"x" * 1000, parts.archive({}), parts.archive({"summary": parts.dumps(3)})]
)
def test_what_is_no_part_is_none(part):
    assert unpack(part, Spool()) is None


def test_a_spool_gives_back_what_was_put_away(monkeypatch):
    monkeypatch.setattr("traceanalyze.pipeline.cache._IN_MEMORY", 10)
    spool = Spool()
    asked = [spool.add(bytes([each]) * each) for each in range(30)]
    assert [each() for each in reversed(asked)] == [bytes([each]) * each for each in reversed(range(30))]
    monkeypatch.setattr(spool, "_file", SimpleNamespace(seek=lambda *_: 0, write=no_room, close=lambda: None))
    assert spool.add(b"there is no room")() == b"there is no room"


def no_room(_):
    raise OSError(28, "No space left on device")


def test_kinds_of_enums_are_told_apart():
    found = parts.loads(parts.dumps((Level.WARN, DeviceClass.COMM, Kind.BYTES)))
    assert [type(each) for each in found] == [Level, DeviceClass, Kind]
    assert all(isinstance(each, Enum) for each in found)
