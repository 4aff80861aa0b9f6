import numpy as np
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
