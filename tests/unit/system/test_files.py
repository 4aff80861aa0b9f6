import os
import signal

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.files import locked, remove_leftovers, replacing, write_atomically


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
