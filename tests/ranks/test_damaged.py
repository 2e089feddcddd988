"""Ranks whose files are damaged: the other ranks keep their numbers, names and findings, and the loss is said."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import traceanalyze
from tests.ranks.simulated import workload
from tests.simulate.simulate import simulate
from tests.simulate.workload import Fault, Model, Ranks
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import TODAY
from traceanalyze.errors import InputError
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.report.console import Style, render_all
from traceanalyze.report.console.tables import pick
from traceanalyze.report.view import View

RUN = replace(workload(Fault("straggler", 1.5), ranks=4), model=Model(), ranks=Ranks(count=4), steps=2)
"""The last rank is the slow one."""
ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "ac2g"}


def without_device(text: bytes) -> bytes:
    content = json.loads(text)
    content["traceEvents"] = [one for one in content["traceEvents"] if one.get("cat") not in ON_DEVICE]
    return json.dumps(content).encode()


def renamed(name):
    """Other names of the steps: none, or numbers that no other rank has."""
    return lambda text: re.sub(rb"ProfilerStep#(\d+)", lambda step: name.encode() + step[1], text)


DAMAGE = {
    "no steps": renamed("part"),
    "other steps": renamed("ProfilerStep#90"),
    "empty": lambda text: b"",
    "binary": lambda text: b"\0" * 100,
    "no event": lambda text: text[:200],
    "host only": lambda text: text[: text.index(b'"cat": "kernel"')],
    "half": lambda text: text[: len(text) * 8 // 10],
    "nearly whole": lambda text: text[: len(text) * 99 // 100],
    "no device": without_device,
}


def folder(path, change, name="rank{}.json", of=1):
    path.mkdir()
    for rank, schedule in enumerate(simulate(RUN)):
        text = write(schedule)
        text = change(text) if rank == of else text
        if text is not None:
            (path / name.format(rank)).write_bytes(text)
    return path


def told(report):
    return {table.key: table.rows for table in report.summary if table.key not in {"ranks", "files"}}


@pytest.mark.parametrize(("damage", "of"), [*((each, 1) for each in DAMAGE), ("half", 0)])
def test_other_ranks_are_judged_as_if_the_damaged_one_were_not_there(damage, of, tmp_path):
    missing = traceanalyze.analyze(folder(tmp_path / "missing", lambda _: None, of=of))
    found = traceanalyze.analyze(folder(tmp_path / "damaged", DAMAGE[damage], of=of))
    assert list(found.tables["rank_waits"].column("rank")) == [str(rank) for rank in range(4) if rank != of]
    assert told(found) == told(missing)
    named, expected = ([one.scope.ranks for one in each.run_findings] for each in (found, missing))
    assert named == expected
    assert found.ranks[found.focus[0]].rank == 3
    assert re.search(rf"rank{of}\.json|Rank {of} counts in no mean", "\n".join((*found.notes, found.verdict)))


@pytest.mark.parametrize("of", [0, 1, 3])
def test_every_command_says_which_rank_is_damaged(of, tmp_path):
    whole, cut = folder(tmp_path / "whole", lambda text: text), folder(tmp_path / "cut", DAMAGE["half"], of=of)
    said = f"in no comparison of ranks: {of}"
    found = traceanalyze.postmortem(cut)
    assert said in "\n".join(found.notes)
    assert (found.ranks[found.focus[0]].rank == 3) == (of != 3)
    found = traceanalyze.compare(whole, cut)
    assert said in "\n".join(found.notes)
    assert not found.sides[1].path.endswith(f"rank{of}.json")
    found = traceanalyze.whatif(cut, without=["communication"])
    assert said in "\n".join(found.notes)
    assert len(found.ranks) == 3
    notes = traceanalyze.annotate(cut, tmp_path / "drawn.json")
    assert said in "\n".join(notes)
    others = {0: "1-3", 1: "0,2-3", 3: "0-2"}[of]
    with pytest.raises(InputError, match=rf": rank {of} \(.*rank{of}\.json\); .*ranks={others}$"):
        traceanalyze.gate(cut, baseline=whole)


@pytest.mark.parametrize("damage", ["no device", "no steps", "half"])
def test_what_if_asks_the_others_of_a_rank_that_tells_nothing(damage, tmp_path):
    """One file without a device would leave nothing of the run to be replayed."""
    found, missing = (
        traceanalyze.whatif(folder(tmp_path / name, change), without=["dispatch"])
        for name, change in (("damaged", DAMAGE[damage]), ("missing", lambda _: None))
    )
    assert found.tables["whatif"].rows == missing.tables["whatif"].rows
    assert isinstance(found.tables["whatif"].column("gain_ns")[0], int)
    assert "Rank 1 counts in no mean" in found.verdict


@pytest.mark.parametrize("damage", [*(each for each in DAMAGE if each != "empty"), "another day"])
@pytest.mark.parametrize("of", [0, 2])
def test_the_gate_judges_the_others_of_a_damaged_rank_where_these_are_chosen(damage, of, tmp_path):
    change = {**DAMAGE, "another day": later(86_400)}[damage]
    whole, cut = folder(tmp_path / "whole", lambda text: text), folder(tmp_path / "cut", change, of=of)
    others = ",".join(str(rank) for rank in range(4) if rank != of)
    found = traceanalyze.gate(cut, baseline=whole, ranks=others)
    assert found.exit_code == 0


def later(seconds):
    """Recorded so much later, by the clock of its host."""
    return lambda text: re.sub(
        rb'"baseTimeNanoseconds": (\d+)',
        lambda old: b'"baseTimeNanoseconds": %d' % (int(old[1]) + seconds * 10**9),
        text,
    )


@pytest.mark.parametrize(("seconds", "apart"), [(5, False), (59, False), (61, True), (-86_400, True)])
def test_a_recording_of_another_time_is_of_another_run(seconds, apart, tmp_path):
    """Clocks may differ by seconds; the recordings are some ms long."""
    found = traceanalyze.analyze(folder(tmp_path / "run", later(seconds)))
    assert [*found.tables["rank_waits"].column("rank")] == ["0", *([] if apart else ["1"]), "2", "3"]
    notes = "\n".join(found.notes)
    assert ("recorded at another time, and in no comparison of ranks: 1" in notes) == apart
    assert ("some ranks do not overlap in time" in notes) != apart
    assert ("Rank 1 counts in no mean" in found.verdict) == apart


@pytest.mark.parametrize(("seconds", "last"), [(50, 150), (50, 100), (50, 161), (61, 183)])
def test_ranks_that_were_recorded_in_turn_are_of_one_run_as_long_as_one_begins_soon_after_the_other(
    seconds, last, tmp_path
):
    path = folder(tmp_path / "run", lambda text: text)
    for rank, begun in enumerate((0, seconds, 2 * seconds, last)):
        file = path / f"rank{rank}.json"
        file.write_bytes(later(begun)(file.read_bytes()))
    compared = [*traceanalyze.analyze(path).tables["rank_waits"].column("rank")]
    assert compared == ["0", "1", "2", *([] if (seconds, last) == (50, 161) else ["3"])]


@pytest.mark.parametrize("change", [lambda text: text.replace(b"baseTimeNanoseconds", b"baseTime"), later(86_400)])
def test_where_no_time_is_that_of_most_ranks_all_are_compared(change, tmp_path):
    """One file does not tell its time; or two are of one day, and two of the next."""
    path = folder(tmp_path / "run", change)
    if b"baseTimeNanoseconds" in (path / "rank1.json").read_bytes():
        (path / "rank2.json").write_bytes(change((path / "rank2.json").read_bytes()))
    found = traceanalyze.analyze(path)
    assert [*found.tables["rank_waits"].column("rank")] == ["0", "1", "2", "3"]
    assert "some ranks do not overlap in time" in "\n".join(found.notes)


@pytest.mark.parametrize(
    ("gone", "cut", "ranks", "told"),
    [
        ((), None, "0,3", "left out (1–2)"),
        ((), 1, None, "left out (1)"),
        ((2,), None, None, "not recorded (2)"),
        ((2,), 1, None, "left out (1), not recorded (2)"),
        ((2,), None, "0,3", "left out (1), not recorded (2)"),
    ],
)
def test_ranks_that_are_only_left_out_are_not_said_to_be_missing(gone, cut, ranks, told, tmp_path):
    path = folder(tmp_path / "run", DAMAGE["half"] if cut else lambda text: text)
    for rank in gone:
        (path / f"rank{rank}.json").unlink()
    found = traceanalyze.analyze(path, ranks=ranks)
    (note,) = found.tables["rank_waits"].notes
    assert {name: value for name, _, value in note.values}["absent"] == told
    for one in found.run_findings:
        assert one.rule != "RNK105" or f"ranks that were {told} " in one.sentence


def test_a_rank_without_collectives_is_left_out_and_not_the_one_that_waits_longest(tmp_path):
    """Of so many ranks a page shows those that wait longest."""
    for rank, schedule in enumerate(simulate(workload(ranks=14))):
        content = json.loads(write(schedule))
        if rank == 1:
            content["traceEvents"] = [one for one in content["traceEvents"] if "nccl" not in one["name"]]
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(content))
    report = traceanalyze.analyze(tmp_path)
    waits = report.tables["rank_waits"]
    waited = [0 if isinstance(each, NotMeasured) else each for each in waits.column("wait_ns")]
    assert isinstance(waits.column("wait_ns")[1], NotMeasured)
    assert [row[0] for row in pick(waits, 5, everything=False).rows] == [
        waits.column("rank")[at] for at in sorted(range(14), key=lambda at: -waited[at])[:5]
    ]
    assert "rank1.json" in render_all([report], texts(), Style(width=80), View())
    (note,) = waits.notes
    assert {name: value for name, _, value in note.values}["absent"] == "left out (1)"


def test_one_whole_rank_is_compared_with_none(tmp_path):
    path = folder(tmp_path / "cut", DAMAGE["half"])
    for rank in (0, 2):
        (path / f"rank{rank}.json").unlink()
    found = traceanalyze.analyze(path)
    assert "rank_waits" not in found.tables
    assert [rank.rank for rank in found.ranks] == [1, 3]
    assert found.ranks[found.focus[0]].rank == 3
    assert "in no comparison of ranks: 1" in "\n".join(found.notes)
    assert traceanalyze.postmortem(path).ranks


def unnamed(text, rank):
    """Of a file that does not tell its rank, written by a process of its own."""
    return text.replace(b'"distributedInfo"', b'"other"').replace(b"4242", str(1000 + rank).encode())


@pytest.mark.parametrize("name", ["trace_{}.json", "host_{}.1767225600000.pt.trace.json"])
@pytest.mark.parametrize("change", [lambda _: b"", lambda text: text[:200]])
def test_ranks_that_files_are_numbered_by_are_those_of_all_files(name, change, tmp_path):
    for rank, schedule in enumerate(simulate(RUN)):
        text = unnamed(write(schedule), rank)
        (tmp_path / name.format(1000 + rank if "host" in name else rank)).write_bytes(
            change(text) if rank == 1 else text
        )
    assert traceanalyze.load(tmp_path).ranks == (0, 2, 3)


def test_a_cut_file_that_lost_the_size_of_its_world_stays_with_its_run(tmp_path):
    for rank, schedule in enumerate(simulate(RUN)):
        text = write(schedule, replace(TODAY, header_first=False))
        (tmp_path / f"rank{rank}.json").write_bytes(text[: len(text) // 2] if rank == 1 else text)
    assert traceanalyze.load(tmp_path).ranks == (0, 1, 2, 3)


def test_ranks_of_which_nothing_was_recorded_are_neither_equally_fast_nor_fit_for_the_gate(tmp_path):
    def frames_only(text):
        content = json.loads(text)
        content["traceEvents"] = [one | {"cat": "python_function"} for one in content["traceEvents"]]
        return json.dumps(content).encode()

    for rank, schedule in enumerate(simulate(RUN)[:2]):
        (tmp_path / f"rank{rank}.json").write_bytes(frames_only(write(schedule)))
    found = traceanalyze.analyze(tmp_path)
    assert found.verdict.startswith("There is nothing to analyse")
    with pytest.raises(InputError, match="no usable step: no event with a duration is of a known category"):
        traceanalyze.gate(tmp_path)
