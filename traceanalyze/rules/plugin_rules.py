"""Rules that plug-ins bring: where their code fails, or what they say cannot be told, they only could not be judged."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from traceanalyze import plugins
from traceanalyze.locales import texts
from traceanalyze.rules.finding import Confidence, Evidence, Finding, NotApplicable, Scope, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from traceanalyze.rules.rule import Options, Rule

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
    """The rule of a plug-in, whose errors are noted among `plugins.faults` and stop nothing.

    Raises:
        ValueError: It gives advice that has no text.
    """
    _known_advice(rule.advice)
    return replace(rule, find=_guarded(plugin, rule.id, rule.find))


def _guarded(plugin: str, code: str, find: Find) -> Find:
    @wraps(find)
    def run(facts: Any, options: Options) -> Iterator[Finding | NotApplicable]:
        try:
            with plugins.told_aside():
                found = [_sound(each) for each in find(facts, options)]
        except plugins.FAILURES as error:
            plugins.failed(plugins.RULES, plugin, error, about=code)
            found = [NotApplicable("plugin_failed")]
        yield from found

    return run


def _sound(each: object) -> Finding | NotApplicable:
    """What a rule said, if it can be told and ranked.

    Raises:
        TypeError: A value is of another type than `rules/finding.py` says.
        ValueError: It has no words, or speaks of texts that there are not.
    """
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
