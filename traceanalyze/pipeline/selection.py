"""Lists of numbers as users write them (`5`, `0,3-5`, `2:`), and the steps or ranks they choose."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.steps.window import Steps, step_labels
from traceanalyze.errors import Phrase, UsageError
from traceanalyze.model.patterns import regex

_ITEM = regex(r"(?P<one>\d+)|(?P<from>\d+)-(?P<to>\d+)|(?P<start>\d*):(?P<stop>\d*)")
_LONGEST_LIST = 12
ALL = "all"
Chosen = str | int | Sequence[int]
"""A list of numbers as users give it: as a text, or in Python as numbers."""


class Numbers(NamedTuple):
    """Ranges of whole numbers, both ends included; the last of an open range is None."""

    text: Phrase
    """The option as given, for error messages."""
    what: str
    """What is numbered: step, rank."""
    ranges: tuple[tuple[int, int | None], ...]

    def chosen(self, numbers: Sequence[int]) -> list[bool]:
        """Which of the numbers are in the list; a UsageError where one alone, or all of it, chooses nothing."""
        for first, last in self.ranges:
            if not any(_inside(number, first, last) for number in numbers):
                wanted = str(first) if first == last else f"{first} to {'the end' if last is None else last}"
                raise no_such_number(self.text, self.what, wanted, numbers)
        return [any(_inside(number, *bounds) for bounds in self.ranges) for number in numbers]


def no_such_number(text: Phrase, what: str, wanted: str, numbers: Sequence[int]) -> UsageError:
    """The error of one who asks for what was not recorded: `text` is the option as given."""
    if not numbers:
        return UsageError("{text}: the recording tells no {what}", text, what)
    known = listed(numbers)
    if len(set(numbers)) > 1:
        return UsageError("{text}: there is no {what} {wanted}; there are {known}", text, what, wanted, known)
    return UsageError("{text}: there is no {what} {wanted}; there is {known}", text, what, wanted, known)


def _inside(number: int, first: int, last: int | None) -> bool:
    return first <= number and (last is None or number <= last)


def as_text(chosen: Chosen, option: str) -> str:
    """The list as on the command line."""
    found = chosen if isinstance(chosen, str | Sequence) else (chosen,)
    if isinstance(found, str):
        return found
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in found):
        raise UsageError("{option} {value}: write a number, a list of numbers, or a text such as 0,3-5", option, chosen)
    return ",".join(map(str, found))


def parse_numbers(chosen: Chosen, option: str, what: str) -> Numbers:
    """Read a list such as `0,3-5` (5 included) or `2:` (from 2 on) or `:4` (0 to 3, as Python slices)."""
    text = as_text(chosen, option)
    ranges: list[tuple[int, int | None]] = []
    for item in text.replace(" ", "").split(","):
        found = _ITEM.fullmatch(item)
        if found is None:
            raise UsageError(
                "{option} {text}: '{item}' is not a number, a range such as 3-5, or 2: (from 2 on)", option, text, item
            )
        if found["one"]:
            bounds: tuple[int, int | None] = (int(found["one"]), int(found["one"]))
        elif found["from"]:
            bounds = (int(found["from"]), int(found["to"]))
        else:
            bounds = (int(found["start"] or 0), int(found["stop"]) - 1 if found["stop"] else None)
        if bounds[1] is not None and bounds[1] < bounds[0]:
            raise UsageError("{option} {text}: the range '{item}' is empty", option, text, item)
        ranges.append(bounds)
    return Numbers(Phrase("{option} {text}", option, text), what, tuple(ranges))


def listed(numbers: Sequence[int]) -> str:
    """Numbers in words: `0 to 7`, `1, 4, 9`, or the ends of a long list."""
    ordered = sorted(set(numbers))
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return Phrase("{first} to {last}", ordered[0], ordered[-1])
    if len(ordered) > _LONGEST_LIST:
        return Phrase("{count} of them from {first} to {last}", len(ordered), ordered[0], ordered[-1])
    return ", ".join(map(str, ordered)) or Phrase("none")


def stream_chooser(text: Chosen) -> Callable[[NDArray[np.int64]], NDArray[np.bool_]]:
    """Mask of the device events on the streams a user chose."""
    numbers = parse_numbers(text, "--streams", Phrase("stream"))

    def choose(streams: NDArray[np.int64]) -> NDArray[np.bool_]:
        known = np.unique(streams)
        wanted = known[np.array(numbers.chosen(known.tolist()), np.bool_)] if len(known) else known
        return np.isin(streams, wanted)

    return choose


def step_chooser(chosen: Chosen, option: str = "--steps") -> Callable[[Steps], NDArray[np.bool_]]:
    """Mask of the steps a user chose, by the number each goes by; `all` are all, those of the start of the run too."""
    text = as_text(chosen, option)
    if text.strip() == ALL:
        return lambda steps: np.ones(len(steps), np.bool_)
    numbers = parse_numbers(text, option, Phrase("step"))

    def choose(steps: Steps) -> NDArray[np.bool_]:
        labels = step_labels(steps.name)
        if not all(label.isdecimal() for label in labels):
            names = ", ".join(labels[:_LONGEST_LIST])
            raise UsageError("{option} {text}: the trace has no numbered steps, only: {names}", option, text, names)
        return np.array(numbers.chosen([int(label) for label in labels]), np.bool_)

    return choose
