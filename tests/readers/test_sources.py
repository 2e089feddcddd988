"""From the paths a user types to streams of text."""

from __future__ import annotations

import copy
import gzip
import io
import os
import sys
import threading
import zipfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from traceanalyze.errors import InputError
from traceanalyze.readers import sources
from traceanalyze.readers import streams as background
from traceanalyze.readers.detect import Kind
from traceanalyze.readers.inflate import Inflation, inflate
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.source import Source
from traceanalyze.readers.sources import Selection, expand
from traceanalyze.readers.streams import Background, open_stream, read_head

ROOT = Path(__file__).resolve().parents[2]
TRACE = b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "ts": 1, "dur": 1, "pid": 1}]}'


def found(*paths: object) -> list[str]:
    return [source.name for source in expand([str(path) for path in paths]).sources]


def skipped(selection: Selection) -> tuple[str, ...]:
    return tuple(one.text for one in selection.skipped)


def why(*paths: object) -> str:
    with pytest.raises(InputError) as caught:
        expand([str(path) for path in paths])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def read(source: Source | Path, block: int = 1 << 16, *, threads: bool = True) -> tuple[bytes, str | None, int]:
    """All text of a source, what was wrong with it, and the bytes behind it."""
    if isinstance(source, Path):
        source = Source(str(source), size=source.stat().st_size)
    text = bytearray()
    buffer = memoryview(bytearray(block))
    with open_stream(source, threads=threads) as stream:
        while count := stream.readinto(buffer):
            text += buffer[:count]
        return bytes(text), stream.fault, stream.trailing_bytes


@pytest.fixture
def folder(tmp_path):
    """Three traces in different wrappings, and other things."""
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "a.json").write_bytes(TRACE)
    (tmp_path / "b" / "rank1.pt.trace.json.gz").write_bytes(gzip.compress(TRACE))
    (tmp_path / "b" / "deep" / "plain.json.gz").write_bytes(TRACE)
    (tmp_path / ".hidden" / "x.json").write_bytes(TRACE)
    (tmp_path / ".x.json").write_bytes(TRACE)
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "notes.csv").write_text("a,b\n")
    (tmp_path / "b" / "loop").symlink_to(tmp_path)
    return tmp_path


# --- which files --------------------------------------------------------------------------------------------------


def test_a_folder_gives_its_traces_in_order_and_names_what_it_passed_over(folder):
    selection = expand([str(folder)])
    assert [Path(source.path).name for source in selection.sources] == [
        "a.json",
        "rank1.pt.trace.json.gz",
        "plain.json.gz",
    ]
    assert skipped(selection) == ("config.json (json)", "empty.json (empty)", "notes.csv")


def test_files_are_taken_once_whatever_leads_to_them(folder):
    (folder / "link.json").symlink_to(folder / "a.json")
    assert found(folder / "a.json", folder / "link.json", folder / "b" / ".." / "a.json") == [str(folder / "a.json")]


def test_a_glob_finds_files_and_searches_folders(folder):
    assert found(folder / "?.json") == [str(folder / "a.json")]
    assert len(found(folder / "*")) == 3
    assert len(found(folder / "**" / "*.gz")) == 2


def test_a_file_with_glob_characters_in_its_name_is_that_file(tmp_path):
    path = tmp_path / "run[1].json"
    path.write_bytes(TRACE)
    assert found(path) == [str(path)]


