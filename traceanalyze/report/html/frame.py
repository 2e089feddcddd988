"""What every page has around its contents: policy, style, list of contents, script."""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files

from traceanalyze.locales import Texts
from traceanalyze.model.patterns import regex
from traceanalyze.report.format import printable

_NUMBER_AND_UNIT = regex(r"(?<=\d) (?=(?:%|s|ms|µs|ns|B|[kMG]B|[KMG]iB)(?!\w))")


def safe(text: str) -> str:
    """Text for element contents and quoted attributes; characters that could steer the page are shown as such."""
    return html.escape(printable(text), quote=True)


def sentence(text: str) -> str:
    """The same of running text, which must not break between a number and its unit."""
    return _NUMBER_AND_UNIT.sub("&nbsp;", safe(text))


def element(tag: str, content: str, **attributes: str | None) -> str:
    """An element around contents that are safe already; attributes are made so, those that are None left out."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{safe(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{given}>{content}</{tag}>"


def aside(text: str) -> str:
    """A remark beside a table or a picture."""
    return element("p", safe(text), class_="aside")


def data(value: object) -> str:
    """JSON that stands in a script element: no `<`, so that nothing in it ends the element or opens another."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    escaped = text.replace("<", "\\u003c")
    return f'<script type="application/json">{escaped}</script>'


_LANG = {"zh": "zh-CN"}
"""Languages whose code in a page names the script as well."""

Place = tuple[int, str, str]
"""Level, target and title of a line in the list of contents."""


def document(title: str, body: str, places: Sequence[Place], *, version: str, texts: Texts) -> str:
    """A whole page; the title is plain text, the body is safe already."""
    links = "".join(f'<li class="level{level}"><a href="#{at}">{safe(name)}</a></li>' for level, at, name in places)
    contents = element("nav", f"<strong>{safe(texts.messages['page_contents'])}</strong><ol>{links}</ol>")
    style, script = _asset("page.css"), _asset("page.js")
    # What is not in this file is never fetched, and no other script runs, whatever a trace holds.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="{_LANG.get(texts.language, texts.language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{contents}\n<main>\n{body}\n"
        f'<footer class="aside">{safe(version)}</footer>\n</main>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def _asset(name: str) -> str:
    return files("traceanalyze.report.html").joinpath(name).read_text(encoding="utf-8")
