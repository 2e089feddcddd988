"""Notes of the readers are known again in other languages, whatever values they hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import traceanalyze
from tests.readers.ascend.test_comm_tables import RANKS
from tests.simulate.writers.ascend import OUTPUT, write_ascend
from tests.simulate.writers.ascend_layouts import AscendLayout
from traceanalyze.locales import noted, texts
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console import render
from traceanalyze.report.console.style import Style
from traceanalyze.report.view import View

PACKAGE = Path(traceanalyze.__file__).parent
ENGLISH, CHINESE = texts("en").notes, texts("zh").notes


def constants() -> set[str]:
    """Every piece of text that the code which notes things can say."""
    found = set()
    files = (path for folder in ("readers", "pipeline", "analyses") for path in (PACKAGE / folder).rglob("*.py"))
    for path in (PACKAGE / "plugins.py", *files):
        tree = ast.parse(path.read_text())
        found |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is str}
    return found


def test_every_pattern_is_of_a_note_that_there_is():
    said = constants()
    pieces = {key: max(re.split(r"\{\w+\}", text), key=len) for key, text in ENGLISH.items()}
    lost = {key: piece for key, piece in pieces.items() if not any(piece in text for text in said)}
    # The tables that are written together are named by a loop.
    assert {key for key, piece in lost.items() if " is missing: " not in piece} == set()
    assert all(any(piece.partition(" is missing: ")[2] in text for text in said) for piece in lost.values())


@pytest.mark.parametrize(
    ("text", "chinese"),
    [
        ("1 of 2 ranks are missing: 1", "共 2 个 Rank，缺少 1 个：Rank 1"),
        ("3 of 1,024 ranks are missing: 0, 2–5", "共 1,024 个 Rank，缺少 3 个：Rank 0, 2–5"),
        ("communication.json cannot be read and was left out", "无法读取 communication.json，已略过"),
        ("op.csv cannot be read (a (b)) and was left out", "无法读取 op.csv（a (b)），已略过"),
        ("what nobody ever noted", "what nobody ever noted"),
        ("{broken} of {x", "{broken} of {x"),
        ("left out: {path}: no", "未读取：{path}: no"),
    ],
)
def test_values_stay_and_what_is_not_known_too(text, chinese):
    assert noted(text, CHINESE) == chinese
    assert noted(text, ENGLISH) == text


def test_a_profile_without_its_small_files_speaks_chinese(tmp_path):
    home = write_ascend(tmp_path, RANKS[0], AscendLayout("8.3"), "text")
    names = ("kernel_details.csv", "memory_record.csv", "profiler_info_0.json", "profiler_metadata.json")
    for name in names:
        next(path for path in (home / name, home / OUTPUT / name) if path.exists()).unlink()
    (home / OUTPUT / "communication.json").write_text("{")
    report = traceanalyze.analyze(home)
    shown = render(report, texts("zh"), Style(width=200), View(Detail.VERBOSE))
    quality = shown[shown.index(texts("zh").messages["quality"]) :]
    lines = [line for line in quality.splitlines() if " Q01 " in line]
    assert len(lines) == 5
    assert all(re.search("[\u4e00-\u9fff]", line.partition("Q01")[2]) for line in lines)
    assert not re.search("is missing|cannot be read", shown)
