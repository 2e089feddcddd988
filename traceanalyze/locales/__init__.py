"""Texts of the tool by language; a language is one package, and everything in it is keyed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from traceanalyze.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGES = ("en", "zh")
"""The first has every text; tests hold the others to its keys."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Everything a renderer says in one language; placeholders are in braces."""

    tables: Mapping[str, str]
    """Table key → title."""
    columns: Mapping[str, str]
    """Column key → heading, without its unit."""
    terms: Mapping[str, str]
    """Words of the tool: parts, causes, classes, kinds."""
    meanings: Mapping[str, str]
    """`table.term` → what the term means, one short line."""
    column_meanings: Mapping[str, str]
    """Column key → what it holds; `table.column` where a table means something of its own by it."""
    messages: Mapping[str, str]
    """Verdicts, notes and phrases of the layout."""
    checks: Mapping[str, str]
    """Data-quality checks."""
    reasons: Mapping[str, str]
    """Why a number was not measured."""
    hints: Mapping[str, str]
    """Reason → what to record so that it is measured."""
    levels: Mapping[str, str]
    language: str = LANGUAGES[0]
    """Its code, as in the `lang` of a page."""

    def meaning_of(self, table: str, column: str) -> str:
        """What a column of a table holds; nothing where that is not written down."""
        return self.column_meanings.get(f"{table}.{column}") or self.column_meanings.get(column, "")


@lru_cache(maxsize=len(LANGUAGES))
def texts(language: str = LANGUAGES[0]) -> Texts:
    """The texts of a language; what is not translated yet is English, so that no report breaks for want of a word."""
    if language not in LANGUAGES:
        raise UsageError(f"no texts in '{language}'; this version speaks: {', '.join(LANGUAGES)}")
    fallback, module = (import_module(f"traceanalyze.locales.{name}") for name in (LANGUAGES[0], language))
    names = (each.name for each in fields(Texts) if each.name != "language")
    return Texts(
        **{name: getattr(fallback, name.upper()) | getattr(module, name.upper()) for name in names}, language=language
    )
