from pathlib import Path

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.inference.predict import Nearness
from graphormer_sepnorm.inference.trust import fit_calibration, fit_domain, fit_intervals
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.training.experiment import Scores
from graphormer_sepnorm.training.trusting import (
    ComparedMolecules,
    FirstModel,
    error_words,
    fit_trust,
    look_at_test,
    measure_distances,
    measure_interval,
    molecule_errors,
)

ONE = TaskConfig("regression", "mae", ("a",), mean=(0.0,), std=(9.0,))
TWO = TaskConfig("regression", "mae", ("a", "b"), mean=(0.0, 0.0), std=(2.0, 10.0))
CLASSES = TaskConfig("classification", "rocauc", ("a",))


def scores(task, y, by_network) -> Scores:
    networks = np.array(by_network, np.float64)
    return Scores({}, task, np.array(y, np.float64), networks.mean(axis=0), networks)


def test_errors_of_molecules_by_hand():
    assert molecule_errors(ONE, np.array([[1.0], [np.nan]]), np.array([[4.0], [0]])).tolist()[0] == 3
    found = molecule_errors(
        TWO, np.array([[1.0, 5], [1, np.nan], [np.nan, np.nan]]), np.array([[3.0, 0], [2, 0], [0, 0]])
    )
    np.testing.assert_array_equal(found, [(2 / 2 + 5 / 10) / 2, 1 / 2, np.nan])
    assert molecule_errors(CLASSES, np.array([[1.0]]), np.array([[0.75]])).tolist() == [0.25]
    assert len({error_words(task) for task in (ONE, TWO, CLASSES)}) == 3


def test_coverage_and_width_on_test_by_hand():
    """Errors 1, 2, 3 of calibration: half of the labels lie within 2; no interval of 0.9 can be had of three."""
    intervals = fit_intervals(np.array([[1.0], [2], [3]]), np.zeros((3, 1)), np.zeros((3, 1)))
    test = scores(ONE, [[1.0], [2], [2.5], [9]], [np.zeros((4, 1))])
    shares, widths = measure_interval(intervals, 0.5, test)
    assert (shares.tolist(), widths.tolist()) == ([0.5], [4])
    assert all(np.isnan(values).all() for values in measure_interval(intervals, 0.9, test))


class Training(FirstModel):
    """Three training molecules and two others, with embeddings by their number of atoms."""

    def __init__(self):
        super().__init__(None, None, RunFolder(Path("nowhere")))

    def smiles(self, split):
        return {"train": ["CCO", "CCN", "CCC"], "test": ["CCO", "[Na+]"]}[split]

    def embeddings(self, split):
        return np.array([[3.0], [3], [3]] if split == "train" else [[3.0], [1]])


@pytest.mark.parametrize("y", [[[0.0], [1], [0], [1]], [[0.5], [2], [3], [4]]])
def test_what_is_learnt_is_that_of_the_kind_of_task(y):
    networks = [np.array([[0.3], [0.6], [0.5], [0.9]]), np.array([[0.1], [0.8], [0.5], [0.9]])]
    for task in (ONE, CLASSES):
        val = scores(task, y, networks)
        found = fit_trust(Training(), val)
        assert (found.intervals is None) == (task is CLASSES) != (found.calibration is None)
        if task is CLASSES and y[0] == [0.0]:
            assert found.calibration.slope == fit_calibration(val.y, val.prediction).slope
    assert found.domain.embeddings.tolist() == [[3], [3], [3]]


def test_a_target_without_labels_in_validation_costs_the_intervals_alone():
    found = fit_trust(Training(), scores(TWO, [[1.0, np.nan], [2, np.nan]], [np.zeros((2, 2))]))
    assert found.intervals is None and found.calibration is None and len(found.domain.bits) == 3


def test_the_test_molecules_beside_the_training_molecules():
    domain = fit_domain(Training().smiles("train"), Training().embeddings("train"))
    looked = look_at_test(Training(), domain, scores(ONE, [[1.0], [2]], [np.zeros((2, 1))]))
    assert looked.nearness.similarity.tolist() == [1, 0] and looked.nearness.distance.tolist() == [0, 2]
    assert looked.nearness.molecule[0] == Training().smiles("test")[0]
    assert looked.warnings[0] == "" and "Na was never seen" in looked.warnings[1]
    assert looked.errors.tolist() == [1, 2]


def test_errors_by_similarity_by_hand(tmp_path):
    similarity = np.array([0.1, 0.29, 0.3, 0.95, 1.0, np.nan])
    errors = np.array([1.0, 2, 3, 4, 6, 9])
    looked = ComparedMolecules([], Nearness(similarity, [""] * 6, similarity), ["", "x", "", "y", "", ""], errors)
    found = measure_distances(RunFolder(tmp_path), ONE, looked)
    by_similarity = [(part["n"], part["error"]) for part in found["error_by_similarity"]]
    assert by_similarity == [(2, 1.5), (1, 3), (0, None), (0, None), (0, None), (2, 5)]
    assert found["unfamiliar"] == 2 and (tmp_path / "distance.png").exists()
