"""The Chinese README promises nothing that does not exist, and shows what the tool prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

import traceanalyze
from traceanalyze.cli.main import app
from traceanalyze.locales import texts
from traceanalyze.report.console import Style, render
from traceanalyze.report.console.compare import render as render_compare

ROOT = Path(__file__).parents[1]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
PAGE = Style(width=80)


def commands(readme):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    return [line.split("#")[0].strip() for language, block in blocks if not language for line in block.splitlines()]


def options():
    """Options by command; of groups, of the commands in them."""
    found = {}
    for name, command in get_command(app).commands.items():
        for each in getattr(command, "commands", {"": command}).values():
            spelled = (option for parameter in each.params for option in (*parameter.opts, *parameter.secondary_opts))
            known = {option for option in spelled if option.startswith("-")}
            found[name] = found.get(name, {"--help", "-h"}) | known
    return found


def sample(pattern):
    return re.search(rf"```text\n\$ traceanalyze {pattern} --lang zh\n(.*?)```", CHINESE, re.DOTALL)


def test_the_readmes_lead_to_each_other():
    assert "(README.zh-CN.md)" in ENGLISH.partition("\n## ")[0]
    assert "(README.md)" in CHINESE.partition("\n## ")[0]


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
        assert mentioned <= known[first if first in known else "analyze"], use


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
    for target in re.findall(r"\]\(([^)#]+)", CHINESE):
        assert (ROOT / target).is_file(), target
    for anchor in re.findall(r"README\.md#([\w-]+)", CHINESE):
        headings = re.findall(r"^#+ (.+)$", ENGLISH, re.MULTILINE)
        assert anchor in {heading.lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("word", ["compute", "communication", "data_loading", "sync", "dispatch", "device_gap"])
def test_words_are_those_of_the_reports(word):
    assert texts("zh").terms[word] in CHINESE


def test_the_sample_is_what_the_tool_prints():
    found = sample(r"(sample_traces/\S+)")
    assert found[2] == render(traceanalyze.analyze(ROOT / found[1]), texts("zh"), PAGE)


def test_the_sample_of_compare_is_what_the_tool_prints():
    found = sample(r"compare (\S+) (\S+)")
    assert found[3] == render_compare(traceanalyze.compare(ROOT / found[1], ROOT / found[2]), texts("zh"), PAGE)


def test_the_sample_of_postmortem_is_what_the_tool_prints():
    found = sample(r"postmortem (\S+)")
    assert found[2] == render(traceanalyze.postmortem(ROOT / found[1]), texts("zh"), PAGE)


def test_the_sample_of_memory_is_what_the_tool_prints():
    found = sample(r"memory (\S+)")
    assert found[2] == render(traceanalyze.memory(ROOT / found[1]), texts("zh"), PAGE)
