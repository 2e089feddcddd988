"""Write a rule with its cases, to start a new one from: `python -m tests.new_rule DAT199 slow-thing "a title"`.

The rule is about a made-up operator under which the device is idle. Its cases pass as they are.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from traceanalyze.rules.registry import own_rules
from traceanalyze.rules.rule import FAMILIES

ROOT = Path(__file__).parents[1]

RULE = '''\
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Scope, measured, merged, rule

_OPERATOR = regex(r"^example::{name}$")


@rule(
    "{code}",
    "{slug}",
    title="{title}",
    sentence="`example::{name}` ({{count}} time(s)) leaves the device without work {{idle}} {{per}}.",
    confidence=Confidence.MEDIUM,
    needs="DO",
    advice_texts={{"{name}": "Say in one sentence what to do."}},
    options={{"share": (0.01, "own: of the step; less is not worth a change")}},
)
def find(facts: Facts, options: Options) -> Findings:
    """{Title}.

    What it finds
        Operators `example::{name}` while the device is idle.
    Why it costs time
        The host launches nothing meanwhile, so that the device runs out of work.
    How it is measured
        Idle time of the device (definitions §5) inside these operators, from 1 % of the step on; at most, all their
        time. Under a busy device they cost nothing.
    What to do
        Say what to do, and where that does not help.

    References
        Say where this is known from: a guide, a paper, a source, a measurement of your own.
    """
    rows = facts.rows(EventKind.HOST_OP, _OPERATOR)
    spans = facts.spans(rows)
    idle = facts.overlap(merged(spans))
    saving = facts.length(idle)
    if facts.share(saving) < options.number("share"):
        return
    yield Finding(
        saving=saving,
        bound=facts.length(spans),
        draws="idle",
        intervals=idle,
        evidence=measured(count=len(rows), idle=saving),
        count=len(rows),
        scope=Scope(ops=facts.names(rows)),
    )
'''

CASES = '''\
"""What rule {code} must find, and what not: see `tests/rules/make.py`."""

from __future__ import annotations

from tests.rules.make import Fires, Silent, busy, kernel, program


def waiting(b, at, number):
    """The operator takes 500 µs of a step of 2000, and the device has nothing to do meanwhile."""
    b.op("example::{name}", at + 10, 500)
    kernel(b, at + 520, 1000)


def half_hidden(b, at, number):
    """A kernel still runs for the first half of the operator."""
    kernel(b, at, 240)
    b.op("example::{name}", at + 20, 480)
    kernel(b, at + 510, 1000)


def hidden(b, at, number):
    """The device is busy all the time that the operator takes."""
    kernel(b, at, 1900)
    b.op("example::{name}", at + 100, 500)


FIRES = {{
    "{code}": [
        Fires(
            program(waiting),
            saving=500,
            bound=500,
            severity="HIGH",
            count=4,
            evidence={{"count": 4, "idle": 500}},
            ops=("example::{name}",),
            draws="idle",
            each=500,
            first=(10, 510),
            look=(10, 510),
            options={{"share": (0.01, 0.25, 0.26)}},
        ),
        Fires(
            program(half_hidden),
            saving=240,
            bound=480,
            severity="MEDIUM",
            count=4,
            evidence={{"count": 4, "idle": 240}},
            ops=("example::{name}",),
            draws="idle",
            each=240,
            first=(260, 500),
            look=(260, 500),
        ),
    ]
}}

SILENT = {{"{code}": [program(busy), program(hidden), Silent(program(half_hidden), share=0.13)]}}
'''


def files_of(code: str, slug: str, title: str) -> dict[str, str]:
    """Path → text of what is to be written.

    Raises:
        ValueError: No rule can be called so.
    """
    family = FAMILIES.get(code[:3])
    if family is None or not re.fullmatch(r"[A-Z]{3}\d{3}", code):
        raise ValueError(f"{code}: an id is one of {', '.join(FAMILIES)} and three digits")
    if family == "rank":
        raise ValueError(
            "rules about ranks are given all ranks: begin with a copy of traceanalyze/rules/rank/straggler.py"
        )
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", slug) or len(slug) > 24:
        raise ValueError(f"{slug}: a slug is small letters, digits and hyphens, 24 at most")
    if not title.isprintable() or not title.strip() or set(title) & set('"\\') or len(title) > 80:
        raise ValueError("a title is one line of 80 characters at most, without quotation marks")
    known = own_rules()
    if code in known:
        last = max(each for each in known if each.startswith(code[:3]))
        raise ValueError(f"there is a rule {code}; the last one of its family is {last}")
    if any(slug == each.slug for each in known.values()):
        raise ValueError(f"there is a rule {slug}")
    name = slug.replace("-", "_")
    values = {"code": code, "slug": slug, "name": name, "title": title, "Title": title[0].upper() + title[1:]}
    return {
        f"traceanalyze/rules/{family}/{name}.py": RULE.format(**values),
        f"tests/rules/{family}/cases_{name}.py": CASES.format(**values),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the files and say what is next."""
    parser = argparse.ArgumentParser(prog="python -m tests.new_rule", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("id", help="family and number, DAT199")
    parser.add_argument("slug", help="a noun for what is wrong, slow-thing; the file has the same name")
    parser.add_argument("title", help="what the list of findings calls it, a few words in small letters")
    chosen = parser.parse_args(arguments)
    try:
        files = files_of(chosen.id, chosen.slug, chosen.title)
    except ValueError as error:
        parser.error(str(error))
    for path, text in files.items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    print("Both work as they are, on a made-up operator: turn them into your rule.")
    print(f"  python -m pytest tests/rules -k {chosen.id}     tests the cases")
    print(f"  python -m tests.rules.make {chosen.id}          prints what the rule says about them")
    print("  python -m tests.check                      checks the whole change")


if __name__ == "__main__":
    main()
