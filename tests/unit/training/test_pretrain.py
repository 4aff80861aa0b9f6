import numpy as np
import pytest

from graphormer_sepnorm.chem.descriptors import NAMES
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.training.pretrain import ABSURD, CLIP, Corpus, make_corpus


def test_descriptors_that_tell_molecules_apart_are_scaled_by_hand():
    values = np.zeros((5, len(NAMES)))
    values[:, 1] = [1, 3, 1, 3, 2]  # mean 2, standard deviation sqrt(0.8)
    values[:, 2] = [0, 0, 0, 0, 2 * ABSURD]
    values[:3, 3] = np.nan
    corpus = make_corpus(list("abcde"), values)
    assert corpus.targets == (NAMES[1],) and corpus.smiles == list("abcde")
    np.testing.assert_allclose(corpus.y[:, 0], np.array([-1, 1, -1, 1, 0]) / np.sqrt(0.8), rtol=1e-6)


def test_molecules_without_any_descriptor_are_left_out_and_far_values_are_clipped():
    values = np.zeros((101, len(NAMES)))
    values[0, 4] = 1000.0
    values[100] = np.nan
    corpus = make_corpus([str(number) for number in range(101)], values)
    assert len(corpus.smiles) == 100 and "100" not in corpus.smiles
    assert corpus.y.max() == CLIP


@pytest.mark.parametrize(("rows", "sentence"), [(2, "2 molecules can be read"), (4, "nothing to learn")])
def test_too_little_to_learn_from(rows, sentence):
    with pytest.raises(InputError, match=sentence):
        make_corpus(["C"] * rows, np.zeros((rows, len(NAMES))))


def test_validation_is_a_fiftieth_at_random_and_one_at_least():
    corpus = Corpus([str(number) for number in range(100)], ("y",), np.arange(100, dtype=np.float32)[:, None])
    train, val = corpus.split(seed=0)
    assert (len(train.smiles), len(val.smiles)) == (98, 2)
    assert sorted(train.smiles + val.smiles) == sorted(corpus.smiles)
    assert [str(int(y)) for y in val.y[:, 0]] == val.smiles
    assert corpus.split(seed=1)[1].smiles != val.smiles
    assert len(corpus.take(np.arange(3)).split(seed=0)[1].smiles) == 1
