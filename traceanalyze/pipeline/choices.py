"""What a user may choose about an analysis, as texts, and what they mean to the analyses."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar

from traceanalyze.analyses.options import Filter, Options
from traceanalyze.errors import UsageError
from traceanalyze.model.classifier import known_names
from traceanalyze.model.classify import KIND_NAMES, ClassifyOptions
from traceanalyze.model.device_peaks import DTYPES, Peaks
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import no_such
from traceanalyze.model.vocabulary import Detail, EventKind
from traceanalyze.pipeline.selection import Chosen, step_chooser, stream_chooser
from traceanalyze.readers.scan import warn_if_slow
from traceanalyze.rules.config import Plan, RuleConfig, rule_config

_KEYS = ("pattern", "name", "bandwidth_gbs", "tflops")

PathLike = str | os.PathLike[str]


def path_texts(paths: PathLike | Sequence[PathLike], *, required: bool = True) -> tuple[str, ...]:
    """One path or several, as text; none only where none is `required`. Every function of the API begins with this."""
    warn_if_slow()
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    try:
        found = tuple(os.fspath(path) for path in several)
    except TypeError:
        raise UsageError("{value}: write a path, or a list of paths", str(paths)) from None
    if required and not found:
        raise UsageError("give a path")
    return found


def path_text(path: PathLike) -> str:
    """One path, as text."""
    found = path_texts(path)
    if len(found) > 1:
        raise UsageError("{value}: write one path", str(path))
    return found[0]


def several(values: str | Sequence[str]) -> tuple[str, ...]:
    """A text on its own is one value."""
    found = (values,) if isinstance(values, str) or not isinstance(values, Iterable) else tuple(values)
    if not all(isinstance(each, str) for each in found):
        raise UsageError("{value}: write a text, or a list of texts", str(values))
    return found


def read_peaks(path: str) -> tuple[Peaks, ...]:
    """The `[[device]]` entries of a file, in its order."""
    try:
        return tuple(_peaks(entry, index, path) for index, entry in enumerate(_entries(path), 1))
    except UsageError as error:
        raise UsageError("--device-peaks {path}: {error}", path, error) from error


def _entries(path: str) -> list[Any]:
    import tomllib

    try:
        with Path(path).open("rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise UsageError("cannot be read: {why}", error.strerror) from error
    except (ValueError, RecursionError) as error:
        from traceanalyze.regression.budget import not_toml

        raise UsageError("{error}", not_toml(error)) from error
    entries = found.pop("device", None)
    if found:
        raise UsageError("unknown: {keys}; write [[device]] entries", ", ".join(found))
    if not isinstance(entries, list) or not entries:
        raise UsageError("holds no [[device]] entry")
    return entries


def _peaks(entry: Any, index: int, path: str) -> Peaks:
    where = f"device {index}"
    if not isinstance(entry, dict) or set(entry) != set(_KEYS):
        raise UsageError("{where}: write {known}, and nothing else", where, ", ".join(_KEYS))
    rates = entry["tflops"]
    if not isinstance(rates, dict) or not set(rates) <= set(DTYPES):
        raise UsageError(
            "{where}: tflops: write TYPE = number in braces, where TYPE is one of {known}", where, ", ".join(DTYPES)
        )
    return Peaks(
        device=_text(entry["name"], f"{where}: name"),
        pattern=_pattern(entry["pattern"], f"{where}: pattern"),
        tflops={dtype: _rate(rate, f"{where}: tflops: {dtype}") for dtype, rate in rates.items()},
        bandwidth=_rate(entry["bandwidth_gbs"], f"{where}: bandwidth_gbs"),
        source=path,
    )


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError("{where}: write a text", where)
    return value


def _pattern(value: Any, where: str) -> str:
    text = _text(value, where)
    _compiled(f"{where}:", text)
    return text


def _rate(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise UsageError("{where}: write a number above 0", where)
    return float(value)


OWN, PROJECT = "traceanalyze.toml", "pyproject.toml"


def configuration(start: Path | None = None) -> tuple[Mapping[str, Any], str]:
    """The nearest configuration and the name of its file: of the folder (default: the current one), or of one above."""
    folder = (start or Path.cwd()).resolve()
    for here in (folder, *folder.parents):
        own, project = here / OWN, here / PROJECT
        if own.is_file():
            return _tables(_read(own), own), own.name
        if project.is_file() and _named_in(project):
            table = _read(project).get("tool", {})
            if isinstance(table, dict) and "traceanalyze" in table:
                return _tables(table["traceanalyze"], project), project.name
    return {}, OWN


def configured_rules(start: Path | None = None) -> RuleConfig:
    """What the nearest configuration says of rules."""
    document, source = configuration(start)
    return rule_config(document.get("rules", {}), source)


def _named_in(path: Path) -> bool:
    """Whether a file has the tool's name, as most projects' do not; one that cannot be read may have."""
    try:
        return b"traceanalyze" in path.read_bytes()
    except OSError:
        return True


def _read(path: Path) -> dict[str, object]:
    try:
        return _parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError("{path}: cannot be read: {why}", path, error.strerror) from error
    except (ValueError, RecursionError) as error:
        from traceanalyze.regression.budget import not_toml

        raise UsageError("{path}: {error}", path, not_toml(error)) from error


@lru_cache(maxsize=1)
def _parsed(text: str) -> dict[str, object]:
    """Of a file that each of many ranks asks for, once as long as it says the same."""
    # Imported here: most folders have no configuration.
    import tomllib

    return tomllib.loads(text)


def _tables(document: object, path: Path) -> Mapping[str, Any]:
    # Imported here: most folders have no configuration.
    from traceanalyze.regression.budget import check_sections

    if not isinstance(document, dict):
        raise UsageError("{path}: {name} is not a table", path, "tool.traceanalyze")
    check_sections(document, str(path))
    for name, table in document.items():
        if not isinstance(table, dict):
            raise UsageError("{path}: {name} is not a table", path, name)
    return document


class Patterns(TypedDict, total=False):
    """What is what in a recording, as functions but `analyze` take it; `Choices` says what each means."""

    step_marker: str | None
    data_regex: str | None
    comm_regex: str | None
    not_comm_regex: str | None
    categories: str | Sequence[str]


class Filters(Patterns, total=False):
    """And what of it counts."""

    device_peaks: PathLike | None
    streams: Chosen | None
    name_regex: str | None
    time: str | None


Given = TypeVar("Given", bound=Patterns)


def checked(given: Given, kind: type[Given]) -> Given:
    """What was given by name, unless one is no name of the kind."""
    for name in given.keys() - kind.__annotations__.keys():
        raise TypeError(no_such("argument", name, list(kind.__annotations__)))
    return given


class Choices(NamedTuple):
    """What a user may choose about an analysis; texts as on the command line."""

    steps: Chosen | None = None
    """Steps to analyse, by the number each goes by: `5`, `0,3-5`, `2:`."""
    ranks: Chosen | None = None
    """Ranks to analyse, written the same way."""
    step_marker: str | None = None
    """Regular expression of host ranges that are steps, in place of `ProfilerStep#N`."""
    data_regex: str | None = None
    """Of host ranges that are data loading, beside torch's own."""
    comm_regex: str | None = None
    """Of kernels that are communication."""
    not_comm_regex: str | None = None
    """Of kernels that are not."""
    categories: str | Sequence[str] = ()
    """`NAME=class` for event categories the tool does not know."""
    device_peaks: PathLike | None = None
    """TOML file with peak rates of devices, looked at before those that the tool knows."""
    select: str | Sequence[str] = ()
    """Rules to run, by id, slug or how ids begin; in place of those of the configuration file."""
    ignore: str | Sequence[str] = ()
    """Rules not to run, beside those of the configuration file."""

    streams: Chosen | None = None
    """Streams whose device work to analyse, written like steps; the rest counts as not recorded."""
    name_regex: str | None = None
    """Of device work to analyse, by name."""
    time: str | None = None
    """Time to analyse since the first event: `10ms-1.5s`, `2s-`."""

    detail: Detail = Detail.VERBOSE
    """What a reader will see of it: for a verdict there are no rules and hardly a table; for a short page no tables
    that it leaves out, no pictures of findings, nor of one rank what others are compared by."""

    def rules(self) -> Plan:
        """Rules to run and their options, with what `traceanalyze.toml` says."""
        stated = configured_rules()
        wanted = stated._replace(
            select=several(self.select) or stated.select, ignore=(*stated.ignore, *several(self.ignore))
        )
        verdict_only = self.detail == Detail.QUIET
        if verdict_only and wanted == RuleConfig():
            return Plan(())
        # Imported here: a verdict needs no rules, and there are more than a hundred modules of them.
        from traceanalyze.rules.evaluate import plan

        found = plan(wanted)
        return Plan(()) if verdict_only else found

    def options(self) -> Options:
        """The same for the analyses."""
        classify = ClassifyOptions(
            categories=dict(_category(text) for text in several(self.categories)),
            comm=_compiled("--comm-regex", self.comm_regex),
            not_comm=_compiled("--not-comm-regex", self.not_comm_regex),
            data=_compiled("--data-regex", self.data_regex),
            step_marker=_compiled("--step-marker", self.step_marker),
            plugins=known_names(),
        )
        return Options(
            classify=classify,
            steps=None if self.steps is None or self.steps == "" else step_chooser(self.steps),
            peaks=read_peaks(os.fspath(self.device_peaks)) if self.device_peaks is not None else (),
            keep=self._filter(),
        )

    def _filter(self) -> Filter | None:
        if self.streams is None and self.name_regex is None and self.time is None:
            return None
        return Filter(
            streams=None if self.streams is None else stream_chooser(self.streams),
            name=_compiled("--name-regex", self.name_regex),
            time=None if self.time is None else span_of(self.time),
        )


