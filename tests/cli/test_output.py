from __future__ import annotations

import csv
import json
import os
import stat
import threading
import zipfile

import pytest

from traceanalyze import whole_file as files
from traceanalyze.errors import UsageError
from traceanalyze.report.output import write_whole


def test_the_suffix_chooses_the_format(run, sample):
    folder = sample.parent
    result = run(sample, "-o", folder / "report.json")
    assert (result.code, result.out) == (0, "")
    assert result.err == f"Wrote {folder / 'report.json'}\n"
    assert json.loads((folder / "report.json").read_text())["schema"] == "traceanalyze.report/2"
    run(sample, "-o", folder / "report.txt")
    assert (folder / "report.txt").read_text().startswith("Step 100 µs")


def test_format_wins_over_the_suffix(run, sample):
    run(sample, "-o", sample.parent / "report.txt", "--format", "json")
    assert json.loads((sample.parent / "report.txt").read_text())


def test_a_workbook(run, sample):
    target = sample.parent / "report.xlsx"
    for arguments in ([], ["--format", "xlsx"]):
        result = run(sample, "-o", target, *arguments)
        assert (result.code, result.out, result.err) == (0, "", f"Wrote {target}\n")
        assert "xl/workbook.xml" in zipfile.ZipFile(target).namelist()


@pytest.mark.parametrize("made", [True, False])
def test_a_folder_gets_every_table(run, sample, made):
    folder = sample.parent / "tables"
    if made:
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
    result = run(sample, "-o", folder if made else f"{folder}/")
    assert (result.code, result.out) == (0, "")
    found = {path.name for path in folder.iterdir()}
    assert {"report.json", "split.csv", "steps.csv", "gaps.csv", "files.csv"} <= found
    assert result.err == f"Wrote {len(found) - made} files to {folder}\n"
    with (folder / "steps.csv").open(encoding="utf-8-sig") as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["5", "6", "7"]
    assert not made or (folder / "notes.txt").read_text() == "mine"
    assert run(sample, "-o", folder).code == 0


def test_parquet_tables(run, sample):
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = sample.parent / "tables"
    assert run(sample, "-o", folder, "--format", "parquet").code == 0
    assert parquet.read_table(folder / "steps.parquet").num_rows == 3
    assert (folder / "report.json").is_file()


@pytest.mark.parametrize("name", ["t.csv", "x.json", "book.xlsx"])
def test_a_slash_makes_a_folder_of_any_name(run, sample, name):
    folder = sample.parent / name
    result = run(sample, "-o", f"{folder}/", "--lang", "zh")
    assert result.code == 0
    assert result.err == f"已在 {folder} 中写入 {len(list(folder.iterdir()))} 个文件\n"
    assert (folder / "steps.csv").is_file()


def test_what_is_wrong_with_a_name_is_chinese_throughout(run, sample):
    said = run(sample, "-o", sample.parent / "report.pdf", "--lang", "zh").err
    assert "以 .xlsx、.html、.md、.json、.svg、.txt 或 .prom 结尾" in said
    target = sample.parent / "report.md"
    assert run(sample, "-o", target, "--lang", "zh").err == f"已写入 {target}\n"


@pytest.mark.parametrize("name", ["report.json", "steps.csv"])
def test_files_of_others_in_the_folder_are_not_replaced(run, sample, name):
    folder = sample.parent / "tables"
    folder.mkdir()
    (folder / name).write_text("mine")
    result = run(sample, "-o", folder)
    assert result.code == 2
    assert f"{name} is there and is not from an older report" in result.err
    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_text() == "mine"


def test_parquet_needs_pyarrow(run, sample, monkeypatch):
    monkeypatch.setattr("traceanalyze.report.output.find_spec", lambda _: None)
    result = run(sample, "-o", sample.parent / "tables", "--format", "parquet")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "needs pyarrow" in result.err


def test_a_dash_is_stdout(run, sample):
    assert run(sample, "-o", "-").out.startswith("Step 100 µs")


def test_an_input_found_in_a_folder_is_not_replaced(run, sample):
    before = sample.read_text()
    result = run(sample.parent, "-o", sample, "--overwrite")
    assert result.code == 2
    assert "this is an input" in result.err
    assert sample.read_text() == before


def test_a_report_replaces_an_older_one_and_is_readable_by_all(run, sample):
    target = sample.parent / "report.txt"
    target.write_text("old, by traceanalyze")
    run(sample, "-o", target)
    assert target.read_text() != "old, by traceanalyze"
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask


def test_any_name_that_a_file_may_have(run, sample):
    for name in ("n" * 250 + ".json", "名" * 83 + ".json"):
        assert run(sample, "-o", sample.with_name(name)).code == 0
        assert sample.with_name(name).read_text().startswith("{")


def test_links_in_a_circle_and_names_too_long_are_told_in_one_line(run, sample):
    loop = sample.with_name("loop.json")
    loop.symlink_to(loop)
    said = run(sample, "-o", loop)
    assert (said.code, said.err) == (2, f"error: {loop}: cannot be written: Too many levels of symbolic links\n")
    assert loop.is_symlink()
    for command in (["gate", "n" * 300], [sample, "-o", "n" * 300 + ".json"]):
        said = run(*command)
        assert said.code == 2
        assert said.err.endswith(": File name too long\n")
        assert said.err.startswith("error: nnn")


