"""Which names belong to which part of a training step (definitions §10).

And to iterations of an inference server, which are forwards of the model on one batch (§3):

`execute_32_context_2(sq96sk128…)_generation_30(sq30sk900…)`, `execute_context_2(96)_generation_30(30)`
    vLLM 0.11 and later, and tools that patch SGLang. Context requests are prefill, generation requests decode, both
    are mixed; `sq` or the number in brackets are tokens.
`execute_new_2_cached_30`
    vLLM of 2025. New requests are prefill, cached ones decode (a prompt's later chunks count as cached).
`step[DECODE bs=32]`, `step[EXTEND bs=2 toks=96]`
    SGLang. EXTEND and PREFILL are prefill, DECODE is decode with one token a request, MIXED is mixed; of other modes
    it is not known.
`prefill`, `model.decode`, `forward_decode`, `Decode step 3`
    Any program: the whole word; both words are mixed.
`execute_model`
    vLLM, other programs. The phase is not known.
`vllm/v1/worker/gpu_model_runner.py(3380): execute_model`, …
    The function that the loop of a server calls for every batch, where Python functions were recorded (`served_by`).

Of several styles in one recording the one that stands higher here counts, because they lie inside each other.
Captures of device graphs (`capture_32_DECODE`) and warm-up are no iterations.
"""

import re
from collections.abc import Callable
from enum import IntEnum, IntFlag
from typing import NamedTuple

from traceanalyze.model.patterns import regex

OPTIMIZER_STEP = regex(r"^Optimizer\.step#")
"""The range that torch records around a step of an optimizer."""
_BACKWARD = regex(r"autograd::engine::evaluate_function: |torch::autograd::AccumulateGrad|.*Backward\d*$")
_ZERO_GRAD = regex(r"Optimizer\.zero_grad#")
_FORWARD = regex(r".*\.forward$")
_MODULE_FRAME = "nn.Module: "


class Role(IntFlag):
    """What the name of a host event says about the time inside it; a name may say several things."""

    NONE = 0
    BACKWARD = 1
    CHECKPOINT = 2
    """Runs forward operators again, then their backward pass."""
    NODE = 4
    """A step of the backward pass, also where it lies inside CHECKPOINT."""
    FUSED = 8
    """Updates many parameters at once."""
    OPTIMIZER = 16
    ZERO_GRAD = 32
    FORWARD = 64
    RECOMPUTE = 128
    OPTIMIZER_FRAME = 256


_OPS = (
    (Role.BACKWARD, _BACKWARD),
    (Role.CHECKPOINT, regex(r".*CheckpointFunctionBackward$")),
    (Role.NODE, regex(r"autograd::engine::evaluate_function: (?!.*CheckpointFunctionBackward)")),
    (Role.FUSED, regex(r"aten::_(fused|foreach)_")),
    (Role.FORWARD, _FORWARD),
)
_ANNOTATIONS = ((Role.OPTIMIZER, OPTIMIZER_STEP), (Role.ZERO_GRAD, _ZERO_GRAD), (Role.FORWARD, _FORWARD))
_FRAMES = ((Role.RECOMPUTE, regex(r".*\brecompute_fn$")), (Role.OPTIMIZER_FRAME, regex(r"(.*/)?torch/optim/")))


def op_role(name: str) -> int:
    """Roles of an operator."""
    return _roles(_OPS, name)


def annotation_role(name: str) -> int:
    """Roles of a user annotation."""
    return _roles(_ANNOTATIONS, name)


def frame_role(name: str) -> int:
    """Roles of a Python function."""
    return Role.FORWARD if name.startswith(_MODULE_FRAME) else _roles(_FRAMES, name)


def _roles(known: tuple[tuple[Role, re.Pattern[str]], ...], name: str) -> int:
    return sum(role for role, pattern in known if pattern.match(name))


def module_class(name: str) -> str:
    """Class of a module that is called by its class and a number."""
    return re.sub(r"_\d+$", "", name)


def module_name(event: str) -> str | None:
    """Name of the module that a Python event is a call of."""
    return event[len(_MODULE_FRAME) :] if event.startswith(_MODULE_FRAME) else None


def is_layer_annotation(name: str) -> bool:
    """A user annotation that marks a part of the model, `## name ##`."""
    return re.fullmatch(r"##.*##", name) is not None


def hierarchy(text: str) -> tuple[tuple[str, str], ...]:
    """Names and classes from the root down of `TOP(Net)::forward.conv1(Conv2d)::forward`.

    Of a kernel's `layers.0.attention.wq`, which tells no classes, each is its place without the number of the layer.
    """
    parts = (re.fullmatch(r"\.?([^()]+)\(([^()]*)\)", part.strip()) for part in text.split("::forward"))
    found = tuple((part[1], part[2]) for part in parts if part)
    if found or not re.fullmatch(r"[\w.-]+", text):
        return found
    names = [part for part in text.split(".") if part]
    return tuple((name, re.sub(r"(?<=\.)\d+(?=\.|$)", "*", ".".join(names[: at + 1]))) for at, name in enumerate(names))


