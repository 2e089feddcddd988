"""Which names belong to which part of a step."""

from __future__ import annotations

import pytest

from traceanalyze.model.phases import (
    Role,
    annotation_role,
    frame_role,
    hierarchy,
    is_layer_annotation,
    module_class,
    module_name,
    op_role,
)

ENGINE = "autograd::engine::evaluate_function: "


@pytest.mark.parametrize(
    ("role", "name", "roles"),
    [
        (op_role, "aten::mm", Role.NONE),
        (op_role, "MmBackward0", Role.BACKWARD),
        (op_role, f"{ENGINE}MmBackward0", Role.BACKWARD | Role.NODE),
        (op_role, f"{ENGINE}CheckpointFunctionBackward", Role.BACKWARD | Role.CHECKPOINT),
        (op_role, "torch::autograd::AccumulateGrad", Role.BACKWARD),
        (op_role, "aten::_foreach_add_", Role.FUSED),
        (op_role, "aten::_fused_adamw_", Role.FUSED),
        (op_role, "DistributedDataParallel.forward", Role.FORWARD),
        (annotation_role, "Optimizer.step#AdamW.step", Role.OPTIMIZER),
        (annotation_role, "Optimizer.zero_grad#AdamW.zero_grad", Role.ZERO_GRAD),
        (annotation_role, "FSDP.forward", Role.FORWARD),
        (annotation_role, "MmBackward0", Role.NONE),
        (frame_role, "nn.Module: Linear_0", Role.FORWARD),
        (frame_role, "torch/utils/checkpoint.py(900): recompute_fn", Role.RECOMPUTE),
        (frame_role, "torch/optim/adamw.py(200): step", Role.OPTIMIZER_FRAME),
        (frame_role, "/usr/lib/torch/optim/adamw.py(200): step", Role.OPTIMIZER_FRAME),
        (frame_role, "my_torch/optim/adamw.py(200): step", Role.NONE),
    ],
)
def test_what_a_name_says(role, name, roles):
    assert role(name) == roles


def test_modules_by_name_and_class():
    assert (module_name("nn.Module: Linear_12"), module_name("aten::mm")) == ("Linear_12", None)
    assert (module_class("Linear_12"), module_class("Conv2d"), module_class("a_1_b")) == ("Linear", "Conv2d", "a_1_b")


def test_the_path_of_a_module_from_the_root_down():
    text = "TOP(Net)::forward.conv1(Conv2d)::forward"
    assert hierarchy(text) == (("TOP", "Net"), ("conv1", "Conv2d"))
    assert hierarchy("something else") == ()


def test_annotations_of_layers():
    assert is_layer_annotation("## layer 3 ##")
    assert not is_layer_annotation("## layer 3")
