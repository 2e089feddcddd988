"""Rules that plug-ins bring: where their code fails, or what they say cannot be told, they only could not be judged."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from traceanalyze import plugins
from traceanalyze.locales import texts
from traceanalyze.rules.finding import Evidence, Finding, NotApplicable, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from traceanalyze.rules.rule import Options, Rule

    Find = Callable[[Any, Options], Iterator[Finding | NotApplicable]]


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
            found = [_sound(each) for each in find(facts, options)]
        except Exception as error:  # whatever the code of others raises must not stop this tool
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
    if not each.text:
        raise ValueError("a Finding of a plug-in has a text")
    _known_advice(each.advice)
    for name, value in (("saving", each.saving), ("bound", each.bound), ("count", each.count)):
        if not isinstance(value, int | np.integer | None):
            raise TypeError(f"{name} is no whole number but {type(value).__name__}")
    spans = each.intervals
    if spans is not None and not (
        isinstance(spans, np.ndarray) and spans.dtype == np.int64 and spans.shape[1:] == (2,)
    ):
        raise TypeError("intervals are no (n, 2) array of int64")
    if not isinstance(each.scope, Scope) or not all(isinstance(one, Evidence) for one in each.evidence):
        raise TypeError("scope is no Scope, or evidence holds something else than Evidence")
    return each


def _known_advice(keys: tuple[str, ...]) -> None:
    for key in keys:
        if f"advice_{key}.cuda" not in texts().messages:
            raise ValueError(f"there is no advice {key}; a plug-in's own belongs into the text of its findings")
