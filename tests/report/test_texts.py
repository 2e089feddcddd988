"""Every key that the analyses and the builders use has a text, and every text can be filled in."""

from __future__ import annotations

import ast
import string
from itertools import combinations

import pytest

from tests.declared import PACKAGE, calls, declared, declared_tables
from tests.report.make import analysis, host_only
from traceanalyze.errors import UsageError
from traceanalyze.locales import LANGUAGES, texts
from traceanalyze.model.table import Kind, Message
from traceanalyze.model.vocabulary import Cause, Level, SyncKind
from traceanalyze.report.contents import build_report
from traceanalyze.report.format import Formatter

SOURCES = [PACKAGE / folder for folder in ("analyses", "comparison", "report")]


def first_strings(call):
    """Constant strings, or prefixes of f-strings, among the arguments of a call."""
    for given in call.args:
        argument = given.slice if isinstance(given, ast.Subscript) else given
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value, True
        elif isinstance(argument, ast.JoinedStr) and isinstance(argument.values[0], ast.Constant):
            yield argument.values[0].value, False


def calls_of(name):
    for path, node in calls():
        called = node.func
        if name == (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)) and any(
            path.is_relative_to(folder) for folder in SOURCES
        ):
            yield node


def has_text(key, exact, known):
    return key in known if exact else any(text.startswith(key) for text in known)


def test_every_check_has_a_text():
    found = [list(first_strings(call))[1] for call in calls_of("Check")]
    assert len(found) > 20
    assert [key for key, exact in found if not has_text(key, exact, declared("sentences"))] == []


def test_checks_are_given_the_values_their_texts_mention():
    for call in calls_of("Check"):
        _, (key, exact) = list(first_strings(call))[:2]
        given = {node.value for node in ast.walk(call) if isinstance(node, ast.Constant)}
        told = call.args[3] if len(call.args) > 3 else None
        if exact and isinstance(told, ast.Tuple) and not any(isinstance(each, ast.Starred) for each in told.elts):
            assert placeholders(declared("sentences")[key]) <= given, key
        if exact and len(call.args) == 3:
            assert placeholders(declared("sentences")[key]) == set(), key


def test_every_reason_has_a_text():
    found = [next(first_strings(call), None) for name in ("NotMeasured", "missing") for call in calls_of(name)]
    keys = [key for key in found if key is not None]
    assert len(keys) > 5
    assert [key for key, exact in keys if not has_text(key, exact, texts().reasons)] == []


def test_every_message_has_a_text():
    found = [next(first_strings(call), None) for call in calls_of("Message")]
    assert [
        key
        for key, exact in filter(None, found)
        if not has_text(key, exact, {**texts().messages, **declared("sentences")})
    ] == []


def test_every_caveat_of_a_comparison_has_a_text():
    found = [next(first_strings(call), None) for call in calls_of("Caveat")]
    assert len(found) > 10
    known = {**texts().messages, **declared("sentences")}
    assert [key for key, exact in filter(None, found) if not has_text(key, exact, known)] == []


def test_every_table_column_and_term_has_a_text():
    words = texts()
    for report in (
        build_report("run", [analysis(rank=0), analysis(rank=1)], version="0"),
        build_report("x", [host_only(1.0)], version="0"),
    ):
        for table in report.tables.values():
            assert words.title(table)
            for index, column in enumerate(table.columns):
                values = [row[index] for row in table.rows] if column.kind == Kind.TERM else []
                assert [value for value in values if value not in words.terms] == []


# One table has the parts of the device's time or those of the host's, never both.
DEVICE_OR_HOST = {
    ("steps", "sync_ns", "host_sync_ns"),
    ("ranks", "sync_share", "host_sync_share"),
    ("recordings", "sync_share", "host_sync_share"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_headings_of_a_table_differ(language):
    """But for a time and its share: these differ in their units; and each side of a comparison has its own."""
    words = texts(language)
    same = {
        (table.key, one.key, other.key)
        for table in declared_tables()
        for one, other in combinations([column for column in table.columns if not column.machine], 2)
        if (words.heading(table, one), one.side, one.kind) == (words.heading(table, other), other.side, other.kind)
    }
    assert same == DEVICE_OR_HOST


def test_every_column_has_a_meaning():
    words = texts()
    for report in (
        build_report("run", [analysis(rank=0), analysis(rank=1)], version="0"),
        build_report("x", [host_only(1.0)], version="0"),
    ):
        for table in report.tables.values():
            missing = [column.key for column in table.columns if not words.meaning(table, column)]
            assert missing == [], table.key


def test_meanings_belong_to_columns():
    words = texts()
    assert {key.rpartition(".")[2] for key in words.column_meanings} <= set(words.columns) | set(declared("columns"))
    assert {key.rpartition(".")[0] for key in words.column_meanings} <= {"", *words.tables, *declared("tables")}


def test_every_cause_kind_and_level_has_a_word():
    words = texts()
    assert {cause.name.lower() for cause in Cause} <= set(words.terms)
    assert {f"idle_causes.{cause.name.lower()}" for cause in Cause} <= set(words.meanings)
    assert {f"sync_{kind.name.lower()}" for kind in SyncKind} <= set(words.terms)
    assert {level.name for level in Level} == set(words.levels)


def test_hints_belong_to_reasons_or_checks():
    words = texts()
    assert {key.removesuffix(".ascend") for key in words.hints} <= set(words.reasons) | set(declared("sentences"))


def test_meanings_belong_to_terms():
    assert [key for key in texts().meanings if key.split(".")[1] not in texts().terms] == []


def test_a_language_that_is_not_there_yet_is_a_clear_error():
    with pytest.raises(UsageError, match=r"no texts in 'xx'; this version speaks: en, .*\bzh\b"):
        texts("xx")


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "1 event is of (a|b), and stands alone"),
        (2, "2 events are of (a|b), and stand alone"),
        (1_001, "1,001 events are of (a|b), and stand alone"),
    ],
)
def test_one_thing_is_and_several_are(count, said):
    message = Message("", (("count", Kind.COUNT, count), ("what", Kind.TEXT, "(a|b)")))
    template = "{count} event(s) (is|are) of {what}, and (stands|stand) alone"
    assert Formatter(texts()).fill(template, message) == said


def placeholders(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}
