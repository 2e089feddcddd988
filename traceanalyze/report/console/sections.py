"""What stands on a screen: sections of a report whose items are in the order in which they are told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from statistics import median
from typing import NamedTuple

from traceanalyze.locales import Texts
from traceanalyze.model.table import NUMBERS, Between, Kind, Message, NotMeasured, Quantity, Table, sentences
from traceanalyze.model.vocabulary import Level
from traceanalyze.report.console.full import ANSWER_COLOURS, Printer
from traceanalyze.report.console.style import Style, display_width
from traceanalyze.report.console.tables import compact, pick
from traceanalyze.report.finding import Finding
from traceanalyze.report.format import formatter_over, printable
from traceanalyze.report.model import Doubt, RankReport, Report
from traceanalyze.report.view import View, compared

_SAY = sentences(
    screen_todo="What to do, by what it saves",
    screen_todo_unpriced="What to do",
    screen_together="together they save {saving} {per} ({share})",
    screen_saves="saves {saving} {per} ({share})",
    screen_costs="costs {saving} {per} ({share})",
    screen_unknown="saving not measured",
    screen_once="done once, so nothing {per}",
    screen_nothing="The rules found nothing.",
    screen_sum="{title}: {sum}",
    screen_more="and {count} more",
    screen_more_findings="and {count} more: {rules}",
    screen_notes="{count} note(s)",
    screen_trust="Not certain, or not measured",
    screen_warnings="{count} more warning(s)",
    screen_missing="{count} more reason(s) why something was not measured",
    screen_hints="{count} hint(s) on what to record",
    screen_sentences="{text} (and {count} more sentence(s))",
    screen_devices="and {count} more in detail",
)
_BESIDE = ("ranks", "whatif", "gate_metrics")
"""Tables of what is put side by side."""
_PARTS = ("split", "overall_metrics", "step_difference", "gate_parts", "whatif_split", "memory_categories")
"""What the step or the peak consists of; the first there is."""
_WORK = ("slower", "faster", "gate_reasons", "memory_change", "memory_at_peak", "kernels", "operators")
"""What takes most of it; the first there is, of a comparison both."""
_FOUND = ("findings", "rank_findings", "memory_findings", "run_causes", "actions", "not_judged")
"""What is told as a list of what to do, or of what is missing."""
_LOST = frozenset({"cut_short", "lost_events", "lost_data", "rank_cut", "ranks_cut", "files_lost", "files_cut"})
"""Sentences that say that data was lost."""
_TOLD = frozenset({"do_first", "do_next", "limits_next", "limits_then"})
"""Sentences of a verdict that the list of what to do has, too."""
_DOUBTS = frozenset({"run_note", "recording_note"})
"""Notes on the input that are doubts; others say what is shown."""
_CAPTURE = "CAP"
"""Rules about the recording itself, whose findings are among the checks."""
_SMALL = 0.005
"""Share of the whole below which a part is not worth a row."""
_SEVERITIES = {"high": "red", "medium": "yellow", "low": "cyan"}


class Section(NamedTuple):
    """A part of the screen."""

    name: str
    heads: tuple[str, ...]
    items: Sequence[tuple[str, ...]]
    """Lines of each, in the order in which they are read."""
    more: Callable[[Sequence[int]], str]
    """What is said of items that have no room; of none of them, what is always counted."""
    brief: Sequence[str] = ()
    """One line for each where there is no room for all of its lines."""
    order: Sequence[int] = ()
    """Places of items, the most telling first; as they stand where it is empty."""
    foot: tuple[str, ...] = ()
    """A total."""
    least: int = 4
    fair: int = 8
    most: int = 99

    @property
    def whole(self) -> list[str]:
        """All of its lines."""
        return [*self.heads, *chain(*self.items), *filter(None, [self.more(())]), *self.foot]

    def within(self, room: int) -> list[str]:
        """At most so many lines of it."""
        if len(self.whole) <= room:
            return self.whole
        heads = self.heads if room > len(self.heads) + 1 else ()
        left = room - len(heads) - 1 - len(self.foot)
        chosen: dict[int, tuple[str, ...]] = {}
        order, short = list(self.order or range(len(self.items))), False
        for place, index in enumerate(order):
            # Those that follow are at least to be named.
            follow = min(len(order) - place - 1, 2) if self.brief else 0
            short = short or len(self.items[index]) + follow > left
            lines = (self.brief[index],) if short and self.brief else self.items[index]
            if len(lines) > left:
                break
            chosen[index] = lines
            left -= len(lines)
        rest = self.more([index for index in order if index not in chosen])
        return [*heads, *chain(*(chosen[index] for index in sorted(chosen))), *filter(None, [rest]), *self.foot]


class Sections:
    """The parts of a report in one language, for a place of some width."""

    def __init__(self, report: Report, texts: Texts, style: Style, *, alone: bool = True) -> None:
        self.report, self.texts, self.style, self.alone = report, texts, style, alone
        self.formatter = formatter_over(report, texts, 1)
        self.printer = Printer(self.formatter, style, View())

    @cached_property
    def _ranks(self) -> list[RankReport]:
        return [self.report.ranks[index] for index in self.report.focus]

    @cached_property
    def _findings(self) -> list[Finding]:
        """Of the ranks in detail and of all of them together, what is worth most first."""
        shown = {id(one) for rank in self._ranks for one in rank.said}
        hidden = {id(one) for rank in self.report.ranks for one in rank.said} - shown
        return [one.in_words(self.texts) for one in self.report.said if id(one) not in hidden]

    @cached_property
    def _told(self) -> list[Finding]:
        """Those that say what to do."""
        return [one for one in self._findings if one.severity != "note" and not one.rule.startswith(_CAPTURE)]

    @cached_property
    def _tables(self) -> dict[str, Table]:
        """Those of the whole report, by name; the two halves of a comparison's causes apart."""
        if self.report.sides:
            shown = compared(self.report, everything=False)
            return {each.key: each if isinstance(each, Table) else each.table.take(range(each.weighty)) for each in shown}
        own = self._ranks[0].tables if self._ranks else ()
        return {each.key: each for each in (*self.report.summary, *own)}

    def _say(self, key: str, *values: tuple[str, Kind, object]) -> str:
        return self.formatter.message(Message(_SAY[key], values))  # type: ignore[arg-type]

    def _counts(self, **counts: int) -> str:
        """`3 more warnings; 2 notes`; nothing of what there is none of."""
        found = [self._say(f"screen_{key}", ("count", Kind.COUNT, count)) for key, count in counts.items() if count]
        return self._dim(self.texts.messages["group_mark"].join(found))

    def _dim(self, text: str) -> str:
        return self.style.paint("".join(self.style.clip(text, 1)), "dim")

    def _title(self, text: str) -> str:
        return self.style.paint("".join(self.style.clip(printable(text), 1)), "bold")

    # ---------------------------------------------------------------------------------------- what stands at the top

    def top(self, most: int, about: int) -> list[str]:
        """The verdict in so many lines, what was lost, and in so many what was recorded."""
        told, fill = {one.sentence for one in self._told}, self.formatter.message
        verdict = [each for each in self.report.verdict if each.key not in _LOST | _TOLD and fill(each) not in told]
        colour = ANSWER_COLOURS.get(self.report.answer, "bold")
        lost = [each for each in (*self.report.verdict, *self.report.notes) if each.key in _LOST]
        text = printable(self.formatter.sentences(lost))
        warned = self.style.clip(text, 3, "  ", first="! ") if lost else ()
        lines = [self.style.paint(line, colour) for line in self._paragraph(verdict, max(most - len(warned), 2))]
        return [*lines, *(self.style.paint(line, "yellow") for line in warned), *self._recorded()[:about]]

    def _paragraph(self, verdict: Sequence[Message], most: int) -> tuple[str, ...]:
        """As many sentences as there is room for; one that is longer than all of it is cut."""
        for kept in range(len(verdict), 0, -1):
            text = printable(self.formatter.sentences(verdict[:kept]))
            if kept < len(verdict):
                left = ("count", Kind.COUNT, len(verdict) - kept)
                text = self._say("screen_sentences", ("text", Kind.TEXT, text), left)
            if kept == 1 or len(self.style.wrap(text).splitlines()) <= most:
                return self.style.clip(text, most)
        return ()

    def _recorded(self) -> list[str]:
        """Sides, or the rank in detail; what else the notes say of it."""
        about = [self.printer.about(each, self.style.width // 3) for each in self._ranks[:1]]
        lines = [*chain(*(each.splitlines()[:2] for each in about)), *self.printer.sides(self.report.sides, 1)]
        for note in self.report.notes:
            if note.key not in _LOST | _DOUBTS and not note.key.startswith("details_of_"):
                lines.append(self._dim(printable(self.formatter.message(note))))
        more = len(self._ranks) - 1
        return [*lines, *([self._say("screen_devices", ("count", Kind.COUNT, more))] if more > 0 else [])]

    # ----------------------------------------------------------------------------------------------------- sections

    def sections(self) -> Iterator[Section]:
        """All of them, in the order in which they are read."""
        yield from self._first(_BESIDE, "beside", fair=6, most=11)
        yield from self._first(_PARTS, "parts", fair=0, most=11)
        yield from self._todo()
        known = {*_BESIDE, *_PARTS, *_FOUND}
        others = [key for key, table in self._tables.items() if key not in known and not table.detail and not table.plot]
        works = [key for key in (*_WORK, *others) if len(self._tables.get(key, ()))]
        for key in works[: 2 if {"slower", "faster"} <= {*works} else 1]:
            yield from self._first((key,), "work", fair=6, most=8)
        yield from self._trust()

    def few(self) -> Iterator[Section]:
        """Those that no report goes without."""
        yield from (each._replace(least=1) for each in (*self._todo(), *self._trust()))

    def _first(self, keys: Iterable[str], name: str, fair: int, most: int) -> Iterator[Section]:
        """The first of some tables that has rows."""
        table = next((self._tables[key] for key in keys if len(self._tables.get(key, ()))), None)
        if table is None:
            return
        telling = _telling(table)
        rows = [table.known_rows[at] for at in sorted(telling)]
        place = {at: place for place, at in enumerate(sorted(telling))}
        order = [place[at] for at in telling]
        title = self.formatter.title(table)
        if table.total is not None and table.bar is None:
            rows.append(table.total)
        elif table.total is not None:
            column = next(each for each in table.columns if each.kind in NUMBERS)
            amount = self.formatter.value(column.kind, (table.totals or {})[column.key])
            title = self._say("screen_sum", ("title", Kind.TEXT, title), ("sum", Kind.TEXT, amount))
        head, lines = compact(table, rows, self.formatter, self.style)

        def more(omitted: Sequence[int]) -> str:
            return self._counts(more=len(omitted))

        heads = (self._title(title), *([head] if head.strip() else []))
        fair = fair or len(heads) + 1 + _large(table)
        least = 5 if name == "beside" else 4
        items, foot = [(line,) for line in lines[: len(order)]], tuple(lines[len(order) :])
        yield Section(name, heads, items, more, order=order, foot=foot, least=least, fair=fair, most=most)

    def _todo(self) -> Iterator[Section]:
        """Findings; of a comparison where to look."""
        advice = [printable(self.formatter.message(each)) for each in self.report.remarks.get("advice", ())]
        notes = self.alone and sum(one.severity == "note" and not one.rule.startswith(_CAPTURE) for one in self._findings)

        def more(omitted: Sequence[int]) -> str:
            rules = ", ".join(dict.fromkeys(self._told[at].rule for at in omitted if self._told)) if self._told else ""
            named = self._say("screen_more_findings", ("count", Kind.COUNT, len(omitted)), ("rules", Kind.TEXT, rules))
            counted = self._counts(**({} if rules else {"more": len(omitted)}), notes=notes)
            return self._dim(self.texts.messages["group_mark"].join(filter(None, [named if rules else "", counted])))

        if advice:
            items = [self._marked(text, 2) for text in advice]
            yield Section("todo", (self._title(self.texts.messages["advice"]),), items, more, fair=7)
        elif self._told:
            items = [tuple(self._full(one)) for one in self._told]
            brief = [self._short(one) for one in self._told]
            yield Section("todo", (self._heading(),), items, more, brief, least=2 + len(items[0]), fair=14)
        elif self._ranks and not self.report.sides and self._ranks[0].tables and self._ranks[0].said:
            yield Section("todo", (self._title(self._say("screen_nothing")),), [], more)

    def _heading(self) -> str:
        """With what they save together, where that was replayed."""
        priced = any(one.saving for one in self._told)
        title = self._title(self._say("screen_todo" if priced else "screen_todo_unpriced"))
        tables = [self._tables[key] for key in ("rank_findings", "findings") if key in self._tables]
        saving = [each for each in tables if any(each.column("saving_ns"))]
        said = [note for each in saving for note in each.notes if note.key in {"together", "together_alone"}]
        if len(saving) != 1 or not said:
            return title
        return f"{title} · {self._dim(self.formatter.message(Message(_SAY['screen_together'], said[0].values)))}"

    def _mark(self, sign: str, colour: str) -> str:
        return self.style.paint(sign if self.style.unicode or sign.isascii() else "*", colour)

    def _check(self, check: Doubt) -> str:
        return self.formatter.fill(self.texts.checks[check.message.key], check.message)

    def _doubt(self, text: str, most: int, warns: bool) -> tuple[str, ...]:
        first, *others = self.style.clip(printable(text), most, "  ", first="! " if warns else "- ")
        return self._mark(first[0], "yellow" if warns else "") + first[1:], *others

    def _marked(self, text: str, most: int) -> tuple[str, ...]:
        """What to do, in the colour of advice."""
        first = "  → " if self.style.unicode else "  > "
        return tuple(self.style.paint(line, "green") for line in self.style.clip(printable(text), most, "    ", first))

    def _full(self, one: Finding) -> Iterator[str]:
        """A finding with its saving, its place and its advice."""
        first, *others = self.style.clip(printable(one.sentence), 3, "  ", first="  ")
        yield from (self._mark("●", _SEVERITIES[one.severity]) + first[1:], *others)
        where = (*one.scope.source_lines, *one.scope.operators)
        unknown = one.saving is None and one.cost_ns is not None and not one.once
        said = [one.grade, self._worth(one), one.rule, self._say("screen_unknown") if unknown else ""]
        room = self.style.width - 4 - sum(map(display_width, said)) - 3 * len(said)
        if where and room > 12:
            said.insert(2, self.style.shorten(printable(where[0]), min(room, 48)))
        yield self._dim("  " + " · ".join(filter(None, said)))
        if one.advice:
            yield from self._marked(one.advice[0], 2)

    def _short(self, one: Finding) -> str:
        said = " · ".join(filter(None, (self._worth(one), one.rule)))
        text = self.formatter.said_of([printable(one.title)], said)
        return f"{self._mark('●', _SEVERITIES[one.severity])} {''.join(self.style.clip(text, 1, first='  '))[2:]}"

    def _worth(self, one: Finding) -> str:
        """Saving with its range and share, else the cost, else how much memory."""
        if one.once:
            return self._say("screen_once")
        amount: int | None = one.cost_ns
        if one.saving is not None:
            amount, low, high = one.saving
            amount = Between.of(amount, low, high) if high - low > 0.01 * high else amount
        if amount is not None and one.share is not None:
            key = "screen_costs" if one.saving is None else "screen_saves"
            return self._say(key, ("saving", Kind.DURATION, amount), ("share", Kind.SHARE, one.share))
        return next((each.text for each in one.evidence if each.unit == "bytes"), "")

    def _trust(self) -> Iterator[Section]:
        """Doubts first, then what was not measured, by the reason."""
        fill, remarks = self.formatter.message, self.report.remarks
        checks = [each for rank in self._ranks for each in rank.checks]
        texts = [f"{each.id}: {self._check(each)}" for each in checks if each.level > Level.INFO]
        notes = len(checks) - len(texts) + len(remarks.get("quality", ())) if self.alone else 0
        said = [each for each in self.report.notes if each.key in _DOUBTS]
        said += chain(*(each for key, each in remarks.items() if key not in {"advice", "quality"}))
        texts += map(fill, said)
        count = len(texts)
        texts += self._missing()
        items, brief = ([self._doubt(text, most, at < count) for at, text in enumerate(texts)] for most in (2, 1))
        hints = len({hint for rank in self._ranks for hint in self.formatter.hints(rank)}) if self.alone else 0

        def more(omitted: Sequence[int]) -> str:
            left = sum(at < count for at in omitted)
            return self._counts(warnings=left, missing=len(omitted) - left, notes=notes, hints=hints)

        heads = (self._title(self._say("screen_trust")),) if items else ()
        if items or more(()):
            yield Section("trust", heads, items, more, [each[0] for each in brief], least=3, fair=5)

    def _missing(self) -> list[str]:
        """What was not measured: whole tables, then cells, each reason once."""
        shown = [each for key, each in self._tables.items() if not each.detail and key not in _FOUND]
        about: dict[str, dict[str, dict[str, None]]] = {}
        for table in shown:
            if table.absent is not None:
                about.setdefault(table.absent.reason, {})[_plain(self.formatter.topic(table))] = {}
        for table in shown:
            for row in pick(table, View().top, everything=False).rows:
                for column, value in zip(table.columns, row, strict=True):
                    if isinstance(value, NotMeasured) and not column.machine:
                        named = about.setdefault(value.reason, {}).setdefault(_plain(self.formatter.topic(table)), {})
                        named[self.texts.heading(table, column)] = None
        notes = self._tables["not_judged"].notes if "not_judged" in self._tables else ()
        return [*(self._reason(*each) for each in about.items()), *map(self.formatter.message, notes)]

    def _reason(self, key: str, about: dict[str, dict[str, None]]) -> str:
        """Tables, of some only the columns, and why they were not measured."""
        comma = self.texts.messages["list_mark"]
        named = [f"{title} ({comma.join(_some([*columns], 2))})" if columns else title for title, columns in about.items()]
        return self.formatter.said_of(_some(named), self.texts.reasons.get(key, key))


def _plain(title: str) -> str:
    """Without what it was taken over."""
    return title.partition(" (")[0].partition("（")[0]


def _large(table: Table) -> int:
    """How many parts of a picture with bars are worth a row."""
    shares = table.column(table.bar) if table.bar else ()
    return sum(_amount(share) >= _SMALL for share in shares) if shares else 6


def _some(titles: list[str], most: int = 2) -> list[str]:
    """The first of them, and how many there are."""
    return titles if len(titles) <= most else [*titles[:most], f"+ {len(titles) - most}"]


def _telling(table: Table) -> list[int]:
    """Places of the rows that say something, the most telling first."""
    rows = table.known_rows
    numbers = [at for at, column in enumerate(table.columns) if column.kind in NUMBERS and not column.machine]
    places = [at for at, row in enumerate(rows) if any(_says(row[index]) for index in numbers)] or list(range(len(rows)))
    if table.level is not None:
        by = table.keys.index(next(key for key in ("diff_ns", *table.keys) if key in table.keys))
        upper = [at for at in places if not table.depth(rows[at])]
        lower = [at for at in places if table.depth(rows[at]) == 1]
        return [*upper, *sorted(lower, key=lambda at: -_amount(rows[at][by]))]
    if table.bar is not None:
        by = table.keys.index(table.bar)
        largest = sorted(places, key=lambda at: -_amount(rows[at][by]))
        return [at for at in largest if isinstance(rows[at][by], NotMeasured) or _amount(rows[at][by]) >= _SMALL] or places
    if table.worst is not None:
        middle = [median(_amount(row[index]) for row in rows) for index in numbers]
        scale = [max(abs(_amount(row[index])) for row in rows) or 1 for index in numbers]

        def odd(at: int) -> float:
            cells = zip(numbers, middle, scale, strict=True)
            return -max((abs(_amount(rows[at][index]) - usual) / most for index, usual, most in cells), default=0.0)

        return sorted(places, key=odd)
    return places


def _amount(value: object) -> float:
    if isinstance(value, Quantity):
        return abs(value.number)
    return abs(float(value)) if isinstance(value, int | float) else 0.0


def _says(value: object) -> bool:
    """Whether it is worth a row: what is not known may be."""
    return isinstance(value, NotMeasured) or _amount(value) > 0
