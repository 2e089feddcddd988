"""Prints the oracle's numbers of trace files: `python tests/oracle/oracle.py FILE…`."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(paths: list[str]) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.oracle.report import numbers

    for path in paths:
        json.dump(numbers(Path(path)), sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
