"""What a rule is: metadata, and a pure generator over facts. All that a rule needs can be imported from here."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import (
    Confidence,
    Evidence,
    Finding,
    NotApplicable,
    Scope,
    Severity,
    UnmeasuredError,
    intervals_of,
    measured,
    merged,
    need,
    picked,
)

__all__ = (
    "Confidence",
    "Evidence",
    "Facts",
    "Finding",
    "Findings",
    "NotApplicable",
    "Options",
    "Rule",
    "Scope",
    "Severity",
    "UnmeasuredError",
    "intervals_of",
    "measured",
    "merged",
    "need",
    "picked",
    "rule",
)
HEADINGS = ("What it finds", "Why it costs time", "How it is measured", "What to do", "References")
"""Of every rule's docstring, in this order."""
FAMILIES = {
    "DAT": "data",
    "HST": "host",
    "SYN": "sync",
    "MEM": "memory",
    "KRN": "kernel",
    "CGR": "compile",
    "COM": "comm",
    "RNK": "rank",
    "CAP": "capture",
    "NPU": "npu",
}
"""Prefix of the ids → folder."""

Value = bool | int | float | str
Findings = Iterator[Finding | NotApplicable]
"""What a rule yields."""


class Option(NamedTuple):
    """A threshold, and where its value comes from."""

    default: Value
    source: str


class Options(dict[str, Value]):
    """Values of a rule's options by name."""

    def number(self, name: str) -> float:
        """A threshold as a number."""
        return float(self[name])


@dataclass(frozen=True)
class Rule:
    """A rule and everything said about it. Call it with facts and options to get its findings."""

    id: str
    slug: str
    """Noun for the failing state; the file has the same name."""
    confidence: Confidence
    find: Callable[[Any, Options], Findings]
    """Of `Facts`; rules about ranks (needs R) take the facts of all ranks."""
    needs: str
    """Codes of what the profile must have: D device events, L runtime calls, A those of the runtime itself (not only of
    the queue before it), O host operators, P Python functions, H shapes, M memory records, N allocator snapshot, R all
    ranks, C collective metadata, E environment, K kernel arguments. A rule that can do with less asks for less and
    looks itself."""
    advice: tuple[str, ...]
    """Keys of what to do."""
    title: str = ""
    """English, like the texts below; other languages have theirs in `locales`."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """`Finding.sentence` → the title of findings that the rule's own does not describe."""
    sentences: Mapping[str, str] = field(default_factory=dict)
    """`Finding.sentence` → what a finding says; placeholders are labels of its evidence, and `per`."""
    advice_texts: Mapping[str, str] = field(default_factory=dict)
    """Key → what to do; `key.cuda` and `key.ascend` where the vendors differ. What several rules advise stands in
    `rules/finding.py`."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Label → words; those of several rules stand in `rules/finding.py`."""
    options: Mapping[str, Option] = field(default_factory=dict)
    platforms: tuple[str, ...] = ("cuda", "ascend")
    since: str = "0.1.0"
    rare: bool = False
    """About rare events: need not hold in half of the steps."""
    threshold: bool = True
    """Left out below 1 % of the step, and below 0.1 ms unless that is 5 %."""
    order: int = 0
    """Of two findings about the same time, that of the rule with the lower order keeps it; general rules, which explain
    what particular ones leave, have a positive one."""
    beside: str = ""
    """A rule whose findings this one only adds to: where that one was applied and left out, so is this one."""
    unless: str = ""
    """A rule that says the same better: where it has a finding, this one is left out."""
    host: str | None = None
    """Its needs where the host alone computes (`Facts.host_computes`) and it is about the time of the host; None: it is
    about devices."""

    @property
    def doc(self) -> str:
        """Its page, the docstring of the function."""
        # Imported here: reports do without.
        from inspect import getdoc

        return getdoc(self.find) or ""

    @property
    def family(self) -> str:
        """Prefix of the id."""
        return self.id[:3]

    def __call__(self, facts: Any, options: Options | None = None) -> Findings:
        """Findings on these facts; with default options where none are given."""
        try:
            yield from self.find(facts, options if options is not None else self.defaults())
        except UnmeasuredError as error:
            yield NotApplicable(str(error))

    def defaults(self) -> Options:
        """Default values of the options."""
        return Options({name: option.default for name, option in self.options.items()})


def rule(
    code: str,
    slug: str,
    *,
    confidence: Confidence,
    needs: str,
    title: str | Mapping[str, str] = "",
    sentence: str | Mapping[str, str] = "",
    advice: tuple[str, ...] | None = None,
    advice_texts: Mapping[str, str] | None = None,
    evidence: Mapping[str, str] | None = None,
    options: Mapping[str, tuple[Value, str]] | None = None,
    platforms: tuple[str, ...] = ("cuda", "ascend"),
    since: str = "0.1.0",
    rare: bool = False,
    threshold: bool = True,
    order: int = 0,
    beside: str = "",
    unless: str = "",
    host: str | None = None,
) -> Callable[[Callable[[Any, Options], Findings]], Rule]:
    """Make a rule of a generator; the arguments are the fields of `Rule`.

    `sentence` is the only one that the rule has, or several by their keys, and so is `title`, of which that without a
    key is the rule's own; without `advice` a rule gives all that it has texts for; `options` are name → (default, where
    the default comes from).
    """
    if not (len(code) == 6 and code.isascii() and code[:3].isalpha() and code[:3].isupper() and code[3:].isdigit()):
        raise ValueError(f"{code}: an id is three capital letters and three digits")
    texts = advice_texts or {}
    if advice is None:
        advice = tuple(dict.fromkeys(key.partition(".")[0] for key in texts))

    def decorated(find: Callable[[Any, Options], Findings]) -> Rule:
        return Rule(
            id=code,
            slug=slug,
            confidence=confidence,
            find=find,
            needs=needs,
            advice=advice or (),
            title=title if isinstance(title, str) else title[""],
            titles={} if isinstance(title, str) else {key: text for key, text in title.items() if key},
            sentences={"": sentence} if isinstance(sentence, str) else sentence,
            advice_texts=texts,
            evidence=evidence or {},
            options={name: Option(default, source) for name, (default, source) in (options or {}).items()},
            platforms=platforms,
            since=since,
            rare=rare,
            threshold=threshold,
            order=order,
            beside=beside,
            unless=unless,
            host=host,
        )

    return decorated
