import numpy as np

from traceanalyze.rules.common.computing import computing, fits, listed, op_text
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Scope, measured, rule


@rule(
    "KRN109",
    "conv-bias-bn",
    title="bias before batch norm",
    sentence="{count} convolution(s) in all add a bias that batch norm takes away again, {time} {per}.",
    confidence=Confidence.LOW,
    needs="DOH",
    advice_texts={"no_conv_bias": "bias=False in convolutions that batch norm follows."},
    options={"least": (1.0, "PyTorch pattern matcher: convolutions a step")},
)
def find(facts: Facts, options: Options) -> Findings:
    """A convolution adds a bias that batch normalisation takes away again.

    What it finds
        `aten::conv2d` with a bias, directly followed by `aten::batch_norm`.
    Why it costs time
        The bias is added by a kernel of its own, and its gradient is summed up in the backward; batch norm subtracts
        the mean, and the bias with it.
    How it is measured
        Device time of the additions inside these convolutions; the gradient of the bias, which costs about as much, is
        not counted. With the running statistics of evaluation the bias matters, but can be folded.
    What to do
        `bias=False` in convolutions before batch norm.

    References
        PyTorch Performance Tuning Guide; PyTorch profiler pattern matcher.
    """
    nest, names, tracks = facts.context.op_nest, facts.context.op_names, facts.context.trace.events.track
    conv = np.flatnonzero(fits(facts, names, r"^aten::conv[123]d$"))
    conv = conv[facts.inside(nest.start[conv]) & (nest.stop[conv] < len(nest))]
    conv = conv[fits(facts, names[nest.stop[conv]], r"^aten::batch_norm$")]
    after = nest.stop[conv]
    conv = conv[(nest.parent[conv] == nest.parent[after]) & (tracks[nest.row[conv]] == tracks[nest.row[after]])]
    conv = conv[op_text(facts, "shapes", nest.row[conv], _has_bias, 0) == 1]
    if not len(conv) or len(conv) < options.number("least") * facts.window.count:
        return
    work = facts.once(computing)
    at = np.searchsorted(conv, work.op, "right") - 1
    inside = (at >= 0) & (work.op < nest.stop[conv[np.maximum(at, 0)]])
    chosen = inside & (work.op >= 0) & fits(facts, work.op_name, r"^aten::add_$")
    time = facts.per_step(work.time[chosen])
    yield Finding(
        saving=time,
        change=without(facts, work.event[chosen]),
        bound=time,
        draws="compute",
        intervals=work.spans(chosen),
        evidence=measured(time=time, count=len(conv)),
        scope=Scope(ops=("aten::conv2d",)),
        count=len(conv),
    )


def _has_bias(text: str) -> int:
    shapes = listed(text)
    return int(len(shapes) > 2 and isinstance(shapes[2], list) and len(shapes[2]) == 1)
