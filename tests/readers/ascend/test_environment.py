"""Settings of the vendor's libraries that an Ascend profile states are kept; everything else of them is not."""

from __future__ import annotations

import json

import pytest

from tests.ascend_builder import AscendBuilder
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.sources import expand

STATED = {
    "HCCL_BUFFSIZE": "400",
    "TASK_QUEUE_ENABLE": "2",
    "ASCEND_GLOBAL_LOG_LEVEL": "",
    "PATH": "/usr/bin",
    "SECRET_TOKEN": "x",
}


def environment(folder, metadata):
    b = AscendBuilder()
    b.step(1, 0, 100)
    b.kernel("aclnnMatMul_1", 10, 20, op_type="MatMulV2", launch=1)
    b.write(folder / "rank0_ascend_pt")
    if metadata is not None:
        (folder / "rank0_ascend_pt" / "profiler_metadata.json").write_text(json.dumps(metadata))
    (source,) = expand([str(folder)]).sources
    return read_trace(source).environment


def test_settings_of_the_libraries_are_kept_and_nothing_else(tmp_path):
    assert environment(tmp_path, {"ENV_VARIABLES": STATED}) == {
        "HCCL_BUFFSIZE": "400",
        "TASK_QUEUE_ENABLE": "2",
        "ASCEND_GLOBAL_LOG_LEVEL": "",
    }


@pytest.mark.parametrize("metadata", [None, {}, {"ENV_VARIABLES": "none"}, {"ENV_VARIABLES": None}])
def test_a_profile_that_states_none_has_none(tmp_path, metadata):
    assert environment(tmp_path, metadata) is None
