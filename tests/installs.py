"""Install the checkout several times at once: `python -m tests.installs [--count N]`.

Each installation gets a scanner of its own that works: builds of one tree do not share a folder.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READ = "import traceanalyze.readers.scan.native as native; print(native.available(), native.__file__)"


def main() -> int:
    """How many failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        homes = [Path(name, str(number)) for number in range(options.count)]
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
        running = [subprocess.Popen([*pip, str(home), str(ROOT)]) for home in homes]
        for home, each in zip(homes, running, strict=True):
            code = each.wait()
            # Before an editable installation, which has a finder of its own.
            begin = f"import sys; sys.meta_path[:] = sys.meta_path[-3:]; sys.path.insert(0, {str(home)!r}); "
            said = subprocess.run(
                [sys.executable, "-P", "-c", begin + READ], capture_output=True, text=True, check=False
            )
            bad = code != 0 or not said.stdout.startswith(f"True {home}/")
            wrong += bad
            print(
                f"{'WRONG' if bad else 'ok'}: pip ended with {code}, native scanner: {said.stdout.strip()}{said.stderr}"
            )
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
