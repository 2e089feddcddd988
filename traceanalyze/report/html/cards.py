"""Findings as cards: how much, what, what to do, what it rests on, its place in the trace, what its rule says."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote

from traceanalyze.locales import rule_doc
from traceanalyze.model.table import Kind, sentences
from traceanalyze.report.contents.words import between
from traceanalyze.report.finding import Finding
from traceanalyze.report.format import Formatter
from traceanalyze.report.html.frame import element, folded, safe, sentence
from traceanalyze.report.html.timeline import timeline_html
from traceanalyze.report.model import FindingExcerpt
from traceanalyze.rules.registry import every_rule

_SAY = sentences(
    card_saves="saves {saving} ({share})",
    card_costs="costs {cost} ({share})",
    card_where="where",
    card_steps="steps",
    card_ranks="ranks",
    card_count="instances",
    card_rule="What {rule} finds, and how",
    card_timeline="Show it on the timeline",
    card_picture="Show it block by block",
    card_pictures="In the trace:",
)
OPEN_CARDS = 12
"""Cards that are read without a click; further ones are to be opened."""
_TRIED = {"empty_cache": "--without empty_cache", "expandable_segments:True": "--alloc-conf expandable_segments:True"}
"""Words of a finding, and what of `traceanalyze whatif` replays a snapshot with what they are about."""
_NAMED = 8
"""Steps or operators named in a card."""


@dataclass(frozen=True)
class Scene:
    """What the page shows beside the cards."""

    formatter: Formatter
    excerpts: Sequence[FindingExcerpt] = ()
    timeline: str | None = None
    """Where the timeline of the rank is."""
    begin: int | None = None
    """When the first event of the rank begins, ns; None where that is not known."""
    heading: str = "h3"
    shut: bool = False
    """All cards are to be opened."""
    picture: Mapping[str, str] = field(default_factory=dict)
    """Where the picture of the device's memory is, by the id of a finding."""


def cards(found: Sequence[tuple[str, Finding]], scene: Scene) -> Iterator[str]:
    """A card for each finding, by where it stands in the page."""
    left = list(scene.excerpts)
    for number, (at, one) in enumerate(found):
        shown = next((each for each in left if _shows(each, one)), None)
        if shown is not None:
            left.remove(shown)
        yield _card(one, at, shown, scene, shut=scene.shut or number >= OPEN_CARDS)


def span_of(one: Finding) -> tuple[int, int] | None:
    """Start and end of its longest instance, ns; None where it has none in time."""
    if len(one.intervals):
        start, end = one.intervals[int((one.intervals[:, 1] - one.intervals[:, 0]).argmax())].tolist()
        return start, end
    spans = ((each.start_ns, each.end_ns) for each in one.evidence)
    return max(((a, b) for a, b in spans if a is not None and b is not None), key=lambda s: s[1] - s[0], default=None)


def _shows(excerpt: FindingExcerpt, one: Finding) -> bool:
    """Whether an excerpt is of an instance of the finding."""
    start = excerpt.place.excerpt.start + excerpt.place.start
    known = [*one.intervals.tolist(), *([each.start_ns, each.end_ns] for each in one.evidence if each.end_ns)]
    return excerpt.rule == one.rule and any(low <= start < high for low, high in known)


def _card(one: Finding, at: str, shown: FindingExcerpt | None, scene: Scene, *, shut: bool) -> str:
    rule = f" <small>{safe(one.rule)}</small>" if one.rule else ""
    heading = element(scene.heading, f'<span class="grade">{safe(one.grade)}</span> {safe(one.title)}{rule}')
    content = "".join(_content(one, shown, scene))
    css = f"card {one.severity}"
    if shut:
        return folded(heading, content, id=at, class_=css)
    return element("section", heading + content, id=at, class_=css)


def _content(one: Finding, shown: FindingExcerpt | None, scene: Scene) -> Iterator[str]:
    formatter = scene.formatter
    yield element("p", sentence(one.sentence))
    yield _bar(one, formatter)
    if one.price:
        yield element("p", sentence(one.price))
    if one.advice:
        yield element("ul", "".join(element("li", sentence(text)) for text in one.advice), class_="advice")
    known = [*_scope(one, formatter), *((each.label, each.text) for each in one.evidence)]
    pairs = "".join(f"<div><dt>{safe(name)}</dt><dd>{safe(text)}</dd></div>" for name, text in known if text)
    yield element("dl", pairs, class_="evidence") if pairs else ""
    if shown is not None:
        yield timeline_html(shown, formatter, scene.timeline)
    yield from _ways(one, scene)
    yield _rule(one, formatter)


