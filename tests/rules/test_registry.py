"""Every rule is documented, named after its file, and has texts; rules are chosen by id, slug or family."""

from __future__ import annotations

import ast
import inspect
import re
import string
from types import ModuleType, SimpleNamespace

import pytest

from traceanalyze import plugins
from traceanalyze.errors import UsageError
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.config import RuleConfig, options_of, rule_config
from traceanalyze.rules.evaluate import plan
from traceanalyze.rules.finding import Confidence
from traceanalyze.rules.registry import chosen, every_rule, harmless, own_rules, rules_of
from traceanalyze.rules.rule import FAMILIES, HEADINGS, need, rule

RULES = every_rule()
ALL = pytest.mark.parametrize("each", RULES, ids=lambda each: each.id)


def ids(rules):
    return [each.id for each in rules]


def test_there_are_rules_of_the_first_families():
    assert {"DAT", "HST", "SYN", "MEM", "CAP"} <= {each.family for each in RULES}


@ALL
def test_the_file_is_named_after_the_rule(each):
    family, module = each.find.__module__.split(".")[-2:]
    assert family == FAMILIES[each.family]
    assert module == each.slug.replace("-", "_")


@ALL
def test_the_documentation_has_its_headings_in_order(each):
    found = [line for line in each.doc.splitlines() if line in HEADINGS]
    assert tuple(found) == HEADINGS
    assert each.doc.splitlines()[0].endswith(".")


@ALL
def test_titles_and_advice_have_texts(each):
    words = texts()
    assert words.terms[f"rule_{each.id}"]
    assert each.advice
    for key in each.advice:
        for platform in each.platforms:
            assert words.messages[f"advice_{key}.{platform}"] != "→ "


@ALL
def test_sentences_have_texts_and_are_given_their_values(each):
    source = inspect.getsource(inspect.getmodule(each.find))
    labels = _labels(source + _shared(source))
    sentences = {key: text for key, text in texts().messages.items() if re.fullmatch(rf"finding_{each.id}(_\w+)?", key)}
    assert f"finding_{each.id}" in sentences
    for text in sentences.values():
        assert {name for _, name, _, _ in string.Formatter().parse(text) if name} <= labels | {"per"}
    assert {f"evidence_{label}" for label in labels} <= set(texts().terms)


