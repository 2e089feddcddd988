from traceanalyze.rules.common.computing import compute_finding, computing, fits, op_text, shapes_of
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, rule

_LOSS = r"^aten::(_log_softmax|_log_softmax_backward_data|nll_loss\w*)$"
_COMPILED = r"^triton_\w*_log_softmax"


@rule(
    "KRN122",
    "vocabulary-loss",
    title="loss over a large vocabulary",
    sentence="The loss over all classes takes {time} {per} ({part} of compute), reading and writing its logits whole.",
    confidence=Confidence.LOW,
    needs="DO",
    advice_texts={
        "chunked_loss": (
            "A loss that makes its logits in pieces and does not keep them: fused linear cross-entropy (Liger, Cut "
            "Cross Entropy), or chunks of tokens under torch.compile."
        )
    },
    options={
        "share": (0.05, "own: of the step"),
        "classes": (8192.0, "own: vocabularies of language models are larger, numbers of classes of images smaller"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """The cross-entropy over a large vocabulary takes much of the step.

    What it finds
        Log-softmax and the loss on it, forward and backward, over 8192 classes or more; in compiled code, which has no
        shapes, kernels named after a log-softmax.
    Why it costs time
        The matrix of logits, tokens times vocabulary, often in float32, is the largest tensor of a language model. Each
        of these kernels reads or writes it whole, and so do the products around them.
    How it is measured
        Device time of these kernels, from 5 % of the step on, a note below 10 %: a healthy language model has some.
        What a loss in pieces saves depends on its kernels: at least nothing, at most all of it; half is the estimate.
    What to do
        Fused linear cross-entropy, or the loss over chunks of tokens.

    References
        Liger Kernel; Cut Your Losses in Large-Vocabulary Language Models.
    """
    work = facts.once(computing)
    chosen = (work.op >= 0) & fits(facts, work.op_name, _LOSS)
    chosen[chosen] = op_text(facts, "shapes", work.op_row[chosen], _classes, 0) >= options.number("classes")
    chosen |= fits(facts, work.name, _COMPILED)
    time = facts.per_step(work.time[chosen])
    if chosen.any() and facts.share(time) >= options.number("share"):
        note = facts.share(time) < 2 * options.number("share")
        yield compute_finding(facts, chosen, low=0, severity=Severity.INFO if note else None)


def _classes(text: str) -> int:
    """Classes of the widest matrix of a call."""
    return max((shape[-1] for shape in shapes_of(text) if len(shape) > 1), default=0)
