import numpy as np

from graphormer_sepnorm.training.objectives.base import Corpus
from graphormer_sepnorm.training.pretrain import split


def test_validation_is_a_random_fiftieth_and_at_least_one_molecule():
    corpus = Corpus([str(number) for number in range(1000)], ("y",), np.arange(1000, dtype=np.float32)[:, None])
    train, val = split(corpus, seed=0)
    assert (len(train.smiles), len(val.smiles)) == (980, 20)
    assert sorted(train.smiles + val.smiles) == sorted(corpus.smiles)
    assert all(part.smiles == [str(int(y)) for y in part.y[:, 0]] for part in (train, val))
    assert split(corpus, seed=1)[1].smiles != val.smiles
    assert len(split(corpus.take(np.arange(3)), seed=0)[1].smiles) == 1
