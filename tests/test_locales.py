"""Other languages say what English says, with the same values, and as people of that language write."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import tests.untranslated
import traceanalyze.locales
from tests.declared import declared
from traceanalyze.analyses.idle.gap_table import GAPS
from traceanalyze.locales import KINDS, LANGUAGES, spoken, texts

OTHERS = LANGUAGES[1:]
# Names and words that are written in Latin letters in Chinese as well, and what is no word at all.
PROPER = {
    *("API", "DataLoader", "Decode", "FLOP", "GB/s", "Host", "Kernel", "Launch", "Paged Attention", "Prefill"),
    *("Rank", "Shape", "Softmax", "Stage", "TFLOP/s", "World size", "block", "empty_cache", "grid", "step.time"),
    *("traceanalyze", "zero_grad", "#", "±", "~"),
}


def of(language, kind):
    """Texts of the catalogues; English ones may stand where tables are declared."""
    return declared(kind) | spoken(language)[kind] if language == "en" else spoken(language)[kind]


def placeholders(text):
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


def without_values(text):
    return re.sub(r"\{\w*\}", "", text)


@pytest.fixture(params=[(language, kind) for language in OTHERS for kind in KINDS], ids="-".join)
def both(request):
    language, kind = request.param
    return of("en", kind), of(language, kind)


def test_chinese_is_spoken():
    assert OTHERS == ("zh",)


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


@pytest.mark.parametrize("name", KINDS)
def test_chinese_is_chinese(name):
    latin = {
        key: text
        for key, text in of("zh", name).items()
        if re.search("[A-Za-z]", without_values(text)) and not re.search("[\u4e00-\u9fff]", text)
    }
    assert {key: text for key, text in latin.items() if without_values(text).strip(" ·") not in PROPER} == {}


@pytest.mark.parametrize("name", KINDS)
def test_chinese_sentences_have_full_width_marks(name):
    """No half-width mark beside a Chinese character; none at all before or after a space that Chinese does without."""
    beside = re.compile("[\u4e00-\u9fff][,;:!?()]|[,;:!?(][\u4e00-\u9fff]|[，。；：、（）] | [，。；：、（）]")
    # Code in a sentence keeps its own marks.
    code = re.compile(r"`[^`]*`|[\w.]+\([^()（）]*\)|with ddp\.no_sync\(\):")
    found = {key: text for key, text in of("zh", name).items() if beside.search(code.sub("x", text))}
    assert found == {}


def test_what_is_not_translated_yet_is_english(monkeypatch):
    ours, theirs = spoken("en"), spoken("zh")
    del theirs["tables"]["gaps"]
    monkeypatch.setattr(traceanalyze.locales, "spoken", {"en": ours, "zh": theirs}.__getitem__)
    texts.cache_clear()
    try:
        assert texts("zh").title(GAPS) == GAPS.title
        assert texts("zh").tables["split"] == theirs["tables"]["split"]
    finally:
        texts.cache_clear()


def test_what_is_not_translated_yet_is_listed(monkeypatch):
    theirs = spoken("zh")
    del theirs["tables"]["gaps"], theirs["columns"]["step"]
    monkeypatch.setattr(tests.untranslated, "spoken", {"en": spoken("en"), "zh": theirs}.__getitem__)
    assert {"tables gaps", "columns step"} <= set(tests.untranslated.untranslated("zh"))


def test_every_english_text_is_said_in_one_place():
    package = import_module("traceanalyze.locales.en")
    modules = [import_module(f"{package.__name__}.{each.name}") for each in iter_modules(package.__path__)]
    said = Counter((kind, key) for kind in KINDS for each in modules for key in getattr(each, kind.upper(), ()))
    assert [place for place, times in said.items() if times > 1] == []


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", ["texts", "rules"])
def test_no_key_stands_twice_in_a_catalogue(language, name):
    def unique(pairs):
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    path = Path(traceanalyze.locales.__file__).parent / language / f"{name}.json"
    assert json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)


def test_a_language_knows_its_name():
    assert [texts(language).language for language in LANGUAGES] == list(LANGUAGES)
