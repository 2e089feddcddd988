"""A cache gives what analysing would give, costs what changed, and never fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.builder import TraceBuilder
from tests.test_plugins import installed
from traceanalyze import plugins
from traceanalyze.cli.main import main
from traceanalyze.locales import texts
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline import Choices, reports, results
from traceanalyze.pipeline.cache import Cache, default_folder, digest_of, key_of, open_cache
from traceanalyze.pipeline.results import Work
from traceanalyze.readers.source import Source
from traceanalyze.report.json import render

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def write(path, rank, late=0, steps=3):
    """A rank of a small run."""
    b = TraceBuilder()
    b.header["distributedInfo"] = {"rank": rank, "world_size": 8}
    for step in range(steps):
        at = step * 1000
        b.step(step, at, 900)
        b.launch(at + 10, 5, at + 20, 300 + late)
    b.write(path)


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "run"
    found.mkdir()
    for rank in range(3):
        write(found / f"rank{rank}.json", rank)
    return found


@pytest.fixture
def analysed(monkeypatch):
    """Names of the recordings that were analysed, in this process."""
    found, made = [], results.made
    monkeypatch.setattr(
        results, "made", lambda job, *rest: found.append(Path(job.source.name).name) or made(job, *rest)
    )
    return found


AS_USUAL = Choices()


@pytest.fixture
def run(folder, tmp_path, analysed):
    """Analyse the folder with a cache: the report as JSON, and what was analysed for it."""

    def made(choices=AS_USUAL, cache=str(tmp_path / "cache"), **more):
        del analysed[:]
        found = reports([str(folder)], choices, work=Work(cache=cache, **more))
        return render(found, texts()), sorted(analysed)

    return made


ALL = ["rank0.json", "rank1.json", "rank2.json"]


def test_a_second_run_analyses_nothing_and_says_the_same(run):
    first, second, none = run(), run(), run(cache=None)
    assert (first[1], second[1], none[1]) == (ALL, [], ALL)
    assert first[0] == second[0] == none[0]


def test_one_rank_more_costs_one_rank(run, folder):
    run()
    write(folder / "rank3.json", 3)
    assert run()[1] == ["rank3.json"]
    assert run()[0] == run(cache=None)[0]


def test_a_recording_by_itself_is_not_kept(folder, analysed, tmp_path):
    for _ in range(2):
        reports([str(folder / "rank0.json")], Choices(), work=Work(cache=str(tmp_path / "cache")))
    assert analysed == ["rank0.json"] * 2
    assert not (tmp_path / "cache").exists()


def test_what_changed_is_analysed_again_even_if_size_and_time_are_the_same(run, folder):
    run()
    path = folder / "rank1.json"
    before = path.stat()
    write(path, 1, late=100)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    text, again = run()
    assert again == ["rank1.json"]
    assert text == run(cache=None)[0]


CHOICES = [
    Choices(steps="1:"),
    Choices(step_marker="aten"),
    Choices(data_regex="x"),
    Choices(comm_regex="x"),
    Choices(not_comm_regex="x"),
    Choices(categories=("a=kernel",)),
    Choices(select=("SYN",)),
    Choices(ignore=("SYN",)),
    Choices(streams="7"),
    Choices(name_regex="k"),
    Choices(time="0ms-2ms"),
    Choices(detail=Detail.QUIET),
    Choices(detail=Detail.NORMAL),
]


def test_other_choices_have_other_results(run):
    run()
    assert {*Choices._fields} - {"ranks", "device_peaks"} == {
        name for each in CHOICES for name in each._fields if getattr(each, name) != getattr(Choices(), name)
    }
    for each in CHOICES:
        assert run(each)[1] == ALL, each
        assert run(each)[1] == []
    assert run()[1] == []


def test_the_ranks_that_are_shown_change_no_result(run):
    run()
    found, again = run(Choices(ranks="1,2"))
    assert again == []
    assert found == run(Choices(ranks="1,2"), None)[0]


def test_peaks_and_options_of_rules_are_known_by_what_they_say(run, tmp_path, monkeypatch):
    peaks = tmp_path / "peaks.toml"
    text = '[[device]]\npattern = "x"\nname = "X"\nbandwidth_gbs = {}\ntflops = {{fp32 = 1}}\n'
    peaks.write_text(text.format(100))
    assert run(Choices(device_peaks=peaks))[1] == ALL
    assert run(Choices(device_peaks=peaks))[1] == []
    peaks.write_text(text.format(200))
    assert run(Choices(device_peaks=peaks))[1] == ALL
    monkeypatch.chdir(tmp_path)
    run()
    (tmp_path / "traceanalyze.toml").write_text("[rules]\nignore = ['SYN']\n")
    assert run()[1] == ALL


def test_a_plug_in_may_change_anything_so_nothing_is_kept(run, tmp_path):
    with installed(tmp_path, {plugins.RULES: {"acme": "acme_none"}}, {"acme_none": ""}):
        assert [run()[1], run()[1]] == [ALL, ALL]


@pytest.mark.parametrize("damage", [lambda _: b"", lambda part: part[: len(part) // 2], lambda part: bytes(len(part))])
def test_a_damaged_part_is_made_again(run, tmp_path, damage):
    first = run()[0]
    for path in (tmp_path / "cache").glob("*.part"):
        path.write_bytes(damage(path.read_bytes()))
    assert run() == (first, ALL)
    assert run() == (first, [])


def test_a_run_that_was_killed_goes_on_where_it_was(run, monkeypatch, analysed):
    made = results.made

    def killed(job, *rest):
        if job.source.name.endswith("rank2.json"):
            raise KeyboardInterrupt
        return made(job, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(results, "made", killed)
        with pytest.raises(KeyboardInterrupt):
            run()
    assert run()[1] == ["rank2.json"]


def test_what_cannot_be_read_is_tried_again(run, folder):
    (folder / "rank1.json").write_text('{"traceEvents": [')
    text, first = run()
    assert first == ALL
    assert run() == (text, ["rank1.json"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_no_cache(run, tmp_path):
    (tmp_path / "cache").mkdir(mode=0o500)
    told = []
    assert run(tell=told.append)[1] == run(tell=told.append)[1] == ALL
    assert "cannot be written" in told[0]


@pytest.mark.parametrize("place", ["/dev/null/x", "\0", "a_file/below"])
def test_a_folder_that_cannot_be_is_no_cache(run, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a_file").write_text("")
    told = []
    assert run(cache=place, tell=told.append)[1] == run(cache=place)[1] == ALL
    assert len(told) == 1
    assert told[0].startswith("no cache: ")


def test_a_full_disk_is_no_error(run, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)
    assert run()[1] == run()[1] == ALL


def test_the_users_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "traceanalyze"
    monkeypatch.setenv("HOME", "/home/x")
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert default_folder() == Path("/home/x/.cache/traceanalyze")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert open_cache("") == "no cache: no home"


def test_the_oldest_used_go_first(tmp_path):
    cache = Cache(tmp_path, most=1000)
    for at, key in enumerate("abcd"):
        cache.keep(key, bytes(300))
        os.utime(tmp_path / f"{key}.part", (at, at))
    assert cache.find("a") == bytes(300)
    cache.trim()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.part", "c.part", "d.part"]
    (tmp_path / ".x.part").write_bytes(b"of a run that was killed")
    os.utime(tmp_path / ".x.part", (0, 0))
    (tmp_path / ".y.part").write_bytes(b"being written")
    cache.trim()
    assert (
        sorted(path.name for path in tmp_path.iterdir()) == [".y.part", "a.part", "d.part"]
        or (tmp_path / ".y.part").exists()
    )
    assert not (tmp_path / ".x.part").exists()


def test_what_may_not_be_deleted_stays(tmp_path, monkeypatch):
    cache = Cache(tmp_path, most=0)
    cache.keep("a", b"of another user")
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(PermissionError()))
    cache.trim()
    assert cache.find("a") == b"of another user"


_BUSY = """
import sys
from pathlib import Path
from traceanalyze.pipeline.cache import Cache

