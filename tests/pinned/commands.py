"""Commands whose output is pinned, and how commands and options of a recording are understood."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.pinned.reports import AGED, Case, Parts

_SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"

_COMMANDS = (
    "",
    "nothing",
    "analyze",
    "analyze nowhere.json",
    "analyze {s}/gpu_sync --steps 9999",
    "analyze {s}/gpu_sync --steps x",
    "analyze {s}/gpu_sync --top 0",
    "analyze {s}/gpu_sync --format pdf",
    "analyze {s}/gpu_sync --lang fr",
    "analyze {s}/gpu_sync --select NOPE",
    "analyze {s}/gpu_sync --time 5",
    "analyze {s}/gpu_sync --time 9s-1s",
    "analyze {s}/gpu_sync --name-regex (",
    "analyze {s}/gpu_sync --category kernel",
    "analyze {s}/gpu_sync --category kernel=nothing",
    "analyze {s}/gpu_sync --device-peaks nowhere.toml",
    "analyze {s}/gpu_sync --streams 99",
    "analyze {s}/gpu_sync --ranks 7",
    "analyze {s}/gpu_sync -q",
    "analyze {s}/gpu_sync --steps 1: --top 2 -v --select SYN",
    "analyze {s}/gpu_sync --streams 7 --select DAT --lang zh",
    "analyze {s}/gpu_sync --time 1ms-60ms --ignore SYN --select SYN --select DAT",
    "analyze {s}/gpu_two_ranks --ranks 1 --select COM --format markdown",
    "analyze {s}/cpu_training -q --step-marker aten::linear",
    "analyze {s}/npu_training -q --select SYN --format markdown -o out.md",
    "analyze {s}/gpu_sync --select SYN -o report.html",
    "analyze {s}/gpu_sync --select SYN -o tables/",
    "compare {s}/gpu_sync",
    "compare {s}/gpu_sync {s}/gpu_healthy --base-step 999",
    "compare {s}/gpu_sync {s}/gpu_healthy --base-rank 9",
    "compare {s}/gpu_sync {s}/gpu_healthy --op-name-map x",
    "compare {s}/gpu_sync {s}/gpu_healthy --enable_kernel_compare --disable_details --top 3",
    "compare -d {s}/gpu_sync -bp {s}/gpu_healthy --enable_api_compare --base-step median",
    "compare {s}/gpu_sync {s}/gpu_healthy --use-input-shape --max-kernel-num 1 -o c.md",
    "memory nowhere",
    "memory {s}/memory/leak -q",
    "memory {s}/memory/churn -v --capacity 80GiB --top 3",
    "memory {s}/memory/churn --capacity x",
    "memory {s}/memory/out_of_memory --format markdown",
    "postmortem {s}/memory/with_trace --fail-on high",
    "postmortem {s}/gpu_two_ranks -q --fail-on medium",
    "postmortem {s}/gpu_two_ranks --ranks 5",
    "postmortem {s}/gpu_two_ranks --steps 1: --select COM --top 2",
    "gate {s}/gpu_sync",
    "gate {s}/gpu_sync --baseline {s}/gpu_healthy --strict -q",
    "gate {s}/gpu_sync --baseline {s}/gpu_healthy --exit-zero --format junit -q",
    "gate {s}/gpu_sync --baseline {s}/gpu_healthy --no-match nope",
    "gate {s}/gpu_sync --baseline nowhere.json",
    "gate {s}/gpu_sync --warmup 99",
    "baseline show nowhere.json",
    "rule NOPE",
    "rule loader-wait --lang zh",
    "rule SYN101 DAT101",
    "record",
    "record -- bash x.sh",
    "record -- python -c 1",
    "record --active 0 -- python t.py",
    "record --light --stacks -- python t.py",
)


_SLOW = re.compile(r"note: the native scanner was not built.*\n")
_ENVIRONMENT: dict[str, str | None] = {
    "COLUMNS": "100",
    **dict.fromkeys(("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "LANG", "LC_ALL")),
}


def _commands(words: Sequence[str]) -> Parts:
    """What a command prints, how it ends and what it writes; run beside a link to the samples."""
    from typer.testing import CliRunner

    from traceanalyze.cli.app import app

    Path("s").symlink_to(_SAMPLES)
    for command in words:
        found = CliRunner(env=_ENVIRONMENT).invoke(app, command.replace("{s}", "s").split(), prog_name="x")
        yield command, (found.exit_code, found.stdout, _SLOW.sub("", found.stderr), repr(found.exception))
        for path in sorted(Path().glob("*")):
            if path.is_file() and path.suffix in {".json", ".md", ".html"}:
                yield f"{command} {path.name}", AGED.sub("", path.read_text())
                path.unlink()


CLI: dict[str, Case] = {
    f"commands {at}": partial(_commands, _COMMANDS[at : at + 10]) for at in range(0, len(_COMMANDS), 10)
}


def _recorded() -> Parts:
    """Commands as they are recorded, and options."""
    from itertools import product

    from traceanalyze.errors import TraceAnalyzeError
    from traceanalyze.recording.bootstrap import recorded
    from traceanalyze.recording.options import RecordOptions

    def command(words: list[str]) -> object:
        try:
            return recorded(words, "PY")
        except TraceAnalyzeError as error:
            return str(error)

    options = (
        "",
        "-u",
        "-X dev",
        "-Xdev",
        "-uW ignore",
        "-uWignore",
        "--check-hash-based-pycs never",
        "--",
        "-",
        "-cx",
        "-m",
        "-ma",
        "-um",
        "-uma",
    )
    for program in ("python", "python3.12", "python3.13t", "/usr/bin/pypy3", "python.exe", "t.py", "bash", "pythonx"):
        yield (
            program,
            [
                command([program, *first.split(), *rest.split()])
                for first, rest in product(options, ("", "t.py", "t.py -m x", "a.b --flag"))
            ],
        )
    for wait, warmup, active in product((-1, 0, 5), (-1, 0, 3), (0, 1, 5)):
        for more in ({}, {"light": True}, {"light": True, "memory": True}, {"stacks": True, "shapes": False}):
            try:
                made = RecordOptions(wait=wait, warmup=warmup, active=active, **more)  # type: ignore[arg-type]
                found: object = made.steps, made.with_shapes, made.with_snapshot, json.loads(made.to_json())
            except TraceAnalyzeError as error:
                found = str(error)
            yield f"{wait} {warmup} {active} {sorted(more)}", found


RECORDING: dict[str, Case] = {"commands": _recorded}
