"""The search space."""

import optuna
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.recipes import RECIPES, task_config
from graphormer_sepnorm.search.search_space import SPACE, fixed_by, searched, values_of, with_values
from graphormer_sepnorm.training.optimizers import OPTIMIZERS
from graphormer_sepnorm.training.settings import with_settings

TASK = TaskConfig("regression", "mae", ("y",))


def config_of(recipe: str = "slim", *settings: str):
    found = RECIPES[recipe]
    config = task_config("table.csv", "mol", TASK, found.train, architecture=found.architecture)
    return with_settings(config, settings)


def test_every_field_belongs_to_a_config_that_accepts_both_ends_of_its_range():
    config = config_of()
    for name, place in SPACE.items():
        for end in getattr(place, "choices", None) or (place.low, place.high):
            assert values_of(with_values(config, {name: end}))[name] == end
    assert set(SPACE["norm"].choices) <= set(NORMS) and set(SPACE["optimizer"].choices) == set(OPTIMIZERS)


@pytest.mark.parametrize("recipe", [name for name, recipe in RECIPES.items() if recipe.train.start_from is None])
def test_a_recipe_lies_in_the_space_that_is_searched_around_it(recipe):
    config = config_of(recipe)
    trial = optuna.create_study().ask(searched(config, frozenset()))
    for name, value in values_of(config).items():
        place = trial.distributions[name]
        assert place._contains(place.to_internal_repr(value)), name
    assert with_values(config, values_of(config)) == config


def test_widths_are_multiples_of_the_heads_and_the_ffn_keeps_its_proportion():
    config = config_of("slim", "model.heads=20", "model.width=160", "model.ffn_width=640")
    width = searched(config, frozenset())["width"]
    assert (width.low, width.high, width.step) == (60, 160, 20), "48 is no multiple, and the recipe has 160"
    assert with_values(config, {"width": 40}).model.ffn_width == 160


def test_fields_with_a_setting_are_not_searched():
    assert fixed_by(["train.lr=0.1", "model.layers=2", "model.encodings.2.max_hops=3"]) == {"lr", "layers"}
    assert fixed_by(['train={"epochs": 2}']) == {"lr", "batch_size", "warmup", "weight_decay", "optimizer"}
    assert fixed_by([]) == frozenset()
    assert "lr" not in searched(config_of(), frozenset({"lr"}))


def test_blocks_without_attention_keep_their_messages():
    assert searched(config_of("local"), frozenset())["messages"].choices == (True,)
    assert searched(config_of("best"), frozenset())["messages"].choices == (False, True)
    assert "messages" not in searched(config_of("local"), frozenset({"messages"}))
    assert searched(config_of("best", "model.message_gates=true"), frozenset())["messages"].choices == (True,)


@pytest.mark.parametrize(("cooldown", "longest"), [(0.8, 0.2), (0.1, 0.3), (1.0, 0.0)])
def test_the_warmup_ends_before_the_cooldown(cooldown, longest):
    trapezoid = ['train.schedule="trapezoid"', f"train.cooldown={cooldown}", "train.warmup=0"]
    found = searched(config_of("slim", *trapezoid), frozenset())["warmup"]
    assert (found.low, found.high) == pytest.approx((0, longest))
