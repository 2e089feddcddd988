"""Damage every byte of a small file of every kind that a command reads: `python -m tests.fuzz.every_byte [KIND …]`.

It becomes others, is lost, or is the last; each value of a JSON document becomes others. Whatever the file holds then,
the command reads it, or says in one line why not. A KIND is the begin of its name: `json`, `store`.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import gzip
import io
import json
import os
import pickle
import random
import sys
import tempfile
import time
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backports import zstd

from tests.builder import TraceBuilder
from tests.fuzz.snapshots import corpus as snapshot_contents
from tests.incident import test_devices, test_flight, test_stacks, test_tensorboard
from tests.incident.test_messages import CASES
from tests.regression.test_budget import SPECIFIED
from tests.simulate.simulate import simulate
from tests.simulate.two_npus import TWO_NPUS
from tests.simulate.writers.ascend import write_ascend
from traceanalyze.cli.main import main as traceanalyze

if TYPE_CHECKING:
    from collections.abc import Iterator

Words = list[str]
ODD: tuple[Any, ...] = (None, True, 0, -1, 2**63, 10**400, 1.5, 1e308, float("nan"), float("-inf"), "", "x", "9" * 5000)
ODD += ("ü\ud800", "\0", [], {}, [[]], [1], {"a": 1})
OTHER = (
    b"",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"9" * 6000,
    b'{"a":' + b"9" * 6000 + b"}",
    bytes(5000),
    b"null",
    b"[1]",
)
OTHER += ('{"a":1}'.encode("utf-16"), b'{"\xe9":1}', b'"x"', b'{"a":1e999}', b"a = " + b"[" * 3000, b"x" * 100_000)
"""What a file may hold instead."""
BUDGET = (
    SPECIFIED
    + b"""[rules]
