"""All rules there are: those of this package and those of others, found by the same means."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from traceanalyze.errors import UsageError
from traceanalyze.rules.rule import FAMILIES, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType


GROUP = "traceanalyze.rules"
"""Entry points: each names a module with rules, or a package whose modules have them."""


@cache
def every_rule() -> tuple[Rule, ...]:
    """All rules by id.

    Raises:
        UsageError: Two rules have the same id or slug.
    """
    found: dict[str, Rule] = {}
    names: set[str] = set()
    for each in _rules():
        if each.id in found or each.slug in names:
            raise UsageError(f"two rules are called {each.id} or {each.slug}")
        found[each.id] = each
        names.add(each.slug)
    return tuple(found[key] for key in sorted(found))


def _rules() -> Iterator[Rule]:
    for folder in FAMILIES.values():
        yield from rules_of(import_module(f"traceanalyze.rules.{folder}"))
    for entry in entry_points(group=GROUP):
        yield from rules_of(entry.load())


def rules_of(module: ModuleType) -> Iterator[Rule]:
    """Rules in a module, or in the modules of a package."""
    if hasattr(module, "__path__"):
        for _, name, _ in iter_modules(module.__path__):
            yield from rules_of(import_module(f"{module.__name__}.{name}"))
    yield from (value for value in vars(module).values() if isinstance(value, Rule))


def chosen(rules: Iterable[Rule], select: Iterable[str], ignore: Iterable[str]) -> tuple[Rule, ...]:
    """Rules that are selected (all where nothing is) and not ignored; by id, slug, or how an id begins (`DAT`, `DAT1`).

    Raises:
        UsageError: A name fits no rule.
    """
    rules = tuple(rules)
    wanted = [_matching(rules, name) for name in select] or [{each.id for each in rules}]
    refused = [_matching(rules, name) for name in ignore]
    ids = set().union(*wanted).difference(*refused)
    return tuple(each for each in rules if each.id in ids)


def _matching(rules: tuple[Rule, ...], name: str) -> set[str]:
    found = {each.id for each in rules if each.slug == name or (name and each.id.startswith(name.upper()))}
    if name.upper() == "ALL":
        return {each.id for each in rules}
    if not found:
        raise UsageError(f"no rule is called {name}; `traceanalyze rule --all` lists them")
    return found
