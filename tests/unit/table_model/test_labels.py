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
    assert first.take(np.array([1])).weight.tolist() == [2]


def test_without_bounds_and_weights_labels_are_as_they_are():
    plain = Labels(labels().task, labels().y)
    assert plain.take(np.array([0])).bounds is None and plain.target(0).weight.tolist() == [1, 1, 1]
    assert plain.target(0).known.tolist() == [0, 2] and plain.counting() is plain
    assert plain.expected(np.zeros((3, 2)), np.ones(2)) is plain.y


def test_bounds_have_expectations_and_sizes_of_errors():
    """Above 5, a normal distribution around 5 of deviation 2 has its mean at 5 + 2 * 0.797885."""
    values, deviation = np.full((3, 2), 5.0), np.full((3, 2), 2.0)
    found, error = labels().expected(values, deviation), labels().error(values, deviation)
    np.testing.assert_allclose(found[:, 0], [1, 5 + 2 * 0.797885, 3], rtol=1e-6)
    np.testing.assert_allclose(error[:, 0], [-4, 2 * 0.797885, -2], rtol=1e-6)
    assert np.isnan(found[:2, 1]).all() and found[2, 1] == 4


def test_bounds_of_no_weight_do_not_count():
    whole = Labels(labels().task, labels().y, labels().bounds, np.array([1.0, 0.0, 1.0]))
    assert whole.bounded[1, 0] and not whole.counting().bounded.any()


def test_every_molecule_is_predicted_in_its_fold_and_learnt_from_in_the_others():
    folds = Folds(np.array([1, 0, 1, 2]))
    assert len(folds) == 3
    assert [(learnt.tolist(), predicted.tolist()) for learnt, predicted in folds.parts()] == [
        ([0, 2, 3], [1]),
        ([1, 3], [0, 2]),
        ([0, 1, 2], [3]),
    ]
