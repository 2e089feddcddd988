"""The Chinese README and pages promise nothing that does not exist, and show what the tool prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

import traceanalyze
from tests.documents import files, guides, text
from traceanalyze.cli.app import app
from traceanalyze.locales import texts
from traceanalyze.report.console import Style, render_all
from traceanalyze.report.view import View
from traceanalyze.rules.registry import every_rule

ROOT = Path(__file__).parents[1]
ENGLISH, CHINESE = text(), text("zh")
PAGE = Style(width=80)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands(readme):
    lines = [line for language, block in FENCED.findall(readme) if not language for line in block.splitlines()]
    return [line.split("#")[0].strip() for line in lines]


def same_in_english(text):
    return text.replace(" --lang zh", "")


SECTIONS = [re.split("^## ", readme, flags=re.MULTILINE) for readme in (ENGLISH, CHINESE)]
EACH_SECTION = pytest.mark.parametrize(
    ("english", "chinese"),
    [pytest.param(ours, theirs, id=ours.splitlines()[0]) for ours, theirs in zip(*SECTIONS, strict=False)],
)


def code(section):
    """Languages and lines of the blocks that are neither commands nor samples; comments are left out."""
    return [
        (language, [line.rstrip() for line in re.sub(r" *#.*", "", block).splitlines() if line.strip()])
        for language, block in FENCED.findall(section)
        if language not in ("", "text")
    ]


def samples(section):
    return [block.splitlines()[0] for language, block in FENCED.findall(section) if language == "text"]


def names(section):
    """What stands in backticks, outside blocks of code."""
    found = re.findall("`[^`]+`", FENCED.sub("", section))
    return {same_in_english(re.sub(r"\s+", " ", name)) for name in found}


def rows(section):
    return [line for line in FENCED.sub("", section).splitlines() if line.startswith("|")]


def points(section):
    return [line for line in FENCED.sub("", section).splitlines() if line.startswith("- ")]


def options():
    """Options by command; of groups, of the commands in them."""
    found = {}
    for name, command in get_command(app).commands.items():
        for each in getattr(command, "commands", {"": command}).values():
            spelled = (option for parameter in each.params for option in (*parameter.opts, *parameter.secondary_opts))
            known = {option for option in spelled if option.startswith("-")}
            found[name] = found.get(name, {"--help", "-h"}) | known
    return found


def printed(report):
    return render_all([report], texts("zh"), PAGE, View())


def sample(pattern):
    return re.search(rf"```text\n\$ traceanalyze {pattern} --lang zh\n(.*?)```", CHINESE, re.DOTALL)


def test_the_readmes_lead_to_each_other():
    assert "(README.zh-CN.md)" in ENGLISH.partition("\n## ")[0]
    assert "(README.md)" in CHINESE.partition("\n## ")[0]


def test_there_are_as_many_sections_as_in_the_english_readme():
    assert len(SECTIONS[1]) == len(SECTIONS[0])


@EACH_SECTION
def test_a_section_has_the_commands_of_the_english_one_in_their_order(english, chinese):
    wanted = [same_in_english(command) for command in commands(english)]
    found = [same_in_english(command) for command in commands(chinese)]
    assert [command for command in found if command in wanted] == wanted


@EACH_SECTION
def test_a_section_has_the_code_of_the_english_one(english, chinese):
    assert code(chinese) == code(english)


@EACH_SECTION
def test_a_section_has_the_samples_of_the_english_one_in_chinese(english, chinese):
    assert samples(chinese) == [f"{command} --lang zh" for command in samples(english)]


@EACH_SECTION
def test_a_section_names_everything_that_the_english_one_names(english, chinese):
    assert names(english) - names(chinese) == set()


@EACH_SECTION
def test_tables_of_a_section_have_the_rows_of_the_english_ones(english, chinese):
    assert len(rows(chinese)) == len(rows(english))


@EACH_SECTION
def test_a_section_has_the_points_of_the_english_one_or_more(english, chinese):
    assert len(points(chinese)) >= len(points(english))


def test_the_commands_to_start_with_are_those_of_the_english_readme():
    whole = [command for command in commands(CHINESE) if command.startswith("python3 -m venv")]
    assert len(whole) == 2
    assert whole == [command for command in commands(ENGLISH) if command.startswith("python3 -m venv")]


def test_every_option_exists():
    known = options()
    uses = [command for command in commands(CHINESE) if command.startswith("traceanalyze ")]
    assert len(uses) > 30
    for use in uses:
        first = use.split()[1]
        mentioned = set(re.findall(r"(?<=\s)--?[a-z][a-z_-]*", re.split(r"\| jq| -- ", use)[0]))
        assert mentioned <= known[first if first in known else "analyze"] | {"--install-completion"}, use


@pytest.mark.parametrize(
    ("command", "heading", "least"), [("compare", "### 写给 msprof-analyze 的用户", 15), ("record", "## 采集", 10)]
)
def test_every_option_in_the_table_of_a_command_exists(command, heading, least):
    spelled = {option.replace("_", "-") for option in options()[command]}
    section = CHINESE.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| `-")]
    mentioned = {option for line in table for option in re.findall(r"`(--?[a-z][a-z_-]*)", line)}
    assert len(mentioned) >= least
    assert {option.replace("_", "-") for option in mentioned} <= spelled


def test_links_lead_somewhere():
    assert re.findall(r"\]\((https:[^)]+)", CHINESE) == re.findall(r"\]\((https:[^)]+)", ENGLISH)
    for page in (*files("en"), *files("zh")):
        content = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https:|#)([^)#]+)", content):
            assert (page.parent / target).is_file(), target
        headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", content, re.MULTILINE)}
        assert set(re.findall(r"\]\(#([^)]+)\)", content)) <= headings


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_readme_is_read_in_one_sitting(language):
    assert len(files(language)[0].read_text(encoding="utf-8").splitlines()) <= 350


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_guides_run_on_what_is_there(language):
    pages = "".join(page.read_text(encoding="utf-8") for page in guides(language))
    for path in re.findall(r"sample_traces/[\w/]+", pages):
        assert (ROOT / path).exists(), path
    known = {each.id for each in every_rule()}
    assert set(re.findall(r"\[([A-Z]{3}\d{3})\]", pages)) <= known
    other = "".join(page.read_text(encoding="utf-8") for page in guides("en"))
    assert sorted(re.findall(r"[A-Z]{3}\d{3}", pages)) == sorted(re.findall(r"[A-Z]{3}\d{3}", other))


@pytest.mark.parametrize("word", ["compute", "communication", "data_loading", "sync", "dispatch", "device_gap"])
def test_words_are_those_of_the_reports(word):
    assert texts("zh").terms[word] in CHINESE


def test_the_sample_is_what_the_tool_prints():
    found = sample(r"(sample_traces/\S+)")
    assert found[2] == printed(traceanalyze.analyze(ROOT / found[1]))


def test_the_sample_of_compare_is_what_the_tool_prints():
    found = sample(r"compare (\S+) (\S+)")
    assert found[3] == printed(traceanalyze.compare(ROOT / found[1], ROOT / found[2]))


def test_the_sample_of_postmortem_is_what_the_tool_prints():
    found = sample(r"postmortem (\S+)")
    shown = printed(traceanalyze.postmortem(ROOT / found[1]))
    # How many rules cannot be applied changes with every new rule.
    number = re.compile(r"\d+(?= 条规则：)")
    assert number.sub("N", found[2]) == number.sub("N", shown)


def test_the_sample_of_memory_is_what_the_tool_prints():
    found = sample(r"memory (\S+)")
    assert found[2] == printed(traceanalyze.memory(ROOT / found[1]))


def test_the_sample_of_the_gate_is_what_the_tool_prints():
    found = sample(r"gate (\S+) --baseline (\S+)")
    assert found[3] == printed(traceanalyze.gate(ROOT / found[1], ROOT / found[2]))
