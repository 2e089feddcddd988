"""`--lang zh` of every command that reports."""

from __future__ import annotations

from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gpu_sync", "--all"], "设备为什么空闲"),
        (["gpu_two_ranks", "--all"], "谁在等谁"),
        (["gpu_sync"], "该做什么"),
        (["npu_training"], "单步时间花在哪里"),
        (["cpu_training"], "仅 Host"),
        (["compare", "gpu_healthy", "gpu_data_loading"], "比对侧每步慢 18.34 ms"),
        (["memory", "memory/leak"], "每一步都在 train.py:31 train 留下 24.0 MiB"),
        (["gate", "gpu_data_loading", "--baseline", "gpu_healthy"], "不通过：step.time"),
    ],
)
def test_reports_are_chinese(run, arguments, said):
    known = {"compare", "memory", "gate", "--baseline", "--all"}
    result = run(*(each if each in known else str(SAMPLES / each) for each in arguments), "--lang", "zh")
    assert said in result.out


def test_rules_have_chinese_titles(run):
    assert "SYN101  " in run("rule", "--all", "--lang", "zh").out
    assert "从设备读取数值" in run("rule", "--all", "--lang", "zh").out


def test_json_has_the_same_keys_in_every_language(run):
    import json

    def keys(value):
        if isinstance(value, dict):
            return {key: keys(inner) for key, inner in value.items() if key != "text"}
        return [keys(each) for each in value] if isinstance(value, list) else None

    told = [json.loads(run(str(SAMPLES / "gpu_sync"), "--format", "json", "--lang", each).out) for each in ("en", "zh")]
    assert keys(told[0]) == keys(told[1])
    assert told[0]["reports"][0]["verdict"][0]["text"] != told[1]["reports"][0]["verdict"][0]["text"]