class InferencePhase(IntEnum):
    """What an iteration does for its requests."""

    PREFILL = 0
    """Reads prompts."""
    DECODE = 1
    """Generates the next tokens."""
    MIXED = 2
    OTHER = 3
    """The name does not tell."""


class Iteration(NamedTuple):
    """What the name of an iteration tells; None for what it does not."""

    phase: InferencePhase
    requests: int | None = None
    tokens: int | None = None
    """Tokens that go into the model."""


_CONTEXT = regex(
    r"execute_(?:\d+_)?context_(?P<new>\d{1,9})(?:\((?P<new_of>[^()]*)\))?"
    r"_generation_(?P<old>\d{1,9})(?:\((?P<old_of>[^()]*)\))?"
)
_NEW = regex(r"execute_new_(?P<new>\d{1,9})_cached_(?P<old>\d{1,9})")
_STEP = regex(r"step\[(?P<mode>[A-Z][A-Z_]+)(?: bs=(?P<requests>\d{1,9}))?(?: toks=(?P<tokens>\d{1,9}))?[^\]]*\]")
_MODEL = regex(r"(.*[.:/ ])?execute_model(_?\d+)?")
_WORD = regex(r"(?<![a-z])(prefill|decode)(?![a-z])", re.IGNORECASE)
_NO_ITERATION = regex(r"captur|warm_?up|image|jpe?g|png|video|audio|base64|json|utf|batch_decode", re.IGNORECASE)
_TOKENS = regex(r"(?:sq)?(\d{1,9})(?!\d)")
_LOOP = regex(
    r"(.*/)?(vllm(_ascend)?/(v1/)?worker/\w*model_runner(_v1)?\.py\(\d+\): execute_model"
    r"|sglang/srt/managers/tp_worker\w*\.py\(\d+\): forward_batch_generation"
    r"|tensorrt_llm/_torch/pyexecutor/py_executor\.py\(\d+\): _forward_step)"
)
_MODES = {
    "DECODE": InferencePhase.DECODE,
    "EXTEND": InferencePhase.PREFILL,
    "PREFILL": InferencePhase.PREFILL,
    "MIXED": InferencePhase.MIXED,
}


def _of_requests(new: int, old: int) -> InferencePhase:
    if new and old:
        return InferencePhase.MIXED
    if new or old:
        return InferencePhase.PREFILL if new else InferencePhase.DECODE
    return InferencePhase.OTHER


def _context(name: str) -> Iteration | None:
    if (found := _CONTEXT.fullmatch(name)) is None:
        return None
    new, old = int(found["new"]), int(found["old"])
    counts = [_TOKENS.match(text or "") for text in (found["new_of"], found["old_of"])]
    tokens = sum(int(count[1]) for count in counts if count) if all(counts) else None
    return Iteration(_of_requests(new, old), new + old, tokens)


def _new(name: str) -> Iteration | None:
    if (found := _NEW.fullmatch(name)) is None:
        return None
    new, old = int(found["new"]), int(found["old"])
    return Iteration(_of_requests(new, old), new + old)


def _step(name: str) -> Iteration | None:
    if (found := _STEP.fullmatch(name)) is None:
        return None
    requests, tokens = (None if found[key] is None else int(found[key]) for key in ("requests", "tokens"))
    phase = _MODES.get(found["mode"].upper(), InferencePhase.OTHER)
    return Iteration(phase, requests, requests if phase == InferencePhase.DECODE and tokens is None else tokens)


def _word(name: str) -> Iteration | None:
    words = {word.lower() for word in _WORD.findall(name)}
    if not words or _NO_ITERATION.search(name):
        return None
    return Iteration(InferencePhase.MIXED if len(words) > 1 else InferencePhase[words.pop().upper()])


def _model(name: str) -> Iteration | None:
    return Iteration(InferencePhase.OTHER) if _MODEL.fullmatch(name) else None


STYLES: tuple[Callable[[str], Iteration | None], ...] = (_context, _new, _step, _word, _model)
"""Ways to name iterations, the ones that tell most first."""
WORDS = STYLES.index(_word)
"""The style that says nothing in a recording of training."""


def iteration_style(name: str) -> int:
    """Which of `STYLES` names an iteration so, or the number of styles."""
    return next((style for style, read in enumerate(STYLES) if read(name) is not None), len(STYLES))


def read_iteration(name: str) -> Iteration | None:
    """What the name of a range tells of an iteration, None where it names none."""
    return next((found for found in (read(name) for read in STYLES) if found is not None), None)


def served_by(function: str) -> bool:
    """Whether a Python function is the one that the loop of a server (vLLM, SGLang, TensorRT-LLM) calls for a batch."""
    return _LOOP.fullmatch(function) is not None