def test_relative_paths_work(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert found("a.json") == ["a.json"]
    assert found("*.json") == ["a.json"]
    assert found("b/deep") == ["b/deep/plain.json.gz"]


def test_an_archive_gives_its_traces_without_unpacking(tmp_path):
    path = tmp_path / "run.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rank1.json.gz", gzip.compress(TRACE))
        archive.writestr("sub/rank0.json", TRACE)
        archive.writestr("__MACOSX/rank0.json", b"\0")
        archive.writestr("readme.txt", "hello")
    selection = expand([str(path)])
    assert [source.name for source in selection.sources] == [f"{path}!rank1.json.gz", f"{path}!sub/rank0.json"]
    assert skipped(selection) == ("readme.txt",)
    assert [read(source) for source in selection.sources] == [(TRACE, None, 0)] * 2
    assert found(tmp_path) == found(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_leads_nowhere_names_the_nearest(folder):
    assert why(folder / "aa.json").endswith(f"aa.json: no such file or folder; did you mean {folder / 'a.json'}?")
    assert "nor is there a folder" in why(folder / "nope" / "a.json")
    assert "no such file" in why(folder / "a.json" / "b.json")
    assert "no file matches" in why(folder / "*.xyz")
    assert "cannot be read" in why("a\0b")
    assert "cannot be read" in why("x" * 5000)


def test_a_folder_without_traces_says_what_it_holds(tmp_path):
    assert "there is no file in this folder" in why(tmp_path)
    for name in ("a.csv", "b.txt", "c.bin", "d.bin"):
        (tmp_path / name).write_text("x")
    assert why(tmp_path).endswith("no trace in this folder: 4 files, none of them a trace: a.csv, b.txt, c.bin, …")


def test_a_folder_named_like_an_ascend_profile_says_what_one_holds(tmp_path):
    (tmp_path / "rank0_ascend_pt").mkdir()
    (tmp_path / "rank0_ascend_pt" / "op_statistic.csv").write_text("OP Type,Count\n")
    assert "an Ascend profile has ASCEND_PROFILER_OUTPUT" in why(tmp_path)


def test_empty_files_devices_and_damaged_archives_are_refused(tmp_path):
    (tmp_path / "empty.json").touch()
    assert "the file is empty" in why(tmp_path / "empty.json")
    assert "not a file" in why("/dev/null")
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04" + b"\0" * 100)
    assert "damaged or incomplete" in why(tmp_path / "bad.zip")
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(1025):
            archive.writestr(f"{number}.json", b"[]")
    assert "holds 1,025 files; of archives with more than 1,024, unpack what is to be read" in why(
        tmp_path / "many.zip"
    )
    with zipfile.ZipFile(tmp_path / "overlap.zip", "w") as archive:
        archive.writestr("0.json", b"[]" * 1000)
        again = copy.copy(archive.filelist[0])
        again.filename = "1.json"
        archive.filelist.append(again)
    assert "files in this zip archive overlap" in why(tmp_path / "overlap.zip")
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("data.pkl", b"\x80\x02")
    assert why(tmp_path / "model.pt").endswith("no trace in this archive: 1 file, not a trace: data.pkl")


def test_an_archive_damaged_anywhere_is_read_or_refused(tmp_path):
    path = tmp_path / "run.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("spür.json", TRACE)
    whole, told = path.read_bytes(), set()
    for at, change in product(range(len(whole)), (1, 128)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ change]) + whole[at + 1 :])
        try:
            told.update(read(source)[1] for source in expand([str(path)]).sources)
        except InputError as error:
            told.add(str(error))
    assert len(told) > 10
    assert not any("\n" in str(each) for each in told)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_says_so(folder):
    (folder / "a.json").chmod(0)
    assert "no permission" in why(folder / "a.json")
    assert any("no permission" in name for name in skipped(expand([str(folder)])))


def test_standard_input_and_pipes_are_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TRACE))))
    (source,) = expand(["-"]).sources
    assert (source.name, source.size) == ("standard input", None)
    assert read(source) == (TRACE, None, 0)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(TRACE,))
    writer.start()
    (source,) = expand([str(tmp_path / "pipe")]).sources
    assert read(source) == (TRACE, None, 0)
    writer.join()


# --- their text ---------------------------------------------------------------------------------------------------

TEXT = b"".join(b'{"ph": "X", "ts": %d, "dur": 1},\n' % (index * 7919) for index in range(60_000))
PACKED = gzip.compress(TEXT, 6)


@pytest.fixture
def packed(tmp_path):
    return tmp_path / "t.json"


BOTH = pytest.mark.parametrize("threads", [True, False])


@BOTH
@pytest.mark.parametrize("block", [1000, 1 << 18])
def test_the_content_decides_how_a_file_is_unpacked(packed, block, threads):
    for content, text in ((TEXT, TEXT), (PACKED, TEXT), (b"[]", b"[]"), (gzip.compress(b""), b"")):
        packed.write_bytes(content)
        assert read(packed, block, threads=threads) == (text, None, 0)


@BOTH
def test_members_padding_and_trailing_bytes(packed, threads):
    packed.write_bytes(gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]) + b"\0" * 700)
    assert read(packed, threads=threads) == (TEXT, None, 0)
    packed.write_bytes(PACKED + b"\0\0" + b"garbage!")
    assert read(packed, threads=threads) == (TEXT, None, 8)


def test_all_header_fields_of_gzip_are_passed():
    extra = b"\x1f\x8b\x08\x1e" + b"\0" * 6 + b"\x03\0abc" + b"name\0" + b"comment\0" + b"\x12\x34"
    content = extra + gzip.compress(b"hello")[10:]
    for size in (1, 3, 1000):
        pieces = iter([content[i : i + size] for i in range(0, len(content), size)])
        report = Inflation()
        assert b"".join(inflate(lambda pieces=pieces: next(pieces, b""), report)) == b"hello"
        assert (report.fault, report.text_bytes) == (None, 5)


@pytest.mark.parametrize("threads", [True, False])
def test_a_name_in_a_gzip_may_be_longer_than_a_block(tmp_path, threads):
    file = tmp_path / "trace.json.gz"
    file.write_bytes(b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"n" * 70_000 + b"\0" + gzip.compress(b"hello")[10:])
    with open_stream(Source(str(file), size=file.stat().st_size), threads=threads) as stream:
        assert stream.read() == b"hello"


