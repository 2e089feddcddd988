"""A rule as the scaffold writes it is documented, formatted and right; its cases hold."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from tests import new_rule
from tests.rules import make
from traceanalyze.rules.config import RuleConfig
from traceanalyze.rules.evaluate import evaluate, plan
from traceanalyze.rules.rule import HEADINGS

CALLED = ("KRN999", "two-words", "something short")


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Path of the rule, and of its cases."""
    monkeypatch.setattr(new_rule, "ROOT", tmp_path)
    for path in new_rule.files_of(*CALLED):
        (tmp_path / path).parent.mkdir(parents=True)
    new_rule.main(CALLED)
    return [tmp_path / "traceanalyze/rules/kernel/two_words.py", tmp_path / "tests/rules/kernel/cases_two_words.py"]


def loaded(path):
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_rule_says_what_its_cases_hold(written):
    rule, cases = loaded(written[0]).find, loaded(written[1])

    def found(program, options):
        wanted = plan(RuleConfig((rule.id,), (), {rule.id: options}), (rule,))
        return list(evaluate(make.known(program), wanted).findings)

    for case in cases.FIRES["KRN999"]:
        (one,) = found(case.program, {})
        given = rule.find.__globals__["measured"](count=one.count, idle=one.saving)
        assert (make.us(one.saving), one.count) == (case.saving, case.count)
        assert make.us(one.low) < case.saving <= make.us(one.bound)
        assert [each.value for each in one.evidence] == [each.value for each in given]
        assert tuple(make.us(time) for time in one.intervals[0].tolist()) == case.first
        for name, (_, fires, silent) in case.options.items():
            assert found(case.program, {name: fires})
            assert not found(case.program, {name: silent})
    for case in cases.SILENT["KRN999"]:
        options = case.options if isinstance(case, make.Silent) else {}
        assert not found(getattr(case, "program", case), options)


def test_the_rule_is_called_and_documented_as_every_rule(written):
    rule = loaded(written[0]).find
    assert (rule.id, rule.slug, rule.title) == CALLED
    assert tuple(line for line in rule.doc.splitlines() if line in HEADINGS) == HEADINGS
    assert rule.doc.startswith("Something short.\n")
    assert rule.advice == ("two_words",)


@pytest.mark.parametrize("slug", ["a", "a-slug-as-long-as-can-be1"[:24]])
def test_files_are_formatted_however_the_rule_is_called(slug, tmp_path):
    for number, text in enumerate(new_rule.files_of("DAT998", slug, "t" * 80).values()):
        (tmp_path / f"{number}.py").write_text(text, encoding="utf-8")
    for command in (["format", "--check"], ["check", "--select", "E,F,I"]):
        tool = [sys.executable, "-m", "ruff", *command, "--line-length", "120", "--no-cache", "--isolated", tmp_path]
        subprocess.run(tool, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("called", "why"),
    [
        (("XYZ101", "slug", "title"), "an id is one of DAT"),
        (("DAT1", "slug", "title"), "and three digits"),
        (("RNK199", "slug", "title"), "all ranks"),
        (("DAT101", "slug", "title"), "there is a rule DAT101; the last one of its family is DAT10"),
        (("DAT199", "loader-wait", "title"), "there is a rule loader-wait"),
        (("DAT199", "Slug", "title"), "small letters"),
        (("DAT199", "s" * 25, "title"), "24 at most"),
        (("DAT199", "slug", 'a "title"'), "without quotation marks"),
        (("DAT199", "slug", " "), "a title is one line"),
    ],
)
def test_what_no_rule_can_be_called_is_refused(called, why, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(new_rule, "ROOT", tmp_path)
    with pytest.raises(SystemExit) as ended:
        new_rule.main(called)
    assert ended.value.code == 2
    assert why in capsys.readouterr().err


def test_what_a_rule_says_about_its_cases_is_printed(capsys):
    make.show("DAT103")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("saving=500, severity='HIGH'")
