"""Writes the generated samples: `python tests/make_samples/generate_gpu.py [FOLDER]` (default: sample_traces)."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.make_samples.cases import Case
    from tests.simulate.schedule import Schedule
    from tests.simulate.workload import Workload

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python tests/make_samples/generate_gpu.py"


def generate(folder: Path) -> list[Path]:
    """Write every generated case under the folder; the same bytes each time."""
    from tests.make_samples.cases import cases
    from tests.simulate.simulate import simulate
    from tests.simulate.writers.kineto import write

    written = []
    for case in cases():
        home = folder / case.name
        home.mkdir(parents=True, exist_ok=True)
        ranks = simulate(case.workload)
        names = [f"rank{each.rank}.json.gz" if len(ranks) > 1 else "trace.json.gz" for each in ranks]
        for name, schedule in zip(names, ranks, strict=True):
            (home / name).write_bytes(compress(write(schedule, case.layout)))
            written.append(home / name)
        (home / "case.toml").write_text("\n".join(_description(case, names, ranks)) + "\n", encoding="utf-8")
        written.append(home / "case.toml")
    return written


def compress(text: bytes) -> bytes:
    """Gzip without name and time."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as stream:
        stream.write(text)
    return buffer.getvalue()


def _description(case: Case, names: list[str], ranks: tuple[Schedule, ...]) -> Iterator[str]:
    from tests.simulate.truth.summary import critical_resource

    yield f'title = "{case.title}"'
    yield 'made = "generated"'
    yield f'how = "{COMMAND}"'
    yield f'command = "traceanalyze sample_traces/{case.name}"'
    yield faults_line(case.workload)
    yield f'critical_resource = "{critical_resource(case.workload)}"'
    yield "# The simulation's own account. Times in ns; parts and idle are sums over all steps."
    for name, schedule in zip(names, ranks, strict=True):
        yield from ("", "[[trace]]", f'file = "{name}"')
        if len(ranks) > 1:
            yield f"rank = {schedule.rank}"
        yield from truth_lines(case.workload, schedule)


def faults_line(workload: Workload) -> str:
    """The faults of a workload."""
    faults = ", ".join(f'{{ name = "{fault.name}", size = {fault.size} }}' for fault in workload.faults)
    return f"faults = [{faults}]"


def truth_lines(workload: Workload, schedule: Schedule) -> Iterator[str]:
    """What the simulation knows of one rank, as lines of case.toml."""
    from tests.simulate.truth.summary import total, truth, without_faults

    known = truth(schedule)
    yield f"steps = {[step.time for step in known.steps]}"
    yield from ("", "[trace.parts]", *(f"{part} = {time}" for part, time in total(known.parts).items()))
    yield from ("", "[trace.idle]", *(f'"{cause}" = {time}' for cause, time in sorted(total(known.idle).items())))
    if workload.faults:
        times = without_faults(workload, schedule.rank)
        yield from ("", "# Sum of the step times without each fault.", "[trace.without]")
        yield from (f"{fault} = {time}" for fault, time in times.items())
    for (op, line, call, terminal), cost in known.syncs.items():
        if not terminal:
            place = {"op": op, "frame": line, "call": call}
            yield from ("", "[[trace.sync]]", *(f'{key} = "{text}"' for key, text in place.items() if text))
            yield from (f"count = {cost.count}", f"blocked = {cost.blocked}", f"idle_caused = {cost.idle_caused}")


def main() -> None:
    sys.path.insert(0, str(ROOT))
    for path in generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sample_traces"):
        print(path)


if __name__ == "__main__":
    main()