@BOTH
def test_a_gzip_cut_anywhere_gives_its_text_up_to_there(packed, threads):
    for cut in range(2, len(PACKED), len(PACKED) // 60):
        packed.write_bytes(PACKED[:cut])
        text, fault, _ = read(packed, threads=threads)
        assert TEXT.startswith(text)
        assert fault == f"the gzip stream ends early, after {len(text):,} bytes of text"
        # Deflate gives about nine bytes of this text for one; a cut may lose a block of Huffman codes not yet complete.
        assert len(text) > len(TEXT) * (cut - 2000) / len(PACKED) - 70_000


@BOTH
def test_a_damaged_gzip_gives_most_of_the_text_before_the_damage(packed, threads):
    place = len(PACKED) * 3 // 4
    packed.write_bytes(PACKED[:place] + b"\xff" * 64 + PACKED[place + 64 :])
    text, fault, _ = read(packed, threads=threads)
    assert fault is not None
    assert "damaged after" in fault or "checksum does not match" in fault
    assert f"{len(text):,} bytes of text" in fault
    assert text[: len(TEXT) // 2] == TEXT[: len(TEXT) // 2]


@BOTH
def test_a_wrong_checksum_loses_nothing(packed, threads):
    packed.write_bytes(PACKED[:-8] + b"\0" * 8)
    assert read(packed, threads=threads) == (
        TEXT,
        f"the gzip checksum does not match the {len(TEXT):,} bytes of text before it",
        0,
    )


def test_a_member_of_a_damaged_archive_ends_early(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.json", TEXT)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    text, fault, _ = read(Source(str(path), member="t.json", size=len(TEXT)))
    assert len(text) <= len(TEXT)
    assert fault is not None
    assert fault.startswith("the archive member is damaged after")


def test_progress_reaches_the_size_of_the_file(packed):
    packed.write_bytes(PACKED)
    seen: list[int] = []
    with open_stream(Source(str(packed), size=len(PACKED)), seen.append) as stream:
        while stream.readinto(memoryview(bytearray(1 << 20))):
            pass
    assert seen == sorted(seen)
    assert seen[-1] == len(PACKED)


def test_a_folder_opened_as_a_file_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="cannot be opened"), open_stream(Source(str(tmp_path))):
        pass


# --- working ahead ------------------------------------------------------------------------------------------------


def inflaters() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "traceanalyze-inflate"]


def test_the_thread_never_outlives_the_stream(packed):
    packed.write_bytes(gzip.compress(TEXT * 20, 1))
    stream = open_stream(Source(str(packed), size=1))
    stream.readinto(memoryview(bytearray(10)))
    assert inflaters()
    stream.close()
    stream.close()
    assert not inflaters()


def test_working_ahead_is_bounded(monkeypatch):
    monkeypatch.setattr(background, "_BATCH_BYTES", 1)
    made = []
    blocks = Background(made.append(index) or bytes([index % 250]) for index in range(1000))
    next(blocks)
    threading.Event().wait(0.05)
    assert len(made) < 50
    assert len(list(blocks)) == 999
    blocks.close()


def test_an_error_in_the_thread_comes_after_the_blocks_before_it():
    def failing():
        yield b"text"
        raise InputError("gone")

    blocks = Background(failing())
    with pytest.raises(InputError, match="gone"):
        list(blocks)
    blocks.close()
    assert list(blocks) == []


def test_what_this_tool_left_beside_recordings_is_no_remark(tmp_path):
    (tmp_path / "trace.json").write_text('{"traceEvents": [{"ph": "X"}]}')
    (tmp_path / "run.json").write_text('{"options": {}}')
    (tmp_path / "other.json").write_text('{"options": {}}')
    assert [name for name in skipped(expand([str(tmp_path)])) if name.endswith(")")] == ["other.json (json)"]


@pytest.mark.parametrize(
    ("name", "text", "ignored"),
    [
        ("run.json", '{"schema": "traceanalyze.run/1", "rank": 0, "files": []}', "run.json"),
        ("run_rank3.json", '{"schema": "traceanalyze.run/1", "rank": 3, "files": []}', "run_rank3.json"),
        ("run.json", '{"schema": "traceanal', "run.json (no JSON: damaged or cut short)"),
        ("run.json", "garbage", "run.json (no JSON: damaged or cut short)"),
        ("run.json", '{"schema": "traceanalyze.run/1", "rank": 0}', "run.json (lists no files)"),
        ("run_rank3.json", '{"of": "another program"}', "run_rank3.json (json)"),
    ],
)
def test_the_list_of_a_recording_is_told_only_where_it_cannot_be_read(tmp_path, name, text, ignored):
    (tmp_path / "trace.json").write_text('{"traceEvents": [{"ph": "X"}]}')
    (tmp_path / name).write_text(text)
    assert skipped(expand([str(tmp_path)])) == (ignored,)


def test_a_trace_may_be_called_as_such_a_list(tmp_path):
    (tmp_path / "run_rank3.json").write_text('{"traceEvents": [{"ph": "X"}]}')
    assert [source.path for source in expand([str(tmp_path)]).sources] == [str(tmp_path / "run_rank3.json")]


def test_a_survey_may_find_nothing_and_names_what_there_is(tmp_path):
    (tmp_path / "notes.txt").write_text("lr 1e-4")
    (tmp_path / "list.json").write_text('{"a": 1}')
    found = expand([str(tmp_path)], required=False)
    assert found.sources == ()
    assert [name.partition(" (")[0] for name in skipped(found)] == ["list.json", "notes.txt"]


def test_an_empty_path_is_not_the_current_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert expand(["."]).sources
    with pytest.raises(InputError, match="a path is empty"):
        expand([""])


def test_a_survey_of_what_is_not_there_is_an_error_all_the_same(tmp_path):
    with pytest.raises(InputError, match="no such file or folder"):
        expand([str(tmp_path / "nowhere")], required=False)


def test_a_folder_that_may_not_be_looked_into_is_named(folder, monkeypatch):
    (folder / "closed").mkdir()
    (folder / "closed" / "rank9.json").write_bytes(TRACE)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed" and real(path, mode))
    assert "closed (no permission to look into this folder)" in skipped(expand([str(folder)]))
    with pytest.raises(InputError, match="closed: no permission to read it"):
        expand([str(folder / "closed")])


def _damaged(text: bytes) -> dict[str, bytes]:
    middle, events = len(text) // 2, text.index(b'"traceEvents"') + len(b'"traceEvents": [')
    inside = b'{"ph":"X","ts":1,"dur":1,"name":"' + b',{\\"ph\\":1,' * 20_000 + b'"},'
    return {
        "whole": text,
        "list": text[events - 1 : text.rindex(b"]") + 1],
        "truncated": text[: len(text) * 9 // 10],
        "broken": text[:middle] + b'"' * 3 + text[middle + 50 :],
        "followed": text + b" more",
        "escaped": text[:events] + inside + text[events:],
    }


@pytest.mark.parametrize("kind", _damaged(b'"traceEvents": []'))
def test_threads_read_what_one_reads(tmp_path, monkeypatch, kind):
    sample = gzip.decompress((ROOT / "sample_traces/gpu_two_ranks/rank0.json.gz").read_bytes())
    file = tmp_path / "t.json"
    file.write_bytes(_damaged(sample)[kind])
    (source,) = expand([str(file)]).sources
    told: list[int] = []
    one = read_trace(source)
    monkeypatch.setattr(background, "_PART_BYTES", 1 << 17)
    monkeypatch.setattr(background, "cores", lambda: 4)
    with open_stream(source) as stream:
        parts = stream.split()
        assert len(parts) >= 2, "large enough"
        assert [file.read_bytes()[part.begin :].lstrip()[:1] for part in parts] == [b"{"] * len(parts)
    many = read_trace(source, told.append)
    assert many.read == one.read
    assert many.strings.blob.tobytes() == one.strings.blob.tobytes()
    for own, other in ((many.events, one.events), (many.instants, one.instants), (many.flows, one.flows)):
        for column in ("ts", "dur", "name", "cat", "track", "id", "phase"):
            if hasattr(own, column):
                assert np.array_equal(getattr(own, column), getattr(other, column)), column
    assert many.events.fields.keys() == one.events.fields.keys()
    for name, field in many.events.fields.items():
        assert np.array_equal(field.row, one.events.fields[name].row), name
        assert np.array_equal(field.value, one.events.fields[name].value), name
    assert told == sorted(told)
    assert told[-1] <= file.stat().st_size


def test_the_beginning_of_a_file_is_read_once_until_it_changes(tmp_path, monkeypatch):
    path, read = tmp_path / "one.json", []
    path.write_text('{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1}]}')
    monkeypatch.setattr(sources, "read_head", lambda source: read.append(source) or read_head(source))
    assert [sources.kind_of(Source(str(path))) for _ in range(2)] == [Kind.TRACE] * 2
    assert len(read) == 2, "what was just written may be written again without its times telling"
    monkeypatch.setattr(sources, "_FRESH_NS", 0)
    assert [sources.kind_of(Source(str(path))) for _ in range(3)] == [Kind.TRACE] * 3
    assert len(read) == 3
    path.write_text("")
    assert sources.kind_of(Source(str(path))) is Kind.EMPTY
    path.unlink()
    with pytest.raises(InputError):
        sources.kind_of(Source(str(path)))
