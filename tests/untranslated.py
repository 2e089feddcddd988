"""What other languages do not say yet, so that it stays English: `python -m tests.untranslated` lists it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.declared import declared
from traceanalyze.locales import KINDS, LANGUAGES, option_sources, rule_doc, spoken
from traceanalyze.rules.registry import own_rules


def untranslated(language: str) -> Iterator[str]:
    """Kind and key of each text."""
    rules = own_rules().values()
    english, other = spoken(LANGUAGES[0]), spoken(language)
    for kind in KINDS:
        ours, theirs = declared(kind) | english[kind], other[kind]
        # The meaning of a column is said for the column of one table, or for all of its name.
        general = {key.partition(".")[2] for key in (*ours, *theirs) if "." in key}
        for key in ours:
            if key not in theirs and key.partition(".")[2] not in theirs and key not in general:
                yield f"{kind} {key}"
    sources = option_sources(language)
    for rule in rules:
        if not rule_doc(language, rule.id):
            yield f"page {rule.id}"
        yield from (f"source {each.source}" for each in rule.options.values() if each.source not in sources)


if __name__ == "__main__":
    for each in LANGUAGES[1:]:
        print("\n".join(f"{each}: {text}" for text in untranslated(each)) or f"{each}: all texts are translated")
