"""Damaged traces: numbers stay as they are, or the report says what is wrong, or one line does; nothing fails."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import cache

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.fuzz.mutations import damaged
from tests.simulate.simulate import simulate
from tests.simulate.workload import Model, Ranks, Recording, Workload
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import AMD, PAIRS, TODAY, XPU, YEAR_2021
from traceanalyze.errors import InputError
from traceanalyze.model.vocabulary import Level

WEEKS = 6 * 10**15
LAYOUTS = (*(replace(one, since=WEEKS) for one in (TODAY, AMD, XPU, PAIRS)), YEAR_2021)
RUN = Workload(
    model=Model(layers=1, hidden=256, heads=4, sequence=128, batch=4, vocabulary=1024),
    ranks=Ranks(2),
    recording=Recording(stacks=False),
    steps=4,
    tick=1000,
)
TABLES = ("totals", "steps", "split", "operators", "kernels", "copies", "runtime_calls", "sync_points", "idle_causes")
SEEDS = int(os.environ.get("MUTATIONS", "40"))
"""Of 1,000 one was not told: 470, `"dur": 9.000` without two bytes is a 0 with more zeros than JSON allows."""


@cache
def text_of(at: int) -> bytes:
    return write(simulate(RUN)[0], LAYOUTS[at])


def told(text, path):
    path.write_bytes(text)
    found = traceanalyze.analyze(path)
    (rank,) = found.ranks
    said = {str(each.message) for each in rank.checks if each.level >= Level.WARN} | set(found.notes)
    return {key: found.tables[key].rows for key in TABLES if key in found.tables}, said


@pytest.mark.parametrize("seed", range(SEEDS))
def test_damage_is_harmless_or_told(seed, tmp_path):
    whole = text_of(seed % len(LAYOUTS))
    what, text = damaged(whole, seed)
    before, said_before = told(whole, tmp_path / "trace.json")
    try:
        after, said = told(text, tmp_path / "trace.json")
    except InputError:
        return
    assert after == before or said - said_before or (what.startswith("text") and is_json(text)), what


def is_json(text):
    """Damage that leaves a trace of other numbers: nobody can know."""
    try:
        # A number with zeros before it is read as one.
        plain = re.sub(r'(": )0+(?=[0-9])', r"\1", text.decode("utf-8", "replace"))
        return bool(json.loads(plain, strict=False))
    except ValueError:
        return False


@pytest.mark.parametrize(
    "name",
    [
        "ProfilerStep#7",
        "execute_context_7(7)_generation_7(7)",
        "execute_new_7_cached_7",
        "step[DECODE bs=7]",
        "step[EXTEND bs=7 toks=7]",
        "Torch-Compiled Region: 7/7",
        "void kernel<lambda(int)#7>(int)",
        "_ZN7kernelE",
        "DDP.forward 7",
    ],
)
def test_a_number_in_a_name_may_be_longer_than_python_reads(name, tmp_path):
    b = TraceBuilder()
    for step in range(3):
        b.step(step, 1000 * step, 1000)
        for cat in ("user_annotation", "cpu_op"):
            b.event(cat, name.replace("7", "9" * 5000), 1000 * step + 10, 500)
        b.launch(1000 * step + 20, 1, 1000 * step + 100, 50, name=name.replace("7", "9" * 5000))
    told(b.text().encode(), tmp_path / "trace.json")
