"""Five questions answered in a notebook, each in a few lines: what they show is words, and no more than fits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.needs import need

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"
KEY = re.compile(
    r"\b[a-z]+(?:_[a-z0-9]+)+_(?:ns|bytes)\b|\bfinding_\w|\bMessage\(|\bNotMeasured\b|\{\w+\}|\b[a-z]+_why\b"
)
SHOWN = {
    "Verdict and findings": ("idle 58 % of it, mostly waiting for the data loader", "DAT101", "18346753"),
    "Compare two runs": ("image/png", "data loading +18.3"),
    "Top kernels by module": ("Linear_16", "gemm bf16"),
    "Memory at the peak": ("Peak 292 MiB", "train.py:31 train"),
    "A gate": ("fail 1", "step.time +138.3 %"),
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the cells below each heading show."""
    need("notebook")
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    here = tmp_path_factory.mktemp("work") / "docs"
    here.mkdir()
    (here.parent / "sample_traces").symlink_to(NOTEBOOK.parents[1] / "sample_traces")
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(here)}}).execute()
    found, heading = {}, ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = cell.source.lstrip("# ").partition("\n")[0]
            found[heading] = ([], [])
        else:
            found[heading][0].extend(cell.source.splitlines())
            found[heading][1].extend(cell.outputs)
    assert (here / "gate.html").stat().st_size > 10_000
    return found


@pytest.mark.parametrize("task", SHOWN)
def test_a_question_is_answered(shown, task):
    lines, outputs = next(found for heading, found in shown.items() if heading.startswith(task))
    assert 1 <= len(lines) <= 10
    texts = [text for each in outputs for text in (each.get("text"), *each.get("data", {}).values()) if text]
    pictures = [kind for each in outputs for kind in each.get("data", {}) if kind.startswith("image")]
    plain = "\n".join([*(re.sub(r"<[^>]*>", "\n", text) for text in texts), *pictures])
    for each in SHOWN[task]:
        assert each in plain
    assert not KEY.search(re.sub(r"[A-Za-z0-9+/=\n]{500,}", "", plain)), KEY.search(plain)
    assert all(len(text) < 40_000 for text in texts if not text.startswith("iVBOR"))
