"""Every language says everything that English says, with the same values, and as people of that language write."""

from __future__ import annotations

import re
import string
from importlib import import_module

import pytest

from traceanalyze.locales import LANGUAGES, texts
from traceanalyze.locales import en as english

OTHERS = LANGUAGES[1:]
SETS = english.__all__
# Names and words that are written in Latin letters in Chinese as well, and what is no word at all.
PROPER = {
    *("API", "DataLoader", "Decode", "FLOP", "GB/s", "Host", "Kernel", "Launch", "Paged Attention", "Prefill"),
    *("Rank", "Shape", "Softmax", "Stage", "TFLOP/s", "World size", "block", "empty_cache", "grid", "step.time"),
    *("traceanalyze", "zero_grad", "#", "±", "~"),
}


def of(language, name):
    return getattr(import_module(f"traceanalyze.locales.{language}"), name)


def placeholders(text):
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


def without_values(text):
    return re.sub(r"\{\w*\}", "", text)


@pytest.fixture(params=[(language, name) for language in OTHERS for name in SETS], ids="-".join)
def both(request):
    language, name = request.param
    return getattr(english, name), of(language, name)


def test_chinese_is_spoken():
    assert OTHERS == ("zh",)


def test_every_text_is_there(both):
    ours, theirs = both
    assert sorted(set(ours) - set(theirs)) == []


def test_no_text_is_there_for_nothing(both):
    ours, theirs = both
    assert sorted(set(theirs) - set(ours)) == []


def test_the_same_values_are_told(both):
    ours, theirs = both
    assert [key for key in ours if key in theirs and placeholders(ours[key]) != placeholders(theirs[key])] == []


def test_nothing_is_empty(both):
    ours, theirs = both
    assert [key for key, text in theirs.items() if not text.strip() and ours.get(key, "").strip()] == []


def test_english_plurals_stay_english(both):
    assert [key for key, text in both[1].items() if re.search(r"\(e?s\)", text)] == []


@pytest.mark.parametrize("name", SETS)
def test_chinese_is_chinese(name):
    latin = {
        key: text
        for key, text in of("zh", name).items()
        if re.search("[A-Za-z]", without_values(text)) and not re.search("[\u4e00-\u9fff]", text)
    }
    assert {key: text for key, text in latin.items() if without_values(text).strip(" ·") not in PROPER} == {}


@pytest.mark.parametrize("name", SETS)
def test_chinese_sentences_have_full_width_marks(name):
    """No half-width mark beside a Chinese character; none at all before or after a space that Chinese does without."""
    beside = re.compile("[\u4e00-\u9fff][,;:!?()]|[,;:!?(][\u4e00-\u9fff]|[，。；：、（）] | [，。；：、（）]")
    # Code in a sentence keeps its own marks.
    code = re.compile(r"`[^`]*`|[\w.]+\([^()（）]*\)|with ddp\.no_sync\(\):")
    found = {key: text for key, text in of("zh", name).items() if beside.search(code.sub("x", text))}
    assert found == {}


def test_what_is_not_translated_yet_is_english(monkeypatch):
    chinese = import_module("traceanalyze.locales.zh")
    monkeypatch.setattr(chinese, "TABLES", {key: text for key, text in chinese.TABLES.items() if key != "gaps"})
    texts.cache_clear()
    try:
        assert texts("zh").tables["gaps"] == english.TABLES["gaps"]
        assert texts("zh").tables["split"] == chinese.TABLES["split"]
    finally:
        texts.cache_clear()


def test_a_language_knows_its_name():
    assert [texts(language).language for language in LANGUAGES] == list(LANGUAGES)
