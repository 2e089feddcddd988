"""Texts of the tool by language: English stands in modules, every other language is a gettext catalogue beside them.

An entry's context is the kind of text and its key (`columns.op`), or the kind alone where English is the key
(`phrases`); its id is the English text. What a language lacks stays English. `python -m tests.catalogues` brings the
catalogues up to date.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

from traceanalyze.errors import UsageError
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Sentence, Table

_ByKey = Mapping[str, str]
_FINDING = "{rule}: {text}"
_UNIT = regex("_(ns|bytes)$")
_FOLDER = Path(__file__).parent
LANGUAGES = ("en", *sorted(path.stem for path in _FOLDER.glob("*.po")))
"""The first has every text."""
_ENTRY = regex(r'^((?:#.*\n)*)msgctxt "(.*)"\nmsgid "(.*)"\nmsgstr "(.*)"$', re.MULTILINE)
_FUZZY = regex("^#,.*fuzzy", re.MULTILINE)


class Entry(NamedTuple):
    """A text of a catalogue."""

    english: str
    translated: str = ""
    fuzzy: bool = False
    """English has changed since it was translated."""


class Texts(NamedTuple):
    """Everything a renderer says in one language; placeholders are in braces."""

    tables: Mapping[str, str]
    """Table key → title."""
    columns: Mapping[str, str]
    """Column key → heading, without its unit; `table.column` where a table needs a heading of its own."""
    terms: Mapping[str, str]
    """Words of the tool: parts, causes, classes, kinds."""
    meanings: Mapping[str, str]
    """`table.term` → what the term means, one short line."""
    column_meanings: Mapping[str, str]
    """Column key → what it holds; `table.column` where a table means something of its own by it."""
    messages: Mapping[str, str]
    """Verdicts, notes and phrases of the layout."""
    checks: Mapping[str, str]
    """Data-quality checks."""
    reasons: Mapping[str, str]
    """Why a number was not measured."""
    hints: Mapping[str, str]
    """Reason → what to record so that it is measured."""
    phrases: Mapping[str, str]
    """What `Phrase`s say (errors, notes of readers), by their English templates."""
    levels: Mapping[str, str]
    language: str = LANGUAGES[0]
    """Its code, as in the `lang` of a page."""

    def heading(self, table: Table, column: Column) -> str:
        """Heading of a table's column, without its unit: translated, as declared, or what its key says."""
        known = self.columns.get(f"{table.key}.{column.key}") or self.columns.get(column.key)
        return known or heading_of(column)

    def meaning(self, table: Table, column: Column) -> str:
        """What a column of a table holds; nothing where that is not written down."""
        known = self.column_meanings
        return known.get(f"{table.key}.{column.key}") or known.get(column.key) or column.meaning

    def title(self, table: Table, *, one: bool = False) -> str:
        """Title of a table with its placeholders; `one`: where there is only one step."""
        single = (self.tables.get(f"{table.key}_one") or table.title_one) if one else ""
        return single or self.tables.get(table.key) or table.title


def heading_of(column: Column) -> str:
    """English heading of a column: as declared, or what its key says."""
    return column.heading or _UNIT.sub("", column.key).replace("_", " ")


class _Known(dict[str, str]):
    """Texts by key; what is not among them has its English with it."""

    def __missing__(self, key: str) -> str:
        if isinstance(key, Sentence):
            return key.english
        raise KeyError(key)


KINDS = tuple(name for name in Texts._fields if name != "language")
"""A module of English has those it needs, in capitals: TABLES, COLUMNS, TERMS …"""

_OF_RULES: dict[str, dict[str, str]] = {"rule_titles": {}, "rule_sentences": {}, "rule_advice": {}, "rule_evidence": {}}
"""English of rules by kind, known from when they are loaded."""
_MADE: dict[str, Texts] = {}


def texts(language: str = LANGUAGES[0]) -> Texts:
    """The texts of a language; what is not translated yet is English, so that no report breaks for want of a word."""
    if language not in LANGUAGES:
        raise UsageError("no texts in '{language}'; this version speaks: {languages}", language, ", ".join(LANGUAGES))
    if language not in _MADE:
        fallback, own = spoken(LANGUAGES[0]), spoken(language)
        known = {kind: _Known(fallback[kind] | own[kind]) for kind in KINDS}
        _MADE[language] = Texts(**known, language=language)
    return _MADE[language]


