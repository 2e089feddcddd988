"""Allocator snapshots are read whatever wrote them, and nothing in them can run."""

from __future__ import annotations

import copy
import gzip
import json
import os
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import snapshots
from traceanalyze.errors import InputError
from traceanalyze.model import native
from traceanalyze.model.snapshot import Action, Frame, Snapshot, State
from traceanalyze.pipeline.memory import memory
from traceanalyze.readers.snapshot import _natively, read_snapshot
from traceanalyze.readers.snapshot.columns import StackTable
from traceanalyze.readers.source import Source
from traceanalyze.readers.streams import open_stream

FRAMES = [{"name": "forward", "filename": "/home/me/model.py", "line": 54}, {"name": "f", "filename": "??", "line": 0}]
SMALL: dict[str, Any] = {
    "segments": [
        {
            "device": 0,
            "address": 4096,
            "total_size": 2097152,
            "allocated_size": 1024,
            "active_size": 1024,
            "requested_size": 1000,
            "stream": 0,
            "segment_type": "small",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": [
                {
                    "address": 4096,
                    "size": 1024,
                    "requested_size": 1000,
                    "state": "active_allocated",
                    "frames": FRAMES,
                },
                {"address": 5120, "size": 2096128, "requested_size": 77, "state": "inactive", "frames": []},
            ],
        }
    ],
    "device_traces": [
        [
            {"action": "segment_alloc", "addr": 4096, "size": 2097152, "stream": 0, "time_us": 10, "frames": FRAMES},
            {"action": "alloc", "addr": 4096, "size": 1000, "stream": 0, "time_us": 11, "frames": FRAMES},
            {"action": "oom", "device_free": 4321, "size": 10**9, "stream": 0, "time_us": 12, "frames": list(FRAMES)},
            {"action": "dance", "addr": 1, "size": 2, "stream": 0, "time_us": 13},
        ],
        [],
    ],
    "allocator_settings": {"expandable_segments": False, "max_split_size": -1},
    "external_annotations": [
        {"stage": "START", "name": "ProfilerStep#3", "device": 0, "time_us": 9},
        {"stage": "END", "name": "ProfilerStep#3", "device": 0, "time_us": 20},
    ],
}


def written(tmp_path: Path, content: bytes, name: str = "snapshot.pickle") -> Source:
    path = tmp_path / name
    path.write_bytes(content)
    return Source(str(path), size=len(content))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_gives_the_same_columns(tmp_path: Path, protocol: int) -> None:
    found = read_snapshot(written(tmp_path, pickle.dumps(SMALL, protocol)))
    (device,) = found.devices
    assert (found.vendor, found.settings["max_split_size"]) == ("cuda", -1)
    assert device.segments.size.tolist() == [2097152]
    assert device.blocks.state.tolist() == [State.ACTIVE, State.INACTIVE]
    assert device.history.action.tolist() == [Action.SEGMENT_ALLOC, Action.ALLOC, Action.OOM, Action.UNKNOWN]
    assert device.history.time is not None
    assert device.history.time.tolist() == [10_000, 11_000, 12_000, 13_000]
    assert device.history.device_free == {2: 4321}
    assert device.history.unknown == {"dance": 1}
    assert found.annotations is not None
    assert found.annotations.start.tolist() == [True, False]
    assert found.annotations.name == ("ProfilerStep#3", "ProfilerStep#3")


def test_equal_stacks_are_one_stack_but_calls_stay_apart(tmp_path: Path) -> None:
    found = read_snapshot(written(tmp_path, pickle.dumps(SMALL, 4)))
    history = found.devices[0].history
    assert found.stacks.frames == (Frame("forward", "/home/me/model.py", 54), Frame("f", "??", 0))
    assert history.stack.tolist() == [0, 0, 0, -1]
    first, second, other, none = history.call.tolist()
    assert first == second != other
    assert none == -1


@pytest.mark.parametrize("pack", [False, True])
def test_json_gives_the_same_but_cannot_tell_calls_apart(tmp_path: Path, pack: bool) -> None:
    text = json.dumps(SMALL).encode()
    name = "snapshot.json.gz" if pack else "snapshot.json"
    found = read_snapshot(written(tmp_path, gzip.compress(text) if pack else text, name))
    assert found.devices[0].history.stack.tolist() == [0, 0, 0, -1]
    assert found.devices[0].history.call.tolist() == [0, 0, 0, -1]
    assert found.devices[0].pools == ((0, 0),)