def _labels(source):
    """Labels of evidence that a source makes."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    measured = {each.arg for call in calls if getattr(call.func, "id", "") == "measured" for each in call.keywords}
    return measured | set(re.findall(r'Evidence\(\s*"(\w+)"', source))


def _shared(source):
    """Source of the shared modules that a rule uses: evidence may be made there."""
    names = re.findall(r"from (traceanalyze\.rules\.(?:common\.\w+|capture)) import", source)
    return "".join(inspect.getsource(__import__(name, fromlist=["x"])) for name in names)


@ALL
def test_every_option_says_where_its_value_comes_from(each):
    assert [name for name, option in each.options.items() if len(option.source) < 5] == []


def test_ids_and_slugs_are_chosen_with_what_they_begin_with():
    assert ids(chosen(RULES, ["DAT101"], [])) == ids(chosen(RULES, ["loader-wait"], [])) == ["DAT101"]
    assert {each.family for each in chosen(RULES, ["SYN", "data"[:3].upper()], [])} == {"SYN", "DAT"}
    assert "SYN105" not in ids(chosen(RULES, ["SYN"], ["pageable-copy"]))
    assert ids(chosen(RULES, [], [])) == ids(RULES)
    with pytest.raises(UsageError, match="no rule is called XYZ"):
        chosen(RULES, ["XYZ"], [])


def test_other_packages_add_rules(monkeypatch):
    @rule("XYZ101", "strange-thing", confidence=Confidence.LOW, needs="", advice=())
    def find(facts, options):
        """A strange thing."""
        yield from ()

    module = ModuleType("other")
    module.find = find
    assert ids(rules_of(module)) == ["XYZ101"]

    class Entry:
        name, group = "other", plugins.RULES

        def load(self):
            return module

    monkeypatch.setattr("traceanalyze.plugins.found", lambda: SimpleNamespace(entries=(Entry(),), made={}, faults={}))
    every_rule.cache_clear()
    try:
        assert "XYZ101" in ids(every_rule())
    finally:
        every_rule.cache_clear()


def said_rule(code, **texts):
    return rule(code, code.lower(), confidence=Confidence.LOW, needs="", **texts)(lambda facts, options: iter(()))


def test_a_rule_says_what_it_finds_beside_its_code():
    one = said_rule(
        "XYZ102",
        title="something odd",
        sentence={"": "{odd} of them.", "all": "All {odd}."},
        advice_texts={"even_out": "Make them even.", "leave.cuda": "Leave it.", "leave.ascend": "Leave it so."},
        evidence={"odd": "odd ones", "share": "never used: others said it before"},
    )
    harmless("other", one)
    assert one.advice == ("even_out", "leave")
    for words in (texts(), texts("zh")):
        assert words.terms["rule_XYZ102"] == "something odd"
        assert words.messages["finding_XYZ102"] == "XYZ102: {odd} of them."
        assert words.messages["finding_XYZ102_all"] == "XYZ102: All {odd}."
        assert words.messages["advice_even_out.cuda"] == words.messages["advice_even_out.ascend"] == "→ Make them even."
        assert words.messages["advice_leave.ascend"] == "→ Leave it so."
        assert words.terms["do_leave.cuda"] == "Leave it."
        assert words.terms["evidence_odd"] == "odd ones"
    assert texts().terms["evidence_share"] == "share of the step"


def test_a_rule_of_others_may_stop_at_what_was_not_measured():
    @rule("XYZ104", "odd", confidence=Confidence.LOW, needs="", sentence="Odd.")
    def find(facts, options):
        """Odd."""
        need(NotMeasured("no_device_events"))
        yield from ()

    assert [each.reason for each in harmless("other", find)(None)] == ["no_device_events"]
    assert plugins.faults() == ()


def test_one_sentence_needs_no_key():
    assert said_rule("XYZ103", sentence="Odd.", advice=("larger_batch",)).sentences == {"": "Odd."}
    assert said_rule("XYZ103", advice=("larger_batch",)).advice == ("larger_batch",)


@pytest.mark.parametrize("code", ["dat1", "dat101", "DAT10", "DAT1011", "DATA01", "DA1101", "DAT10x", "DÄT101"])
def test_an_id_is_three_letters_and_three_digits(code):
    with pytest.raises(ValueError, match="three capital letters"):
        rule(code, "x", confidence=Confidence.LOW, needs="", advice=())


def loader_wait(**values):
    (one,) = chosen(RULES, ["DAT101"], [])
    return options_of(one, rule_config({"loader-wait": values}, "traceanalyze.toml"))


def test_options_come_from_the_configuration():
    assert loader_wait(share=0.2)["share"] == 0.2
    assert loader_wait(share=1)["share"] == 1
    assert loader_wait()["share"] == 0.05


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"loader-wait": {"part": 1}}, "no option part"),
        ({"loader-wait": {"share": "much"}}, "not of the type"),
        ({"loader-wait": {"share": True}}, "not of the type"),
        ({"no-such-rule": {}}, "no rule is called so"),
        ({"select": "DAT"}, "not a list of names"),
        ({"loader-wait": 3}, "neither select, ignore"),
        ({"select": ["QQQ"]}, "no rule is called QQQ"),
    ],
)
def test_a_wrong_configuration_is_told(table, message):
    with pytest.raises(UsageError, match=message):
        plan(rule_config(table, "traceanalyze.toml"))


def test_the_configuration_chooses_rules():
    wanted = plan(rule_config({"select": ["DAT"], "ignore": ["DAT105"]}, "traceanalyze.toml"))
    assert {each.family for each, _ in wanted.rules} == {"DAT"}
    assert "DAT105" not in [each.id for each, _ in wanted.rules]
    assert len(plan(RuleConfig()).rules) == len(RULES)


def test_the_order_of_rules_is_that_of_who_explains_time_first():
    """-2 before -1 before the others; 1 and 2 are general and explain what is left."""
    orders: dict[int, set[str]] = {}
    for one in own_rules().values():
        orders.setdefault(one.order, set()).add(one.id)
    del orders[0]
    assert orders == {
        -2: {"CAP107", "CGR106", "HST106", "MEM111"},
        -1: {
            "CGR102",
            "CGR105",
            "COM102",
            "COM103",
            "COM106",
            "COM112",
            "COM115",
            "COM118",
            "COM120",
            "DAT102",
            "DAT103",
            "DAT106",
            "HST105",
            "HST109",
            "KRN104",
            "KRN105",
            "KRN120",
            "MEM102",
            "MEM103",
        },
        1: {"COM101", "COM117", "KRN106", "KRN121", "RNK102", "SYN109"},
        2: {"HST101", "HST102", "HST107", "KRN119", "KRN122", "RNK106"},
    }
