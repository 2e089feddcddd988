"""Fingerprints of all that the tool makes of samples and simulated programs, room by room: `pins/ROOM.json`.

They say what a change moves, not what is right: other tests have their answers from elsewhere. After a change that is
meant, `python -m tests.pinned` writes them anew; the difference names every case and table that has moved. Look at
these before you commit.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.pinned import model as of_model
from tests.pinned import programs
from tests.pinned.commands import CLI, RECORDING
from tests.pinned.gates import REGRESSION
from tests.pinned.inputs import READERS, columns
from tests.pinned.reports import CAUSES, REPORTS

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_traces"
_FOLDER = ROOT / "tests" / "pins"
_UNJUDGED = frozenset({"rules_not_judged", "rank_rules_not_judged", "not_judged"})
"""Keys of what every new rule moves."""
_RULE = re.compile(r"\b[A-Z]{3}\d{3}\b")
_SKIPPED = frozenset({"path", "files", "run_files", "recordings", "compare_sides"}) | _UNJUDGED
"""Keys of what names files, or how large they are, which differ between machines."""

_LONG_NUMBER = re.compile(r"-?\d+\.\d{6,}(?:e[-+]?\d+)?")

_PLACES = [str(ROOT)]
"""Folders that texts may name, and that are others on every machine."""

Parts = Iterator[tuple[str, object]]
"""What is pinned of a case: names and values."""


def fingerprint(value: object) -> str:
    """The same for equal values on every machine: of floats nine digits count."""
    return hashlib.blake2b(_plain(value).encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()


def _text(text: str) -> str:
    """As it is on every machine: the last digits of sums differ between versions of Python."""
    for place in _PLACES:
        text = text.replace(place, "")
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.9g}", text)


def _plain(value: object) -> str:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, str | Path):
        return repr(_text(str(value)))
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{_plain(key)}:{_plain(each)}" for key, each in value.items())) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ",".join(sorted(map(_plain, value))) + "}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
        return f"{type(value).__name__}({','.join(f'{name}={_plain(each)}' for name, each in fields)})"
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return "[" + ",".join(map(_plain, value)) + "]"
    return repr(value)


def tables(found: Any, before: str = "") -> Parts:
    """Every table: its columns, its rows and what it notes."""
    for table in found:
        if table.key not in _SKIPPED:
            columns = [(each.key, each.kind, each.minor) for each in table.columns]
            yield (
                f"{before}{table.key}",
                (columns, table.rows, table.total, table.notes, table.title_values, table.detail),
            )


def pins(room: str) -> dict[str, dict[str, str]]:
    """What is written down of a room."""
    found: dict[str, dict[str, str]] = json.loads((_FOLDER / f"{room}.json").read_text(encoding="utf-8"))
    return found


def case(parts: Callable[[], Parts]) -> dict[str, str]:
    """Fingerprints of one case."""
    return {name: fingerprint(value) for name, value in parts()}


# ---------------------------------------------------------------------------------------------- what the rooms make


TRACES = (
    *("cpu_slow_loader", "cpu_training", "gpu_2021_layout", "gpu_data_loading", "gpu_healthy", "gpu_launch_bound"),
    *("gpu_npu_pair/gpu", "gpu_npu_pair/npu/rank0_ascend_pt", "gpu_sync", "gpu_two_ranks", "npu_training"),
)
MEMORY = ("churn", "fragmentation", "healthy", "leak", "out_of_memory")
PAIRS = (
    ("gpu_sync", "gpu_healthy"),
    ("gpu_npu_pair/gpu", "gpu_npu_pair/npu/rank0_ascend_pt"),
    ("gpu_two_ranks", "gpu_healthy"),
    ("cpu_training", "cpu_slow_loader"),
    ("gpu_launch_bound", "npu_training"),
)


@cache
def workloads() -> dict[str, Any]:
    """Simulated programs by name: each fault alone, on a GPU, and some on an NPU."""
    from tests.simulate.healthy import on_npu
    from tests.simulate.test_faults import CASES
    from tests.simulate.workload import Fault

    found = {
        name: dataclasses.replace(plain, faults=(Fault(name, size),)) for name, (plain, size) in sorted(CASES.items())
    }
    npu = ("slow_loader", "item_sync", "straggler", "small_kernels", "exposed_comm")
    return found | {f"npu {name}": on_npu(found[name]) for name in npu}


@cache
def _ranks(name: str) -> list[tuple[Any, Any]]:
    """Context and analyses of each rank of a simulated program."""
    from tests.simulate.judge import _trace
    from tests.simulate.simulate import simulate
    from tests.simulate.writers.layouts import TODAY
    from traceanalyze.analyses.analyze import analyze_context
    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.options import Options

    contexts = [Context(_trace(each, TODAY.name), Options()) for each in simulate(workloads()[name])]
    return [(each, analyze_context(each)) for each in contexts]


@cache
def _report(name: str) -> Any:
    import traceanalyze

    return traceanalyze.analyze(name)


@cache
def _memory(name: str) -> Any:
    import traceanalyze

    return traceanalyze.memory(Path("memory") / name)


@cache
def _compared(base: str, candidate: str) -> Any:
    import traceanalyze

    return traceanalyze.compare(base, candidate)


@cache
def _gate(base: str, candidate: str) -> Any:
    import traceanalyze

    return traceanalyze.gate(candidate, base)


@cache
def _postmortem(name: str) -> Any:
    import traceanalyze

    return traceanalyze.postmortem(name)


def _of_rank(context: Any, analysis: Any) -> Parts:
    yield from tables(analysis.tables.values())
    yield "checks", analysis.checks
    yield "partitions", analysis.partitions
    yield "idle", analysis.idle
    yield "steps", (analysis.steps, context.trace.read.notes)


def _analyses(name: str) -> Parts:
    kind, _, rest = name.partition(" ")
    if kind in programs.KINDS:
        yield from _analyses_of(kind, rest)
    elif name in workloads():
        for number, (_, analysis) in enumerate(_ranks(name)):
            yield from tables(analysis.tables.values(), f"{number}.")
            yield f"{number}.checks", analysis.checks
            yield f"{number}.partitions", analysis.partitions
            yield f"{number}.steps", analysis.steps
            yield f"{number}.idle", analysis.idle
    elif name in MEMORY:
        for rank in _memory(name).ranks:
            yield from tables(rank.tables)
            yield "checks", rank.checks
    else:
        for number, analysis in enumerate(_report(name).analyses):
            yield from tables(analysis.tables.values(), f"{number}.")
            yield f"{number}.checks", analysis.checks


def _analyses_of(kind: str, rest: str) -> Parts:
    """Of programs of `tests.pinned.programs`."""
    from traceanalyze.analyses.memory.findings import findings_table, memory_findings

    if kind == "odd":
        yield from _of_rank(*programs.odd_of(rest))
    elif kind == "layout":
        yield from _of_rank(*programs.laid_out(rest))
    elif kind == "allocator":
        for found in programs.allocator(int(rest)):
            for field, value in found._asdict().items():
                if field in {"held", "state"}:
                    yield from tables(value, f"{field} ")
                else:
                    yield field, list(tables([value])) if hasattr(value, "columns") else value
            told = memory_findings(found)
            yield "findings", (told, list(tables([findings_table(told)])))
    else:
        for case_name, facts in programs.cases(rest, "FIRES", 0):
            yield case_name, list(_of_rank(facts.context, facts.analysis))


def _of_ranks(name: str) -> Parts:
    from traceanalyze.ranks.compare import cluster_tables, compare_ranks
    from traceanalyze.ranks.summary import summarize

    if name in TRACES:
        found = _report(name)
        yield from tables(table for table in found.summary)
        return
    kind, _, rest = name.partition(" ")
    if kind in programs.KINDS:
        summaries = programs.summaries(int(rest)) if kind == "odd" else programs.mesh(int(rest))
    else:
        summaries = [
            dataclasses.replace(summarize(*each), rank=number, label=str(number))
            for number, each in enumerate(_ranks(name))
        ]
    cluster = compare_ranks(summaries)
    yield from tables(cluster_tables(cluster))
    yield "waits", cluster.exposed_waits
    yield "stragglers", cluster.stragglers
    yield "stops", (cluster.stops, cluster.outside, cluster.missing_ranks, cluster.own_time)
    for number, one in enumerate(summaries):
        yield f"{number}.summary", [getattr(one, each.name) for each in dataclasses.fields(one)]


def _findings(found: Any, before: str) -> Parts:
    for number, one in enumerate(found):
        yield (
            f"{before}{one.rule} {number}",
            (
                *(one.sentence, one.severity, one.confidence, one.saving, one.bound, one.draws, one.advice),
                *(one.count, one.scope, [(each.label, each.kind, each.value, each.line) for each in one.evidence]),
            ),
        )


def _by_rule(outcome: Any, before: str) -> Parts:
    """A new rule does not move those of the others."""
    for rule in sorted({one.rule for one in outcome.findings}):
        of_rule = [one for one in outcome.findings if one.rule == rule]
        yield f"{before}{rule}", [value for _, value in _findings(of_rule, "")]


def _rules_of(kind: str, rest: str) -> Parts:
    """Of programs of `tests.pinned.programs`."""
    if kind == "cases":
        for side, every in (("FIRES", 3), ("SILENT", 6)):
            for case_name, facts in programs.cases(rest, side, every):
                yield from _by_rule(programs.judged(facts), f"{case_name}: ")
                own = programs.tried(facts, case_name.partition(" ")[0])
                yield f"{case_name}, thresholds", [[each for _, each in _findings(found, "")] for found in own]
        return
    facts = programs.facts(programs.odd_of(rest) if kind == "odd" else programs.laid_out(rest))
    yield from _by_rule(programs.judged(facts), "")


def _rules(name: str) -> Parts:
    kind, _, rest = name.partition(" ")
    if kind in programs.KINDS:
        yield from _rules_of(kind, rest)
        return
    if name in TRACES:
        for number, rank in enumerate(_report(name).ranks):
            yield from _findings(rank.findings, f"{number}.")
        yield from _findings(_report(name).run_findings, "run.")
        return
    from tests.simulate.judge import judge

    verdict = judge(workloads()[name])
    for number, each in enumerate(verdict.ranks):
        yield from _findings(each, f"{number}.")
    yield from _findings(verdict.run, "run.")


def _comparison(name: str) -> Parts:
    kind, _, rest = name.partition(" ")
    if kind in programs.KINDS:
        found = programs.compared(kind, rest)
        yield from tables(found.tables.values())
        yield "parts", found.parts
        yield "mean step", programs.mean_steps(kind, rest)
        yield "caveats", found.caveats
        yield "sides", [dataclasses.replace(each, path="") for each in (found.base, found.candidate)]
        return
    found = _compared(*name.split(" ~ "))
    yield from tables(found.summary)
    yield "verdict", found.verdict_messages
    yield "remarks", found.remarks


def _regression(name: str) -> Parts:
    found = _gate(*name.split(" ~ "))
    yield from tables(each for each in found.summary if each.key != "gate_runs")
    yield "verdict", (found.verdict_messages, found.exit_code, found.reason, found.similarity)
    yield "remarks", found.remarks
    yield "metrics", [(one.name, one.difference, one.statistics, one.verdict, one.reason) for one in found.metrics]
    yield "why", found.why
    for side in (found.baseline, found.candidate):
        for run in side.runs:
            yield f"{side.label}.ranks", [one and (one.values, one.steps, one.findings) for one in run.ranks]


def _causes(name: str) -> Parts:
    found = _postmortem(name)
    yield from tables(found.summary)
    yield "verdict", found.verdict_messages


def _any_report(name: str) -> Any:
    kind, _, rest = name.partition(" ")
    made = {"memory": _memory, "postmortem": _postmortem}
    if kind in {"compare", "gate"}:
        found = {"compare": _compared, "gate": _gate}[kind](*rest.split(" ~ "))
    else:
        found = made[kind](rest) if kind in made else _report(name)
    return dataclasses.replace(
        found,
        summary=_kept(found.summary),
        ranks=tuple(dataclasses.replace(each, tables=_kept(each.tables)) for each in found.ranks),
    )


def _kept(found: Any) -> tuple[Any, ...]:
    return tuple(each for each in found if each.key not in _UNJUDGED)


def _rendered(name: str) -> Parts:
    import openpyxl

    from traceanalyze.locales import texts
    from traceanalyze.model.vocabulary import Detail
    from traceanalyze.report import html, markdown, xlsx
    from traceanalyze.report import json as json_report
    from traceanalyze.report.console import Style, render
    from traceanalyze.report.view import View

    report = _any_report(name)
    for width in (80, 140):
        for detail in Detail:
            yield f"console {detail.name} {width}", render(report, texts(), Style(width), View(detail))
    yield "console zh", render(report, texts("zh"), Style(100), View())
    yield "markdown", markdown.render([report], texts(), View())
    pages = html.render([report], texts())
    for number, part in enumerate(pages.replace(str(ROOT), "").split("<section")):
        yield f"html {number}", part
    # Of each scanner the same recording has another number.
    written = re.sub(r'"id": "[0-9a-f]{16}"', "", json_report.render([report], texts()))
    yield "json", written.replace(str(ROOT), "").split("\n")
    from io import BytesIO

    with warnings.catch_warnings(action="ignore"):
        book = openpyxl.load_workbook(BytesIO(xlsx.render([report], texts())))
    for sheet in book:
        cells = [
            (cell.coordinate, cell.value, cell.number_format, cell.hyperlink and cell.hyperlink.location)
            for row in sheet.iter_rows()
            for cell in row
            if cell.value is not None and str(SAMPLES) not in str(cell.value)
        ]
        widths = sorted((key, one.width, one.hidden) for key, one in sheet.column_dimensions.items())
        yield f"sheet {sheet.title}", (cells, widths, sheet.freeze_panes, sheet.sheet_state, sheet.dimensions)
    yield "book", (book.properties.creator, book.properties.created, book.properties.title)


def _read(name: str) -> Parts:
    import traceanalyze

    if name in MEMORY:
        for number, rank in enumerate(_memory(name).ranks):
            yield from tables(rank.tables, f"{number}.")
            yield f"{number}.notes", rank.headline
        return
    for number, trace in enumerate(traceanalyze.load(name).traces):
        for key, value in columns(trace).items():
            yield f"{number}.{key}", value


def _annotated(name: str) -> Parts:
    import gzip

    from traceanalyze.pipeline.perfetto import annotate

    with tempfile.TemporaryDirectory() as folder:
        for overlay in (False, True):
            file = Path(folder) / f"{overlay}.json.gz"
            yield f"notes {overlay}", annotate([str(name)], str(file), overlay_only=overlay)
            yield f"annotated {overlay}", gzip.decompress(file.read_bytes())


def _pages(name: str) -> Parts:
    from typer.testing import CliRunner

    from traceanalyze.cli.app import app

    for language in ("en", "zh"):
        yield language, CliRunner().invoke(app, [*name.split(), "--help", "--lang", language], prog_name="x").output


ROOMS: dict[str, tuple[Callable[[str], Parts], tuple[str, ...]]] = {
    "analyses": (_analyses, (*TRACES, *MEMORY, *sorted(workloads()), *programs.ANALYSED)),
    "ranks": (
        _of_ranks,
        ("gpu_two_ranks", "straggler", "exposed_comm", "host_barrier", "npu straggler", *programs.RANKS),
    ),
    "rules": (_rules, (*TRACES, *sorted(workloads()), *programs.JUDGED)),
    "comparison": (_comparison, (*(" ~ ".join(each) for each in PAIRS), *programs.COMPARED)),
    "model": (of_model.model, tuple(of_model.TOPICS)),
    "regression": (
        _regression,
        tuple(f"gpu_healthy ~ gpu_{name}" for name in ("sync", "data_loading", "launch_bound")),
    ),
    "causes": (_causes, ("gpu_two_ranks", "npu_training", "memory/with_trace", "cpu_slow_loader")),
    "report": (
        _rendered,
        (
            *("gpu_data_loading", "gpu_two_ranks", "npu_training", "cpu_training", "memory churn"),
            *("memory out_of_memory", "postmortem memory/with_trace", "compare gpu_sync ~ gpu_healthy"),
            *("compare gpu_npu_pair/gpu ~ gpu_npu_pair/npu/rank0_ascend_pt", "gate gpu_healthy ~ gpu_sync"),
        ),
    ),
    "readers": (_read, (*TRACES, *MEMORY)),
    "pipeline": (_annotated, ("gpu_data_loading", "gpu_two_ranks", "npu_training")),
    "cli": (_pages, ("analyze", "compare", "memory", "postmortem", "gate", "record", "baseline update", "rule")),
}
"""Of each room what is pinned of a case, and its cases."""
_MORE: dict[str, Mapping[str, Callable[[], Parts]]] = {
    "readers": READERS,
    "regression": REGRESSION,
    "report": REPORTS,
    "causes": CAUSES,
    "cli": CLI,
    "recording": RECORDING,
}
"""Further cases, each with what is pinned of it."""


def cases(room: str) -> tuple[str, ...]:
    """Names of all cases of a room."""
    return (*(ROOMS[room][1] if room in ROOMS else ()), *_MORE.get(room, ()))


@contextmanager
def _elsewhere() -> Iterator[None]:
    """In a new folder that no pinned text names."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        _PLACES.append(folder)
        try:
            yield
        finally:
            _PLACES.remove(folder)


