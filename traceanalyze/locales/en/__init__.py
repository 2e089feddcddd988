"""English texts. Keys are shared by all languages; values are what people read."""

from traceanalyze.locales.en import (
    caveats,
    cluster,
    compare,
    gate,
    headings,
    meanings,
    memory,
    overlay,
    rules,
    sentences,
    terms,
)
from traceanalyze.locales.en.terms import LEVELS

TABLES = headings.TABLES | compare.TABLES | cluster.TABLES | memory.TABLES | rules.TABLES
COLUMNS = headings.COLUMNS | compare.COLUMNS | cluster.COLUMNS | memory.COLUMNS | rules.COLUMNS
COLUMN_MEANINGS = (
    meanings.COLUMN_MEANINGS
    | compare.COLUMN_MEANINGS
    | cluster.COLUMN_MEANINGS
    | memory.COLUMN_MEANINGS
    | rules.COLUMN_MEANINGS
)
TERMS = terms.TERMS | compare.TERMS | cluster.TERMS | caveats.TERMS | memory.TERMS | rules.TERMS | overlay.TERMS
MEANINGS = meanings.MEANINGS | memory.MEANINGS
MESSAGES = (
    sentences.MESSAGES
    | compare.MESSAGES
    | cluster.MESSAGES
    | caveats.MESSAGES
    | memory.MESSAGES
    | rules.MESSAGES
    | overlay.MESSAGES
    | gate.MESSAGES
)
CHECKS = sentences.CHECKS | memory.CHECKS
REASONS = (
    sentences.REASONS
    | compare.REASONS
    | cluster.REASONS
    | caveats.REASONS
    | memory.REASONS
    | rules.REASONS
    | overlay.REASONS
    | gate.REASONS
)
HINTS = sentences.HINTS | memory.HINTS

__all__ = [
    "CHECKS",
    "COLUMNS",
    "COLUMN_MEANINGS",
    "HINTS",
    "LEVELS",
    "MEANINGS",
    "MESSAGES",
    "REASONS",
    "TABLES",
    "TERMS",
]
