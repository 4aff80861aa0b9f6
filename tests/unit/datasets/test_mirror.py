import pickle

import pytest

from graphormer_sepnorm.dataset import Dataset
from graphormer_sepnorm.datasets.mirror import explained_download, link_files, read_alone
from graphormer_sepnorm.errors import InputError


@pytest.fixture
def root(tmp_path):
    for name in ("raw/a.txt", "processed/b.pt", "deep/er/c"):
        path = tmp_path / "root" / "SET" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "root"


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_files_are_linked_and_folders_are_made(root, tmp_path):
    link_files(root, tmp_path / "mirror")
    assert files(tmp_path / "mirror") == ["SET/deep/er/c", "SET/processed/b.pt", "SET/raw/a.txt"]
    assert (tmp_path / "mirror/SET/raw/a.txt").is_symlink() and not (tmp_path / "mirror/SET/raw").is_symlink()
    assert (tmp_path / "mirror/SET/raw/a.txt").read_text() == "raw/a.txt"


def test_a_folder_can_be_left_out_and_existing_files_are_kept(root, tmp_path):
    (tmp_path / "mirror/SET/raw").mkdir(parents=True)
    (tmp_path / "mirror/SET/raw/a.txt").write_text("own")
    link_files(root, tmp_path / "mirror", without="processed")
    assert files(tmp_path / "mirror") == ["SET/deep/er/c", "SET/raw/a.txt"]
    assert (tmp_path / "mirror/SET/raw/a.txt").read_text() == "own"


@pytest.mark.parametrize("failure", [OSError("no network"), RuntimeError("bad zip"), EOFError(), SystemExit()])
def test_a_failed_download_gives_a_sentence_and_leaves_no_root(tmp_path, failure):
    with (
        pytest.raises(InputError, match=r"SET is not in .* could not be downloaded"),
        explained_download("SET", tmp_path / "new"),
    ):
        (tmp_path / "new").mkdir()
        raise failure
    assert not (tmp_path / "new").exists()


def test_an_existing_root_is_kept(root):
    with pytest.raises(InputError, match="--root"), explained_download("SET", root):
        raise OSError
    assert len(files(root)) == 3


def test_a_file_that_is_not_a_dataset_is_not_reported_missing(root):
    with pytest.raises(InputError, match=r"was not loaded: os\.system"), explained_download("SET", root):
        raise pickle.UnpicklingError("os.system")


def test_loaders_do_not_write_to_the_root_and_damaged_files_are_replaced(root):
    seen = []

    def read(split, folder):
        seen.append((split, files(folder)))
        (folder / "SET" / "written").write_text("by the loader")
        if len(seen) == 1:
            raise RuntimeError("damaged")
        return "molecules"

    dataset = Dataset(task=None, featurizer="zinc", read=read, source=lambda folder: "", folder="SET")
    assert read_alone("SET", dataset, "val", root, "source") == "molecules"
    assert seen == [
        ("val", ["SET/deep/er/c", "SET/processed/b.pt", "SET/raw/a.txt"]),
        ("val", ["SET/deep/er/c", "SET/raw/a.txt"]),
    ]
    assert files(root) == ["SET/deep/er/c", "SET/processed/b.pt", "SET/raw/a.txt"]
