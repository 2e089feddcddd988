"""The memory command: what it takes, what it writes, and its one-line errors."""

from __future__ import annotations

import json
import os
import pickle
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tests.builder import TraceBuilder
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import MIB, Allocator
from tests.simulate.allocator.programs import Loop, train
from traceanalyze.cli.app import app
from traceanalyze.cli.main import with_default_command

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(dump(train(Loop(leak=40 * MIB), Allocator()))))
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, with_default_command(list(arguments)))


def test_operators_of_a_category_that_the_user_names_have_the_peak(tmp_path: Path) -> None:
    b = TraceBuilder()
    b.step(1, 0, 1000)
    b.event("my_op", "aten::empty", 10, 20)
    b.memory(15, MIB, allocated=MIB, reserved=2 * MIB)
    b.device(50, 10)
    path = str(b.write(tmp_path / "trace.json"))
    assert "aten::empty" not in run("memory", path, "--all").stdout
    assert "aten::empty" in run("memory", path, "--all", "--category", "my_op=op").stdout


def test_blocks_have_the_categories_that_the_user_names(snapshot: str, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text('{"rest of the graph": "train.py:31"}')
    assert "rest of the graph" not in run("memory", snapshot).stdout
    for given in (str(profile), profile.read_text()):
        assert "rest of the graph" in run("memory", snapshot, "--custom-profile", given).stdout
    profile.write_text(profile.read_text(), encoding="utf-8-sig")
    other = tmp_path / "other.pickle"
    allocator = Allocator()
    allocator.malloc(MIB)
    other.write_bytes(pickle.dumps(dump(allocator)))
    compared = run("memory", str(other), snapshot, "--custom-profile", str(profile), "--all")
    assert "rest of the graph" in compared.stdout
    other.unlink()
    for wrong in (str(tmp_path / "none.json"), '{"a": "("}', '{"a": 3}', '{"a": "b{4294967296}"}', "{", str(tmp_path)):
        result = run("memory", snapshot, "--custom-profile", wrong)
        assert result.exit_code == 2
        assert "regular expressions" in result.stderr


def test_the_best_levers_stand_on_the_first_screen(snapshot: str) -> None:
    lines = run("memory", snapshot).stdout.splitlines()
    at = lines.index("What would make the peak smaller")
    assert lines[at + 1].split() == ["lever", "saves", "share", "%"]
    assert "MiB" in lines[at + 2]
    assert len(lines) <= 40


def test_a_snapshot_is_recognised_without_naming_the_command(snapshot: str) -> None:
    short, full = run(snapshot), run("memory", snapshot)
    assert short.exit_code == full.exit_code == 0
    assert short.stdout == full.stdout
    assert "40.0 MiB" in full.stdout


def test_so_is_a_folder_of_snapshots(snapshot: str, tmp_path: Path) -> None:
    result = run(str(tmp_path))
    assert result.exit_code == 0
    assert "reconciled exactly" in result.stdout


def test_so_is_a_memory_timeline(tmp_path: Path) -> None:
    path = tmp_path / "timeline.raw.json"
    path.write_text("[[-1, 1, 100, 0], [2000, 2, 1024, 4], [3000, 3, -1024, 4]]")
    result = run(str(path), "-q")
    assert result.exit_code == 0
    assert result.stdout.startswith("Peak 1.10 KiB of tensors")


@pytest.mark.parametrize("name", ["m.xlsx", "m.json", "m.txt", "tables/"])
def test_every_output_is_written_whole(snapshot: str, tmp_path: Path, name: str) -> None:
    result = run("memory", snapshot, "-o", str(tmp_path / name) + ("/" if name.endswith("/") else ""))
    assert result.exit_code == 0, result.stderr
    written = tmp_path / name.rstrip("/")
    assert written.is_dir() if name.endswith("/") else written.stat().st_size > 1000
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith((".tmp", ".part"))]


def test_json_tells_the_leak_in_bytes(snapshot: str) -> None:
    document = json.loads(run("memory", snapshot, "--format", "json").stdout)
    rows = document["reports"][0]["ranks"][0]["tables"]["memory_findings"]["rows"]
    assert any(row["memory_finding"] == "leak" and row["amount_bytes"] == 40 * MIB for row in rows)


def test_two_snapshots_or_base_are_compared(snapshot: str, tmp_path: Path) -> None:
    other = tmp_path / "other.pickle"
    other.write_bytes(pickle.dumps(dump(train(Loop(), Allocator()))))
    two, named = run("memory", str(other), snapshot), run("memory", snapshot, "--base", str(other))
    assert two.exit_code == named.exit_code == 0
    assert two.stdout == named.stdout
    assert "What changed at the peak" in two.stdout


def test_quiet_is_the_verdict_alone(snapshot: str) -> None:
    assert run("memory", snapshot, "-q").stdout.count("\n") == 1


class _Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("true",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pickle.dumps({"segments": _Evil()}), "refused"),
        (pickle.dumps({"segments": [], "x": 1})[:-10], "truncated|ends early"),
        (pickle.dumps([1, 2]), "not only dicts"),
        (b"", "empty"),
        (b"hello", "no allocator snapshot|not a trace"),
        (b"\x80\x04]r\xff\xff\xff\x7f.", "memory|damaged"),
    ],
)
def test_unusable_input_is_exit_code_2_and_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    import re

    path = tmp_path / "x.pickle"
    path.write_bytes(content)
    result = run("memory", str(path))
    assert result.exit_code == 2
    assert re.search(said, result.stderr), result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


def test_wrong_options_are_said(snapshot: str, tmp_path: Path) -> None:
    assert run("memory", snapshot, "--capacity", "much").exit_code == 2
    assert run("memory", snapshot, snapshot, "--base", snapshot).exit_code == 2
    assert "input" in run("memory", snapshot, "-o", snapshot).stderr
    assert "end the name in" in run("memory", snapshot, "-o", str(tmp_path / "flame.svg")).stderr


def test_a_page(snapshot: str, tmp_path: Path) -> None:
    target = tmp_path / "memory.html"
    result = run("memory", snapshot, "-o", str(target))
    assert result.exit_code == 0
    assert "40.0&nbsp;MiB" in target.read_text(encoding="utf-8")


def test_a_base_that_is_not_there_is_told_so(run, tmp_path):
    for arguments in (
        ("--base", tmp_path / "nope", tmp_path / "other"),
        (tmp_path / "other", "--base", tmp_path / "nope"),
    ):
        assert run("memory", *arguments).err == f"error: {tmp_path}/nope: no such file or folder\n"
