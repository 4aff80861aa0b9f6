import json
import math

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem
from scipy.sparse import csc_matrix

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.datasets.store import in_memory
from tests.examples import load_example, run_example


@pytest.fixture(scope="module")
def fingerprints():
    return load_example("fingerprints")


def test_counts_of_environments(fingerprints):
    """Argon is one environment; ethane two equal carbons and, from radius 1 on, one whole molecule."""
    counts = fingerprints.FINGERPRINTS["ECFP4"]
    assert sorted(counts(Chem.MolFromSmiles("[Ar]")))[-2:] == [0, 1]
    assert sorted(counts(Chem.MolFromSmiles("CC")))[-3:] == [0, 1, 2]
    assert counts(Chem.MolFromSmiles("C" * 400)).max() == 255


def test_mean_ranks_by_hand(fingerprints):
    first, second = np.array([0.1, 0.9, 0.5]), np.array([30.0, 20.0, 10.0])
    assert fingerprints.mean_rank([first, second]).tolist() == [2.0, 2.5, 1.5]


def test_similarity_by_hand(fingerprints):
    """Counts (1, 2) and (3, 1): smaller ones 1 + 1, larger ones 3 + 2. 9 and 5 count as 3, as 3 does."""
    counts = csc_matrix(np.array([[1, 2, 0], [3, 1, 0], [0, 0, 9], [0, 0, 5], [0, 0, 0]], np.float32))
    table, rows = fingerprints.at_least(counts), np.arange(5)
    alike = [[1, 0.4, 0, 0, 0], [0.4, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0]]
    np.testing.assert_allclose(fingerprints.similarity([table], rows, rows), alike, atol=1e-6)
    presence = csc_matrix((counts.toarray() > 0).astype(np.float32)).tocsr()
    both = fingerprints.similarity([table, presence], np.array([1, 3]), np.array([0, 2]))
    np.testing.assert_allclose(both, [[0.7, 0], [0, 1]], atol=1e-6)


def test_ridge_regression_by_hand(fingerprints):
    """Labels 0 and 2 are -1 and 1 about their mean; (1 + 1, 0.5; 0.5, 1 + 1) w = (-1, 1) has w = (-2/3, 2/3)."""
    kernel = np.array([[1, 0.5], [0.5, 1]], np.float32)
    np.testing.assert_allclose(fingerprints.ridge_regression(kernel, np.array([0, 2])), [-2 / 3, 2 / 3], rtol=1e-6)


@pytest.fixture(scope="module")
def contrastive():
    return load_example("contrastive")


def test_loss_of_orthogonal_pairs(contrastive):
    """Each embedding has its partner at similarity 1 and two others at 0."""
    x = torch.eye(2)
    expected = -math.log(math.e / (math.e + 2))
    assert contrastive.nt_xent(x, 3 * x, temperature=1.0).item() == pytest.approx(expected)


def test_views_are_the_same_molecules_with_a_fifth_of_the_atoms_masked(contrastive):
    torch.manual_seed(0)
    smiles = sample_table().smiles[:200].tolist()
    molecules = in_memory(read_molecules("mol", smiles).graphs, ()).batch(range(200))
    first, second = contrastive.view(molecules), contrastive.view(molecules)
    assert (molecules.x[:, 0] > 0).all()
    for view in (first, second):
        masked = (view.x == 0).all(dim=1)
        assert 0.18 < masked.float().mean() < 0.22
        assert torch.equal(view.x[~masked], molecules.x[~masked])
        assert torch.equal(view.ptr, molecules.ptr)
    assert not torch.equal(first.x, second.x)


def test_probes_of_numbers_and_of_classes(contrastive):
    """Features that are the target tell it; their score is an error for numbers, a ranking for classes."""
    x = np.linspace(-1, 1, 30)[:, None]
    assert contrastive.probe(dict.fromkeys(("train", "val", "test"), (x, x[:, 0])))["MAE"] < 0.01
    assert contrastive.probe(dict.fromkeys(("train", "val", "test"), (x, (x[:, 0] > 0).astype(int)))) == {
        "ROC-AUC": 1.0
    }


@pytest.mark.nightly
def test_a_tiny_run_finds_partners_and_probes_a_table(tmp_path):
    table = sample_table()[:90]
    rows = {"smiles": table.smiles, "logp": table.penalized_logp, "split_0": ["train", "val", "test"] * 30}
    (tmp_path / "tables").mkdir()
    pd.DataFrame(rows).to_csv(tmp_path / "tables" / "mine.csv", index=False)
    options = ("--molecules", "256", "--epochs", "3", "--seeds", "1", "--tables", tmp_path / "tables")
    done = run_example("contrastive", *options, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads((tmp_path / "out" / "results.json").read_text())["rows"]
    assert [row["norm"] for row in rows] == ["ShareNorm", "SepNorm", "LayerNorm on the CLS"]
    for row in rows:
        assert -4.2 < row["uniformity"] < 0 < row["alignment"] < 4
        assert row["found"] > 0.1  # half a per cent by chance
        assert 0 < row["target, MAE"] < 5 and 0 < row["mine, MAE"] < 10
    again = run_example("contrastive", *options, "--out", tmp_path / "out")
    assert again.stdout == done.stdout  # nothing is trained twice


TINY = ("--epochs", "1", "--fine-tuning-epochs", "1", "--width", "8", "--layers", "1", "--seeds", "1")


@pytest.fixture(scope="module")
def masked_images():
    pytest.importorskip("transformers")
    return load_example("masked_images")


@pytest.mark.slow
def test_the_parts_of_the_digits_share_no_image_and_have_all_classes(masked_images):
    images = masked_images.digits()
    assert [len(part.classes) for part in images.values()] == [1077, 360, 360]
    assert all(part.classes.unique().tolist() == list(range(10)) for part in images.values())
    x = images["train"].batch(torch.arange(100))
    assert x.shape == (100, 1, 8, 8)
    assert (x.min(), x.max()) == (-1, 1)


@pytest.mark.slow
def test_the_cls_has_norms_of_its_own_where_it_differs(masked_images):
    model = masked_images.make_model("SepNorm", masked_images.digits()["train"], patch=2, width=8, layers=2)
    replaced = model.separated_norms.replaced
    kinds = [name.rpartition(".")[2] for name in replaced]
    assert kinds == ["layernorm_after", "layernorm_before", "layernorm_after", "layernorm"]
    assert not any("decoder" in name for name in replaced)


@pytest.mark.slow
def test_a_tiny_run_from_the_command_line(tmp_path):
    pytest.importorskip("transformers")
    done = run_example("masked_images", *TINY, "--out", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [row["norm"] for row in rows] == ["ShareNorm", "SepNorm", "LayerNorm on the CLS"]
    for row in rows:
        assert 0.03 < row["probe, top-1"] < row["probe, top-5"] < 1
        assert 0 < row["fine-tuned, top-1"] < row["fine-tuned, top-5"] <= 1
    assert (tmp_path / "results.png").stat().st_size > 10_000
    assert "| ViT | SepNorm | 1 |" in done.stdout
