"""Errors and notes of the readers are said in other languages, whatever values they hold."""

from __future__ import annotations

import ast
import pickle
import re

import pytest

import traceanalyze
from tests.declared import phrases
from tests.readers.ascend.test_comm_tables import RANKS
from tests.simulate.writers.ascend import OUTPUT, write_ascend
from tests.simulate.writers.ascend_layouts import AscendLayout
from traceanalyze.errors import InputError, Phrase, UsageError, joined, placeholders
from traceanalyze.locales import texts
from traceanalyze.model.vocabulary import Detail
from traceanalyze.regression.budget import read_budget
from traceanalyze.report.console import render
from traceanalyze.report.console.style import Style
from traceanalyze.report.view import View

AGAIN = (
    "Phrase(said, first, _nearest(first, command))",
    """Phrase(said, *([shown, *(each.replace("'", '') for each in others)] if '{' in said else ()))""",
    "Phrase(what.template, _GIVE_MEMORY)",
    "Phrase(_LACKING[key], *map(itemgetter(1), told))",
)
"""What typer says, which is known again by the template, what a file is, with other advice, and what it lacks."""
PHRASES = texts("zh").phrases


def test_a_phrase_is_its_english():
    said = Phrase("no recording of {missing:,} of {all:,} ranks: {which}", 1024, 2048, "0–1023")
    assert said == "no recording of 1,024 of 2,048 ranks: 0–1023"
    assert said.said(PHRASES) == "共 2,048 个 Rank，缺少 1,024 个：Rank 0–1023"
    assert said.said({}) == said
    assert pickle.loads(pickle.dumps(said)).said(PHRASES) == said.said(PHRASES)


@pytest.mark.parametrize("english", ["what nobody ever said", "{broken} of {x", "op.csv: {}"])
def test_a_phrase_without_a_translation_stays_as_it_is(english):
    assert Phrase(english).said(PHRASES) == Phrase(english) == english
    assert Phrase("{path}: {why!r:>9}", "a{b}", 1).said({}) == "a{b}:         1"


def test_a_phrase_in_a_phrase_is_said_too():
    error = InputError("{path}: no such file or folder{hint}", "{a}", Phrase("; did you mean {path}?", "b"))
    assert str(error) == "{a}: no such file or folder; did you mean b?"
    said = Phrase("left out: {error}", error).said(PHRASES)
    assert said == "未读取：{a}：没有这个文件或目录；是否想写 b？"
    assert pickle.loads(pickle.dumps(error)).phrase.said(PHRASES) == error.phrase.said(PHRASES)
    both = joined("; ", [Phrase("damaged"), Phrase("none")])
    assert (both, both.said(PHRASES)) == ("damaged; none", "已损坏; 无")


def test_as_many_values_as_names():
    assert placeholders("{a}, {b:,} and {a}") == ["a", "b"]
    for wrong in (("one",), ("one", "two", "three")):
        with pytest.raises(ValueError, match="zip"):
            Phrase("{a} {b}", *wrong)


def test_every_phrase_of_the_package_is_a_plain_template_with_its_values():
    """Only such ones are found for the catalogues, and only they can be said in another language."""
    for _, call, template in phrases():
        if template is None:
            assert ast.unparse(call) in AGAIN, ast.unparse(call)
        elif not any(isinstance(each, ast.Starred) for each in call.args):
            assert len(call.args) - 1 in {0, len(placeholders(template))}, template


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


def test_a_mistake_in_a_budget_is_told_in_chinese():
    with pytest.raises(UsageError) as met:
        read_budget(b'[gate]\nwarmup_step = 1\n[gate.metrics."step.time"]\n', "gate.toml")
    assert met.value.phrase.said(PHRASES) == "gate.toml: [gate]：没有 warmup_step；是否想写 warmup_steps？"
    with pytest.raises(UsageError) as met:
        read_budget(b'[gate.metrics."step.time"]\nmax_increase = "5 GB"\n', "gate.toml")
    said = met.value.phrase.said(PHRASES)
    assert said.endswith("max_increase：'5 GB' 的单位不对；请写时间，如 1 ms，或 5%")
