"""Reports as GitHub-flavoured Markdown, for issues and pull requests: the verdict, then the tables, capped."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from html import escape
from itertools import accumulate

from traceanalyze.locales import Texts
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import NUMBERS, Kind, Table
from traceanalyze.report.console.sections import TWO_SIDES, Sections
from traceanalyze.report.console.style import Style
from traceanalyze.report.console.tables import amount
from traceanalyze.report.finding import Finding
from traceanalyze.report.format import Formatter, printable, shown_columns
from traceanalyze.report.model import Report, formatter_of, formatter_over
from traceanalyze.report.view import Half, View, compared, with_columns

MAX_ROWS = 20
"""Rows of a table: a page is read, not searched; the other formats have all of them."""
_MARK = "###"
"""Level of headings of a comparison: they stand within a comment."""
_SPECIAL = regex(r"([\\`*_{}\[\]<>#|~$])")
# GitHub makes links of bare addresses, mentions and numbers of issues; an empty comment is not shown and parts them.
_LINKED = regex(r"(?P<before>@|\\#(?=\d)|:(?=//)|\bwww(?=\.))", re.IGNORECASE)
# What opens a list, a rule or a heading where a line begins; a number with its sign or its decimals does not.
_BLOCK = regex(r"^(?P<number>\d+(?=[.)](?:\s|$))|(?=[-+=](?!\d)))(?P<mark>[-+=.)])")

BRIEF_BYTES = 1_950
"""2 kB with the line of a file that says who wrote it."""
COMMENT_BYTES = 60_000
"""GitHub refuses comments of more than 65,536 characters."""
_UNMARKED = regex(r"[^\w. ]+")
_SIGNS = {"fail": "❌", "inconclusive": "⚠️", "pass": "✅"}


def render(reports: Sequence[Report], texts: Texts, view: View | None = None) -> str:
    """Reports of all runs as one document; what a gate says has room in a comment."""
    if reports[0].command == "gate":
        return _cut(_judged(reports[0], formatter_over(reports[0], texts, 1)), COMMENT_BYTES, texts)
    top = (view or View()).top
    return "\n".join(
        block
        for report in reports
        for block in (_compared(report, formatter_over(report, texts, 1), top) if report.sides else _run(report, texts))
    )


def _cut(blocks: Iterable[str], limit: int, texts: Texts) -> str:
    """As many blocks as there is room for; each stays valid wherever the text ends."""
    cut = f"\n_{texts.messages['gate_cut']}_\n"
    kept: list[str] = []
    used = len(cut.encode())
    for block in blocks:
        used += len(block.encode()) + 1
        if used > limit:
            return "\n".join([*kept, cut])
        kept.append(block)
    return "\n".join(kept)


def plain(text: str) -> str:
    """Text on one line that is neither markup nor a link, whatever a trace holds."""
    escaped = _SPECIAL.sub(r"\\\1", " ".join(printable(text).split()).replace("&", "&amp;"))
    return _LINKED.sub(r"\g<before><!-- -->", _BLOCK.sub(r"\g<number>\\\g<mark>", escaped))


def _run(report: Report, texts: Texts) -> Iterator[str]:
    formatter = formatter_over(report, texts)
    yield f"# {plain(report.name)}\n"
    yield f"**{plain(formatter.sentences(report.verdict_messages))}**\n"
    for note in report.note_messages:
        yield f"{plain(formatter.message(note))}\n"
    yield from _tables(report.summary, formatter, "##")
    for number in report.focus:
        rank = report.ranks[number]
        own = formatter_of(rank, texts)
        yield f"## {plain(own.about(rank.headline, rank.path))}\n"
        if len(report.focus) > 1:
            yield f"**{plain(own.sentences(rank.verdict_messages))}**\n"
        yield from _tables(rank.tables, own, "###")
        yield from listed(texts.messages["measure_more"], own.hints(rank.hints))


def _tables(tables: Sequence[Table], formatter: Formatter, mark: str) -> Iterator[str]:
    """Those of a short view; then what was not measured, by the reason."""
    for table in tables:
        if len(table) and not (table.detail or table.plot or table.stack):
            yield from table_blocks(table, formatter, mark)
    yield from listed(formatter.texts.messages["not_measured"], formatter.absent(tables))


def table_blocks(table: Table, formatter: Formatter, mark: str) -> Iterator[str]:
    """A table under its heading, and below it what was left out, why values are missing, and its notes."""
    yield f"{mark} {plain(formatter.title(table))}\n"
    yield from _table(table, formatter)


def _table(table: Table, formatter: Formatter, most: int = MAX_ROWS) -> Iterator[str]:
    if table.in_words:
        yield from (plain(formatter.message(note)) + "\n" for note in table.notes)
        return
    shown = table.known_rows[:most]
    every = (*shown, *((table.total,) if table.total else ()))
    columns = shown_columns(table, every, formatter.resolution_ns)
    headings = ((formatter.texts.heading(table, column), unit) for _, column, _, unit in columns)
    lines = [[plain(f"{heading} ({unit})" if unit else heading) for heading, unit in headings]]
    lines.append(["---:" if column.kind in NUMBERS else "---" for _, column, *_ in columns])
    for row in every:
        cells = [plain(formatter.cell(column, row[index], unit)) for index, column, unit, _ in columns]
        cells[0] = "&emsp;" * (table.depth(row) or 0) + cells[0]
        lines.append(cells)
    yield "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"
    if len(table) > len(shown):
        yield plain(formatter.texts.messages["rows_left_out"].format(kept=len(shown), count=f"{len(table):,}")) + "\n"
    for below in (*formatter.legends(shown), *map(formatter.message, table.notes)):
        yield plain(below) + "\n"


def listed(title: str, items: Collection[str]) -> Iterator[str]:
    """Sentences as a list under a title; nothing where there are none."""
    if items:
        lines = "\n".join(f"- {plain(item)}" for item in items)
        yield f"**{plain(title)}**\n\n{lines}\n"


def _compared(report: Report, formatter: Formatter, top: int) -> Iterator[str]:
    """A comparison, for a pull request or a chat."""
    words = formatter.texts.messages
    remarks = {key: [formatter.message(each) for each in found] for key, found in report.remarks.items()}
    yield f"**{plain(formatter.sentences(report.verdict_messages))}**\n"
    yield "\n".join(_sides(report, formatter)) + "\n"
    for note in report.note_messages:
        yield f"{plain(formatter.message(note))}\n"
    yield from listed(words["caveats"], remarks["caveats"])
    for shown in compared(report, everything=False):
        if isinstance(shown, Table):
            yield from table_blocks(_major(shown), formatter, _MARK)
        else:
            yield from _causes(shown, formatter, top)
    yield from listed(words["advice"], remarks["advice"])
    yield from listed(words["not_compared"], formatter.absent(report.summary))
    yield from listed(words["quality"], remarks["quality"])


def _sides(report: Report, formatter: Formatter) -> Iterator[str]:
    for side in report.sides:
        pieces = filter(None, [side.name, *map(formatter.message, side.about)])
        yield f"- {plain(formatter.said_of([formatter.texts.messages[side.word]], ' · '.join(pieces)))}"


def _judged(report: Report, formatter: Formatter) -> Iterator[str]:
    """What a gate says: the verdict and what was judged, the rest folded away."""
    words = formatter.texts.messages
    yield f"{_MARK} {_SIGNS[report.answer]} traceanalyze gate: {plain(formatter.sentences(report.verdict_messages))}\n"
    # By this hidden line whoever comments finds the comment of before, to put this one in its place.
    side = report.sides[-1]
    yield f"<!-- traceanalyze gate: {_UNMARKED.sub('-', side.name or side.key)} -->\n"
    yield "\n".join(_sides(report, formatter)) + "\n"
    first, *rest = (each for each in compared(report, everything=False) if isinstance(each, Table))
    yield from _table(first, formatter, len(first))
    for table in rest:
        yield _folded(formatter.title(table), "\n".join(_table(_major(table), formatter)))
    for key, found in report.remarks.items():
        if found:
            yield _folded(words[key], "".join(f"- {plain(formatter.message(each))}\n" for each in found))


def _folded(title: str, inside: str) -> str:
    """To be opened; a heading is one line."""
    heading = escape(" ".join(printable(title).split()), quote=False)
    return f"<details><summary>{heading}</summary>\n\n{inside}\n</details>\n"


def _causes(half: Half, formatter: Formatter, top: int) -> Iterator[str]:
    words = formatter.texts.messages
    if not half.weighty:
        yield f"{plain(words[f'no_{half.key}'])}\n"
        return
    shown = half.first(top)
    yield from table_blocks(_major(half.table.take(range(shown))), formatter, _MARK)
    if len(half.table) > shown:
        yield plain(words["more_rows"].format(count=len(half.table) - shown, all=len(half.table))) + "\n"


def _major(table: Table) -> Table:
    """The columns that tell most."""
    return with_columns(table, [index for index, column in enumerate(table.columns) if not column.minor])


_BRIEF_RUNS = 4
"""That share a brief; of more only the number is told."""
_NAMED = 6
"""Parts of a step, or of a difference, that are worth a word."""
_WIDE = Style(width=120)


def brief(reports: Sequence[Report], texts: Texts) -> str:
    """What the runs come to in 2 kB, for a prompt, an issue or a chat.

    Of each the verdict, the parts of the step, what to do, and what was not measured; what has no room is counted.
    """
    shown = reports[:_BRIEF_RUNS]
    left = [_more(Sections(reports[0], texts, _WIDE), len(reports) - len(shown))] * (len(reports) > len(shown))
    room = (BRIEF_BYTES - sum(len(line.encode()) + 2 for line in left)) // len(shown) - 2
    return "\n\n".join([*(_in_short(report, texts, room) for report in shown), *left]) + "\n"


def _in_short(report: Report, texts: Texts, limit: int) -> str:
    sections = Sections(report, texts, _WIDE)
    formatter = sections.formatter
    head = formatter.said_of([report.name], formatter.sentences(next(filter(None, sections.verdict()))))
    advice = [formatter.message(each) for each in report.remarks.get("advice", ())]
    parts = [_parts(sections.parts, sections)] if sections.parts else []
    items = [*parts, *(_item(one, sections) for one in sections.told), *(f"- {plain(each)}" for each in advice)]
    doubts = [formatter.said_of([about], why) if about else why for about, why in sections.missing()]
    first = f"**{_clipped(head, limit // 2)}**"
    last = _counted(texts.messages["not_measured"], doubts, limit // 5, sections) if doubts else ""
    # How much has no room is said in any case.
    room = limit - sum(len(text.encode()) + 2 for text in (first, last, _more(sections, 10_000)))
    ends = accumulate(len(item.encode()) + 2 for item in items)
    kept = [item for item, end in zip(items, ends, strict=True) if end <= room]
    more = _more(sections, len(items) - len(kept)) if len(kept) < len(items) else ""
    table, points = kept[: len(parts)], kept[len(parts) :]
    return "\n\n".join(filter(None, (first, *table, "\n".join(points), more, last)))


def _more(sections: Sections, count: int) -> str:
    return plain(sections.say("more", count=(Kind.COUNT, count)))


def _counted(title: str, items: Sequence[str], limit: int, sections: Sections) -> str:
    """As many as have room, the first shortened where it alone has none; how many more there are is said."""
    formatter = sections.formatter
    for count in range(len(items), 0, -1):
        more = [sections.say("more", count=(Kind.COUNT, len(items) - count))] if count < len(items) else []
        told = formatter.said_of([title], formatter.texts.messages["group_mark"].join([*items[:count], *more]))
        if len(plain(told).encode()) <= limit:
            return plain(told)
    return " ".join([_clipped(formatter.said_of([title], items[0]), limit - _MORE), *map(plain, more)])


def _item(one: Finding, sections: Sections) -> str:
    """A finding with how sure it is, what it is worth, where it is, and the first thing to do."""
    pieces = (one.grade, sections.worth(one), *sections.places(one)[:1], one.rule)
    about = plain(" · ".join(filter(None, pieces)))
    advice = f"\n  → {_clipped(one.advice[0], _LINE)}" if one.advice else ""
    return f"- {_clipped(one.sentence or one.title, _LINE)} ({about}){advice}"


_LINE = 400
_MORE = 30
"""Bytes of how many more there are."""


def _parts(table: Table, sections: Sections) -> str:
    """The largest parts and what each takes; of two sides on both."""
    formatter = sections.formatter
    sides = next((pair for pair in TWO_SIDES if set(pair) <= set(table.keys)), None)
    keys = sides or [next(column.key for column in table.columns if column.kind in NUMBERS)]
    kinds = [table[key].kind for key in keys]
    rows = [(row[0], [row[table.keys.index(key)] for key in keys]) for row in table.known_rows if not table.depth(row)]
    rows = sorted((row for row in rows if any(map(amount, row[1]))), key=lambda row: -max(map(amount, row[1])))
    said = [
        formatter.joined((formatter.value(table.columns[0].kind, name), " → ".join(map(formatter.value, kinds, cells))))
        for name, cells in rows[:_NAMED]
    ]
    more = [sections.say("more", count=(Kind.COUNT, len(rows) - _NAMED))] if len(rows) > _NAMED else []
    listed = formatter.texts.messages["list_mark"].join([*said, *more])
    return plain(formatter.said_of([formatter.title(table)], listed))


def _clipped(text: str, limit: int) -> str:
    """Text that is no markup, in so many bytes at most; what is cut off is shown by its mark."""
    kept = text
    while len((found := plain(kept)).encode()) > limit:
        kept = kept[: min(len(kept) * 9 // 10, limit)].rstrip("… ") + "…"
    return found
