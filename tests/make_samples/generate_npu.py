"""Writes the NPU samples: `python tests/make_samples/generate_npu.py [FOLDER]` (default: sample_traces)."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.pair import Pair
    from tests.simulate.schedule import Schedule

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python tests/make_samples/generate_npu.py"


def generate(folder: Path) -> list[Path]:
    """Write the NPU cases under the folder; the same bytes each time."""
    return [*_training(folder / "npu_training"), *_pair(folder / "gpu_npu_pair")]


def _training(home: Path) -> list[Path]:
    from tests.make_samples.cases import NPU
    from tests.make_samples.generate_gpu import faults_line, truth_lines
    from tests.simulate.simulate import simulate
    from tests.simulate.truth.summary import critical_resource

    (schedule,) = simulate(NPU)
    files = _directory(home, schedule)
    lines = [
        *_head("An NPU that reads its loss in every step", "traceanalyze sample_traces/npu_training"),
        faults_line(NPU),
        f'critical_resource = "{critical_resource(NPU)}"',
        *_trace(home, files[0], truth_lines(NPU, schedule)),
    ]
    return [*files, _description(home, lines)]


def _pair(home: Path) -> list[Path]:
    from tests.make_samples.cases import PAIR, PAIR_DIFFERENCES
    from tests.make_samples.generate_gpu import compress, truth_lines
    from tests.simulate.pair import pair
    from tests.simulate.truth.summary import critical_resource
    from tests.simulate.writers.kineto import write

    made = pair(PAIR, PAIR_DIFFERENCES)
    (home / "gpu").mkdir(parents=True, exist_ok=True)
    gpu = home / "gpu" / "trace.json.gz"
    gpu.write_bytes(compress(write(made.gpu[0])))
    files = _directory(home / "npu", made.npu[0], level=2)
    command = "traceanalyze compare sample_traces/gpu_npu_pair/gpu sample_traces/gpu_npu_pair/npu"
    lines = [
        *_head("The same training on a GPU, and on an NPU that is slower for five reasons", command),
        "faults = []",
        f'critical_resource = "{critical_resource(PAIR)}"',
        *_trace(home, gpu, truth_lines(PAIR, made.gpu[0])),
        *_trace(home, files[0], truth_lines(PAIR, made.npu[0])),
        *_differences(made),
    ]
    return [gpu, *files, _description(home, lines)]


def _directory(home: Path, schedule: Schedule, level: int = 1) -> list[Path]:
    """Files of one rank, those in the directory itself first; the timeline is compressed."""
    from tests.make_samples.generate_gpu import compress
    from tests.simulate.writers.ascend import OUTPUT, write_ascend
    from tests.simulate.writers.ascend_layouts import AscendLayout

    shutil.rmtree(home / f"rank{schedule.rank}_ascend_pt", ignore_errors=True)
    rank = write_ascend(home, schedule, AscendLayout("8.3", level))
    timeline = rank / OUTPUT / "trace_view.json"
    timeline.with_suffix(".json.gz").write_bytes(compress(timeline.read_bytes()))
    timeline.unlink()
    return sorted((path for path in rank.rglob("*") if path.is_file()), key=lambda path: (len(path.parts), path.name))


def _head(title: str, command: str) -> Iterator[str]:
    yield from (f'title = "{title}"', 'made = "generated"', f'how = "{COMMAND}"', f'command = "{command}"')


def _trace(home: Path, file: Path, truth: Iterator[str]) -> Iterator[str]:
    place = file.relative_to(home)
    name = next((part for part in place.parts if part.endswith("_ascend_pt")), place.name)
    yield from ("", "# The simulation's own account. Times in ns; parts and idle are sums over all steps.")
    yield from ("[[trace]]", f'file = "{(place.as_posix().split(name)[0] + name)}"')
    yield from truth


def _differences(made: Pair) -> Iterator[str]:
    from tests.make_samples.cases import PAIR_DIFFERENCES

    yield from ("", "# What each difference adds to each part of all steps, put in one after the other, in ns.")
    sizes = {each.name: each.size for each in PAIR_DIFFERENCES}
    for name, parts in made.moved.items():
        yield from ("[[difference]]", f'name = "{name}"', *([f"size = {sizes[name]}"] if name in sizes else []))
        inner = ", ".join(f'"{part}" = {time}' for part, time in parts.items())
        yield f"parts = {{ {inner} }}"


def _description(home: Path, lines: list[str]) -> Path:
    (home / "case.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return home / "case.toml"


def main() -> None:
    sys.path.insert(0, str(ROOT))
    for path in generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sample_traces"):
        print(path)


if __name__ == "__main__":
    main()
