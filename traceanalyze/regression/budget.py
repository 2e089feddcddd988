"""The budget file, `traceanalyze.toml`: what is understood, and what is refused with the nearest valid name."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from traceanalyze.errors import Phrase, UsageError, listed
from traceanalyze.regression.environment import DEFAULT_MATCH, KEYS
from traceanalyze.regression.metrics import METRICS, Amount, Kind, Level, Metric, amount, known_names, metric_of, share
from traceanalyze.regression.samples import Environment


@dataclass(frozen=True)
class Rule:
    """How one metric is evaluated."""

    metric: Metric
    level: Level
    budget: Amount
    """Largest change for the worse."""
    min_effect: Amount | None = None
    """Smallest change that counts; None: as small as the noise leaves, of a part of the step as the step's noise."""
    highest: float | None = None
    """Absolute limit, in the metric's unit."""
    lowest: float | None = None
    named: bool = False
    """The user's budget names it."""


@dataclass(frozen=True)
class Settings:
    """Everything that a budget file may say beside the metrics."""

    confidence: float = 0.95
    noise_floor: float = 0.01
    noise_floor_points: float = 1.0
    prior_weight: float = 4
    warmup_steps: int = 1
    on_inconclusive: str = "warn"
    on_improvement: str = "note"
    on_missing: str = "fail"
    match: tuple[str, ...] = DEFAULT_MATCH
    min_workload_similarity: float = 0.0
    tokens_per_step: float | None = None
    samples_per_step: float | None = None


@dataclass(frozen=True)
class Budget:
    """A budget for one environment."""

    settings: Settings = field(default_factory=Settings)
    rules: Mapping[str, Rule] = field(
        default_factory=lambda: {name: default(metric) for name, metric in METRICS.items()}
    )
    source: str = ""
    """File it is from; empty for the defaults."""

    @property
    def selectors(self) -> tuple[str, ...]:
        """Metrics that are selected by patterns of names."""
        return tuple(name for name in self.rules if name not in METRICS)


def default(metric: Metric) -> Rule:
    """How a metric is evaluated when nobody says anything."""
    return Rule(metric, metric.level, metric.budget)


_CHOICES = {
    "on_inconclusive": ("pass", "warn", "fail"),
    "on_improvement": ("note", "fail"),
    "on_missing": ("pass", "warn", "fail"),
}
_METRIC_KEYS = ("level", "max_increase", "max_decrease", "max_change", "min_effect", "max", "min")
LEAST_TIMING_BUDGET = 0.005
"""No data can pass a smaller relative budget of a time."""


class BudgetFile(NamedTuple):
    """A budget file that was checked; overrides wait for the environment of the candidate."""

    budget: Budget
    overrides: tuple[tuple[Mapping[str, object], Mapping[str, Any]], ...] = ()

    def for_environment(self, environment: Environment) -> Budget:
        """The budget with every override that fits; later ones win."""
        budget = self.budget
        for when, metrics in self.overrides:
            if all(_fits(environment.get(key), wanted) for key, wanted in when.items()):
                budget = _with_metrics(budget, metrics, f"{budget.source}: [[gate.override]]")
        return budget


SECTIONS = ("gate", "rules", "analyze", "compare", "memory", "postmortem", "whatif", "convert", "open")
"""Tables of the configuration file: the gate's budget, the choice of rules, and options of commands."""
OPTIONS = frozenset(
    {"all", "baseline", "category", "comm_regex", "data_regex", "exit_zero", "format", "label", "lang", "no_match"}
    | {"not_comm_regex", "output", "quiet", "ranks", "step_marker", "steps", "strict", "top", "verbose"}
    | {"write_baseline"}
)
"""Options of the command that may stand in the table `gate`, too."""


def words(key: str) -> str:
    """A name of an option, whether its words are joined by dashes or by underscores."""
    return key.replace("-", "_")


