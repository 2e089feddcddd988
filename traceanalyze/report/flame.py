"""The call paths of one rank as a picture: one self-contained SVG that opens in any browser.

Outer calls are above, inner ones below; the width of a box is its time on the device, without a device on the host.
A click zooms in, and the search marks names; both need the picture's own script, everything else works without.
"""

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr
from zlib import crc32

from traceanalyze.locales import Texts
from traceanalyze.model.table import Kind, Message, NotMeasured, Table, sentences
from traceanalyze.report.format import Formatter, printable
from traceanalyze.report.model import Report, formatter_of

_SAY = sentences(
    flame_help="Click a box to zoom in, here to zoom out.",
    flame_device="Device time by call path: {time}",
    flame_host="Host time by call path: {time}",
    flame_share="{name}: {time}, {share}",
    flame_search="Search",
    flame_found="found: ",
    flame_left_out="Too narrow to draw: {count} path(s), {share} of the time.",
)

WIDTH, ROW, TOP, MARGIN = 1200, 18, 64, 10
_INNER = WIDTH - 2 * MARGIN
_LETTER = 6.7
"""Width of a letter of the picture's font, rounded up."""
_NARROWEST = 0.1
"""Boxes narrower than this, in pixels, are left out, and said to be."""


class Box(NamedTuple):
    """A call path as a box: its name, depth, time before it and its own, ns."""

    name: str
    depth: int
    at: int
    time: int


def render(reports: Sequence[Report], texts: Texts) -> str:
    """The rank in detail of the first report, as SVG."""
    report = reports[0]
    rank = report.ranks[report.focus[0]]
    formatter = formatter_of(rank, texts)
    about = formatter.about(rank.headline, PurePath(rank.path).name)
    table = next((table for table in rank.tables if table.key == "call_paths"), None)
    rows = NotMeasured("no_host_events") if table is None else table.rows
    if table is None or isinstance(rows, NotMeasured):
        reason = rows if isinstance(rows, NotMeasured) else None
        return _picture([_line(formatter.value(Kind.TEXT, reason), 20), _line(about, 38)], TOP, script="")
    what, found = boxes(table)
    whole = sum(box.time for box in found if box.depth == 0)
    shown = [box for box in found if box.time * _INNER >= _NARROWEST * whole and box.time]
    title = formatter.message(Message(_SAY[f"flame_{what}"], (("time", Kind.DURATION, whole),)))
    head = [_line(title, 20, css="title"), _line(about, 38), _line(texts.messages[_SAY["flame_help"]], 56, css="help")]
    search, hit = (escape(texts.messages[_SAY[key]]) for key in ("flame_search", "flame_found"))
    right = WIDTH - MARGIN
    head += [
        f'<text id="search" class="help" x="{right}" y="20" text-anchor="end">{search}</text>',
        f'<text id="found" x="{right}" y="38" text-anchor="end" data-text={quoteattr(hit)}></text>',
    ]
    height = TOP + ROW * (1 + max((box.depth for box in shown), default=0)) + MARGIN
    left_out = [box for box in found if box.time and box.time * _INNER < _NARROWEST * whole]
    if left_out:
        height += ROW
        head.append(_line(_left_out(formatter, left_out, whole), height - MARGIN, css="help"))
    return _picture([*head, *(_box(box, whole, formatter) for box in shown)], height, script=_SCRIPT)


def boxes(table: Table) -> tuple[str, tuple[Box, ...]]:
    """Boxes of the call paths in drawing order, and whether their time is that of the `device` or the `host`."""
    device, host = (table.numbers(f"{side}_self_ns") for side in ("device", "host"))
    what, own = ("device", device) if any(device) else ("host", host)
    total: dict[tuple[str, ...], int] = {}
    for path, time in zip(table.column("call_path"), own, strict=True):
        names = tuple(str(path).split(";"))
        for stop in range(1, len(names) + 1):
            total[names[:stop]] = total.get(names[:stop], 0) + time
    children: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for names in total:
        children.setdefault(names[:-1], []).append(names)
    return what, tuple(_placed(total, children))


def _placed(total: dict[tuple[str, ...], int], children: dict[tuple[str, ...], list[tuple[str, ...]]]) -> Iterator[Box]:
    """Every path with what comes before it; the longest of siblings first."""
    waiting: list[tuple[tuple[str, ...], int]] = [((), 0)]
    while waiting:
        parent, at = waiting.pop()
        if parent:
            yield Box(parent[-1], len(parent) - 1, at, total[parent])
        inside = []
        for names in sorted(children.get(parent, ()), key=lambda names: (-total[names], names)):
            inside.append((names, at))
            at += total[names]
        waiting += reversed(inside)


