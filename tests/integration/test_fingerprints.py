import numpy as np
import pandas as pd
import pytest

from tests.examples import load_example


@pytest.fixture(scope="module")
def example():
    return load_example("fingerprints")


def test_counts_of_environments(example):
    """Argon is one environment; ethane two equal carbons and, from radius 1 on, one whole molecule."""
    assert sorted(example.fingerprint("[Ar]"))[-2:] == [0, 1]
    assert sorted(example.fingerprint("CC"))[-3:] == [0, 1, 2]
    assert example.fingerprint("C(C)(C)(C)(C)C").sum() == 0  # five bonds are refused
    assert example.fingerprint("C" * 400).max() == 255


def test_the_mean_of_ranks_by_hand(example):
    first, second = np.array([0.1, 0.9, 0.5]), np.array([30.0, 20.0, 10.0])
    assert example.together(first, second, 0.25).tolist() == [2.5, 2.25, 1.25]


def test_splits_come_in_the_order_of_their_index(example, tmp_path):
    (tmp_path / "mapping").mkdir()
    (tmp_path / "split" / "scaffold").mkdir(parents=True)
    table = pd.DataFrame({"HIV_active": [0, 1, 0], "smiles": ["C", "[Ar]", "CC"], "mol_id": ["a", "b", "c"]})
    table.to_csv(tmp_path / "mapping" / "mol.csv.gz", index=False)
    pd.Series([2, 1]).to_csv(tmp_path / "split" / "scaffold" / "valid.csv.gz", index=False, header=False)
    counts, labels = example.read_split(tmp_path, "val")
    assert labels.tolist() == [0, 1]
    assert np.array_equal(counts, np.stack([example.fingerprint("CC"), example.fingerprint("[Ar]")]))
