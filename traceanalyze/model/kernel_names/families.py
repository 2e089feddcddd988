"""Families of kernel names: a pattern each, whose groups are parts of the label, and a reader where need be.

Groups `operation`, `direction`, `dtype`, `m`, `n`, `k`, `layout` are those parts; all others are marks, which are shown
only where names would have equal labels. `MNK` stands for a tile. Families for which no real name was
found (Liger, Marlin, AWQ, GPTQ, cuDNN's SDPA, SYCL) have no entry: their names are read as any other.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from traceanalyze.model.kernel_names.cpp import read_cpp
from traceanalyze.model.kernel_names.words import DTYPES, Meaning, plain, run_dtype
from traceanalyze.model.patterns import regex

_HEAVY = (
    "convolution_backward convolution _scaled_mm _int_mm addmm baddbmm bmm mm _scaled_dot_product_flash_attention "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention scaled_dot_product_attention "
    "_flash_attn_backward _flash_attn_forward _native_multi_head_attention fmha_v3_fwd moe_forward flex_attention "
    "native_layer_norm_backward native_layer_norm _fused_rms_norm_backward _fused_rms_norm native_group_norm_backward "
    "native_group_norm native_batch_norm_backward _native_batch_norm_legit_functional native_batch_norm "
    "_log_softmax_backward_data _log_softmax _softmax_backward_data _softmax nll_loss_backward nll_loss_forward "
    "embedding_dense_backward embedding max_pool2d_with_indices_backward max_pool2d_with_indices avg_pool2d "
    "_adaptive_avg_pool2d native_dropout_backward native_dropout linalg_vector_norm index_put index_add scatter_add "
    "scatter gather topk sort cumsum gelu_backward gelu silu_backward silu sigmoid_backward sigmoid tanh_backward tanh "
    "threshold_backward relu hardtanh_backward hardtanh leaky_relu mse_loss argmax argmin amax amin mean sum var_mean "
    "var std prod any all cat stack constant_pad_nd upsample_nearest2d _unsafe_index index flip roll where masked_fill "
    "clamp_min clamp_max clamp exp log sqrt rsqrt pow reciprocal cos sin erf floor round bitwise_and bitwise_or "
    "bitwise_xor bitwise_not logical_and logical_or logical_not div mul sub add rsub neg abs maximum minimum lerp "
    "remainder gt ge lt le eq ne"
)
"""Operators that say what a kernel is about, most telling first."""
_LIGHT = (
    "_to_copy copy_ copy clone expand permute transpose t view _unsafe_view unsafe_view reshape slice_backward slice "
    "select_backward select split_with_sizes split squeeze unsqueeze unbind as_strided alias detach lift_fresh "
    "empty_like empty zeros_like zeros new_zeros ones_like ones full_like full scalar_tensor arange __lshift__ "
    "__rshift__ floor_divide slice_scatter select_scatter"
)
"""Named only where there is nothing else: they shape or move what others compute."""
_SHORT = {
    "_to_copy": "copy",
    "linalg_vector_norm": "norm",
    "constant_pad_nd": "pad",
    "embedding_dense_backward": "embedding bwd",
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_efficient_attention": "fmha",
}
_ROOM = 29
"""Letters of a label but for its spaces and the sign of the number."""


@cache
def _weights() -> dict[str, int]:
    return {op: weight for weight, op in enumerate(f"{_HEAVY} {_LIGHT}".split())}


@cache
def _operator() -> re.Pattern[str]:
    """An operator of several words where one stands, else the next word."""
    known = sorted((op for op in _weights() if "_" in op), key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join(map(re.escape, known))})(?=_|$)|[^_]+")


def _short(op: str) -> str:
    text = (_SHORT.get(op) or op.strip("_")).removeprefix("native_").removeprefix("fused_").removeprefix("unsafe_")
    return text.replace("_backward_data", " bwd").replace("_backward", " bwd").replace("_forward", "")


def read_triton(found: re.Match[str]) -> Meaning:
    """`triton red layer_norm+gelu #10`: pointwise, reduction, persistent or template; operators; number."""
    weights, ops = _weights(), _operator().findall(found["ops"])
    light = weights["_to_copy"]
    ordered = sorted(ops, key=lambda op: weights.get(op, light - 1))
    told = [op for op in ordered if weights.get(op, 0) < light] or ordered
    head = f"triton {found['kind']}"
    named, room = "", _ROOM - len(head) - len(found["number"])
    for op in dict.fromkeys(map(_short, told)):
        if not named or len(named) + len(op) < room:
            named = f"{named}+{op}" if named else op
    marks = {op: op.strip("_") for op in ops} | {"types": (found["types"] or "").strip("_")}
    return Meaning(f"{head} {named}", marks=marks, number=f"#{found['number']}")


_PARTS = frozenset({"operation", "direction", "dtype", "m", "n", "k", "layout"})
_DIRECTIONS = {"fprop": "fwd", "F": "fwd", "B": "bwd", "wrw": "wgrad"}


def _tile(found: re.Match[str]) -> str:
    return "×".join(filter(None, found.group("m", "n", "k")))


def _from_groups(found: re.Match[str], operation: str) -> Meaning:
    groups = {key: text for key, text in found.groupdict().items() if text}
    dtype, direction = groups.get("dtype", ""), groups.get("direction", "")
    return Meaning(
        operation or groups["operation"],
        _DIRECTIONS.get(direction, direction),
        DTYPES.get(dtype) or run_dtype(dtype),
        "×".join(groups[key] for key in "mnk" if key in groups),
        groups.get("layout", ""),
        {key: f"{text}st" if key == "stages" else text.strip("_") for key, text in groups.items() if key not in _PARTS},
    )


_TILE = regex(r"_(\d+)x(\d+)(?:x\d+)?(?=_)")
_ENDS = regex(r"_(nchw|nhwc|[tn]{2})(?=[_>])")
_EXTRAS = regex(
    r"_(stridedB|strided|splitK|sliced\w+?|align\w+?|small|medium|large|interior|xregs|relu|ldg\d+|unity_stride)(?=[_>])"
)
_SIZES = frozenset({"small", "medium", "large", "interior"})
_SAID = regex(r"<(\w+),")


def _product(found: re.Match[str]) -> Meaning | None:
    """cuBLAS, CUTLASS and cuDNN: `ampere_` + `bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn`."""
    if not found["head"]:
        return None
    rest, product = f"{found['rest']}_", found["product"]
    tile, layout, said = _TILE.search(rest), _ENDS.search(rest), _SAID.search(rest)
    depth = _TILE.search(rest, tile.end()) if tile else None
    dtype = DTYPES.get(said[1] if said else found["fast"] or found["dtype"] or "")
    if not dtype:
        # Only TF32 takes f32 into a 16×8×8 matrix instruction.
        dtype = "tf32" if found["acc"] == "s" and found["mma"].startswith("1688") else DTYPES[found["acc"][-1]]
    marks = {"stages": f"{depth[2]}st" if depth else ""}
    marks |= {"size" if text in _SIZES else text.rstrip("0123456789"): text for text in _EXTRAS.findall(rest)}
    marks |= {word: word for word in ("simt", "wmma") if word in found["head"]}
    marks |= {"mma": found["mma"], "by": found["head"].partition("_")[0]}
    sizes = [*(tile.groups() if tile else ()), *([depth[1]] if depth else ())]
    operation = ("gemm" if product == "gemm" else "conv") + (" winograd" if "winograd" in rest else "")
    direction = _DIRECTIONS.get(product, product if product.endswith("grad") else "")
    return Meaning(operation, direction, dtype, "×".join(sizes), layout[1] if layout else "", marks)


_TENSILE = {"F8": "e4m3", "B8": "e5m2", "I8": "i8", "B": "bf16", "H": "f16", "S": "f32", "D": "f64", "X": "tf32"}
_TUNING = regex(r"_([A-Z]+)([n\d]\w*?)(?=_|$)")


def _tensile(found: re.Match[str]) -> Meaning:
    """Of rocBLAS and hipBLASLt: the order of the indices tells what is transposed, the first letter the type."""
    types, layout = found["types"], ("t" if found["a"] == "lik" else "n") + ("t" if found["b"] == "jlk" else "n")
    said = _SAID.search(types)
    dtype = DTYPES.get(said[1], "") if said else _TENSILE.get(types[:2]) or _TENSILE.get(types[0], "")
    marks = {key: key + value for key, value in _TUNING.findall(found["rest"])}
    return Meaning("rocm gemm", "", dtype, _tile(found), layout, marks)


_NVJET = {"t": "bf16", "s": "f32", "h": "f16", "q": "e4m3", "r": "e5m2"}


def _nvjet(found: re.Match[str]) -> Meaning:
    """Letters of five are those of two inputs first, which stand swapped, as cuBLAS counts columns first."""
    letters, words = found["letters"], found["words"].split("_")
    inputs = [_NVJET.get(letter, "") for letter in reversed(letters[:2] if len(letters) > 3 else letters[:1])]
    marks = {"stages": f"{found['stages']}st", "cluster": found["cluster"] or "", **{word: word for word in words}}
    named = " ".join(word for word in ("splitK", "bias") if word in words)
    return Meaning("gemm", "", "·".join(filter(None, dict.fromkeys(inputs))), _tile(found), named, marks)


_REDUCES = frozenset({"AllReduce", "ReduceScatter", "Reduce"})


def _nccl(found: re.Match[str]) -> Meaning:
    """Only collective and type hold: since 2.19 one kernel, called `Sum`, `RING` and `LL`, serves all others too."""
    # A gather is built for bytes only, whatever it moves.
    words = found["words"].split("_") if found["collective"] in _REDUCES else []
    dtype = next((DTYPES[each] for each in words if each in DTYPES), "")
    return Meaning(f"nccl {plain(found['collective'])[0]}", "", dtype, literal="Dev" not in found[0])


def _fmha_sm100(found: re.Match[str]) -> Meaning:
    """TensorRT-LLM: types of input and output, H the dimension of a head, then what is masked."""
    mask = next((word.lower() for word in ("Sliding", "Causal") if word in found["rest"]), "")
    return Meaning("fmha", "", DTYPES.get(found["dtype"], ""), f"hdim{found['head']}", mask)


_BESIDE = regex(r"(?<=\d)x")


def _batched(found: re.Match[str]) -> Meaning:
    """TensorRT-LLM's generator and triton_kernels: types of the inputs as they are written there."""
    operation = found["operation"] + (" swiglu" if "swiglu" in found["rest"].lower() else "")
    return Meaning(operation, "", _BESIDE.sub("·", found["dtype"]), _tile(found), marks={"tile": _tile(found)})


