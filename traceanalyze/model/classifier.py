"""What names mean that only the user's own organisation knows: data that a plug-in gives.

A package names its `Classifier` under the entry-point group `traceanalyze.classifiers`; README, "Plug-ins".
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from traceanalyze import plugins
from traceanalyze.model.kernel_classes import KernelGroup, group_of_op

_BY_RECORD = frozenset({KernelGroup.COPY, KernelGroup.FILL})
"""The profiler records these as what they are, so no name has to tell them."""
KINDS_OF_WORK = {group.name.lower(): group for group in KernelGroup if group not in _BY_RECORD}
"""What a classifier may say that a kernel or operator is for."""


class Classifier(NamedTuple):
    """Regular expressions, searched in names as they are written; the first that fits decides.

    They come after what the user says on the command line, and before what the tool knows by itself.
    """

    kernels: Mapping[str, str] = {}
    """Of names of kernels → kind of work, in lower case as in `KernelGroup`: `attention`, `matmul`, `optimizer` …
    `communication` counts as communication in the split of a step, every other kind as compute."""
    operators: Mapping[str, str] = {}
    """Of names of operators → kind of work of the kernels that they launch, where the kernel's own name tells none; not
    `communication`, which operators of compute kernels cannot tell."""
    data_loading: tuple[str, ...] = ()
    """Of names of host ranges (annotations, operators) in which the program waits for its data loader."""


class Names(NamedTuple):
    """A classifier ready for use, with the name of its plug-in."""

    plugin: str
    kernels: tuple[tuple[re.Pattern[str], KernelGroup], ...]
    operators: tuple[tuple[re.Pattern[str], KernelGroup], ...]
    data_loading: tuple[re.Pattern[str], ...]


def known_names() -> tuple[Names, ...]:
    """The classifiers of all plug-ins, by the names of these; those that cannot be used are left out."""
    return plugins.load(plugins.CLASSIFIERS, names_of)


def names_of(plugin: str, classifier: object) -> Names:
    """A classifier's expressions compiled and its words looked up; a TypeError or ValueError says what is wrong."""
    if not isinstance(classifier, Classifier):
        raise TypeError(f"{type(classifier).__name__} is no traceanalyze.model.classifier.Classifier")
    if isinstance(classifier.data_loading, str):
        raise TypeError("data_loading is a tuple of texts, not one text")
    data = tuple(_pattern(text) for text in classifier.data_loading)
    compute = {word: kind for word, kind in KINDS_OF_WORK.items() if kind != KernelGroup.COMMUNICATION}
    kernels, operators = _table(classifier.kernels, KINDS_OF_WORK), _table(classifier.operators, compute)
    return Names(plugin, kernels, operators, data)


def _table(
    words: Mapping[str, str], kinds: Mapping[str, KernelGroup]
) -> tuple[tuple[re.Pattern[str], KernelGroup], ...]:
    for word in words.values():
        if word not in kinds:
            raise ValueError(f"{word} is no kind of work; these are: {', '.join(kinds)}")
    return tuple((_pattern(text), kinds[word]) for text, word in words.items())


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"{text} is not a regular expression: {error}") from error


def classifier_of_kernel(name: str, known: Iterable[Names]) -> tuple[int, KernelGroup] | None:
    """Which of the classifiers knows a kernel, and what it says; None where none does."""
    hits = ((at, kind) for at, one in enumerate(known) for pattern, kind in one.kernels if pattern.search(name))
    return next(hits, None)


def classifier_of_op(op: str, known: Iterable[Names]) -> tuple[int, KernelGroup] | None:
    """The same of an operator."""
    hits = ((at, kind) for at, one in enumerate(known) for pattern, kind in one.operators if pattern.search(op))
    return next(hits, None)


def classifier_of_range(name: str, known: Iterable[Names]) -> int:
    """Which of the classifiers says that a host range is data loading, -1 where none does."""
    return next((at for at, one in enumerate(known) if any(each.search(name) for each in one.data_loading)), -1)


def kind_of_op(op: str, known: Iterable[Names]) -> KernelGroup:
    """What the kernels of an operator are for, by the classifiers first."""
    found = classifier_of_op(op, known)
    return group_of_op(op) if found is None else found[1]