_SPAN = regex(r"(?:(?P<from>\d+(?:\.\d+)?)(?P<unit>s|ms|us|µs|ns))?-(?:(?P<to>\d+(?:\.\d+)?)(?P<end>s|ms|us|µs|ns))?")
_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "µs": 10**3, "ns": 1}
_EVER = 2**62


def span_of(text: str, option: str = "--time") -> tuple[int, int]:
    """Nanoseconds of `10ms-1.5s`; either end may be left out."""
    from decimal import Decimal

    found = _SPAN.fullmatch(str(text).replace(" ", ""))
    if not found or (found["from"] is None and found["to"] is None):
        raise UsageError(
            "{option} {text}: write two times since the first event, such as 10ms-1.5s, or 2s-", option, text
        )
    first = round(Decimal(found["from"]) * _NS[found["unit"]]) if found["from"] else 0
    last = round(Decimal(found["to"]) * _NS[found["end"]]) if found["to"] else _EVER
    if last <= first:
        raise UsageError("{option} {text}: this is no time at all", option, text)
    return first, last


def _compiled(place: str, text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except (re.error, TypeError) as error:
        raise not_a_pattern(place, text, error) from error


def not_a_pattern(place: str, text: object, error: Exception) -> UsageError:
    """What is said of a text that is no regular expression."""
    at = getattr(error, "pos", None)
    if at is None:
        return UsageError("{place} {text}: not a regular expression", place, text)
    return UsageError("{place} {text}: not a regular expression: look at letter {at}", place, text, at + 1)


def _category(text: str) -> tuple[str, EventKind]:
    name, equals, klass = text.rpartition("=")
    if not equals or not name or klass not in KIND_NAMES:
        raise UsageError(
            "--category {text}: write NAME=class, where class is one of {known}", text, ", ".join(KIND_NAMES)
        )
    return name.lower(), KIND_NAMES[klass]
