"""The gate for a terminal, in the manner of benchstat: one line a metric, worst first, then why; and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from traceanalyze.locales import Texts
from traceanalyze.model import units
from traceanalyze.regression.baseline import Baseline
from traceanalyze.regression.budget import Settings, default
from traceanalyze.regression.evaluate import noise_prior
from traceanalyze.regression.explain import WhyRow, top
from traceanalyze.regression.metrics import Kind, metric_of
from traceanalyze.regression.results import GateResult, Overall
from traceanalyze.regression.samples import RunSample
from traceanalyze.regression.verdict import shown
from traceanalyze.report.console.style import Style, display_width, padded
from traceanalyze.report.format import printable
from traceanalyze.report.regression import words

TOP = 5


class Section(NamedTuple):
    """A table: heading, column headings, rows of cells (the first is text, the rest numbers)."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sums: int = 0
    """Rows at the end that are below the rule."""


def sections(result: GateResult, texts: Texts) -> tuple[Section, ...]:
    """Parts of the step that sum to its change, then the most changed work and kernels; none without a change."""
    why = result.why
    if why is None or not why.change:
        return ()
    say = texts.messages
    step = next((each for each in result.metrics if each.name == "step.time"), None)
    whole = step.difference if step is not None and step.difference else why.change
    heads = (say["gate_column_baseline"], say["gate_column_candidate"], say["gate_why_diff"])
    parts = [
        (part_name(row.name, texts), *_times(row), _share(row.change, whole))
        for row in sorted(why.parts, key=lambda row: -abs(row.change))
        if row.baseline or row.candidate
    ]
    before, after = (units.duration(round(time)) for time in (why.baseline, why.candidate))
    parts.append((say["gate_why_sum"], before, after, _signed(why.change), _share(why.change, whole)))
    rest = whole - why.change
    if round(rest):
        parts.append((say["gate_why_rest"], "", "", _signed(rest), _share(rest, whole)))
    title = say["gate_why"].format(baseline=before, candidate=after)
    share = say["gate_why_share"]
    found = [Section(title, (say["gate_why_part"], *heads, share), tuple(parts), sums=2 if round(rest) else 1)]
    reasons = tuple((reason_name(row, texts), *_times(row), _share(row.change, whole)) for row in top(why.reasons, TOP))
    kernels = tuple((row.name + _only(row, texts), *_times(row), "") for row in top(why.kernels, TOP))
    if reasons:
        found.append(Section(say["gate_why_reasons"], (say["gate_why_work"], *heads, share), reasons))
    if kernels:
        found.append(Section(say["gate_why_kernels"], (say["gate_why_work"], *heads, ""), kernels))
    return tuple(found)


def part_name(key: str, texts: Texts) -> str:
    """A part of the step; idle time as one part is all of it."""
    if key == "idle":
        return texts.terms["idle_sum"]
    return texts.terms.get("host_api" if key == "api" else key, key)


def reason_name(row: WhyRow, texts: Texts) -> str:
    """A reason with the part that it belongs to."""
    key = "rest_row" if row.what == "rest" else "kernels_kind" if row.what == "kernels" else row.what
    name = {
        "copy": texts.terms.get(f"copy_{row.name}", row.name),
        "kernels": texts.terms.get(f"work_{row.name}", row.name),
    }
    text = texts.messages[f"gate_why_{key}"].format(name=name.get(row.what, row.name))
    return texts.messages["said_of"].format(title=part_name(row.part, texts), text=text + _only(row, texts))


def _only(row: WhyRow, texts: Texts) -> str:
    if row.what in {"rest", "next_op", "data_loading"}:
        return ""
    if not row.baseline_count:
        return f" ({texts.messages['gate_appeared']})"
    return "" if row.candidate_count else f" ({texts.messages['gate_vanished']})"


def _times(row: WhyRow) -> tuple[str, str, str]:
    return units.duration(round(row.baseline)), units.duration(round(row.candidate)), _signed(row.change)


def _signed(ns: float) -> str:
    whole = round(ns)
    return f"{'+' if whole > 0 else ''}{units.duration(whole)}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


_COLOURS = {Overall.FAIL: "red", Overall.INCONCLUSIVE: "yellow", Overall.PASS: "green"}
_GAP = 2
_LEAST_NAME = 12


def render(result: GateResult, texts: Texts, style: Style) -> str:
    """The whole text."""
    return "\n".join(_lines(result, texts, style)) + "\n"


