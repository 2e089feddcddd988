"""Texts of the rules about compilation and graphs (CGR)."""

from __future__ import annotations

TITLES = {
    "CGR101": "breaks in compiled code",
    "CGR102": "compiling again",
    "CGR103": "compiled code launched kernel by kernel",
    "CGR104": "steps that could be one graph",
    "CGR105": "gradients reduced after the compiled backward",
}

SENTENCES = {
    "CGR101": (
        "Compiled code runs as {graphs} different graphs, {regions} calls {per}, with {eager} kernels {per} "
        "of eager operators between them."
    ),
    "CGR102": "Compilation ({count} time(s) in all) takes {host} {per}; the device has no work for {idle} of it.",
    "CGR103": "Compiled code launches its kernels one by one, and the device waits {idle} {per} for it.",
    "CGR104": (
        "{steps} steps launch the same {kernels} kernels in the same order, and the device waits {idle} {per} "
        "for the launches."
    ),
    "CGR105": (
        "All-reduces of gradients begin only after the whole compiled backward: {exposed} {per} nothing hides them."
    ),
}

ADVICE = {
    "find_graph_breaks": "TORCH_LOGS=graph_breaks names the places; torch.compile(fullgraph=True) makes them errors.",
    "find_recompiles": (
        "TORCH_LOGS=recompiles names the guard that fails; dynamic=True or torch._dynamo.mark_dynamic for "
        "sizes, tensors for numbers that change."
    ),
    "reduce_overhead": 'torch.compile(mode="reduce-overhead") launches the kernels as a CUDA graph.',
    "reduce_overhead.ascend": "Compile with the torchair backend in graph mode.",
    "capture_graph": 'Capture the step: torch.compile(mode="reduce-overhead") or torch.cuda.make_graphed_callables.',
    "capture_graph.ascend": "Capture the step: graph mode by torchair, or an aclgraph.",
    "compile_after_ddp": "Wrap the module in DistributedDataParallel first, then compile the wrapped module.",
}

EVIDENCE = {
    "graphs": "graphs",
    "regions": "compiled regions",
    "eager": "eager kernels a step",
    "host": "host time",
    "steps": "steps",
    "idle": "idle time",
}
