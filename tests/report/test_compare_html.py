"""The page of a comparison, parsed again, and opened in a browser where there is one."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import traceanalyze
from tests.report.browser import dump_dom, evaluated
from tests.report.make_compare import MS, build_compare, comparison, contribution, itself, swapped
from tests.report.test_compare_on_traces import PAIRS
from tests.report.test_html import HOSTILE, Page, in_browser, table_of
from traceanalyze.comparison.results import Part
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.report.html import render
from traceanalyze.report.html.sides import MAX_CAUSES, MAX_TEXT
from traceanalyze.report.json import render as render_json


def report_of(found=None):
    return build_compare(found or comparison(), version="1.2.3")


def html_of(found=None, language="en"):
    return render([report_of(found)], texts(language))


def has_rows(table):
    return bool(table.rows) and not isinstance(table.rows, NotMeasured)


def bars(page):
    """Bars of the picture: what each line is called, its classes, left end, width, and what stands beside it."""
    start = next(i for i, node in enumerate(page.elements) if node[1].get("class") == "waterfall")
    found, name = [], ""
    for tag, attributes, content in page.elements[start:]:
        if tag == "th":
            name = "".join(content)
        elif tag == "rect":
            found.append([name, attributes["class"], int(attributes["x"]), int(attributes["width"])])
        elif tag == "td" and found and len(found[-1]) == 4 and (attributes.get("class") or "").startswith("n "):
            found[-1].append("".join(content))
        elif (attributes.get("class") or "") == "scale":
            return found
    return found


@pytest.mark.parametrize("found", [comparison(), swapped(), itself()])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_is_well_formed_with_unique_ids_and_links_that_lead_somewhere(found, language):
    page = Page(html_of(found, language))
    assert page.errors == []
    ids = [node[1]["id"] for node in page.elements if "id" in node[1]]
    assert len(ids) == len(set(ids))
    links = {node[1]["href"].removeprefix("#") for node in page.find("a")}
    assert links
    assert links <= set(ids)


def test_the_verdict_comes_first_and_both_sides_are_named():
    page = Page(html_of())
    verdict = "".join(page.find("p", class_="verdict")[0][2]).replace("\xa0", " ")
    assert verdict.startswith("The candidate is 20.00 ms (20 %) faster per step, 80.00 ms instead of 100.0 ms: ")
    (sides,) = page.find("dl", class_="sides")
    text = "".join(sides[2]).replace("\xa0", " ")
    assert "basebefore.json · rank 0 · Tesla V100 · 100.0 ms, mean of 2 complete steps" in text
    assert "candidateafter.json · rank 0 · Tesla V100 · 80.00 ms, mean of 4 complete steps" in text
    assert [node[1]["title"] for node in page.find("strong") if "title" in node[1]] == [
        "runs/before.json",
        "runs/after.json",
    ]


def test_every_table_with_rows_is_there_and_only_what_is_read_first_is_open():
    report = report_of()
    page = Page(render([report], texts()))
    tags = {node[1].get("id"): node[0] for node in page.elements}
    for table in report.summary:
        assert (f"compare-{table.key}" in tags) == has_rows(table), table.key
    opened = [at for at, tag in tags.items() if tag == "section" and at]
    assert opened == [
        "compare-step_difference",
        "compare-overall_metrics",
        "compare-memory_peak",
        "compare-slower",
        "compare-faster",
    ]


def test_numbers_are_those_of_json():
    report = report_of()
    page = Page(render([report], texts()))
    known = json.loads(render_json([report], texts()))["reports"][0]["tables"]
    compared = 0
    for table in report.summary:
        if not has_rows(table) or table.layout != "rows":
            continue
        numbers = [column.key for column in table.columns if not column.machine]
        _, rows = table_of(page, table.key, at="compare")
        # A picture stands before the numbers behind it, their sum after them.
        rows = rows[-len(table.rows) - (table.total is not None) :]
        for cells, row in zip(rows, known[table.key]["rows"], strict=False):
            expected = [row[key] for key in numbers if isinstance(row[key], int | float) and row[key] is not True]
            # Differences stand before the columns of the sides.
            assert sorted(json.loads(value) for _, value in cells if value is not None) == sorted(expected), table.key
            compared += len(expected)
    assert compared > 200


def test_the_picture_leads_from_one_step_to_the_other():
    found = bars(Page(html_of()))
    assert found == [
        ["base", "step", 0, 1_000_000, "100.0 ms"],
        ["data loading", "better", 700_000, 300_000, "-30.00 ms"],
        ["dispatch", "worse", 700_000, 50_000, "+5.000 ms"],
        ["untraced", "worse", 750_000, 30_000, "+3.000 ms"],
        ["compute", "worse", 780_000, 20_000, "+2.000 ms"],
        ["candidate", "step", 0, 800_000, "80.00 ms"],
    ]


def awkward(parts):
    """Three steps against seven, which leave remainders everywhere."""
    found = comparison()
    steps = tuple(f"ProfilerStep#{number}" for number in range(7))
    sums = sum(part.base for part in parts), sum(part.candidate for part in parts)
    return found._replace(
        base=replace(found.base, steps=steps[:3], step_time=sums[0]),
        candidate=replace(found.candidate, steps=steps, step_time=sums[1]),
        parts=parts,
    )


@pytest.mark.parametrize(
    "parts",
    [
        (Part("compute", 1000, 2333), Part("sync", 17, 3), Part("host_op", 4, 4), Part("untraced", 11, 100)),
        (Part("compute", 300_000_001, 700_000_000), Part("sync", 5, 101), Part("dispatch_launch", 1, 0)),
        (Part("compute", 10 * MS, 0), Part("untraced", 0, 999)),
    ],
)
def test_bars_join_and_their_sum_is_the_difference_exactly(parts):
    found = bars(Page(html_of(awkward(parts))))
    first, *moves, last = found
    at = first[3]
    for _, css, left, wide, _ in moves:
        assert (left if css == "worse" else left + wide) == at
        at += wide if css == "worse" else -wide
    assert at == last[3]
    # As long as brute force says, to the last unit of the picture at both ends.
    scale = max(1, abs(first[3] - last[3])) / abs(
        sum(part.candidate for part in parts) * 3 - sum(part.base for part in parts) * 7
    )
    changes = sorted((abs(part.candidate * 3 - part.base * 7) for part in parts), reverse=True)
    changes = [change for change in changes if change]
    assert [wide for *_, wide, _ in moves] == [pytest.approx(change * scale, abs=2, rel=1e-4) for change in changes]


def test_a_small_difference_is_seen_on_an_axis_that_says_where_it_begins():
    parts = (Part("compute", 300 * MS, 701 * MS), Part("sync", 30 * MS, 70 * MS))
    page = Page(html_of(awkward(parts)))
    first, move, last = bars(page)
    assert move[:2] == ["compute", "worse"]
    assert move[3] > 500_000
    assert first[3] + move[3] == last[3]
    caption = "".join(page.find("figcaption")[0][2]).replace("\xa0", " ")
    assert "The axis begins at 109.9 ms." in caption or "The axis begins at 110.0 ms." in caption
    assert len(page.find("path", class_="torn")) == 2
    assert Page(html_of()).find("path", class_="torn") == []


def test_what_one_side_did_not_measure_is_a_bar_of_its_own():
    parts = (Part("compute", 120 * MS, 248 * MS), Part("untraced", NotMeasured("no_host_events"), 24 * MS))
    found = comparison()
    shown = bars(Page(html_of(found._replace(parts=parts))))
    assert [(name, value) for name, *_, value in shown] == [
        ("base", "100.0 ms"),
        ("compute", "+2.000 ms"),
        ("not measured", "-22.00 ms"),
        ("candidate", "80.00 ms"),
    ]


def test_swapping_the_sides_turns_every_bar_around():
    there, back = bars(Page(html_of())), bars(Page(html_of(swapped())))
    other = {"better": "worse", "worse": "better", "+": "-", "-": "+"}
    assert sorted((name, other[css], other[value[0]] + value[1:]) for name, css, _, _, value in there[1:-1]) == sorted(
        (name, css, value) for name, css, _, _, value in back[1:-1]
    )


def test_nothing_is_drawn_and_no_cause_is_named_where_nothing_differs():
    page = Page(html_of(itself()))
    assert page.find("figure") == []
    assert not [node for node in page.elements if node[1].get("id") in {"compare-slower", "compare-faster"}]
    assert "No difference: both sides take" in page.text()
    assert not [node for node in page.elements if re.search("worse|better", node[1].get("class") or "")]


def test_worse_and_better_are_told_apart_and_equal_is_neither():
    page = Page(html_of())
    classes = {}
    for tag, attributes, content in page.elements:
        if tag == "td" and "data-value" in attributes:
            classes.setdefault("".join(content), set()).add(attributes["class"].split()[-1])
    assert classes["+5.00"] == {"worse"}
    assert classes["-22.00"] == {"better"}
    assert "worse" not in classes["0.00"] | classes["1.00"]
    assert "better" not in classes["1.00"]


def test_causes_of_both_directions_share_one_scale_and_stop():
    many = tuple(
        contribution("compute", "operator", f"aten::op{n}", 10 * MS, (10 + n) * 2 * MS, (1, 2)) for n in range(1, 41)
    )
    found = comparison()._replace(contributions=(*comparison().contributions, *many))
    html = html_of(found)
    page = Page(html)
    _, slower = table_of(page, "slower", at="compare")
    assert len(slower) == MAX_CAUSES
    shares = {
        key: [float(share) for share in re.findall(r"--share:([\d.]+)", part)]
        for key, part in zip(
            ("slower", "faster"), html.split('id="compare-slower"')[1].split("</section>"), strict=False
        )
    }
    largest = max(abs(value) for value in report_of(found).tables["causes"].column("diff_ns"))
    assert shares["slower"] == [pytest.approx(abs(json.loads(row[4][1])) / largest, abs=1e-4) for row in slower]
    assert max(shares["faster"]) == 1.0
    assert "compare-causes" in {node[1].get("id") for node in page.elements}


def test_differences_are_not_pushed_out_of_sight_by_the_columns_of_both_sides():
    page = Page(html_of())
    heads, rows = table_of(page, "kernel_compare", at="compare")
    assert heads[4:13] == [
        *("#", "kernel", "shapes", "total ratio", "mean ratio", "diff ms", "of changes %", "total ms", "mean ms"),
    ]
    assert [text for text, _ in rows[1][:7]] == ["1", "add", "[8]", "", "", "+2.00", "100.0"]


def test_the_side_stands_once_above_its_columns():
    html = html_of()
    head = html.split('id="compare-overall_metrics"')[1].split("</thead>")[0]
    assert re.findall(r'<th scope="colgroup" colspan="(\d)" class="side (\w+)">(\w+)', head) == [
        ("3", "base", "base"),
        ("3", "candidate", "candidate"),
    ]
    # Cells of the line above reach over as many columns as the line below has.
    lines = head.split("<thead>")[1].split("</tr>")
    assert sum(map(int, re.findall(r'colspan="(\d+)"', lines[0]))) == lines[1].count("<th")


def test_where_to_look_comes_first_and_caveats_before_the_picture_and_doubts_after_the_tables():
    text = Page(html_of()).text().replace("\xa0", " ")
    words = texts().messages
    order = [
        text.rindex(words["advice"]),
        text.rindex(words["caveats"]),
        text.rindex("The two profiles have different levels."),
        text.index("From the base's step to the candidate's"),
        text.rindex(words["quality"]),
        text.index("Matched kernels: 100 % of the base's time"),
    ]
    assert order == sorted(order)


def test_very_long_names_are_cut_and_said_to_be():
    long = "kernel_" * 100
    found = comparison()
    kernels = tuple(pair._replace(shared=pair.shared | {"shapes": long}) for pair in found.kernels)
    html = html_of(found._replace(kernels=kernels))
    assert long not in html
    _, rows = table_of(Page(html), "kernel_compare", at="compare")
    assert f"{long[:MAX_TEXT]}…" in [text for text, _ in rows[1]]
    told = texts().messages["page_texts_cut"].format(count=MAX_TEXT)
    assert html.count(told) == 1
    assert told not in html_of()


def test_sections_that_cannot_be_compared_say_why():
    found = comparison()._replace(collectives=NotMeasured("no_communication"), modules=NotMeasured("no_modules"))
    text = Page(html_of(found)).text()
    told = text[text.rindex(texts().messages["not_compared"]) :]
    for reason in ("no_communication", "no_modules"):
        assert texts().reasons[reason] in told


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name):
    found = comparison()
    evil = found._replace(
        base=replace(found.base, path=f"/tmp/{name}/a", device_name=name),
        candidate=replace(found.candidate, path=f"/tmp/{name}/b"),
        contributions=(*found.contributions, contribution("compute", "operator", name, 0, 90 * MS, (0, 4), frame=name)),
        kernels=tuple(pair._replace(shared=pair.shared | {"kernel": name}) for pair in found.kernels),
    )
    plain, html = Page(html_of()), html_of(evil)
    page = Page(html)
    assert page.errors == []
    assert html.encode("utf-8")
    assert {node[0] for node in page.elements} == {node[0] for node in plain.elements}
    assert [node[1].get("type") for node in page.find("script")].count(None) == 1
    assert not [key for node in page.elements for key in node[1] if key.startswith("on")]
    shown = "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in name)
    assert shown in {cells[0][0] for cells in table_of(page, "slower", at="compare")[1]}


def test_nothing_comes_from_outside():
    page, html = Page(html_of()), html_of()
    assert not [node for node in page.elements if node[0] in {"link", "img", "iframe", "object", "embed", "base"}]
    assert not [key for node in page.elements for key in node[1] if key in {"src", "srcset", "action", "xlink:href"}]
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(|https?://", html)
    policy = page.find("meta", **{"http-equiv": "Content-Security-Policy"})[0][1]["content"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")


def test_chinese_throughout():
    html = html_of(language="zh")
    page = Page(html)
    assert page.find("html", lang="zh-CN")
    text = page.text().replace("\xa0", " ")
    for words in (
        "比对侧每步快 20.00 ms",
        "从基准的一步到比对的一步",
        "比对侧变慢的部分",
        "下结论之前请注意",
        "数据加载",
    ):
        assert words in text
    for words in ("candidate", "base ", "Slower", "data loading"):
        assert words not in text


@in_browser
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_browser_shows_it_without_complaint(tmp_path, language):
    page = tmp_path / "page.html"
    page.write_text(html_of(language=language), encoding="utf-8")
    dom, console = dump_dom(page)
    assert console == []
    assert 'class="scripted"' in dom
    assert "sorts" in dom


@in_browser
def test_tables_under_two_lines_of_headings_sort(tmp_path):
    script = (
        "return opened('#compare-api_compare').then(function(part){"
        "var table=part.querySelector('table'),heads=table.tHead.rows[1].cells,out=[];"
        "for(var i=0;i<2;i++){heads[heads.length-1].click();"
        "out.push(Array.from(table.tBodies[0].rows,function(r){return r.cells[1].textContent}));}return out;});"
    )
    down, up = evaluated(html_of(), tmp_path, script)
    assert down == ["enumerate(DataLoader)", "cudaLaunchKernel"]
    assert up == down[::-1]


@in_browser
def test_worse_and_better_are_seen_without_colours(tmp_path):
    script = (
        "function mark(css){var node=document.querySelector('#compare-overall_metrics td.'+css);"
        "return getComputedStyle(node,'::before').content;}return [mark('worse'),mark('better')];"
    )
    assert evaluated(html_of(), tmp_path, script) == ['"▲ "', '"▼ "']


@in_browser
def test_bars_have_the_widths_they_say(tmp_path):
    script = (
        "var out=[],svg=document.querySelector('.waterfall svg').getBoundingClientRect();"
        "document.querySelectorAll('.waterfall rect').forEach(function(r){"
        "out.push(r.getBoundingClientRect().width/svg.width)});return out;"
    )
    shares = evaluated(html_of(), tmp_path, script)
    assert shares == [pytest.approx(share, abs=0.005) for share in (1, 0.3, 0.05, 0.03, 0.02, 0.8)]


@in_browser
@pytest.mark.parametrize("name", ["data loader", "two vendors"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_of_real_pairs(shared_traces, tmp_path, name, language):
    base, candidate = (shared_traces / path for path in PAIRS[name])
    if not (base.is_file() and candidate.is_file()):
        pytest.skip(f"the pair {name} is not here")
    report = traceanalyze.compare(base, candidate)
    html = render([report], texts(language))
    assert Page(html).errors == []
    found = bars(Page(html))
    moved = sum(wide if css == "worse" else -wide for _, css, _, wide, _ in found[1:-1])
    assert found[0][3] + moved == found[-1][3]
    page = tmp_path / "page.html"
    page.write_text(html, encoding="utf-8")
    assert dump_dom(page)[1] == []