def _aclnn(found: re.Match[str]) -> Meaning:
    """API, function, type: the type, and the API where it says more, as it does of the direction."""
    api, kind = found["api"].removeprefix("Inplace"), found["kind"]
    direction = "bwd" if api.endswith(("Backward", "Grad")) and "Grad" not in kind else ""
    more = "" if kind.rstrip("V0123456789") == api.rstrip("V0123456789") else f"({api})"
    marks = {"more": found["more"] or "", "in_place": "in place" if api != found["api"] else ""}
    marks["core"] = "ai_cpu" if "AiCpu" in found["function"] else ""
    return Meaning(kind, direction, "", "", more, marks)


_HCCL = frozenset({"AllReduce", "AllGather", "AllToAll", "AllToAllv", "ReduceScatter"})


def _mindspore(found: re.Match[str]) -> Meaning:
    """Type before `-op` and its number, the module before that; below `Gradients/` is the backward pass."""
    path = found["path"].split("/")
    # `gradMatMul-expand` says again what the type says.
    module = next((part for part in reversed(path) if part and not part.endswith("-expand")), "")
    module = "" if module in {"Default", "Gradients"} else module
    direction = "bwd" if path[0] == "Gradients" else ""
    kind = f"hccl {found['kind']}" if found["kind"] in _HCCL else found["kind"]
    return Meaning(kind, direction, "", "", module, {"number": f"op{found['number']}"})