def _lines(result: GateResult, texts: Texts, style: Style) -> Iterator[str]:
    say = texts.messages
    yield style.paint(style.wrap(words.headline(result, texts)), _COLOURS[result.overall])
    yield ""
    sides = words.sides(result, texts)
    width = max(display_width(label) for label, _ in sides)
    yield from (f"{padded(label, width)}  {content}" for label, content in sides)
    yield ""
    yield from table(*words.metrics(result, texts), style, text_columns={0, 6})
    if any(each.statistics is not None for each in result.metrics):
        yield style.wrap(say["gate_legend"])
    unknown = words.unmeasured(result, texts, say["list_mark"])
    if unknown:
        yield style.wrap(unknown)
    for section in sections(result, texts):
        yield ""
        yield style.paint(style.wrap(section.title), "bold")
        yield from table(section.columns, section.rows, style, text_columns={0}, sums=section.sums)
    for line in words.changes(result, texts, say["list_mark"]):
        yield ""
        yield style.wrap(line)
    for key, lines in (
        ("gate_environment", list(words.environment(result, texts))),
        ("gate_notes", list(words.notes(result, texts))),
    ):
        if lines:
            yield ""
            yield style.paint(say[key], "bold")
            yield from (style.wrap(printable(line), indent="  ", first="- ") for line in lines)


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], style: Style, *, text_columns: set[int], sums: int = 0
) -> Iterator[str]:
    """Aligned columns; names in the first are cut where the width does not suffice."""
    cells = [[printable(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(display_width(row[at]) for row in cells) for at in range(len(heads))]
    room = style.width - sum(widths[1:]) - _GAP * (len(widths) - 1)
    widths[0] = min(widths[0], max(room, _LEAST_NAME))
    rule = ("─" if style.unicode else "-") * min(sum(widths) + _GAP * (len(widths) - 1), style.width)
    names = _cut([row[0] for row in cells], widths[0], style)
    for index, row in enumerate(cells):
        if index == 1 or (sums and index == len(cells) - sums):
            yield rule
        fitted = [
            padded(cell, width) if at in text_columns else " " * (width - display_width(cell)) + cell
            for at, (cell, width) in enumerate(zip([names[index], *row[1:]], widths, strict=True))
        ]
        yield (" " * _GAP).join(fitted).rstrip()


def _cut(names: Sequence[str], width: int, style: Style) -> list[str]:
    """Names cut in the middle, or, where that makes two of them the same, at their beginning."""
    short = [style.shorten(name, width) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    mark = "…" if style.unicode else "..."
    ends = [name if display_width(name) <= width else mark + name[len(mark) - width :] for name in names]
    return ends if max(map(display_width, ends)) <= width else short


_BASELINE_COLUMNS = ("run", "time", "label", "commit", "steps", "step_time", "device", "accepted")
_COMMIT_SHOWN = 10


def render_baseline(baseline: Baseline, texts: Texts, style: Style) -> str:
    """A baseline file: its runs, and the noise of every metric."""
    return "\n".join(_baseline_lines(baseline, texts, style)) + "\n"


def _baseline_lines(baseline: Baseline, texts: Texts, style: Style) -> Iterator[str]:
    say = texts.messages
    if not baseline.runs:
        yield say["baseline_empty"]
        return
    heads = [say[f"baseline_{name}"] for name in _BASELINE_COLUMNS]
    yield from table(heads, [_baseline_run(run) for run in baseline.runs], style, text_columns={0, 1, 2, 3, 6})
    yield ""
    yield style.paint(say["baseline_floors"], "bold")
    heads = [say["gate_column_metric"], say["baseline_runs"], say["baseline_floor"]]
    yield from table(heads, list(_floors(baseline)), style, text_columns={0})


def _baseline_run(run: RunSample) -> tuple[str, ...]:
    step = run.metrics.get("step.time")
    return (
        run.name,
        run.time[:16].replace("T", " "),
        run.label,
        run.commit[:_COMMIT_SHOWN],
        str(run.usable_steps),
        "" if step is None else units.duration(round(step.value)),
        shown(run.environment.get("device")),
        "*" if run.accepted else "",
    )


def _floors(baseline: Baseline) -> Iterator[tuple[str, str, str]]:
    """Of times and ratios."""
    level = baseline.level()
    for name in dict.fromkeys(name for run in level for name in run.metrics):
        metric = metric_of(name)
        if metric is None or metric.kind == Kind.EXACT:
            continue
        samples = [run.metrics[name] for run in level if name in run.metrics]
        floor = noise_prior(default(metric), samples, Settings()).floor
        text = f"{floor:.2f} points" if metric.kind == Kind.RATIO else f"{100 * floor:.2f} %"
        yield name, str(len(samples)), text
