"""Kernels of C++ by their templates: ATen, CUB, attention, and whatever else has a qualified name."""

import re

from traceanalyze.model.kernel_names.words import Call, Meaning, dtype_of, first_dtype, plain, read
from traceanalyze.model.patterns import regex

_WRAPPERS = {
    **dict.fromkeys(("gpu_kernel_impl", "gpu_kernel_impl_nocast", "gpu_index_kernel", "device_kernel"), 0),
    **dict.fromkeys(("Kernel", "Kernel2", "kernel", "enable_sm80_to_sm89", "enable_sm90", "enable_sm90_or_later"), 0),
    **dict.fromkeys(("ReduceOp", "func_wrapper_t"), 1),
    **dict.fromkeys(("BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor", "kentry"), -1),
}
"""Templates that only hold the operation, and which of their arguments it is."""


def _unwrapped(text: str) -> tuple[Call, str, list[str]]:
    """The operation inside of its wrappers, the first type that these name, and the wrappers themselves."""
    call, dtype, around = read(text), "", list[str]()
    while call.name in _WRAPPERS and call.args and not (call.name == "kernel" and dtype_of(call.args[0])):
        dtype = dtype or first_dtype(call.args)
        around.append(call.name)
        call = read(call.args[min(_WRAPPERS[call.name], len(call.args) - 1)])
    return call, dtype, around


_SCALAR = {
    **dict.fromkeys(("CUDAFunctorOnSelf", "BUnaryFunctor"), "scalar"),
    **dict.fromkeys(("CUDAFunctorOnOther", "AUnaryFunctor"), "scalar first"),
}
"""Functors of which one operand is no tensor, by how they begin."""


def _element(call: Call) -> Meaning | None:
    """A functor over elements; `vectorized_elementwise_kernel<4, FUNCTOR, …>` and its kin."""
    functor = next((arg for arg in call.args if not arg.isdecimal() and not dtype_of(arg)), "")
    inner, dtype, around = _unwrapped(functor)
    operation, direction, _ = plain(inner.name)
    if inner.name == "_cuda_scatter_gather_internal_kernel" and inner.args:
        operation = "scatter" if inner.args[0] == "true" else "gather"
        operation += " add" if "ReduceAdd" in inner.args[-1] else ""
    sizes = [arg for arg in call.args[:2] if arg.isdecimal()]
    form = f"v{sizes[0]}" if call.name.startswith("vectorized") and sizes else "×".join(sizes) or "unrolled"
    scalar = [word for each in (inner.name, *around) for start, word in _SCALAR.items() if each.startswith(start)]
    cast = "gpu_kernel_impl" in around or any("WithCast" in arg for arg in call.args)
    marks = {"form": form, "scalar": "".join(scalar), "cast": "cast" if cast else "", "lambda": inner.lambda_numbers}
    marks["inputs"] = f"{len(inner.lambda_types)} inputs" if inner.lambda_types else ""
    marks["unroll"] = "unroll" if "unroll" in call.name else ""
    marks["offsets"] = "strided" if any(arg.startswith("OffsetCalculator") for arg in call.args) else ""
    dtype = dtype or first_dtype(inner.args) or first_dtype(inner.lambda_types)
    return Meaning(operation, direction, dtype, marks=marks) if operation else None


def _reduce(call: Call) -> Meaning | None:
    """`reduce_kernel<512, 1, ReduceOp<float, func_wrapper_t<float, sum_functor<…>>, …>>`."""
    outer = read(call.args[-1] if call.args else "")
    inner, dtype, _ = _unwrapped(call.args[-1] if call.args else "")
    operation, direction, _ = plain(inner.name)
    result = dtype_of(outer.args[3]) if len(outer.args) > 3 else ""
    marks = {"result": f"→{result}" if result != dtype else "", "form": "×".join(call.args[:2])}
    marks |= {"vec": "v" + "·".join(outer.args[4:]), "lambda": inner.lambda_numbers}
    return Meaning(operation, direction, dtype or first_dtype(inner.args), marks=marks) if operation else None


_STD = {"plus": "add", "minus": "sub", "multiplies": "mul", "divides": "div"}


