"""What a user may choose about an analysis, as texts, and what they mean to the analyses."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from traceanalyze.analyses.options import Filter, Options
from traceanalyze.api.device_peaks import read_peaks
from traceanalyze.api.rule_config import configured_rules
from traceanalyze.errors import UsageError
from traceanalyze.frozen import frozen
from traceanalyze.model.classifier import known_names
from traceanalyze.model.classify import KIND_NAMES, ClassifyOptions
from traceanalyze.report.build.selection import step_chooser, stream_chooser
from traceanalyze.rules.evaluate import plan

if TYPE_CHECKING:
    from traceanalyze.model.vocabulary import EventKind
    from traceanalyze.rules.evaluate import Plan


@frozen
class Choices:
    """What a user may choose about an analysis; texts as on the command line."""

    steps: str | None = None
    """Steps to analyse, by the number each goes by: `5`, `0,3-5`, `2:`."""
    ranks: str | None = None
    """Ranks to analyse, written the same way."""
    step_marker: str | None = None
    """Regular expression of host ranges that are steps, in place of `ProfilerStep#N`."""
    data_regex: str | None = None
    """Of host ranges that are data loading, beside torch's own."""
    comm_regex: str | None = None
    """Of kernels that are communication."""
    not_comm_regex: str | None = None
    """Of kernels that are not."""
    categories: tuple[str, ...] = ()
    """`NAME=class` for event categories the tool does not know."""
    device_peaks: str | None = None
    """TOML file with peak rates of devices, looked at before those that the tool knows."""
    select: tuple[str, ...] = ()
    """Rules to run, by id, slug or how ids begin; in place of those of the configuration file."""
    ignore: tuple[str, ...] = ()
    """Rules not to run, beside those of the configuration file."""

    streams: str | None = None
    """Streams whose device work to analyse, written like steps; the rest counts as not recorded."""
    name_regex: str | None = None
    """Of device work to analyse, by name."""
    time: str | None = None
    """Time to analyse since the first event: `10ms-1.5s`, `2s-`."""

    def rules(self) -> Plan:
        """Rules to run and their options, with what `traceanalyze.toml` says.

        Raises:
            UsageError: No rule or option is called so, or the file cannot be used.
        """
        told = configured_rules()
        return plan(replace(told, select=self.select or told.select, ignore=(*told.ignore, *self.ignore)))

    def options(self) -> Options:
        """The same for the analyses.

        Raises:
            UsageError: A text cannot be understood, or a file that it names cannot be used.
        """
        classify = ClassifyOptions(
            categories=dict(_category(text) for text in self.categories),
            comm=_pattern("--comm-regex", self.comm_regex),
            not_comm=_pattern("--not-comm-regex", self.not_comm_regex),
            data=_pattern("--data-regex", self.data_regex),
            step_marker=_pattern("--step-marker", self.step_marker),
            plugins=known_names(),
        )
        return Options(
            classify=classify,
            steps=step_chooser(self.steps) if self.steps else None,
            peaks=read_peaks(self.device_peaks) if self.device_peaks is not None else (),
            keep=self._filter(),
        )

    def _filter(self) -> Filter | None:
        if self.streams is None and self.name_regex is None and self.time is None:
            return None
        return Filter(
            streams=None if self.streams is None else stream_chooser(self.streams),
            name=_pattern("--name-regex", self.name_regex),
            time=None if self.time is None else _time(self.time),
        )


_SPAN = re.compile(
    r"(?:(?P<from>\d+(?:\.\d+)?)(?P<unit>s|ms|us|µs|ns))?-(?:(?P<to>\d+(?:\.\d+)?)(?P<end>s|ms|us|µs|ns))?"
)
_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "µs": 10**3, "ns": 1}
_EVER = 2**62


def _time(text: str) -> tuple[int, int]:
    """Nanoseconds of `10ms-1.5s`; either end may be left out."""
    found = _SPAN.fullmatch(text.replace(" ", ""))
    if not found or (found["from"] is None and found["to"] is None):
        raise UsageError(f"--time {text}: write two times since the first event, such as 10ms-1.5s, or 2s-")
    first = round(Decimal(found["from"]) * _NS[found["unit"]]) if found["from"] else 0
    last = round(Decimal(found["to"]) * _NS[found["end"]]) if found["to"] else _EVER
    if last <= first:
        raise UsageError(f"--time {text}: this is no time at all")
    return first, last


def _pattern(option: str, text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{option} {text}: not a regular expression: {error}") from error


def _category(text: str) -> tuple[str, EventKind]:
    name, equals, klass = text.rpartition("=")
    if not equals or not name or klass not in KIND_NAMES:
        raise UsageError(f"--category {text}: write NAME=class, where class is one of {', '.join(KIND_NAMES)}")
    return name.lower(), KIND_NAMES[klass]
