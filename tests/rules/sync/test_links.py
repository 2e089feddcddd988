"""What pinned memory saves depends on the link, which the device tells."""

from __future__ import annotations

import pytest

from tests.rules.make import finding, program
from tests.rules.sequences import A100

US = 1000


@pytest.mark.parametrize(("device", "most"), [(A100, 320), (A100 | {"computeMajor": 7}, 246), (None, 246)])
def test_the_range_ends_with_the_link_of_the_device(device, most):
    """400 µs in which nothing but a copy of 2.4 MB runs: 200 at 12 GB/s, 100 at 24; else 12 % more than is saved."""

    def body(b, at, number):
        b.op("aten::copy_", at, 420)
        b.copy(at + 5, 410, at + 10, 400, bytes=2_400_000)
        for part in range(4):
            b.launch(at + 430 + part, 1, at + 440 + part * 380, 379)

    b = program(body)
    if device is not None:
        b.header["deviceProperties"] = [device]
    found = finding(b, "SYN105")
    # And 20 µs in which the host had nothing launched yet.
    assert found.saving == pytest.approx(220 * US, rel=0.02)
    assert found.bound == pytest.approx(most * US, rel=0.01)
