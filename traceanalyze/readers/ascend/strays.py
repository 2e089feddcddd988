"""Files that come from Ascend tools but are no profile: what each is, and what to give instead."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PROFILE = "give the folder of the profile (*_ascend_pt, *_ascend_ms): trace_view.json or the database is needed"
_INSIGHT = (
    "this is a summary that MindSpore Insight made of an old profile, which holds no events and is not supported; "
    "record with mindspore.profiler and give the *_ascend_ms folder"
)
_CLUSTER = (
    "this is the analysis of a cluster (cluster_analysis_output), not a profile; "
    "give the folder that holds the ranks' profiles (*_ascend_pt)"
)
_STRAYS = (
    (
        re.compile(
            r"hccl_raw_\d+\.csv|step_trace_raw_\d+_detail_time\.csv|flops_summary_\d+\.json"
            r"|ascend_cluster_analyse_[\w-]+\.csv|ascend_marey_timeline_\d+\.json|ascend_timeline_display_\d+\.json"
        ),
        _INSIGHT,
    ),
    (
        re.compile(
            r"cluster_(?:step_trace_time\.csv|communication(?:_matrix)?\.json|analysis\.db)|communication_group\.json"
        ),
        _CLUSTER,
    ),
    (
        re.compile(
            r"(?:kernel_details|operator_details|step_trace_time|operator_memory|memory_record|npu_module_mem|l2_cache"
            r"|data_preprocess|task_time|static_op_mem)\.csv|communication(?:_matrix)?\.json|profiler_(?:info|metadata)\w*\.json"
            r"|(?:op_summary|op_statistic|api_statistic|task_time|step_trace)(?:_slice_\d+)?(?:_\d+)?\.csv"
        ),
        f"this is one table of an Ascend profile; {_PROFILE}",
    ),
)


def stray(name: str) -> str | None:
    """What a file is that an Ascend tool names so, and what to do; None for any other name."""
    plain = PurePath(name).name
    return next((said for pattern, said in _STRAYS if pattern.fullmatch(plain)), None)


def stray_of(names: Iterable[str]) -> str | None:
    """The same of the files of a folder: the first of them that an Ascend tool names so, and what it is."""
    return next((f"{PurePath(name).name}: {said}" for name in names if (said := stray(name)) is not None), None)
