"""Text of a trace as a page may hold it: always text, never markup."""

from __future__ import annotations

import html
import json
import re

_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:%|s|ms|µs|ns|B|[kMG]B|[KMG]iB)(?!\w))")


def safe(text: str) -> str:
    """Text for element contents and quoted attributes; characters that could steer the page are shown as such."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _shown(char) for char in text)
    return html.escape(text, quote=True)


def sentence(text: str) -> str:
    """The same of running text, which must not break between a number and its unit."""
    return _NUMBER_AND_UNIT.sub("&nbsp;", safe(text))


def _shown(char: str) -> str:
    return " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"


def element(tag: str, content: str, **attributes: str | None) -> str:
    """An element around contents that are safe already; attributes are made so, those that are None left out."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{safe(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{given}>{content}</{tag}>"


def data(value: object) -> str:
    """JSON that stands in a script element: no `<`, so that nothing in it ends the element or opens another."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    escaped = text.replace("<", "\\u003c")
    return f'<script type="application/json">{escaped}</script>'
