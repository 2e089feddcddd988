"""What notebooks show of a report: a few rows of a table, findings, the verdict; of bounded size, without scripts."""

from collections.abc import Iterable
from itertools import islice

from traceanalyze.model.table import NUMBERS, Row, Table
from traceanalyze.report.finding import Finding
from traceanalyze.report.format import Formatter, shown_columns
from traceanalyze.report.html.frame import aside, element, safe

_ROWS, _LETTERS, _SENTENCE = 20, 80, 2000
_RIGHT = "text-align:right"


def _cut(text: str, most: int = _LETTERS) -> str:
    return safe(text if len(text) <= most else f"{text[: most - 1]}…")


def table(one: Table, formatter: Formatter) -> str:
    """Title, rows, and what was left out or not measured."""
    if one.absent is not None:
        # What its rows would have been taken over is not known.
        return element("b", _cut(formatter.topic(one))) + aside(formatter.missing([one.absent.reason]))
    title = element("b", _cut(formatter.title(one)))
    rows = one.known_rows[:_ROWS]
    more = formatter.texts.messages["rows_left_out"].format(kept=f"{len(rows):,}", count=f"{len(one):,}")
    below = [*([more] if len(one) > len(rows) else []), *formatter.legends(rows)]
    return f"{title}{_rows(one, rows, formatter)}{''.join(map(aside, below))}"


def _rows(one: Table, rows: tuple[Row, ...], formatter: Formatter) -> str:
    columns = shown_columns(one, rows, formatter.resolution_ns)
    head = "".join(
        element("th", _cut(" ".join(filter(None, (formatter.texts.heading(one, column), name and f"({name})")))))
        for _, column, _, name in columns
    )
    lines = (
        "".join(
            element(
                "td",
                _cut(formatter.cell(column, row[at], unit)),
                style=_RIGHT if column.kind in NUMBERS else "text-align:left",
            )
            for at, column, unit, _ in columns
        )
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def listing(lines: Iterable[tuple[str, str]]) -> str:
    """Keys and what they stand for."""
    body = "".join(f"<tr><td><code>{_cut(key)}</code></td><td>{_cut(text)}</td></tr>" for key, text in lines)
    return f"<table><tbody>{body}</tbody></table>"


def finding(one: Finding) -> str:
    """What it says, what it costs and what to do."""
    parts = [f"<b>{_cut(one.title)}</b> {_cut(', '.join(filter(None, (one.rule, one.grade))))}"]
    parts += [_cut(each, _SENTENCE) for each in (one.sentence, one.price) if each]
    parts += [f"→ {_cut(each, _SENTENCE)}" for each in one.advice[:3]]
    parts += [_cut(f"{each.label}: {each.text}") for each in one.evidence[:5]]
    return f"<p>{'<br>'.join(parts)}</p>"


def report(name: str, sentences: Iterable[str], found: Iterable[Finding], lead: Table | None, shown: Formatter) -> str:
    """Verdict, remarks, the first findings, and the table that says most."""
    first, *others = [*islice(sentences, 6), ""]
    parts = [f"<h3>{_cut(name, 200)}</h3><p><b>{_cut(first, _SENTENCE)}</b></p>"]
    parts += (element("p", _cut(each, _SENTENCE)) for each in others if each)
    parts += map(finding, islice(found, 5))
    return "".join(parts) + ("" if lead is None else table(lead, shown))
