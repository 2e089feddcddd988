"""`traceanalyze rule`: what a rule finds, why it costs time and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyze.errors import UsageError

if TYPE_CHECKING:
    from traceanalyze.locales import Texts
    from traceanalyze.rules.rule import Rule


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
    from traceanalyze.rules.registry import chosen, every_rule

    if every == bool(names):
        raise UsageError("name a rule, or give --all for the list of all rules")
    words, rules = texts(lang), every_rule()
    if every:
        typer.echo("\n".join(f"{each.id}  {each.slug:24}  {_title(each, words)}" for each in rules))
        return
    wanted = chosen(rules, names or (), ())
    typer.echo("\n\n".join(_explained(each, words) for each in wanted))


def _title(each: Rule, words: Texts) -> str:
    return words.terms.get(f"rule_{each.id}") or each.doc.partition("\n")[0]


def _explained(each: Rule, words: Texts) -> str:
    title = f"{each.id} {each.slug}: {_title(each, words)}"
    lines = [title, "─" * len(title), each.doc, "", "Facts"]
    lines.append(f"    confidence {each.confidence.name.lower()}; since {each.since}; on {', '.join(each.platforms)}")
    if each.options:
        lines += ["", f"Options (traceanalyze.toml, table rules.{each.slug})"]
        lines += [f"    {name} = {option.default}    # {option.source}" for name, option in each.options.items()]
    advice = [words.messages[f"advice_{key}.{platform}"] for key in each.advice for platform in each.platforms]
    return "\n".join([*lines, "", "Advice", *(f"    {text}" for text in dict.fromkeys(advice))])
