from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from traceanalyze.rules.rule import Confidence, Evidence, Finding, Findings, Options, Scope, Severity, rule

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster


@rule(
    "CAP106",
    "mixed-options",
    title="settings differ between ranks",
    sentence={
        "": (
            "Ranks were recorded with different options ({settings}); the first of them is {setting} on rank {ranks} "
            "and {elsewhere} elsewhere: their times are not quite comparable."
        ),
        "environment": (
            "Environment variables differ between ranks ({settings}); the first of them is {setting} on rank {ranks} "
            "and {elsewhere} elsewhere."
        ),
    },
    evidence={"settings": "what differs", "elsewhere": "on the other ranks"},
    confidence=Confidence.HIGH,
    needs="R",
    advice=("same_options",),
    advice_texts={
        "same_options": "Record all ranks with the same options and schedule.",
        "same_environment": "Give all machines the same environment; settings of the network and HCCL must agree.",
    },
    rare=True,
)
def find(ranks: "Cluster", options: Options) -> Findings:
    """Ranks were recorded or run with different settings.

    What it finds
        Options of the profiler (stacks, shapes, memory, on Ascend the level) and environment variables of the libraries
        that are not the same on all ranks.
    Why it costs time
        Recording stacks or memory slows the host of that rank down, so it looks like a straggler. Different settings of
        the communication library make ranks wait for each other or fail.
    How it is measured
        Options as the recordings state them, or by what is in them; environment variables as Ascend profiles state
        them, but those that differ by their nature (devices, ranks, addresses, paths).
    What to do
        The same schedule and options on all ranks; the same environment on all machines.

    References
        torch.profiler; msprof-analyze advisor, environment variables.
    """
    # Imported here: few runs have ranks to compare.
    from traceanalyze.ranks.results import spans

    recorded = [rank.recorded for rank in ranks.ranks]
    stated = [rank.environment for rank in ranks.ranks if rank.environment is not None]
    for sentence, sides in (("", recorded), ("environment", stated if len(stated) == len(recorded) else ())):
        differing = _differing(sides)
        if differing:
            name = differing[0]
            values = [side.get(name) or "-" for side in sides]
            count = Counter(values)
            odd = min(count, key=count.__getitem__)
            yield Finding(
                sentence=sentence,
                evidence=(
                    Evidence("settings", ", ".join(differing), "TEXT"),
                    Evidence("setting", odd, "TEXT"),
                    Evidence("elsewhere", next((each for each in values if each != odd), odd), "TEXT"),
                    Evidence("ranks", spans(_labels(ranks, values, odd)), "TEXT"),
                ),
                advice=("same_environment",) if sentence else (),
                scope=Scope(ops=differing),
                count=len(differing),
                severity=Severity.LOW,
            )


def _differing(sides: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Names whose values are not equal everywhere; what is not set counts as an empty value."""
    names = sorted({name for side in sides for name in side})
    return tuple(name for name in names if len({side.get(name, "") for side in sides}) > 1)


def _labels(ranks: "Cluster", values: Sequence[str], odd: str) -> list[str]:
    """Ranks with the rarest value."""
    return [rank.label for rank, value in zip(ranks.ranks, values, strict=True) if value == odd]
