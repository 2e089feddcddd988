"""What stands on a screen: parts of a report, items in the order in which they are told, and how these share lines."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, pairwise

from traceanalyze.comparison.columns import OF_NUMBERS, PARTS_CANCEL
from traceanalyze.errors import Apart
from traceanalyze.locales import Texts
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import NUMBERS, Between, Kind, Message, NotMeasured, Table, Value, sentences
from traceanalyze.model.vocabulary import Level
from traceanalyze.report.console.fitting import Section
from traceanalyze.report.console.full import ANSWER_COLOURS, Printer
from traceanalyze.report.console.style import Style, display_width, padded
from traceanalyze.report.console.tables import SMALL, amount, compact, large, pick, telling
from traceanalyze.report.finding import Finding, Scope
from traceanalyze.report.format import printable
from traceanalyze.report.model import Report, formatter_over
from traceanalyze.report.view import View, compared

_SAY = sentences(
    screen_todo="What to do, by what it saves",
    screen_todo_costs="What to do, by what it saves or costs",
    screen_todo_unpriced="What to do",
    screen_together="together they save {saving} {per} ({share})",
    screen_saves="saves {saving} {per} ({share})",
    screen_costs="costs {saving} {per} ({share})",
    screen_unknown="saving not measured",
    screen_once="done once, no saving {per}",
    screen_nothing="The rules found nothing.",
    screen_sum="{title}: {sum}",
    screen_cells="{title} ({names})",
    screen_more="and {count} more",
    screen_no_room="Left out here: {title}",
    screen_titles="and {count} more: {titles}",
    screen_minor="Only lesser findings",
    screen_notes="{count} note(s)",
    screen_trust="Not certain, or not measured",
    screen_warnings="{count} more warning(s)",
    screen_missing="{count} more not measured",
    screen_hints="{count} hint(s) on what to record",
    screen_sentences="{text} (and {count} more sentence(s))",
    screen_devices="and {count} more in detail",
)
_BESIDE = ("incident", "ranks", "whatif", "gate_metrics")
"""Tables of what is put side by side."""
_PARTS = ("split", "overall_metrics", "step_difference", "gate_parts", "whatif_split", "memory_categories")
"""What the step, the difference or the peak consists of; the first there is."""
_LEVERS = ("memory_levers",)
"""What would make the peak smaller."""
_WORK = ("incident_timeline", "slower", "faster", "gate_reasons", "memory_at_peak", "kernels", "operators")
"""What takes most of it; the first there is, of a comparison both."""
TWO_SIDES = (("base_time_ns", "candidate_time_ns"), ("baseline_ns", "candidate_ns"), ("now_ns", "then_ns"))
"""Columns of the two sides of such a table."""
_FOUND = ("findings", "rank_findings", "memory_findings", "run_causes", "actions", "not_judged")
"""What is told as a list of what to do, or of what is missing."""
_LOST = frozenset(
    {"cut_short", "lost_events", "lost_data", "rank_cut", "ranks_cut", "files_lost", "files_cut", "unmatched"}
    | {"side_lost", "unknown_work"}
)
"""Sentences that say that data was lost, or that nothing is what the user named."""
_TOLD = frozenset({"do_first", "do_next", "limits_next", "limits_then"})
"""Sentences of a verdict that the list of what to do has, too."""
_LEFT_OUT = frozenset({"start_step", "start_steps"})
"""Sentences that say over which steps no number is taken: told whatever else has no room."""
_DOUBTS = frozenset({"run_note", "recording_note"})
"""Notes on the input that are doubts; others say what is shown."""
_LONG_WORD = regex(r"(?=[!-~]*[/\\])[!-~]{40,}")
"""Paths, which are shortened where they take half of a line."""
_OPEN = regex(r"(?<=\S) ?[(（][^()（）]*(…|\.\.\.)$")
"""What is cut within brackets."""
_LINE = regex(r"(?P<folder>(?:.*[/\\])?)(?P<file>[^/\\]+\.py)(?:\((?P<at>\d+)\): ?|:(?P<line>\d+) ?)(?P<function>.*)")
"""A line of the program as traces and as memory snapshots have it."""
_TOUCHES, _REMARK, _MISSING = -1, 1, 2
"""Weights of what is not certain: warnings have none, or as much less as they are worse."""
_CAPTURE = "CAP"
"""Rules about the recording itself, whose findings are among the checks."""
_COLOURS = {"high": "red", "medium": "yellow", "low": "cyan", "note": "dim"}
_TODO = 16
"""Lines that the list of what to do gets before other sections get more."""
_WARNED = 12
"""And what is not certain."""
_NAMED = 3
"""Findings that have a line of their own, whatever they are worth."""
_NAME = 20
"""Letters of the name of one run among others, at least."""
_ALL = 99
"""More lines than any text has."""
_PLACE = 12
"""A name that is cut shorter tells nothing."""


class Sections:
    """The parts of a report in one language, for a place of some width; with others beside it less is counted."""

    def __init__(
        self, report: Report, texts: Texts, style: Style, called: Callable[[int], str] | None = None, rows: int = 0
    ) -> None:
        """`called` is its name in so many columns, which no other report beside it has; `rows` as `View` says."""
        self.report, self.texts, self.style, self.alone, self.rows = report, texts, style, called is None, rows
        self.called = called or (lambda room: style.shorten(printable(report.name), room))
        self.formatter = formatter_over(report, texts, 1)
        self.printer = Printer(self.formatter, style, View(), {})
        self.ranks = [report.ranks[index] for index in report.focus]

    @cached_property
    def _findings(self) -> list[Finding]:
        """Of the ranks in detail and of all of them together, what is worth most first; none about the recording."""
        shown = {id(one) for rank in self.ranks for one in rank.said}
        hidden = {id(one) for rank in self.report.ranks for one in rank.said} - shown
        found = [one.in_words(self.texts) for one in self.report.said if id(one) not in hidden]
        return [one for one in found if not one.rule.startswith(_CAPTURE)]

    @cached_property
    def told(self) -> list[Finding]:
        """Those that say what to do; where there is none, lesser ones."""
        return [one for one in self._findings if one.severity != "note"] or self._findings

    @property
    def parts(self) -> Table | None:
        """What the step, the difference or the peak consists of."""
        return next((self._tables[key] for key in _PARTS if len(self._tables.get(key, ()))), None)

    @cached_property
    def _tables(self) -> dict[str, Table]:
        """Those of the whole report, by name; the two halves of a comparison's causes apart."""
        if not self.report.sides:
            return {
                each.key: each for each in (*self.report.summary, *chain(*(rank.tables for rank in self.ranks[:1])))
            }
        shown = compared(self.report, everything=False)
        return {
            each.key: each
            if isinstance(each, Table)
            else each.table.take(range(max(each.weighty, each.first(self.rows))))
            for each in shown
        }

    def say(self, key: str, **values: tuple[Kind, Value]) -> str:
        """A sentence of a screen."""
        return self.formatter.message(Message(_SAY[f"screen_{key}"], tuple((n, *each) for n, each in values.items())))

    def _counts(self, *before: str, **counts: int) -> str:
        """`3 more warnings; 2 notes`; nothing of what there is none of."""
        found = [*before, *(self.say(key, count=(Kind.COUNT, count)) for key, count in counts.items() if count)]
        return self._line(self.texts.messages["group_mark"].join(filter(None, found)), "dim")

    def _line(self, text: str, colour: str = "bold") -> str:
        return self.style.paint("".join(self.style.clip(printable(text), 1)), colour)

    def top(self, most: int, about: int) -> list[str]:
        """The verdict in so many lines, what was lost, and in so many what was recorded."""
        verdict, said = self.verdict(but=_LOST | _TOLD | _LEFT_OUT)
        lost = [each for each in (*self.report.verdict_messages, *self.report.note_messages) if each.key in _LOST]
        warned = self._marked("!", "yellow", self._said_within(lost, 4, "  "), 4, all_of_it=True) if lost else ()
        colour = ANSWER_COLOURS.get(self.report.answer, "bold")
        room = max(most - len(warned), min(most, 2))
        first = self.style.clip(self._said_within(verdict or said, room), room)
        return [*(self.style.paint(line, colour) for line in first), *warned, *self._recorded()[:about]]

    def verdict(self, but: Collection[str] = ()) -> tuple[list[Message], list[Message]]:
        """Its sentences without those that findings repeat, and with them; none of these keys."""
        told = tuple(one.sentence for one in self.told if one.sentence)
        said = [each for each in self.report.verdict_messages if each.key not in but]
        return [each for each in said if not self.formatter.message(each).endswith(told)], said

    def _said_within(self, said: Sequence[Message], most: int, indent: str = "") -> str:
        """As many sentences as there is room for, and how many more there are; the first in any case."""
        text = ""
        for kept in range(len(said), 0, -1):
            text = printable(self.formatter.sentences(said[:kept]))
            if kept < len(said):
                text = self.say("sentences", text=(Kind.TEXT, text), count=(Kind.COUNT, len(said) - kept))
            if len(self.style.clip(text, _ALL, indent, first=indent)) <= most:
                break
        return text

    def _recorded(self) -> list[str]:
        """Sides, or the rank in detail; what is left out of it, and what else the notes say of it."""
        about = [self.printer.about(each, self.style.width // 3).splitlines()[:2] for each in self.ranks[:1]]
        left_out = [self.formatter.message(each) for each in self.report.verdict_messages if each.key in _LEFT_OUT]
        notes = [each for each in self.report.note_messages if each.key not in _LOST | _DOUBTS]
        return [
            *(line for lines in about for line in lines),
            *(self.style.paint(line, "dim") for text in left_out for line in self.style.clip(printable(text), 2)),
            *self.printer.sides(self.report.sides, 1),
            *([self._counts(devices=len(self.ranks) - 1)] if len(self.ranks) > 1 else []),
            *(
                self.style.paint(line, "dim")
                for each in notes
                if each.key != "details_of_rank"
                for line in self.style.clip(printable(self.formatter.message(each)), 2)
            ),
        ]

    def sections(self) -> Iterator[Section]:
        """All of them, in the order in which they are read."""
        yield from self._first(_BESIDE, "beside", least=5, fair=6, most=11)
        yield from self._first(_PARTS, "parts", least=7, most=11)
        yield from self._todo()
        yield from self._first(_LEVERS, "work", fair=6, most=6)
        known = {*_BESIDE, *_PARTS, *_LEVERS, *_FOUND, *_WORK}
        others = [key for key, each in self._tables.items() if not (key in known or each.detail or each.plot)]
        works = [key for key in (*_WORK, *others) if len(self._tables.get(key, ()))]
        works = works[: 2 if works[1:2] == ["faster"] else 1]
        for key in works:
            yield from self._first((key,), "work", least=6 - len(works), fair=6, most=8, asked=self.rows)
        yield from self.trust()

    @property
    def title(self) -> str:
        """Name of the run among others, with what was recorded of it."""
        rule, width = ("═" if self.style.unicode else "=") * 2, self.style.width - 3
        name = self.called(width)
        texts = [name]
        for rank in self.ranks[:1]:
            # Without the name of the device, then with less of its own.
            plain = tuple((key, kind, "" if key == "device_name" else each) for key, kind, each in rank.headline.values)
            bare = Message(rank.headline.key, plain)
            short = (self.called(room) for room in range(display_width(name), _NAME, -1))
            texts = [self.formatter.about(rank.headline, name), *(self.formatter.about(bare, each) for each in short)]
        fitting = next((each for each in texts if display_width(each) <= width), texts[-1])
        return self.style.paint(f"{rule} {self.style.shorten(printable(fitting), width)}", "bold")

    @property
    def length(self) -> float:
        """Of the step, or how large the peak is."""
        table = self.parts
        at = None if table is None else next(i for i, each in enumerate(table.columns) if each.kind in NUMBERS)
        return 0.0 if table is None or at is None else sum(amount(row[at]) for row in table.known_rows)

    def few(self) -> Iterator[Section]:
        """What no run goes without that has others beside it."""
        yield from (each._replace(kept=0, least=1) for each in self._todo())

    def details(self) -> Iterator[Section]:
        """What is told of one run among others."""
        yield from self._first(_PARTS, "parts", most=6)
        yield from self._first(
            [key for key in _WORK if len(self._tables.get(key, ()))], "work", most=6, asked=self.rows
        )

    def _first(
        self, keys: Iterable[str], name: str, *, least: int = 4, fair: int = 0, most: int, asked: int = 0
    ) -> Iterator[Section]:
        """The first of some tables that has rows; so many of them are told before others get more than they need."""
        table = next((self._tables[key] for key in keys if len(self._tables.get(key, ()))), None)
        if table is None:
            return
        every = telling(table, str(self.ranks[0].rank) if self.ranks else "")
        if asked:
            # With its title, its headings, and how many more there are.
            name, fair, most = "asked", asked + 3, asked + 3
        # The others find no room whatever else is there, and need none for their names.
        first = every[: asked or most]
        places = sorted(first)
        rows, title, total = [table.known_rows[at] for at in places], self.formatter.title(table), table.total
        if total is not None and table.bar is not None:
            amount = next(at for at, column in enumerate(table.columns) if column.kind in NUMBERS)
            summed = self.formatter.value(table.columns[amount].kind, total[amount])
            title, total = self.say("sum", title=(Kind.TEXT, title), sum=(Kind.TEXT, summed)), None
        head, lines = compact(table, [*rows, *([total] if total else [])], self.formatter, self.style)
        bars = self._stacked(table)
        yield Section(
            name,
            tuple(filter(str.strip, (self._line(title), head))),
            [((line,),) for line in lines[: len(rows)]],
            lambda omitted: self._counts(more=len(omitted) + len(every) - len(first)),
            order=[places.index(at) for at in first],
            foot=(*lines[len(rows) :], *bars),
            line=self._line(self.say("no_room", title=(Kind.TEXT, title))) if name in {"work", "asked"} else "",
            kept=least + len(bars),
            least=least + len(bars),
            fair=(fair or large(table) + 3) + len(bars),
            most=most + len(bars),
        )

    def _stacked(self, table: Table) -> list[str]:
        """A bar a side of a table of parts, on one scale, and what its shades mean."""
        sides = next((pair for pair in TWO_SIDES if set(pair) <= set(table.keys)), ()) if table.key in _PARTS else ()
        rows = [row for row in table.known_rows if not table.depth(row)]
        cells = [[row[table.keys.index(side)] for row in rows] for side in sides]
        # What was not measured has no length.
        times = [[0.0 if isinstance(cell, NotMeasured) else amount(cell) for cell in side] for side in cells]
        longest = max(map(sum, times), default=0)
        if not longest:
            return []
        shades, rest = ("█▓▒░", "·") if self.style.unicode else ("#=+-", ".")
        largest = sorted(range(len(rows)), key=lambda at: -max(each[at] for each in times))[: len(shades)]
        shown = [at for at in sorted(largest) if max(each[at] for each in times) >= SMALL * longest]
        columns = [table[side] for side in sides]
        heads = [self.texts.messages[each.side] if each.side else self.texts.heading(table, each) for each in columns]
        margin = max(map(display_width, heads)) + 2
        scale, lines = (self.style.width - margin) / longest, list[str]()
        for head, each in zip(heads, times, strict=True):
            ends = [round(sum(each[at] for at in shown[:count]) * scale) for count in range(len(shown) + 1)]
            bar = "".join(shade * (end - start) for shade, (start, end) in zip(shades, pairwise(ends), strict=False))
            lines.append(padded(head, margin) + bar + rest * (round(sum(each) * scale) - len(bar)))
        terms = [self.formatter.value(Kind.TERM, rows[at][0]) for at in shown]
        words = [f"{shade} {term}" for shade, term in zip(shades, terms, strict=False)]
        legend = self.style.clip("  ".join(words), 1, first=" " * margin)
        return [*lines, self.style.paint(legend[0], "dim")]

    def _todo(self) -> Iterator[Section]:
        """Findings; of a comparison where to look."""
        told, lesser = self.told, [one for one in self._findings if one not in self.told]

        def more(omitted: Sequence[int]) -> str:
            found = [*(told[at] for at in omitted if told), *lesser * self.alone]
            titles = [self.style.shorten(printable(one.title), self.style.width // 2) for one in found]
            named = (Kind.TEXT, self._some(dict.fromkeys(titles), 4))
            return self._counts(self.say("titles", count=(Kind.COUNT, len(titles)), titles=named) if titles else "")

        advice = [self.formatter.message(each) for each in self.report.remarks.get("advice", ())]
        if advice:
            head, rows = (self._line(self.texts.messages["advice"]),), len(advice)
            # All of them before more of any, and whole sentences before the tables.
            items = [[self._advice(each, most) for most in (1, 2, 2, 3, 4, 6, _ALL)] for each in advice]
            least, left = _TODO, lambda omitted: self._counts(more=len(omitted))
            yield Section("todo", head, items, left, rows, kept=least, least=least, fair=least)
        elif told:
            weighty = max((at + 1 for at, one in enumerate(told) if one.severity in {"high", "medium"}), default=0)
            sure = max(weighty, min(len(told), _NAMED))
            items = [self._forms(one, alone=at < sure) for at, one in enumerate(told)]
            rest = self.say("more", count=(Kind.COUNT, len(told) - 1)) if told[1:] else ""
            only = self._short(told[0], rest)
            least = 1 + len(items[0][2]) + sure
            fair = least + sum(len(each[2]) - 1 for each in items[1:weighty])
            head, kept, least, fair = (self._heading(),), min(least, _NAMED + 2), min(least, _TODO), min(fair, _TODO)
            yield Section("todo", head, items, more, sure, line=only, kept=kept, least=least, fair=fair)
        elif self.alone and any(rank.said for rank in self.ranks):
            yield Section("todo", (self._line(self.say("nothing")),), (), more, kept=1)

    def _heading(self) -> str:
        """With what they save together, where that was replayed."""
        lesser, saves = self.told[0].severity == "note", any(one.saving for one in self.told)
        costs = any(one.saving is None and one.cost_ns and not one.once for one in self.told)
        priced = "todo_costs" if costs else "todo"
        title, short = (
            self._line(self.say("minor" if lesser else key if saves else "todo_unpriced")) for key in (priced, "todo")
        )
        tables = [self._tables[key] for key in ("rank_findings", "findings") if key in self._tables]
        priced_in = [each for each in tables if any(each.column("saving_ns"))]
        # Of what one rank tells and of what all do together, only that both were replayed at once is a sum.
        keys = {"together_ranks"} if len(priced_in) > 1 else {"together_less", "together_more", "together_alone"}
        said = [note for each in priced_in for note in each.notes if note.key in keys]
        if not said:
            return title
        together = self.formatter.message(Message(_SAY["screen_together"], said[0].values))
        room = self.style.width
        return next((each for one in (title, short) if display_width(each := f"{one} · {together}") <= room), title)

    def _marked(self, mark: str, colour: str, text: str, most: int, *, all_of_it: bool = False) -> tuple[str, ...]:
        """Lines of an item with its mark in a colour; or all of it in that."""
        half = self.style.width // 2
        text = _LONG_WORD.sub(lambda word: self.style.shorten(word[0], half), printable(text))
        first, *others = self.style.clip(text, most, "  ", first="  ")
        mark = mark if self.style.unicode or mark.isascii() else "*"
        if all_of_it:
            return tuple(self.style.paint(line, colour) for line in (mark + first[1:], *others))
        return self.style.paint(mark, colour) + first[1:], *others

    def _advice(self, text: str, most: int = 2) -> tuple[str, ...]:
        first = "  → " if self.style.unicode else "  > "
        return tuple(self.style.paint(line, "green") for line in self.style.clip(printable(text), most, "    ", first))

    def _forms(self, one: Finding, *, alone: bool) -> list[tuple[str, ...]]:
        """A finding in one line, with its advice in another, with its sentence, its source line apart, and whole.

        One that is not told in any case never stands `alone`, without its advice.
        """
        short, advice = self._short(one), self._advised(one)
        brief = (short, *chain(*(self._advice(each, 1) for each in advice)))
        forms = [(short,) if alone else brief, brief]
        for lines, most, apart in ((3, 2, False), (3, 2, True), (_ALL, _ALL, True)):
            said = self._marked("●", _COLOURS[one.severity], one.sentence, lines)
            told = chain(*(self._advice(each, most) for each in advice))
            forms.append((*said, *self._beside(one, apart=apart), *told))
        return forms

    def _advised(self, one: Finding) -> list[str]:
        """The one thing to do, unless a finding before it says the same."""
        before = self.told[: self.told.index(one)]
        return [each for each in one.advice[:1] if not any(each in other.advice[:1] for other in before)]

    def _beside(self, one: Finding, *, apart: bool) -> tuple[str, ...]:
        """How sure it is, what it is worth, and where it is: `apart` where its function, else its line has no room."""
        unknown = one.saving is None and one.cost_ns is not None and not one.once
        said, room = [one.grade, self.worth(one), self.say("unknown") if unknown else ""], self.style.width - 2
        # That it costs, and does not save, is said in any case.
        fitting = (each for each in (said[:3], said[:2], said[1:2]) if display_width(self._placed(one, each)) <= room)
        said = next(fitting, said[1:2])
        line, places = self._placed(one, said, room=room), self.places(one)
        if len(places) > 1 and places[-2 if apart else -1] not in line:
            place = next((each for each in places[:-1] if display_width(each) <= room), places[-1])
            return f"  {self._placed(one, said)}", f"  {self.style.shorten(place, room)}"
        return (f"  {line}",)

    def _short(self, one: Finding, rest: str = "") -> str:
        """Its title, saving and place, and how many more there are; the title is cut where there is no room.

        Where others have the same title, and their places no room, the operator or place stands for it.
        """
        line, places = self._titled(one, one.title, rest), self.places(one)
        alike = any(other.title == one.title and self.places(other) != places for other in self.told)
        if alike and places and not any(each in line for each in places):
            named = (*one.scope.operators, *places[1:], *places)[0]
            line = self._titled(replace(one, scope=Scope(one.scope.ranks)), named, rest)
        return self._marked("●", _COLOURS[one.severity], line, 1)[0]

    def _titled(self, one: Finding, title: str, rest: str) -> str:
        title, room, line = printable(title), self.style.width - 2, ""
        for _ in range(2):
            text = self.formatter.said_of([title], self.worth(one)).rstrip(" :：")
            line = self._placed(one, [text], rest, room)
            title = self.style.shorten(title, max(display_width(title) - max(display_width(line) - room, 0), _PLACE))
        return line

    def _placed(self, one: Finding, said: list[str], rest: str = "", room: int = 0) -> str:
        """Pieces of a line, with whose it is and where it is if there is room for that, and its rule."""
        whose = self._whose(one)
        pieces = [*filter(None, said), *filter(None, [whose, one.rule, rest])]
        if whose and room and display_width(" · ".join(pieces)) > room:
            pieces.remove(whose)
        left = room - display_width(" · ".join(pieces)) - 3
        places = self.places(one)
        where = next((each for each in places if display_width(each) <= left), "")
        if len(places) == 1 and left >= 2 * _PLACE:
            where = self.style.shorten(places[0], left)
        if where:
            pieces.insert(len(pieces) - bool(one.rule) - bool(rest), where)
        return " · ".join(pieces)

    def _whose(self, one: Finding) -> str:
        of_one = len(one.scope.ranks) == 1 and len({rank.rank for rank in self.report.ranks} - {None}) > 1
        return self.formatter.value(Kind.PLACE, f"rank {one.scope.ranks[0]}") if of_one else ""

    def places(self, one: Finding) -> list[str]:
        """Where it is: a line of the program with its folder, without, and without its function; or an operator."""
        places = (*one.scope.source_lines, *one.scope.operators)
        place = next((each for each in places if each not in {f"rank {rank}" for rank in one.scope.ranks}), "")
        where = printable(self.formatter.value(Kind.PLACE, place)) if place else ""
        if found := _LINE.fullmatch(where):
            line = f"{found['file']}:{found['at'] or found['line']}"
            whole = f"{line} {found['function']}".strip()
            return [found["folder"] + whole, whole, line]
        return [where] if where else []

    def worth(self, one: Finding) -> str:
        """Saving with its range and share, else the cost, else how much memory."""
        if one.once:
            return self.say("once")
        saving, share = one.saving, (Kind.SHARE, one.share)
        if one.share is None or (saving is None and one.cost_ns is None):
            return next((each.text for each in one.evidence if each.unit == "bytes"), "")
        if saving is None:
            return self.say("costs", saving=(Kind.DURATION, one.cost_ns), share=share)
        sure = saving.high_ns - saving.low_ns <= 0.01 * saving.high_ns
        amount = saving.ns if sure else Between.of(saving.ns, saving.low_ns, saving.high_ns)
        return self.say("saves", saving=(Kind.DURATION, amount), share=share)

    def trust(self, *others: "Sections") -> Iterator[Section]:
        """Doubts, remarks, and what was not measured, by the reason; each once, with the runs of which it is true."""
        found: dict[tuple[int, str], tuple[tuple[str, str, str], dict[str, None]]] = {}
        for one in (self, *others):
            for weight, *said in one._said():
                # Runs that differ in numbers only say the same, ranks of one need not.
                key = said[0] if others and said[0] else "".join(said)
                told = found.setdefault((weight, key), ((said[0], said[1], said[2]), {}))
                told[1][one.called(_NAME)] = None
        ranked = sorted(found, key=lambda key: (key[0], -len(found[key][1])))
        weights, names, items = [weight for weight, _ in ranked], [found[key][0][0] for key in ranked], []
        for (weight, _), ((name, about, text), runs) in zip(ranked, map(found.__getitem__, ranked), strict=True):
            of = f"({self._some(runs)})" if len(runs) <= len(others) else ""
            pieces = [(name, of), (about,)] if name else [(of, about)]
            labels = [*filter(None, (" ".join(filter(None, each)) for each in pieces))]
            mark = ("-", "") if weight in {_REMARK, _MISSING} else ("!", "yellow")
            texts = [self._one_line(labels, text), *[self.formatter.said_of(labels, text) if labels else text] * 2]
            items.append([self._marked(*mark, each, most) for each, most in zip(texts, (1, 2, _ALL), strict=True)])
        checks = [*chain(*(rank.checks for rank in self.ranks))]
        notes = sum(each.level == Level.INFO for each in checks) + len(self.report.remarks.get("quality", ()))
        hints = len({hint for rank in self.ranks for hint in self.formatter.hints(rank.hints)})

        def more(omitted: Sequence[int]) -> str:
            left = [weights[at] for at in omitted]
            remarked, missing = left.count(_REMARK), left.count(_MISSING)
            kept = {"notes": remarked + notes, "hints": hints} if self.alone else {"notes": remarked}
            warned = self.say("warnings", count=(Kind.COUNT, len(left) - remarked - missing))
            called = dict.fromkeys(names[at] for at in omitted if names[at])
            before = [self._cells(warned, called, 8) if called else warned] if len(left) > remarked + missing else []
            return self._counts(*before, missing=missing, **kept)

        sure = len(weights) - weights.count(_REMARK) - weights.count(_MISSING)
        if items or more(()):
            heads = (self._line(self.say("trust")),) if items else ()
            # All of each warning, and two of what was not measured.
            fair = sum(len(each[-1]) for each in items[:sure]) + min(len(items) - sure, 2) + 2
            least, fair, kept = max(min(sure, 4) + 2, 3), min(max(fair, 5), _WARNED), 1
            if self.report.sides and _TOUCHES in weights:
                # One in any case; others after what made the difference.
                kept = least = fair = 2
            yield Section("trust", heads, items, more, sure, kept=kept, least=least, fair=fair)

    def _one_line(self, labels: list[str], text: str) -> str:
        """What is said, with less of what it is about where a line has no room for both."""
        for room in range(display_width(labels[-1]) if labels else 0, _PLACE, -1):
            # A list in brackets whose end has no room goes whole.
            about = _OPEN.sub(r"\1", "".join(self.style._replace(width=room).clip(labels[-1], 1)))
            line = self.formatter.said_of([*labels[:-1], about], text)
            if display_width(line) <= self.style.width - 2:
                return line
        return self.formatter.said_of(labels, text) if labels else text

    def _said(self) -> Iterator[tuple[int, str, str, str]]:
        """What is not certain or was not measured: its weight, the id of its check, what it is about, and its text."""
        fill, remarks = self.formatter.message, self.report.remarks
        for each in chain(*(rank.checks for rank in self.ranks)):
            if each.level > Level.INFO:
                text = self.formatter.fill(self.texts.checks[each.message.key], each.message)
                yield -each.level, each.id, "", text
        doubts = [*(each for each in self.report.note_messages if each.key in _DOUBTS), *remarks.get("caveats", ())]
        # Beside each other they show that there are several.
        doubts = [one for one in doubts if self.alone or not any(isinstance(each, Apart) for _, _, each in one.values)]
        yield from ((_TOUCHES if each.key in OF_NUMBERS else 0, "", "", fill(each)) for each in doubts)
        gate = chain(*(said for key, said in remarks.items() if key.startswith("gate")))
        yield from ((_REMARK, "", "", fill(each)) for each in gate)
        yield from ((_MISSING, "", *each) for each in self.missing())

    def missing(self) -> list[tuple[str, str]]:
        """What was not measured, whole tables or cells of rows that a page shows, and why; each reason once."""
        if self.report.sides:
            shown = [*self._tables.values(), *(each for each in self.report.summary if each.absent)]
        else:
            shown = [each for key, each in self._tables.items() if not each.detail and key not in _FOUND]
        about: dict[str, dict[str, dict[str, None]]] = {}
        for table in shown:
            # What it was taken over is no part of what it is about.
            title = self.formatter.topic(table).partition(" (")[0].partition("（")[0]
            if table.absent is not None:
                about.setdefault(table.absent.reason, {})[title] = {}
            for row in pick(table, View().top, everything=False).rows:
                for column, value in zip(table.columns, row, strict=True):
                    # A share of parts that cancel says nothing; the parts themselves are measured.
                    if isinstance(value, NotMeasured) and value != PARTS_CANCEL and not column.machine:
                        of_table = about.setdefault(value.reason, {}).setdefault(title, {})
                        of_table[self.texts.heading(table, column)] = None
        found = []
        for reason, titles in about.items():
            named = [self._cells(title, cells) if cells else title for title, cells in titles.items()]
            found.append((self._some(named), self.texts.reasons.get(reason, reason)))
        notes = self._tables["not_judged"].notes if "not_judged" in self._tables else ()
        return [*found, *(("", self.formatter.message(each)) for each in notes)]

    def _cells(self, title: str, names: Iterable[str], most: int = 2) -> str:
        return self.say("cells", title=(Kind.TEXT, title), names=(Kind.TEXT, self._some(names, most)))

    def _some(self, names: Iterable[str], most: int = 2) -> str:
        """The first of them, and how many more there are."""
        first = list(names)
        named = first if len(first) <= most else [*first[:most], f"+ {len(first) - most}"]
        return self.texts.messages["list_mark"].join(named)