def test_a_list_of_segments_is_a_snapshot_without_history(tmp_path: Path) -> None:
    found = read_snapshot(written(tmp_path, pickle.dumps(SMALL["segments"], 4)))
    assert len(found.devices[0].history) == 0
    assert found.devices[0].blocks.address.tolist() == [4096, 5120]


def test_blocks_of_torch_1_13_have_their_address_from_those_before_them(tmp_path: Path) -> None:
    old = copy.deepcopy(SMALL["segments"])
    for block in old[0]["blocks"]:
        del block["address"], block["requested_size"]
        frames = block.pop("frames")
        block["history"] = [{"addr": 4096, "real_size": 1000, "frames": frames}]
    found = read_snapshot(written(tmp_path, pickle.dumps({"segments": old, "device_traces": []}, 4)))
    blocks = found.devices[0].blocks
    assert blocks.address.tolist() == [4096, 5120]
    assert blocks.requested.tolist()[0] == 1000
    assert found.stacks.stacks[int(blocks.stack[0])] == (0, 1)


def both(source: Source) -> Snapshot:
    """What the native reader makes of a file, if there is one; its twin makes the same of it."""
    expected = read_snapshot(source, natively=False)
    if native.library() is None:
        return expected
    with open_stream(source) as stream:
        found = _natively(stream, source, is_json=stream.head[:1] != b"\x80")
    assert found is not None
    assert snapshots.plain(found) == snapshots.plain(expected)
    return found


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_usual_files_are_read_natively(tmp_path: Path, protocol: int) -> None:
    both(written(tmp_path, pickle.dumps(SMALL, protocol)))
    both(written(tmp_path, gzip.compress(pickle.dumps(SMALL, protocol)), "s.pickle.gz"))
    deep = [{**FRAMES[0], "line": line, "fx_original_trace": 'File "b.py", line 7, in f'} for line in range(2500)]
    members = {"frames": deep, "pool_id": (3, 1), "user_metadata": "x", "compile_context": "N/A"}
    traces = [
        [{**event, **members} for event in SMALL["device_traces"][0] * 700],
        [{**with_event()["device_traces"][0][1]}],
    ]
    found = both(written(tmp_path, pickle.dumps({**SMALL, "device_traces": traces}, protocol)))
    assert [len(device.history) for device in found.devices] == [2800, 1]
    assert found.devices[0].history.texts == (("x", ""),)
    assert found.devices[0].pools == ((0, 0), (3, 1))
    silent = SMALL["device_traces"][0][0]
    traces = [[{**silent}, {**silent, "user_metadata": "x"}, {**silent}]]
    history = both(written(tmp_path, pickle.dumps({**SMALL, "device_traces": traces}, protocol))).devices[0].history
    assert history.told is not None
    assert [history.texts[code] for code in history.told] == [("", ""), ("x", ""), ("", "")]


@pytest.mark.parametrize("path", sorted(snapshots.SHARED.glob("*.pickle")), ids=lambda path: path.stem)
def test_real_files_are_read_natively(path: Path) -> None:
    both(Source(str(path), size=path.stat().st_size))


@pytest.mark.parametrize("path", sorted(snapshots.SHARED.glob("*.pickle")), ids=lambda path: path.stem)
def test_real_files_as_json_are_read_natively(path: Path, tmp_path: Path) -> None:
    text = json.dumps(pickle.loads(path.read_bytes())).encode()
    if len(text) < 10_000_000:
        both(written(tmp_path, text, "s.json"))


ODD_FRAME = {
    "name": 'a "b"\n\u00e9\U0001f600\\',
    "filename": "dir\\f.py",
    "line": 3,
    "fx_original_trace": 'File "b.py", line 7, in f',
}


@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_of_all_kinds_is_read_natively(tmp_path: Path, ascii_only: bool) -> None:
    settings = {"a": 0.25, "b": -1e-7, "c": 2**63, "d": -(2**63), "e": None, "f": True, "g": {"1": 0}, "": "x"}
    members = {"frames": [ODD_FRAME], "pool_id": (3, 1), "user_metadata": "\u2028", "compile_context": "N/A"}
    events = [{**event, **members} for event in SMALL["device_traces"][0]]
    content = {
        **SMALL,
        "allocator_settings": settings,
        "external_annotations": [{"stage": "START", "name": "s", "device": 0, "time_us": 5}, {}],
        "device_traces": [events, [], [with_event()["device_traces"][0][1]]],
    }
    text = json.dumps(content, ensure_ascii=ascii_only, indent=1)
    found = both(written(tmp_path, (text + "\n").encode(), "s.json"))
    assert (found.settings, found.devices[0].pools) == (settings, ((0, 0), (3, 1)))
    assert {frame.name for frame in found.stacks.frames} >= {ODD_FRAME["name"], "f"}
    both(written(tmp_path, gzip.compress(text.encode()), "s.json.gz"))
    both(written(tmp_path, json.dumps(SMALL["segments"]).encode(), "list.json"))


