"""The gate for a pull request: the verdict first, then the table, the rest folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceanalyze.locales import Texts
from traceanalyze.model.patterns import regex
from traceanalyze.regression.results import GateResult, Overall
from traceanalyze.report.regression import words
from traceanalyze.report.regression.console import sections

SUMMARY_BYTES = 900_000
"""GitHub cuts off summaries of a step at 1 MiB."""
COMMENT_BYTES = 60_000
"""And comments at 65,536 characters."""
_SIGNS = {Overall.FAIL: "❌", Overall.INCONCLUSIVE: "⚠️", Overall.PASS: "✅"}
_SPECIAL = regex(r"([\\`*_{}\[\]<>#|~])")


def render(result: GateResult, texts: Texts, *, limit: int = SUMMARY_BYTES) -> str:
    """Markdown of at most `limit` bytes."""
    say = texts.messages
    cut = f"\n\n_{say['gate_cut']}_\n"
    text = ""
    used = 0
    for block in _blocks(result, texts):
        size = len(block.encode())
        if used + size + len(cut.encode()) > limit:
            return text + cut
        text, used = text + block, used + size
    return text


def _blocks(result: GateResult, texts: Texts) -> Iterator[str]:
    """Pieces that stay valid wherever the text ends."""
    say = texts.messages
    yield f"### {_SIGNS[result.overall]} traceanalyze gate: {_plain(words.headline(result, texts))}\n\n"
    for label, content in words.sides(result, texts):
        yield f"- **{_plain(label)}**: {_plain(content)}\n"
    heads, cells = words.metrics(result, texts)
    yield "\n" + _head(heads, text_columns={0, 6})
    yield from map(_row, cells)
    unknown = words.unmeasured(result, texts, ", ")
    if unknown:
        yield f"\n{_plain(unknown)}\n"
    for section in sections(result, texts):
        rows = "".join(map(_row, section.rows))
        head = _head(section.columns, text_columns={0})
        yield f"\n<details><summary>{_html(section.title)}</summary>\n\n{head}{rows}\n</details>\n"
    listed = [
        (say["gate_environment"], list(words.environment(result, texts))),
        (say["gate_notes"], [*words.changes(result, texts, ", "), *words.notes(result, texts)]),
    ]
    for title, lines in listed:
        if lines:
            items = "".join(f"- {_plain(line)}\n" for line in lines)
            yield f"\n<details><summary>{_html(title)}</summary>\n\n{items}\n</details>\n"


def _head(heads: Sequence[str], *, text_columns: set[int]) -> str:
    rule = "|".join(" --- " if at in text_columns else " ---: " for at in range(len(heads)))
    return f"{_row(heads)}|{rule}|\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |\n"


def _plain(text: str) -> str:
    """Text that means nothing to Markdown, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _html(text: str) -> str:
    return " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
