"""Which entries of the cache are removed, and in which order."""

import os
from pathlib import Path

import pytest
from filelock import FileLock

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.cache import LIMIT_VARIABLE, entries, limit_bytes, lock_of, mark_used, prune
from graphormer_sepnorm.system.files import CACHE_VARIABLE


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Five entries of a million bytes, used one after another, and a finished table of the page."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    for name in ("store-a/x", "store-b/y", "descriptors/c.npz", "descriptors/d.npz", "store-e/z", "tables/t.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(1_000_000))
    for second, name in enumerate(("store-a", "store-b", "descriptors/c.npz", "descriptors/d.npz", "store-e"), 1):
        os.utime(tmp_path / name, (second, second))
    return tmp_path


def names() -> list[str]:
    return [entry.path.name for entry in entries()]


def test_entries_come_by_their_last_use(cache):
    assert names() == ["store-a", "store-b", "c.npz", "d.npz", "store-e"]
    mark_used(cache / "store-a")
    assert names()[-1] == "store-a"
    assert all(1_000_000 <= entry.bytes < 1_010_000 for entry in entries())


def test_the_earliest_are_removed_until_the_rest_is_below_the_limit(cache, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "0.003020")
    prune(kept=cache / "store-a")
    assert names() == ["store-a", "d.npz", "store-e"]
    assert (cache / "tables" / "t.csv").exists()
    prune(kept=cache / "store-a")
    assert len(names()) == 3


def test_entries_in_use_are_kept(cache, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "0")
    with FileLock(lock_of(cache / "store-b")):
        prune(kept=cache / "store-e")
        assert names() == ["store-b", "store-e"]


@pytest.mark.parametrize("text", ["much", "-1", "nan"])
def test_an_invalid_limit_is_refused(monkeypatch, text):
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    with pytest.raises(InputError, match="give a number of gigabytes"):
        limit_bytes()


def test_a_missing_cache_is_empty(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "none"))
    assert entries() == []
