"""Catalogues of the other languages: `python -m tests.catalogues` brings them up to date and lists what is to be done.

Every English text becomes an entry; where it has changed since it was translated, the entry is marked as fuzzy, which
keeps its translation for whoever looks through it; the tool speaks English until then. What is gone goes there, too.
With `--list` nothing is written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Iterator
from pathlib import Path

import traceanalyze.locales
from tests.declared import OF_COLUMNS, declared, declared_tables
from traceanalyze.locales import LANGUAGES, Entry, entries
from traceanalyze.rules.registry import own_rules
from traceanalyze.rules.rule import HEADINGS

BY_TEXT = ("phrases", "help")
"""Kinds whose entries have the English text for a key."""
FOLDER = Path(traceanalyze.locales.__file__).parent
_HEADER = 'msgid ""\nmsgstr "Language: {language}\\nContent-Type: text/plain; charset=UTF-8\\n"\n'


def english_texts(known: Container[str] = ()) -> dict[str, str]:
    """Context → English text of all that can be translated, in the order of catalogues; `known` are contexts in use."""
    rules = own_rules().values()
    found = {}
    for kind, written in traceanalyze.locales.english().items():
        own = {} if kind in {"messages", "checks"} else declared(kind)
        texts = dict(_of_columns(kind, known)) if kind in OF_COLUMNS else _in_context(kind, own)
        found |= texts | _in_context(kind, written)
    for key, text in declared("sentences").items():
        found[f"checks.{key}" if f"checks.{key}" in known else f"messages.{key}"] = text
    found |= {f"headings.{name}": name for name in HEADINGS}
    for rule in rules:
        found |= {f"pages.{rule.id}.{name}": text for name, text in sections(rule.doc).items()}
    found |= {f"{kind}.{text}": text for kind in BY_TEXT for text in declared(kind)}
    return found | {f"sources.{each.source}": each.source for rule in rules for each in rule.options.values()}


def _in_context(kind: str, texts: dict[str, str]) -> dict[str, str]:
    return {f"{kind}.{key}": text for key, text in texts.items()}


def _of_columns(kind: str, known: Container[str]) -> Iterator[tuple[str, str]]:
    """Headings or meanings of columns: once for all tables, and for the column of one table that has its own."""
    general: dict[str, str] = {}
    for table in declared_tables():
        for column in table.columns:
            own, text = f"{kind}.{table.key}.{column.key}", OF_COLUMNS[kind](column)
            if text and (own in known or general.setdefault(column.key, text) != text):
                yield own, text
            elif text:
                yield f"{kind}.{column.key}", text


def sections(page: str) -> dict[str, str]:
    """Heading → text of a rule's docstring, a line a paragraph; its first line is the summary."""
    found: dict[str, list[str]] = {"Summary": []}
    for line in page.splitlines():
        if line in HEADINGS:
            found[line] = []
        else:
            found[list(found)[-1]].append(line.strip())
    return {name: " ".join(lines).strip() for name, lines in found.items()}


def updated(language: str) -> dict[str, Entry]:
    """Context → entry of the catalogue as it should be."""
    before, now = entries(language), {}
    places = {context: place for place, context in enumerate(before)}
    for context, text in english_texts(before).items():
        known = before.get(context, Entry(text))
        changed = known.fuzzy or (known.english != text and known.translated != "")
        now[context] = Entry(text, known.translated, changed)
    # Entries stay where they are, so that changes of several people can be merged; new ones come last of their kind.
    kinds = {
        kind: place
        for place, kind in enumerate(dict.fromkeys(context.partition(".")[0] for context in (*before, *now)))
    }
    order = sorted(now, key=lambda each: (kinds[each.partition(".")[0]], places.get(each, len(places))))
    return {context: now[context] for context in order}


def to_do(language: str) -> Iterator[str]:
    """Contexts of the texts that are not translated, and of those whose English has changed since."""
    for context, entry in updated(language).items():
        if entry.fuzzy:
            yield f"{context} (English has changed)"
        elif not entry.translated and entry.english:
            yield context


def catalogue_text(language: str, texts: dict[str, Entry]) -> str:
    """The catalogue as a file has it."""
    blocks = [_HEADER.format(language=language)]
    for context, entry in texts.items():
        kind, _, key = context.partition(".")
        shown = kind if key == entry.english and kind in BY_TEXT else context
        strings = (json.dumps(each, ensure_ascii=False) for each in (shown, entry.english, entry.translated))
        flags = "#, fuzzy\n" if entry.fuzzy else ""
        blocks.append("{}msgctxt {}\nmsgid {}\nmsgstr {}\n".format(flags, *strings))
    return "\n".join(blocks)


if __name__ == "__main__":
    for each in LANGUAGES[1:]:
        print("\n".join(f"{each}: {text}" for text in to_do(each)) or f"{each}: all texts are translated")
        if "--list" not in sys.argv:
            (FOLDER / f"{each}.po").write_text(catalogue_text(each, updated(each)), encoding="utf-8")
