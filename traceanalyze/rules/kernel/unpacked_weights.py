import re

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.columns import occurs
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.patterns import regex
from traceanalyze.replay.parts import shorter
from traceanalyze.replay.replay import together
from traceanalyze.rules.common.computing import PRODUCTS, Computing, compute_finding, computing, fits, part_of_compute
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Findings, Options, rule

_DEQUANTISE = r"(?i)(de|anti)_?quant|unpack_?(u?int)?[2348]"
_PRODUCT = r"(?i)gemm|gemv|matmul|(^|_)mm(_|$)"
"""Kernels that unpack inside the product."""
_FILL = r"(?i)fill|zeros"
_PASSES = KernelGroup.ELEMENTWISE, KernelGroup.LAYOUT, KernelGroup.OTHER
_CHAIN = regex(r"f?D[Def]*P")
"""Dequantisation into a tensor that may be filled before, with elementwise work up to the product that uses it."""


@rule(
    "KRN120",
    "unpacked-weights",
    title="weights unpacked before every product",
    sentence={
        "": "Weights are dequantised before every product that uses them, {time} {per} ({part} of compute).",
        "cast": (
            "Weights are dequantised and then converted before every product that uses them, {time} {per} ({part} of "
            "compute), of which the conversion alone takes {cast}."
        ),
    },
    evidence={"cast": "conversion alone"},
    confidence=Confidence.MEDIUM,
    needs="D",
    advice_texts={
        "fused_dequantise": (
            "Dequantise straight into the type of the product (bitsandbytes: bnb_4bit_compute_dtype=torch.bfloat16 and "
            "weights quantised from it), compile the dequantisation (torch.compile fuses the conversion), or use "
            "kernels that unpack inside the product (torchao int4, Marlin, GemLite)."
        ),
        "keep_unpacked": "With memory to spare keep the weights in 16 bits.",
    },
    options={
        "share": (0.02, "own: of compute"),
        "fused": (0.5, "own: of a conversion, which reads as much as it writes; one kernel for both only writes"),
    },
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Quantised weights are unpacked into memory before every product.

    What it finds
        Kernels that dequantise, the elementwise kernels after them, and the matrix product that follows, on one stream.
    Why it costs time
        The whole weight is written, often converted by a second kernel that reads and writes it again, and then read by
        the product: several times the memory traffic of the product itself.
    How it is measured
        Device time of the kernels from the first that dequantises up to the product, by their names, from 2 % of
        compute on. One kernel that dequantises into the right type takes about half as long as the conversion that it
        makes needless: the rest is the saving. Without a conversion half of the time. At most all of it, with kernels
        that unpack inside the product.
    What to do
        Dequantise straight into the type of the product, compile the dequantisation, or use kernels that unpack inside
        the product.

    References
        QLoRA (arXiv:2305.14314); torchao; bitsandbytes.
    """
    work = facts.once(computing)
    unpacks = fits(facts, work.name, _DEQUANTISE) & ~fits(facts, work.name, _PRODUCT)
    if not unpacks.any():
        return
    chosen, casts, kept = _chains(facts, work, unpacks)
    if not len(chosen) or part_of_compute(facts, chosen) < options.number("share"):
        return
    time, cast = facts.per_step(work.time[chosen]), facts.per_step(work.time[casts])
    saving = time - round(options.number("fused") * cast) if len(casts) else time // 2
    left = (time - saving) / max(facts.per_step(work.time[kept]), 1)
    others = np.setdiff1d(chosen, kept)
    yield compute_finding(
        facts,
        chosen,
        saving=saving,
        change=together(
            without(facts, work.event[others]), shorter(facts.context, work.event[kept], max(0.0, 1 - left))
        ),
        bound=time,
        sentence="cast" if len(casts) else "",
        codes=work.name,
        evidence=(Evidence("cast", cast, "DURATION"),) if len(casts) else (),
    )


def _chains(
    facts: Facts, work: Computing, unpacks: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows of all chains, of the conversion of each that has one, and of the kernel of each that stays.

    The longest element-wise kernel is the conversion, the longest that unpacks stays.
    """
    stream = facts.context.device.stream[work.event]
    order = np.lexsort((work.start, stream))
    letter = np.full(len(order), ord("."), np.uint8)
    letter[occurs(work.group[order], _PASSES)] = ord("e")
    letter[fits(facts, work.name, _FILL)[order]] = ord("f")
    letter[occurs(work.group[order], PRODUCTS)] = ord("P")
    # Of the operator of a product, too, the name of the kernel tells what it does.
    letter[unpacks[order]] = ord("D")
    opens = np.flatnonzero(np.diff(stream[order])) + 1
    text = np.insert(letter, opens, ord(";")).tobytes().decode("latin-1")
    place = np.insert(order, opens, -1)
    found = [place[match.start() : match.end() - 1] for match in re.finditer(_CHAIN.pattern, text)]
    return _every(found), _longest(work, found, ~unpacks), _longest(work, found, unpacks)


def _every(runs: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *runs])


def _longest(work: Computing, runs: list[NDArray[np.int64]], chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The longest of the chosen kernels of each run that has any."""
    rows = (run[chosen[run]] for run in runs)
    return np.array([row[np.argmax(work.time[row])] for row in rows if len(row)], np.int64)
