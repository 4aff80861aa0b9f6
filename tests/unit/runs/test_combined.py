"""Folders with several parts are not one network."""

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.predictors import load_embedder
from graphormer_sepnorm.recipes import RECIPES, task_config
from graphormer_sepnorm.training.finetune import starting_from
from tests.tiny import tiny_model


def test_a_shipped_table_model_has_no_single_embedding_and_starts_no_training():
    combines = r"^adme combines 5 networks, a \w+, .*, so"
    with pytest.raises(InputError, match=rf"{combines} it has no single embedding: predict with graphormer-sepnorm p"):
        load_embedder("adme")
    recipe = RECIPES["slim"]
    config = task_config("table.csv", "mol", tiny_model("mol")[1].task, recipe.train, architecture=recipe.architecture)
    chosen = r"training cannot start from it: choose one network, such as foundation$"
    with pytest.raises(InputError, match=rf"{combines} {chosen}"):
        starting_from(config, "adme")
