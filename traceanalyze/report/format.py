"""Values and messages of a report as text in one language, alike in every renderer that is read by people."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, cast

from traceanalyze.errors import Phrase
from traceanalyze.locales import LANGUAGES, Texts
from traceanalyze.model import units
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import (
    LABELLED,
    TIMES,
    Between,
    Breakdown,
    Column,
    Kind,
    Message,
    NotMeasured,
    Quantity,
    Row,
    Table,
    Value,
    Word,
    labels_of,
    sentences,
)
from traceanalyze.model.vocabulary import ARROW, both_ends

_PLAIN: Mapping[Kind, Callable[..., str]] = {
    Kind.SHARE: units.percent,
    Kind.RATIO: units.ratio,
    Kind.COUNT: units.count,
    Kind.NUMBER: units.count,
    Kind.BYTES: units.size,
    Kind.MEMORY: units.memory,
    Kind.MEMORY_CHANGE: lambda value: signed(units.memory(abs(value)), value),
    Kind.BYTES_CHANGE: lambda value: signed(units.size(abs(value)), value),
}
# "3 event(s)", "1 device event(s)": the last number before decides.
_PLURAL = regex(r"(?P<stem>(?P<number>\b[\d,]+)(?: [^\W\d]+)+)\((?P<ending>e?s)\)")
# "{count} event(s) (is|are) left out": the first of these decides.
_AGREES = regex(r"\(([a-z]+)\|([a-z]+)\)")

_SAY = sentences(place_rank="rank {rank}")
_RANK = regex(r"rank (\S+)")
"""Where rules about ranks find something."""
_CLAUSES = regex(r"[,:] |[，：]")
"""What tells of a phrase that it is more than a name."""
_WIDE_STOP = regex("(?<=[。！？；：，）]) ")
# Chinese is parted from Latin letters and digits by a space, from Chinese by none: at the ends of values in a text.
_END = "\ufdd0"
_SEAM = regex(f"(?P<left>.?)(?P<between> ?{_END}[{_END} ]*)(?=(?P<right>.?))", re.DOTALL)
_HAN, _LATIN = regex("[\u4e00-\u9fff]"), regex("[A-Za-z0-9µ%]")


def _parted(seam: re.Match[str]) -> str:
    left, between, right = seam["left"], seam["between"], seam["right"]
    han, latin = ([bool(kind.match(each)) for each in (left, right)] for kind in (_HAN, _LATIN))
    if all(han) and f"{_END} {_END}" not in between:
        return left
    if any(han) and any(latin):
        return f"{left} "
    return left + between.replace(_END, "")


class Formatter(NamedTuple):
    """How values of one trace are written: language and clock resolution."""

    texts: Texts
    resolution_ns: int = 1
    parts: int = 2
    """How many parts of a breakdown are named."""
    whole: bool = False
    """Amounts are of the whole trace, as it has no steps."""
    backward: frozenset[str] = frozenset()
    """Kernels that the backward pass alone launches."""
    labels: Mapping[str, str] = MappingProxyType({})
    """Of the kernels of one sentence, which are to differ."""

    def value(self, kind: Kind, value: Value) -> str:
        """A value on its own, with its unit."""
        if value is None:
            return ""
        match value:
            case NotMeasured():
                return self.missing([value.reason])
            case Phrase():
                return value.said(self.texts.phrases)
            case Quantity():
                said = self.texts.terms.get(value.remark)
                return said or units.quantity(value.number, value.unit, change=value.change)
            case Word():
                return ARROW.join(self.texts.terms.get(each, each) + others for each, others in both_ends(value))
        return self._of_kind(kind, value)

    def label(self, column: Column, value: Value) -> str | None:
        """What a column shows in place of a name; None where it shows all of it."""
        if column.kind not in LABELLED or not isinstance(value, str) or isinstance(value, Word):
            return None
        label = column.labels.get(value)
        return None if label == value else label

    def _of_kind(self, kind: Kind, value: Value) -> str:
        match kind:
            case Kind.TERM:
                text = self.texts.terms.get(cast("str", value), cast("str", value))
            case Kind.DURATION:
                text = self._duration(cast("int", value))
            case Kind.CHANGE:
                text = signed(units.duration(abs(cast("int", value)), self.resolution_ns), cast("int", value))
            case Kind.FLAG:
                text = self.texts.messages["yes" if value else "no"]
            case Kind.PLACE if rank := _RANK.fullmatch(cast("str", value)):
                text = self.texts.messages[_SAY["place_rank"]].format(rank=rank[1])
            case Kind.KERNEL | Kind.PLACE:
                name = cast("str", value)
                text = self.labels.get(name) or labels_of(kind, [name], self.backward)[name]
            case Kind.LIST:
                text = self._listed(cast("tuple[Message, ...]", value))
            case Kind.BREAKDOWN:
                text = self._breakdown(cast("Breakdown", value))
            case _:
                text = _PLAIN[kind](value) if kind in _PLAIN else str(value)
        return text

    def _duration(self, ns: int) -> str:
        return units.between(ns.low, ns.high) if isinstance(ns, Between) else units.duration(ns, self.resolution_ns)

    def _listed(self, phrases: Iterable[Message]) -> str:
        """Names by commas; what has commas of its own by semicolons."""
        listed = [*map(self.message, phrases)]
        mark = "group_mark" if any(_CLAUSES.search(each) for each in listed) else "list_mark"
        return self.texts.messages[mark].join(listed)

    def cell(self, column: Column, value: Value, unit: units.Unit | None) -> str:
        """A value in a column whose heading names the unit; among texts, the label of a total is a word of the tool."""
        kind = column.kind
        if isinstance(value, NotMeasured):
            return "n/m"
        if kind == Kind.TEXT and isinstance(value, str) and not isinstance(value, Phrase):
            return self.texts.terms.get(value, value)
        if isinstance(value, Between):
            return units.between(value.low, value.high, unit)
        if kind in TIMES and unit is not None and value is not None:
            ns = cast("int", value)
            return signed(units.in_unit(abs(ns), unit), ns) if kind == Kind.CHANGE else units.in_unit(ns, unit)
        if kind == Kind.SHARE and value is not None:
            return units.percent_cell(cast("float", value))
        return self.label(column, value) or self.value(kind, value)

    def message(self, message: Message) -> str:
        """A sentence with its values filled in."""
        return self.fill(self.texts.messages[message.key], message)

    def fill(self, template: str, message: Message) -> str:
        """Any text with the values of a message filled in."""
        told: dict[str, str] = {}
        for kind in LABELLED & {kind for _, kind, _ in message.values}:
            names = [cast("str", value) for _, has, value in message.values if has == kind and value]
            told |= labels_of(kind, names, self.backward)
        own = self._replace(labels=told) if len(told) > 1 else self
        values = {name: own.value(kind, value) for name, kind, value in message.values}
        values["per"] = self.texts.messages["per_trace" if self.whole else "per_step"]
        if _AGREES.search(template):
            first = _PLURAL.search(template.format(**values))
            one = first is not None and first["number"] == "1"
            template = _AGREES.sub(lambda found: found[1 if one else 2], template)
        if self.texts.language == LANGUAGES[0]:
            text = template.format(**values)
        else:
            ends = {name: f"{_END}{value}{_END}" for name, value in values.items()}
            text = _SEAM.sub(_parted, template.format(**ends))
        return _PLURAL.sub(lambda found: found["stem"] + ("" if found["number"] == "1" else found["ending"]), text)

    def sentences(self, messages: Iterable[Message]) -> str:
        """Several sentences in a row; after a full-width stop there is no space."""
        return self.joined(map(self.message, messages))

    def joined(self, texts: Iterable[str]) -> str:
        """The same of what is in words."""
        return _WIDE_STOP.sub("", " ".join(filter(None, texts)))

    def said_of(self, titles: Iterable[str], text: str) -> str:
        """What holds for one or several things."""
        words = self.texts.messages
        return words["said_of"].format(title=words["group_mark"].join(titles), text=text)

    def missing(self, reasons: Iterable[str], of: str = "") -> str:
        """That something was not measured, and why; `of` what, where that is not plain."""
        words = self.texts.messages
        if of:
            return words["missing_of"].format(title=of, text=self._reasons(reasons))
        return self.said_of([words["not_measured"].lower()], self._reasons(reasons))

    def absent(self, tables: Iterable[Table], *, empty: bool = False) -> list[str]:
        """Why tables have no rows, each reason once; with `empty` also of those that have nothing to list."""
        about: dict[str, list[str]] = {}
        for table in tables:
            if table.absent is not None:
                about.setdefault(self.texts.reasons[table.absent.reason], []).append(self.topic(table))
            elif empty and not len(table):
                about.setdefault(self.texts.messages["no_rows"], []).append(self.topic(table))
        return [self.said_of(titles, reason) for reason, titles in about.items()]

    def legend(self, reasons: Iterable[str]) -> str:
        """What `n/m` means in a table, and why its cells have it."""
        return self.texts.messages["legend"].format(reasons=self._reasons(reasons))

    def legends(self, rows: Iterable[Row]) -> list[str]:
        """The legend of these rows, if any of their cells needs it."""
        reasons = absent_reasons(rows)
        return [self.legend(reasons)] if reasons else []

    def title(self, table: Table) -> str:
        """A table's title; one step needs no mean."""
        # What was not measured has no values.
        values = defaultdict(lambda: "…", {name: self.value(kind, one) for name, kind, one in table.title_values})
        single = ("steps", Kind.COUNT, 1) in table.title_values
        return self.texts.title(table, one=single).format_map(values)

    def topic(self, table: Table) -> str:
        """What a table is about, whatever its rows were taken over."""
        return self.texts.tables.get(f"{table.key}_one") or table.title_one or self.title(table)

    def about(self, headline: Message, path: str) -> str:
        """Recording, rank, device and windows in one line, as the headline of a rank's report says them."""
        values = {name: value for name, _, value in headline.values}
        messages = self.texts.messages
        device = "" if values["device"] is None else messages["device_named" if values["device_name"] else "device"]
        template = messages[headline.key].format(
            path="{path}",
            rank=messages["rank"] if values["rank"] is not None else "",
            device=device,
            steps="{steps}",
            left_out="{left_out}",
        )
        return template.format(**{**values, "path": path})

    def hints(self, keys: Iterable[str]) -> dict[str, str]:
        """Advice on what to record, each once, with its key; that of the platform, where it has its own or none."""
        known, found = self.texts.hints, dict[str, str]()
        for key in keys:
            found.setdefault(known.get(key, known.get(key.partition(".")[0], "")), key)
        return {text: key for text, key in found.items() if text}

    def _reasons(self, reasons: Iterable[str]) -> str:
        return self.texts.messages["group_mark"].join(self.texts.reasons.get(reason, reason) for reason in reasons)

    def _breakdown(self, parts: Breakdown) -> str:
        """The largest parts with their shares; one that is all of it needs no number."""
        whole = sum(amount for _, amount in parts)
        named = []
        for key, amount in parts[: self.parts]:
            percent = round(100 * amount / whole) if whole else 0
            term = self.texts.terms.get(key, key)
            if percent:
                named.append(term if percent == 100 else f"{term} {percent} %")
        return self.texts.messages["list_mark"].join(named)


