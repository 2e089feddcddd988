"""`traceanalyze rule`: what a rule finds, why it costs time and what to do."""

from __future__ import annotations

import re
import sys
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyze.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.locales import Texts
    from traceanalyze.report.console.style import Style
    from traceanalyze.rules.rule import Rule

_SOURCE = re.compile(r"\s+\(definitions §\d+\)")
"""Where a quantity is defined, for those who change a rule."""


def rule(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="RULE…", help="Id (DAT101), slug (loader-wait) or family (DAT).")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="List all rules.")] = False,
    lang: Annotated[str, typer.Option(metavar="LANG", help="Language of titles and advice: en, zh.")] = "en",
) -> None:
    """Explain rules: what they find, how it is measured, their options."""
    from traceanalyze.locales import texts
    from traceanalyze.report.console.style import style_for
    from traceanalyze.rules.registry import chosen, every_rule

    if every == bool(names):
        raise UsageError("name a rule, or give --all for the list of all rules")
    words, rules = texts(lang), every_rule()
    if every:
        typer.echo("\n".join(f"{each.id}  {each.slug:24}  {_title(each, words)}" for each in rules))
        return
    wanted = chosen(rules, names or (), ())
    style = style_for(sys.stdout)
    typer.echo("\n\n".join(_explained(each, words, style) for each in wanted))


def _title(each: Rule, words: Texts) -> str:
    return words.terms.get(f"rule_{each.id}") or each.doc.partition("\n")[0]


def _explained(each: Rule, words: Texts, style: Style) -> str:
    from traceanalyze.report.console.wrap import display_width

    title = f"{each.id} {each.slug}: {_title(each, words)}"
    lines = [title, "─" * min(display_width(title), style.width), *_wrapped(each.doc, style), "", "Facts"]
    lines.append(f"    confidence {each.confidence.name.lower()}; since {each.since}; on {', '.join(each.platforms)}")
    if each.options:
        lines += ["", f"Options (traceanalyze.toml, table rules.{each.slug})"]
        lines += [f"    {name} = {option.default}    # {option.source}" for name, option in each.options.items()]
    advice = [words.messages[f"advice_{key}.{platform}"] for key in each.advice for platform in each.platforms]
    return "\n".join([*lines, "", "Advice", *(style.wrap(text, indent="    ") for text in dict.fromkeys(advice))])


def _wrapped(doc: str, style: Style) -> Iterator[str]:
    """Paragraphs, which are lines of one indent, broken at the width."""
    for indent, lines in groupby(_SOURCE.sub("", doc).splitlines(), key=_indent):
        text = " ".join(line.strip() for line in lines)
        yield "" if indent is None else style.wrap(text, indent=" " * indent)


def _indent(line: str) -> int | None:
    return len(line) - len(line.lstrip()) if line.strip() else None
