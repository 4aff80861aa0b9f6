import pytest
import torch
from torch import Tensor

from graphormer_sepnorm.dataset import Dataset
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.datasets.load import explained_download, link_files, load_split, read_alone
from graphormer_sepnorm.encodings.graphormer import Centrality
from graphormer_sepnorm.errors import InputError


def test_a_changed_encoding_is_computed_again():
    """As by a notebook whose cell is edited and run again: the fields stay the same, the cached arrays do not."""

    def with_degree(code: str) -> Tensor:
        names = {"Centrality": Centrality, "__name__": "own"}
        exec(f"class Own(Centrality):\n    def precompute(self, graphs):\n        {code}", names)
        return load_split("sample", "val", (names["Own"](),)).batch([0]).arrays["degree"]

    once = "return {name: array for name, array in super(Own, self).precompute(graphs).items()}"
    twice = once.replace("array for", "2 * array for")
    first = with_degree(once)
    assert (with_degree(twice) == 2 * first).all()
    assert (with_degree(once) == first).all()


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


def test_molecules_that_were_processed_in_another_way_are_left_out(tmp_path):
    """PyG notes the transform and the filter, and only warns if they are other ones."""
    for name, notes in {"plain": ("None", "None"), "filtered": ("None", "<function few at 0x>"), "raw": ()}.items():
        (tmp_path / "root" / name).mkdir(parents=True)
        (tmp_path / "root" / name / "train.pt").touch()
        for note, text in zip(("pre_transform", "pre_filter"), notes, strict=False):
            torch.save(text, tmp_path / "root" / name / f"{note}.pt")
    link_files(tmp_path / "root", tmp_path / "mirror")
    assert sorted(path.parent.name for path in (tmp_path / "mirror").rglob("train.pt")) == ["plain", "raw"]


@pytest.mark.parametrize("failure", [OSError("no network"), RuntimeError("bad zip"), EOFError(), SystemExit()])
def test_a_failed_download_gives_a_sentence_and_leaves_no_root(tmp_path, failure):
    with (
        pytest.raises(InputError, match=r"SET is not in .* could not be downloaded"),
        explained_download("SET", tmp_path / "new", "set"),
    ):
        (tmp_path / "new" / "set").mkdir(parents=True)
        raise failure
    assert not (tmp_path / "new").exists()


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


def test_a_problem_of_the_data_names_the_users_root(root):
    """Not the mirror in the cache, from which the molecules are read."""

    def read(split, place):
        raise InputError(f"the root holds no {split} molecules")

    dataset = Dataset(DATASETS["sample"].task, "zinc", read, lambda root: "state", folder="SET")
    with pytest.raises(InputError, match=f"^{root}: the root holds no val molecules$"):
        read_alone("set", dataset, "val", root, "state")
