"""Writes the generated samples: `python tests/make_samples/generate_gpu.py [FOLDER]` (default: sample_traces)."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.make_samples.cases import Case

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python tests/make_samples/generate_gpu.py"


def generate(folder: Path) -> list[Path]:
    """Write every generated case under the folder; the same bytes each time."""
    from tests.make_samples.cases import cases
    from tests.make_samples.kineto_text import modern, old

    written = []
    for case in cases():
        home = folder / case.name
        home.mkdir(parents=True, exist_ok=True)
        names = [f"rank{program.rank}.json.gz" if program.world > 1 else "trace.json.gz" for program in case.programs]
        for name, program in zip(names, case.programs, strict=True):
            (home / name).write_bytes(compress(old(program) if case.old_layout else modern(program)))
            written.append(home / name)
        (home / "case.toml").write_text(_description(case, names), encoding="utf-8")
        written.append(home / "case.toml")
    return written


def compress(text: str) -> bytes:
    """Gzip without name and time."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as stream:
        stream.write(text.encode())
    return buffer.getvalue()


def _description(case: Case, names: list[str]) -> str:
    from tests.make_samples.truth import truth

    lines = [
        f'title = "{case.title}"',
        'made = "generated"',
        f'how = "{COMMAND}"',
        "# Times in ns, from the generator's own schedule; parts and idle are sums over all steps.",
    ]
    for name, program in zip(names, case.programs, strict=True):
        found = truth(program)
        lines += ["", "[[trace]]", f'file = "{name}"', *([f"rank = {program.rank}"] if program.world > 1 else [])]
        lines += [f"steps = {list(found.steps)}", "", "[trace.parts]"]
        lines += [f"{part} = {value}" for part, value in found.parts.items()]
        lines += ["", "[trace.idle]"]
        lines += [f'"{cause}" = {value}' for cause, value in sorted(found.idle.items())]
    if case.on_paper:
        lines += ["", "[on_paper]", *(f"{key} = {value}" for key, value in case.on_paper.items())]
    return "\n".join(lines) + "\n"


def main() -> None:
    sys.path.insert(0, str(ROOT))
    for path in generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sample_traces"):
        print(path)


if __name__ == "__main__":
    main()
