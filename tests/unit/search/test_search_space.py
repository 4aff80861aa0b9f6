"""The search space."""

from dataclasses import fields, replace

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.recipes import RECIPES, task_config
from graphormer_sepnorm.search.search_space import (
    Range,
    SearchSpace,
    fixed_by,
    searched,
    suggested,
    values_of,
    with_values,
)
from graphormer_sepnorm.training.optimizers import OPTIMIZERS
from graphormer_sepnorm.training.settings import with_settings

TASK = TaskConfig("regression", "mae", ("y",))


def distributions(places, heads: int) -> dict:
    """The distributions that a trial samples from."""
    trial = optuna.create_study().ask()
    suggested(trial, places, heads)
    return trial.distributions


def config_of(recipe: str = "slim"):
    return task_config("table.csv", "mol", TASK, RECIPES[recipe].train, architecture=RECIPES[recipe].architecture)


def test_every_field_belongs_to_a_config_that_accepts_both_ends_of_its_range():
    config = config_of()
    for field in fields(SearchSpace):
        place = field.default
        ends = place if isinstance(place, tuple) else (place.low, place.high)
        for end in ends:
            assert values_of(with_values(config, {field.name: end}))[field.name] == end
    assert set(SearchSpace.norm) <= set(NORMS) and set(SearchSpace.optimizer) == set(OPTIMIZERS)


@pytest.mark.parametrize("recipe", [name for name, recipe in RECIPES.items() if recipe.train.start_from is None])
def test_a_recipe_lies_in_the_space_that_is_searched_around_it(recipe):
    config = config_of(recipe)
    found = distributions(searched(SearchSpace(), config, frozenset()), config.model.heads)
    for name, value in values_of(config).items():
        assert found[name]._contains(found[name].to_internal_repr(value)), name
    assert with_values(config, values_of(config)) == config


def test_distributions_by_hand():
    places = {"lr": Range(1e-4, 1e-2, log=True), "layers": Range(2, 4), "norm": ("sepnorm",), "width": Range(50, 130)}
    assert distributions(places, heads=32) == {
        "lr": FloatDistribution(1e-4, 1e-2, log=True),
        "layers": IntDistribution(2, 4),
        "norm": CategoricalDistribution(["sepnorm"]),
        "width": IntDistribution(64, 128, step=32),
    }


def test_the_ffn_keeps_its_proportion_to_the_width():
    config = config_of()
    wide = replace(config, model=replace(config.model, ffn_width=320))
    assert with_values(wide, {"width": 48}).model.ffn_width == 192


def test_fields_with_a_setting_are_not_searched():
    assert fixed_by(["train.lr=0.1", "model.layers=2", "model.encodings.2.max_hops=3"]) == {"lr", "layers"}
    assert fixed_by(['train={"epochs": 2}']) == {
        "lr", "batch_size", "warmup", "weight_decay", "optimizer",
    }  # fmt: skip
    assert fixed_by([]) == frozenset()
    assert "lr" not in searched(SearchSpace(), config_of(), frozenset({"lr"}))


def test_blocks_without_attention_keep_their_messages():
    assert searched(SearchSpace(), config_of("local"), frozenset())["messages"] == (True,)
    assert searched(SearchSpace(), config_of("best"), frozenset())["messages"] == (False, True)
    assert "messages" not in searched(SearchSpace(), config_of("local"), frozenset({"messages"}))
    gated = with_settings(config_of("best"), ["model.message_gates=true"])
    assert searched(SearchSpace(), gated, frozenset())["messages"] == (True,)


@pytest.mark.parametrize(("cooldown", "longest"), [(0.8, 0.2), (0.1, 0.3), (1.0, 0.0)])
def test_the_warmup_ends_before_the_cooldown(cooldown, longest):
    trapezoid = ['train.schedule="trapezoid"', f"train.cooldown={cooldown}", "train.warmup=0"]
    found = searched(SearchSpace(), with_settings(config_of(), trapezoid), frozenset())["warmup"]
    assert (found.low, found.high) == pytest.approx((0, longest))