def _bar(one: Finding, formatter: Formatter) -> str:
    """Its part of the step, with the range of what is not certain."""
    if one.share is None:
        return ""
    words, share = formatter.texts.messages, formatter.value(Kind.SHARE, one.share)
    low = high = one.share
    if one.saving is not None:
        saving = one.saving
        amount = formatter.value(Kind.DURATION, between(saving.low_ns, saving.ns, saving.high_ns))
        label = words[_SAY["card_saves"]].format(saving=amount, share=share)
        low, high = (one.share * each / saving.ns if saving.ns else 0.0 for each in saving[1:])
    else:
        label = words[_SAY["card_costs"]].format(cost=formatter.value(Kind.DURATION, one.cost_ns), share=share)
    places = ";".join(
        f"--{name}:{min(max(value, 0), 1):.4f}" for name, value in (("at", one.share), ("low", low), ("high", high))
    )
    css = "saving" if one.saving is not None else "saving cost"
    drawn = f'<span class="amount" style="{places}"><i></i><b></b></span>'
    return element("p", drawn + sentence(label), class_=css)


def _scope(one: Finding, formatter: Formatter) -> Iterator[tuple[str, str]]:
    words, scope = formatter.texts.messages, one.scope
    mark = words["list_mark"]
    for key, values in (
        ("where", (*scope.source_lines, *scope.operators)),
        ("steps", scope.steps),
        ("ranks", scope.ranks if len(scope.ranks) > 1 else ()),
    ):
        more = [f"… ({len(values):,})"] if len(values) > _NAMED else []
        yield words[_SAY[f"card_{key}"]], mark.join([*map(str, values[:_NAMED]), *more])
    yield words[_SAY["card_count"]], f"{one.count:,}" if one.count > 1 else ""


def _ways(one: Finding, scene: Scene) -> Iterator[str]:
    """To its place on the timeline, and in Perfetto."""
    span = span_of(one)
    if one.id in scene.picture:
        label, at = safe(scene.formatter.texts.messages[_SAY["card_picture"]]), scene.picture[one.id]
        line = next(iter((*one.scope.source_lines, *one.scope.operators)), "")
        yield element("p", element("a", label, href=f"#{at}", class_="place", data_line=line), class_="script")
        for word, option in _TRIED.items():
            yield _command(f"whatif {quote(one.link.trace)} {option}") if word in one.sentence else ""
    if span is None:
        return
    if scene.timeline is not None:
        words = safe(scene.formatter.texts.messages[_SAY["card_timeline"]])
        place = element("a", words, href=f"#{scene.timeline}", class_="place", data_span=f"{span[0]},{span[1]}")
        yield element("p", place, class_="script")
    if one.link.trace and scene.begin is not None:
        since, until = (f"{max(each - scene.begin, 0)}ns" for each in span)
        yield _command(f"open {quote(one.link.trace)} --at {since}-{until}")


def _command(options: str) -> str:
    """A command line that the script lets one copy."""
    return element("p", element("code", safe(f"traceanalyze {options}")), class_="command")


def _rule(one: Finding, formatter: Formatter) -> str:
    """What its rule says of itself."""
    known = next((each for each in every_rule() if each.id == one.rule), None)
    if known is None:
        return ""
    title = formatter.texts.messages[_SAY["card_rule"]].format(rule=one.rule)
    lines = (rule_doc(formatter.texts.language, one.rule) or known.doc).splitlines()
    text = "\n".join(map(safe, lines))
    return f"<details><summary>{safe(title)}</summary><pre>{text}</pre></details>"


def pictures(found: Sequence[tuple[str, Finding]], formatter: Formatter) -> str:
    """A line that leads to cards elsewhere in the page; nothing without any."""
    if not found:
        return ""
    words = formatter.texts.messages
    links = [f'<a href="#{at}">{safe(f"{one.rule} {one.title}")}</a>' for at, one in found]
    return element("p", f"{safe(words[_SAY['card_pictures']])} {safe(words['group_mark']).join(links)}")
