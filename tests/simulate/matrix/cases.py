"""The programs of the matrix: every cause alone, drawn pairs and triples, what happens once, and healthy programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from tests.simulate.healthy import A100, RUNS, on_npu
from tests.simulate.matrix.causes import BOTH, CAUSES, SPECIAL, Cause, Setting, with_causes
from tests.simulate.workload import US, Host, Model, Ranks, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICE_BOUND = replace(A100, steps=6)
"""Steps of 7 ms, of which the host needs a third."""
HOST_BOUND = replace(DEVICE_BOUND, model=Model(layers=2, batch=2), host=Host(op=6 * US, python=8 * US))
"""Steps of 3 ms; the device would need two thirds of that."""
BOUNDS = {"device": DEVICE_BOUND, "host": HOST_BOUND}
RECORDINGS: dict[str, Setting] = {
    "clock": (("behind", 34),),
    "drift": (("behind", 20), ("drift", 1500)),
    "excerpt": (("excerpt", 900),),
    "unmarked": (("unmarked", 2),),
}
"""What is odd about a recording, and takes nothing away from what it proves."""
ODDLY_RECORDED = ("slow_loader", "item_sync", "host_slow", "written_out")
PAIRS, TRIPLES = 110, 55


@dataclass(frozen=True, slots=True)
class Case:
    """One program."""

    name: str
    workload: Workload
    bound: str = ""
    causes: tuple[Cause, ...] = ()

    @property
    def group(self) -> str:
        """Healthy, how many causes there are, or what is special about the one."""
        special = [cause.special for cause in self.causes if cause.special]
        return special[0] if special else ("healthy", "one", "two", "three")[len(self.causes)]


def base_of(vendor: str, bound: str, *, several: bool) -> Workload:
    """A program without faults."""
    plain = BOUNDS[bound]
    if several:
        # Of a device whose peaks nobody knows: the links of these programs would be slow for an A100.
        plain = replace(plain, ranks=Ranks(2, block=512), device=replace(plain.device, name="Example GPU"))
    return on_npu(plain) if vendor == "ascend" else plain


def case_of(vendor: str, bound: str, causes: tuple[Cause, ...], recording: str = "") -> Case:
    """A program with some causes."""
    plain = base_of(vendor, bound, several=any(cause.several for cause in causes))
    names = "+".join((*(cause.fault for cause in causes), *([recording] if recording else ())))
    workload = with_causes(plain, bound, causes, RECORDINGS.get(recording, ()))
    return Case(f"{'npu' if vendor == 'ascend' else 'gpu'}/{bound}/{names}", workload, bound, causes)


def alone() -> Iterator[Case]:
    """Every cause by itself, and some of them in odd recordings."""
    for cause in CAUSES:
        for vendor in cause.vendors:
            for bound in BOUNDS:
                if cause.size(bound):
                    yield case_of(vendor, bound, (cause,))
    for recording in RECORDINGS:
        for cause in CAUSES:
            for vendor in cause.vendors if cause.fault in ODDLY_RECORDED else ():
                yield case_of(vendor, "host" if cause.fault == "host_slow" else "device", (cause,), recording)


def together(count: int, wanted: int) -> Iterator[Case]:
    """So many drawn programs with `count` causes each; no draw comes twice."""
    choice, seen = Random(count), set[str]()
    while len(seen) < wanted:
        vendor, bound = choice.choice(BOTH), choice.choice(tuple(BOUNDS))
        able = [cause for cause in CAUSES if vendor in cause.vendors and cause.size(bound)]
        drawn = tuple(sorted(choice.sample(able, count), key=CAUSES.index))
        found = case_of(vendor, bound, drawn)
        if goes_together(drawn) and found.name not in seen:
            seen.add(found.name)
            yield found


def goes_together(causes: tuple[Cause, ...]) -> bool:
    """Whether the causes have neither a setting, a rule nor an adjustment in common."""
    knobs = [cause.knob or cause.fault for cause in causes]
    rules = [rule for cause in causes for rule in cause.rules]
    if any(cause.several for cause in causes) and any(cause.fault == "fp32" for cause in causes):
        # What it gains is known of known devices only.
        return False
    if {"program_pause", "late_host"} <= {cause.fault for cause in causes}:
        # The late rank makes one pause of both.
        return False
    settings = [name for cause in causes for name, _ in cause.setting]
    return all(len(each) == len(set(each)) for each in (knobs, rules, settings))


def special() -> Iterator[Case]:
    """What is done once, and what the recording cannot price."""
    for cause in SPECIAL:
        for vendor in cause.vendors:
            for bound in BOUNDS:
                yield case_of(vendor, bound, (cause,))


def healthy() -> Iterator[Case]:
    """Programs that nothing is wrong with but, where that is their limit, a slow host; however they were recorded."""
    for name, workload in RUNS.items():
        yield Case(f"gpu/{name}", workload)
        yield Case(f"npu/{name}", on_npu(workload))
    for vendor in BOTH:
        for bound in BOUNDS:
            for several in (False, True):
                words = vendor.replace("nvidia", "gpu").replace("ascend", "npu"), bound, "two" if several else "plain"
                yield Case("/".join(words), base_of(vendor, bound, several=several), bound)
        for recording in RECORDINGS:
            yield case_of(vendor, "device", (), recording)
    yield Case("gpu/graph", with_causes(DEVICE_BOUND, "device", (), (("graph", 1),)))


def every() -> Iterator[Case]:
    """All programs with causes and all healthy ones."""
    yield from alone()
    yield from together(2, PAIRS)
    yield from together(3, TRIPLES)
    yield from special()
    yield from healthy()
