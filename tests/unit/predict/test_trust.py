"""Intervals, calibration and domain as arrays of a file."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.classes import Calibration, ClassSets
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.intervals import Intervals
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.predict.trust import PREFIX, Trust, read_trust, trust_arrays
from tests.unit.predict.test_domain import SMILES, domain

FILE = Path("stack.safetensors")
__all__ = ["domain"]


def test_trust_fits_models_of_its_shape_alone(domain):
    intervals, calibration = Intervals(np.ones((2, 3)), np.zeros(3)), Calibration(np.ones(3), np.zeros(3))
    for trust_of_three in (Trust(domain, intervals), Trust(domain, calibration=calibration)):
        assert trust_of_three.fits(3, 2) and not trust_of_three.fits(2, 2) and not trust_of_three.fits(3, 16)
    assert Trust(fit_domain(SMILES)).fits(5, 16)


@pytest.fixture(params=["regression", "classification", "neither"])
def kept(request, domain) -> Trust:
    rows = TrainingRows.of(np.array([[3.0], [np.nan], [1], [2]])).named(["a", "", "b", "c"])
    intervals = Intervals(np.array([[1.0, 2], [2, np.nan]]), np.array([0.0, 1]))
    calibration, sets = Calibration(np.array([2.0]), np.array([-1.0])), ClassSets(np.full((3, 2, 2), 0.5))
    return {
        "regression": Trust(domain, intervals=intervals, rows=rows),
        "classification": Trust(domain, calibration=calibration, class_sets=sets),
        "neither": Trust(fit_domain(SMILES)),
    }[request.param]


def test_what_is_kept_comes_back(kept):
    found = read_trust(trust_arrays(kept), FILE)
    for name in ("domain", "intervals", "calibration", "rows", "class_sets"):
        ours, theirs = getattr(kept, name), getattr(found, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            for each in fields(ours):
                np.testing.assert_array_equal(getattr(ours, each.name), getattr(theirs, each.name))
    assert found.domain.nearest_rows(["CCCO"])[:2] == kept.domain.nearest_rows(["CCCO"])[:2]
    assert read_trust({"weights": np.ones(3)}, FILE) is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("domain.bits", np.zeros((4, 255), np.uint8)), ("domain.bits", np.zeros((0, 256), np.uint8)),
        ("domain.bits", np.zeros((4, 256), np.float32)), ("domain.kinds", np.zeros((4, 3), np.int64)),
        ("domain.atoms", np.zeros(3, np.int64)), ("domain.embeddings", np.zeros((3, 2), np.float32)),
        ("domain.text", np.frombuffer(b"CCO\nCCN", np.uint8)), ("domain.text", np.zeros(3, np.int64)),
        ("intervals.offset", np.zeros(3)), ("intervals.scores", np.zeros((0, 2))),
        ("intervals.offset", np.array([0, np.nan])), ("intervals.correlation", np.eye(3)),
        ("domain.embeddings", np.full((4, 2), np.inf, np.float32)), ("rows.labels", np.zeros((4, 2))),
        ("class_sets.scores", np.full((2, 2), 0.5)),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(domain, name, values):
    arrays = trust_arrays(Trust(domain, intervals=Intervals(np.ones((2, 2)), np.zeros(2))))
    with pytest.raises(InputError, match=r"stack\.safetensors is damaged"):
        read_trust({**arrays, PREFIX + name: values}, FILE)
