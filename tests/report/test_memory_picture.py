"""The picture of every block of a snapshot: what is packed for it, and what a browser makes of that."""

from __future__ import annotations

import json
import pickle
import re
import zlib
from base64 import b64decode
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.report.browser import evaluated
from tests.report.test_html import HOSTILE, Page, in_browser
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import MIB, Allocator
from tests.simulate.allocator.programs import Loop, frame, train
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.layout import follow
from traceanalyze.analyses.memory.sites import sites
from traceanalyze.locales import texts
from traceanalyze.pipeline.memory import memory
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source
from traceanalyze.report.html import memory as picture
from traceanalyze.report.html import render

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces" / "memory"
_COLUMNS = (
    *("begin", "life", "kind", "where", "places", "size", "asked", "stack", "category"),
    *("starts", "lengths", "flags", "changed", "timed", "times"),
)
_SUMS = {"begin", "places", "changed", "timed", "times"}
"""Packed as distances."""


def write(folder, found, name="snapshot.pickle"):
    path = folder / name
    path.write_bytes(pickle.dumps(found))
    return path


def unpacked(html):
    """Texts and columns of every picture in a page."""
    return [
        columns(json.loads(text)) for text in re.findall(r'<figure class="memory"><script[^>]*>(.*?)</script>', html)
    ]