def _left_out(formatter: Formatter, left_out: Sequence[Box], whole: int) -> str:
    """How many are too narrow, and their time; inner ones lie in the time of outer ones."""
    time, reach = 0, -1
    for box in sorted(left_out, key=lambda box: (box.at, -box.time)):
        if box.at >= reach:
            time, reach = time + box.time, box.at + box.time
    values = (("count", Kind.COUNT, len(left_out)), ("share", Kind.SHARE, time / whole))
    return formatter.message(Message(_SAY["flame_left_out"], values))


def _box(box: Box, whole: int, formatter: Formatter) -> str:
    name, x, width = _legal(box.name), box.at / whole, box.time / whole
    values = (("name", Kind.TEXT, name), ("time", Kind.DURATION, box.time), ("share", Kind.SHARE, width))
    title = escape(formatter.message(Message(_SAY["flame_share"], values)))
    left, wide, y = MARGIN + x * _INNER, width * _INNER, TOP + ROW * box.depth
    letters = int((wide - 4) / _LETTER)
    text = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 2 else ""
    return (
        f'<g class="box" data-x="{x:.9f}" data-w="{width:.9f}" data-n={quoteattr(name)}><title>{title}</title>'
        f'<rect x="{left:.2f}" y="{y}" width="{wide:.2f}" height="{ROW - 1}" fill="{_colour(name)}"/>'
        f'<text x="{left + 3:.2f}" y="{y + 13}">{escape(text)}</text></g>'
    )


def _colour(name: str) -> str:
    """A warm colour of its own for each name, light enough to read on."""
    number = crc32(name.encode())
    return f"hsl({10 + number % 45},{65 + number // 64 % 25}%,{62 + number // 4096 % 14}%)"


def _legal(text: str) -> str:
    """Text without what XML cannot hold or what could steer its reader, in one line."""
    return " ".join(printable(text).split())


def _line(text: str, y: int, css: str = "") -> str:
    mark = f' class="{css}" id="{css}"' if css else ""
    return f'<text{mark} x="{MARGIN}" y="{y}">{escape(_legal(text))}</text>'


def _picture(parts: Sequence[str], height: int, *, script: str) -> str:
    body = "\n".join(parts)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
        "<metadata>traceanalyze</metadata>\n"
        f"<style>{_STYLE}</style>\n"
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n{body}\n'
        + (f"<script><![CDATA[{script}]]></script>\n" if script else "")
        + "</svg>\n"
    )


_STYLE = (
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}"
    ".title{font-size:14px;font-weight:bold}.help{fill:#57606a;cursor:pointer}.box{cursor:pointer}"
    ".box text{pointer-events:none}.box rect{stroke:#ffffff;stroke-width:.5}.hit rect{fill:#a371f7}"
)
_SCRIPT = f"""
(function () {{
  var inner = {_INNER}, margin = {MARGIN}, letter = {_LETTER};
  var boxes = [].slice.call(document.querySelectorAll('.box')).map(function (g) {{
    return {{g: g, x: +g.dataset.x, w: +g.dataset.w, name: g.dataset.n,
      rect: g.querySelector('rect'), text: g.querySelector('text')}};
  }});
  function zoom(x, w) {{
    boxes.forEach(function (b) {{
      var left = Math.max((b.x - x) / w, 0), right = Math.min((b.x + b.w - x) / w, 1);
      var wide = (right - left) * inner, letters = Math.floor((wide - 4) / letter);
      b.g.style.display = wide > 0.05 ? '' : 'none';
      if (wide <= 0.05) return;
      b.rect.setAttribute('x', margin + left * inner);
      b.rect.setAttribute('width', wide);
      b.text.setAttribute('x', margin + left * inner + 3);
      b.text.textContent = b.name.length <= letters ? b.name
        : letters > 2 ? b.name.slice(0, letters - 1) + '\\u2026' : '';
    }});
  }}
  boxes.forEach(function (b) {{ b.g.addEventListener('click', function () {{ zoom(b.x, b.w); }}); }});
  document.getElementById('help').addEventListener('click', function () {{ zoom(0, 1); }});
  document.getElementById('search').addEventListener('click', function () {{
    var word = window.prompt(this.textContent) || '', reach = 0, sum = 0;
    boxes.forEach(function (b) {{
      var hit = word !== '' && b.name.toLowerCase().indexOf(word.toLowerCase()) >= 0;
      b.g.setAttribute('class', hit ? 'box hit' : 'box');
    }});
    boxes.filter(function (b) {{ return b.g.getAttribute('class') === 'box hit'; }})
      .sort(function (a, b) {{ return a.x - b.x || b.w - a.w; }})
      .forEach(function (b) {{ if (b.x >= reach - 1e-9) {{ sum += b.w; reach = b.x + b.w; }} }});
    var found = document.getElementById('found');
    found.textContent = word === '' ? '' : found.dataset.text + (100 * sum).toFixed(1) + ' %';
  }});
}})();
"""
