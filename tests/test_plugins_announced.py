"""Whether there is any plug-in is seen without opening every installed distribution."""

from __future__ import annotations

import sys
import zipfile

import pytest

from traceanalyze import plugins

GROUP = "[traceanalyze.rules]\nacme = acme_rules\n"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder that modules are imported from."""
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.found.cache_clear()
    yield tmp_path
    plugins.found.cache_clear()


def names():
    return [entry.name for entry in plugins.found().entries]


def test_nothing_is_found_where_no_distribution_names_a_group(site):
    about = site / "other-1.0.dist-info"
    about.mkdir()
    (about / "entry_points.txt").write_text("[console_scripts]\ntraceanalyze.rules = other\n")
    assert names() == []


@pytest.mark.parametrize("about", ["acme-1.0.dist-info", "acme.egg-info", "Acme-1.0.DIST-INFO"])
def test_a_distribution_that_names_a_group_is_found(site, about):
    (site / about).mkdir()
    (site / about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (site / about / "entry_points.txt").write_text(GROUP)
    assert names() == ["acme"]


def test_a_distribution_in_an_archive_is_found(site, monkeypatch):
    with zipfile.ZipFile(site / "acme.zip", "w") as archive:
        archive.writestr("acme-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        archive.writestr("acme-1.0.dist-info/entry_points.txt", GROUP)
    monkeypatch.setattr(sys, "path", [str(site / "acme.zip"), *sys.path])
    assert names() == ["acme"]


def test_a_distribution_of_another_finder_is_found(site, monkeypatch):
    class Finder:
        """Finds no module, and distributions where nobody else looks."""

        def find_spec(self, *_):
            return None

        def find_distributions(self, *_):
            from importlib.metadata import PathDistribution

            yield PathDistribution(site / "hidden")

    (site / "hidden").mkdir()
    (site / "hidden" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (site / "hidden" / "entry_points.txt").write_text(GROUP)
    assert names() == []
    plugins.found.cache_clear()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert names() == ["acme"]
