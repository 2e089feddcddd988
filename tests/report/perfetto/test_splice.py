"""Events put into the text of a trace: a strict reader finds them in the list, and every other byte is as it was."""

from __future__ import annotations

import json

import pytest

from traceanalyze.report.perfetto.merge import NoEventListError, appended

ADDED = '{"ph":"X","name":"added"}'
EVENT = '{"ph": "X", "name": "a", "ts": 1, "dur": 2, "args": {"dims": [[1, 2], []]}}'
TEXTS = {
    "object root": f'{{"schemaVersion": 1, "traceEvents": [{EVENT}, {EVENT}]}}',
    "list root": f"[{EVENT},{EVENT}]",
    "empty list": '{"traceEvents": []}',
    "empty list root": " [\n] ",
    "header after events": f'{{"traceEvents": [{EVENT}], "deviceProperties": [{{"id": 0}}], "traceName": "x]}}"}}',
    "header before": f'{{"devices": [{{"id": 0}}], "d": {{"traceEvents": [1]}}, "traceEvents": [{EVENT}]}}',
    "spread out": f'{{\n "traceEvents"\n :\t[\n{EVENT}\n,\n{EVENT}\n]\n}}\n',
    "texts with brackets": '[{"name": "]}], \\"traceEvents\\": [", "ts": "17.250"}, {"name": "\\\\"}]',
    "key inside an event": '{"traceEvents": [{"name": "a", "args": {"traceEvents": [1]}}]}',
    "key as a value": '{"a": "traceEvents", "b": [1], "traceEvents": [{"name": "traceEvents"}]}',
}


def cut(text, size):
    return [text[at : at + size] for at in range(0, len(text), size)]


def events_of(text):
    root = json.loads(text)
    return root if isinstance(root, list) else root["traceEvents"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_events_stand_at_the_end_of_the_list_and_nothing_else_changes(text, size):
    spliced = b"".join(appended(cut(text.encode(), size), [ADDED.encode(), b"," + ADDED.encode()]))
    before, after = events_of(text), events_of(spliced)
    assert after == [*before, json.loads(ADDED), json.loads(ADDED)]
    begin = spliced.index(ADDED.encode())
    end = spliced.rindex(ADDED.encode()) + len(ADDED)
    rest = spliced[:begin].rstrip(b",\n") + spliced[end:]
    assert b"".join(rest.split()) == b"".join(text.encode().split())
    if isinstance(json.loads(text), dict):
        header = {key: value for key, value in json.loads(text).items() if key != "traceEvents"}
        assert {key: value for key, value in json.loads(spliced).items() if key != "traceEvents"} == header


def test_a_comma_that_is_already_there_is_used():
    spliced = b"".join(appended([b'[{"a": 1},\n]'], [ADDED.encode()]))
    assert json.loads(spliced) == [{"a": 1}, json.loads(ADDED)]


def test_a_byte_order_mark_is_passed_on():
    spliced = b"".join(appended([b"\xef\xbb\xbf[]"], [ADDED.encode()]))
    assert spliced.startswith(b"\xef\xbb\xbf[")
    assert json.loads(spliced.decode("utf-8-sig")) == [json.loads(ADDED)]


def test_names_that_are_not_utf8_pass():
    assert b"\xff\xfe" in b"".join(appended([b'[{"name": "\xff\xfe"}]'], [ADDED.encode()]))


def test_the_text_is_never_held_as_a_whole():
    given = []

    def blocks():
        for number in range(1000):
            given.append(number)
            yield b"[{}" if number == 0 else b",{}"
        yield b"]"

    behind = 0
    for taken, _ in enumerate(appended(blocks(), [ADDED.encode()])):
        behind = max(behind, len(given) - taken)
    assert behind <= 3


@pytest.mark.parametrize("text", ['{"a": 1}', "[{", '{"traceEvents": [{"a": 1}', "", "[1, 2"])
def test_a_text_without_a_whole_list_is_refused(text):
    with pytest.raises(NoEventListError):
        list(appended([text.encode()], [ADDED.encode()]))
