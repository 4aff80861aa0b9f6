import csv

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import ReadOptions
from graphormer_sepnorm.output.embed_table import FORMATS, embed_table
from graphormer_sepnorm.predict.predictors import Embedder
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
    lines = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
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
    assert {**result, "errors": first["errors"]} == first and out.stat().st_mtime_ns == before
    assert "is finished, with 3 rows" in capsys.readouterr().err
    out.write_bytes(b"notes")
    with pytest.raises(InputError, match="is no interrupted run"):
        embed_table(embedder, table, out, reading=ReadOptions(resume=True))
    assert out.read_bytes() == b"notes"
