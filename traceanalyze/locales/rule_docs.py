"""Pages of the rules in other languages than that of their docstrings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from traceanalyze.locales import catalogue


def rule_doc(language: str, code: str) -> str:
    """The page of a rule, laid out like a docstring with a line a paragraph; empty where its docstring is all there is.

    A catalogue has the sections by their English headings.
    """
    known = _pages(language)
    sections = dict(known.get("documents", {}).get(code, {}))
    if not sections:
        return ""
    texts = [
        sections.pop("Summary"),
        "",
        *(f"{known['headings'][name]}\n    {text}" for name, text in sections.items()),
    ]
    return "\n".join((*texts[:-1], "", texts[-1]))


def option_sources(language: str) -> Mapping[str, str]:
    """Where defaults of options come from, by the wording of the rules; one that is not known here stays as it is."""
    sources: Mapping[str, str] = _pages(language).get("sources", {})
    return sources


@lru_cache(maxsize=1)
def _pages(language: str) -> Mapping[str, Any]:
    return catalogue(language, "rules")
