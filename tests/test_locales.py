"""Other languages say what English says, with the same values, and as people of that language write."""

from __future__ import annotations

import pickle
import re
import string
from collections import Counter, defaultdict
from importlib import import_module
from pkgutil import iter_modules

import pytest

import traceanalyze.locales
from tests import catalogues
from tests.declared import OF_COLUMNS, declared, declared_tables
from traceanalyze.analyses.idle.gap_table import GAPS
from traceanalyze.errors import listed
from traceanalyze.locales import KINDS, LANGUAGES, catalogue, spoken, texts
from traceanalyze.model.table import Kind, Message
from traceanalyze.report.format import Formatter

OTHERS = LANGUAGES[1:]
# Names and words that are written in Latin letters in Chinese as well, and what is no word at all.
PROPER = {
    *("API", "DataLoader", "Decode", "FLOP", "GB/s", "Host", "Kernel", "Launch", "Paged Attention", "Prefill"),
    *("Rank", "Shape", "Softmax", "Stage", "Stream", "TFLOP/s", "World size", "block", "empty_cache", "grid"),
    *("torch.compile", "expandable_segments:True", "Xid", "SXid", "kernel", "all-to-all"),
    *("Embedding", "query", "step.time", "traceanalyze", "zero_grad", "#", "±", "~"),
}


def of(language, kind):
    """Texts of the catalogues; English ones may stand where tables are declared."""
    return declared(kind) | spoken(language)[kind] if language == "en" else spoken(language)[kind]


def placeholders(text):
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


def without_values(text):
    return re.sub(r"\{[\w:,!]*\}|--[\w-]+", "", text)


@pytest.fixture(params=[(language, kind) for language in OTHERS for kind in KINDS], ids="-".join)
def both(request):
    language, kind = request.param
    return of("en", kind), of(language, kind)


def test_chinese_is_spoken():
    assert "zh" in OTHERS


def test_texts_are_made_once_however_they_are_asked_for():
    assert texts() is texts("en") is texts(language="en")
    assert texts("zh") is texts(language="zh")


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
    # A command to type is the same in every language.
    commands = ("nvidia-smi ", "npu-smi ")
    latin = {key: text for key, text in latin.items() if not text.startswith(commands)}
    assert {key: text for key, text in latin.items() if without_values(text).strip(" ·：") not in PROPER} == {}


@pytest.mark.parametrize("name", KINDS)
def test_chinese_sentences_have_full_width_marks(name):
    """No half-width mark beside a Chinese character; none at all before or after a space that Chinese does without."""
    beside = re.compile("[\u4e00-\u9fff][,;:!?()]|[,;:!?(][\u4e00-\u9fff]|[，。；：、（）] | [，。；：、（）]")
    # Code in a sentence keeps its own marks.
    code = re.compile(r"`[^`]*`|[\w.]+\([^()（）]*\)|with ddp\.no_sync\(\):")
    found = {key: text for key, text in of("zh", name).items() if beside.search(code.sub("x", text))}
    assert found == {}


@pytest.mark.parametrize("name", KINDS)
def test_chinese_is_parted_from_latin_letters_and_digits_by_one_space(name):
    """And from Chinese by none, also where a value stands that is always Chinese."""
    apart = re.compile(
        "[\u4e00-\u9fff][A-Za-z0-9`]|[A-Za-z0-9%`][\u4e00-\u9fff]|[\u4e00-\u9fff]  +\\w|[\u4e00-\u9fff] [\u4e00-\u9fff]"
    )
    # A pattern of a command's argument has spaces of its own.
    found = {key: text.replace("列 运算符 值", "").replace("{per}", "每步") for key, text in of("zh", name).items()}
    assert {key: text for key, text in found.items() if apart.search(text)} == {}


@pytest.mark.parametrize(
    ("value", "said"),
    [("3", "前 3 后"), ("计算", "前计算后"), ("a 的", "前 a 的后"), ("", "前后"), ("（a）", "前 （a） 后")],
)
def test_a_value_is_parted_as_its_ends_are(value, said):
    """Whatever the template has around it."""
    message = Message("", (("value", Kind.TEXT, value), ("per", Kind.TEXT, "")))
    for template in ("前 {value} 后", "前{value}后")[: 1 if "（" in value else 2]:
        assert Formatter(texts("zh")).fill(template, message) == said
    assert Formatter(texts("zh")).fill("{value} {value}", Message("", (("value", Kind.TEXT, "计算"),))) == "计算 计算"


def test_what_is_not_translated_yet_is_english(monkeypatch):
    ours, theirs = spoken("en"), spoken("zh")
    del theirs["tables"]["gaps"]
    monkeypatch.setattr(traceanalyze.locales, "spoken", {"en": ours, "zh": theirs}.__getitem__)
    traceanalyze.locales._MADE.clear()
    try:
        assert texts("zh").title(GAPS) == GAPS.title
        assert texts("zh").tables["split"] == theirs["tables"]["split"]
    finally:
        traceanalyze.locales._MADE.clear()


