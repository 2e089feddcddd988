"""What some tests need beside the package and its extra `test`."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
REQUIRED = "TRACEANALYZE_REQUIRE"
"""Variable that names what must be here, as `.ci/extended` does."""
_REQUIRED = os.environ.get(REQUIRED, "").split()
AXE = os.environ.get("TRACEANALYZE_AXE", "")
"""File of axe-core, which checks pages for what keeps people from using them."""
HERE = {
    "axe": Path(AXE).is_file(),
    # Where it is required only: browsers take long to start, and more memory than mutants may.
    "browser": BROWSER is not None and "browser" in _REQUIRED,
    "azurite": find_spec("adlfs") is not None and shutil.which("azurite-blob") is not None,
    # So many processes as are too many for a plain run.
    "cluster": "cluster" in _REQUIRED,
    # Programs beside this one, which take long to start.
    "dask": "dask" in _REQUIRED and find_spec("distributed") is not None,
    "duckdb": find_spec("duckdb") is not None,
    "aiohttp": all(map(find_spec, ("fsspec", "aiohttp"))),
    "fsspec": find_spec("fsspec") is not None,
    "gcs": find_spec("gcsfs") is not None and shutil.which("gcp-storage-emulator") is not None,
    "hta": find_spec("hta") is not None,
    "mcp": find_spec("mcp") is not None,
    "node": shutil.which("node") is not None,
    "notebook": all(map(find_spec, ("ipykernel", "matplotlib", "nbclient"))),
    "s3": "s3" in _REQUIRED and all(map(find_spec, ("moto", "s3fs", "flask"))),
    "tensorboard": find_spec("tensorboard") is not None and find_spec("torch_tb_profiler") is not None,
    "torch": find_spec("torch") is not None,
    # The first three beside torch.
    **{name: find_spec(name) is not None for name in ("accelerate", "lightning", "transformers", "mlflow", "wandb")},
}


def need(name: str) -> None:
    """Without it the test is skipped, or fails where it is required."""
    if HERE[name]:
        return
    if name in _REQUIRED:
        pytest.fail(f"{name} is required here and is not installed")
    pytest.skip(f"{name} is not installed, or not asked for with {REQUIRED}={name}")
