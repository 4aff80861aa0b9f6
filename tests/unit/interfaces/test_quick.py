import numpy as np
import pytest

from graphormer_sepnorm import GraphormerRegressor
from graphormer_sepnorm.interfaces import quick


def unused(**given) -> list[str]:
    return quick.unused_parameters(GraphormerRegressor(**given).get_params(), GraphormerRegressor().get_params())


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, []),
        ({"networks": 3, "metric": "rmse", "balance": True, "pretrained": "foundation-mini"}, []),
        ({"split": "random", "random_state": 1, "strip_salts": True, "standardize": "parent"}, []),
        ({"epochs": np.int64(3)}, ["epochs"]),
        ({"weights": np.array([1.0, 2.0]), "loss": "mse", "forest": False}, ["forest", "loss", "weights"]),
        ({"weights": []}, []),
        ({"recipe": "slim"}, ["recipe"]),
        ({"settings": {"train.start_from": "zinc", "train.lr": 0.1}}, ["settings train.lr"]),
        ({"pretrained": "foundation-mini", "frozen_layers": 2}, ["frozen_layers"]),
    ],
)
def test_parameters_without_an_effect(given, names):
    assert unused(**given) == names
