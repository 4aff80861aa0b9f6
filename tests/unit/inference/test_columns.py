"""The columns that predictions add, of two tiny models."""

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.columns import DOMAIN, Columns
from graphormer_sepnorm.inference.predict import Predictor
from tests.tiny import tiny_model


def test_names_follow_what_is_asked_for_and_do_not_stand_there_twice():
    one, two = (Predictor([tiny_model(targets=("a", "b"), seed=seed) for seed in range(count)]) for count in (1, 2))
    assert Columns(one).names(["smiles"]) == ["a", "b", "error"]
    assert Columns(two).names(["a", "error"]) == ["a_predicted", "b", "a_std", "b_std", "error_predicted"]
    assert Columns(one, domain=True).names([]) == ["a", "b", *DOMAIN, "error"]


def test_numbers_are_in_the_order_of_the_names():
    model = Predictor([tiny_model(targets=("a", "b"), seed=seed) for seed in range(2)])
    found = model.predict(["CCO", "C[C"])
    numbers = Columns(model).numbers(found)
    np.testing.assert_array_equal(numbers, np.hstack([found.values, found.spread]))
    assert Columns(model).texts(found) == []


def test_intervals_that_the_model_cannot_give_are_refused():
    with pytest.raises(InputError, match="nothing is known of the molecules"):
        Columns(Predictor([tiny_model()]), 0.9)
    with pytest.raises(InputError, match="is for models of numbers"):
        Columns(Predictor([tiny_model(kind="classification")]), 0.9)