def check_sections(document: Mapping[str, object], source: str) -> None:
    """Refuse what no command reads."""
    # Tables of the gate may have been written without its name.
    for key, value in document.items():
        if key not in SECTIONS and not isinstance(value, dict):
            raise UsageError(
                "{place}: {key} stands in no section; options stand below [analyze], [gate] …", source, key
            )
        if key not in SECTIONS:
            near = _nearest(key, ("gate", "gate.metrics", "gate.override", *SECTIONS))
            raise UsageError("{place}: there is no section [{key}]{hint}", source, key, near)


def not_toml(error: Exception) -> Phrase:
    """Where a text stops being TOML."""
    if isinstance(error, UnicodeDecodeError):
        return Phrase("not TOML: not UTF-8")
    if not isinstance(error, tomllib.TOMLDecodeError):
        return Phrase("not TOML: a number is too long, or it is nested too deeply")
    line = re.search(r"at line (\d+)", str(error))
    return Phrase("not TOML: look at line {line}", line[1]) if line else Phrase("not TOML: its end is missing")


def read_budget(content: bytes, source: str) -> BudgetFile:
    """Understand a TOML file, all of it; of a `pyproject.toml` the table `[tool.traceanalyze.gate]`."""
    try:
        document: Mapping[str, Any] = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError("{path}: {error}", source, not_toml(error)) from error
    if source.endswith("pyproject.toml"):
        document = _table(_table(document.get("tool", {}), source).get("traceanalyze", {}), source)
    check_sections(document, source)
    place, where = f"{source}: [gate]", f"{source}: [[gate.override]]"
    table = {key: each for key, each in _table(document.get("gate", {}), place).items() if words(key) not in OPTIONS}
    budget = Budget(_settings(table, place), source=source)
    budget = _with_metrics(budget, _table(table.get("metrics", {}), f"{place} metrics"), source)
    written = table.get("override", [])
    if not isinstance(written, list):
        raise UsageError("{source}: write [[gate.override]] with two brackets", source)
    overrides = []
    for each in written:
        entry = _table(each, where)
        check_known(entry, ("when", "metrics"), where)
        when = _table(entry.get("when", {}), f"{where} when")
        check_known(when, KEYS, f"{where} when")
        metrics = _table(entry.get("metrics", {}), f"{where} metrics")
        _with_metrics(budget, metrics, where)
        overrides.append((when, metrics))
    return BudgetFile(budget, tuple(overrides))


def _settings(table: Mapping[str, Any], place: str) -> Settings:
    names = [each.name for each in fields(Settings)]
    check_known(table, (*names, "metrics", "override"), place, OPTIONS)
    found = {key: _setting(key, written, f"{place} {key}") for key, written in table.items() if key in names}
    settings = Settings(**found)
    if not 0.5 < settings.confidence < 1:
        raise UsageError("{place} confidence: {value:g} must lie between 0.5 and 1", place, settings.confidence)
    if settings.noise_floor == 0 or settings.noise_floor_points == 0 or settings.prior_weight == 0:
        raise UsageError("{place}: noise_floor, noise_floor_points and prior_weight must be above 0", place)
    return settings


def _setting(key: str, written: object, where: str) -> Any:
    if key in _CHOICES:
        if written not in _CHOICES[key]:
            raise UsageError("{place}: {written!r} is not one of {known}", where, written, listed(_CHOICES[key]))
        return written
    if key == "match":
        if not isinstance(written, list) or not all(isinstance(each, str) for each in written):
            raise UsageError("{place}: write a list of names", where)
        return check_keys(written, where)
    if key in {"noise_floor", "min_workload_similarity"}:
        return share(written, where)
    if key == "warmup_steps":
        if not isinstance(written, int) or isinstance(written, bool) or written < 0:
            raise UsageError("{place}: {written!r} is not a number of steps", where, written)
        return written
    # Only points have a unit that could be written.
    return amount(written, "points" if key == "noise_floor_points" else key, where, relative=False).value


