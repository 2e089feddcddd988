"""`traceanalyze rule`: what a rule finds, why it costs time and what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyze.errors import Phrase, UsageError
from traceanalyze.locales import LANGUAGES, Texts

if TYPE_CHECKING:
    from traceanalyze.report.console.style import Style
    from traceanalyze.rules.rule import Rule

DEFINITIONS = Path(__file__).parents[1] / "definitions.md"


def rule(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="RULE…", help="Id (DAT101), slug (loader-wait) or family (DAT).")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="List all rules.")] = False,
    definitions: Annotated[bool, typer.Option("--definitions", help="Print how every number is defined.")] = False,
    lang: Annotated[str, typer.Option(metavar="LANG", help="Language: en or zh.")] = "en",
) -> None:
    """Explain rules: what they find, how it is measured, their options."""
    from traceanalyze import plugins
    from traceanalyze.locales import texts
    from traceanalyze.report.console.style import style_for
    from traceanalyze.rules.registry import chosen, every_rule

    if [every, definitions, bool(names)].count(True) != 1:
        raise UsageError("give the rules to explain, --all for a list, or --definitions: one of these")
    words = texts(lang)
    if definitions:
        if lang != LANGUAGES[0]:
            typer.echo(words.messages["rule_definitions"], err=True)
        typer.echo(DEFINITIONS.read_text(encoding="utf-8"), nl=False)
        return
    rules = every_rule()
    for note in plugins.notes():
        typer.echo(Phrase("note: {note}", note).said(words.phrases), err=True)
    if every:
        typer.echo("\n".join(f"{each.id}  {each.slug:24}  {_title(each, words)}" for each in rules))
        return
    wanted = chosen(rules, names or (), ())
    style = style_for(sys.stdout)
    typer.echo("\n\n".join(_explained(each, words, style) for each in wanted))


def _title(each: Rule, words: Texts) -> str:
    return words.terms.get(f"rule_{each.id}") or each.doc.partition("\n")[0]


def _explained(each: Rule, words: Texts, style: Style) -> str:
    from traceanalyze.report.console.style import display_width

    title = f"{each.id} {each.slug}: {_title(each, words)}"
    lines = [title, "─" * min(display_width(title), style.width), *_wrapped(_document(each, words), style)]
    said = words.messages
    lines += ["", said["rule_facts"], f"    {_facts(each, words)}"]
    if each.options:
        lines += ["", said["rule_options"].format(slug=each.slug), *_options(each, words)]
    advice = dict.fromkeys(said[f"advice_{key}.{platform}"] for key in each.advice for platform in each.platforms)
    if advice:
        lines += ["", said["rule_advice"], *(style.wrap(text, indent="    ") for text in advice)]
    return "\n".join(lines)


def _facts(each: Rule, words: Texts) -> str:
    return words.messages["rule_facts_line"].format(
        confidence=words.terms[f"confidence_{each.confidence.name.lower()}"],
        since=each.since,
        platforms=words.messages["list_mark"].join((*each.platforms, *(("cpu",) if each.host is not None else ()))),
    )


def _options(each: Rule, words: Texts) -> Iterator[str]:
    from traceanalyze.locales import option_sources

    known = option_sources(words.language)
    for name, option in each.options.items():
        yield f"    {name} = {option.default}    # {known.get(option.source, option.source)}"


def _document(each: Rule, words: Texts) -> str:
    """In the language of the texts where it is written in it; rules of others are told as they tell themselves."""
    from traceanalyze.locales import rule_doc

    return rule_doc(words.language, each.id) or each.doc


def _wrapped(doc: str, style: Style) -> Iterator[str]:
    """Paragraphs, which are lines of one indent, broken at the width."""
    from traceanalyze.report.console.style import joined

    for indent, lines in groupby(doc.splitlines(), key=_indent):
        text = joined(line.strip() for line in lines)
        yield "" if indent is None else style.wrap(text, indent=" " * indent)


def _indent(line: str) -> int | None:
    return len(line) - len(line.lstrip()) if line.strip() else None
