r"""The lenient JSON grammar: what real profilers write, including what a strict parser refuses.

    ws      := [ \t\n\r]*
    string  := '"' ( '\' any-byte | any byte but '"' and '\' )* '"'    any escape, any encoding
    bare    := [A-Za-z0-9+\-._]+                                        numbers, null, NaN …; meaning comes later
    array   := '[' ws ( value ( ws ',' ws value )* ( ws ',' )? )? ws ']'
    object  := '{' ws ( member ( ws ',' ws member )* ( ws ',' )? )? ws '}'
    member  := string ws ':' ws value

Every choice is decided by one byte, so there is one way at most to read a text, and a regular expression that covers
the shallow part of the grammar accepts a value exactly as the recursive descent does.
"""

import math
import re

from traceanalyze.model.patterns import regex
from traceanalyze.readers.scan.result import MAX_DEPTH

BLANK = b" \t\n\r"
_WS = rb"[ \t\n\r]*"
_CHARS = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_STRING = rb'"' + _CHARS + rb'"'
_BARE = rb"[A-Za-z0-9+\-._]+"

_BLANKS = regex(_WS)
_SCALAR = regex(_STRING + rb"|" + _BARE, re.DOTALL)
_KEY = regex(rb'"(' + _CHARS + rb')"' + _WS + rb":" + _WS, re.DOTALL)
_COMMA = regex(_WS + rb"(,?)" + _WS)

Member = tuple[bytes, bytes]
"""Key without its quotes, undecoded, and the text of the value as written."""


def skip_blanks(text: bytes, pos: int) -> int:
    """Position of the first byte that is not white space."""
    found = _BLANKS.match(text, pos)
    return found.end() if found else pos


def key_end(text: bytes, pos: int) -> tuple[bytes, int] | None:
    """Read `string ws ':' ws`: the raw key and the position of its value, or None."""
    found = _KEY.match(text, pos)
    return (found[1], found.end()) if found else None


def value_end(text: bytes, pos: int, stop: int, level: int = 1) -> int:
    """Position after the value that begins at `pos`, or -1 if there is no whole value before `stop`."""
    first = text[pos : pos + 1] if pos < stop else b""
    if first == b"[":
        return _array_end(text, pos, stop, level)
    if first == b"{":
        return members(text, pos, stop, level)[1]
    found = _SCALAR.match(text, pos, stop)
    return found.end() if found else -1


def _array_end(text: bytes, pos: int, stop: int, level: int) -> int:
    if level > MAX_DEPTH:
        return -1
    pos = skip_blanks(text, pos + 1)
    separated = True
    while text[pos : pos + 1] != b"]" or pos >= stop:
        pos = value_end(text, pos, stop, level + 1) if separated else -1
        if pos < 0:
            return -1
        separated, pos = _separator(text, pos)
    return pos + 1


def members(text: bytes, pos: int, stop: int, level: int = 1) -> tuple[list[Member], int]:
    """Members of the object that begins at `pos`, and the position after it (-1 if it is not a whole object)."""
    found: list[Member] = []
    if level > MAX_DEPTH:
        return found, -1
    pos = skip_blanks(text, pos + 1)
    separated = True
    while text[pos : pos + 1] != b"}" or pos >= stop:
        key = _KEY.match(text, pos, stop) if separated else None
        end = value_end(text, key.end(), stop, level + 1) if key else -1
        if key is None or end < 0:
            return found, -1
        found.append((key[1], text[key.end() : end]))
        separated, pos = _separator(text, end)
    return found, pos + 1


def _separator(text: bytes, pos: int) -> tuple[bool, int]:
    found = _COMMA.match(text, pos)
    return (bool(found[1]), found.end()) if found else (False, pos)


def _unrolled(depth: int) -> bytes:
    """A value nested at most `depth` levels, as one expression; each item is followed by a comma or by the end."""
    scalar = _STRING + rb"|" + _BARE
    if depth == 0:
        return rb"(?:" + scalar + rb")"
    item = _unrolled(depth - 1) + _END_OF_ITEM
    return rb"(?:" + scalar + rb"|\[" + _WS + rb"(?:" + item + rb")*+\]|" + _unrolled_object(depth) + rb")"


def _unrolled_object(depth: int) -> bytes:
    return rb"\{" + _WS + rb"(?:" + _STRING + _WS + rb":" + _WS + _unrolled(depth - 1) + _END_OF_ITEM + rb")*+\}"


_END_OF_ITEM = _WS + rb"(?:," + _WS + rb"|(?=[\]}]))"
_WINDOW = 1 << 16
_SHALLOW = 4
_OBJECT = regex(_unrolled_object(_SHALLOW + 1), re.DOTALL)
_MEMBER = regex(rb'"(' + _CHARS + rb')"' + _WS + rb":" + _WS + rb"(" + _unrolled(_SHALLOW) + rb")", re.DOTALL)