cache = Cache(Path(sys.argv[1]), most=20_000)
for number in range(150):
    cache.keep(f"{sys.argv[2]}{number}", bytes(1000))
    for other in "ab":
        assert cache.find(f"{other}{number}") in {None, bytes(1000)}
    cache.trim()
"""


def test_processes_that_write_at_the_same_time_keep_to_the_bound(tmp_path):
    command = [sys.executable, "-c", _BUSY, str(tmp_path)]
    several = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in "ab"]
    assert [(one.communicate()[1], one.returncode) for one in several] == [(b"", 0)] * 2
    Cache(tmp_path, most=20_000).trim()
    names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == 20
    assert names & {"a149.part", "b149.part"}


@pytest.mark.parametrize("parts", [0, 1, 2])
def test_a_cache_of_little_room_keeps_the_last_and_changes_no_result(run, tmp_path, monkeypatch, parts):
    expected = run(cache=str(tmp_path / "large"))[0]
    room = parts * max(path.stat().st_size for path in (tmp_path / "large").iterdir()) + 10
    monkeypatch.setattr(
        "traceanalyze.pipeline.cache.open_cache", lambda folder, real=open_cache: real(folder)._replace(most=room)
    )
    for _ in range(2):
        found, again = run()
        assert (found, len(again) >= 3 - parts) == (expected, True)
        assert len([*(tmp_path / "cache").iterdir()]) == parts


def test_runs_at_the_same_time_share_a_cache(folder, tmp_path):
    found, work = [], Work(cache=str(tmp_path / "cache"))
    several = [
        threading.Thread(target=lambda: found.append(render(reports([str(folder)], Choices(), work=work), texts())))
        for _ in range(4)
    ]
    for each in several:
        each.start()
    for each in several:
        each.join()
    assert len(found) == 4
    assert len({*found}) == 1


def test_processes_keep_what_they_made(folder, tmp_path, run, monkeypatch):
    monkeypatch.setattr(results, "workers_for", lambda *_: 2)
    first = run()[0]
    monkeypatch.setattr(results, "workers_for", lambda *_: 1)
    assert run() == (first, [])


def test_every_file_of_a_profile_counts(tmp_path):
    profile = tmp_path / "ascend_pt"
    shutil.copytree(SAMPLES / "npu_training", profile)
    main = next(profile.rglob("*.json"))
    source, about = Source(str(main), folder=str(profile)), digest_of(())
    keys = {key_of(source, about)}
    for path in sorted(path for path in profile.rglob("*") if path.is_file()):
        path.write_bytes(path.read_bytes() + b" ")
        keys.add(key_of(source, about))
    (profile / "more.csv").write_text("")
    keys.add(key_of(source, about))
    assert len(keys) == 2 + sum(path.is_file() and path.name != "more.csv" for path in profile.rglob("*"))
    assert None not in keys
    assert key_of(Source("-"), about) is None
    assert key_of(Source(str(tmp_path / "gone")), about) is None


@pytest.mark.parametrize(
    ("main", "folder", "other"),
    [
        ("run/ASCEND_PROFILER_OUTPUT/trace_view.json", "run/ASCEND_PROFILER_OUTPUT", "run/profiler_metadata.json"),
        ("run/ASCEND_PROFILER_OUTPUT/trace_view.json", "", "run/profiler_metadata.json"),
        ("run/trace_view.json.gz", "", "run/profiler_info_0.json"),
        ("run/renamed.json", "", "run/kernel_details.csv"),
        ("run/msmonitor_1_2_0.db", "", "profiler_info.json"),
        ("run/timeline/msprof_0_1.json", "run/timeline", "run/summary/op_summary_0_1.csv"),
        ("run/ASCEND_PROFILER_OUTPUT/trace_view.json", "run", "elsewhere/kernel_details.csv"),
    ],
)
def test_files_that_lie_around_a_profile_count(tmp_path, main, folder, other):
    for path in (tmp_path / main, tmp_path / other):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    if other.startswith("elsewhere"):
        (tmp_path / "run" / "linked").symlink_to(tmp_path / "elsewhere")
    source, about = Source(str(tmp_path / main), folder=str(tmp_path / folder) if folder else ""), digest_of(())
    before = key_of(source, about)
    assert before == key_of(source, about) is not None
    (tmp_path / other).write_text("{ }")
    assert key_of(source, about) != before


def test_a_folder_elsewhere_does_not_tell_that_its_files_changed(monkeypatch):
    # That of the folder itself stays when a file in it is written anew.
    monkeypatch.setattr("traceanalyze.pipeline.cache.stamp", lambda _: ("0", "mtime=1"))
    assert key_of(Source("sftp://host/a_ascend_pt", folder="sftp://host/a_ascend_pt", size=9), digest_of(())) is None


def test_the_command_line_keeps_results_unless_it_is_told_not_to(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))

    def shown(*options):
        monkeypatch.setattr(sys, "argv", ["traceanalyze", *options, str(folder)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr()

    without = shown("--no-cache")
    assert not (tmp_path / "own").exists()
    assert shown() == shown() == without
    assert len([*(tmp_path / "own" / "traceanalyze").iterdir()]) == 3
    assert shown("--cache", str(tmp_path / "other")) == without
    assert len([*(tmp_path / "other").iterdir()]) == 3
    # Whoever names a folder is told that it is of no use, on one line; of that of the user only whoever wants all.
    assert shown("-q", "--cache", "/dev/null/x").err.count("no cache") == 1
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/x")
    assert "no cache" not in shown().err
    # Many ranks are looked for twice: all of them, then those that are worth a full analysis.
    monkeypatch.setattr(results, "MANY", 1)
    assert shown("-v").err.count("no cache") == 1


def test_commands_that_need_no_cache_do_not_load_it():
    script = (
        "import sys; from traceanalyze.pipeline import reports, Choices; "
        f"reports([{str(SAMPLES / 'gpu_healthy')!r}], Choices()); "
        "print({'traceanalyze.pipeline.cache', 'traceanalyze.pipeline.parts', 'zipfile'} & {*sys.modules})"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"


def test_summaries_of_many_ranks_serve_every_report(run, monkeypatch):
    monkeypatch.setattr(results, "MANY", 2)
    monkeypatch.setattr("traceanalyze.ranks.overview.IN_FULL", 1)
    assert len(run(Choices(detail=Detail.NORMAL))[1]) == 4, "three summaries, one rank in full"
    assert len(run()[1]) == 1
    assert run(Choices(detail=Detail.NORMAL))[1] == run()[1] == []
