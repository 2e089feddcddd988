"""Help and wrong usage in the language of --lang; in English help is typer's."""

from __future__ import annotations

import re

import pytest
from typer.main import get_command

from tests.declared import declared
from traceanalyze.cli.app import app
from traceanalyze.cli.guard import chosen_language
from traceanalyze.cli.main import COMMANDS
from traceanalyze.locales import catalogue
from traceanalyze.report.console.style import display_width

OF_BASELINE = [("baseline", name) for name in get_command(app).commands["baseline"].commands]
PAGES = [(), *((name,) for name in sorted(COMMANDS)), *OF_BASELINE]


@pytest.mark.parametrize("command", PAGES, ids=" ".join)
def test_every_page_is_chinese(run, command):
    english, chinese = run(*command, "--help"), run(*command, "--help", "--lang", "zh")
    assert (chinese.code, chinese.err) == (0, "")
    assert chinese.out.startswith(f"用法：{' '.join(('traceanalyze', *command))} ")
    assert max(map(display_width, chinese.out.splitlines())) <= 80
    joined = "".join(chinese.out.split())
    said = {text for text in declared("help") if "".join(text.split()) in "".join(english.out.split())}
    assert len(said) > 2
    # A paragraph of a page, or the first one of it in a list of commands.
    assert [
        text for text in said if "".join(catalogue("zh")["help"][text].partition("\n")[0].split()) not in joined
    ] == []
    assert [text for text in said if len(text) > 20 and "".join(text.split()) in joined] == []
    names = re.compile(r"^  (--?[\w-]+)", re.MULTILINE)
    assert names.findall(chinese.out) == names.findall(english.out)
    assert not re.search("Usage|Options:|Commands:|Arguments:|default:|required|Show this", chinese.out)


@pytest.mark.parametrize("command", PAGES, ids=" ".join)
def test_english_pages_are_the_same_with_and_without_the_option(run, command):
    page = run(*command, "--help")
    assert page.out.startswith("Usage: ")
    assert run(*command, "--lang=en", "--help").out == page.out or not command
    assert run(*command, "--help", "--lang", "xx").out == page.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x", "--nope"), "错误：--nope：没有这个选项"),
        (("x", "--step"), "--step：没有这个选项；是否想写 --steps？"),
        (("analyze",), "错误：请给出 PATH…；"),
        (("x", "--top", "0"), "--top 0：请给出不小于 1 的整数"),
        (("x", "--top", "q"), "--top q：请给出整数，例如 5"),
        (("x", "--format", "foo"), "--format foo：请给出其中之一：console, "),
        (("rule", "--all=3"), "--all：不带值"),
        (("record",), "错误：请给出 -- COMMAND…"),
        (("baseline", "update"), "错误：请给出 BASELINE.json"),
        (("baseline", "show", "a.json", "b.json"), "b.json：参数过多"),
        (("compaer",), "错误：compaer：没有这个文件、目录或命令；是否想用 `compare`？"),
        (("nowhere.json",), "错误：nowhere.json：没有这个文件或目录"),
        (("tensorboard", "nowhere"), "错误：nowhere：不存在"),
        (("record", "-q", "python"), "错误：record：没有要运行的脚本；"),
        (("baseline", "show", "nowhere.json"), "错误：nowhere.json：无法读取："),
        (("baseline", "shwo"), "错误：shwo：没有这个命令；是否想写 show？"),
    ],
)
def test_wrong_usage_and_errors_are_chinese(run, arguments, said):
    command = 1 if arguments[0] in COMMANDS else 0
    lang = ("--lang", "zh")
    given = (
        (*arguments[: command + 1], *lang, *arguments[command + 1 :])
        if arguments[:1] == ("baseline",)
        else ((*arguments[:command], *lang, *arguments[command:]) if command else (*arguments, *lang))
    )
    ended, english = run(*given), run(*arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (english.code, "", 1)
    assert said in ended.err
    assert not re.search("[\u4e00-\u9fff]", english.err)


@pytest.mark.parametrize("lang", [("--lang", "zh"), ("--lang=zh",)])
@pytest.mark.parametrize(
    ("before", "command"),
    [
        ((), ("compare", "A", "B")),
        ((), ("compare", "--help")),
        ((), ("rule", "DAT101")),
        ((), ("nowhere.json",)),
        ((), ("compaer",)),
        ((), ("--version",)),
        ((), ("--help",)),
        ((), ("baseline", "update")),
        (("baseline",), ("update", "--help")),
        (("baseline",), ("show", "nowhere.json")),
        (("baseline",), ("add",)),
    ],
)
def test_the_language_may_come_before_the_command(run, lang, before, command):
    named = run(*before, *command, "--lang", "zh")
    assert run(*before, *lang, *command) == named
    assert command == ("--version",) or re.search("[\u4e00-\u9fff]", named.out + named.err)


def test_marks_behind_the_help_are_chinese(run):
    page = run("analyze", "--help", "--lang", "zh").out
    assert "[默认：5；x>=1]" in page


def test_a_language_without_a_command_is_told_so(run):
    assert run("baseline", "--lang", "zh").err == "错误：请给出命令；--help 列出所有命令\n"


@pytest.mark.parametrize(
    ("arguments", "language"),
    [
        ("", "en"),
        ("a --lang zh b", "zh"),
        ("--lang=zh", "zh"),
        ("--lang en --lang zh", "zh"),
        ("--lang", ""),
        ("record -- python --lang zh", "en"),
        ("--lang zh -- --lang en", "zh"),
    ],
)
def test_the_language_is_found_before_the_arguments_are_made_out(arguments, language):
    assert chosen_language(arguments.split()) == language


def test_what_is_not_translated_yet_is_english(run, monkeypatch):
    text = "Only the verdict."
    monkeypatch.delitem(catalogue("zh")["help"], text)
    assert text in run("analyze", "--help", "--lang", "zh").out
    monkeypatch.delitem(catalogue("zh")["phrases"], "{path}: no such file or folder{hint}")
    assert run("nowhere.json", "--lang", "zh").err == "错误：nowhere.json: no such file or folder\n"
