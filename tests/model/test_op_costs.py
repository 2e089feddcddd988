"""FLOP and bytes of operator calls, computed on paper."""

import json

import pytest

from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.op_calls import parse_call
from traceanalyze.model.op_costs import broadcast, cost_of


def cost(op, dims, values=None, dtype="float"):
    types = [dtype if d else "Scalar" for d in dims]
    call = parse_call(op, json.dumps(dims), json.dumps(types), None if values is None else json.dumps(values))
    return cost_of(call)


def amounts(*args, **more):
    found = cost(*args, **more)
    return found.flop, found.bytes


@pytest.mark.parametrize(
    ("op", "dims", "flop", "elements"),
    [
        ("aten::mm", [[2, 3], [3, 5]], 60, 6 + 15 + 10),
        ("aten::mm", [[2, 3], [3, 5], [2, 5]], 60, 6 + 15 + 10),  # the third is the tensor to write to
        ("aten::addmm", [[5], [2, 3], [3, 5], [], []], 60, 5 + 6 + 15 + 10),
        ("aten::addmm_", [[2, 5], [2, 3], [3, 5], [], []], 60, 10 + 6 + 15 + 10),
        ("aten::_addmm_activation", [[5], [2, 3], [3, 5], [], []], 60, 5 + 6 + 15 + 10),
        ("aten::_scaled_mm", [[2, 3], [3, 5], [], []], 60, 6 + 15 + 10),
        ("aten::_int_mm", [[2, 3], [3, 5]], 60, 6 + 15 + 10),
        ("aten::bmm", [[4, 2, 3], [4, 3, 5]], 240, 4 * (6 + 15 + 10)),
        ("aten::baddbmm", [[4, 2, 5], [4, 2, 3], [4, 3, 5]], 240, 4 * (10 + 6 + 15 + 10)),
        ("aten::linear", [[7, 2, 3], [5, 3], [5]], 7 * 60, 42 + 15 + 5 + 70),
        ("aten::mv", [[2, 3], [3]], 12, 6 + 3 + 2),
        ("aten::addmv", [[2], [2, 3], [3], [], []], 12, 2 + 6 + 3 + 2),
        ("aten::addbmm", [[2, 5], [4, 2, 3], [4, 3, 5], [], []], 240, 10 + 4 * (6 + 15) + 10),
        ("aten::_grouped_mm", [[8, 3], [4, 3, 5], [4], [], []], 240, 24 + 60 + 40),
        ("aten::_grouped_mm", [[2, 12], [12, 5], [4], [], []], 240, 24 + 60 + 4 * 10),
        ("aten::_grouped_mm", [[4, 2, 3], [4, 3, 5], [], [], []], 240, 24 + 60 + 40),
        ("aten::_grouped_mm", [[4, 2, 3], [3, 20], [4], [], []], 240, 24 + 60 + 40),
        ("aten::matmul", [[4, 1, 2, 3], [6, 3, 5]], 24 * 60, 24 + 90 + 240),
        ("aten::matmul", [[3], [3, 5]], 30, 3 + 15 + 5),
    ],
)
def test_matrix_products(op, dims, flop, elements):
    found = cost(op, dims)
    assert (found.group, found.flop, found.bytes) == (KernelGroup.MATMUL, flop, 4 * elements)


def test_an_eight_bit_product_is_sixteen_bits_wide():
    assert amounts("aten::_scaled_mm", [[2, 3], [3, 5]], dtype="c10::Float8_e4m3fn") == (60, 6 + 15 + 2 * 10)


def test_matrices_that_do_not_fit_have_no_cost():
    assert amounts("aten::mm", [[2, 3], [4, 5]]) == (None, None)
    assert amounts("aten::matmul", [[2, 2, 3], [5, 3, 4]]) == (None, None)


def test_a_forward_convolution():
    # Output 8 × 16 × 16 × 16: (32 + 2·1 - 3) // 2 + 1 = 16; weight 16 × 3 × 3 × 3.
    outputs = 8 * 16 * 16 * 16
    expected = 2 * outputs * 27, 4 * (8 * 3 * 32 * 32 + 16 * 27 + outputs)
    dims = [[8, 3, 32, 32], [16, 3, 3, 3], [], [], [], [], [], [], []]
    plain = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    assert amounts("aten::convolution", dims, plain) == expected
    cudnn = ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"]
    assert amounts("aten::cudnn_convolution", dims, cudnn) == expected


