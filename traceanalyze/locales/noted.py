"""Notes of the readers in another language: known again by their English wording, told by that of the language.

The readers word what they note themselves, because a note is also written to logs and to JSON. One that is not known
here stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from traceanalyze.locales.en.notes import NOTES
from traceanalyze.model.patterns import regex

_PLACEHOLDER = regex(r"\{(\w+)\}")


def noted(text: str, words: Mapping[str, str]) -> str:
    """A note in the wording of `words`, which holds the templates of a language by their keys."""
    for key, pattern in _patterns():
        found = pattern.fullmatch(text)
        if found is not None and key in words:
            return words[key].format(**found.groupdict())
    return text


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Keys and patterns; each value of a template is any text, as short as possible."""
    return tuple((key, re.compile(_pattern(template), re.DOTALL)) for key, template in NOTES.items())


def _pattern(template: str) -> str:
    pieces = _PLACEHOLDER.split(template)
    return "".join(f"(?P<{piece}>.+?)" if place % 2 else re.escape(piece) for place, piece in enumerate(pieces))
