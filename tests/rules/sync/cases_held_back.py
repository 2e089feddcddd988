"""Work that was launched and does not begin: id → programs.

Found as 463 of 474 ms "held back by other work" that no finding explained, behind a `hipStreamWaitEvent`.
"""

from __future__ import annotations

from tests.rules.make import STEP, Fires, busy, program


def held(wait, *, call=None, device=False, api="cudaLaunchKernel", lost=0):
    """A kernel of 500 µs; the next one, launched while it runs, begins so many µs after it."""

    def body(b, at, number):
        b.launch(at, 5, at + 10, 490)
        if call:
            b.api(call, at + 10, 5)
        b.launch(at + 20, 5, at + 500 + wait, STEP - 510 - wait, api=api, stream=9, name="held")
        for place in range(lost):
            b.api("cudaLaunchKernel", at + 7 + 2 * place, 1, correlation=10_000 * (number + 1) + place)
        if device:
            b.device(at + 400, 95 + wait, device=1, name="elsewhere")

    return program(body)


def counted(b, at, number):
    """All is queued at once, and the device takes 95 µs from one kernel to the next, as while it reads counters."""
    for place in range(6):
        b.launch(at + 2 * place, 1, at + 20 + 160 * place, 65, stream=9)


NOTHING = {"count": 4, "ops": ("held",), "each": 200, "first": (500, 700), "look": (500, 700), "severity": "MEDIUM"}
FIRES = {
    "SYN109": [
        Fires(
            held(200),
            cost=200,
            **NOTHING,
            evidence={"idle": 200, "count": 4, "longest": 200, "stream": 9},
            advice=("other_processes",),
            options={"share": (0.05, 0.1, 0.101), "least_us": (50, 200, 201)},
        ),
        Fires(
            held(200, call="cudaStreamWaitEvent"),
            cost=200,
            **NOTHING,
            sentence="event",
            evidence={"idle": 200, "count": 4, "longest": 200, "stream": 9, "what": "cudaStreamWaitEvent"},
            advice=("order_streams", "record_stream_waits"),
        ),
        Fires(
            held(200, call="cudaStreamWaitEvent", device=True),
            cost=200,
            **NOTHING,
            sentence="device",
            evidence={"idle": 200, "count": 4, "longest": 200, "stream": 9, "what": "elsewhere", "other": 1},
            advice=("order_streams",),
        ),
        # Since the work of the stream in the step before there was a launch that has no event, which may have run then.
        Fires(
            held(200, lost=1),
            cost=150,
            count=3,
            ops=("held",),
            each=(0, 200, 200, 200),
            first=(2500, 2700),
            look=(2500, 2700),
            severity="LOW",
            sentence="lost",
            evidence={"idle": 150, "count": 3, "longest": 200, "stream": 9},
            advice=("all_events",),
        ),
        Fires(
            held(200, api="cudaGraphLaunch"),
            cost=200,
            **NOTHING,
            sentence="graph",
            evidence={"idle": 200, "count": 4, "longest": 200, "stream": 9},
            advice=("plain_run",),
        ),
    ],
}
SILENT = {"SYN109": [program(busy), program(counted), held(99), held(0, call="cudaStreamWaitEvent")]}