_FOR_PYTHON = {
    "lists": b"[" * 30_000_000,
    "dictionaries": b'{"segments":' * 3_000_000,
    "open": b'{"segments": "x',
    "numbers": b'{"segments": [' + b"1," * 20_000_000 + b"1]}",
    "digits": b'{"segments": ' + b"9" * 30_000_000 + b"}",
    "text": b'{"segments": "' + b"x" * 70_000_000 + b'"}',
    "more": b'{"segments": []} x',
    "comma": b'{"segments": [],}',
    "comma in list": b'{"segments": [1,]}',
    "surrogate": b'{"segments": ["\\ud800"]}',
    "nan": b'{"segments": NaN}',
    "zero": b'{"segments": 01}',
    "colon": b'{"segments" []}',
    "bracket": b'{"segments": [}]',
    "control": b'{"segments": ["\x01"]}',
    "mark": b'\xef\xbb\xbf{"segments": []}',
}


@pytest.mark.parametrize("what", _FOR_PYTHON)
def test_odd_json_is_left_to_python(tmp_path: Path, what: str) -> None:
    source = written(tmp_path, _FOR_PYTHON[what], "s.json")
    with open_stream(source) as stream:
        assert _natively(stream, source, is_json=True) is None


def test_damaged_files_are_what_the_unpickler_makes_of_them(tmp_path: Path) -> None:
    wrong, natively = snapshots.compare(300, random.randrange(1 << 30), tmp_path / "damaged.pickle")
    assert not wrong
    assert natively > 30 or native.library() is None


@pytest.mark.parametrize(
    "bomb",
    [
        b"\x80\x04" + b"(" * 30_000_000,
        b"\x80\x04" + b"N" * 30_000_000,
        b"\x80\x04" + b"]" * 30_000_000,
        b"\x80\x04]" + b"\x94" * 30_000_000,
        b"\x80\x04]\x94" + b"]\x94h\x00a" * 5_000_000,
        b"\x80\x04]r" + (2**31).to_bytes(4, "little") + b".",
        b"\x80\x04\x95" + (2**62).to_bytes(8, "little") + b"].",
        b"\x80\x04X" + (2**32 - 1).to_bytes(4, "little") + b"x",
    ],
    ids=["marks", "values", "lists", "memo", "deep", "place", "frame", "text"],
)
def test_bombs_are_left_to_the_unpickler_at_little_cost(tmp_path: Path, bomb: bytes) -> None:
    source = written(tmp_path, bomb)
    with open_stream(source) as stream:
        assert _natively(stream, source) is None


def test_addresses_of_the_upper_half_keep_their_order(tmp_path: Path) -> None:
    high = (1 << 64) - (1 << 56)
    content = {**with_segment(address=high), **with_event(addr=high + 4096)}
    (segment,) = content["segments"]
    segment["blocks"] = [{**block, "address": high + block["address"] - 4096} for block in segment["blocks"]]
    (device,) = both(written(tmp_path, pickle.dumps(content, 4))).devices
    assert (device.blocks.address - device.segments.address).tolist() == [0, 1024]
    assert int(device.history.address[-1] - device.segments.address[0]) == 4096
    assert int(device.segments.address[0]) % (1 << 64) == high
    found = read_snapshot(written(tmp_path, json.dumps(content).encode(), "s.json"))
    assert found.devices[0].history.address.tolist() == device.history.address.tolist()


@pytest.mark.parametrize(
    ("settings", "overflowed"),
    [
        ({"trace_alloc_overflowed": True, "trace_alloc_max_entries": 100}, True),
        ({"0": {"trace_alloc_overflowed": False}, "1": {"trace_alloc_overflowed": True}}, True),
        ({0: {"trace_alloc_overflowed": False}}, False),
        ({"max_split_size": -1}, None),
    ],
)
def test_the_settings_tell_of_a_full_ring(tmp_path: Path, settings: dict[Any, Any], overflowed: bool | None) -> None:
    found = read_snapshot(written(tmp_path, pickle.dumps({**SMALL, "allocator_settings": settings}, 4)))
    assert found.overflowed is overflowed


