"""Expressions that are compiled when first used."""

import pickle
import re
import subprocess
import sys

import pytest

from traceanalyze.model.patterns import regex


def test_it_is_compiled_when_first_used(monkeypatch):
    compiled = []
    real = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: compiled.append(given) or real(*given))
    found = regex(r"a(?P<digits>\d+)", re.IGNORECASE)
    assert compiled == []
    assert found.fullmatch("A12")["digits"] == "12"
    assert found.search("xa3y").span() == (1, 3)
    assert found.sub("-", "a1 b a22") == "- b -"
    assert (found.pattern, found.flags & re.IGNORECASE, found.groups) == (r"a(?P<digits>\d+)", re.IGNORECASE, 1)
    assert compiled[0] == (r"a(?P<digits>\d+)", re.IGNORECASE)


def test_methods_are_those_of_one_compiled_expression():
    found = regex(rb"x+")
    assert found.match(b"xxy").end() == 2
    assert found.match == found.match
    assert found.findall(b"x xx") == [b"x", b"xx"]


def test_what_is_wrong_is_said_when_it_is_used():
    wrong = regex("(")
    with pytest.raises(re.error):
        wrong.search("a")


def test_it_travels_to_other_processes():
    assert pickle.loads(pickle.dumps(regex("a+"))).fullmatch("aaa")


def test_modules_compile_nothing_when_imported():
    code = (
        "import re, typing\n"
        "real, made = re.compile, []\n"
        "def told(*given, **more):\n"
        "    import sys\n"
        "    made.append(sys._getframe(1).f_globals.get('__name__', ''))\n"
        "    return real(*given, **more)\n"
        "re.compile = told\n"
        "import pkgutil, importlib, traceanalyze\n"
        "for each in pkgutil.walk_packages(traceanalyze.__path__, 'traceanalyze.'):\n"
        "    if not each.name.endswith(('__main__', 'libtrace_scan')):\n"
        "        importlib.import_module(each.name)\n"
        "own = [each for each in made if each.startswith('traceanalyze')]\n"
        "assert not own, own\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
