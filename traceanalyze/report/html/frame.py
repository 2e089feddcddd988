"""What every page has around its contents: policy, style, list of contents, script."""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files

from traceanalyze.locales import Texts
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import sentences
from traceanalyze.report.format import printable

_SAY = sentences(
    page_rows_all="All rows",
    page_search="Search in this table",
    page_search_help="a word, or a number with < or >",
    page_column="Column to search in",
    page_column_every="every column",
    page_rows_found="{count} of {all} rows",
    page_copy="Copy",
    page_copied="Copied",
    page_zoom_in="Zoom in",
    page_zoom_out="Zoom out",
    page_zoom_all="Everything",
    page_to_finding="Back to the finding",
    excerpt_several="{count} events, busy {busy}; the longest: {name}",
    excerpt_several_unnamed="{count} intervals, {busy} in all",
)
"""What the script says."""
_OPTION = regex(r"(?<![\w-])--[a-z][\w-]*")
_NUMBER_AND_UNIT = regex(r"(?<=\d) (?=(?:%|s|ms|µs|ns|B|[kMG]B|[KMG]iB)(?!\w))")


def safe(text: str) -> str:
    """Text for element contents and quoted attributes; characters that could steer the page are shown as such."""
    return html.escape(printable(text), quote=True)


def sentence(text: str) -> str:
    """The same of running text, which must not break between a number and its unit, nor in an option."""
    return _OPTION.sub(r'<span class="option">\g<0></span>', _NUMBER_AND_UNIT.sub("&nbsp;", safe(text)))


def element(tag: str, content: str, **attributes: str | None) -> str:
    """An element around contents that are safe already; attributes are made so, those that are None left out."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{safe(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{given}>{content}</{tag}>"


def folded(summary: str, content: str, **attributes: str | None) -> str:
    """What is to be opened: no elements until then, but where no script runs."""
    return element("details", f"<summary>{summary}</summary><noscript>{content}</noscript>", **attributes)


def aside(text: str) -> str:
    """A remark beside a table or a picture."""
    return element("p", safe(text), class_="aside")


def data(value: object, at: str | None = None) -> str:
    """JSON that stands in a script element: no `<`, so that nothing in it ends the element or opens another."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    escaped = text.replace("<", "\\u003c")
    return element("script", escaped, type="application/json", id=at)


_LANG = {"zh": "zh-CN"}
"""Languages whose code in a page names the script as well."""

Place = tuple[int, str, str]
"""Level, target and title of a line in the list of contents."""


def document(title: str, body: str, places: Sequence[Place], *, version: str, texts: Texts) -> str:
    """A whole page; the title is plain text, the body is safe already."""
    links = "".join(f'<li class="level{level}"><a href="#{at}">{safe(name)}</a></li>' for level, at, name in places)
    contents = element("nav", f"<strong>{safe(texts.messages['page_contents'])}</strong><ol>{links}</ol>")
    words = data({key: texts.messages[said] for key, said in _SAY.items()}, "words")
    parts = ["memory.js"] if 'class="memory"' in body else []
    script = '"use strict";\n(function () {\n' + "".join(map(_asset, [*parts, "page.js"])) + "})();\n"
    style = _asset("page.css")
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
        f'<footer class="aside">{safe(version)}</footer>\n</main>\n{words}<script>{script}</script>\n</body>\n</html>\n'
    )


def _asset(name: str) -> str:
    return files("traceanalyze.report.html").joinpath(name).read_text(encoding="utf-8")
