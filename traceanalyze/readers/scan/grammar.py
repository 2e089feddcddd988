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

from __future__ import annotations

import re

from traceanalyze.readers.scan.result import MAX_DEPTH

BLANK = b" \t\n\r"
_WS = rb"[ \t\n\r]*"
_CHARS = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_STRING = rb'"' + _CHARS + rb'"'
_BARE = rb"[A-Za-z0-9+\-._]+"

_BLANKS = re.compile(_WS)
_SCALAR = re.compile(_STRING + rb"|" + _BARE, re.DOTALL)
_KEY = re.compile(rb'"(' + _CHARS + rb')"' + _WS + rb":" + _WS, re.DOTALL)
_COMMA = re.compile(_WS + rb"(,?)" + _WS)

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
    if depth == 0:
        return rb"(?:" + _STRING + rb"|" + _BARE + rb")"
    item = _unrolled(depth - 1) + _WS + rb"(?:," + _WS + rb"|(?=[\]}]))"
    array = rb"\[" + _WS + rb"(?:" + item + rb")*+\]"
    object_ = rb"\{" + _WS + rb"(?:" + _STRING + _WS + rb":" + _WS + item + rb")*+\}"
    return rb"(?:" + _STRING + rb"|" + _BARE + rb"|" + array + rb"|" + object_ + rb")"


_WINDOW = 1 << 16
_SHALLOW = 4
_OBJECT = re.compile(
    rb"\{"
    + _WS
    + rb"(?:"
    + _STRING
    + _WS
    + rb":"
    + _WS
    + _unrolled(_SHALLOW)
    + _WS
    + rb"(?:,"
    + _WS
    + rb"|(?=\})))*+\}",
    re.DOTALL,
)
_MEMBER = re.compile(rb'"(' + _CHARS + rb')"' + _WS + rb":" + _WS + rb"(" + _unrolled(_SHALLOW) + rb")", re.DOTALL)


def object_members(text: bytes, pos: int, stop: int) -> tuple[list[Member], int]:
    """As `members`, for an object that is probably short and shallow: one match instead of a descent."""
    found = _OBJECT.match(text, pos, min(stop, pos + _WINDOW))
    if found is None:
        return members(text, pos, stop)
    return _MEMBER.findall(text, pos + 1, found.end() - 1), found.end()


_HEX = rb"[0-9A-Fa-f]"
_PAIR = rb"u([dD][89ABab]" + _HEX + rb"{2})\\u([dD][C-Fc-f]" + _HEX + rb"{2})"
_ESCAPE = re.compile(rb"\\(?:" + _PAIR + rb"|u(" + _HEX + rb"{4})|([\"\\/bfnrt]))|\\.", re.DOTALL)
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


_TRAILING = re.compile(rb"(?:\\t)+\Z")


def number_text(value: bytes) -> bytes:
    """What may be a number: a bare value, or the content of a string as written, without tabs at its end."""
    return _TRAILING.sub(b"", value[1:-1]) if value[:1] == b'"' else value
