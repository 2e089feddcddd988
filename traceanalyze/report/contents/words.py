"""What rules found, in words: the one place where keys become titles, sentences, prices and advice for every output."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.window import Window, step_labels
from traceanalyze.locales import Texts
from traceanalyze.model import intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import SIZES, TIMES, Between, Kind, Message, Value, sentences
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import Mode
from traceanalyze.report import finding as told
from traceanalyze.report.format import Formatter
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Scope, Severity, merged
from traceanalyze.rules.registry import every_rule, own_rules

if TYPE_CHECKING:
    from traceanalyze.analyses.memory.findings import MemoryFinding

_SAY = sentences(
    finding_other="{rule}: {text}",
    at_line="At {line}.",
    of_recording="In recording {recording}: {text}",
    of_host="Removing this also frees the host, for which the device waits.",
    price_both="It costs {cost} {per}; removing it saves {saving}.",
    price_more="It costs {cost} {per} itself; removing it saves {saving}, as what comes after it comes sooner.",
    price_cost="It costs {cost} {per} ({share}); what removing it saves was not measured.",
    price_once="It is done once: later steps do without it, so there is no saving.",
    price_unknown="What removing it saves was not measured.",
    price_range="Removing it saves {saving} {per}.",
    together_less="Together they save {saving} {per} ({share}): less than one by one, as one hides behind another.",
    together_alone="Together they save {saving} {per} ({share}).",
    together_more=(
        "Together they save {saving} {per} ({share}): more than one by one, as each alone leaves others in the way."
    ),
    together_ranks="With the findings about the ranks they save {saving} {per} ({share}) together.",
    cause_host_loading="The training thread waits for its data {wait} {per} ({share}).",
)
ALIKE = 0.01
"""Part of it by which a cost differs from a saving, or the ends of a range from each other, to be worth a word."""
PAGE = "https://pypi.org/project/traceanalyze/#{rule}"
_LINE = regex(r"\.py(\(\d+\)|:\d+)")
"""Of traces and of memory snapshots."""
_UNITS = {**dict.fromkeys(TIMES, "nanoseconds"), **dict.fromkeys(SIZES, "bytes"), Kind.SHARE: "fraction"}
_SURE = {Confidence.HIGH: "", Confidence.MEDIUM: "_likely", Confidence.LOW: "_uncertain"}


Ends = tuple[int, int, int]
"""Low, saving and high, ns a step."""


class Setting(NamedTuple):
    """What a finding is measured by, and where it was found."""

    step: int = 0
    """Mean step, or the whole trace, ns."""
    platform: str = "cuda"
    """ascend or cuda (which stands for all others)"""
    resolution_ns: int = 1
    whole: bool = False
    """The trace has no steps: amounts are of all of it."""
    path: str = ""
    """File that times are of."""
    place: str = ""
    """Which of several recordings without a rank of their own it is from."""
    recording: int = 0
    """Number of the recording its numbers are of, where another one is shown in detail."""
    steps: Sequence[str] = ()
    start: Sequence[int] | NDArray[np.int64] = ()
    end: Sequence[int] | NDArray[np.int64] = ()
    """Of the analysed steps, ns."""
    backward: frozenset[str] = frozenset()
    """Kernels that the backward pass alone launches."""


def setting_of(analysis: RankAnalysis, window: Window, place: str = "") -> Setting:
    """Of the findings on one rank."""
    trace, steps, rows = analysis.trace, analysis.steps, list(window.rows)
    labels = step_labels(steps.name)
    return Setting(
        step=window.mean(window.total),
        platform=platform_of(trace),
        resolution_ns=trace.resolution_ns,
        whole=analysis.mode == Mode.WHOLE_TRACE or (analysis.mode != Mode.STEPS and window.count <= 1),
        path=trace.origin.path,
        place=place if trace.origin.rank is None else "",
        steps=[labels[row] for row in rows],
        start=steps.start[rows],
        end=steps.end[rows],
        backward=analysis.backward,
    )


def platform_of(trace: Trace) -> str:
    """Whose advice fits: ascend, or cuda for all others."""
    return "ascend" if trace.origin.format == "ascend" else "cuda"


class Said(NamedTuple):
    """A finding with the keys of its words, before a language is chosen."""

    found: Finding
    title: str
    """Term."""
    sentence: Message
    setting: Setting

    @property
    def order(self) -> tuple[int | bool | str, ...]:
        """That of the finding."""
        return self.found.order

    def in_words(self, texts: Texts) -> told.Finding:
        """The finding in a language."""
        return _in_words(self, texts)


def said(found: Iterable[Finding], setting: Setting) -> tuple[Said, ...]:
    """Findings of rules with the keys of their words."""
    return tuple(Said(one, name_of(one), sentence_of(one), setting) for one in found)


def of_memory(one: "MemoryFinding", setting: Setting, ranks: tuple[int, ...] = ()) -> Said:
    """What a memory snapshot tells; its sentence says what to do, too."""
    # Imported here: most recordings come without a snapshot.
    from traceanalyze.causes.synthesize import SEVERITIES, rule_of

    amount = () if one.amount is None else (Evidence("amount", one.amount, "MEMORY"),)
    found = Finding(
        evidence=amount,
        scope=Scope(ranks, ops=(one.line,) if one.line else ()),
        count=one.count or 1,
        severity=SEVERITIES[one.severity],
        confidence=Confidence.HIGH,
        rule=rule_of(one.key),
        slug=one.key,
    )
    return Said(found, one.key, one.advice, setting)


def name_of(one: Finding) -> str:
    """Term of what was found; rules of other packages have their own name."""
    every_rule()  # Another process may have found it: what rules say is known once they are loaded.
    if one.text:
        return one.slug
    if one.rule:
        own = own_rules().get(one.rule)
        return f"rule_{one.rule}" + (f"_{one.sentence}" if own is not None and one.sentence in own.titles else "")
    return f"cause_{one.slug}"


def sentence_of(one: Finding) -> Message:
    """What a finding says in words."""
    variant = f"_{one.sentence}" if one.sentence else ""
    if one.text:
        return Message(_SAY["finding_other"], (("rule", Kind.TEXT, one.rule), ("text", Kind.TEXT, one.text)))
    if not one.rule:
        return Message(_SAY[f"cause_{one.slug}"], values_of(one))
    return Message(f"finding_{one.rule}{variant}", values_of(one))


GAPS = 1.1
"""Own: kernels with the gaps beside them, over the kernels alone."""


def hosts_time(one: Finding) -> Iterator[Message]:
    """Why it saves more than it takes on the device, where what the host does for it is taken out as well.

    Not where that is little: what lies between kernels is gone with them, whoever launches them.
    """
    times = [int(each.value) for each in one.evidence if each.kind == "DURATION"]
    host = one.change is not None and (len(one.change.host.start) or one.change.threads)
    if one.draws == "compute" and host and times and (one.saving or 0) > GAPS * max(times):
        yield Message(_SAY["of_host"])


def values_of(one: Finding) -> tuple[tuple[str, Kind, Value], ...]:
    """What it measured, as its sentence mentions it."""
    return tuple((each.label, Kind[each.kind], each.value) for each in one.evidence)


def label_of(one: Finding, label: str, texts: Texts) -> str:
    """Term of a measured value; rules of other packages may have words of their own."""
    term = f"evidence_{label}"
    return label if one.text and term not in texts.terms else term


def saving_of(one: Finding) -> int | None:
    """What it saves, with the range where that is known to be one; None where it was not measured."""
    if one.saving is None or one.low is None:
        return one.saving
    return between(one.low, one.saving, one.most or 0)


def between(low: int, saving: int, high: int) -> int:
    """A saving with its range, where that is wide enough to be worth a word."""
    return Between.of(saving, low, high) if high - low > ALIKE * high else saving


def cost_of(one: Finding) -> int | None:
    """What it costs, where that is another number than what it saves, also by the range of that."""
    if one.saving is None or not one.cost:
        return one.cost or None
    within = (one.least or 0) <= one.cost <= (one.most or 0)
    return None if within or abs(one.cost - one.saving) <= ALIKE * max(one.cost, one.saving) else one.cost


def share_of(one: Finding, step: int) -> float | None:
    """Saving over the step; the cost over it where no saving was measured."""
    amount = None if one.once else one.cost if one.saving is None else one.saving
    return None if amount is None or not step else amount / step


def grade_of(severity: Severity | None, confidence: Confidence | None) -> str:
    """Term that says how much it matters, and how sure that is where it is not certain; a note is a note."""
    sure = _SURE[confidence or Confidence.LOW] if severity else ""
    return f"grade_{(severity or Severity.INFO).name.lower()}{sure}"


def price(one: Finding, setting: Setting) -> Iterator[Message]:
    """What it costs and saves, where that is more than one number; else nothing."""
    cost, saving = cost_of(one), saving_of(one)
    values: list[tuple[str, Kind, Value]] = [("cost", Kind.DURATION, cost), ("saving", Kind.DURATION, saving)]
    if one.once:
        yield Message(_SAY["price_once"])
    elif saving is None and cost in {each.value for each in one.evidence}:
        # Its sentence has said what it costs.
        yield Message(_SAY["price_unknown"])
    elif saving is None and cost is not None:
        share = ("share", Kind.SHARE, share_of(one, setting.step))
        yield Message(_SAY["price_cost"], (values[0], share))
    elif cost is not None:
        yield Message(_SAY["price_more" if cost < (one.least or 0) else "price_both"], tuple(values))
    elif isinstance(saving, Between):
        yield Message(_SAY["price_range"], tuple(values[1:]))


def together(found: Iterable[Finding], replayed: tuple[int, int, int] | None) -> told.Saving | None:
    """What several findings save at once; None where that was not replayed."""
    if replayed is None or sum(bool(one.saving) for one in found) < 2:
        return None
    low, saving, high = replayed
    return told.Saving(saving, low, high)


def amount_together(saving: int, savings: Iterable[int]) -> str:
    """Whether several save at once `less` than one by one, `more`, or about as much (`alone`)."""
    every = sum(savings)
    return "less" if saving < (1 - ALIKE) * every else "more" if saving > (1 + ALIKE) * every else "alone"


def _together(found: Sequence[Said], replayed: tuple[int, int, int] | None) -> Iterator[Message]:
    at_once = together((one.found for one in found), replayed)
    if at_once is not None:
        amount = amount_together(at_once.ns, (one.found.saving or 0 for one in found))
        yield _at_once(amount, at_once, found[0].setting.step)


def _at_once(amount: str, saved: told.Saving, step: int) -> Message:
    saving = ("saving", Kind.DURATION, between(saved.low_ns, saved.ns, saved.high_ns))
    return Message(_SAY[f"together_{amount}"], (saving, ("share", Kind.SHARE, saved.ns / step if step else 0.0)))


def notes(found: Sequence[Said], replayed: Ends | None = None, with_ranks: Ends | None = None) -> Iterator[Message]:
    """For each finding its sentence, line and price, and what to do; advice that was given already is not repeated."""
    given: set[str] = set()
    for one in found:
        yield one.sentence
        yield from hosts_time(one.found)
        said = {value for _, _, value in one.sentence.values}
        yield from (
            Message(_SAY["at_line"], (("line", Kind.NAME, each),))
            for each in lines_of(one.found)[:1]
            if each not in said
        )
        yield from price(one.found, one.setting)
        for advice in one.found.advice:
            if advice not in given:
                given.add(advice)
                yield Message(f"advice_{advice}.{one.setting.platform}")
    yield from _together(found, replayed)
    if with_ranks is not None and found:
        yield _at_once("ranks", told.Saving(with_ranks[1], with_ranks[0], with_ranks[2]), found[0].setting.step)


def _in_words(one: Said, texts: Texts) -> told.Finding:
    every_rule()  # What their evidence is called is known once they are loaded.
    found, setting = one.found, one.setting
    formatter = Formatter(texts, setting.resolution_ns, whole=setting.whole, backward=setting.backward)
    named = texts.messages[_SAY["finding_other"]].format(rule=found.rule, text="").strip() if found.rule else ""
    sentence = formatter.sentences((one.sentence, *hosts_time(found))).removeprefix(named).strip()
    if setting.recording:
        sentence = texts.messages[_SAY["of_recording"]].format(recording=setting.recording, text=sentence)
    saving = found.saving
    spans = merged(found.intervals) if found.intervals is not None and len(found.intervals) else intervals.EMPTY
    return told.Finding(
        id=_id(one),
        rule=found.rule,
        title=formatter.value(Kind.TERM, one.title),
        sentence=sentence,
        price=formatter.sentences(price(found, setting)),
        advice=tuple(texts.terms[f"do_{key}.{setting.platform}"] for key in found.advice),
        saving=None if saving is None else told.Saving(saving, found.least or 0, found.most or 0),
        cost_ns=found.cost,
        once=found.once,
        share=share_of(found, setting.step),
        severity="note" if not found.severity else found.severity.name.lower(),
        confidence=Confidence(found.confidence or 0).name.lower(),
        grade=texts.terms[grade_of(found.severity, found.confidence)],
        scope=told.Scope(
            found.scope.ranks,
            found.scope.steps or tuple(_steps(spans, setting)),
            tuple(op for op in found.scope.ops if not _LINE.search(op)),
            lines_of(found),
        ),
        evidence=tuple(_evidence(found, formatter)),
        link=told.Link(
            f"traceanalyze rule {found.rule}" if found.rule else "", PAGE.format(rule=found.rule.lower()), setting.path
        ),
        count=found.count,
        intervals=np.stack((spans.start, spans.end), axis=1),
        intervals_left_out=found.left_out,
    )


def lines_of(found: Finding) -> tuple[str, ...]:
    """Lines of the program that its evidence names, and that it names itself."""
    lines = [*(each.line for each in found.evidence), *filter(_LINE.search, found.scope.ops)]
    return tuple(dict.fromkeys(line for line in lines if line))


def _id(one: Said) -> str:
    # Imported here: the libraries behind it take 3 ms.
    import hashlib

    key = "\0".join((*one.found.key[:3], *one.found.scope.ops, *map(str, one.found.scope.ranks), one.setting.place))
    return f"{one.found.rule or one.found.slug}-{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:8]}"


def _steps(spans: intervals.Intervals, setting: Setting) -> Iterator[str]:
    """Those it is in; nothing where that is all of them."""
    inside = intervals.coverage(spans, np.asarray(setting.start, np.int64), np.asarray(setting.end, np.int64))
    if not inside.all():
        yield from (name for name, amount in zip(setting.steps, inside.tolist(), strict=True) if amount)


def _evidence(found: Finding, formatter: Formatter) -> Iterator[told.Evidence]:
    for each in found.evidence:
        kind = Kind[each.kind]
        text = formatter.value(kind, each.value)
        yield told.Evidence(
            formatter.value(Kind.TERM, label_of(found, each.label, formatter.texts)),
            text if kind == Kind.TERM else each.value,
            _UNITS.get(kind),
            text,
            each.start,
            each.end,
            each.line,
        )
