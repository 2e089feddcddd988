"""The JSON Schema in the package: of the tables that there are, and true of every sample."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import extend

import traceanalyze
from tests import schema
from traceanalyze.locales import texts
from traceanalyze.report.json import render

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
NAMES = sorted(
    {str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("*.json.gz") if "_ascend_pt" not in str(path)}
    | {str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*_ascend_pt")}
)
SNAPSHOTS = sorted(path.name for path in (SAMPLES / "memory").iterdir() if path.is_dir())


def properties(validator, members, instance, whole):
    """As the keyword is meant; of a member that has a type alone, and is of it, nothing more is asked."""
    if validator.is_type(instance, "object"):
        members = {
            key: each
            for key, each in members.items()
            if key in instance
            and not (each.keys() <= {"type", "description", "unit"} and of_a_type(validator, each, instance[key]))
        }
        yield from Draft202012Validator.VALIDATORS["properties"](validator, members, instance, whole)


def of_a_type(validator, member, value):
    names = member.get("type", [])
    return any(validator.is_type(value, name) for name in ([names] if isinstance(names, str) else names))


@cache
def validator():
    kind = extend(Draft202012Validator, {"properties": properties})
    return kind(json.loads(schema.FILE.read_text(encoding="utf-8")))


@cache
def analysed(name):
    return traceanalyze.analyze(SAMPLES / name)


def hold(*reports, language="en"):
    document = json.loads(render(reports, texts(language)))
    assert [f"{error.json_path}: {error.message[:200]}" for error in validator().iter_errors(document)] == []
    return document


def test_it_is_that_of_the_declared_tables():
    assert schema.FILE.read_text(encoding="utf-8") == schema.text(), "python -m tests.schema"
    Draft202012Validator.check_schema(schema.schema())


@pytest.mark.parametrize("name", NAMES)
def test_analyses_hold_it(name):
    hold(analysed(name))


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_memory_reports_hold_it(name):
    hold(traceanalyze.memory(SAMPLES / "memory" / name))


@pytest.mark.parametrize("name", ["gpu_two_ranks", "npu_training", "memory/with_trace"])
def test_post_mortems_hold_it(name):
    hold(traceanalyze.postmortem(SAMPLES / name))


@pytest.mark.parametrize("name", ["gpu_two_ranks", "npu_training", "cpu_training"])
def test_what_would_change_holds_it(name):
    hold(traceanalyze.whatif(SAMPLES / name, without=["data_loading", "DAT101", "compute"], faster={"dispatch": 2}))


@pytest.mark.parametrize("base", ["gpu_healthy", "npu_training", "cpu_training"])
@pytest.mark.parametrize("candidate", ["gpu_sync", "gpu_two_ranks", "cpu_slow_loader"])
def test_comparisons_hold_it(base, candidate):
    document = hold(traceanalyze.compare(SAMPLES / base, SAMPLES / candidate), language="zh")
    assert document["command"] == "compare"


def test_what_to_do_on_an_npu_is_sentences():
    document = hold(traceanalyze.compare(SAMPLES / "gpu_npu_pair/gpu", SAMPLES / "gpu_npu_pair/npu"))
    [report] = document["reports"]
    said = [row["to_do"] for row in report["tables"]["migration"]["rows"]]
    assert said[0] == report["remarks"]["advice"][0]["values"]["to_do"]
    assert said[0][0]["text"].startswith("look at num_workers")


@pytest.mark.parametrize("candidate", ["gpu_healthy", "gpu_data_loading", "gpu_sync"])
def test_gates_hold_it_and_keep_their_former_keys(candidate):
    document = hold(traceanalyze.gate(SAMPLES / candidate, SAMPLES / "gpu_healthy"))
    former = {"schema_version", "verdict", "exit_code", "metrics", "why", "baseline", "candidate", "findings", "notes"}
    assert former <= set(document)
    assert document["verdict"] == document["reports"][0]["answer"]


@pytest.mark.parametrize(
    "broken",
    [
        lambda found: found["reports"][0]["ranks"][0]["tables"]["split"]["rows"][0].update(mean_ns=1.5),
        lambda found: found["reports"][0]["ranks"][0]["tables"]["split"]["rows"][0].update(unheard_of=1),
        lambda found: found["reports"][0]["ranks"][0]["tables"].update(unheard_of={"rows": []}),
        lambda found: found["reports"][0].pop("verdict"),
        lambda found: found.update(schema="traceanalyze.report/1"),
    ],
)
def test_what_is_not_in_it_is_refused(broken):
    document = json.loads(render([analysed("gpu_healthy")], texts()))
    assert validator().is_valid(document)
    broken(document)
    assert not validator().is_valid(document)
