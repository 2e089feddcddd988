"""All rules there are: those of this package and those of others, found by the same means."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, wraps
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import numpy as np

from traceanalyze import plugins
from traceanalyze.errors import UsageError
from traceanalyze.locales import add_rule_texts, texts
from traceanalyze.rules.finding import ADVICE, EVIDENCE, Confidence, Evidence, Finding, NotApplicable, Scope, Severity
from traceanalyze.rules.rule import FAMILIES, Options, Rule

Find = Callable[[Any, Options], Iterator[Finding | NotApplicable]]

_TYPES = {
    "saving": int | np.integer | None,
    "bound": int | np.integer | None,
    "count": int | np.integer,
    "draws": str,
    "text": str,
    "advice": tuple,
    "evidence": tuple,
    "scope": Scope,
    "severity": Severity | None,
    "confidence": Confidence | None,
}
"""Of what `rules/finding.py` says."""


def harmless(plugin: str, rule: Rule) -> Rule:
    """The rule of a plug-in, whose errors are noted in `plugins.faults` and stop nothing; advice needs texts."""
    _say(rule)
    _known_advice(rule.advice)
    return replace(rule, find=_guarded(plugin, rule))


def _guarded(plugin: str, rule: Rule) -> Find:
    @wraps(rule.find)
    def run(facts: Any, options: Options) -> Iterator[Finding | NotApplicable]:
        try:
            with plugins.stdout_aside():
                found = [_sound(each) for each in rule(facts, options)]
        except plugins.FAILURES as error:
            plugins.failed(plugins.RULES, plugin, error, about=rule.id)
            found = [NotApplicable("plugin_failed")]
        yield from found

    return run


def _sound(each: object) -> Finding | NotApplicable:
    """What a rule said, if it can be shown and ranked; TypeError and ValueError say what is wrong with it."""
    if isinstance(each, NotApplicable):
        if each.reason not in texts().reasons:
            raise ValueError(f"there is no reason {each.reason}")
        return each
    if not isinstance(each, Finding):
        raise TypeError(f"{type(each).__name__} is neither a Finding nor NotApplicable")
    for name, known in _TYPES.items():
        value = getattr(each, name)
        if not isinstance(value, known):
            raise TypeError(f"{name} may not be {type(value).__name__}")
    if not each.text:
        raise ValueError("a Finding of a plug-in has a text")
    _known_advice(each.advice)
    spans = each.intervals
    if spans is not None and not (
        isinstance(spans, np.ndarray) and spans.dtype == np.int64 and spans.shape[1:] == (2,)
    ):
        raise TypeError("intervals are no (n, 2) array of int64")
    scope = each.scope
    parts = ((each.evidence, Evidence), (scope.ops, str), (scope.steps, str), (scope.ranks, int))
    if not all(isinstance(whole, tuple) and all(isinstance(one, part) for one in whole) for whole, part in parts):
        raise TypeError("evidence or scope is not of the types that rules/finding.py says")
    return each


def _known_advice(keys: tuple[str, ...]) -> None:
    for key in keys:
        if f"advice_{key}.cuda" not in texts().messages:
            raise ValueError(f"there is no advice {key}; a plug-in's own belongs into the text of its findings")


@cache
def every_rule() -> tuple[Rule, ...]:
    """All rules by id; a plug-in that cannot be used is left out, and `plugins.faults` says why."""
    found = dict(own_rules())
    for name, rules in plugins.load(plugins.RULES, _rules_of_plugin):
        try:
            _add(found, rules)
        except ValueError as error:
            plugins.failed(plugins.RULES, name, error)
    return tuple(found[key] for key in sorted(found))


@cache
def own_rules() -> Mapping[str, Rule]:
    """The rules of this package, by id; what they say is known from then on."""
    found: dict[str, Rule] = {}
    for folder in FAMILIES.values():
        _add(found, rules_of(import_module(f"traceanalyze.rules.{folder}")))
    _say(*found.values())
    return found


def _say(*rules: Rule) -> None:
    """Make the English of rules known."""
    add_rule_texts(
        titles={each.id: each.title for each in rules if each.title}
        | {f"{each.id}_{key}": text for each in rules for key, text in each.titles.items()},
        sentences={
            f"{each.id}_{key}" if key else each.id: text
            for each in rules
            for key, text in each.sentences.items()
            if text
        },
        advice=ADVICE | {key: text for each in rules for key, text in each.advice_texts.items()},
        evidence={key: text for key, (text, _) in EVIDENCE.items()}
        | {key: text for each in rules for key, text in each.evidence.items()},
    )


def _add(found: dict[str, Rule], rules: Iterable[Rule]) -> None:
    """Add rules by their ids: all of them, or none (ValueError) where one is called like another."""
    wanted, slugs = dict(found), {each.slug for each in found.values()}
    for each in rules:
        if each.id in wanted or each.slug in slugs:
            raise ValueError(f"two rules are called {each.id} or {each.slug}")
        wanted[each.id] = each
        slugs.add(each.slug)
    found.update(wanted)


def _rules_of_plugin(name: str, module: ModuleType) -> tuple[str, tuple[Rule, ...]]:
    # Imported here: most computers have no plug-in.

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

    A name that fits no rule is a UsageError.
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
        raise UsageError("no rule is called {name}; `traceanalyze rule --all` lists them", name)
    return found
