"""Fixtures every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failure: nothing is timed in tests.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


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