def columns(figure):
    raw = zlib.decompress(b64decode(figure["data"]), -15)
    at = 4 + int.from_bytes(raw[:4], "little")
    found = json.loads(raw[4:at])
    for name, count in zip(_COLUMNS, found["counts"], strict=True):
        values = []
        for _ in range(count):
            value = power = 0
            while True:
                byte = raw[at]
                at += 1
                value |= (byte & 127) << power
                power += 7
                if byte < 128:
                    break
            values.append(value)
        if name == "times":
            values = [-(value // 2) if value % 2 else value // 2 for value in values]
        found[name] = np.cumsum(values, dtype=np.int64).tolist() if name in _SUMS else values
    assert at == len(raw)
    return found


def blocks_after(found, event):
    """Address and requested bytes of every block that is alive after an event."""
    base, state = int(found["base"], 16), event - found["first"]
    rows = zip(found["begin"], found["life"], found["kind"], found["where"], strict=True)
    return Counter(
        (base + found["unit"] * found["places"][where], found["asked"][kind])
        for begin, life, kind, where in rows
        if begin <= state < begin + life
    )


def replayed(events, final):
    """The same from the events themselves, backwards from the dump: what is alive after each of them."""
    live = Counter(final)
    after = []
    for event in reversed(events):
        after.append(Counter(live))
        if event["action"] == "alloc":
            live[event["addr"], event["size"]] -= 1
        elif event["action"] == "free_completed":
            live[event["addr"], event["size"]] += 1
        live = +live
    return [live, *reversed(after)]


def live_blocks(dumped, device=0):
    return [
        (block["address"], block["requested_size"])
        for segment in dumped["segments"]
        if segment["device"] == device
        for block in segment["blocks"]
        if block["state"] != "inactive"
    ]


@pytest.fixture(scope="module", params=[False, True], ids=["segments", "expandable"])
def looping(request, tmp_path_factory):
    allocator = train(Loop(steps=4, leak=40 * MIB, empty_cache=True), Allocator(expandable=request.param))
    return write(tmp_path_factory.mktemp("loop"), dump(allocator)), dump(allocator)


def test_the_blocks_after_each_event_are_those_that_the_events_lead_to(looping):
    path, dumped = looping
    (found,) = unpacked(render([memory(path)], texts()))
    events = dumped["device_traces"][0]
    assert found["states"] == len(events) + 1
    for number, expected in enumerate(replayed(events, live_blocks(dumped)), start=-1):
        assert blocks_after(found, number) == expected


def test_the_segments_after_each_event_are_those_that_the_events_lead_to(looping):
    path, dumped = looping
    (found,) = unpacked(render([memory(path)], texts()))
    signs = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
    events = [(event["addr"], signs.get(event["action"], 0) * event["size"]) for event in dumped["device_traces"][0]]
    begin = sum(one["total_size"] for one in dumped["segments"]) - sum(size for _, size in events)
    unit, first, base = found["unit"], found["segments"], int(found["base"], 16)
    assert sum(found["lengths"][:first]) * unit == begin
    rows = zip(found["changed"], found["starts"][first:], found["lengths"][first:], found["flags"][first:], strict=True)
    changes = {
        at - 1: (base + unit * start, (length if flags & 2 else -length) * unit) for at, start, length, flags in rows
    }
    assert changes == {at: event for at, event in enumerate(events) if event[1]}
    large = dict(zip(changes, (found["domains"][flags >> 2] for flags in found["flags"][first:]), strict=True))
    assert all((abs(changes[at][1]) > 2 * MIB) == name.startswith("large") for at, name in large.items())


def device_of(path):
    snapshot = read_snapshot(Source(str(path), size=path.stat().st_size))
    return Device(snapshot, snapshot.devices[0], sites(snapshot.stacks))


STATES = """
return document.querySelector('figure.memory').ready.then(function () {
  var figure = document.querySelector('figure.memory'), out = [];
  for (var at = 0; at < figure.memory.data.states; at += %d) {
    figure.memory.go(at);
    out.push([at + figure.memory.data.first].concat(figure.memory.state()[1].map(function (one) {
      return [one.reserved, one.used, one.free, one.holes, one.largest];
    })));
  }
  return out;
});
"""


@in_browser
def test_segments_blocks_and_holes_after_each_event_are_the_follower_s(looping, tmp_path):
    path, _ = looping
    device = device_of(path)
    every = range(device.events + 1)
    watched = follow(device.device, device.lives, device.rules, frozenset(every)).watched
    for event, *domains in evaluated(render([memory(path)], texts()), tmp_path, STATES % 7):
        free = sorted((one.bytes, one.holes, one.largest) for one in watched[event + 1])
        assert sorted(tuple(one[2:]) for one in domains if one[2]) == free
        assert sum(one[0] for one in domains) == device.reserved.at(event)
        assert sum(one[1] for one in domains) == device.blocks.at(event)


def big(count, seed=5):
    """Requests of many sizes and lines in no order: nothing of it can be packed well."""
    random, allocator, live = np.random.default_rng(seed), Allocator(), []
    stacks = [[frame(f"f{at}", f"/home/me/p{at % 9}.py", at)] for at in range(200)]
    while len(allocator.events) < count:
        if len(live) < 40 or random.random() < 0.5:
            live.append(allocator.malloc(int(random.integers(512, 8 * MIB)), stacks[int(random.integers(200))]))
        else:
            allocator.free(live.pop(int(random.integers(len(live)))))
    return dump(allocator)


def test_what_has_no_room_is_left_out_around_the_peak_and_it_is_said(tmp_path, monkeypatch):
    dumped = big(6_000)
    report = memory(write(tmp_path, dumped))
    whole = render([report], texts())
    assert "The page has room" not in whole
    monkeypatch.setattr(picture, "BUDGET", 12_000)
    monkeypatch.setattr(picture, "_LEAST", 0)
    html = render([report], texts())
    (text,) = re.findall(r'<figure class="memory"><script[^>]*>(.*?)</script>', html)
    assert len(json.loads(text)["data"]) <= 12_000
    (found,) = unpacked(html)
    first, states = found["first"], found["states"]
    assert (
        f"room for the blocks of {states:,} of {len(dumped['device_traces'][0]):,} events, from event {first:,} on"
        in html
    )
    peak = next(report.tables["memory_moments"].records()).event
    assert first <= peak < first + states
    expected = replayed(dumped["device_traces"][0], live_blocks(dumped))
    for event in range(first, first + states, 50):
        assert blocks_after(found, event) == expected[event + 1]


def test_a_window_from_the_begin_on_counts_no_state_before_the_first_event(tmp_path, monkeypatch):
    report = memory(write(tmp_path, big(6_000)))
    monkeypatch.setattr(picture, "_fitting", lambda history, formatter, budget: (b"", -1, 99))
    assert "room for the blocks of 99 of 6,000 events, from event 0 on" in render([report], texts())


def test_a_million_events_have_room_in_three_megabytes(tmp_path):
    """A tenth of them, with a tenth of the room."""
    report = memory(write(tmp_path, big(100_000)))
    html = render([report], texts())
    assert "The page has room" not in html
    (text,) = re.findall(r'<figure class="memory"><script[^>]*>(.*?)</script>', html)
    assert len(text) < 550_000


def test_several_snapshots_share_the_room(tmp_path, monkeypatch):
    reports = [memory(write(tmp_path, big(6_000, seed), f"{seed}.pickle")) for seed in range(3)]
    monkeypatch.setattr(picture, "BUDGET", 45_000)
    monkeypatch.setattr(picture, "_LEAST", 0)
    html = render(reports, texts())
    found = re.findall(r'<figure class="memory"><script[^>]*>(.*?)</script>', html)
    assert len(found) == 3
    assert sum(len(json.loads(text)["data"]) for text in found) <= 45_000


def test_six_snapshots_in_a_page_are_small_but_for_their_data(tmp_path):
    reports = [memory(write(tmp_path, dump(train(Loop(leak=MIB), Allocator())), f"{n}.pickle")) for n in range(6)]
    html = render(reports, texts())
    assert len(re.sub(r'<script type="application/json".*?</script>', "", html).encode()) <= 300_000


def test_what_the_dump_alone_tells_is_drawn_without_a_history(tmp_path):
    allocator = Allocator()
    for size in (3, 40, 7):
        allocator.malloc(size * MIB, [frame("f", "/home/me/train.py", 3)])
    dumped = {**dump(allocator), "device_traces": [[]]}
    (found,) = unpacked(render([memory(write(tmp_path, dumped))], texts()))
    assert found["states"] == 1
    assert blocks_after(found, -1) == Counter(live_blocks(dumped))


def test_a_snapshot_that_contradicts_itself_has_no_picture_and_it_is_said(tmp_path):
    dumped = dump(train(Loop(steps=2), Allocator()))
    gone = next(event for event in dumped["device_traces"][0] if event["action"] == "segment_alloc")
    dumped["device_traces"][0].append({**gone, "action": "segment_free"})
    html = render([memory(write(tmp_path, dumped))], texts())
    assert unpacked(html) == []
    (section,) = re.findall(r'<section id="run-0-memory">(.*?)</section>', html)
    assert "Memory, block by block" in section
    assert "the snapshot contradicts itself" in section


def test_marks_and_ranges_stand_at_their_events(tmp_path):
    allocator = train(Loop(steps=3), Allocator())
    report = memory(write(tmp_path, dump(allocator)))
    (found,) = unpacked(render([report], texts()))
    marks = {(kind, event + found["first"]) for kind, _, event, _ in found["marks"]}
    moments = {
        (one.moment, -1 if one.event is None else one.event) for one in report.tables["memory_moments"].records()
    }
    assert moments <= marks
    time = [event["time_us"] for event in allocator.events]
    begins = [note["time_us"] for note in allocator.notes if note["stage"] == "START"]
    assert begins
    assert sorted(begin + found["first"] for _, begin, *_ in found["spans"]) == sorted(
        sum(at < begin for at in time) for begin in begins
    )


def times(found):
    """ns since the first event of the history, by event."""
    return {at + found["first"]: time for at, time in zip(found["timed"], found["times"], strict=True)}


def test_times_are_those_of_the_file_also_where_the_clock_went_back_and_in_a_window(tmp_path, monkeypatch):
    dumped = big(6_000)
    events = dumped["device_traces"][0]
    for number, event in enumerate(events):
        event["time_us"] = 10**15 + 7 * number - (1_000_000 if number >= 3_000 else 0)
    expected = {number: 1000 * (event["time_us"] - 10**15) for number, event in enumerate(events)}
    report = memory(write(tmp_path, dumped))
    assert times(unpacked(render([report], texts()))[0]) == expected
    monkeypatch.setattr(picture, "BUDGET", 12_000)
    monkeypatch.setattr(picture, "_LEAST", 0)
    monkeypatch.setattr("traceanalyze.analyses.memory.history.MOST_TIMES", 6)
    (found,) = unpacked(render([memory(write(tmp_path, dumped))], texts()))
    shown = times(found)
    begin, end = found["first"], found["first"] + found["states"] - 1
    assert {begin, end} <= set(shown)
    # Between two of those kept, of which the clock went back between the third and the fourth.
    kept = [0, 1199, 2399, 3599, 4799, 5999]
    for event in (begin, end):
        low, high = max(at for at in kept if at <= event), min(at for at in kept if at >= event)
        part = (event - low) / max(high - low, 1)
        assert shown[event] == pytest.approx(expected[low] + part * (expected[high] - expected[low]), abs=1)


def test_ranges_beyond_three_at_a_time_have_no_bar_and_it_is_said(tmp_path):
    allocator = train(Loop(steps=3), Allocator())
    first, last = allocator.events[1]["time_us"], allocator.events[-1]["time_us"]
    dumped = dump(allocator)
    dumped["external_annotations"] = [
        {"stage": stage, "name": f"level {level}", "time_us": time}
        for level in range(5)
        for stage, time in (("START", first), ("END", last - level))
    ]
    html = render([memory(write(tmp_path, dumped))], texts())
    (found,) = unpacked(html)
    assert [(name, lane) for name, *_, lane in found["spans"]] == [
        (f"level {level}", lane) for level, lane in enumerate((0, 1, 2, -1, -1))
    ]
    assert "Without a bar of their own: 2 ranges within others." in html
    assert "Without a bar" not in render([memory(write(tmp_path, dump(allocator)))], texts())


def test_a_page_without_a_snapshot_has_no_script_for_it_and_hostile_names_stay_text(tmp_path):
    allocator = Allocator()
    for name in HOSTILE:
        allocator.malloc(MIB, [frame(name, f"/home/{name}.py", 3)] if name.isprintable() else [])
    html = render([memory(write(tmp_path, dump(allocator)))], texts())
    assert Page(html).errors == []
    assert not Page(html).find("img")


_SIGHT = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""How colours look to those who lack one kind of cones (Machado, Oliveira and Fernandes 2009)."""


def lab(colour, sight):
    """CIE L*a*b* of a colour as somebody sees it."""
    part = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(_SIGHT[sight]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    f = xyz / [0.9505, 1, 1.089]
    f = np.where(f > 0.008856, np.cbrt(f), 7.787 * f + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", _SIGHT)
def test_colours_of_categories_are_told_apart_by_everybody(sight):
    css = (Path(picture.__file__).parent / "page.css").read_text(encoding="utf-8")
    named = dict(re.findall(r"--c-(\w+): (#\w{6});", css))
    assert len(named) == 12
    for free in re.findall(r"--outer: (#\w{6});", css):
        seen = [lab(colour, sight) for colour in (*named.values(), free)]
        assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 15


PICTURE = """
return document.querySelector('figure.memory').ready.then(function () {
  var figure = document.querySelector('figure.memory'), both = figure.querySelectorAll('canvas');
  var curve = both[0], map = both[1];
  function press(canvas, key) { canvas.dispatchEvent(new KeyboardEvent('keydown', {key: key, bubbles: true})); }
  function event() { return Number(figure.dataset.event); }
  function find(text) {
    var box = figure.querySelector('.find input');
    box.value = text;
    box.dispatchEvent(new Event('input'));
    return figure.querySelector('.find output').textContent;
  }
  %s
});
"""


@in_browser
def test_one_goes_from_event_to_event_by_keys_buttons_and_slider(tmp_path, looping):
    path, _ = looping
    script = (
        "var out=[event()];press(curve,'.');out.push(event());press(curve,',');press(curve,',');out.push(event());"
        "figure.querySelectorAll('.scrub button')[1].click();out.push(event());"
        "var range=figure.querySelector('.scrub input');range.value=40;"
        "range.dispatchEvent(new Event('input'));out.push(event());press(curve,'Home');var whole=curve.dataset.view;"
        "press(curve,'+');return out.concat([whole,curve.dataset.view]);"
    )
    report = memory(path)
    peak = next(report.tables["memory_moments"].records()).event
    *events, whole, near = evaluated(render([report], texts()), tmp_path, PICTURE % script)
    assert events == [peak, peak + 1, peak - 1, peak, 40]
    count = device_of(path).events + 1
    assert whole == f"0,{count}"
    low, high = map(int, near.split(","))
    assert high - low == pytest.approx(count / 2, abs=1)


@in_browser
def test_a_block_is_chosen_by_key_and_found_by_line_address_and_size(tmp_path, looping):
    path, dumped = looping
    address, _ = max(live_blocks(dumped), key=lambda block: block[1])
    script = (
        "figure.memory.go(figure.memory.data.states-1);press(map,'ArrowRight');"
        "var chosen=figure.querySelector('.block').textContent,all=find('');"
        f"var one=find('{address:#x}'),huge=find('> 1000 GiB'),leaks=find('left behind');find('');"
        "var item=Array.from(figure.querySelectorAll('.legend button')).find(function(button){"
        "return /left behind/.test(button.textContent);});item.click();"
        "return [chosen,all,one,huge,leaks,figure.querySelector('.find output').textContent,"
        "item.getAttribute('aria-pressed')];"
    )
    chosen, all_, one, huge, leaks, without, pressed = evaluated(
        render([memory(path)], texts()), tmp_path, PICTURE % script
    )
    lowest = min(live_blocks(dumped))
    assert f"{lowest[0]:#x}" in chosen
    count = len(live_blocks(dumped))
    assert all_.startswith(f"{count:,} blocks")
    assert one.startswith("1 block,")
    assert huge.startswith("0 blocks")
    held = int(leaks.split()[0])
    assert 0 < held < count
    assert without.startswith(f"{count - held:,} blocks")
    assert pressed == "false"


@in_browser
@pytest.mark.parametrize("wide", [500, 800, 1400])
def test_it_fits_the_window_and_both_pictures_show_something(tmp_path, looping, wide):
    path, _ = looping
    script = (
        "return [document.documentElement.scrollWidth-innerWidth].concat([curve,map].map(function(canvas){"
        "var data=canvas.getContext('2d').getImageData(0,0,canvas.width,canvas.height).data,seen=new Set();"
        "for(var i=0;i<data.length;i+=4)if(data[i+3])seen.add(data[i]+','+data[i+1]+','+data[i+2]);"
        "return seen.size;}));"
    )
    over, *shades = evaluated(
        render([memory(path)], texts()), tmp_path, PICTURE % script, options=(f"--window-size={wide},1200",)
    )
    assert over <= 0
    assert min(shades) > 5


@in_browser
def test_the_map_draws_every_piece_in_its_whole_length(tmp_path):
    allocator = Allocator()
    # In 22 lines their ends are no whole bytes, and products of them are rounded up and down.
    for _ in range(34):
        allocator.malloc(24 * MIB, [frame("f", "/home/me/train.py", 3)])
    script = (
        "figure.memory.go(figure.memory.data.states-1);var all=figure.memory.drawn(),lost=[];"
        "all[0].forEach(function(one){var bytes=all[1][one[1][3][2]].bytes,sum=one[0].reduce(function(sum,part){"
        "return sum+part[2];},0);lost.push((one[1][1]-one[1][0])/bytes-sum);});return lost;"
    )
    path = write(tmp_path, dump(allocator))
    lost = evaluated(render([memory(path)], texts()), tmp_path, PICTURE % script)
    assert len(lost) == 34
    assert max(lost) < 0.01


@in_browser
def test_from_a_finding_to_its_blocks_and_back(tmp_path, looping):
    path, _ = looping
    script = (
        "var link=document.querySelector('a.place'),card=link.closest('.card').id;link.click();"
        "var box=figure.querySelector('.find input').value,back=figure.querySelector('.find a');"
        "var there=back.getAttribute('href')==='#'+card;"
        "return [link.dataset.line,box,document.activeElement===curve,!back.hidden,there];"
    )
    line, searched, *rest = evaluated(render([memory(path)], texts()), tmp_path, PICTURE % script)
    assert line == searched
    assert rest == [True, True, True]


@in_browser
def test_a_click_in_a_later_run_that_is_still_closed_arrives_at_its_blocks(tmp_path, looping):
    path, _ = looping
    html = render([memory(path), memory(path)], texts())
    script = (
        "var card=document.querySelector('details.card[id^=run1]');card.open=true;"
        "return new Promise(function(done){setTimeout(function(){var link=card.querySelector('a.place');link.click();"
        "setTimeout(function(){var part=document.getElementById(link.hash.slice(1));"
        "done([link.dataset.line,part.querySelector('.find input').value,"
        "document.activeElement===part.querySelector('canvas')]);},500);},50);});"
    )
    line, *found = evaluated(html, tmp_path, script)
    assert line
    assert found == [line, True]


def test_the_curve_without_a_script_stands_closed_below_the_picture_and_open_without_it(tmp_path, looping, monkeypatch):
    path, dumped = looping
    curve = re.compile(r'<(section|details) id="run-0-allocator_curve"')
    assert curve.findall(render([memory(path)], texts())) == ["details"]
    gone = next(event for event in dumped["device_traces"][0] if event["action"].startswith("segment_"))
    events = [*dumped["device_traces"][0], {**gone, "action": "segment_free"}]
    html = render([memory(write(tmp_path, {**dumped, "device_traces": [events]}))], texts())
    assert unpacked(html) == []
    assert curve.findall(html) == ["section"]


@pytest.mark.parametrize(
    ("name", "options"),
    [("churn", "--without empty_cache"), ("fragmentation", "--alloc-conf expandable_segments:True")],
)
def test_a_card_has_the_command_that_tries_its_remedy(name, options):
    path = SAMPLES / name / "snapshot.pickle.gz"
    html = render([memory(path)], texts())
    assert re.findall("<code>(traceanalyze whatif .*?)</code>", html) == [f"traceanalyze whatif {path} {options}"]


def test_a_dump_without_a_history_explains_no_curve(tmp_path):
    allocator = Allocator()
    allocator.malloc(MIB, [frame("f", "/home/me/train.py", 3)])
    html = render([memory(write(tmp_path, {**dump(allocator), "device_traces": [[]]}))], texts())
    assert "arrow keys choose a block" in html
    assert "Drag to move" not in html


@in_browser
def test_sizes_are_found_as_people_write_them(tmp_path, looping):
    path, dumped = looping
    largest = max(size for _, size in live_blocks(dumped))
    asked = (f">= {largest:,}", f"> {largest}", f"<={largest} b", "> 0 kib")
    script = f"figure.memory.go(figure.memory.data.states-1);return {list(asked)}.map(find);"
    found = [text.split()[0] for text in evaluated(render([memory(path)], texts()), tmp_path, PICTURE % script)]
    sizes = [size for _, size in live_blocks(dumped)]
    assert found == [str(each) for each in (sizes.count(largest), 0, len(sizes), len(sizes))]


@in_browser
def test_many_steps_are_no_wall_before_the_blocks(tmp_path):
    allocator = train(Loop(steps=600), Allocator())
    report = memory(write(tmp_path, dump(allocator)))
    html = render([report], texts())
    (found,) = unpacked(html)
    assert len(found["steps"]) == 600
    script = (
        "var pen=curve.getContext('2d'),row=pen.getImageData(62,60,curve.width-70,1).data,shades=new Set();"
        "for(var i=0;i<row.length;i+=4)shades.add(row[i]+','+row[i+1]+','+row[i+2]);return shades.size;"
    )
    assert evaluated(html, tmp_path, PICTURE % script) < 12


@in_browser
def test_what_an_oom_asked_for_is_as_long_as_so_much_memory_is_in_the_layout(tmp_path):
    path = SAMPLES / "out_of_memory" / "snapshot.pickle.gz"
    script = (
        "var pen=map.getContext('2d'),width=map.width,high=map.height,scale=figure.memory.drawn()[1][0],sum=0;"
        "var asked=figure.memory.data.marks.find(function(mark){return mark[0]==='moment_oom';})[3];"
        "var red=getComputedStyle(figure).getPropertyValue('--worse').trim();"
        "var data=pen.getImageData(0,0,width,high).data,parts=[1,3,5].map(function(at){"
        "return parseInt(red.slice(at,at+2),16);});"
        "for(var y=0;y<high;y++){var run=0;while(run<width&&parts.every(function(part,at){"
        "return data[4*(y*width+run)+at]===part;}))run++;"
        "if(run>20)sum+=run;}return [sum/4*scale.bytes,asked];"
    )
    drawn, asked = evaluated(render([memory(path)], texts()), tmp_path, PICTURE % script)
    assert drawn == pytest.approx(asked, rel=0.02)
