"""A comparison as Markdown: what stands in a comment, and that names of a trace stay text there."""

from __future__ import annotations

from dataclasses import replace

import pytest

import traceanalyze
from tests.report.make_compare import MS, build_compare, comparison, contribution, itself, swapped
from tests.report.test_compare_on_traces import PAIRS
from tests.report.test_markdown import tables_of
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.report.markdown import render
from traceanalyze.report.view import View

LIMIT = 65_536
"""Characters of a comment on GitHub."""


def page(found=None, *, language="en", top=5):
    return render([build_compare(found or comparison(), version="0")], texts(language), View(top=top))


def test_the_page():
    assert (
        page()
        == """\
**The candidate is 20.00 ms (20 %) faster per step, 80.00 ms instead of 100.0 ms: data loading -30.00 ms, dispatch \
+5.000 ms, untraced +3.000 ms, compute +2.000 ms. 85 % of the difference is explained; +3.000 ms is time of unknown \
cause.**

- base: before.json · rank 0 · Tesla V100 · 100.0 ms, mean of 2 complete steps (median 100.0 ms)
- candidate: after.json · rank 0 · Tesla V100 · 80.00 ms, mean of 4 complete steps (median 80.00 ms)

**Before you conclude**

- The two profiles have different levels.

### Where the steps' time went (per step)

| part | base (ms) | candidate (ms) | diff (ms) | ratio | of change (%) |
| --- | ---: | ---: | ---: | ---: | ---: |
| compute | 60.00 | 62.00 | +2.00 | 1.03 | -10.0 |
| &emsp;matrix products | 60.00 | 60.00 | 0.00 | 1.00 | 0.0 |
| &emsp;elementwise | 0.00 | 2.00 | +2.00 |  | -10.0 |
| communication | 0.00 | 0.00 | 0.00 | 1.00 | 0.0 |
| memory ops | 2.00 | 2.00 | 0.00 | 1.00 | 0.0 |
| idle | 38.00 | 16.00 | -22.00 | 0.42 | 110.0 |
| &emsp;data loading | 30.00 | 0.00 | -30.00 | 0.00 | 150.0 |
| &emsp;dispatch | 5.00 | 10.00 | +5.00 | 2.00 | -25.0 |
| &emsp;untraced | 3.00 | 6.00 | +3.00 | 2.00 | -15.0 |
| step | 100.00 | 80.00 | -20.00 | 0.80 | 100.0 |

### Peak memory

| part | base | candidate | diff | ratio |
| --- | ---: | ---: | ---: | ---: |
| PyTorch's allocator: allocated | 3.0 GB | 2.0 GB | -1.0 GB | 0.67 |

### Slower in the candidate (per step)

| cause | part | base (ms) | candidate (ms) | diff (ms) | of change (%) | how |
| --- | --- | ---: | ---: | ---: | ---: | --- |
| aten::conv2d | host operators | 5.00 | 10.00 | +5.00 | -25.0 | more of them |
| rest | untraced | 3.00 | 6.00 | +3.00 | -15.0 | each longer |
| aten::add\\_ | compute | 0.00 | 2.00 | +2.00 | -10.0 | new |

### Faster in the candidate (per step)

| cause | part | base (ms) | candidate (ms) | diff (ms) | of change (%) | how |
| --- | --- | ---: | ---: | ---: | ---: | --- |
| DataLoader | data loading | 30.00 | 0.00 | -30.00 | 150.0 | gone |

**Where to look**

- dispatch +5.000 ms (largest: aten::conv2d +5.000 ms): look at the Python code around these operators and at \
load, clock rate and binding of the CPU; see that both sides were recorded with the same options.
- untraced +3.000 ms: see what the host does there: record both sides with stacks (with\\_stack=True), if they were not.
- compute +2.000 ms (largest: aten::add\\_ +2.000 ms): compare shapes, data types and implementations of these \
kernels; on equal devices, the same kernels that each take longer point to a lower clock or to other work on the device.

**How far to trust these numbers**

- Device time whose launch or operator is known: base 98 %, candidate 98 %.
- Matched kernels: 100 % of the base's time, 97 % of the candidate's.
- Steps recorded but not compared: base 0, candidate 1.
- Clock resolution: base 1 µs, candidate 1 µs.
"""
    )


@pytest.mark.parametrize("found", [comparison(), swapped(), itself()])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_table_is_one_to_github(found, language):
    text = page(found, language=language)
    assert text.startswith("**")
    for lines in tables_of(text):
        assert set(lines[1]) <= set("|-: ")
        assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_as_many_causes_as_asked_for_and_the_rest_is_counted():
    text = page(top=2)
    assert "aten::conv2d" in text
    assert "| aten::add" not in text
    assert "and 1 more; --top 3 shows them" in text
    assert "shows them" not in page(top=3)


def test_causes_without_weight_are_shown_when_they_are_asked_for():
    light = tuple(contribution("compute", "operator", f"aten::op{n}", 0, 4_000, (0, 4)) for n in range(9))
    found = comparison()._replace(contributions=(*comparison().contributions, *light))
    assert "and 9 more; --top 12 shows them" in page(found)
    assert all(f"aten::op{n} " in page(found, top=12) for n in range(9))
    assert "shows them" not in page(found, top=12)


def test_nothing_is_said_of_causes_where_nothing_differs():
    text = page(itself())
    assert text.startswith("**No difference: both sides take 100.0 ms per step, part by part.**")
    assert "Slower" not in text
    assert "Faster" not in text


def test_one_direction_without_causes_is_said():
    found = comparison()
    slower = tuple(row for row in found.contributions if row.name != "DataLoader")
    assert "Nothing of weight is faster in the candidate." in page(found._replace(contributions=slower))


def test_sections_that_cannot_be_compared_say_why():
    found = comparison()._replace(collectives=NotMeasured("no_communication"))
    text = page(found)
    assert f"- Collectives (per step): {texts().reasons['no_communication']}" in text[text.index("**Not compared**") :]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a|b", "| a\\|b |"),
        ("<img src=x>", "| \\<img src=x\\> |"),
        ("[x](javascript:1)", "| \\[x\\](javascript:1) |"),
        ("ping @all", "| ping @<!-- -->all |"),
        ("two\r\nlines", "| two lines |"),
        ("**bold** `code`", "| \\*\\*bold\\*\\* \\`code\\` |"),
    ],
)
def test_hostile_names_stay_text(name, shown):
    found = comparison()
    hostile = contribution("compute", "operator", name, 0, 90 * MS, (0, 4))
    text = page(
        found._replace(
            base=replace(found.base, path=f"runs/{name}.json", device_name=name),
            contributions=(*found.contributions, hostile),
        )
    )
    assert shown in text
    assert name not in text.replace(shown, "")
    for lines in tables_of(text):
        assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_real_pairs_fit_into_a_comment(shared_traces, name, language):
    base, candidate = (shared_traces / path for path in PAIRS[name])
    if not (base.is_file() and candidate.is_file()):
        pytest.skip(f"the pair {name} is not here")
    text = render([traceanalyze.compare(base, candidate)], texts(language))
    assert len(text) < LIMIT / 8
    for lines in tables_of(text):
        assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