@pytest.mark.parametrize("step", ["replace", "chmod"])
def test_a_failing_write_leaves_nothing(tmp_path, monkeypatch, step):
    def full(*_args):
        raise OSError(28, "No space left on device")

    target = tmp_path / "report.txt"
    target.write_text("old")
    monkeypatch.setattr(files.os, step, full)
    with pytest.raises(UsageError, match="No space left on device"):
        write_whole(target, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]
    assert target.read_text() == "old"


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "report.txt", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_flame_graph(run, sample):
    target = sample.parent / "flame.svg"
    for arguments in ([], ["--format", "svg"]):
        result = run(sample, "-o", target, *arguments)
        assert (result.code, result.out, result.err) == (0, "", f"Wrote {target}\n")
        assert "<title>aten::mm: " in target.read_text(encoding="utf-8")
    assert run(sample, "--format", "svg").out == target.read_text(encoding="utf-8")


def test_a_page(run, sample):
    target = sample.parent / "report.html"
    for arguments in ([], ["--format", "html"]):
        result = run(sample, "-o", target, *arguments)
        assert (result.code, result.out, result.err) == (0, "", f"Wrote {target}\n")
        assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert run(sample, "--format", "html").out == target.read_text(encoding="utf-8")


def test_tables_that_the_new_report_does_not_have_are_removed(run, sample):
    folder = sample.parent / "tables"
    assert run(sample, "-o", f"{folder}/", "--format", "parquet").code == 0
    (folder / "mine.parquet").write_text("mine")
    (folder / "mine.csv").write_text("mine")
    assert run(sample, "-o", folder).code == 0
    left = {path.name for path in folder.iterdir()}
    assert [name for name in left if name.endswith(".parquet")] == ["mine.parquet"]
    listed = json.loads((folder / "tables.json").read_text())["files"]
    assert set(listed) == left - {"mine.parquet", "mine.csv", "tables.json"}


@pytest.mark.parametrize(
    "listing",
    [
        '{"schema": "traceanalyze.tables/1", "files": ["../outside.csv", "..", "notes.txt", "sub", 3, "", "link.csv"]}',
        '{"schema": "other", "files": ["mine.csv"]}',
        '["mine.csv"]',
        "{",
        '{"schema": "traceanalyze.tables/1", "files": "mine.csv"}',
    ],
)
def test_a_listing_cannot_make_it_remove_other_files(run, sample, listing):
    folder = sample.parent / "tables"
    assert run(sample, "-o", f"{folder}/").code == 0
    (sample.parent / "outside.csv").write_text("mine")
    (folder / "sub").mkdir()
    (folder / "link.csv").symlink_to(sample)
    for name in ("notes.txt", "mine.csv"):
        (folder / name).write_text("mine")
    (folder / "tables.json").write_text(listing)
    assert run(sample, "-o", folder).code == 0
    assert (sample.parent / "outside.csv").read_text() == "mine"
    assert all((folder / name).exists() for name in ("sub", "link.csv", "notes.txt", "mine.csv"))


def test_a_listing_of_somebody_else_is_not_replaced(run, sample):
    folder = sample.parent / "tables"
    folder.mkdir()
    (folder / "tables.json").write_text("mine")
    result = run(sample, "-o", folder)
    assert result.code == 2
    assert "tables.json is there and is not from an older report" in result.err
    assert (folder / "tables.json").read_text() == "mine"


@pytest.mark.parametrize("arguments", [("-o", "report.md"), ("-o", "report.txt", "--format", "markdown")])
def test_markdown_is_chosen_by_name_or_format(run, sample, arguments):
    name = sample.parent / arguments[1]
    assert run(sample, "-o", name, *arguments[2:]).err == f"Wrote {name}\n"
    assert name.read_text().startswith("# ")
    assert "| ---: |" in name.read_text()


def test_what_is_no_report_is_replaced_only_on_demand(run, sample):
    mine = sample.parent / "notes.md"
    mine.write_text("my notes\n")
    refused = run(sample, "-o", sample.parent / "notes.md")
    assert refused.code == 2
    assert refused.err.endswith("notes.md: is there and is no report of traceanalyze; --overwrite replaces it\n")
    assert mine.read_text() == "my notes\n"
    assert run(sample, "-o", sample.parent / "notes.md", "--overwrite").code == 0
    assert mine.read_text().startswith("# trace")


@pytest.mark.parametrize("name", ["r.txt", "r.md", "r.json", "r.html", "r.xlsx", "r.svg"])
def test_every_report_is_known_again(run, sample, name):
    assert run(sample, "-o", sample.parent / name).code == 0
    assert run(sample, "-o", sample.parent / name).code == 0


def test_an_empty_file_is_a_place_for_a_report(run, sample):
    (sample.parent / "r.json").touch()
    assert run(sample, "-o", sample.parent / "r.json").code == 0


def test_a_file_keeps_its_permissions_and_a_link_stays_one(run, sample):
    run(sample, "-o", sample.parent / "real.json")
    (sample.parent / "real.json").chmod(0o600)
    (sample.parent / "link.json").symlink_to("real.json")
    assert run(sample, "-o", sample.parent / "link.json", "-q").code == 0
    assert (sample.parent / "link.json").is_symlink()
    assert (sample.parent / "real.json").stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_and_stays_one(run, sample):
    os.mkfifo(sample.parent / "pipe.json")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((sample.parent / "pipe.json").read_bytes()))
    reader.start()
    assert run(sample, "-o", sample.parent / "pipe.json").code == 0
    reader.join(10)
    assert stat.S_ISFIFO((sample.parent / "pipe.json").stat().st_mode)
    assert json.loads(read[0])["schema"].startswith("traceanalyze.report/")
