"""English texts. Keys are shared by all languages; values are what people read."""

from traceanalyze.locales.en.headings import COLUMNS, TABLES
from traceanalyze.locales.en.meanings import COLUMN_MEANINGS, MEANINGS
from traceanalyze.locales.en.sentences import CHECKS, HINTS, MESSAGES, REASONS
from traceanalyze.locales.en.terms import LEVELS, TERMS

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
