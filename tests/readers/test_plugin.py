"""Readers of plug-ins are asked about files that the tool itself refuses, and fail in one line with their name."""

from __future__ import annotations

import json
import pickle

import pytest

from tests.builder import TraceBuilder
from tests.plugin_site import installed
from traceanalyze import plugins
from traceanalyze.errors import InputError
from traceanalyze.pipeline import analyze

READER = """
from pathlib import Path
from traceanalyze.errors import InputError
from traceanalyze.readers.kineto import read_text
from traceanalyze.readers.plugin import Reader

ASKED = []

def recognises(path):
    ASKED.append(path.name)
    {recognises}

def read(path):
    {read}

READER = Reader(recognises, read, suffixes={suffixes})
"""
KERNEL = '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 1.5}]}'
GOOD = f"return read_text({KERNEL!r}.encode(), str(path))"


def reader(folder, *, recognises="return True", read=GOOD, name="acme", suffixes='(".acme",)'):
    entries = {plugins.READERS: {name: f"{name}_reader:READER"}}
    return installed(
        folder, entries, {f"{name}_reader": READER.format(recognises=recognises, read=read, suffixes=suffixes)}
    )


def asked():
    import acme_reader

    return acme_reader.ASKED


def strange(folder, name="log.acme"):
    path = folder / name
    path.write_text("neither JSON nor a table\n")
    return path


def kineto(folder):
    b = TraceBuilder()
    b.launch(0, 5, 10, 20, name="own")
    return b.write(folder / "rank0.pt.trace.json")


def origin(path):
    from traceanalyze.pipeline import load

    return load(path).traces[0].origin


def test_the_file_is_read_and_told_by_whom(tmp_path):
    path = strange(tmp_path)
    with reader(tmp_path):
        found = origin(path)
    assert (found.plugin, found.path, found.size_bytes) == ("acme", str(path), 25)


@pytest.mark.parametrize(
    "content",
    [
        b"SQLite format 3\0" + bytes(200),
        b'{"kernels": []}',
        b"\x0a\x03abc",
        b"PAR1\0\1\2",
        b"a,b\n1,2\n",
    ],
)
def test_databases_json_tables_and_binary_files_may_be_of_another_format(content, tmp_path):
    path = tmp_path / "nsys.rep"
    path.write_bytes(content)
    with reader(tmp_path):
        assert origin(path).plugin == "acme"
    with pytest.raises(InputError):
        origin(path)


def test_none_takes_over_what_the_tool_reads(tmp_path):
    path = kineto(tmp_path)
    with reader(tmp_path):
        assert origin(path).plugin == ""
        assert analyze(path).tables["classification"].column("name") == ("own",)
        analyze(tmp_path)
        assert asked() == []


def test_folders_are_searched_for_its_names_in_any_case(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    strange(folder, "LOG.Acme")
    with reader(tmp_path, suffixes='(".ACME",)'):
        assert origin(folder).plugin == "acme"


def test_folders_are_searched_for_its_names_only(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    strange(folder, "a.acme"), strange(folder, "b.txt")
    with reader(tmp_path):
        assert origin(folder).path.endswith("a.acme")
        assert set(asked()) == {"a.acme"}
        assert origin(folder / "b.txt").plugin == "acme"


@pytest.mark.parametrize("content", [b"", b"  \n", pickle.dumps({"segments": [], "device_traces": []})])
def test_snapshots_and_empty_files_are_none_of_its_business(content, tmp_path):
    path = tmp_path / "x.acme"
    path.write_bytes(content)
    with reader(tmp_path), pytest.raises(InputError) as told:
        origin(path)
    assert "plug-in acme" not in str(told.value)


@pytest.mark.parametrize(
    ("read", "why"),
    [
        ("raise RuntimeError('no\\n  luck')", "RuntimeError: no luck"),
        ("raise InputError(f'{path}: line 3 is cut off')", "line 3 is cut off"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("return {}", "TypeError: dict is no traceanalyze.model.trace.Trace"),
        ("return read_text(b'[]', str(path))", "the trace has no events"),
    ],
)
def test_what_it_cannot_read_is_told_in_one_line(read, why, tmp_path):
    path = strange(tmp_path)
    with reader(tmp_path, read=read), pytest.raises(InputError) as told:
        origin(path)
    assert str(told.value).startswith(f"{path}: the reader plug-in acme cannot read it: {why}")
    assert "\n" not in str(told.value)


def test_one_event_is_enough_whatever_else_there_is(tmp_path):
    """As many arrows as events are no reason to refuse a file."""
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1}
    arrow = {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 0, "tid": 7, "ts": 1}
    text = json.dumps([event, arrow]).encode()
    path = strange(tmp_path)
    with reader(tmp_path, read=f"return read_text({text!r}, str(path))"):
        assert origin(path).plugin == "acme"


@pytest.mark.parametrize("error", ["OSError", "SystemExit"])
def test_one_that_fails_in_looking_leaves_the_file_to_the_next(error, tmp_path):
    path = strange(tmp_path)
    with reader(tmp_path / "a", recognises=f"raise {error}('gone')"):
        with pytest.raises(InputError, match=rf"not a trace; .*; the reader plug-in acme failed: {error}: gone"):
            origin(path)
        with reader(tmp_path / "b", name="zeta"):
            run = analyze(path)
    assert run.tables["classification"].column("count") == (1,)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("len", "builtin_function_or_method is no"),
        ("Reader(len, len, suffixes='.acme')", "suffixes is no tuple of texts"),
        ("Reader(len, len, suffixes=['.acme'])", "suffixes is no tuple of texts"),
        ("Reader(None, len)", "recognises and read are no functions"),
    ],
)
def test_one_that_is_no_reader_is_told(given, why, tmp_path):
    path = strange(tmp_path)
    entries = {plugins.READERS: {"acme": "acme_reader:READER"}}
    module = f"from traceanalyze.readers.plugin import Reader\nREADER = {given}"
    with (
        installed(tmp_path, entries, {"acme_reader": module}),
        pytest.raises(InputError, match=f"plug-in acme failed: TypeError: {why}"),
    ):
        origin(path)
