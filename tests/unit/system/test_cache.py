"""Which entries of the cache are removed, and in which order."""

import os
from pathlib import Path

import pytest
from filelock import FileLock

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.files import (
    CACHE_VARIABLE,
    LIMIT_VARIABLE,
    delete,
    entries,
    limit_bytes,
    lock_of,
    mark_used,
    prune,
)

A, B, E = (f"store-{letter * 16}" for letter in "abe")
OTHERS = ("tables/t.csv", "thesis/chapter-1", "notes.txt", "descriptors/mine.csv")


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Five entries of a million bytes, used one after another, a finished table of the page, and files of the user."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    for name in (f"{A}/x", f"{B}/y", "descriptors/c.npz", "descriptors/d.npz", f"{E}/z", *OTHERS):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(1_000_000))
    for second, name in enumerate((A, B, "descriptors/c.npz", "descriptors/d.npz", E), 1):
        os.utime(tmp_path / name, (second, second))
    return tmp_path


def names() -> list[str]:
    return [entry.path.name for entry in entries()]


def test_entries_come_by_their_last_use(cache):
    assert names() == [A, B, "c.npz", "d.npz", E]
    mark_used(cache / A)
    assert names()[-1] == A
    assert all(1_000_000 <= entry.bytes < 1_010_000 for entry in entries())


def test_the_earliest_are_removed_until_the_rest_is_below_the_limit(cache, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "0.003020")
    prune(kept=cache / A)
    assert names() == [A, "d.npz", E]
    assert all((cache / name).exists() for name in OTHERS)
    prune(kept=cache / A)
    assert len(names()) == 3


def test_entries_in_use_are_kept(cache, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "0")
    with FileLock(lock_of(cache / B)):
        prune(kept=cache / E)
        assert names() == [B, E]


def test_a_killed_process_leaves_no_part_of_an_entry_under_its_name(cache, monkeypatch):
    def killed(path, **options):
        if (path / "x").exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("graphormer_sepnorm.system.cache.shutil.rmtree", killed)
        delete(cache / A)
    assert names()[0] == f".removing-{A}" and not (cache / A).exists()
    monkeypatch.setenv(LIMIT_VARIABLE, "0")
    prune(kept=cache / E)
    assert names() == [E]


@pytest.mark.parametrize("text", ["much", "-1", "nan"])
def test_an_invalid_limit_is_refused(monkeypatch, text):
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    with pytest.raises(InputError, match="give a number of gigabytes"):
        limit_bytes()