WHOLE = "TRACEANALYZE_PINS"
"""Variable that, set to `all`, makes tests look at every case; a plain run has time for one in ten."""


def looked_at(room: str) -> tuple[str, ...]:
    """Names of the cases that tests look at."""
    return cases(room)[:: 1 if os.environ.get(WHOLE) == "all" else 10]


def made(room: str, name: str) -> dict[str, str]:
    """Fingerprints as they are now."""
    more = _MORE.get(room, {}).get(name)
    if more is not None:
        with _elsewhere():
            return case(more)
    parts, _ = ROOMS[room]
    with chdir(SAMPLES):  # Texts with paths are as long on every machine.
        return case(lambda: parts(name))


def moved(room: str, name: str) -> list[str]:
    """What of a case is another than what is written down; what new rules say is not."""
    written = pins(room)
    before, now = written.get(name, {}), made(room, name)
    rules = {rule for each in written.values() for key in each for rule in _RULE.findall(key)}
    named = before.keys() | {key for key in now if rules.issuperset(_RULE.findall(key))}
    return sorted(key for key in named if before.get(key) != now.get(key))


def main(rooms: Sequence[str]) -> None:
    """Write the fingerprints of some rooms, or of all."""
    _FOLDER.mkdir(exist_ok=True)
    for room in rooms or (*ROOMS, "recording"):
        found = {name: made(room, name) for name in cases(room)}
        (_FOLDER / f"{room}.json").write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8")
