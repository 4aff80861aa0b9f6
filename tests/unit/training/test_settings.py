"""Setting any field of a config by its name."""

import json

import pytest

from graphormer_sepnorm.config import ADAPTER, TrainConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import RECIPES, dataset_config
from graphormer_sepnorm.training.settings import ELSEWHERE, field_names, with_given, with_settings


@pytest.fixture
def config():
    return dataset_config("sample", RECIPES["best"].train, None, RECIPES["best"].architecture)


def test_values_are_json_or_text_and_the_last_one_counts(config):
    settings = ["train.warmup=0.5", "model.layers=6", "train.start_from=runs/a=b", "task.loss=mse", "train.warmup=0.25"]
    changed = with_settings(config, [*settings, "model.encodings.2.max_hops=3"])
    assert (changed.train.warmup, changed.train.start_from) == (0.25, "runs/a=b")
    assert (changed.model.layers, changed.model.encodings[2].max_hops, changed.task.loss) == (6, 3, "mse")
    assert changed.model.encodings[:2] == config.model.encodings[:2] and changed.model.width == config.model.width


def test_every_field_can_be_set(config):
    fields = ADAPTER.dump_python(config, mode="json", exclude=ELSEWHERE)
    names = list(field_names(fields))
    assert {"featurizer", "task.mean", "model.encodings.0.name", "train.precision"} <= set(names)
    for name in names:
        value = fields
        for part in name.split("."):
            value = value[int(part) if isinstance(value, list) else part]
        assert with_settings(config, [f"{name}={json.dumps(value)}"]) == config


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("train.warmpu=1", "--set train.warmpu: there is no such field, the nearest is train.warmup"),
        ("train.warmup", "--set train.warmup has no value"),
        ("model.norm=none", "--set: model.norm: unknown norm 'none'"),
        ("model.width=7", "--set: model: width 7 is not a multiple of heads 8"),
        ("featurizer=ogb", "--set: its vocabularies"),
    ],
)
def test_invalid_settings_are_refused_with_a_sentence(config, setting, problem):
    with pytest.raises(InputError) as refused:
        with_settings(config, [setting])
    assert str(refused.value).startswith(problem)


def test_settings_of_a_sweep_are_those_of_every_run(command, tmp_path):
    sweep = ("sweep", "--dataset", "sample", "--norm", "sepnorm", "--out", tmp_path / "runs")
    code, _, messages = command(*sweep, "--set", "train.seed=4")
    assert code == 2 and "leave them out of --set" in messages
    code, _, messages = command(*sweep, "--set", "train.epochs=0")
    assert code == 2 and "train.epochs" in messages and not (tmp_path / "runs").exists()


def test_options_that_are_not_given_are_left_to_the_recipe():
    recipe = TrainConfig(epochs=7, batch_size=16, lr=0.5, seed=3)
    changed = with_given(recipe, {"epochs": None, "seed": 0, "lr": 0.25})
    assert (changed.epochs, changed.batch_size, changed.lr, changed.seed) == (7, 16, 0.25, 0)


def test_a_number_of_epochs_that_is_given_is_exact():
    recipe = TrainConfig(epochs=7, min_updates=400)
    assert with_given(recipe, {"epochs": 2}).min_updates == 0
    assert with_given(recipe, {"epochs": 2, "min_updates": 30}).min_updates == 30
    assert with_given(recipe, {"lr": 0.1, "epochs": None}).min_updates == 400
