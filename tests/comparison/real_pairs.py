"""Public pairs of traces, read and compared once, however many tests look at them; skipped where the traces are not."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest

from tests.comparison.make import compared, side_of
from traceanalyze.pipeline import load

SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces"
BERT, QWEN = "gaunernst_bert-small-uncased__1016001.json.gz", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
LADDER = "torchrec_ladder/resnet18/ip-172-31-16-248.us-east-2.compute.internal_8586"
PAIRS = {
    "bert": (f"h100/{BERT}", f"mi300/{BERT}"),
    "qwen": (f"h100/{QWEN}", f"mi300/{QWEN}"),
    "resnet50": (
        "resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
        "resnet50_num_workers_4/worker0.1623212756351.pt.trace.json.gz",
    ),
    "hta": ("trace_diff/control/control.json.gz", "trace_diff/test/test.json.gz"),
    "nanogpt": (
        "2025-10-31_AdamSyncGradientHook/962d8f_modded-nanogpt-current-gpu-rank-00-chrome-trace.json.gz",
        "2025-10-31_AdamSyncGradientHook/3f01a7_modded-nanogpt-hook-gpu-rank-00-chrome-trace.json.gz",
    ),
    **{
        f"unit {name[4:6]}": (f"{name}/trace1.json", f"{name}/trace2.json")
        for name in (
            "test01_moe_fused_vs_unfused",
            "test02_attention_both_unfused",
            "test03_attention_fused_vs_unfused",
            "test04_gemm_mm_vs_linear",
            "test06_conv_gap_exceeds_roofline",
        )
    },
    "torchrec": (
        f"{LADDER}6.1698107929560561434.pt.trace.json.gz",
        f"{LADDER}7.1698107929568240321.pt.trace.json.gz",
    ),
}


@cache
def _known():
    if not SHARED.is_dir():
        return ()
    with (SHARED / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        return tuple(SHARED / row[0] for row in csv.reader(file, delimiter="\t") if row)


@cache
def _side(path):
    return side_of(load(path).traces)


def sides(name):
    """Both sides of a pair."""
    paths = []
    for end in PAIRS[name]:
        path = next((path for path in _known() if str(path).endswith(end)), None)
        if path is None or not path.exists():
            pytest.skip(f"not among the shared traces: {end}")
        paths.append(path)
    return tuple(_side(path) for path in paths)


@cache
def comparison(name, *, swapped=False):
    """The pair compared, to be read only."""
    return compared(*(sides(name)[::-1] if swapped else sides(name)))
