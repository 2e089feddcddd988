"""Copies from pageable memory just at their thresholds: id → programs."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.rules.make import Fires, kernel, program

H2D = "Memcpy HtoD (Pageable -> Device)"


def small(b, at, number):
    """A blocking copy whose own time is most of what it costs."""
    kernel(b, at, 1000)
    b.op("aten::copy_", at + 100, 1110)
    b.copy(at + 110, 1090, at + 1020, 180, name=H2D, bytes=180_000)
    b.op("aten::mm", at + 1205, 10)
    b.launch(at + 1206, 3, at + 1212, 700)


def pinned(b, at, number):
    """The same from pinned memory, whose call blocks as well."""
    kernel(b, at, 1090)
    b.op("aten::copy_", at + 100, 1110)
    b.copy(at + 110, 1090, at + 1110, 90, name="Memcpy HtoD (Pinned -> Device)", bytes=90_000)
    b.op("aten::mm", at + 1205, 10)
    b.launch(at + 1206, 3, at + 1212, 700)


def hidden(name):
    """The same beside a kernel on another stream but for 5 µs."""
    b = slow_link(1_200_000, name=name)
    for number in range(4):
        b.launch(number * 500 + 30, 3, number * 1900 + 710, 295, stream=8)
    return b


def slow_link(size, *, name=H2D, **more):
    """The host is far ahead; a copy to the device takes 300 µs between two kernels."""
    b = TraceBuilder()
    for number in range(4):
        at = number * 1900
        b.step(number, number * 500, 500)
        b.op("aten::mm", number * 500, 50)
        b.launch(number * 500 + 2, 3, at + 10, 700)
        b.copy(number * 500 + 12, 4, at + 710, 300, name=name, bytes=size, **more)
        b.launch(number * 500 + 22, 3, at + 1010, 900)
    return b


PINNED = "Memcpy HtoD (Pinned -> Device)"
D2H, D2H_PINNED = "Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH (Device -> Pinned)"
MUCH = {"saving": 300, "count": 4, "draws": "mem_exposed", "each": 300}
MUCH |= {"first": (710, 1010), "look": (710, 1010), "severity": "MEDIUM", "confidence": "MEDIUM"}
EXPOSED = {"exposed": 300, "count": 4}


def begun_before():
    """The host waits from 1 ms before the first of two steps on, until 300 µs in it; 100 µs later work begins."""
    b = TraceBuilder()
    b.launch(-1100, 5, -1000, 1300)
    b.api("cudaDeviceSynchronize", -1000, 1305)
    for number in range(2):
        at = 2000.0 * number
        b.step(number, at, 2000)
        b.op("aten::mm", at + 380, 20)
        b.launch(at + 385, 5, at + 400, 1590)
    b.op("aten::mm", 1900, 20)  # Queued, so that the second step has no gap at its begin.
    b.launch(1905, 5, 1990, 410)
    return b


def begins_with_a_wait():
    """The first of two steps begins with a copy that waits for 1 ms; nothing that it could wait for was recorded."""
    b = TraceBuilder()
    for number in range(2):
        at = 2000.0 * number
        b.step(number, at, 2000)
        if not number:
            b.op("aten::copy_", at + 9, 1002)
            b.copy(at + 10, 1000, at + 990, 15, name=H2D, bytes=150_000)
        for part in range(2 if number else 1):
            b.op("aten::mm", at + 15 + 1000 * (1 - part), 20)
            b.launch(at + 20 + 1000 * (1 - part), 5, at + 36 + 1000 * (1 - part), 950)
    return b


FIRES = {
    # In made recordings copies of 30 to 51 % of the step had no finding.
    "SYN104": [
        # 1.2 MB in 300 µs, 100 µs from pinned memory; all of it is gone on a side stream.
        Fires(slow_link(1_200_000, name=D2H), low=200, sentence="exposed", evidence=EXPOSED, **MUCH),
        Fires(slow_link(1_200_000, name=D2H_PINNED), low=0, sentence="exposed", evidence=EXPOSED, **MUCH),
    ],
    "SYN105": [
        *(
            Fires(
                slow_link(size, name=name),
                low=0,
                sentence="exposed",
                advice=("prefetch_copy",),
                evidence=EXPOSED,
                **MUCH,
            )
            for size, name in ((3_600_000, PINNED), (2_400_000, "Memcpy HtoD"))
        ),
        Fires(
            slow_link(12 * 100_000),
            saving=200,
            severity="MEDIUM",
            count=4,
            evidence={"idle": 0, "exposed": 300, "count": 4},
            draws="mem_exposed",
            cost=300,
            each=300,
            first=(710, 1010),
            look=(710, 1010),
            prices={"pinned_gbs": (12, 9.6, 175)},
        ),
        Fires(
            slow_link(12 * 100_000, name="Memcpy HtoD"),
            saving=200,
            severity="MEDIUM",
            count=4,
            evidence={"idle": 0, "exposed": 300, "count": 4},
            draws="mem_exposed",
            cost=300,
            each=300,
            first=(710, 1010),
            look=(710, 1010),
            prices={"pinned_gbs": (12, 9.6, 175), "slow": (0.5, 0.333, 300)},  # All of it, if it is not pageable.
        ),
        Fires(
            program(small),
            saving=277.375,
            bound=310.66,  # Copies are faster, too: no idle time alone, and 12 % more.
            cost=192,
            severity="MEDIUM",
            count=4,
            evidence={"idle": 12, "exposed": 180, "count": 4, "place": 12},
            ops=("aten::copy_",),
            draws="idle.sync",
            each=192,
            first=(1020, 1212),
            look=(110, 1200),
            line="aten::copy_",
        ),
        Fires(
            program(pinned),
            saving=112.375,
            cost=12,
            severity="MEDIUM",
            count=4,
            sentence="held",
            evidence={"idle": 12, "count": 4, "place": 12},
            ops=("aten::copy_",),
            draws="idle.sync",
            each=12,
            first=(1200, 1212),
            look=(110, 1200),
            line="aten::copy_",
        ),
    ],
}
# A copy to another device is not what the headline device waits for.
SILENT = {
    # A wait of 114.8 ms that had begun before the analysed time promised 112 ms. Here the device drains what was
    # launched before until 300 µs, where the first step begins: 5 µs of the wait lie in it.
    "SYN103": [begun_before()],
    "SYN104": [hidden(D2H)],
    "SYN105": [
        # What it waited for was launched before the recording began.
        begins_with_a_wait(),
        slow_link(12 * 300_000, name=D2H_PINNED),
        hidden(PINNED),
        slow_link(12 * 100_000, device=1),
    ],
}