def _foreach(call: Call) -> Meaning | None:
    """`multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<float, …>, std::plus<float>, …>`."""
    if len(call.args) < 2:
        return None
    lists, functor, inner = read(call.args[0]), read(call.args[1]), read((*call.args, "")[2]).name
    kind, direction, _ = plain(functor.name.replace("Math", "").replace("Scalar", "").replace("List", ""))
    within = _STD.get(inner) or ("" if dtype_of(inner) else plain(inner)[0])
    if kind in {"binary", "unary", "pointwise", "binary_op_alpha", "binary_alpha", "binary_tensor"}:
        kind = f"addc{within}" if kind == "pointwise" else within or kind
    kind = kind if "adam" in kind or "sgd" in kind else f"foreach {kind}"
    marks = {"functor": functor.name, "lists": f"{lists.args[-1]}l" if lists.args else ""}
    return Meaning(kind, direction, first_dtype(functor.args), marks=marks)


def _softmax(call: Call) -> Meaning | None:
    """`softmax_warp_forward<in, out, acc, log2 of the size, is_log>`, `cunn_SoftMaxForward<ILP, in, …, Epilogue>`."""
    numbers = [arg for arg in call.args if arg.isdecimal()]
    flags = [arg for arg in call.args if arg in {"true", "false"}]
    warp = "warp" in call.name
    logarithm = (warp and flags[:1] == ["true"]) or any("LogSoftMax" in arg for arg in call.args)
    marks = {"size": "".join(f"2^{each}" if warp else f"v{each}" for each in numbers[:1])}
    operation = "log_softmax" if logarithm else "softmax"
    return Meaning(operation, plain(call.name)[1], first_dtype(call.args), marks=marks)


_TRAITS = regex(r"Flash_(?:fwd|bwd)_kernel_traits<(\d+), ?(\d+), ?(\d+)")
_CUTE = regex(r"C<(\d+)>")
_HDIM = regex(r"hdim(\d+)")
_ELEMENT = regex(r"(?:cutlass|c10)::\w*(?:bfloat16|half|e4m3|float)\w*")
_FLAGS = ("dropout", "causal", "local", "alibi", "even_MN", "even_K", "softcap", "softmax")
"""What the last arguments of `flash_fwd_kernel` switch on; older versions lack some."""
_STAGE = regex(r"Preprocess|Postprocess|Combine|splitkv|combine")


def _flash(call: Call) -> Meaning:
    """Flash attention: version 2 has traits of head and tile; version 3 a tile whose third size is the head."""
    text = f"{call.name}<{', '.join(call.args)}>"
    named, element, stage = _HDIM.search(text), _ELEMENT.search(text), _STAGE.search(text[:200])
    traits = _TRAITS.search(text)
    # Cluster of three, then M, N and head.
    sizes = [traits[2], traits[3], traits[1]] if traits else _CUTE.findall(text)[3:6] if "Mainloop" in text else []
    head, tile = (sizes[2], "×".join(sizes[:2])) if len(sizes) == 3 else (named[1] if named else "", "")
    operation = "flash_bwd" if "bwd" in text[:200].lower() else "flash_fwd"
    operation += f" {stage[0].lower()}" if stage else ""
    switches = [arg for arg in call.args if arg in {"true", "false"}] if call.name == "flash_fwd_kernel" else []
    flags = [flag for flag in _FLAGS if flag not in ("softcap", "alibi", "local")[: len(_FLAGS) - len(switches)]]
    marks = {flag: flag if switch == "true" else "" for flag, switch in zip(flags, switches, strict=False)}
    dtype = dtype_of(element[0]) if element else ""
    return Meaning(operation, "", dtype, f"hdim{head}" if head else "", tile, marks)


