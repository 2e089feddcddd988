"""The README promises nothing that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

import traceanalyze
from tests.report.make import analysis
from traceanalyze.cli.main import app
from traceanalyze.locales import texts
from traceanalyze.report.build import build_report
from traceanalyze.report.console import Style, render

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
COMMANDS = [line.strip() for language, block in BLOCKS if language == "" for line in block.splitlines()]


def options():
    group = get_command(app)
    parameters = [*group.params, *group.commands["analyze"].params]
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
    mentioned = {option for use in uses for option in re.findall(r"(?<=\s)--?[a-z][a-z-]*", use.split("| jq")[0])}
    assert mentioned <= options()


def test_every_option_of_the_command_is_in_the_readme():
    missing = {option for option in options() if option.startswith("--") and option not in README}
    assert missing <= {"--help", "--version", "--output", "--quiet", "--verbose", "--lang"}


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
    assert sample.group(2) == render(report, texts(), Style(width=80))


@pytest.mark.parametrize("word", ["LICENSE", "pyproject.toml"])
def test_files_that_belong_to_it_exist(word):
    assert (ROOT / word).is_file()


def test_every_table_is_named():
    tables = [key for key in texts().tables if not key.endswith("_one")]
    assert [key for key in tables if f"`{key}`" not in README] == []