def object_members(text: bytes, pos: int, stop: int) -> tuple[list[Member], int]:
    """As `members`, for an object that is probably short and shallow: one match instead of a descent."""
    found = _OBJECT.match(text, pos, min(stop, pos + _WINDOW))
    if found is None:
        return members(text, pos, stop)
    return _MEMBER.findall(text, pos + 1, found.end() - 1), found.end()


_HEX = rb"[0-9A-Fa-f]"
_PAIR = rb"u([dD][89ABab]" + _HEX + rb"{2})\\u([dD][C-Fc-f]" + _HEX + rb"{2})"
_ESCAPE = regex(rb"\\(?:" + _PAIR + rb"|u(" + _HEX + rb"{4})|([\"\\/bfnrt]))|\\.", re.DOTALL)
_SHORT = {b'"': b'"', b"\\": b"\\", b"/": b"/", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def _unescape(found: re.Match[bytes]) -> bytes:
    high, low, unit, short = found.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00).encode()
    if unit:
        code = int(unit, 16)
        return "\ufffd".encode() if 0xD800 <= code < 0xE000 else chr(code).encode()
    return _SHORT[short] if short else found[0]


def decoded(value: bytes) -> bytes:
    """The text of a value: a string without quotes and escapes, anything else as written.

    A surrogate without its other half becomes U+FFFD; a backslash that begins no escape of JSON stays.
    """
    if value[:1] != b'"':
        return value
    inner = value[1:-1]
    return _ESCAPE.sub(_unescape, inner) if b"\\" in inner else inner


_TRAILING = regex(rb"(?:\\t)+\Z")


def number_text(value: bytes) -> bytes:
    """What may be a number: a bare value, or the content of a string as written, without tabs at its end."""
    return _TRAILING.sub(b"", value[1:-1]) if value[:1] == b'"' else value


INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

_DECIMAL = regex(rb"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?)([0-9]+))?")
_INTEGER = regex(rb"([+-]?)0*([0-9]+)")
_CANONICAL = regex(rb"0|-?[1-9][0-9]{0,18}")
_LONGEST_EXPONENT = 10  # digits; beyond that the exponent outweighs any mantissa that fits into a value
_INT64_DIGITS = 19


def nanoseconds(text: bytes) -> tuple[int, bool] | None:
    """`text` microseconds as (ns, is it finer than a microsecond), rounded half to even.

    None if the text is not a decimal number or its value does not fit into an int64.
    """
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return None
    sign, whole, fraction, pure_fraction, exponent_sign, exponent = found.groups()
    fraction = fraction or pure_fraction or b""
    digits = ((whole or b"") + fraction).lstrip(b"0")
    if not digits:
        return 0, False
    shift = _exponent(exponent_sign, exponent) - len(fraction)
    magnitude = _scaled(digits, shift + 3)
    value = None if magnitude is None else -magnitude if sign == b"-" else magnitude
    if value is None or not INT64_MIN <= value <= INT64_MAX:
        return None
    return value, shift + len(digits) - len(digits.rstrip(b"0")) < 0


def _exponent(sign: bytes | None, digits: bytes | None) -> int:
    digits = (digits or b"").lstrip(b"0")[: _LONGEST_EXPONENT + 1]
    value = int(digits or b"0")
    return -value if sign == b"-" else value


def _scaled(digits: bytes, shift: int) -> int | None:
    """`digits` × 10^shift, rounded half to even; None if that has more digits than an int64."""
    if len(digits) + shift > _INT64_DIGITS:
        return None
    if shift >= 0:
        return int(digits.ljust(len(digits) + shift, b"0"))
    kept, rest = digits[:shift], digits[shift:]
    if len(digits) + shift < 0:
        return 0
    value = int(kept or b"0")
    half = b"5".ljust(len(rest), b"0")
    return value + (rest > half or (rest == half and value % 2 == 1))


def integer(text: bytes) -> int | None:
    """An integer in [-2^63, 2^64) as an int64: the upper half wraps, as unsigned ids do. None for anything else."""
    found = _INTEGER.fullmatch(text)
    if found is None or len(found[2]) > _INT64_DIGITS + 1:
        return None
    value = -int(found[2]) if found[1] == b"-" else int(found[2])
    if not INT64_MIN <= value < 1 << 64:
        return None
    return value - (1 << 64) if value > INT64_MAX else value


def real(text: bytes) -> float | None:
    """A finite decimal number, or None."""
    value = float(text) if _DECIMAL.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


def canonical_integer(text: bytes) -> int | None:
    """An int64 in the one form that maps back to the same text, or None: what may stand for its text as an id."""
    value = int(text) if _CANONICAL.fullmatch(text) else None
    return value if value is not None and INT64_MIN <= value <= INT64_MAX else None