_READERS = (
    (regex(r"\w*elementwise_kernel|distribution_elementwise"), _element),
    (regex(r"reduce_kernel$"), _reduce),
    (regex(r"multi_tensor_apply_kernel"), _foreach),
    (regex(r"(?i)(cunn_)?softmax_?(warp|forward|backward)"), _softmax),
    (regex(r"flash_(fwd|bwd)\w*|Flash(Attn)?(Fwd|Bwd)\w*|compute_attn_ws"), _flash),
)
_NAMED = (
    (regex(r"(?i)bn_fw\w*"), "batch_norm", "fwd"),
    (regex(r"(?i)bn_bw\w*"), "batch_norm", "bwd"),
    (regex(r"GammaBetaBackward|cuCompute(Part)?GradGammaBeta"), "layer_norm weights", "bwd"),
    (regex(r"cuComputeGradInput|ln_bwd"), "layer_norm", "bwd"),
    (regex(r"ln_fwd"), "layer_norm", "fwd"),
    (regex(r"ComputeBackwardFusedParams|ComputeInternalGradients"), "group_norm params", "bwd"),
    (regex(r"ComputeFusedParams"), "group_norm params", ""),
    (regex(r"splitKreduce|\w*ReduceSplitK"), "gemm split-K sum", ""),
    (regex(r"gemv"), "gemv", ""),
    (regex(r"(?i)[sdch]?gemm(SN|k1|_?kernel|_largek)"), "gemm", ""),
    (regex(r"compute_grad_weight"), "embedding weights", "bwd"),
    (regex(r"wgrad"), "conv", "wgrad"),
    (regex(r"dgrad"), "conv", "dgrad"),
    (regex(r"(\w+_)?convolve|fprop"), "conv", ""),
    (regex(r"\w*nchwToNhwc"), "nchw→nhwc", ""),
    (regex(r"\w*nhwcToNchw"), "nhwc→nchw", ""),
)
"""Identifiers whose words alone would say less."""
_CONV = regex(r"implicit_gemm::\w*?(fprop|dgrad|wgrad)")
_CTA = regex(r"Cta_tile<[^,<>]*, ?(\d+), ?(\d+), ?(\d+)")
_CONFIG = regex(r"(?:::|<|\s)(\w+?)_config_selector(<[^<>]*)?")
_VAGUE = frozenset({"kernel", "Kernel", "Kernel2", "type", "run", "launch", "main", "operator", "execute"})
_BARE_TRITON = regex(r"triton_(?:_0\w*)?$")
_WORD = regex(r"_*[A-Za-z]\w*$", re.ASCII)


def read_cpp(name: str) -> Meaning | None:
    """What a name of C++ says, or one that is a mere identifier; None where that says nothing."""
    if conv := _CONV.search(name):
        return Meaning(
            "conv", conv[1].replace("fprop", "fwd"), "", "×".join(tile.groups()) if (tile := _CTA.search(name)) else ""
        )
    call, wrapped, _ = _unwrapped(name)
    if call.name.startswith("trampoline_kernel") and (found := _CONFIG.search(name)):
        return Meaning(f"rocprim {found[1]}", "", first_dtype((found[2] or "<")[1:].split(",")))
    reader = next((reader for pattern, reader in _READERS if pattern.match(call.name)), None)
    if reader is not None and (meant := reader(call)) is not None:
        return meant
    if call.name in _VAGUE:
        call = call._replace(name=read(call.space.removesuffix("::")).name)
    if call.name in _VAGUE or not _WORD.match(call.name) or _BARE_TRITON.match(call.name):
        return None
    return _by_words(call, wrapped, sure=name.startswith("void ") or bool(call.args) or ("::" in name and "(" in name))


_VALUE = regex(r"-?\d+|true|false")


def _by_words(call: Call, wrapped: str, *, sure: bool) -> Meaning | None:
    """By the words of the identifier itself."""
    operation, direction, layout = plain(call.name)
    for pattern, named, way in _NAMED:
        if pattern.match(call.name):
            operation, direction, layout = named, way or direction, "" if "→" in named else layout
            break
    if "::ep::" in call.space:
        operation = f"ep {operation}"
    if operation == "gemm" and "grouped" in call.space:
        operation = "grouped_gemm"
    if not operation or (not sure and not call.name.islower()):
        # A word alone that has capitals is a name as its author wants it.
        operation, direction, layout = call.name, "", ""
    nested = [inner for arg in call.args[:3] if "<" in arg for inner in read(arg).args]
    dtype = wrapped or first_dtype(call.args, floats=True) or first_dtype(nested, floats=True)
    numbers = [arg.rstrip("ul") if arg not in {"true", "false"} else arg for arg in call.args]
    marks = {f"n{place}": f"<{number}>" for place, number in enumerate(numbers) if _VALUE.fullmatch(number)}
    if types := "·".join(filter(None, map(dtype_of, call.args))):
        marks["types"] = types
    return Meaning(operation, direction, dtype, "", layout, marks, sure=sure)
