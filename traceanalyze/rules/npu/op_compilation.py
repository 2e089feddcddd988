from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.launching import idle_during
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule

_COMPILING = regex(r"OpCompile|aclopCompileAndExecute")


@rule(
    "NPU101",
    "op-compilation",
    title="operators compiled while training",
    sentence=(
        "{count} compilation(s) of operators in all (takes|take) {host} {per}; the device has no work for {idle} of it."
    ),
    confidence=Confidence.HIGH,
    needs="D",
    advice_texts={
        "no_jit_compile": (
            "torch_npu.npu.set_compile_mode(jit_compile=False); torch_npu.npu.config.allow_internal_format = False; "
            "ACL_OP_COMPILER_CACHE_MODE=enable."
        )
    },
    options={"least": (20.0, "msprof-analyze advisor: compilations in the recording")},
    platforms=("ascend",),
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Operators are compiled in the midst of training.

    What it finds
        20 or more calls that compile operators in the analysed steps.
    Why it costs time
        With just-in-time compilation each new shape is compiled when it first appears; the device waits.
    How it is measured
        Idle time of the device during `aclopCompileAndExecute` and `OpCompile`; at most, the host time of these calls.
        In the first steps they are normal.
    What to do
        `torch_npu.npu.set_compile_mode(jit_compile=False)`, `torch_npu.npu.config.allow_internal_format = False`,
        `ACL_OP_COMPILER_CACHE_MODE=enable`.

    References
        msprof-analyze advisor; torch_npu environment variables.
    """
    rows = facts.rows((EventKind.API, *RANGES), _COMPILING)
    if len(rows) >= options.number("least"):
        yield idle_during(facts, rows)
