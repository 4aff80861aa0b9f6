"""Labels by molecule, by target and by fold."""

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.labels import Folds, Labels

NAN, INF = np.nan, np.inf


def labels() -> Labels:
    y = np.array([[1.0, NAN], [NAN, NAN], [3.0, 4.0]])
    bounds = np.array([[[-INF, INF], [-INF, INF]], [[5.0, INF], [-INF, INF]], [[-INF, INF], [-INF, INF]]])
    return Labels(TaskConfig("regression", "mae", ("a", "b")), y, bounds, np.array([1.0, 2.0, 3.0]))


def test_a_target_knows_its_labels_and_its_bounds():
    first, second = labels().target(0), labels().target(1)
    assert first.known.tolist() == [0, 1, 2] and second.known.tolist() == [2]
    assert first.filled(2.0).tolist() == [1, 5, 3] and first.filled(np.array([9.0, 8.0, 7.0])).tolist() == [1, 8, 3]
    assert first.take(np.array([1])).weight.tolist() == [2]


def test_parts_keep_everything_of_their_molecules():
    part = labels().take(np.array([2, 1]))
    assert part.y[0].tolist() == [3, 4] and part.weight.tolist() == [3, 2] and part.bounds[1, 0, 0] == 5
    assert not part.is_classification and len(part) == 2


def test_without_bounds_and_weights_labels_are_as_they_are():
    plain = Labels(labels().task, labels().y)
    assert plain.take(np.array([0])).bounds is None and plain.target(0).weight.tolist() == [1, 1, 1]
    assert plain.target(0).known.tolist() == [0, 2] and plain.target(0).filled(7.0)[2] == 3


def test_every_molecule_is_predicted_in_its_fold_and_learnt_from_in_the_others():
    folds = Folds(np.array([1, 0, 1, 2]))
    assert len(folds) == 3
    assert [(learnt.tolist(), predicted.tolist()) for learnt, predicted in folds.parts()] == [
        ([0, 2, 3], [1]),
        ([1, 3], [0, 2]),
        ([0, 1, 2], [3]),
    ]