def test_pinned_memory_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    host = {"host_segments": SMALL["segments"], "host_traces": SMALL["device_traces"][0][:1]}
    found = both(written(tmp_path, pickle.dumps({**SMALL, **host}, 4)))
    assert found.notes == ("pinned host memory is recorded, too; it is not analysed",)


class _Evil:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.marker}",)


_BOMBS = {
    "ext": b"\x80\x04\x82\x01.",
    "persistent": b"\x80\x04\x8c\x03abcQ.",
    "global": b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.",
    "stack global": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02ls\x85R.",
    "memo index": b"\x80\x04]r\xff\xff\xff\x7f.",
    "string length": b"\x80\x04\x8d" + (2**50).to_bytes(8, "little") + b"x",
    "frame length": b"\x80\x04\x95" + (2**50).to_bytes(8, "little") + b"]",
    "bytearray length": b"\x80\x05\x96" + (2**45).to_bytes(8, "little") + b"x",
    "truncated": pickle.dumps(SMALL, 4)[:-40],
    "no stop": pickle.dumps(SMALL, 4)[:-1],
    "bad opcode": b"\x80\x04\xffsegments.",
    "mark missing": b"\x80\x04u.",
}


@pytest.mark.parametrize("what", _BOMBS)
def test_hostile_and_damaged_pickles_are_one_clear_line(tmp_path: Path, what: str) -> None:
    with pytest.raises(InputError) as caught:
        read_snapshot(written(tmp_path, _BOMBS[what]))
    text = str(caught.value)
    assert "snapshot.pickle" in text
    assert "\n" not in text
    assert len(text) < 400


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_code_in_a_snapshot_is_refused_by_name_and_never_runs(tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "ran"
    hostile = {**SMALL, "allocator_settings": _Evil(marker)}
    with pytest.raises(InputError, match="system"):
        read_snapshot(written(tmp_path, pickle.dumps(hostile, protocol)))
    assert not marker.exists()


def test_rows_repeated_by_reference_are_refused(tmp_path: Path) -> None:
    segment = dict(SMALL["segments"][0])
    segment["blocks"] = segment["blocks"][:1] * 5000
    with pytest.raises(InputError, match="repeats itself"):
        read_snapshot(written(tmp_path, pickle.dumps({"segments": [segment] * 5000}, 4)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"segments": 5}, "not a list"),
        ({"segments": [5]}, "not only dicts"),
        ({"device_traces": {}}, "not a list"),
        ({"device_traces": [[{"action": "alloc", "addr": "x", "size": 1}]]}, "not a whole number"),
        ({"device_traces": [[{"action": "alloc", "addr": 1}]]}, 'has no "size"'),
        ({"device_traces": [[{"action": "alloc", "addr": 2**70, "size": 1}]]}, "not a number from 0"),
        ({"device_traces": [[{"action": "alloc", "addr": 1, "size": 1, "frames": 7}]]}, "not a list"),
        ({"device_traces": [[{"action": "alloc", "addr": 1, "size": 1, "frames": [7]}]]}, "not a dict"),
    ],
)
def test_values_that_make_no_sense_are_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_snapshot(written(tmp_path, pickle.dumps({**SMALL, **change}, 4)))


HUGE = 1 << 20_000
_DUMP = r"give the file torch\.cuda\.memory\._dump_snapshot wrote"


def with_block(**members: Any) -> dict[str, Any]:
    """The second block with other members."""
    (segment,) = SMALL["segments"]
    first, second = segment["blocks"]
    return {"segments": [{**segment, "blocks": [first, {**second, **members}]}]}


def with_segment(**members: Any) -> dict[str, Any]:
    return {"segments": [{**SMALL["segments"][0], **members}]}


