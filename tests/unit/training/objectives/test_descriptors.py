import numpy as np
import pytest

from graphormer_sepnorm.chem.descriptors import NAMES
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.training.objectives.descriptors import corpus_of_descriptors

NAN = float("nan")


@pytest.mark.parametrize(("rows", "sentence"), [(2, "2 molecules can be read"), (4, "nothing to learn")])
def test_too_little_to_learn_from(rows, sentence):
    with pytest.raises(InputError, match=sentence):
        corpus_of_descriptors(["C"] * rows, np.zeros((rows, len(NAMES))))


def test_targets_are_chosen_by_hand():
    values = np.full((101, len(NAMES)), 7.0, np.float32)
    values[:100, 0] = [0.0, 2.0] * 50
    values[:100, 1] = [0.0] * 99 + [1.0]  # 9.9 deviations from the mean
    values[:100, 2] = [0.0, 1e7] * 50
    values[:10, 3] = NAN
    values[:50, 4] = 1.0
    values[0, 4] = NAN
    values[100] = NAN
    corpus = corpus_of_descriptors([str(i) for i in range(101)], values)
    assert corpus.smiles == [str(i) for i in range(100)]
    assert corpus.targets == (NAMES[0], NAMES[1], NAMES[4])
    assert corpus.y[:2, 0].tolist() == [-1.0, 1.0]
    assert corpus.y[99, 1] == 6.0 and corpus.y[0, 1] == pytest.approx(-0.01 / 0.0995, abs=1e-3)
    assert np.isnan(corpus.y[0, 2]) and np.nanmean(corpus.y[:, 2]) == pytest.approx(0, abs=1e-6)
