"""The README and the pages beside it promise nothing that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

import traceanalyze
from tests.documents import text
from tests.report.make import analysis
from traceanalyze.cli.app import app
from traceanalyze.locales import texts
from traceanalyze.regression.budget import read_budget
from traceanalyze.regression.metrics import METRICS
from traceanalyze.report.console import Style, render_all
from traceanalyze.report.contents import build_report
from traceanalyze.report.view import View

ROOT = Path(__file__).parents[1]
README = text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
OPTION = r"(?<=\s)--?[a-z][a-z_-]*"
COMMANDS = [line.strip() for language, block in BLOCKS if language == "" for line in block.splitlines()]


def printed(report):
    return render_all([report], texts(), Style(width=80), View())


def options(*commands):
    group = get_command(app)
    parameters = [
        *(() if commands else group.params),
        *(each for name in commands or ("analyze",) for each in group.commands[name].params),
    ]
    return {
        option for parameter in parameters if parameter.param_type_name == "option" for option in parameter.opts
    } | {
        "--help",
        "-h",
    }


def test_every_option_in_the_readme_exists():
    uses = [
        command.split("#")[0] for command in COMMANDS if "traceanalyze " in command and "pip install" not in command
    ]
    assert len(uses) > 8
    mentioned = {option for use in uses for option in re.findall(OPTION, re.split(r"\| jq| -- ", use)[0])}
    group = get_command(app).commands["baseline"].commands.values()
    baseline = {option for command in group for parameter in command.params for option in parameter.opts}
    reports = ("analyze", "compare", "gate", "memory", "postmortem", "whatif")
    commands = (*reports, "convert", "open", "record", "rule", "tensorboard")
    assert mentioned <= options(*commands) | options() | baseline


def test_every_option_of_the_command_is_in_the_readme():
    missing = {option for option in options() if option.startswith("--") and option not in README}
    assert missing <= {"--help", "--version", "--output", "--quiet", "--verbose", "--lang"}


@pytest.mark.parametrize("command", ["convert", "open"])
def test_every_option_of_the_perfetto_commands_is_in_the_readme(command):
    section = README.partition("## Look at it in Perfetto")[2].partition("\n## ")[0]
    missing = {option for option in options(command) if option.startswith("--") and option not in section}
    assert missing <= {"--help", "--version", "--quiet", "--lang", "--overwrite"}


def test_every_option_of_the_gate_is_in_the_readme():
    group = get_command(app)
    commands = [group.commands["gate"], *group.commands["baseline"].commands.values()]
    known = {
        option
        for command in commands
        for parameter in command.params
        if parameter.param_type_name == "option"
        for option in parameter.opts
        if option.startswith("--")
    }
    assert {option for option in known if option not in README} <= {"--quiet", "--verbose", "--lang"}


@pytest.mark.parametrize("command", ["record", "tensorboard"])
def test_every_option_of_recording_is_in_the_readme(command):
    section = README.partition("## Record\n")[2].partition("\n## ")[0]
    missing = {option for option in options(command) if option.startswith("--") and f"`{option}" not in section}
    assert missing <= {"--help", "--version", "--lang"}


def test_every_option_of_compare_is_in_the_readme():
    known = {
        option[2:].replace("-", "_")
        for parameter in get_command(app).commands["compare"].params
        if parameter.param_type_name == "option" and not parameter.hidden
        for option in parameter.opts
        if option.startswith("--")
    }
    told = {name.replace("-", "_") for name in re.findall(r"--([a-z_-]+)", README)}
    assert known - told <= {"output", "quiet", "verbose", "lang"}


def test_the_two_commands_are_one_line_each_and_start_from_nothing():
    whole = [command for command in COMMANDS if command.startswith("python3 -m venv")]
    assert len(whole) == 2
    assert all(command.count("python3 -m venv .venv && .venv/bin/pip install") == 1 for command in whole)


def test_every_table_is_documented():
    report = build_report("run", [analysis(rank=0), analysis(rank=1)], version="0")
    assert [key for key in report.tables if f"`{key}`" not in README] == []


def test_the_schema_is_the_one_documented():
    from traceanalyze.report.json import SCHEMA

    assert f"`{SCHEMA}`" in README


def test_the_api_in_the_readme_exists():
    for name in re.findall(r"traceanalyze\.([a-z_]+)\(", README):
        assert hasattr(traceanalyze, name)


def test_the_sample_is_what_the_tool_prints():
    sample = re.search(r"```text\n\$ traceanalyze (\S+)\n(.*?)```", README, re.DOTALL)
    report = traceanalyze.analyze(ROOT / sample.group(1))
    assert sample.group(2) == printed(report)


def test_the_sample_of_compare_is_what_the_tool_prints():
    sample = re.search(r"```text\n\$ traceanalyze compare (\S+) (\S+)\n(.*?)```", README, re.DOTALL)
    report = traceanalyze.compare(ROOT / sample[1], ROOT / sample[2])
    assert sample[3] == printed(report)


def test_the_sample_of_postmortem_is_what_the_tool_prints():
    sample = re.search(r"```text\n\$ traceanalyze postmortem (\S+)\n(.*?)```", README, re.DOTALL)
    found = printed(traceanalyze.postmortem(ROOT / sample[1]))
    # How many rules cannot be applied changes with every new rule.
    number = re.compile(r"\d+(?= rules?: )")
    assert number.sub("N", sample[2]) == number.sub("N", found)


def test_every_option_of_postmortem_is_in_its_section():
    section = README.partition("## Post-mortem of a run\n")[2].partition("\n## ")[0]
    missing = {option for option in options("postmortem") if option.startswith("--") and option not in section}
    assert missing <= {"--help", "--version", "--output", "--overwrite", "--format", "--quiet", "--verbose", "--all"}


def test_every_option_of_whatif_is_in_its_section():
    section = README.partition("### What would change\n")[2].partition("\n## ")[0]
    missing = {option for option in options("whatif") if option.startswith("--") and option not in section}
    assert missing <= {"--help", "--version", "--output", "--overwrite", "--format", "--quiet", "--verbose", "--all"}


def test_the_sample_of_memory_is_what_the_tool_prints():
    sample = re.search(r"```text\n\$ traceanalyze memory (\S+)\n(.*?)```", README, re.DOTALL)
    assert sample[2] == printed(traceanalyze.memory(ROOT / sample[1]))


def test_the_sample_of_the_gate_is_what_the_tool_prints():
    sample = re.search(r"```text\n\$ traceanalyze gate (\S+) --baseline (\S+)\n(.*?)```", README, re.DOTALL)
    assert sample[3] == printed(traceanalyze.gate(ROOT / sample[1], ROOT / sample[2]))


def test_the_budget_in_the_readme_is_understood_and_every_metric_is_named():
    (budget,) = [block for language, block in BLOCKS if language == "toml" and block.startswith("[gate]")]
    assert read_budget(budget.encode(), "traceanalyze.toml").budget.rules["kernel.count"].level == "error"
    assert [name for name in METRICS if f"`{name}`" not in README] == []


@pytest.mark.parametrize("word", ["LICENSE", "pyproject.toml"])
def test_files_that_belong_to_it_exist(word):
    assert (ROOT / word).is_file()


def test_every_table_is_named():
    tables = [key for key in texts().tables if not key.endswith("_one")]
    assert [key for key in tables if f"`{key}`" not in README] == []
