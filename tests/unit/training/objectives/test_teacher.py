import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.training.objectives.teacher import Teacher

NAN = float("nan")


@pytest.fixture
def path(tmp_path):
    """Embeddings of five molecules, as written by the command embed; one of them could not be read."""
    values = np.array([[1, 5, 0], [3, 5, 0], [NAN] * 3, [1, 5, 0], [3, 5, 100]], np.float32)
    smiles = np.array(["C", "CC", "C(", "CCC", "CCCC"])
    np.savez_compressed(tmp_path / "t.npz", embeddings=values, row=np.arange(5), smiles=smiles, error=smiles)
    return tmp_path / "t.npz"


def test_labels_are_the_numbers_that_differ_in_standard_deviations(path):
    teacher = Teacher(path)
    corpus = teacher.corpus(["CC", "N", "C", "C(", "CCC", "CC"])
    assert corpus.smiles == ["CC", "C", "CCC", "CC"]
    assert corpus.targets == ("teacher 0",), "the others are the same for all"
    assert corpus.y.dtype == np.float32 and corpus.y.tolist() == [[1.0], [-1.0], [-1.0], [1.0]]
    task = teacher.task(corpus.targets)
    assert (task.kind, task.metric, task.loss, task.targets) == ("regression", "mae", "mse", ("teacher 0",))
    assert teacher.title == "the embeddings in t.npz"


def test_embeddings_of_other_molecules_are_refused(path):
    with pytest.raises(InputError, match="embeddings of 2 of the 4 molecules"):
        Teacher(path).corpus(["C", "CC", "N", "O"])
    with pytest.raises(InputError, match="the same embedding"):
        Teacher(path).corpus(["C", "C", "CCC"])


def test_a_file_without_embeddings_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("smiles\nC\n")
    np.savez(tmp_path / "other.npz", values=np.zeros(3))
    np.savez(tmp_path / "short.npz", embeddings=np.zeros((3, 2)), smiles=np.array(["C"]))
    np.save(tmp_path / "array.npy", np.zeros((3, 2)))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    for name, message in [
        ("array", "no embeddings"),
        ("text", "no embeddings"),
        ("other", "no embeddings"),
        ("short", "for each"),
        ("no", "read"),
    ]:
        with pytest.raises(InputError, match=message):
            Teacher(tmp_path / f"{name}.npz")
