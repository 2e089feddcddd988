"""Lists of numbers and spans of time as users write them, at their ends."""

from __future__ import annotations

import numpy as np
import pytest

from tests.report.make import steps_of
from traceanalyze.errors import UsageError
from traceanalyze.model.vocabulary import Detail, EventKind
from traceanalyze.pipeline.choices import Choices, configured_rules, path_texts
from traceanalyze.pipeline.selection import listed, parse_numbers, step_chooser, stream_chooser


def chosen(text, numbers=range(8)):
    mask = parse_numbers(text, "--steps", "step").chosen(list(numbers))
    return [number for number, wanted in zip(numbers, mask, strict=True) if wanted]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("5", [5]),
        ("0, 3-5", [0, 3, 4, 5]),
        ("3-3", [3]),
        ("6:", [6, 7]),
        (":2", [0, 1]),
        ("2:4", [2, 3]),
        ("2:3", [2]),
        (":", list(range(8))),
        ("6-20", [6, 7]),
        ("0:1,7", [0, 7]),
    ],
)
def test_numbers_are_chosen(text, numbers):
    assert chosen(text) == numbers


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("5-3", "the range '5-3' is empty"),
        ("4:4", "the range '4:4' is empty"),
        (":0", "the range ':0' is empty"),
        ("x", "'x' is not a number"),
        ("1,,2", "'' is not a number"),
        ("-1", "'-1' is not a number"),
        ("8", "steps=8: there is no step 8; there are 0 to 7"),
        ("8-9", "there is no step 8 to 9; there are 0 to 7"),
        ("9:", "there is no step 9 to the end; there are 0 to 7"),
        ("1,8", "there is no step 8"),
    ],
)
def test_what_chooses_nothing_is_said(text, why):
    with pytest.raises(UsageError) as caught:
        chosen(text)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([], "none"),
        ([3], "3"),
        ([4, 3], "3, 4"),
        ([5, 3, 4, 4], "3 to 5"),
        ([1, 4, 9], "1, 4, 9"),
        (range(0, 24, 2), "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22"),
        (range(0, 26, 2), "13 of them from 0 to 24"),
    ],
)
def test_numbers_in_words(numbers, said):
    assert listed(list(numbers)) == said


def test_streams_are_chosen_by_their_numbers():
    choose = stream_chooser("7,20")
    assert choose(np.array([7, 8, 7, 20])).tolist() == [True, False, True, True]
    with pytest.raises(UsageError, match="there is no stream 20; there are 7, 8"):
        choose(np.array([7, 8]))
    assert choose(np.array([], np.int64)).tolist() == []


def test_steps_are_chosen_by_the_numbers_they_go_by():
    assert step_chooser("6")(steps_of(1, 1, 1)).tolist() == [False, True, False]
    named = steps_of(1, names=("warm-up",))
    with pytest.raises(UsageError, match="steps=6: the trace has no numbered steps, only: warm-up"):
        step_chooser("6")(named)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("10ms-1.5s", (10_000_000, 1_500_000_000)),
        ("2s-", (2_000_000_000, 2**62)),
        ("-3us", (0, 3_000)),
        ("0ns - 1 ns", (0, 1)),
        ("1.0004µs-2µs", (1_000, 2_000)),
    ],
)
def test_a_span_of_time(text, span):
    assert Choices(time=text).options().keep.time == span


@pytest.mark.parametrize("text", ["-", "", "5", "5-6", "2s-1s", "1s-1s", "1s-1000ms", "1m-2m"])
def test_what_is_no_span_of_time_is_said(text):
    with pytest.raises(UsageError, match="time="):
        Choices(time=text).options()


def test_nothing_is_kept_apart_unless_asked_for():
    assert Choices().options().keep is None
    assert Choices(name_regex="gemm").options().keep.name.search("a gemm")
    assert Choices(streams="7").options().keep.streams(np.array([7, 8])).tolist() == [True, False]
    assert Choices(steps="5").options().steps(steps_of(1, 1)).tolist() == [True, False]


@pytest.mark.parametrize("text", ["x", "=op", "x=", "x=other"])
def test_a_category_has_a_name_and_a_class(text):
    with pytest.raises(UsageError, match="write NAME=class"):
        Choices(categories=(text,)).options()
    assert Choices(categories=("My=Cat=op",)).options().classify.categories == {"my=cat": EventKind.HOST_OP}


def test_the_nearest_file_configures_the_rules(tmp_path):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (tmp_path / "traceanalyze.toml").write_text('[rules]\nignore = ["DAT101"]\n')
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert configured_rules(folder).ignore == ("DAT101",)
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.traceanalyze.rules]\nselect = ["SYN"]\n')
    assert (configured_rules(folder).select, configured_rules(folder).ignore) == (("SYN",), ())
    (folder / "traceanalyze.toml").write_text("rules = 3\n")
    with pytest.raises(UsageError, match="rules is not a table"):
        configured_rules(folder)
    (folder / "traceanalyze.toml").write_text("rules")
    with pytest.raises(UsageError, match=r"traceanalyze\.toml: "):
        configured_rules(folder)


def test_a_configuration_that_changes_is_seen_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("DAT101", "SYN101", "DAT101"):
        (tmp_path / "traceanalyze.toml").write_text(f'[rules]\nselect = ["{name}"]\n')
        assert [[rule.id for rule, _ in Choices().rules().rules] for _ in range(2)] == [[name], [name]]


def test_a_verdict_runs_no_rules_unless_some_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Choices(detail=Detail.QUIET).rules().rules == ()
    assert Choices(detail=Detail.QUIET, select=("DAT101",)).rules().rules == ()
    assert [rule.id for rule, _ in Choices(select=("DAT101", "DAT102"), ignore=("DAT102",)).rules().rules] == ["DAT101"]
    with pytest.raises(UsageError):
        Choices(detail=Detail.QUIET, select=("NONE999",)).rules()


def test_one_path_or_several(tmp_path):
    assert path_texts("a") == ("a",)
    assert path_texts(tmp_path) == (str(tmp_path),)
    assert path_texts(["a", tmp_path]) == ("a", str(tmp_path))
