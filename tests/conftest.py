"""Fixtures every test may use."""

from __future__ import annotations

import gc
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer.main
from hypothesis import settings

from tests.examples import DEFAULT
from tests.needs import need
from tests.real import FILES, RealTrace
from tests.torch_python import TorchPython

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("plain", DEFAULT)
settings.load_profile("plain")
# A command line is made of its declarations once, not for every test that calls it.
typer.main.get_command = cache(typer.main.get_command)
# Processes that tests start need not compile the package anew each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# What tests find they make: nobody may write a cache here.
os.environ["XDG_CACHE_HOME"] = os.devnull


def pytest_collection_finish() -> None:
    """What is there before the first test stays: looking through it for garbage takes a tenth of all the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def shared_traces() -> Path:
    """Folder of real traces that lies beside the repository on the developers' machines."""
    folder = Path(__file__).parents[2] / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip("the shared traces are not here")
    return folder


@pytest.fixture
def shared_snapshots() -> Path:
    """Folder of real allocator snapshots that lies beside the repository on the developers' machines."""
    folder = Path(__file__).parents[2] / "shared" / "snapshots"
    if not folder.is_dir():
        pytest.skip("the shared snapshots are not here")
    return folder


@pytest.fixture(scope="session")
def needs_axe() -> None:
    need("axe")


@pytest.fixture(scope="session")
def needs_browser() -> None:
    need("browser")


@pytest.fixture(scope="session")
def needs_cluster() -> None:
    need("cluster")


@pytest.fixture(scope="session")
def needs_hta() -> None:
    need("hta")


@pytest.fixture(scope="session")
def needs_node() -> None:
    need("node")


@pytest.fixture(scope="session")
def needs_tensorboard() -> None:
    need("tensorboard")


@pytest.fixture(scope="session")
def needs_torch() -> None:
    need("torch")


@pytest.fixture(scope="session")
def torch_python(needs_torch: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchPython]:
    """Python with torch, quick to start."""
    python = TorchPython(tmp_path_factory.mktemp("torch"))
    yield python
    python.close()


@pytest.fixture(scope="session", params=FILES)
def real_trace(request: pytest.FixtureRequest) -> RealTrace:
    """One of the public traces; without them its tests are skipped."""
    return RealTrace(request.param)