def with_event(**members: Any) -> dict[str, Any]:
    """The third event with other members, as a fourth."""
    events = SMALL["device_traces"][0][:3]
    return {"device_traces": [[*events, {**events[1], **members}]]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (with_event(size=1 << 62), 'event of device 0 3: it has "size" = 4611686018427387904, not a number from 0'),
        (with_event(size=-512), 'event of device 0 3: it has "size" = -512, not a number from 0'),
        (with_event(addr=HUGE), 'event of device 0 3: it has "addr" = 0x8000000000000000…, not a number from 0'),
        (with_event(addr=-1), 'event of device 0 3: it has "addr" = -1, not a number from 0'),
        (with_event(time_us=1 << 62), 'event of device 0 3: it has "time_us" = 4611686018427387904, not'),
        (with_event(action=["alloc"]), "event of device 0 3: it has \"action\" = ['alloc'], not a text"),
        (with_event(addr=[HUGE]), 'event of device 0 3: it has "addr" = list, not a whole number'),
        (with_segment(total_size=1 << 62), 'segment of device 0 0: it has "total_size" = 4611686018427387904, not'),
        (with_segment(total_size=-1), 'segment of device 0 0: it has "total_size" = -1, not a number from 0'),
        (with_segment(address=HUGE), 'segment of device 0 0: it has "address" = 0x8000000000000000…, not'),
        (with_segment(device=HUGE), 'segment 0: it has "device" = 0x8000000000000000…, not'),
        (with_block(size=1 << 62), 'block of device 0 1: it has "size" = 4611686018427387904, not a number from 0'),
        (with_block(size=-2096128), 'block of device 0 1: it has "size" = -2096128, not a number from 0'),
        (with_block(state=["inactive"]), "block of device 0 1: it has \"state\" = ['inactive'], not a text"),
        (with_block(state="free"), "block of device 0 1: it has the unknown state 'free'"),
        ({"external_annotations": [{"stage": "END", "name": "x", "time_us": -(1 << 62)}]}, "annotation 0: it has"),
    ],
)
def test_rows_that_no_allocator_writes_are_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_snapshot(written(tmp_path, pickle.dumps({**SMALL, **change}, 4)))
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(("size", "largest"), [((1 << 42) - 1, True), (1 << 42, False)])
def test_the_largest_size(tmp_path: Path, size: int, largest: bool) -> None:
    source = written(tmp_path, pickle.dumps({**SMALL, **with_event(size=size)}, 4))
    if largest:
        assert int(read_snapshot(source).devices[0].history.size[-1]) == size
    else:
        with pytest.raises(InputError, match=f"not a number from 0 to {size - 1}"):
            read_snapshot(source)


def test_marks_whose_stage_is_no_text_are_left_out(tmp_path: Path) -> None:
    marks = [{"stage": ["END"], "name": "x", "time_us": 3}]
    found = read_snapshot(written(tmp_path, pickle.dumps({**SMALL, "external_annotations": marks}, 4)))
    assert found.annotations is None
    assert found.notes == ("1 annotation marks without a name or stage were left out",)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"device_traces": [[SMALL["device_traces"][0][1]] * 3_000_000]}, "event of device 0 1: the same row"),
        (with_segment(blocks=SMALL["segments"][0]["blocks"] * 1_500_000), "block 2: the same row"),
    ],
)
def test_rows_that_stand_for_millions_are_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """Two or five bytes are enough to have a row again; a few of them would do no harm."""
    with pytest.raises(InputError, match=said):
        read_snapshot(written(tmp_path, pickle.dumps({**SMALL, **change}, 4)))
    event = SMALL["device_traces"][0][1]
    assert len(read_snapshot(written(tmp_path, pickle.dumps({**SMALL, **with_event(), "x": event}, 4))).devices) == 1


def blanks() -> bytes:
    """3 GB of blanks within a snapshot as JSON, in 3 MB."""
    some = gzip.compress(b" " * 100_000_000)
    return gzip.compress(b'{"segments": [') + some * 30 + gzip.compress(b"]}")


def long_value(size: int) -> bytes:
    return b"\x80\x05}\x94\x8c\x08segments\x94\x96" + size.to_bytes(8, "little")


