import os
import signal
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
    locked,
    mark_used,
    prune,
    remove_leftovers,
    replacing,
    write_atomically,
)


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_is_followed(tmp_path, there):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    if there:
        (folder / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(folder / "file")
    (tmp_path / "second").symlink_to("link")
    write_atomically(tmp_path / "second", b"new")
    assert (folder / "file").read_bytes() == b"new" and not (folder / "file").is_symlink()
    assert (tmp_path / "link").is_symlink() and (tmp_path / "second").is_symlink()
    assert len(list(tmp_path.iterdir())) == 3 and len(list(folder.iterdir())) == 1


def test_a_file_has_the_mode_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", b"content")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_only_leftovers_of_the_same_file_are_removed(tmp_path):
    for name in (".a[1].y.tmp", ".a[1].x.tmp", ".b.x.tmp", ".a1.x.tmp"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path, "a[1].")
    assert sorted(os.listdir(tmp_path)) == [".a1.x.tmp", ".b.x.tmp"]
    remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_killed_writers_file_goes_with_the_next_writing(tmp_path):
    """A file that is being written is kept."""
    path = tmp_path / "report.html"
    process = os.fork()
    if process == 0:
        with replacing(path):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(process, 0)
    assert len(os.listdir(tmp_path)) == 1
    with replacing(path) as file:
        (ours,) = os.listdir(tmp_path)
        write_atomically(path, b"another's")
        assert sorted(os.listdir(tmp_path)) == sorted([ours, "report.html"])
        file.write(b"ours")
    assert path.read_bytes() == b"ours" and os.listdir(tmp_path) == ["report.html"]


def test_a_failed_write_leaves_the_old_content(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(RuntimeError), replacing(tmp_path / "file") as file:
        file.write(b"new")
        raise RuntimeError
    assert (tmp_path / "file").read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


def test_a_lock_is_held_once_and_leaves_nothing(tmp_path):
    path = tmp_path / "folder" / "lock"
    with locked(path, "busy"), pytest.raises(InputError, match=r"^busy$"), locked(path, "busy"):
        pass
    assert list(path.parent.iterdir()) == []
    with locked(path, "busy"):
        pass


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
        patch.setattr("graphormer_sepnorm.system.files.shutil.rmtree", killed)
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
