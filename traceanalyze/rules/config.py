"""Which rules run, and with which options; from tables of a configuration file, as a pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from traceanalyze.errors import UsageError

if TYPE_CHECKING:
    from traceanalyze.rules.rule import Options, Rule, Value


class RuleConfig(NamedTuple):
    """The user's choices; names as in `registry.chosen`."""

    select: tuple[str, ...] = ()
    """Only these; all where empty."""
    ignore: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Value]] = {}
    """Id or slug of a rule → name of an option → value."""


class Plan(NamedTuple):
    """Rules to run, each with its options."""

    rules: tuple[tuple[Rule, Options], ...]


def rule_config(table: Mapping[str, object], where: str) -> RuleConfig:
    """Read the table `rules` of a file: `select`, `ignore`, a table of options for a rule; else a UsageError."""
    options: dict[str, Mapping[str, Value]] = {}
    for name, value in table.items():
        if name in {"select", "ignore"}:
            continue
        if not isinstance(value, dict):
            raise UsageError(
                "{where}: rules.{name} is neither select, ignore, nor a table of a rule's options", where, name
            )
        options[name] = value
    return RuleConfig(_names(table, "select", where), _names(table, "ignore", where), options)


def _names(table: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError("{where}: rules.{key} is not a list of names", where, key)
    return tuple(cast("list[str]", value))


def options_of(each: Rule, config: RuleConfig) -> Options:
    """Options of a rule: its defaults, and what the user changed; a UsageError where name or type is wrong."""
    values = each.defaults()
    for key in (each.slug, each.id):
        for name, value in config.options.get(key, {}).items():
            if name not in values:
                known = ", ".join(values) or "none"
                raise UsageError("rules.{key}: no option {name}; {rule} has: {known}", key, name, each.id, known)
            if not _like(value, values[name]):
                raise UsageError(
                    "rules.{key}.{name}: {value!r} is not of the type of {default!r}", key, name, value, values[name]
                )
            values[name] = value
    return values


def _like(value: object, default: Value) -> bool:
    """Whether a value can stand for a default; whole numbers may stand for any number."""
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    return isinstance(value, int | float) if isinstance(default, int | float) else isinstance(value, str)


def known_options(rules: Sequence[Rule], config: RuleConfig) -> None:
    """Refuse options of rules that there are not, by a UsageError."""
    names = {name for each in rules for name in (each.id, each.slug)}
    for name in config.options:
        if name not in names:
            raise UsageError("rules.{name}: no rule is called so; `traceanalyze rule --all` lists them", name)
