from __future__ import annotations

import pytest

from traceanalyze.model.phases import STYLES, InferencePhase, Iteration, iteration_style

PREFILL, DECODE, MIXED, OTHER = InferencePhase


def told(name):
    style = iteration_style(name)
    return None if style == len(STYLES) else STYLES[style](name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)", (DECODE, 32, 32)),
        ("execute_96_context_2(sq64sk128sqsq9sqsk9)_generation_30(sq32sk9sqsq9sqsk9)", (MIXED, 32, 96)),
        ("execute_context_3(512)_generation_0(0)", (PREFILL, 3, 512)),
        ("execute_context_1_generation_4", (MIXED, 5, None)),
        ("execute_new_2_cached_0", (PREFILL, 2, None)),
        ("execute_new_0_cached_8", (DECODE, 8, None)),
        ("execute_new_1_cached_8", (MIXED, 9, None)),
        ("step[DECODE bs=32]", (DECODE, 32, 32)),
        ("step[EXTEND bs=2 toks=96]", (PREFILL, 2, 96)),
        ("step[MIXED bs=4 toks=70]", (MIXED, 4, 70)),
        ("step[IDLE]", (OTHER, None, None)),
        ("prefill", (PREFILL, None, None)),
        ("model.decode", (DECODE, None, None)),
        ("Decode step 3", (DECODE, None, None)),
        ("prefill+decode", (MIXED, None, None)),
        ("execute_model", (OTHER, None, None)),
    ],
)
def test_what_a_name_tells(name, meant):
    assert told(name) == Iteration(*meant)


@pytest.mark.parametrize(
    "name",
    ["capture_32_DECODE", "jpeg decode", "decoder_layer", "undecoded", "execute_model_loading", "ProfilerStep#3",
     "warmup prefill", "tokenizer.batch_decode", "step[0]", "step[12]", "step[train]", "step[epoch1]"],
)  # fmt: skip
def test_other_names(name):
    assert told(name) is None
