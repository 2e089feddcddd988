"""Events of several ranks: processes and arrows of one rank never become those of another."""

from __future__ import annotations

import json

import pytest

from traceanalyze.report.perfetto.events import sections
from traceanalyze.report.perfetto.merge import Pids, RankText, process_titles

EVENTS = [
    {"ph": "X", "name": 'a "pid": 7', "pid": 7, "tid": 7, "ts": 1000.25, "dur": 1, "args": {"pid": 7, "id": 3}},
    {"ph": "s", "id": 5, "pid": 7, "tid": 7, "ts": "1001.000", "cat": "ac2g"},
    {"ph": "f", "id": "5", "pid": "Spans", "tid": 0, "ts": 1002, "cat": "ac2g", "bp": "e"},
    {"ph": "s", "id": "0xa", "pid": 7, "tid": 7, "ts": 1003},
]


def merged(*shifts, size=5):
    pids, texts = Pids(), []
    text = json.dumps({"traceEvents": EVENTS}).encode()
    for index, shift in enumerate(shifts):
        blocks = [text[at : at + size] for at in range(0, len(text), size)]
        texts.append(RankText(index, pids, shift).events(blocks))
    found = json.loads(b"[" + b"".join(sections(texts)) + b"]", parse_float=str)
    return [found[at : at + len(EVENTS)] for at in range(0, len(found), len(EVENTS))]


def test_every_event_is_there_once_a_rank():
    assert [len(rank) for rank in merged(0, 0)] == [4, 4]


def test_processes_of_ranks_are_different_and_those_of_one_rank_stay_together():
    first, second = ([event["pid"] for event in rank] for rank in merged(0, 0))
    assert first[0] == first[1] == first[3] != first[2]
    assert set(first) & set(second) == set()


def test_arrows_keep_their_two_ends_and_do_not_lead_to_another_rank():
    first, second = merged(0, 0)
    assert first[1]["id"] == first[2]["id"] == 5
    assert second[1]["id"] == second[2]["id"] != 5
    assert first[3]["id"] == 0xA != second[3]["id"]


@pytest.mark.parametrize(
    ("written", "number"),
    [("0", 0), ("7", 7), ("12", 12), ('"345"', 345), ('"0x1f"', 31), (str(2**48 - 1), 2**48 - 1)],
)
def test_counters_keep_their_number_in_the_first_rank(written, number):
    text = f'[{{"ph": "s", "id": {written}, "pid": 1}}]'.encode()
    ids = [json.loads(b"[" + b"".join(RankText(rank, Pids(), 0).events([text])) + b"]")[0]["id"] for rank in range(3)]
    assert ids == [number, number + 2**48, number + 2 * 2**48]


def test_ids_that_are_no_counters_stay_numbers_a_viewer_can_bind_by():
    """Ascend takes times and addresses, up to 64 bits; Perfetto refuses arrows whose id is a text."""
    ids = [2**48, 1736408883839393585, "1736408883839393585", 40004068119343529983, "0xffffffff00000010", "a:b"]
    text = json.dumps([{"ph": "s", "id": each, "pid": 1} for each in ids]).encode()
    pids = Pids()
    found = [
        [event["id"] for event in json.loads(b"[" + b"".join(RankText(index, pids, 0).events([text])) + b"]")]
        for index in (0, 1)
    ]
    assert all(isinstance(one, int) and 2**48 < one < 2**63 for rank in found for one in rank)
    assert [rank[1] == rank[2] for rank in found] == [True, True]
    assert len({one for rank in found for one in rank}) == 10


def test_the_name_of_a_process_is_told_last_as_of_the_latest_time():
    """Perfetto takes the name of the latest time, and Kineto's own have that of the trace's start."""
    rank = RankText(0, Pids(), 0)
    (told,) = process_titles(rank, "rank 0", {"7": "python [GPU 0]"}, 0, at="12.5")
    name, order = json.loads(b"[" + told + b"]")
    assert (name["name"], name["args"], name["ts"]) == ("process_name", {"name": "rank 0 · python [GPU 0]"}, 12.5)
    assert order["name"] == "process_sort_index"


def test_processes_of_a_rank_stand_in_the_order_in_which_they_came():
    rank = RankText(1, Pids(), 0)
    b"".join(rank.events([b'[{"pid": 7}, {"pid": "Spans"}, {"pid": 7}]']))
    told = json.loads(b"[" + b",".join(process_titles(rank, "rank 1", {"9": "python"}, 40)) + b"]")
    names = {one["pid"]: one["args"]["name"] for one in told if one["name"] == "process_name"}
    order = {one["pid"]: one["args"]["sort_index"] for one in told if one["name"] == "process_sort_index"}
    assert list(names.values()) == ["rank 1 · 7", "rank 1 · Spans", "rank 1 · python"]
    assert list(order.values()) == [41, 42, 43]
    assert list(names) == list(order) == [rank.pid[b"7"], rank.pid[b"Spans"], rank.pid[b"9"]]


def test_only_members_of_events_are_changed():
    _, second = merged(0, 0)
    assert second[0]["args"] == {"pid": 7, "id": 3}
    assert second[0]["name"] == 'a "pid": 7'
    assert second[0]["tid"] == 7


def test_times_move_exactly_and_only_where_zeros_differ():
    first, second = merged(0, 1_000_000_001)
    assert [event["ts"] for event in first] == ["1000.25", "1001.000", 1002, 1003]
    assert [event["ts"] for event in second] == ["1001000.251", "1001001.001", "1001002.001", "1001003.001"]


def test_blocks_of_any_size_give_the_same_text():
    assert merged(0, 5, size=1) == merged(0, 5, size=17) == merged(0, 5, size=10_000)


@pytest.mark.parametrize(
    "name", ['odd "{', 'odd "}', '"]', "back\\\\slash", '\\\\"{[', "}\\\\", '"pid": 7, {"', "\\n[\\u4e2d"]
)
def test_quotes_and_brackets_in_names_are_no_ends_of_events(name):
    text = json.dumps([{"name": name, "pid": 7}, {"name": "next", "pid": 7}]).encode()
    for size in range(1, len(text) + 1):
        blocks = [text[at : at + size] for at in range(0, len(text), size)]
        found = json.loads(b"[" + b"".join(RankText(0, Pids(), 0).events(blocks)) + b"]")
        assert [event["name"] for event in found] == [name, "next"]
        assert found[0]["pid"] == found[1]["pid"] != 7


def test_a_rank_without_events_leaves_no_comma():
    pids = Pids()
    texts = [RankText(index, pids, 0).events([text]) for index, text in enumerate((b"[]", b'[{"pid": 1}]', b"[ ]"))]
    assert json.loads(b"[" + b"".join(sections(texts)) + b"]") == [{"pid": 2_000_000_000}]


def test_times_stay_texts_or_numbers_and_what_is_no_time_stays_as_it_is():
    text = b'[{"ts": 5}, {"ts": "5"}, {"ts": "soon"}, {"ts": -1.5}, {"ts": true}]'
    moved = b"".join(RankText(0, Pids(), 2500).events([text]))
    assert moved == b'{"ts": 7.5}, {"ts": "7.5"}, {"ts": "soon"}, {"ts": 1.0}, {"ts": true}'