@pytest.fixture
def copy(monkeypatch, tmp_path):
    """The folder of a copy of the catalogues, which tests may change."""
    (tmp_path / "zh.po").write_bytes((catalogues.FOLDER / "zh.po").read_bytes())
    monkeypatch.setattr(catalogues, "FOLDER", tmp_path)
    monkeypatch.setattr(traceanalyze.locales, "_FOLDER", tmp_path)
    yield tmp_path / "zh.po"
    catalogue.cache_clear()


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    catalogue.cache_clear()


def test_what_is_not_translated_yet_is_listed(copy):
    before = set(catalogues.to_do("zh"))
    written = spoken("zh")["tables"]["gaps"]
    change(copy, f'msgctxt "tables.gaps"\nmsgid "{GAPS.title}"\nmsgstr "{written}"\n', "")
    assert set(catalogues.to_do("zh")) - before == {"tables.gaps"}
    assert "gaps" not in spoken("zh")["tables"]


def test_a_translation_of_a_text_that_has_changed_is_kept_but_not_shown(copy):
    written = spoken("zh")["tables"]["gaps"]
    change(copy, f'msgid "{GAPS.title}"', 'msgid "What the title said before"')
    assert "tables.gaps (English has changed)" in set(catalogues.to_do("zh"))
    copy.write_text(catalogues.catalogue_text("zh", catalogues.updated("zh")), encoding="utf-8")
    catalogue.cache_clear()
    assert "gaps" not in spoken("zh")["tables"]
    marked = f'#, fuzzy\nmsgctxt "tables.gaps"\nmsgid "{GAPS.title}"\nmsgstr "{written}"'
    assert marked in copy.read_text(encoding="utf-8")
    change(copy, '#, fuzzy\nmsgctxt "tables.gaps"', 'msgctxt "tables.gaps"')
    assert spoken("zh")["tables"]["gaps"] == written


def test_strings_may_be_broken_over_lines_as_translators_tools_do(copy):
    written = spoken("zh")["tables"]["gaps"]
    change(copy, f'msgstr "{written}"', f'msgstr ""\n"{written[:3]}"\n"{written[3:]}"')
    assert spoken("zh")["tables"]["gaps"] == written


def test_an_entry_is_fuzzy_whatever_comments_it_has(copy):
    comments = '#: gap_table.py:12\n#, python-brace-format, fuzzy\n#| msgid "before"\n'
    change(copy, 'msgctxt "tables.gaps"', f'{comments}msgctxt "tables.gaps"')
    assert "gaps" not in spoken("zh")["tables"]
    assert catalogues.entries("zh")["tables.gaps"].fuzzy


@pytest.mark.parametrize("language", OTHERS)
def test_bringing_a_catalogue_up_to_date_changes_nothing_twice(language):
    text = (catalogues.FOLDER / f"{language}.po").read_text(encoding="utf-8")
    assert catalogues.catalogue_text(language, catalogues.entries(language)) == text


def test_every_english_text_is_said_in_one_place():
    package = import_module("traceanalyze.locales.en")
    modules = [import_module(f"{package.__name__}.{each.name}") for each in iter_modules(package.__path__)]
    said = Counter((kind, key) for kind in KINDS for each in modules for key in getattr(each, kind.upper(), ()))
    assert [place for place, times in said.items() if times > 1] == []


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("kind", OF_COLUMNS)
def test_columns_of_different_english_share_no_translation(language, kind):
    known, english = spoken(language)[kind], defaultdict(set)
    for table in declared_tables():
        for column in table.columns:
            own = f"{table.key}.{column.key}"
            english[own if own in known else column.key].add(OF_COLUMNS[kind](column))
    assert {key: said for key, said in english.items() if key in known and len(said - {""}) > 1} == {}


def test_a_heading_is_that_of_its_table():
    """In Chinese a group of blocks has another name than a process group."""
    tables = {table.key: table for table in declared_tables()}
    groups, collectives = tables["allocator_groups"], tables["collectives"]
    assert texts("zh").heading(groups, groups["group"]) == "组"
    assert texts("zh").heading(collectives, collectives["group"]) == "通信域"


@pytest.mark.parametrize("language", OTHERS)
def test_no_key_stands_twice_in_a_catalogue(language):
    text = (catalogues.FOLDER / f"{language}.po").read_text(encoding="utf-8")
    assert text.count("\nmsgctxt ") == len(catalogues.entries(language))


def test_a_language_knows_its_name():
    assert [texts(language).language for language in LANGUAGES] == list(LANGUAGES)


def test_a_list_of_a_thousand_names_is_said_in_the_marks_of_the_language():
    names = [f"rank {number}" for number in range(2000)]
    phrase = pickle.loads(pickle.dumps(listed(names)))
    assert phrase == ", ".join(names)
    assert phrase.said(texts("zh").phrases) == "、".join(names)
    assert listed(["one"]) == "one"
    assert listed([]) == ""