def far_places(count: int) -> bytes:
    """A pickle whose numbers of remembered values are far apart, which claims memory for all between them."""
    places = range(0, 1 << 31, (1 << 31) // count)
    return b"\x80\x04N" + b"".join(b"r" + place.to_bytes(4, "little") for place in places) + b"."


_LARGE: dict[str, Any] = {
    "memo": ("s.pickle", lambda: far_places(60_000), "more memory than its size allows"),
    "packed lists": (
        "s.json.gz",
        lambda: gzip.compress(b'{"segments":[' + b"[]," * 20_000_000 + b"[]]}"),
        "more memory than its size allows",
    ),
    "blanks": ("s.json.gz", blanks, "bytes of text in"),
    "bytearray": ("s.pickle", lambda: long_value(3 << 30) + b"x" * 99, "more memory than its size allows"),
    "full bytearray": (
        "s.pickle.gz",
        lambda: gzip.compress(long_value(1 << 27)) + gzip.compress(bytes(1 << 26)) * 2,
        r"asks for a value of 13\d,\d+,\d+ bytes",
    ),
    "rows": (
        "s.pickle",
        lambda: pickle.dumps({**SMALL, "device_traces": [[SMALL["device_traces"][0][1]] * 3_000_000]}, 4),
        "event of device 0 1: the same row",
    ),
}


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="its peak is read from /proc")
@pytest.mark.parametrize("what", _LARGE)
def test_files_that_ask_for_all_memory_are_refused_in_little(tmp_path: Path, what: str) -> None:
    """One line, exit code 2, and less than 500 MB."""
    name, content, said = _LARGE[what]
    (tmp_path / name).write_bytes(content())
    program = (
        "import re, sys\n"
        "from traceanalyze.cli.main import main\n"
        f"sys.argv = ['traceanalyze', 'memory', {str(tmp_path / name)!r}]\n"
        "try:\n    code = main()\nexcept SystemExit as end:\n    code = end.code\n"
        # `ru_maxrss` would be that of the process which started this one, where that is more.
        "print(code, re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    code, kilobytes = map(int, ran.stdout.split())
    assert code == 2
    assert re.search(said, ran.stderr)
    assert ran.stderr.count("\n") == 1
    assert kilobytes < 500_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pickle.dumps({"nccl_comm_state": {}, "pg_status": {}, "entries": []}), f"flight recorder.*{_DUMP}"),
        (pickle.dumps({"a": 1}), f"neither.*{_DUMP}"),
        (b"<!DOCTYPE html><html>", f"HTML.*{_DUMP}"),
        (bytes(range(256)), f"binary data.*{_DUMP}"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
    ],
)
def test_other_files_are_called_what_they_are_and_the_right_producer_is_named(
    tmp_path: Path, content: bytes, said: str
) -> None:
    source = written(tmp_path, content)
    for read in (lambda: read_snapshot(source), lambda: memory(source.path)):
        with pytest.raises(InputError, match=said):
            read()


def test_a_pickle_of_something_else_says_what_a_snapshot_has(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither"):
        read_snapshot(written(tmp_path, pickle.dumps({"a": 1}, 4)))


def test_the_file_is_left_as_it_was(tmp_path: Path) -> None:
    content = pickle.dumps(SMALL, 4)
    source = written(tmp_path, content)
    read_snapshot(source)
    assert Path(source.path).read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot.pickle"]


def test_stacks_are_numbered_as_they_appear_wherever_they_lie_in_memory():
    lists = sorted(([{"name": str(n), "filename": "a.py", "line": n}] for n in range(1, 5)), key=id, reverse=True)
    table = StackTable("x", identity=True)
    stack, _ = table.codes([{"frames": frames} for frames in lists])
    assert stack.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("stream", "vendor"), [(65_537, "npu"), (65_536, "cuda")])
def test_an_npu_is_known_by_streams_that_are_pointers(tmp_path: Path, stream: int, vendor: str) -> None:
    bare = copy.deepcopy({"segments": SMALL["segments"], "device_traces": SMALL["device_traces"]})
    bare["segments"][0]["stream"] = stream
    for event in bare["device_traces"][0]:
        del event["time_us"]
    assert read_snapshot(written(tmp_path, pickle.dumps(bare))).vendor == vendor
    for event in bare["device_traces"][0]:
        event["time_us"] = 10
    assert read_snapshot(written(tmp_path, pickle.dumps(bare))).vendor == "cuda"


def test_sizes_that_a_segment_does_not_state_are_unknown(tmp_path: Path) -> None:
    content = copy.deepcopy(SMALL)
    for key in ("allocated_size", "active_size", "requested_size", "stream"):
        del content["segments"][0][key]
    (device,) = (one for one in read_snapshot(written(tmp_path, pickle.dumps(content))).devices if len(one.segments))
    found = device.segments
    assert [each.tolist() for each in (found.allocated, found.active, found.requested, found.stream)] == [
        [-1],
        [-1],
        [-1],
        [0],
    ]
