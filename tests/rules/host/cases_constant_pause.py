"""Pauses of the program, which collections of garbage are none of: id → programs.

Found as a collection of garbage in public traces: a sleep of 20 ms in every step (20.198, 20.205, 20.195 ms).
"""

from __future__ import annotations

from tests.rules.make import Fires, busy, kernel, program
from tests.rules.on_host import Op, steps


def slept(*pauses, line=""):
    """In each step a kernel of 1 ms, a pause of so many µs, and a kernel up to the end of the step's 20 ms."""

    def body(b, at, number):
        pause = pauses[number]
        if line:
            b.python("train.py(3): loop", at, 19_990)
            b.python(line, at + 30, pause + 1060)
        kernel(b, at, 1000, op="aten::view")
        if pause:
            kernel(b, at + 1100 + pause, 18_000 - pause, op="aten::mm")

    return program(body, steps=len(pauses), length=20_000)


def inside(name="MyFunction", *, pause=10_000, first=1000, steps=3, stream=7, tail=0):
    """Each step a kernel, a function that stands still for so many µs before it calls an operator, its kernel."""

    def body(b, at, number):
        kernel(b, at, first, op="aten::view")
        b.op(name, at + 100, pause + 100)
        kernel(b, at + 150 + pause, 19_800 - pause - tail, op="aten::mm", stream=stream)

    return program(body, steps=steps, length=20_000)


# The host is still from 20 µs on, the device idle from 1020 µs on, until the next operator begins.
FIRES = {
    "HST113": [
        Fires(
            slept(12_000, 12_000, 12_000),
            # Besides, the 0.9 ms before the next step's kernel, as the host is ahead by then.
            saving=12990.833,
            severity="HIGH",
            count=3,
            evidence={"typical": 13_080, "what": "aten::view … aten::mm", "idle": 12_080},
            ops=("aten::view … aten::mm",),
            draws="idle",
            each=12_080,
            first=(1020, 13_100),
            look=(20, 13_100),
            options={"share": (0.01, 0.654, 0.655)},
        ),
        Fires(
            slept(5000, 5000, 5000, line="train.py(8): poll"),
            saving=5990.833,
            cost=5070,
            severity="HIGH",
            count=3,
            evidence={"typical": 6_060, "what": "train.py(8): poll", "idle": 5_070},
            ops=("train.py(8): poll",),
            draws="idle",
            each=5_070,
            first=(1020, 6_090),
            look=(30, 6_090),
        ),
        # In a function that calls an operator after it, on the device from 1020 µs on.
        Fires(
            inside(),
            # Besides, the 20 µs before the kernel; of the idle time there are 70 µs more.
            saving=9148.5,
            severity="HIGH",
            count=3,
            evidence={"typical": 10_050, "what": "MyFunction … aten::mm", "idle": 9130},
            ops=("MyFunction … aten::mm",),
            draws="idle",
            each=9130,
            first=(1020, 10_150),
            look=(100, 10_150),
        ),
        # The device works for 12 ms meanwhile, on another stream than after it: the next step comes sooner, by its idle
        # 1950 µs at most.
        Fires(
            inside(first=12_000, stream=20, tail=1900),
            saving=1950,
            severity="MEDIUM",
            sentence="busy",
            count=3,
            evidence={"typical": 10_050, "what": "MyFunction … aten::mm", "idle": 0},
            ops=("MyFunction … aten::mm",),
            draws="idle",
            each=(1928.5, 1948.5, 20),
            first=(18_071.5, 20_020),
            look=(100, 10_150),
        ),
        Fires(
            steps(Op("aten::mm", 4000), 3000, Op("aten::add", 1000), length=8000),
            saving=3000,
            bound=3000,
            severity="HIGH",
            sentence="host",
            count=4,
            evidence={"typical": 3000, "what": "aten::mm … aten::add", "time": 3000},
            ops=("aten::mm … aten::add",),
            draws="host.untraced",
            each=3000,
            first=(4000, 7000),
            look=(4000, 7000),
        ),
    ],
}
SILENT = {
    "HST113": [
        program(busy),
        slept(12_000, 12_000),  # Twice is no habit.
        inside("mylib::compute"),  # An operator of a library computes there.
        inside(first=10_120),  # It ends when the device has run dry: a wait that is not recorded.
        inside(steps=2),
        slept(12_000, 12_000, 0, 12_000),
        slept(12_000, 12_000, 12_600),  # 12.3 and 12.6 ms: 4 % longer.
    ],
    "HST104": [
        slept(12_000, 12_000, 12_000),
        slept(11_000, 13_000, 12_000),  # At the same place of every step.
        slept(15_000, 0, 11_000),  # Objects become more.
    ],
}
