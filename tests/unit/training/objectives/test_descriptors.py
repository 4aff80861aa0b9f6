import numpy as np
import pytest

from graphormer_sepnorm.chem.descriptors import NAMES
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.training.objectives.descriptors import ABSURD, CLIP, Descriptors, corpus_of_descriptors

NAN = float("nan")


def test_varying_descriptors_are_scaled_by_hand():
    values = np.zeros((5, len(NAMES)))
    values[:, 1] = [1, 3, 1, 3, 2]  # mean 2, standard deviation sqrt(0.8)
    values[:, 2] = [0, 0, 0, 0, 2 * ABSURD]
    values[:3, 3] = np.nan
    corpus = corpus_of_descriptors(list("abcde"), values)
    assert corpus.targets == (NAMES[1],) and corpus.smiles == list("abcde")
    np.testing.assert_allclose(corpus.y[:, 0], np.array([-1, 1, -1, 1, 0]) / np.sqrt(0.8), rtol=1e-6)


def test_molecules_without_any_descriptor_are_left_out_and_far_values_are_clipped():
    values = np.zeros((101, len(NAMES)))
    values[0, 4] = 1000.0
    values[100] = np.nan
    corpus = corpus_of_descriptors([str(number) for number in range(101)], values)
    assert len(corpus.smiles) == 100 and "100" not in corpus.smiles
    assert corpus.y.max() == CLIP


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


def test_too_few_molecules_with_descriptors_are_refused():
    with pytest.raises(InputError, match="2 molecules"):
        values = np.repeat(np.array([NAN, NAN, 1.0, 2.0], np.float32)[:, None], len(NAMES), axis=1)
        corpus_of_descriptors(["C"] * 4, values)


def test_the_task_is_a_regression_by_squares():
    task = Descriptors().task(("MolWt", "TPSA"))
    assert (task.kind, task.loss, task.metric, task.targets) == ("regression", "mse", "mae", ("MolWt", "TPSA"))
