"""The page of definitions has every section that code and tests refer to, and is printed whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from traceanalyze.cli.app import app
from traceanalyze.cli.rule import DEFINITIONS

ROOT = Path(__file__).parents[1]
PAGE = DEFINITIONS.read_text(encoding="utf-8")
SECTIONS = re.findall(r"^###? (\d+(?:\.\d+)?)\.? \S", PAGE, re.MULTILINE)


def referred(text):
    """Sections that a text refers to: `§7`, `§2.5`, `§§3, 4`, `§§5 and 7`, `§§5–7`."""
    for marks, first, others in re.findall(r"(§+)\s*(\d+(?:\.\d+)?)((?:(?:,| and|–) ?\d+(?:\.\d+)?)*)", text):
        yield first
        yield from re.findall(r"\d+(?:\.\d+)?", others) if len(marks) > 1 else ()


def test_sections_are_numbered_in_order():
    assert [number for number in SECTIONS if "." not in number] == [str(number) for number in range(1, 19)]
    assert len(set(SECTIONS)) == len(SECTIONS)


def test_references_are_read_in_all_their_forms():
    assert list(referred("§7, §2.5 and §14, Q04")) == ["7", "2.5", "14"]
    assert list(referred("§§3, 4; §§8, 9 and 10; §§5–7")) == ["3", "4", "8", "9", "10", "5", "7"]


@pytest.mark.parametrize("folder", ["traceanalyze", "tests"])
def test_every_reference_is_to_a_section(folder):
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob("*.py"))}
    found = {(path.name, number) for path, text in texts.items() for number in referred(text)}
    assert len(found) > 30
    assert {(name, number) for name, number in found if number not in SECTIONS} == set()


def test_the_page_refers_to_its_own_sections_only():
    assert set(referred(PAGE)) <= set(SECTIONS)
    assert not re.search(r"\b[\w-]+\.md\b", PAGE)


@pytest.mark.parametrize(("language", "note"), [("en", ""), ("zh", "指标定义为英文。\n")])
def test_the_page_is_printed(language, note):
    result = CliRunner().invoke(app, ["rule", "--definitions", "--lang", language])
    assert (result.exit_code, result.stdout, result.stderr) == (0, PAGE, note)


@pytest.mark.parametrize("more", ["DAT101", "--all"])
def test_the_page_is_printed_alone(more):
    assert CliRunner().invoke(app, ["rule", "--definitions", more]).exit_code == 2
