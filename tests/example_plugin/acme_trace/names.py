"""What the names of Acme's kernels, operators and ranges mean."""

from __future__ import annotations

from traceanalyze.model.classifier import Classifier

NAMES = Classifier(
    kernels={r"^acme_ring_": "communication", r"^acme_mix_heads": "attention"},
    operators={r"^acme::gate$": "elementwise"},
    data_loading=(r"^acme\.next_batch$",),
)