ignore = ["HST101"]
[analyze]
top = 3
"""
)
PEAKS = b"""[[device]]
name = "mine"
pattern = ".*"
tflops = {fp32 = 1.5, bf16 = 900}
bandwidth_gbs = 4e3
"""


def trace(extra: int = 0) -> bytes:
    """Two steps of a device and its host."""
    made = TraceBuilder()
    for step in range(2):
        made.step(step, step * 1000, 1000)
        made.op("aten::mm", step * 1000, 50)
        made.launch(step * 1000 + 5, 10, step * 1000 + 12, 500 + extra)
    return json.dumps({"traceEvents": made.events}).encode()


def kinds(folder: Path) -> Iterator[tuple[str, list[Path], list[Words]]]:
    """The name of a kind, files to damage in turn, and command lines that read them."""
    sound = folder / "sound.json"
    sound.write_bytes(trace())
    text, shot = trace(), snapshot_contents()[0]
    shot["device_traces"] = [each[:4] for each in shot["device_traces"]]
    shot["segments"] = shot["segments"][:2]

    def one(name: str, content: bytes, *lines: Words) -> tuple[str, list[Path], list[Words]]:
        home = folder / name.replace(".", "-")
        home.mkdir()
        path = home / name
        path.write_bytes(content)
        return name, [path], [[str(path) if word == "FILE" else word for word in line] for line in lines]

    def zipped(method: int) -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", method) as archive:
            archive.writestr("rank0.json", text)
            archive.writestr("rank1.json", text)
        return made.getvalue()

    analyzed = ["FILE", "-q"], ["compare", "FILE", str(sound), "-q"]
    yield one("json.json", text, *analyzed, ["whatif", "FILE", "--without", "compute"], ["postmortem", "FILE"])
    yield one("gz.json.gz", gzip.compress(text), *analyzed)
    yield one("zst.json.zst", zstd.compress(text), *analyzed)
    yield one("stored.zip", zipped(zipfile.ZIP_STORED), ["FILE", "-q"])
    yield one("deflated.zip", zipped(zipfile.ZIP_DEFLATED), ["FILE", "-q"], ["postmortem", "FILE"])
    yield one("convert.json", text, ["convert", "FILE", "--annotate", f"{folder}/annotated.json", "--overwrite"])
    shown = ["memory", "FILE"], ["whatif", "FILE", "--alloc-conf", "expandable_segments:True"], ["postmortem", "FILE"]
    yield one("snapshot.pickle", pickle.dumps(shot, 4), *shown)
    yield one("snapshot.json", json.dumps(shot).encode(), *shown)
    yield one("snapshot.pickle.gz", gzip.compress(pickle.dumps(shot, 4)), shown[0])
    statistics = {"num_alloc_retries": 1, "allocated_bytes": {"all": {"peak": 7}}, "reserved_bytes.all.peak": 9}
    named, files, _ = one("memory_stats.json", json.dumps(statistics).encode())
    beside = files[0].with_name("snapshot.pickle")
    beside.write_bytes(pickle.dumps(shot, 4))
    yield named, files, [["memory", str(beside)]]
    timeline = [[1, 2, 3], [[10] * 10, [20] * 10, [5] * 10]]
    yield one("timeline.json", json.dumps(timeline).encode(), ["memory", "FILE"], ["FILE"])
    yield one("job.log", "\n".join(said for said, *_ in CASES[::4]).encode(), ["postmortem", "FILE"])
    yield one("nccl_trace_rank_3", test_flight.as_json(test_flight.dump()), ["postmortem", "FILE"])
    yield one("nccl_trace_rank_4", pickle.dumps(test_flight.dump(), 2), ["postmortem", "FILE"])
    scalars = [test_tensorboard.event(1e9 + at, at, test_tensorboard.scalar("loss", 2)) for at in range(2)]
    events = test_tensorboard.VERSION + b"".join(scalars)
    yield one("events.out.tfevents.1769829000.a3-17.7.0", events, ["postmortem", "FILE"])
    for name in ("CSV", "QUERY", "XML", "NPU"):
        yield one(f"states-{name}.txt", getattr(test_devices, name).encode(), ["postmortem", "FILE"])
    yield one("spy.txt", test_stacks.SPY.encode(), ["postmortem", "FILE"])
    error = {
        "message": {"message": "RuntimeError: x", "extraInfo": {"py_callstack": "a\nb", "timestamp": "1769829000"}}
    }
    yield one("error.json", json.dumps(error).encode(), ["postmortem", "FILE"])
    program = replace(TWO_NPUS, model=replace(TWO_NPUS.model, layers=1), steps=2)
    for form in ("text", "db"):
        home = write_ascend(folder / form, simulate(program)[0], form=form)
        files = sorted(path for path in home.rglob("*") if path.is_file())
        yield f"ascend-{form}", files, [[str(home), "-q"]]
    listed = {"schema": "traceanalyze.run/1", "rank": 0, "files": ["trace.json"]}
    named, files, _ = one("run.json", json.dumps(listed).encode())
    (files[0].parent / "trace.json").write_bytes(text)
    yield named, files, [[str(files[0].parent), "-q"], ["postmortem", str(files[0].parent)]]
    yield one("budget.toml", BUDGET, ["gate", str(sound), "--baseline", str(sound), "--budget", "FILE"])
    yield one("peaks.toml", PEAKS, [str(sound), "--device-peaks", "FILE", "-q"])
    plain = folder / "plain.pickle"
    plain.write_bytes(pickle.dumps(shot, 4))
    yield one("profile.json", b'{"experts": "moe\\\\.(py|x)"}', ["memory", str(plain), "--custom-profile", "FILE"])
    names = b'{"npu::matmul": "aten::mm"}'
    yield one("names.json", names, ["compare", str(sound), str(sound), "--op-name-map", "FILE", "-q"])
    baseline = folder / "own" / "baseline.json"
    baseline.parent.mkdir()
    quietly(["baseline", "update", str(baseline), str(sound), "--accept"])
    lines = [["gate", str(sound), "--baseline", str(baseline)], ["baseline", "show", str(baseline)]]
    yield "baseline", [baseline], [*lines, ["baseline", "prune", str(baseline), "--label", "x"]]
    store = folder / "store"
    quietly([str(sound), "-q", "--record", str(store)])
    files = [next(store.glob(f"{name}/*.parquet")) for name in ("run_summary", "split")]
    yield "store", files, [["history", str(store)], ["query", str(store), "SELECT * FROM split, run_summary"]]
    shares = folder / "shares"
    quietly(["analyze", "--shard", "0/1", "-o", f"{shares}/", str(sound)])
    yield "shares", sorted(shares.iterdir()), [["merge", str(shares), "-q"]]
    cache = folder / "cache"
    again = [str(sound), str(sound.with_name("json-json")), "-q", "--cache", str(cache)]
    quietly(again)
    yield "cache", sorted(cache.iterdir()), [again]
    for ending in ("json", "html", "md", "xlsx", "svg", "txt"):
        report = folder / f"report.{ending}"
        quietly([str(sound), "-o", str(report)])
        yield f"report.{ending}", [report], [[str(sound), "-o", str(report), "-q"]]
    annotated = folder / "report.json.gz"
    quietly(["convert", str(sound), "--annotate", str(annotated)])
    yield "report.json.gz", [annotated], [["convert", str(sound), "--annotate", str(annotated)]]
    tables = folder / "tables"
    quietly([str(sound), "-q", "-o", f"{tables}/"])
    yield "tables", [tables / "tables.json"], [[str(sound), "-o", f"{tables}/", "-q"]]


def quietly(words: Words) -> tuple[int, str]:
    """Exit status of a command run in this process, and what it says to stderr."""
    said = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    before, sys.argv = sys.argv, ["traceanalyze", *words]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(said[0]), contextlib.redirect_stderr(said[1]):
            traceanalyze()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    return code, said[1].buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]


def damages(content: bytes, most: int, chance: random.Random) -> Iterator[bytes]:
    """Other contents, then this one with one thing changed, at every place, or at so many."""
    yield from OTHER
    for at in chance.sample(range(len(content)), min(most, len(content))):
        one = content[at]
        for value in chance.sample((0, 0xFF, one ^ 1, one ^ 0x80, *b'"[{9-\n,'), 2):
            yield content[:at] + bytes([value]) + content[at + 1 :]
        yield chance.choice((content[:at] + content[at + 1 :], content[:at], content[: at + 1] + content[at:]))
    with contextlib.suppress(ValueError):
        document = json.loads(content)
        every = list(places(document))
        for place in chance.sample(every, min(most, len(every))):
            for value in chance.sample(ODD, 3):
                yield json.dumps(changed(document, place, value)).encode()


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in a document."""
    yield before
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*before, key))


