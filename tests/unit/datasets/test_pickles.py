import io
import os
import pickle

import pytest
import torch
from torch_geometric.data import Data

from graphormer_sepnorm.datasets.pickles import load_tensors_only, tensors_only


class Evil:
    def __reduce__(self):
        return os.mkdir, (os.path.join(os.environ["EVIL_FOLDER"], "made"),)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("EVIL_FOLDER", str(tmp_path))
    return tmp_path


def test_lists_and_dicts_of_tensors_are_read():
    content = [{"atom": torch.tensor([1, 2]), "name": "a"}, {"bond": torch.eye(2)}]
    found = load_tensors_only(io.BytesIO(pickle.dumps(content)))
    assert found[0]["atom"].tolist() == [1, 2] and found[0]["name"] == "a"
    assert found[1]["bond"].tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("place", [lambda evil: evil, lambda evil: [{"atom": evil}]])
def test_other_objects_are_refused_and_never_executed(folder, place):
    with pytest.raises(pickle.UnpicklingError, match="is not allowed in a dataset"):
        load_tensors_only(io.BytesIO(pickle.dumps(place(Evil()))))
    assert not (folder / "made").exists()


def test_torch_reads_only_pygs_data_within_the_context(folder):
    torch.save(Data(x=torch.ones(2, 1)), folder / "data.pt")
    torch.save({"data": Evil()}, folder / "evil.pt")
    with tensors_only():
        assert torch.load(folder / "data.pt").x.tolist() == [[1.0], [1.0]]
        with pytest.raises(pickle.UnpicklingError):
            torch.load(folder / "evil.pt")
        with pytest.raises(pickle.UnpicklingError):
            torch.load(folder / "evil.pt", weights_only=None)
    assert not (folder / "made").exists()