def _with_metrics(budget: Budget, table: Mapping[str, Any], source: str) -> Budget:
    rules = dict(budget.rules)
    for name, written in table.items():
        place = f'{source}: metrics."{name}"'
        metric = metric_of(name)
        if metric is None:
            raise UsageError("{source}: there is no metric {name}{hint}", source, name, _nearest(name, known_names()))
        entry = _table(written, place)
        check_known(entry, _METRIC_KEYS, place)
        rules[name] = _rule(rules.get(name, default(metric)), entry, place)
    return replace(budget, rules=rules)


def _rule(before: Rule, table: Mapping[str, Any], place: str) -> Rule:
    metric = before.metric
    changes = [key for key in ("max_increase", "max_decrease", "max_change") if key in table]
    if len(changes) > 1:
        raise UsageError("{place}: {changes} say the same; keep one", place, listed(changes))
    wrong = "max_decrease" if metric.lower_is_better else "max_increase"
    if wrong in table:
        right = "max_increase" if metric.lower_is_better else "max_decrease"
        better = Phrase("lower is better") if metric.lower_is_better else Phrase("higher is better")
        raise UsageError("{place}: {wrong} for a metric of which {better}; write {right}", place, wrong, better, right)
    found: dict[str, Any] = {"named": True}
    for key in changes:
        found["budget"] = amount(table[key], metric.unit, f"{place} {key}", relative=metric.kind != Kind.RATIO)
    if "min_effect" in table:
        relative = metric.kind != Kind.RATIO
        found["min_effect"] = amount(table["min_effect"], metric.unit, f"{place} min_effect", relative=relative)
    for key, field_ in (("max", "highest"), ("min", "lowest")):
        if key in table:
            found[field_] = amount(table[key], metric.unit, f"{place} {key}", relative=False).value
    level = table.get("level", before.level if before.named else Level.ERROR)
    if level not in list(Level):
        raise UsageError("{place}: {written!r} is not one of {known}", f"{place} level", level, listed(Level))
    rule = replace(before, **found, level=Level(level))
    _check_timing(rule, place)
    return rule


def _check_timing(rule: Rule, place: str) -> None:
    """A time is compared as a relative change, so its budget is one, and not below what can be resolved."""
    if rule.metric.kind != Kind.TIME:
        return
    if not rule.budget.relative:
        raise UsageError(
            "{place}: the budget of a time is a share such as 5%; write absolute limits as max or min_effect", place
        )
    if rule.budget.value < LEAST_TIMING_BUDGET:
        raise UsageError(
            "{place}: no measurement can pass a budget below {least:.1%} of a time", place, LEAST_TIMING_BUDGET
        )
    if not rule.metric.lower_is_better and rule.budget.value >= 1:
        raise UsageError("{place}: a decrease by {share:.0%} cannot be a budget", place, rule.budget.value)


def check_keys(keys: Iterable[str], option: str) -> tuple[str, ...]:
    """Names of environment keys, as an option gives them."""
    found = tuple(keys)
    check_known(dict.fromkeys(found), KEYS, option)
    return found


def _fits(value: object, wanted: object) -> bool:
    if not isinstance(wanted, str) or value is None:
        return value == wanted
    return any(fnmatchcase(str(each), wanted) for each in (value if isinstance(value, tuple) else (value,)))


def _table(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError("{place}: this must be a table", place)
    return value


def check_known(table: Mapping[str, object], names: Iterable[str], place: str, near: Iterable[str] = ()) -> None:
    """Refuse keys that have none of these names, and name the nearest."""
    known = tuple(names)
    for key in table:
        if key not in known:
            raise UsageError("{place}: there is no {key}{hint}", place, key, _nearest(key, (*near, *known)))


def _nearest(name: str, known: Iterable[str]) -> Phrase:
    near = get_close_matches(name, list(known), n=1, cutoff=0.65)
    return Phrase("; did you mean {path}?", near[0]) if near else Phrase("")