def changed(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A document with something else in one place."""
    made = [copy.deepcopy(document)]
    here: Any = made
    for key in (0, *place)[: len(place)]:
        here = here[key]
    here[(0, *place)[-1]] = value
    return made[0]


def tried(name: str, files: list[Path], lines: list[Words], most: int, seed: int) -> list[str]:
    """Faults of a kind."""
    chance, wrong, codes, begun, count = random.Random(seed), [], Counter[int](), time.process_time(), 0
    for words in lines:
        code, said = quietly(words)
        if code not in {0, 1}:
            print(f"WRONG {name}: {words} of the sound file: {said}")
            return [name]
    for path in files:
        sound = path.read_bytes()
        others = {each: each.read_bytes() for each in files if each != path}
        for content in damages(sound, most, chance):
            words = chance.choice(lines)
            for each, whole in (others | {path: content}).items():
                if not each.exists() or each.read_bytes() != whole:
                    each.write_bytes(whole)
            began = time.process_time()
            code, said = quietly(words)
            took = time.process_time() - began
            codes[code] += 1
            count += 1
            last = said.strip().splitlines()[-1:] or [""]
            told = code != 2 or last[0].lstrip("│ ").startswith(("error:", "Usage", "Try", "╰"))
            if code not in {0, 1, 2, 3} or "internal error" in said or "Traceback" in said or not told or took > 5:
                kept = Path(tempfile.gettempdir()) / f"every_byte-{name}-{len(wrong)}"
                kept.write_bytes(content)
                wrong.append(
                    f"{name}: {path.name} ({kept}) {words}: exit {code} in {took:.1f} s: {said.strip()[-400:]}"
                )
                print(f"WRONG {wrong[-1]}", flush=True)
            if count % 50 == 0:
                gc.collect()
        path.write_bytes(sound)
    print(f"{name}: {count} in {time.process_time() - begun:.0f} s, exits {dict(codes)}", flush=True)
    return wrong


def main() -> int:
    """Damage all, or the kinds that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=1000, help="places in a file; each is changed three times")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = f"{name}/home"
        for kind, files, lines in kinds(Path(name)):
            if options.kinds and not kind.startswith(tuple(options.kinds)):
                continue
            # Another process, as what is read by others' libraries may end it.
            if (child := os.fork()) == 0:
                with contextlib.suppress(BaseException):
                    os._exit(min(len(tried(kind, files, lines, options.most, options.seed)), 1))
                os._exit(2)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            wrong += status != 0
            if status not in {0, 1}:
                print(f"WRONG {kind}: ended with {status}", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
