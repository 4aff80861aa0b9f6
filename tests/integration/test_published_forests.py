import numpy as np
import pytest
from rdkit import Chem
from scipy.sparse import csc_matrix

from tests.examples import load_example


@pytest.fixture(scope="module")
def example():
    return load_example("published_forests")


def test_fingerprints_lie_side_by_side(example):
    """Argon: one environment in each kind of circle, no pair of atoms, no structural key but that of odd elements."""
    bits = example.side_by_side(Chem.MolFromSmiles("[Ar]"))
    assert bits.shape == (4263,) and set(bits.tolist()) == {0, 1}
    assert [part.sum() for part in np.split(bits, [2048, 3072, 4096])[:3]] == [1, 1, 0]


def test_a_forest_predicts_both_scored_splits_and_learns_from_training_alone(example):
    """The label is the first of two bits; in validation it would be the second, which is not to be learnt from."""
    bits = np.random.default_rng(0).integers(0, 2, (90, 2)).astype(np.float32)
    y = np.concatenate([bits[:50, 0], bits[50:70, 1], bits[70:, 0]]).astype(int)
    index = {"train": np.arange(50), "val": np.arange(50, 70), "test": np.arange(70, 90)}
    predicted = example.forest(csc_matrix(bits), y, index, trees=20, seed=0)
    val, test = predicted["val"], predicted["test"]
    assert ((val > 0.5) == bits[50:70, 0]).all() and ((test > 0.5) == bits[70:, 0]).all()


def test_the_weight_is_that_of_the_better_rank(example):
    y, right, wrong = np.array([0, 0, 1, 1]), np.array([1.0, 2, 3, 4]), np.array([4.0, 3, 2, 1])
    assert example.best_weight(y, right, wrong) == 0
    assert example.best_weight(y, wrong, right) > 0.5
