"""Kernel names as text: one spelling for all compilers, read by bracket depth into name, template and lambda."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from traceanalyze.model.patterns import regex

_MOST = 4000
"""Letters that are read: what tells a name stands before its call arguments. The longest name seen has 5,160."""
_CLONE = regex(r"(?: \[clone [^\]]*\]|\.kd)+$")
_LLVM_LAMBDA = regex(r"'lambda(\d{0,9})'\(([^()]*)\)")
_LAMBDA = regex(r"\{lambda\(([^{}]*?)\)#(\d+)\}")
_ENUM = regex(r"\([A-Za-z_][\w:]*\)(?=-?\d)")
_BRACKET = regex(r"[<>(){}\[\],]")
_LENGTH = regex(r"(?:[NKVrLS]|St)*?(\d{1,4})(?=[A-Za-z_])")
_LATER = regex(r"(?<=[A-Z_])(\d{1,4})(?=[A-Za-z]{3})")
_INNERMOST = regex(r"\{([^{}#]*)#\d+\}$")
_NUMBERS = regex(r"#(\d+)\}")


class Call(NamedTuple):
    """One template instance: the kernel itself, or one of its arguments."""

    space: str
    """Namespaces and what else stands before the name, with `::`."""
    name: str
    args: list[str]
    """Template arguments."""
    rest: str
    """From the call's arguments on: of a lambda also where in its host function it is."""

    @property
    def lambda_types(self) -> list[str]:
        """Types of the arguments of the innermost lambda, where it is one."""
        found = _INNERMOST.search(self.rest)
        return read(f"_<{found[1]}>").args if found else []

    @property
    def lambda_numbers(self) -> str:
        """Which lambda of the host function, from the outermost inwards; the last is nearly always the first."""
        numbers = _NUMBERS.findall(self.rest)
        return "λ" + ".".join(numbers[:-1] or numbers) if numbers else ""


def normal(name: str) -> str:
    """The name in one spelling, in which parentheses are only those of calls.

    GNU's `{lambda(float)#1}` and LLVM's `'lambda'(float)` are `{float#1}`; anonymous namespaces and casts to
    enumerations go. A mangled name becomes the identifiers that its lengths tell.
    """
    name = name[:_MOST]
    if name.endswith((".kd", "]")):
        name = _CLONE.sub("", name)
    if name.startswith("_Z"):
        return _identifiers(name)
    if "(" not in name:
        return name
    if "'lambda" in name:
        name = _LLVM_LAMBDA.sub(lambda found: f"{{lambda({found[2]})#{int(found[1] or -1) + 2}}}", name)
    name = name.replace("(anonymous namespace)::", "").replace("operator()", "operator").replace("->", "→")
    return _ENUM.sub("", _LAMBDA.sub(r"{\1#\2}", name))


def _identifiers(name: str) -> str:
    """Nested name of a mangled one, and the first identifier among its template arguments, which stay unread."""
    path, at = [], 2
    while found := _LENGTH.match(name, at):
        at = found.end() + int(found[1])
        path.append(name[found.end() : at])
    plain = "::".join(part for part in path if not part.startswith("_GLOBAL__"))
    inner = _LATER.search(name, at) if plain else None
    return f"{plain}<{name[inner.end() : inner.end() + int(inner[1])]}>" if inner else plain or name


def read(text: str) -> Call:
    """The outermost name of a normalised text; what does not balance ends it."""
    text, depth, end, last, cuts = text.strip(), 0, 0, 0, [0]
    for found in _BRACKET.finditer(text):
        mark, at = found[0], found.start()
        if mark == "," and depth == 1:
            cuts.append(at)
        elif mark in "<({[":
            if depth == 0:
                if mark == "(":
                    end = at
                    break
                last, cuts = cuts[-1] + (cuts[-1] > 0), [at]
            depth += 1
        elif mark != ",":
            depth -= 1
            if depth <= 0:
                cuts.append(at)
    end = end or len(text)
    whole = depth == 0 and len(cuts) > 1 and cuts[-1] + 1 == end and text[cuts[0]] == "<"
    begin, stop = (last, cuts[0]) if whole or depth > 0 else (cuts[-1] + (len(cuts) > 1), end)
    own = max(text.rfind(":", begin, stop), text.rfind(" ", begin, stop), begin - 1) + 1
    args = [text[left + 1 : right].strip() for left, right in pairwise(cuts)] if whole else []
    call = Call(text[:own], text[own:stop], args, text[end:])
    if call.name == "operator" and call.space:
        # `sum_functor<float>::operator()(…)`: the class is the name.
        outer = read(call.space.removesuffix("::"))
        return Call(outer.space, outer.name, outer.args + args, call.rest)
    return call
