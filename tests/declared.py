"""Texts that stand in code: those of the tables that modules of the package declare."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, TypeVar

from typer.main import get_command

import traceanalyze
from traceanalyze.cli.app import app
from traceanalyze.cli.help import text_of
from traceanalyze.locales import heading_of
from traceanalyze.model.table import Column, Sentence, Table
from traceanalyze.rules.registry import own_rules

T = TypeVar("T")
PACKAGE = Path(traceanalyze.__file__).parent
OF_COLUMNS: dict[str, Callable[[Column], str]] = {"columns": heading_of, "column_meanings": lambda each: each.meaning}
"""Kinds whose entries go by the key of a column, or by that of its table and its own."""


@cache
def declared_tables() -> tuple[Table, ...]:
    """Every table that a module declares, by itself or among others."""
    return tuple({table.key: table for table in _of_modules(Table)}.values())


def said(key: str) -> Sentence:
    """The sentence of a key, as the module that says it declares it."""
    return next(each for each in _of_modules(Sentence) if each == key)


@cache
def _of_modules(kind: type[T]) -> tuple[T, ...]:
    """What modules hold of a kind, by itself or among others."""
    own_rules()  # What they say is known once they are loaded.
    found: list[T] = []
    for module in walk_packages(traceanalyze.__path__, "traceanalyze."):
        if not module.name.endswith(("__main__", "bootstrap", "libtrace_scan")):
            for value in vars(import_module(module.name)).values():
                several = value if isinstance(value, tuple) else value.values() if isinstance(value, dict) else (value,)
                found += [each for each in several if isinstance(each, kind)]
    return tuple(found)


def declared(kind: str) -> dict[str, str]:
    """English of one kind, as `traceanalyze.locales.spoken` has it of the catalogues."""
    tables = declared_tables()
    match kind:
        case "tables":
            single = {f"{table.key}_one": table.title_one for table in tables if table.title_one}
            return {table.key: table.title for table in tables if table.title} | single
        case "columns" | "column_meanings":
            columns = [(table.key, each.key, OF_COLUMNS[kind](each)) for table in tables for each in table.columns]
            return {key: text for table, own, text in columns if text for key in (f"{table}.{own}", own)}
        case "messages" | "checks" | "sentences":
            return {each: each.english for each in _of_modules(Sentence)}
        case "help":
            return {text: text for text in _help(get_command(app))}
        case "phrases":
            return {
                template: template
                for _, _, template in phrases()
                if template and re.search("[a-z;:,(]", without_values(template))
            }
    return {}


def _help(command: Any) -> Iterator[str]:
    """English of a command's page, and of the pages of its commands."""
    yield text_of(command)
    yield from (each.help for each in command.params if getattr(each, "help", None))
    for each in getattr(command, "commands", {}).values():
        yield from _help(each)


@cache
def calls() -> tuple[tuple[Path, ast.Call], ...]:
    """Every call that stands in the package, with its file."""
    return tuple(
        (path, node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    )


def phrases() -> Iterator[tuple[Path, ast.Call, str | None]]:
    """File and call of all that makes a `Phrase` or an error of one, and its template; None for what is no text."""
    makers = {"Phrase", "Lost", "Unmatched", "Apart", "InputError", "UsageError"}
    for path, node in calls():
        if isinstance(node.func, ast.Name) and node.func.id in makers:
            template = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
            if isinstance(template, str) or path != PACKAGE / "errors.py":
                yield path, node, template if isinstance(template, str) else None


def without_values(text: str) -> str:
    return re.sub(r"\{[\w:,!.%]*\}", "", text)
