"""Copies within the device that nothing hides: id → programs.

In a public recording of two ranks 774 copies of 20 µs a step, 12.9 % of it, had no finding.
"""

from __future__ import annotations

from tests.rules.make import STEP, Fires, kernel, program

WITHIN = "Memcpy DtoD (Device -> Device)"


def copied(*, name=WITHIN, around="CompiledFunction", beside=""):
    """A kernel of 1 ms, two copies of 400 µs launched meanwhile, and a last kernel to the end of the step."""

    def body(b, at, number):
        kernel(b, at, 1000)
        if around:
            b.op(around, at + 30, 60)
        for part in range(2):
            b.op("aten::clone", at + 32 + 20 * part, 15)
            b.op("aten::copy_", at + 34 + 20 * part, 11)
            b.copy(at + 36 + 20 * part, 6, at + 1020 + 400 * part, 400, name=name, bytes=1 << 20)
        if beside == "copy":
            b.copy(at + 90, 4, at + 1020, 400, name="Memcpy HtoD (Pinned -> Device)", bytes=1 << 20, stream=8)
        elif beside:
            b.launch(at + 95, 4, at + 1020, 800, stream=8)
        b.op("aten::mm", at + 100, 20)
        b.launch(at + 105, 10, at + 1820, STEP - 1822)

    return program(body)


FIRES = {
    "KRN121": [
        Fires(
            copied(),
            # Three quarters of 800 µs, and of the moments between two kernels; from half to all of it.
            saving=602.25,
            low=401.5,
            bound=800,  # From the end of the kernel before them on the last one cannot begin sooner.
            severity="HIGH",
            sentence="op",
            count=8,
            evidence={"exposed": 800, "count": 8, "op": "CompiledFunction"},
            ops=("CompiledFunction",),
            draws="mem_exposed",
            each=800,
            first=(1020, 1820),
            look=(1020, 1820),
            options={"share": (0.05, 0.4, 0.401)},
        ),
        Fires(
            copied(around=None),
            saving=602.25,
            low=401.5,
            bound=800,  # From the end of the kernel before them on the last one cannot begin sooner.
            severity="HIGH",
            sentence="op",
            count=8,
            evidence={"exposed": 800, "count": 8, "op": "aten::copy_"},
            ops=("aten::copy_",),
            draws="mem_exposed",
            each=800,
            first=(1020, 1820),
            look=(1020, 1820),
        ),
        # Beside the first one a batch is copied from the host.
        Fires(
            copied(beside="copy"),
            saving=301.125,
            low=200.75,
            bound=400,
            severity="MEDIUM",
            sentence="op",
            count=4,
            evidence={"exposed": 400, "count": 4, "op": "CompiledFunction"},
            ops=("CompiledFunction",),
            draws="mem_exposed",
            each=400,
            first=(1420, 1820),
            look=(1420, 1820),
        ),
    ]
}
SILENT = {"KRN121": [copied(beside="kernel"), copied(name="Memcpy HtoD (Pinned -> Device)")]}