def test_groups_and_dilation():
    dims = [[1, 8, 9], [8, 1, 3], [], [], [], [], [], [], []]
    plain = ["", "", "", "[1]", "[0]", "[2]", "False", "[0]", "8"]
    assert amounts("aten::convolution", dims, plain)[0] == 2 * (8 * 5) * 3  # 9 - 2·2 = 5 outputs


def test_a_transposed_convolution_multiplies_its_input():
    dims = [[1, 4, 5, 5], [4, 2, 2, 2], [], [], [], [], [], [], []]
    plain = ["", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"]
    assert amounts("aten::convolution", dims, plain) == (2 * 4 * 25 * 8, None)


def test_a_backward_convolution_costs_one_product_a_gradient():
    dims = [[8, 16, 16, 16], [8, 3, 32, 32], [16, 3, 3, 3], [], [], [], [], [], [], [], []]
    plain = ["", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    one = 2 * 8 * 16 * 16 * 16 * 27
    given = 8 * 16 * 256 + 8 * 3 * 1024 + 16 * 27
    both = amounts("aten::convolution_backward", dims, [*plain, "[True, True, False]"])
    assert both == (2 * one, 4 * (given + 8 * 3 * 1024 + 16 * 27))
    weight = amounts("aten::convolution_backward", dims, [*plain, "[False, True, False]"])
    assert weight == (one, 4 * (given + 16 * 27))
    assert amounts("aten::convolution_backward", dims) == (None, None)


def test_a_convolution_has_weights_of_three_dimensions_at_least():
    assert amounts("aten::cudnn_convolution_transpose", [[4, 8, 5], [8, 3, 2]]) == (2 * (4 * 8 * 5) * (3 * 2), None)
    assert amounts("aten::cudnn_convolution_transpose", [[4, 8], [8, 3]]) == (None, None)
    assert amounts("aten::cudnn_convolution_transpose", [[], [8, 3, 2]]) == (None, None)


def test_a_forward_convolution_needs_its_stride():
    assert amounts("aten::cudnn_convolution", [[8, 3, 32, 32], [16, 3, 3, 3]]) == (None, None)


def flash(causal, *, queries=100, keys=100):
    dims = [[2, queries, 4, 64], [2, keys, 4, 64], [2, keys, 4, 64], *[[]] * 8]
    return amounts("aten::_flash_attention_forward", dims, [*[""] * 7, "0.", causal], dtype="c10::Half")


def test_attention_has_two_products_and_a_causal_mask_halves_them():
    every = 4 * 2 * 4 * 100 * 100 * 64
    assert flash("False") == (every, 2 * 4 * 2 * 100 * 4 * 64)
    assert flash("True")[0] == every * 101 // 200
    assert flash("False", queries=1)[0] == every // 100
    assert flash("True", queries=50)[0] is None
    assert flash("")[0] is None


def test_attention_backward_has_five_products():
    shape = [2, 4, 100, 64]
    dims = [shape, shape, shape, shape, shape, [2, 4, 100], *[[]] * 7]
    values = [*[""] * 10, "0.", "False"]
    found = amounts("aten::_scaled_dot_product_flash_attention_backward", dims, values, dtype="c10::Half")
    assert found == (10 * 2 * 4 * 100 * 100 * 64, 2 * 8 * 2 * 4 * 100 * 64)


def test_packed_sequences_have_no_cost():
    dims = [[500, 4, 64]] * 3 + [[]] * 6
    assert amounts("aten::_flash_attention_forward", dims, [""] * 9) == (None, None)


@pytest.mark.parametrize(
    ("op", "signature"),
    [
        (
            "aten::_flash_attention_forward",
            "query key value ends ends longest longest dropout causal mask scale window",
        ),
        (
            "flash_attn::_flash_attn_varlen_forward",
            "query key value ends ends longest longest dropout scale causal window",
        ),
        ("torch_attn::_varlen_attn", "query key value ends ends longest longest causal"),
        ("aten::_efficient_attention_forward", "query key value bias ends ends longest longest dropout causal"),
        (
            "aten::_flash_attention_backward",
            "grad query key value out sums ends ends longest longest dropout causal state unused scale window",
        ),
    ],
)
def test_sequences_one_after_the_other_attend_to_themselves(op, signature):
    """5 sequences, 500 tokens: what they cost follows where all are as long as the longest, else only the bytes do."""
    names = signature.split()
    token = {"query": [500, 4, 64], "key": [500, 4, 64], "value": [500, 4, 64], "ends": [6]}
    backward = names[0] == "grad"
    moved = 4 * 4 * 500 * 4 * 64 * (2 if backward else 1)

    def cost(longest, causal="False", window="-1"):
        stated = {"longest": longest, "causal": causal, "window": window}
        found = amounts(op, [token.get(name, []) for name in names], [stated.get(name, "") for name in names])
        return (found[0] * 2 // 5 if backward and found[0] else found[0]), found[1]

    assert cost("100") == (4 * 5 * 4 * 100 * 100 * 64, moved)
    assert cost("100", causal="True") == (4 * 5 * 4 * 5050 * 64, moved)
    assert cost("200") == (None, moved)
    assert cost("") == (None, moved)
    assert cost("100", window="16") == (None if "window" in names else cost("100")[0], moved)


@pytest.mark.parametrize(
    ("op", "dims", "elements"),
    [
        ("aten::relu", [[6, 5]], 60),
        ("aten::add_", [[6, 5], [5], []], 65),
        ("aten::mul", [[6, 1], [1, 5]], 6 + 5 + 30),
        ("aten::mul", [[6, 5], [], [6, 5]], 60),
        ("aten::where", [[6, 5], [6, 5], [6, 5]], 120),
        ("aten::fill_", [[6, 5], []], 30),
        ("aten::copy_", [[6, 5], [6, 5], []], 60),
        ("aten::native_layer_norm", [[6, 5], [], [5], [5], []], 30 + 10 + 30),
        ("aten::_softmax", [[6, 5], [], []], 60),
    ],
)
def test_operators_bound_by_memory(op, dims, elements):
    found = cost(op, dims)
    assert (found.flop, found.bytes, found.moves_only) == (None, 4 * elements, True)


def test_a_comparison_writes_bytes():
    assert amounts("aten::eq", [[6, 5], [6, 5]])[1] == 4 * 60 + 30


def test_operators_without_a_formula():
    assert cost("aten::sort", [[6, 5]]) is None
    assert cost("aten::linalg_vector_norm", [[6, 5]]) is None
    assert cost("aten::relu", [[]]) is None


def test_lists_of_tensors_and_damaged_shapes_are_no_shapes():
    call = parse_call("aten::cat", "[[[2, 3], [2, 3]], []]", '["TensorList", "Scalar"]', None)
    assert call.shapes == (None, ())
    assert parse_call("aten::mm", "[[2, 3], [3", "[]", None) is None
    assert parse_call("aten::mm", "{}", "[]", None) is None


def test_an_unknown_element_type_has_no_bytes():
    assert amounts("aten::mm", [[2, 3], [3, 5]], dtype="mystery") == (60, None)


@pytest.mark.parametrize(
    ("shapes", "common"),
    [(((2, 3), (3,)), (2, 3)), (((2, 1), (1, 4)), (2, 4)), (((2,), (3,)), None), (((), ()), ())],
)
def test_broadcast(shapes, common):
    assert broadcast(*shapes) == common


def test_impossible_arguments_have_no_cost():
    dims = [[8, 3, 32, 32], [16, 3, 3, 3], [], [], [], [], [], [], []]
    for stride, padding in (("[0, 0]", "[1, 1]"), ("[1, 1]", "[-20, -20]"), ("stride", "[1, 1]"), ("[[1]]", "[1]")):
        plain = ["", "", "", stride, padding, "[1, 1]", "False", "[0, 0]", "1"]
        assert amounts("aten::convolution", dims, plain) == (None, None)
    assert amounts("aten::mm", [[1 << 30, 1 << 30], [1 << 30, 2]]) == (None, None)


SIGNATURES = [
    ("conv1d", "input weight bias stride padding dilation groups"),
    ("conv2d", "input weight bias stride padding dilation groups"),
    ("conv3d", "input weight bias stride padding dilation groups"),
    ("convolution", "input weight bias stride padding dilation transposed output_padding groups"),
    ("_convolution", "input weight bias stride padding dilation transposed output_padding groups"),
    ("cudnn_convolution_relu", "input weight bias stride padding dilation groups"),
    ("miopen_convolution_relu", "input weight bias stride padding dilation groups"),
    ("cudnn_convolution", "input weight padding stride dilation groups"),
    ("cudnn_convolution_add_relu", "input weight z alpha bias stride padding dilation groups"),
    ("miopen_convolution", "input weight bias padding stride dilation groups"),
    ("miopen_depthwise_convolution", "input weight bias padding stride dilation groups"),
    ("_conv_depthwise2d", "input weight kernel_size bias stride padding dilation"),
    ("_slow_conv2d_forward", "input weight kernel_size bias stride padding"),
]
"""As PyTorch declares the operators."""


@pytest.mark.parametrize(("op", "signature"), SIGNATURES)
def test_arguments_of_convolutions_are_where_pytorch_has_them(op, signature):
    names = signature.split()
    given = {"stride": "[2]", "padding": "[3]", "dilation": "[4]", "transposed": "False"}
    dims = [{"input": [1, 1, 20], "weight": [1, 1, 4]}.get(name, []) for name in names]
    outputs = (20 + 6 - (12 if "dilation" in names else 3) - 1) // 2 + 1
    found = amounts(f"aten::{op}", dims, [given.get(name, "") for name in names])
    assert found == (2 * outputs * 4, 4 * (20 + 4 + outputs))


def test_one_value_stands_for_all_dimensions_and_missing_ones_are_one():
    dims = [[1, 1, 20, 20], [1, 1, 4, 4], [], [], [], [], []]
    outputs = 9 * 9  # (20 - 3 - 1) // 2 + 1
    assert amounts("aten::conv2d", dims, ["", "", "", "2", "[0, 0]", "[1, 1]", "1"])[0] == 2 * outputs * 16
    wide = [[1, 1, 20, 20, 20], [1, 1, 4, 4, 4], [], [], [], [], []]
    assert amounts("aten::conv3d", wide, ["", "", "", "[2, 2]", "0", "1", "1"])[0] == 2 * 9 * 9 * 17 * 64


ATTENTION = [
    ("_scaled_dot_product_flash_attention", "query key value dropout_p is_causal"),
    ("_scaled_dot_product_flash_attention_for_cpu", "query key value dropout_p is_causal"),
    ("_scaled_dot_product_efficient_attention", "query key value bias log_sumexp dropout_p is_causal"),
    ("_scaled_dot_product_cudnn_attention", "query key value bias log_sumexp dropout_p is_causal"),
    ("_flash_attention_forward", "query key value seq_q seq_k max_q max_k dropout_p is_causal"),
    ("_efficient_attention_forward", "query key value bias seq_q seq_k max_q max_k dropout_p is_causal"),
    ("_cudnn_attention_forward", "query key value bias seq_q seq_k max_q max_k log_sumexp dropout_p is_causal"),
    (
        "_scaled_dot_product_flash_attention_backward",
        "grad query key value out logsumexp seq_q seq_k max_q max_k dropout_p is_causal",
    ),
    (
        "_scaled_dot_product_efficient_attention_backward",
        "grad query key value bias out logsumexp seed offset dropout_p grad_input_mask is_causal",
    ),
    (
        "_scaled_dot_product_cudnn_attention_backward",
        "grad query key value out logsumexp seed offset bias seq_q seq_k max_q max_k dropout_p is_causal",
    ),
    ("_flash_attention_backward", "grad query key value out logsumexp seq_q seq_k max_q max_k dropout_p is_causal"),
    (
        "_efficient_attention_backward",
        "grad query key value bias out seq_q seq_k max_q max_k logsumexp dropout_p seed offset is_causal",
    ),
    (
        "_cudnn_attention_backward",
        "grad query key value out logsumexp seed offset bias seq_q seq_k max_q max_k dropout_p is_causal",
    ),
]
"""`is_causal` also stands for the type of mask of memory-efficient attention."""


@pytest.mark.parametrize(("op", "signature"), ATTENTION)
def test_arguments_of_attention_are_where_pytorch_has_them(op, signature):
    names = signature.split()
    heads_last = op in {
        f"_{kind}_attention_{way}" for kind in ("flash", "efficient") for way in ("forward", "backward")
    }
    # 2 sequences of 6, 3 heads of 8 for query and key and of 4 for values.
    wide, narrow = ([2, 6, 3, 8], [2, 6, 3, 4]) if heads_last else ([2, 3, 6, 8], [2, 3, 6, 4])
    dims = [{"query": wide, "key": wide, "value": narrow}.get(name, []) for name in names]
    backward = names[0] == "grad"
    for causal, pairs in (("False", 36), ("True", 21), ("0", 36), ("1", 21), ("2", 21)):
        values = [causal if name == "is_causal" else "" for name in names]
        flop = 2 * 6 * pairs * (8 + 4)
        # Query and key of 288 elements, value and output of 144.
        moved = 4 * (2 * 288 + 2 * 144) * (2 if backward else 1)
        assert amounts(f"aten::{op}", dims, values) == (flop * 5 // 2 if backward else flop, moved)


def test_a_transposed_backward_convolution_multiplies_its_input():
    dims = [[1, 2, 10, 10], [1, 4, 5, 5], [4, 2, 2, 2], [], [], [], [], [], [], [], []]
    plain = ["", "", "", "[0]", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1", "[True, False, False]"]
    assert amounts("aten::convolution_backward", dims, plain)[0] == 2 * 4 * 25 * 8


@pytest.mark.parametrize(("size", "usable"), [(1 << 38, True), ((1 << 38) + 1, False)])
def test_a_tensor_that_fits_no_device_is_damage(size, usable):
    assert (parse_call("aten::relu", f"[[{size}]]", '["float"]', None).shapes[0] is not None) == usable


@pytest.mark.parametrize(
    ("op", "dims", "strides", "flop", "elements"),
    [
        # One row that all rows repeat: 8 of 32 elements are there.
        ("aten::add", [[4, 8], [4, 8], []], [[8, 1], [0, 1], []], None, 32 + 8 + 32),
        ("aten::mul", [[4, 8], [4, 8]], [[0, 0], [8, 1]], None, 1 + 32 + 32),
        ("aten::bmm", [[4, 2, 3], [4, 3, 5]], [[6, 3, 1], [0, 5, 1]], 240, 24 + 15 + 40),
        ("aten::mm", [[2, 3], [3, 5]], [[3, 1], [1, 3]], 60, 6 + 15 + 10),
        ("aten::relu", [[4, 0]], [[0, 1]], None, 0),
        # Written once, not read: it stands behind what the operator reads.
        ("aten::_softmax", [[4, 8], [], [], [4, 8]], None, None, 2 * 32),
        ("aten::_softmax_backward_data", [[4, 8], [4, 8], [], [], [4, 8]], None, None, 3 * 32),
        ("aten::add", [[4, 8], [4, 8], [], [4, 8]], None, None, 3 * 32),
        ("aten::relu", [[4, 8], [4, 8]], None, None, 2 * 32),
    ],
)
def test_what_is_repeated_is_read_once_and_what_is_written_to_is_not_read(op, dims, strides, flop, elements):
    types = ["float" if shape else "Scalar" for shape in dims]
    call = parse_call(op, json.dumps(dims), json.dumps(types), None, None if strides is None else json.dumps(strides))
    found = cost_of(call)
    assert (found.flop, found.bytes) == (flop, 4 * elements)


def test_keys_and_values_of_grouped_attention_are_read_once():
    """Of 8 heads of queries 2 heads of keys and values are there, each repeated."""
    dims = json.dumps([[1, 8, 16, 32]] * 3)
    strides = json.dumps([[4096, 512, 32, 1], [512, 0, 32, 1], [512, 0, 32, 1]])
    call = parse_call("aten::_scaled_dot_product_flash_attention", dims, '["float", "float", "float"]', None, strides)
    assert cost_of(call).bytes == 4 * (4096 + 512 + 512 + 4096)
