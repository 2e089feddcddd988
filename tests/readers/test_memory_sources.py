"""Which files of a folder may be on memory."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

from traceanalyze.readers.memory_sources import snapshots_of


def test_a_folder_that_may_not_be_looked_into_stops_nothing(tmp_path, monkeypatch):
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "snapshot.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": []}))
    real, look = os.access, Path.is_symlink
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed" and real(path, mode))

    def is_symlink(path):
        if path.name == "closed":
            raise PermissionError(path)
        return look(path)

    monkeypatch.setattr(Path, "is_symlink", is_symlink)
    assert [Path(one.path).parent.name for one in snapshots_of(str(tmp_path))] == ["open"]
