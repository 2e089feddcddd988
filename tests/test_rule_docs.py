"""Documents of the rules in Chinese say what the docstrings say: every section, every name, every number."""

from __future__ import annotations

import re

import pytest

from traceanalyze.locales import catalogue, option_sources, rule_doc
from traceanalyze.rules.registry import every_rule
from traceanalyze.rules.rule import HEADINGS

CHINESE = ("发现什么", "为什么耗时", "如何测量", "如何处理", "参考")
ALL = pytest.mark.parametrize("each", [r for r in every_rule() if rule_doc("zh", r.id)], ids=lambda each: each.id)
CODE = re.compile(r"`[^`]*`")


def chinese(each):
    return rule_doc("zh", each.id)


def sections(doc, headings):
    """Heading → text below it; the sentence at the top has an empty heading."""
    found = {"": []}
    for line in doc.splitlines():
        if line in headings:
            found[line] = []
        else:
            found[list(found)[-1]].append(line)
    return {heading: "\n".join(lines) for heading, lines in found.items()}


def both(each):
    """Pairs of the texts of a section."""
    ours, theirs = sections(each.doc, HEADINGS), sections(chinese(each), CHINESE)
    return list(zip(ours.values(), theirs.values(), strict=True))


def codes(text):
    return {re.sub(r"\s+", " ", code) for code in CODE.findall(text)}


def numbers(text):
    return set(re.findall(r"\d+(?:[.,]\d+)*", CODE.sub("", text)))


def test_only_rules_have_documents():
    assert {key.partition(".")[0] for key in catalogue("zh")["pages"]} <= {each.id for each in every_rule()}


@ALL
def test_the_sections_are_the_same_in_the_same_order(each):
    assert tuple(sections(chinese(each), CHINESE)) == ("", *CHINESE)
    assert tuple(sections(each.doc, HEADINGS)) == ("", *HEADINGS)


@ALL
def test_every_section_is_in_chinese(each):
    for text in list(sections(chinese(each), CHINESE).values())[:-1]:
        assert re.search("[\u4e00-\u9fff]", text)
        assert text.rstrip().endswith(("。", "？"))


@ALL
def test_the_same_names_are_told(each):
    assert [codes(theirs) for _, theirs in both(each)] == [codes(ours) for ours, _ in both(each)]


@ALL
def test_the_same_numbers_are_told(each):
    assert [numbers(theirs) for _, theirs in both(each)] == [numbers(ours) for ours, _ in both(each)]


@ALL
def test_a_document_is_laid_out_like_a_docstring_with_a_line_a_paragraph(each):
    lines = chinese(each).splitlines()
    assert chinese(each) == chinese(each).strip()
    headings = [line for place, line in enumerate(lines) if place and line and not re.match(r" {4}\S", line)]
    assert headings == list(CHINESE)
    assert [place for place, line in enumerate(lines) if not line] == [1, len(lines) - 3]


@ALL
def test_marks_are_those_of_chinese(each):
    """No half-width mark beside a Chinese character, no space beside a full-width one."""
    beside = re.compile("[\u4e00-\u9fff][,;:!?()]|[,;:!?(][\u4e00-\u9fff]|[，。；：、（）] | [，。；：、（）]")
    text = re.sub(r"^ {4}", "", CODE.sub("x", chinese(each)), flags=re.MULTILINE)
    assert [line for line in text.splitlines() if beside.search(line)] == []


def test_no_source_is_translated_for_nothing():
    assert set(option_sources("zh")) <= {option.source for each in every_rule() for option in each.options.values()}


def test_sources_tell_the_same_numbers():
    told = option_sources("zh")
    assert [text for text in told if numbers(told[text]) != numbers(text)] == []
    assert [text for text in told.values() if not re.search("[\u4e00-\u9fff]", text)] == []


def test_english_needs_no_documents_besides_its_docstrings():
    assert {rule_doc("en", each.id) for each in every_rule()} == {""}
    assert option_sources("en") == {}


def test_a_rule_of_others_has_no_document():
    assert rule_doc("zh", "ACM101") == ""
