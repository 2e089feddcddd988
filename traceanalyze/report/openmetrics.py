"""The summary of a run as OpenMetrics text, which Prometheus, Grafana and their like read: a gauge a column.

Names are `traceanalyze_TABLE_COLUMN` with the unit at the end (seconds, bytes, ratio); columns of text are labels.
What was not measured has no sample, but one of `traceanalyze_not_measured` with the reason.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from traceanalyze.locales import Texts
from traceanalyze.model.table import NUMBERS, SIZES, TIMES, Column, Kind, NotMeasured, Table
from traceanalyze.report.model import Report

_TABLES = ("split", "step_statistics", "inference_phases", "steady_state", "memory", "ranks")
"""Of a summary: few numbers for each run and rank."""

_Labels = tuple[tuple[str, str], ...]


class _Sample(NamedTuple):
    name: str
    """Of its family."""
    unit: str
    meaning: str
    labels: _Labels
    value: float


def render(reports: Sequence[Report], texts: Texts) -> str:
    """Reports of all runs as one exposition, labelled by run and rank."""
    families: dict[str, dict[_Labels, _Sample]] = {}
    for each in chain.from_iterable(map(_samples, reports)):
        families.setdefault(each.name, {}).setdefault(each.labels, each)
    return "".join(line for family in families.values() for line in _family([*family.values()])) + "# EOF\n"


def _family(samples: Sequence[_Sample]) -> Iterator[str]:
    name, unit, meaning = samples[0][:3]
    yield f"# TYPE {name} gauge\n"
    if unit:
        yield f"# UNIT {name} {unit}\n"
    yield f"# HELP {name} {_escaped(meaning)}\n"
    for each in samples:
        labels = ",".join(f'{key}="{_escaped(text)}"' for key, text in each.labels)
        yield f"{name}{{{labels}}} {each.value!r}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _samples(report: Report) -> Iterator[_Sample]:
    run = (("run", report.name),)
    yield _Sample("traceanalyze_run", "", "version of the tool that read it", (*run, ("version", report.version)), 1.0)
    ranks = (report.ranks[at] for at in report.focus)
    for labels, tables in ((run, report.summary), *(((*run, ("rank", str(one.rank))), one.tables) for one in ranks)):
        for table in tables:
            if table.key in _TABLES:
                yield from _cells(table, labels)
    for one in report.findings_in("en"):
        labels = (*run, ("rule", one.rule), ("id", one.id), ("severity", one.severity), ("title", one.title))
        yield _Sample("traceanalyze_finding", "", "what costs time or memory", labels, 1.0)
        saving = "traceanalyze_finding_saving_seconds"
        if one.saving is not None:
            yield _Sample(saving, "seconds", "how much shorter a step gets without it", labels, one.saving.ns / 1e9)
        elif one.cost_ns is not None and not one.once:
            yield _missing(saving, NotMeasured("saving_not_replayed"), labels)


def _cells(table: Table, labels: _Labels) -> Iterator[_Sample]:
    if table.absent is not None:
        yield _missing(f"traceanalyze_{table.key}", table.absent, labels)
        return
    totals = [tuple(map(table.totals.get, table.keys))] if table.totals else []
    for row in (*table.known_rows, *totals):
        cells = [*zip(table.columns, row, strict=True)]
        named = [(column.key, str(cell)) for column, cell in cells if not _is_gauge(column)]
        for column, cell in cells:
            if not _is_gauge(column):
                continue
            unit = "seconds" if column.kind in TIMES else "bytes" if column.kind in SIZES else ""
            unit = "ratio" if column.kind in {Kind.SHARE, Kind.RATIO} else unit
            key = column.key.removesuffix("_ns").removesuffix(f"_{unit}")
            name = f"traceanalyze_{table.key}_{key}" + (f"_{unit}" if unit else "")
            if isinstance(cell, NotMeasured):
                yield _missing(name, cell, (*labels, *named))
            elif isinstance(cell, (int, float)):
                value = cell / 1e9 if column.kind in TIMES else cell
                yield _Sample(name, unit, column.meaning or column.key, (*labels, *named), float(value))


def _is_gauge(column: Column) -> bool:
    """Whether its values are amounts; numbers of devices and ranks are names."""
    return column.kind in NUMBERS and column.kind != Kind.QUANTITY and column.key not in {"device", "rank"}


def _missing(name: str, why: NotMeasured, labels: _Labels) -> _Sample:
    told = (*labels, ("metric", name), ("reason", why.reason))
    return _Sample("traceanalyze_not_measured", "", "a metric that the profile cannot give, and why", told, 1.0)
