import json
import math

import numpy as np
import pandas as pd
import pytest
import torch

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.datasets.store import in_memory
from tests.examples import load_example, run_example


@pytest.fixture(scope="module")
def example():
    return load_example("contrastive")


def test_loss_of_orthogonal_pairs(example):
    """Each embedding has its partner at similarity 1 and two others at 0."""
    x = torch.eye(2)
    expected = -math.log(math.e / (math.e + 2))
    assert example.nt_xent(x, 3 * x, temperature=1.0).item() == pytest.approx(expected)


def test_views_are_the_same_molecules_with_a_fifth_of_the_atoms_masked(example):
    torch.manual_seed(0)
    smiles = sample_table().smiles[:200].tolist()
    molecules = in_memory(read_molecules("mol", smiles).graphs, ()).batch(range(200))
    first, second = example.view(molecules), example.view(molecules)
    assert (molecules.x[:, 0] > 0).all()
    for view in (first, second):
        masked = (view.x == 0).all(dim=1)
        assert 0.18 < masked.float().mean() < 0.22
        assert torch.equal(view.x[~masked], molecules.x[~masked])
        assert torch.equal(view.ptr, molecules.ptr)
    assert not torch.equal(first.x, second.x)


def test_probes_of_numbers_and_of_classes(example):
    """Features that are the target tell it; their score is an error for numbers, a ranking for classes."""
    x = np.linspace(-1, 1, 30)[:, None]
    assert example.probe(dict.fromkeys(("train", "val", "test"), (x, x[:, 0])))["MAE"] < 0.01
    assert example.probe(dict.fromkeys(("train", "val", "test"), (x, (x[:, 0] > 0).astype(int)))) == {"ROC-AUC": 1.0}


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
