"""Hold the native scanner and its twin against each other on mutated documents: `agree.py COUNT [SEED]`.

Stops at the first difference, leaves the document behind, and fails.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz.agreement import difference, documents, meaning, scan_native, scan_twin


def main(count: int, seed: int) -> int:
    """Compare `count` documents."""
    rng = random.Random(seed)
    start = time.monotonic()
    for number, text in enumerate(islice(documents(rng), count), 1):
        longest = rng.choice((1 << 26, 1 << 26, 1 << 26, 300, 60))
        expected = meaning(scan_twin(text, max_value_bytes=longest))
        block = rng.choice((1, 2, 3, 7, 16, 61, 256, 1000, 4096))
        for learn, block_bytes in ((True, 1 << 18), (rng.random() < 0.7, block)):
            found = meaning(scan_native(text, block_bytes, learn=learn, max_value_bytes=longest))
            wrong = difference(found, expected)
            if wrong:
                with tempfile.NamedTemporaryFile(delete=False, suffix=".json") as file:
                    file.write(text)
                print(f"{file.name} (blocks of {block_bytes}, learn={learn}, longest={longest})\n{wrong}")
                return 1
        if number % 5000 == 0:
            print(f"{number} documents agree, {number / (time.monotonic() - start):.0f} a second", flush=True)
    print(f"{count} documents agree")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
