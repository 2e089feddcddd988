"""Why the step time changed, as rows of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze import units
from traceanalyze.frozen import frozen
from traceanalyze.gate.explain import top

if TYPE_CHECKING:
    from traceanalyze.gate.explain import WhyRow
    from traceanalyze.gate.results import GateResult
    from traceanalyze.locales import Texts

TOP = 5


@frozen
class Section:
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
    judged = next((each for each in result.metrics if each.name == "step.time"), None)
    whole = judged.difference if judged is not None and judged.difference else why.change
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
    told = texts.messages[f"gate_why_{key}"].format(name=name.get(row.what, row.name))
    return texts.messages["said_of"].format(title=part_name(row.part, texts), text=told + _only(row, texts))


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
