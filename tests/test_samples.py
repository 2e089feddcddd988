"""The sample traces: the product finds what their makers know, and the generated ones can be made again."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import traceanalyze
from tests.make_samples import generate_gpu, generate_npu
from tests.simulate.compare import idle_by_step
from tests.simulate.truth.summary import total
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.analyses.idle.host_state import HostSplit
from traceanalyze.analyses.options import Options
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Mode

if TYPE_CHECKING:
    from traceanalyze.analyses.results import RankAnalysis

SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"
FACTS = {path.parent.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in SAMPLES.glob("*/case.toml")}
TRACES = [(name, facts) for name, case in FACTS.items() for facts in case["trace"]]
GENERATED = [pair for pair in TRACES if FACTS[pair[0]]["made"] == "generated"]
RECORDED = [pair for pair in TRACES if FACTS[pair[0]]["made"] == "recorded"]


def _ids(pairs: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [f"{name}-{facts['file']}" for name, facts in pairs]


def _analysis(name: str, file: str) -> RankAnalysis:
    (trace,) = traceanalyze.load(SAMPLES / name / file).traces
    return analyze_trace(trace, Options())


def test_there_are_samples_of_both_kinds() -> None:
    assert {case["made"] for case in FACTS.values()} == {"generated", "recorded"}


@pytest.mark.parametrize(("name", "facts"), GENERATED, ids=_ids(GENERATED))
def test_generated_sample(name: str, facts: dict[str, Any]) -> None:
    analysis = _analysis(name, facts["file"])
    part = analysis.partitions[0]
    assert analysis.trace.origin.rank == facts.get("rank", analysis.trace.origin.rank)
    assert analysis.steps.time.tolist() == facts["steps"]
    assert {key: int(getattr(part, key).sum()) for key in facts["parts"]} == facts["parts"]
    assert total(tuple(idle_by_step(analysis))) == facts["idle"]
    table = analysis.tables["sync_points"]
    members = ("op", "frame", "call", "count", "blocked_ns", "idle_caused_ns")
    rows = zip(*map(table.column, members), strict=True)
    found = [
        {key.removesuffix("_ns"): value for key, value in zip(members, row, strict=True) if value is not None}
        for row in rows
        if not isinstance(row[-1], NotMeasured)
    ]
    known = sorted(facts.get("sync", []), key=lambda site: -site["idle_caused"])
    assert found == known


def test_every_kind_of_bottleneck_has_a_sample() -> None:
    resources = {name: case["critical_resource"] for name, case in FACTS.items() if case["made"] == "generated"}
    assert resources["gpu_data_loading"] == resources["gpu_2021_layout"] == "loader"
    assert resources["gpu_launch_bound"] == "host"
    assert resources["gpu_two_ranks"] == "comm"
    assert resources["gpu_healthy"] == "device"


def test_the_sync_of_the_sample_costs_what_the_steps_lose() -> None:
    """Without `.item()` the steps are shorter by what its sync points cost, up to the noise of the rest."""
    (facts,) = FACTS["gpu_sync"]["trace"]
    (sync,) = facts["sync"]
    saved = sum(facts["steps"]) - facts["without"]["item_sync"]
    assert saved == pytest.approx(sync["idle_caused"], rel=0.02)


@pytest.mark.parametrize(("name", "facts"), RECORDED, ids=_ids(RECORDED))
def test_recorded_sample(name: str, facts: dict[str, Any]) -> None:
    analysis = _analysis(name, facts["file"])
    assert analysis.mode == Mode.HOST_ONLY
    assert len(analysis.steps) == facts["steps"]
    assert float(analysis.steps.time.mean()) == pytest.approx(facts["step_mean_measured"], rel=0.15)
    assert isinstance(analysis.host, HostSplit)
    assert int(analysis.host.data_loading.sum()) >= facts["data_loading_at_least"]


def test_both_ranks_are_one_run() -> None:
    assert traceanalyze.load(SAMPLES / "gpu_two_ranks").ranks == (0, 1)


def test_the_pair_differs_by_what_was_put_in() -> None:
    """Parts and causes of the NPU are those of the GPU and what each difference adds; none adds to another's part."""
    gpu, npu = (_analysis("gpu_npu_pair", facts["file"]) for facts in FACTS["gpu_npu_pair"]["trace"])
    before, after = _by_part(gpu), _by_part(npu)
    for difference in FACTS["gpu_npu_pair"]["difference"]:
        for part, time in difference["parts"].items():
            before[part] = before.get(part, 0) + time
    assert {part: time for part, time in before.items() if time} == after
    sums = {each["name"]: sum(each["parts"].values()) for each in FACTS["gpu_npu_pair"]["difference"]}
    whole = sum(after.values()) - sum(_by_part(gpu).values())
    assert sum(sums.values()) == whole
    assert sums["npu"] < 0.01 * whole
    assert list(sums)[1:] == sorted(list(sums)[1:], key=lambda name: -sums[name])


def _by_part(analysis: RankAnalysis) -> dict[str, int]:
    parts = {key: int(getattr(analysis.partitions[0], key).sum()) for key in ("compute", "comm_exposed", "mem_exposed")}
    return {part: time for part, time in (parts | total(tuple(idle_by_step(analysis)))).items() if time}


def test_generated_samples_are_what_the_script_writes(tmp_path: Path) -> None:
    made = [*generate_gpu.generate(tmp_path), *generate_npu.generate(tmp_path)]
    kept = [SAMPLES / path.relative_to(tmp_path) for path in made]
    assert [str(path) for path, old in zip(made, kept, strict=True) if _content(path) != _content(old)] == []
    for path in made:
        if path.suffix == ".gz":
            assert path.read_bytes() == generate_gpu.compress(_content(path)), "a name or a time is in it"
            # No flags, hence no name; no time.
            assert path.read_bytes()[3:8] == bytes(5)


def _content(path: Path) -> bytes:
    """What is in the file: another zlib may pack the same text differently."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data
