"""The memory samples: the product finds what their makers know, and they can be made again."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path

import pytest

import traceanalyze
from tests.make_samples.generate_memory import generate_memory

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces" / "memory"
FACTS = {path.parent.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in SAMPLES.glob("*/case.toml")}
LOUD = {"critical", "warn"}


@pytest.mark.parametrize("name", FACTS)
def test_peaks_are_those_of_the_simulation(name: str) -> None:
    tables = traceanalyze.memory(SAMPLES / name).tables
    moments = tables["memory_moments"]
    assert moments.column("requested_bytes")[0] == FACTS[name]["peak_requested"]
    assert max(moments.column("reserved_bytes")) == FACTS[name]["peak_reserved"]
    assert (
        dict(zip(moments.column("moment"), moments.column("block_bytes"), strict=True))["moment_dump"]
        == (FACTS[name]["dump_allocated"])
    )
    assert tables["memory_check"].column("reconciled") == (True,)


@pytest.mark.parametrize("name", [name for name in FACTS if "finding" in FACTS[name]])
def test_the_fault_is_the_first_finding_with_its_line(name: str) -> None:
    found = traceanalyze.memory(SAMPLES / name, capacity="1100MiB").tables["memory_findings"]
    first = dict(zip([column.key for column in found.columns], found.rows[0], strict=True))
    assert first["memory_finding"] == FACTS[name]["finding"]
    assert first["source_line"] == FACTS[name]["line"]
    assert first["amount_bytes"] == FACTS[name].get("amount", first["amount_bytes"])
    assert first["severity"] in LOUD


def test_the_healthy_loop_has_no_loud_finding() -> None:
    found = traceanalyze.memory(SAMPLES / "healthy").tables["memory_findings"]
    assert not LOUD & set(found.column("severity"))


def test_the_trace_tells_where_the_peak_was_and_what_the_calls_cost() -> None:
    known = FACTS["with_trace"]
    placed = traceanalyze.memory(SAMPLES / "with_trace").tables["memory_in_trace"]
    rows = [dict(zip([column.key for column in placed.columns], row, strict=True)) for row in placed.rows]
    peak = next(row for row in rows if row["moment"] == "moment_peak")
    assert (peak["step"], peak["phase"], peak["op"], peak["module"]) == (
        str(known["peak"]["step"]),
        f"phase_{known['peak']['phase']}",
        known["peak"]["operator"],
        known["peak"]["module"],
    )
    calls = [row for row in rows if row["moment"].startswith("release_")]
    assert sum(row["count"] for row in calls) == known["calls"]["count"]
    assert sum(row["idle_ns"] for row in calls) == known["calls"]["idle"]


def test_samples_are_what_the_script_writes(tmp_path: Path) -> None:
    made = generate_memory(tmp_path)
    kept = [SAMPLES / path.relative_to(tmp_path) for path in made]
    assert [str(path) for path, old in zip(made, kept, strict=True) if _content(path) != _content(old)] == []


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data
