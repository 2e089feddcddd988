"""All rules there are: those of this package and those of others, found by the same means."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from traceanalyze import plugins
from traceanalyze.errors import UsageError
from traceanalyze.rules.rule import FAMILIES, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import ModuleType


@cache
def every_rule() -> tuple[Rule, ...]:
    """All rules by id; a plug-in that cannot be used is left out, and `plugins.faults` tells why."""
    found = dict(own_rules())
    for name, rules in plugins.load(plugins.RULES, _rules_of_plugin):
        try:
            _add(found, rules)
        except ValueError as error:
            plugins.failed(plugins.RULES, name, error)
    return tuple(found[key] for key in sorted(found))


@cache
def own_rules() -> Mapping[str, Rule]:
    """The rules of this package, by id: those that its texts speak of.

    Raises:
        ValueError: Two are called alike.
    """
    found: dict[str, Rule] = {}
    for folder in FAMILIES.values():
        _add(found, rules_of(import_module(f"traceanalyze.rules.{folder}")))
    return found


def _add(found: dict[str, Rule], rules: Iterable[Rule]) -> None:
    """Add rules by their ids: all of them, or none where one is called like another.

    Raises:
        ValueError: An id or slug is taken.
    """
    wanted = dict(found)
    for each in rules:
        if each.id in wanted or any(each.slug == other.slug for other in wanted.values()):
            raise ValueError(f"two rules are called {each.id} or {each.slug}")
        wanted[each.id] = each
    found.update(wanted)


def _rules_of_plugin(name: str, module: ModuleType) -> tuple[str, tuple[Rule, ...]]:
    # Imported here: most computers have no plug-in.
    from traceanalyze.rules.plugin_rules import harmless

    rules = tuple(harmless(name, each) for each in rules_of(module))
    if not rules:
        raise ValueError(f"{module.__name__} has no rule")
    return name, rules


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
