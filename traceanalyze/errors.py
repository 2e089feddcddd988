"""The errors a user can meet, each with the exit code of the command line, and the lines of English they consist of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

_OPTION = "--([a-z][a-z-]*)"
_ARGUMENTS = {"category": "categories", "label": "labels", "rank": "ranks"}
"""Arguments of functions that are called otherwise than the options of commands, without `--`."""


def _argument(option: re.Match[str]) -> str:
    name = option[1].replace("-", "_")
    return _ARGUMENTS.get(name, name)


def _of_mapping(option: re.Match[str]) -> str:
    return f"{_argument(option)}={{{{{option[2]}: {option[3]}}}}}"


def _of_arguments(template: str) -> str:
    template = re.sub(_OPTION + r" (\{\w+\})=(\{\w+\})", _of_mapping, template)
    template = re.sub(_OPTION + r" (?=[{\d])", lambda each: f"{_argument(each)}=", template)
    return re.sub(_OPTION, _argument, template)


class Phrase(str):
    """A line of English that keeps its template and values, so that it can be said in another language.

    Values fill the names in braces in the order in which these first appear; a template without values is taken as it
    is. `python -m tests.catalogues` finds templates where they stand, as they are plain strings.
    """

    __slots__ = ("template", "values")
    template: str
    values: dict[str, object]

    def __new__(cls, template: str, /, *values: object) -> Phrase:
        """A template and what fills it."""
        kept = dict(zip(placeholders(template), map(_kept, values), strict=True)) if values else {}
        made = super().__new__(cls, template.format(**kept) if kept else template)
        made.template, made.values = template, kept
        return made

    def said(self, templates: Mapping[str, str]) -> str:
        """The line in another language, given its templates by the English ones; what they lack stays English."""
        wording = templates.get(self.template, self.template)
        values = {
            name: value.said(templates) if isinstance(value, Phrase) else value for name, value in self.values.items()
        }
        return wording.format(**values) if values else wording

    def in_python(self) -> str:
        """The line about arguments of functions, `steps=99`, in place of options, `--steps 99`; commands stay."""
        template, values = self.template, dict[str, object]()
        for name, value in self.values.items():
            of_option = re.fullmatch(_OPTION, value) if isinstance(value, str) else None
            if of_option:
                template = template.replace(f"{{{name}}} {{", f"{{{name}}}={{")
            said = value.in_python() if isinstance(value, Phrase) else value
            values[name] = _argument(of_option) if of_option else said
        # Every other piece stands between backquotes.
        pieces = [each if at % 2 else _of_arguments(each) for at, each in enumerate(template.split("`"))]
        return "`".join(pieces).format(**values) if values else "`".join(pieces)


class Lost(Phrase):
    """A remark on data of a recording that is missing, so that numbers may be other than they would be with it."""

    __slots__ = ()


class Unmatched(Phrase):
    """A remark on a pattern of the user that fits no name of the recording."""

    __slots__ = ()


class Apart(Phrase):
    """A remark that a folder holds several recordings, which are analysed each by itself."""

    __slots__ = ()


def joined(mark: str, parts: Sequence[Phrase]) -> Phrase:
    """Several phrases as one, with a mark between them."""
    return Phrase(mark.join(f"{{part{place}}}" for place in range(len(parts))), *parts)


def listed(names: Iterable[object]) -> Phrase:
    """Names as a list in a line; the mark between them is the language's."""
    return _halved([name if isinstance(name, Phrase) else Phrase(str(name)) for name in names])


def some(names: Sequence[str], most: int = 3) -> str:
    """The first of the names, in a line."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


_MOST_RANGES = 12
"""More of them say less than how many numbers there are."""


def ranges(numbers: Sequence[int]) -> Phrase:
    """0, 2–5, 7."""
    breaks = [0, *(i for i, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1), len(numbers)]
    if len(breaks) > _MOST_RANGES + 1:
        return Phrase("{count} of them from {first} to {last}", len(numbers), numbers[0], numbers[-1])
    parts = [numbers[start:stop] for start, stop in pairwise(breaks)]
    return listed(f"{part[0]}–{part[-1]}" if len(part) > 1 else part[0] for part in parts if part)


def _halved(names: Sequence[Phrase]) -> Phrase:
    """The list of two lists of half the length, so that a thousand names are ten phrases deep."""
    if len(names) < 2:
        return names[0] if names else Phrase("")
    half = len(names) // 2
    return Phrase("{names}, {name}", _halved(names[:half]), _halved(names[half:]))


def placeholders(template: str) -> list[str]:
    """Names of the values of a template, as they first appear."""
    from string import Formatter

    return list(dict.fromkeys(name for _, name, _, _ in Formatter().parse(template) if name is not None))


def _kept(value: object) -> object:
    """A value as phrases hold it, which go from process to process: of an error what it says."""
    if isinstance(value, TraceAnalyzeError):
        return value.phrase
    return str(value) if isinstance(value, BaseException) else value


class TraceAnalyzeError(Exception):
    """Base of every expected error; the text is one line a user can act on."""

    exit_code = 2

    def __init__(self, template: str, /, *values: object) -> None:
        super().__init__(template if isinstance(template, Phrase) else Phrase(template, *values))

    def __str__(self) -> str:
        """What it says to who called a function; commands say it by `phrase`."""
        return self.phrase.in_python()

    @property
    def phrase(self) -> Phrase:
        """What it says, for other languages."""
        return self.args[0]  # type: ignore[no-any-return]


class InputError(TraceAnalyzeError):
    """The input cannot be used: says which file, where in it, why, and what to do."""


class UsageError(TraceAnalyzeError):
    """The options contradict each other or the input, for example a step that does not exist."""
