"""What CONTRIBUTING and the changelog name is there, and the commands that they show exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

import traceanalyze
from tests import new_rule
from traceanalyze.cli.app import app
from traceanalyze.rules.rule import HEADINGS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
FENCED = re.compile(r"^```\n(.*?)^```", re.DOTALL | re.MULTILINE)
SECTIONS = {text.partition("\n")[0]: text for text in re.split("^## ", PAGE, flags=re.MULTILINE)[1:]}
CODE = re.findall(r"`([^`]+)`", FENCED.sub("", PAGE)) + FENCED.findall(PAGE)[0].splitlines()
COMMANDS = [part.strip() for line in CODE for part in line.split("&&") if " " in line.strip()]
SCAFFOLD = next(command for command in COMMANDS if "tests.new_rule" in command)
PACKAGES = {path.parent.name for path in (ROOT / "traceanalyze").glob("*/__init__.py")}
NEW = {"traceanalyze/locales/de.po"}
"""Made by a command of the page."""


def bullets(section):
    return [line for line in SECTIONS[section].splitlines() if line.startswith("- ")]


@pytest.mark.parametrize("section", ["A rule", "A column", "A reader", "A format", "A language"])
def test_five_bullets_say_how_a_thing_is_added(section):
    assert len(bullets(section)) == 5


def test_it_is_one_page():
    assert len(PAGE.splitlines()) <= 140


def test_every_path_is_there():
    words = {word for line in CODE for word in line.split()}
    paths = {word for word in words if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?|[\w.-]+\.(md|toml|py)", word)}
    made = set(new_rule.files_of(*re.match(r'\S+ -m \S+ (\S+) (\S+) "(.+)"', SCAFFOLD).groups()))
    assert len(paths) > 20
    assert made <= paths
    missing = {path for path in paths - made - NEW if not path.startswith(".venv/") and not (ROOT / path).exists()}
    assert missing == {"case.toml"}
    assert list((ROOT / "sample_traces").glob("*/case.toml"))


def test_every_folder_of_the_picture_is_there():
    picture = FENCED.findall(SECTIONS["The house"])[0]
    drawn = set(re.findall(r"(?<![\w*/])([a-z]+)/(?= )", picture))
    assert drawn == {*PACKAGES, "scan", "tests"}
    assert (ROOT / "traceanalyze" / "readers" / "scan").is_dir()
    assert (ROOT / "traceanalyze" / "definitions.md").is_file()


def test_every_package_has_its_folder_of_tests():
    untested = {"locales"}
    assert PACKAGES - {path.name for path in (ROOT / "tests").iterdir()} == untested


def test_every_module_of_the_tests_and_its_options_are_there():
    uses = [re.match(r"python -m tests\.(\S+)(.*)", command) for command in COMMANDS]
    uses = [use for use in uses if use]
    known = {"check", "new_rule", "rules.make", "catalogues", "mutants", "pinned", "bombs", "soak", "installs"}
    known |= {"fuzz.read_errors", "fuzz.every_byte"}
    assert {use[1] for use in uses} == known
    alone = ("check", " ".join(re.findall(r"`(--\w+)`", PAGE)))
    for module, more in [*(use.groups() for use in uses), alone]:
        path = ROOT / "tests" / module.replace(".", "/")
        path = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
        source = path.read_text(encoding="utf-8")
        assert path.name == "__main__.py" or 'if __name__ == "__main__":' in source
        assert [option for option in re.findall(r"--\w+", more) if f'"{option}"' not in source] == []


def test_commands_of_the_tool_and_their_options_are_there():
    commands = get_command(app).commands
    uses = [command.split() for command in COMMANDS if command.startswith("traceanalyze ")]
    assert len(uses) >= 2
    for _, name, *more in uses:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert {word for word in more if word.startswith("-")} <= known


def test_the_way_in_is_that_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = FENCED.findall(PAGE)[0].splitlines()[0]
    assert first.startswith("python3 -m venv")
    assert first in readme


def test_names_in_code_are_those_of_the_code():
    from traceanalyze.model.table import Column, Kind, NotMeasured, declare

    assert Column("wait_ns", Kind.DURATION, "what it holds, one line", minor=True).minor
    assert callable(declare(key="x", title="y").fill)
    assert NotMeasured("reason").reason == "reason"
    assert len(HEADINGS) == 5


def test_the_changelog_begins_with_what_is_new_and_knows_this_version():
    versions = re.findall(r"^## (\S+)", CHANGELOG, re.MULTILINE)
    assert versions[0] in {"Unreleased", traceanalyze.__version__}
    assert traceanalyze.__version__ in versions


def test_modules_and_files_that_the_changelog_names_are_there():
    text = CHANGELOG.partition("## 0.1.0")[0].replace("`traceanalyze.api`", "").replace("`traceanalyze.toml`", "")
    for name in re.findall(r"`(traceanalyze(?:\.[a-z_]+)+)`", text):
        path = ROOT / name.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), name
    for path in re.findall(r"`([\w.-]+/[\w./-]+)`", text):
        assert (ROOT / path).is_file(), path
