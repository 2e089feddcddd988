"""Texts about the ranks of a run side by side."""

from __future__ import annotations

TABLES = {
    "rank_waits": "Who waits for whom (per step)",
    "collective_waits": "Waiting and transfer of collectives, rank by rank (sum over the steps of all ranks)",
    "rank_imbalance": "How evenly the ranks are loaded",
    "rank_steps": "Ranks step by step",
    "clock_offsets": "Clocks of the ranks",
    "links": "Traffic between ranks",
    "rank_findings": "Findings about the ranks",
    "rank_finding_evidence": "What the findings about the ranks rest on",
    "rank_rules_not_judged": "Rules about ranks that could not be judged",
}

COLUMNS = {
    "times_last": "last",
    "matched": "collectives",
    "straggler": "straggler",
    "late_because": "late because",
    "excess_ns": "more than others",
    "recorded_wait_ns": "waiting by tasks",
    "point_to_point_ns": "send/receive",
    "role": "role",
    "is_bound": "bound",
    "of_mean": "of the mean",
    "longest_part": "longest part",
    "longest_ns": "its time",
    "quantity": "quantity",
    "imbalance": "imbalance",
    "worst_imbalance": "worst step",
    "worst_step": "which",
    "most_rank": "most: rank",
    "most_ns": "most",
    "least_rank": "least: rank",
    "least_ns": "least",
    "offset_ns": "ahead",
    "residual_ns": "uncertainty",
    "skew_ns": "arrives later",
    "reference": "reference",
    "source_rank": "from",
    "target_rank": "to",
    "transfers": "transfers",
    "below_usual": "below usual",
}

COLUMN_MEANINGS = {
    "rank_waits.step_ns": "mean of the steps that all ranks recorded completely",
    "rank_waits.wait_ns": (
        "per step, duration of collectives beyond the shortest on any rank; a lower bound where ranks are missing"
    ),
    "rank_waits.share": "of the step",
    "times_last": "collectives in which no rank waited less",
    "matched": "collectives that were matched with those of other ranks and synchronise",
    "straggler": "makes a group wait again and again: last in half of the collectives and in 60 % of at least 3 steps",
    "late_because": "part of the step by which it exceeds the mean of the other ranks most",
    "excess_ns": "by how much, per step",
    "recorded_wait_ns": "per step, time in its collectives in which no plane moved data; needs no other rank",
    "rank_waits.waited_for": "rank that most of this was for; inside the group unless its ranks are known",
    "point_to_point_ns": "per step, exposed time of send and receive: in a pipeline, its bubbles",
    "role": "what the group is for, where its name says so",
    "collective_waits.collective": "type of collective",
    "collective_waits.bytes": "size of one of them",
    "collective_waits.transfer_ns": "sum of the shortest durations on any rank; an upper bound where ranks are missing",
    "collective_waits.wait_ns": "sum of what the collectives of this rank take longer; a lower bound where ranks miss",
    "collective_waits.count": "collectives of each rank",
    "is_bound": "not all ranks of the group are known to be here",
    "of_mean": "step time without waiting, over the mean of all ranks in that step",
    "rank_steps.time_ns": "step time",
    "rank_steps.wait_ns": "in collectives, beyond the shortest duration on any rank",
    "longest_part": "part of the step that takes most",
    "longest_ns": "its time",
    "quantity": "what is compared",
    "imbalance": "(maximum - mean) / mean over ranks; mean over steps",
    "worst_imbalance": "the same in the step with the largest",
    "worst_step": "the step",
    "most_rank": "rank that has most, over all steps",
    "most_ns": "per step",
    "least_rank": "rank that has least",
    "least_ns": "per step",
    "offset_ns": "by how much its clock is ahead of the reference's: median difference of the ends of collectives",
    "residual_ns": "median absolute deviation of these differences",
    "skew_ns": "median arrival after the first rank, with clocks aligned",
    "reference": "rank whose clock the others are compared with",
    "source_rank": "rank inside the group that sends",
    "target_rank": "rank inside the group that receives",
    "transfers": "recorded transfers",
    "links.bytes": "of all of them",
    "links.time_ns": "sum of their durations",
    "links.bandwidth": "bytes over time, 10⁹ bytes a second",
    "below_usual": "below the median of the other links of its kind, from 5 % on and 10 transfers",
    "rank_findings.severity": (
        "By its share of the step: high from 20 %, medium from 5 %; of those without a saving by the rule"
    ),
    "rank_findings.finding": "What was found",
    "rank_findings.saving_ns": "Estimate of the time per step without it; findings may overlap",
    "rank_findings.share": "Saving over the mean step of all ranks",
    "rank_findings.count": "Instances in the analysed steps",
    "rank_finding_evidence.evidence": "What was measured",
    "rank_finding_evidence.duration_ns": "Its value, where it is a time",
    "rank_finding_evidence.share": "Its value, where it is a share",
    "rank_finding_evidence.figure": "Its value, where it is a number",
    "rank_finding_evidence.bytes": "Its value, where it is a size",
    "rank_rules_not_judged.finding": "What the rule finds",
    "rank_rules_not_judged.saving_ns": "Not measured, with the reason",
}

TERMS = {
    "compute_and_host": "compute, data loading, host work",
    "gc": "garbage collection",
    "role_tensor": "tensor parallel",
    "role_pipeline": "pipeline",
    "role_data": "data parallel",
    "role_expert": "expert parallel",
    "role_context": "context parallel",
    "late_compute": "its compute is longer",
    "late_memory_ops": "its copies and fills are longer",
    "late_data_loading": "it waits longer for data",
    "late_dispatch": "its host launches work more slowly",
    "late_sync": "it waits longer at synchronisation points",
    "late_device_gap": "its device is idle longer between launched work",
    "late_untraced": "its device is idle longer while nothing is recorded on the host",
    "late_gc": "its garbage collector pauses it",
}

MESSAGES = {
    "straggler": "Rank {rank} makes the others wait {wait} a step ({share}).",
    "straggler_because": "Rank {rank} makes the others wait {wait} a step ({share}), because {phase}.",
    "waited_for_absent": (
        "In collectives the recorded ranks wait {wait} a step ({share}), most of it for rank {rank} of the group, which"
        " was not recorded."
    ),
    "waits_bounded": "Ranks {ranks} were not recorded: transfers are upper, waits lower bounds, nobody is blamed.",
    "waits_perhaps_bounded": (
        "Nothing tells whether all ranks are here: transfers are upper bounds, waits lower bounds, nobody is blamed."
    ),
    "matching_stopped_kind": (
        "{count} collectives are not matched: ranks run different types in the same place (steps: {steps})."
    ),
    "matching_stopped_bytes": (
        "{count} collectives are not matched: ranks state different sizes in the same place (steps: {steps})."
    ),
    "matching_stopped_count": ("{count} collectives are not matched: ranks do not have equally many (steps: {steps})."),
    "collectives_outside_steps": "{count} collectives of all ranks lie outside the steps that all ranks recorded.",
}

REASONS = {
    "no_matched_collectives": "the ranks share no collectives for which waiting is defined",
    "ranks_missing": "not all ranks of any group are known to be recorded",
    "few_steps_for_stragglers": "needs at least 3 steps that all ranks recorded completely",
    "no_common_steps": "the ranks recorded no step in common",
    "clocks_too_uneven": "the clocks of the ranks cannot be aligned well enough",
    "no_recorded_pauses": "not every rank tells about its garbage collector",
}