def add_rule_texts(*, titles: _ByKey, sentences: _ByKey, advice: _ByKey, evidence: _ByKey) -> None:
    """Add English that stands beside the code of rules; what is said already stays."""
    said = (titles, sentences, advice, evidence)
    for kind, more in zip(_OF_RULES, said, strict=True):
        _OF_RULES[kind] = {**more, **_OF_RULES[kind]}
    for kind, derived in _of_rules(*said, finding=_FINDING).items():
        for each in _MADE.values():
            known = getattr(each, kind)
            known.update({key: text for key, text in derived.items() if key not in known})


def spoken(language: str) -> dict[str, dict[str, str]]:
    """What a language says, by kind."""
    written = english() if language == LANGUAGES[0] else catalogue(language)
    found = {kind: dict(written.get(kind, {})) for kind in KINDS}
    # Checks are sentences like others; only catalogues tell those apart that were checks before.
    found["checks"] = found["messages"] | found["checks"]
    rules = [written.get(kind, {}) for kind in _OF_RULES]
    for kind, more in _of_rules(*rules, finding=found["messages"].get("finding_other", _FINDING)).items():
        found[kind] |= more
    # Tables say in cells why something could not be judged.
    found["terms"] |= {f"reason_{key}": text for key, text in found["reasons"].items()}
    return found


def english() -> dict[str, dict[str, str]]:
    """What English modules and the rules loaded so far say, by kind."""
    found: dict[str, dict[str, str]] = {kind: {} for kind in KINDS} | _OF_RULES
    package = import_module(f"{__name__}.{LANGUAGES[0]}")
    for each in iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{each.name}")
        for kind in KINDS:
            found[kind] |= getattr(module, kind.upper(), {})
    return found


@lru_cache(maxsize=len(LANGUAGES))
def catalogue(language: str) -> Mapping[str, Mapping[str, str]]:
    """What the catalogue of a language says, by kind; English has none.

    Beside the texts of `KINDS` and of rules: `headings` of their pages, `pages` by `rule.heading`, and `sources` of the
    defaults of options. Entries marked as fuzzy are left out.
    """
    found: dict[str, dict[str, str]] = {}
    for context, entry in entries(language).items():
        if entry.translated and not entry.fuzzy:
            kind, _, key = context.partition(".")
            found.setdefault(kind, {})[key] = entry.translated
    return found


def entries(language: str) -> dict[str, Entry]:
    """Kind and key → entry of the catalogue of a language; none where it has no catalogue."""
    path = _FOLDER / f"{language}.po"
    # Strings may be broken over several lines.
    text = path.read_text(encoding="utf-8").replace('"\n"', "") if path.exists() else ""
    found = {}
    for comments, *strings in _ENTRY.findall(text):
        context, english, translated = map(_unescaped, strings)
        key = context if "." in context else f"{context}.{english}"
        found[key] = Entry(english, translated, _FUZZY.search(comments) is not None)
    return found


def _unescaped(text: str) -> str:
    return str(json.loads(f'"{text}"')) if "\\" in text else text


def _of_rules(
    titles: _ByKey, sentences: _ByKey, advice: _ByKey, evidence: _ByKey, *, finding: str
) -> dict[str, dict[str, str]]:
    """Texts of rules by kind, under the keys that reports ask for."""
    terms = {f"rule_{key}": text for key, text in titles.items()}
    terms |= {f"evidence_{key}": text for key, text in evidence.items()}
    messages = {
        f"finding_{key}": finding.format(rule=key.partition("_")[0], text=text) for key, text in sentences.items()
    }
    for key in {name.partition(".")[0] for name in advice}:
        for platform in ("cuda", "ascend"):
            text = advice.get(f"{key}.{platform}", advice.get(key, ""))
            messages[f"advice_{key}.{platform}"] = f"→ {text}"
            terms[f"do_{key}.{platform}"] = text
    return {"terms": terms, "messages": messages}


def rule_doc(language: str, code: str) -> str:
    """The page of a rule, laid out like a docstring with a line a paragraph; empty where its docstring is all there is.

    A catalogue has the sections by their English headings, the first line as `Summary`.
    """
    known = catalogue(language)
    pages = known.get("pages", {})
    if f"{code}.Summary" not in pages:
        return ""
    sections = [(title, pages.get(f"{code}.{name}", "")) for name, title in known["headings"].items()]
    texts = [pages[f"{code}.Summary"], "", *(f"{title}\n    {text}" for title, text in sections if text)]
    return "\n".join((*texts[:-1], "", texts[-1]))


def option_sources(language: str) -> Mapping[str, str]:
    """Where defaults of options come from, by the wording of the rules; one that is not known here stays as it is."""
    return catalogue(language).get("sources", {})
