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
from graphormer_sepnorm.errors import InputError
from tests.examples import load_example, run_example

NORMS = ["ShareNorm", "SepNorm", "LayerNorm on the CLS"]
fingerprints, published_forests, comparison, contrastive = (
    pytest.fixture(scope="module", name=name)(lambda name=name: load_example(name))
    for name in ("fingerprints", "published_forests", "comparison", "contrastive")
)


def test_counts_of_environments(fingerprints):
    """Argon is one environment; ethane two equal carbons and, from radius 1 on, one whole molecule."""
    counts = fingerprints.FINGERPRINTS["ECFP4"]
    assert sorted(counts(Chem.MolFromSmiles("[Ar]")))[-2:] == [0, 1]
    assert sorted(counts(Chem.MolFromSmiles("CC")))[-3:] == [0, 1, 2]
    assert counts(Chem.MolFromSmiles("C" * 400)).max() == 255


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


def test_fingerprints_lie_side_by_side(published_forests):
    """Argon: one environment in each kind of circle, no pair of atoms, no structural key but that of odd elements."""
    bits = published_forests.side_by_side(Chem.MolFromSmiles("[Ar]"))
    assert bits.shape == (4263,) and set(bits.tolist()) == {0, 1}
    assert [part.sum() for part in np.split(bits, [2048, 3072, 4096])[:3]] == [1, 1, 0]


def test_a_forest_predicts_both_scored_splits_and_learns_from_training_alone(published_forests):
    """The label is the first of two bits; in validation it would be the second, which is not to be learnt from."""
    bits = np.random.default_rng(0).integers(0, 2, (90, 2)).astype(np.float32)
    y = np.concatenate([bits[:50, 0], bits[50:70, 1], bits[70:, 0]]).astype(int)
    index = {"train": np.arange(50), "val": np.arange(50, 70), "test": np.arange(70, 90)}
    predicted = published_forests.forest(csc_matrix(bits), y, index, trees=20, seed=0)
    val, test = predicted["val"], predicted["test"]
    assert ((val > 0.5) == bits[50:70, 0]).all() and ((test > 0.5) == bits[70:, 0]).all()


def test_the_weight_is_that_of_the_better_rank(published_forests):
    y, right, wrong = np.array([0, 0, 1, 1]), np.array([1.0, 2, 3, 4]), np.array([4.0, 3, 2, 1])
    assert published_forests.best_weight(y, right, wrong) == 0
    assert published_forests.best_weight(y, wrong, right) > 0.5


def scores(model: str, norm: str, seed: int) -> dict[str, float]:
    return {"score": {"ShareNorm": 1.0, "SepNorm": 3.0, "LayerNorm on the CLS": 1.0}[norm] + seed}


def test_gains_are_differences_seed_by_seed(comparison, tmp_path, capsys):
    """The scores vary by the seed, the gain does not."""
    comparison.compare(tmp_path, {}, ["A"], 3, scores)
    rows = [[cell.strip() for cell in line.split("|")] for line in capsys.readouterr().out.splitlines()]
    found = {row[2]: row[4] for row in rows[2:]}
    assert found["ShareNorm"] == "2.000 ± 2.484"
    assert found["SepNorm"] == "4.000 ± 2.484 (+2.000 ± 0.000)"
    assert (tmp_path / "results.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_measured_is_not_measured_again(comparison, tmp_path):
    """A comparison that breaks off in its third cell goes on there, and keeps its rows if seeds are added."""
    seen = []

    def measure(*cell):
        seen.append(cell)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return scores(*cell)

    with pytest.raises(KeyboardInterrupt):
        comparison.compare(tmp_path, {"epochs": 1}, ["A"], 1, measure)
    assert len(json.loads((tmp_path / "results.json").read_text())["rows"]) == 2
    table = comparison.compare(tmp_path, {"epochs": 1}, ["A"], 2, measure)
    cells = [("A", norm, seed) for seed in (0, 1) for norm in NORMS]
    assert seen == [*cells[:3], *cells[2:]]
    assert len(table) == 6


@pytest.mark.parametrize("content", ["", "[1]", "{}", '{"setting": {"epochs": 2}, "hardware": "", "rows": []}'])
def test_results_of_something_else_are_refused_and_kept(comparison, tmp_path, content):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(InputError, match="--out"):
        comparison.compare(tmp_path, {"epochs": 1}, ["A"], 1, scores)
    assert (tmp_path / "results.json").read_text() == content


def test_the_probe_is_chosen_on_validation(comparison):
    """Features that tell the training labels only by noise are best regularized most."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=60)
    parts = {"train": (rng.normal(size=(60, 40)), y), "val": (rng.normal(size=(200, 40)), rng.normal(size=200))}
    assert comparison.linear_probe(parts, "neg_mean_squared_error")[-1].alpha == 1e4
    seen = np.stack([y, y**2], axis=1)
    parts = {"train": (seen, 3 * y), "val": (seen, 3 * y)}
    assert comparison.linear_probe(parts, "neg_mean_squared_error")[-1].alpha == 0.1


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
    is_positive = (x[:, 0] > 0).astype(int)
    assert contrastive.probe(dict.fromkeys(("train", "val", "test"), (x, is_positive))) == {"ROC-AUC": 1.0}


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
    assert [row["norm"] for row in rows] == NORMS
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
    assert [row["norm"] for row in rows] == NORMS
    for row in rows:
        assert 0.03 < row["probe, top-1"] < row["probe, top-5"] < 1
        assert 0 < row["fine-tuned, top-1"] < row["fine-tuned, top-5"] <= 1
    assert (tmp_path / "results.png").stat().st_size > 10_000
    assert "| ViT | SepNorm | 1 |" in done.stdout
