"""Texts of the rules about ranks (RNK)."""

from __future__ import annotations

TITLES: dict[str, str] = {
    "RNK101": "one rank makes the others wait",
    "RNK102": "ranks have unequal work",
    "RNK103": "slow link between two ranks",
    "RNK104": "pauses at different steps",
}

SENTENCES: dict[str, str] = {
    "RNK101": (
        "Rank {rank} makes the others wait {wait} {per} ({share}): it is last in {last_share} of the collectives."
    ),
    "RNK101_phase": (
        "Rank {rank} makes the others wait {wait} {per} ({share}): it is last in {last_share} of the collectives, "
        "because {phase} ({excess} {per})."
    ),
    "RNK102": (
        "The busiest rank computes {imbalance} longer than the mean (mean of the steps): rank {rank} {most} {per}, "
        "the least {least}."
    ),
    "RNK102_compute_and_host": (
        "The busiest rank has {imbalance} more compute, data loading and host work than the mean (mean of the steps): "
        "rank {rank} {most} {per}, the least {least}. Compute alone differs by {compute_alone}: it is the host "
        "that is slower."
    ),
    "RNK103": "Transfers {pair} ({link}) reach {bandwidth} GB/s, {below} less than usual on such links.",
    "RNK104": "Garbage collection pauses {ranks} ranks at different steps: {time} {per} more than at the same steps.",
}

ADVICE: dict[str, str] = {
    "diff_ranks": (
        "Compare that rank with another one (traceanalyze compare OTHER LATE), mend what has grown; check its clock "
        "rates and its host."
    ),
    "balance_batches": (
        "Give every rank the same number of tokens: bucket or sort by length; experts: balance loss, capacity."
    ),
    "check_link": "Check cable, port and switch between the two, and the network settings.",
    "align_pauses": "gc.disable(), and gc.collect() every N steps on all ranks; checkpoints and evaluation likewise.",
}

EVIDENCE: dict[str, str] = {
    "wait": "wait of the others",
    "last_share": "collectives in which it is last",
    "phase": "what makes it late",
    "excess": "more than the others",
    "rank": "rank",
    "imbalance": "imbalance",
    "most": "most",
    "least": "least",
    "compute_alone": "imbalance of compute alone",
    "pair": "from → to",
    "link": "kind of link",
    "below": "below the others",
    "bandwidth": "bandwidth (GB/s)",
    "ranks": "ranks",
}