def printable(text: str) -> str:
    """Text of a trace on one line, without characters that could steer a terminal or a page."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def signed(text: str, value: float) -> str:
    """Text of an absolute value with the sign of the value, unless the text rounds it to nothing."""
    if not any(digit in text for digit in "123456789"):
        return text
    return f"+{text}" if value > 0 else f"-{text}"


def absent_reasons(rows: Iterable[Row]) -> list[str]:
    """Why cells of these rows were not measured, each reason once."""
    return list(dict.fromkeys(value.reason for row in rows for value in row if isinstance(value, NotMeasured)))


def shown_columns(
    table: Table, rows: Sequence[Row], resolution_ns: int
) -> list[tuple[int, Column, units.Unit | None, str]]:
    """Columns for people that hold anything in these rows: place, column, unit of its times, name of its unit."""
    units_of = column_units(table.columns, rows, resolution_ns)
    found = []
    for index, column in enumerate(table.columns):
        if not column.machine and any(row[index] is not None for row in rows):
            unit = units_of[column.scale] if column.kind in TIMES else None
            name = unit.name if unit else "%" if column.kind == Kind.SHARE else ""
            # What is not measured has no unit.
            measured = any(isinstance(row[index], int | float) for row in rows)
            found.append((index, column, unit, name if measured else ""))
    return found


def column_units(columns: Sequence[Column], rows: Sequence[Row], resolution_ns: int) -> dict[str, units.Unit]:
    """Unit of each scale of durations among these rows, chosen by the largest value."""
    longest: dict[str, int] = {}
    for index, column in enumerate(columns):
        if column.kind in TIMES and not column.machine:
            known = [abs(value) for value in (row[index] for row in rows) if isinstance(value, int)]
            longest[column.scale] = max([longest.get(column.scale, 0), *known])
    return {scale: units.column_unit(ns, resolution_ns) for scale, ns in longest.items()}
