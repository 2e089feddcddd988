"""The baseline file: small, whole, and safe to update by several programs at once."""

from __future__ import annotations

import json
import multiprocessing
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.every_byte import ODD, places
from tests.fuzz.every_byte import changed as changed_at
from tests.regression.make import run, runs
from traceanalyze.errors import InputError, UsageError
from traceanalyze.regression.baseline import (
    Baseline,
    added,
    changed,
    dump,
    is_baseline,
    level,
    load,
    read_baseline,
    write_baseline,
)
from traceanalyze.regression.explain import Amounts, Explain
from traceanalyze.regression.metrics import METRICS, Kind
from traceanalyze.regression.samples import Sample


def big(number):
    """A run whose times differ in every one of 10 steps and 8 ranks, with many operators and long kernel names."""
    times = tuple(123456000.0 + 37 * number + step for step in range(10))
    ranks = {rank: 123456780.0 + rank for rank in range(8)}
    metrics = {
        name: Sample(1234.0, (1234.0,) * 10) if metric.kind == Kind.EXACT else Sample(times[5], times, ranks)
        for name, metric in METRICS.items()
        if not metric.per_run
    }
    kernels = {f"void kernel_{index:03d}<{'float, ' * 20}>": Amounts(10**7 - index, 600) for index in range(50)}
    reasons = {
        ("compute", "operator", f"aten::some_operator_{index}"): Amounts(10**7 + index, 60) for index in range(50)
    }
    return replace(
        run(number, workload={f"aten::some_operator_{index}": index + number / 10 for index in range(200)}),
        metrics=metrics,
        usable_steps=10,
        explain=Explain(10, {"compute": 10**9, "idle": 10**8}, (), reasons, kernels),
        ranks=tuple(range(8)),
    )


def test_what_is_written_is_read_again():
    before = Baseline(
        (run(1, time=[300, 303, 299], counts={"kernel.count": 7}, parts={"compute": 2}),), "now", "1", "x"
    )
    after = load(dump(before), "file")
    assert after == before
    assert dump(after) == dump(before)


@given(st.lists(st.floats(0, 1e12).map(lambda value: round(value, 6)), min_size=1, max_size=6))
def test_samples_keep_every_step(steps):
    sample = Sample(steps[0], tuple(steps))
    before = Baseline((replace(run(1), metrics={"idle.time": sample}, usable_steps=len(steps)),))
    found = load(dump(before), "file").runs[0].metrics["idle.time"]
    assert found.per_step == tuple(steps) if len(set(steps)) > 1 else set(found.per_step) == {steps[0]}


def test_twenty_big_runs_take_at_most_100_kb():
    content = dump(Baseline(tuple(big(number) for number in range(20))))
    assert len(content) <= 100_000
    found = load(content, "file")
    assert len(found.runs) == 20
    assert all(len(each.metrics["step.time"].per_step) == 10 for each in found.runs)
    assert len(found.runs[-1].explain.kernels) > 0


def test_a_small_file_keeps_everything():
    found = load(dump(Baseline(tuple(run(n, time=300) for n in range(20)))), "file")
    assert all(each.explain.reasons for each in found.runs)


def test_one_run_a_line_and_sorted_keys():
    lines = dump(Baseline((run(1, time=300), run(2, time=301)))).decode().splitlines()
    written = [json.loads(line.rstrip(",")) for line in lines if line.startswith('{"accepted"')]
    assert [each["id"] for each in written] == ["id1", "id2"]
    document = json.loads("\n".join(lines))
    assert list(document) == sorted(document)
    assert document["schema_version"] == 1


def test_adding_refuses_what_is_in_it_and_keeps_the_newest():
    before, _ = added(Baseline(), runs(1, 2, 3))
    after, twice = added(before, [run(2), run(7)], keep=3)
    assert [each.id for each in twice] == ["id2"]
    assert [each.id for each in after.runs] == ["id1", "id2", "id7"]


def test_a_run_that_is_in_it_gets_what_a_budget_named_later():
    before = replace(Baseline(), runs=(run(1, time=300), run(2, time=301)))
    again = run(1, time=300, counts={"idle.time": 5}, label="new")
    after, twice = added(before, [again])
    assert ([each.id for each in after.runs], twice) == (["id1", "id2"], ())
    assert (after.runs[0].metrics, after.runs[0].label) == (again.metrics, "")
    assert added(after, [again])[1] == (again,)


def test_an_accepted_change_begins_a_new_level():
    old, new = runs(300, 301), [run(n, time=350, accepted="id5") for n in (5, 6)]
    assert [each.id for each in level((*old, *new, run(7, time=351)))] == ["id5", "id6", "id7"]
    assert level(old) == tuple(old)


def test_a_newer_schema_is_refused():
    content = dump(Baseline()).replace(b'"schema_version":1', b'"schema_version":2')
    with pytest.raises(InputError, match="newer version"):
        load(content, "file")


@given(st.data())
def test_damaged_files_are_refused_or_read_and_never_anything_else(data):
    content = bytearray(dump(Baseline((run(1, time=[300, 303, 299]),))))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(content[: data.draw(st.integers(1, len(content)))])
    with suppress(InputError):
        load(cut, "file")


@given(st.data())
def test_any_value_in_place_of_any_is_refused_or_can_be_written_again(data):
    document = json.loads(dump(Baseline((run(1, time=[300, 303, 299], label="new"),))))
    place, value = data.draw(st.sampled_from([*places(document)])), data.draw(st.sampled_from(ODD))
    with suppress(InputError):
        found = load(json.dumps(changed_at(document, place, value)).encode(), "file")
        load(dump(found), "file")


def test_baselines_are_told_by_their_content(tmp_path):
    path = tmp_path / "some.json"
    path.write_bytes(dump(Baseline()))
    assert is_baseline(str(path))
    path.write_bytes(b'{"schemaVersion":1,"traceEvents":[]}')
    assert not is_baseline(str(path))


def test_a_file_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_baseline(str(tmp_path / "none.json"))
    with pytest.raises(UsageError, match="cannot be written"):
        write_baseline(str(tmp_path / "no" / "folder.json"), Baseline())
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be locked"):
        changed(str(tmp_path / "file" / "base.json"), lambda before: before or Baseline())


def test_the_folder_of_a_new_baseline_is_made(tmp_path):
    place = tmp_path / "perf" / "base.json"
    changed(str(place), lambda before: before or Baseline())
    assert read_baseline(str(place)) == Baseline()


def test_a_failed_change_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "base.json"
    write_baseline(str(path), Baseline(runs(300)))
    before = path.read_bytes()

    def fails(_):
        raise UsageError("no")

    with pytest.raises(UsageError):
        changed(str(path), fails)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".part")] == []


def _add(path, number):
    for more in range(5):
        changed(path, lambda before, n=10 * number + more: added(before or Baseline(), [run(n, time=300)], keep=100)[0])


def test_concurrent_updates_lose_no_run(tmp_path):
    path = str(tmp_path / "base.json")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_add, args=(path, number)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert [each.name for each in tmp_path.iterdir()] == ["base.json"], "no lock is left"
    found = {each.id for each in read_baseline(path).runs}
    assert found == {f"id{10 * number + more}" for number in range(4) for more in range(5)}