def _hccl(found: re.Match[str]) -> Meaning:
    return _from_groups(found, f"hccl {found['operation']}")


Reader: TypeAlias = Callable[[re.Match[str]], Meaning | None]
Family: TypeAlias = tuple[re.Pattern[str], str | Reader]
"""Its pattern; what all of them do, empty where a group tells it, or how to read them."""


def _family(text: str, read: str | Reader = "") -> Family:
    return regex(text.replace("MNK", r"(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)"), re.VERBOSE), read


_IN_TEMPLATES = _family(
    r"""(?:[^<(]*<)?(?P<head>(?:(?:cudnn|infer|train|cutlass|maxwell|volta|turing|ampere|ada|hopper|blackwell|sm\d+|\d+
    |simt|wmma|tensorop)_)*) (?:(?P<dtype>bf16|fp16|f16|tf32|f64|h|s8)_)? (?P<acc>[sdhcizb]|g[csd])(?P<mma>\d*)
    (?P<fast>tf32|bf16|f16)? (?P<product>gemm|cudnn|fprop|dgrad|wgrad) (?P<rest>_[\w<>,]*)""",
    _product,
)
"""Matrix products and convolutions by NVIDIA, whose names also stand in templates."""
_FAMILIES: tuple[Family, ...] = (
    _family(r"(?P<operation>Mem(?:cpy|set)\b.*)"),
    _family(r"__amd_rocclr_(?P<operation>(?:copy|fill)Buffer\w*)"),
    _family(r"nccl\w*?Kernel_(?P<collective>[A-Za-z]+)(?P<words>\w*)", _nccl),
    _family(r"hcom_(?P<operation>[A-Za-z]+?)_(?:_(?P<group>\d+))?(?:_(?P<index>\d+))?(?:_(?P<turn>\d+))?_*$", _hccl),
    _family(r"triton_(?P<kind>[a-z]{3})_fused_(?P<ops>\w+?)_(?P<number>\d+)(?P<types>_0\w*)?$", read_triton),
    _family(r"Cijk_A(?P<a>ilk|lik)_B(?P<b>ljk|jlk)_(?P<types>[^\W_]+(?:<\S*?>)?)\S*?_MT MNK (?P<rest>\S*)", _tensile),
    _family(
        r"""nvjet_(?:sm\d+_)?(?P<letters>[a-z]+)_(?P<m>\d+)x(?P<n>\d+)_(?P<k>\d+)x(?P<stages>\d+)
        (?:_(?P<cluster>\d+x\d+))?_?(?P<words>\w*)""",
        _nvjet,
    ),
    _family(
        r"""sm\d+_xmma_gemm_(?P<dtype>[a-z]\w+?)_(?P<result>[a-z]\w+?)_(?P<compute>[a-z]\w+?)_(?P<layout>[tn]{2})_[tn]_
        tilesize MNK (?:_stage(?P<stages>\d+))?(?P<rest>\w*)""",
        "gemm",
    ),
    _family(
        r"""sm\d+_xmma_(?P<direction>fprop|dgrad|wgrad)_implicit_gemm(?P<how>_indexed(?:_wo_smem)?|)_(?P<dtype>[a-z]+\d\w*?)
        _(?P<result>[a-z]\w+?)_(?P<compute>[a-z]\w+?)_(?P<layout>nc?d?hwc?)[kcrst]*_(?P<out>n[chwd]+)_tilesize MNK
        (?:_stage(?P<stages>\d+))?(?P<rest>\w*)""",
        "conv",
    ),
    _family(
        r"""igemm_(?P<direction>fwd|bwd|wrw)_gtc(?P<arch>x\d*)_(?P<layout>n[chw]+)_(?P<dtype>[a-z0-9]+)_(?P<rest>\w*?)
        bt MNK _(?P<wave>wt\w+)""",
        "conv",
    ),
    _IN_TEMPLATES,
    _family(r"_?(?P<operation>matmul_ogs)_[NT]{3}_[a-z\d]+?x(?P<dtype>[a-z\dx]+)_ MNK (?P<rest>\w*)$", _batched),
    _family(r"(?P<operation>bmm|gemm)_[A-Z]\w+?_(?P<dtype>[A-Z]\w+?)_[A-Z]\w+?_t MNK (?P<rest>\w*)$", _batched),
    _family(
        r"""fmha_cutlass(?P<direction>[FB])_(?P<dtype>\w+?)_(?P<align>(?:not)?aligned)_(?P<m>\d+)x(?P<n>\d+)
        (?P<rest>\w*)""",
        "fmha",
    ),
    _family(r"fmhaSm\d+\w*?Kernel_Qkv(?P<dtype>E4m3|E5m2|Bfloat16|Fp16)O\w+?H(?P<head>\d+)(?P<rest>\w*)", _fmha_sm100),
    _family(r"MIOpen(?P<name>[A-Z]\w+)$", lambda found: Meaning(*plain(found["name"])[:2])),
    # Ascend.
    _family(r"aclnn(?P<api>[^\W_]+)_(?P<function>[^\W_]+)_(?P<kind>[^\W_]+)(?:_(?P<more>\w+))?$", _aclnn),
    _family(r"(?P<path>(?:[\w.-]+/)*)(?P<kind>[A-Za-z]\w*)-op(?P<number>\d+(?:_\d+)?)$", _mindspore),
    _family(r"trans_(?P<operation>[A-Z][A-Za-z0-9]*)_(?P<number>\d+)$"),
    _family(r"(?P<dsa>\w+)/DSA\w+$", lambda found: Meaning(found["dsa"], layout="DSA")),
    _family(r"atomic_memset-?(?P<number>[\d_]*)$", "MemSet atomic"),
    _family(r"(?P<kind>[A-Z]\w*)_MemSet$", lambda found: Meaning("MemSet", layout=f"({found['kind']})")),
    # A type of one word is a label as it is, with or without a running number: `Cast188`, `GatherV2`.
    _family(r"(?!Kernel$)(?P<kind>[A-Z]\w*)$", lambda found: Meaning(found["kind"], sure=False)),
)
"""The first that matches and reads a name decides; what none does is read as C++ or as a plain identifier."""


def meaning(name: str) -> Meaning | None:
    """What a normalised name says; None where it says nothing."""
    for pattern, read in (_IN_TEMPLATES,) if name.startswith(("void ", "at::", "std::")) else _FAMILIES:
        found = pattern.match(name)
        if found is not None:
            meant = _from_groups(found, read) if isinstance(read, str) else read(found)
            if meant is not None:
                return meant
    return read_cpp(name)
