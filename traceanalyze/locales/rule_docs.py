"""Documents of the rules in other languages than that of their docstrings."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from traceanalyze.locales import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Mapping


def rule_docs(language: str, family: str) -> Mapping[str, str]:
    """Id → document of the rules in a folder of `traceanalyze.rules`; none where they are told by their docstrings."""
    return _of(language, family, "DOCS")


def option_sources(language: str) -> Mapping[str, str]:
    """Where defaults of options come from, by the wording of the rules; one that is not known here stays as it is."""
    return _of(language, "sources", "SOURCES")


def _of(language: str, module: str, name: str) -> Mapping[str, str]:
    if language == LANGUAGES[0]:
        return {}
    try:
        found: Mapping[str, str] = getattr(import_module(f"{__package__}.{language}.rule_docs.{module}"), name)
    except ModuleNotFoundError:  # a family of others
        return {}
    return found
