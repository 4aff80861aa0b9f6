import numpy as np
import pytest

from graphormer_sepnorm.training.objectives.fingerprints import (
    CLIP,
    Fingerprints,
    corpus_of_counts,
)


def test_counts_are_scaled_by_hand():
    corpus = corpus_of_counts(["C", "N", "O"], [{"a": 3, "b": 5}, {"a": 1, "b": 5}, {"b": 5}])
    assert corpus.smiles == ["C", "N", "O"] and corpus.targets == ("a",), "b is the same for all"
    np.testing.assert_allclose(corpus.y[:, 0], [1.5**0.5, 0, -(1.5**0.5)], atol=1e-6)  # binary logarithms 2, 1 and 0
    assert corpus.y.dtype == np.float32


def test_rare_counts_are_left_out_and_far_ones_clipped():
    counts = [{"in one": 1, "in two": 1}, {"in two": 1}, *[{}] * 198]
    corpus = corpus_of_counts(["C"] * 200, counts)
    assert corpus.targets == ("in two",)
    assert corpus.y[:2, 0].tolist() == [CLIP, CLIP], "9.9 deviations from the mean"
    assert corpus.y[2, 0] == pytest.approx(-0.1005, abs=1e-4)


def test_molecules_that_cannot_be_read_are_left_out():
    smiles = ["CC", "C(C", "CCO", "", "C\udce9", "CC"]
    corpus = Fingerprints().corpus(smiles)
    assert corpus.smiles == ["CC", "CCO", "CC"]
    assert np.array_equal(corpus.y[0], corpus.y[2]) and not np.array_equal(corpus.y[0], corpus.y[1])
    assert all(name.startswith("Morgan ") for name in corpus.targets)
