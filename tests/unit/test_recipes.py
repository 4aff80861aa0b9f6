from dataclasses import replace
from pathlib import Path

import pytest

from graphormer_sepnorm.chem.features import FEATURIZERS, FOR_TABLES
from graphormer_sepnorm.config import Config, TrainConfig, config_to_json
from graphormer_sepnorm.dataset import ROOT_VARIABLE, data_root
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import RECIPES, Recipe, dataset_config, find_recipe, task_config
from graphormer_sepnorm.system.files import CACHE_VARIABLE, cache_root


def recipe_of(config: Config, folder: Path) -> Recipe:
    (folder / "config.json").write_text(config_to_json(config))
    return find_recipe(str(folder / "config.json"))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_of_an_earlier_run_rebuilds_its_config(name, tmp_path):
    recipe = RECIPES[name]
    train = replace(recipe.train, epochs=7, seed=3, averaging=0.9)
    config = dataset_config("zinc-subset", train, "sharenorm", recipe.architecture)
    found = recipe_of(config, tmp_path)
    assert dataset_config("zinc-subset", found.train, None, found.architecture) == config


def test_a_recipe_for_other_features_is_refused(tmp_path):
    config = dataset_config("zinc-subset", TrainConfig())
    architecture = recipe_of(config, tmp_path).architecture
    with pytest.raises(InputError, match="'zinc' features"):
        task_config("ogbg-molhiv", "ogb", config.task, Recipe(architecture, TrainConfig()))


def test_paper_has_the_hyper_parameters_of_graphormer_slim_on_zinc():
    recipe = RECIPES["paper"]
    model, train = recipe.architecture((28,), (4,), 1), recipe.train
    assert (model.layers, model.width, model.ffn_width, model.heads) == (12, 80, 80, 8)
    assert (model.norm, model.norm_position) == ("sharenorm", "pre")
    assert (model.dropout, model.attention_dropout, model.embedding_std) == (0.1, 0.1, 0.02)
    assert [encoding.name for encoding in model.encodings] == ["centrality", "spatial", "edge"]
    assert model.encodings[2].max_hops == 20
    assert (train.optimizer, train.lr, train.schedule, train.warmup) == ("adamw", 2e-4, "linear", 0.1)
    assert (train.batch_size, train.weight_decay, train.clip_norm, train.averaging) == (256, 0.01, 5.0, 0.0)


def test_the_recipe_of_pretrained_weights_is_their_fine_tuning():
    found = find_recipe("foundation-mini")
    expected = replace(RECIPES["foundation"].train, start_from="foundation-mini", frozen_layers=3)
    features = FEATURIZERS[FOR_TABLES]
    assert found.train == expected
    assert found.architecture(features.atom_sizes, features.bond_sizes).dropout == 0.1


def test_a_recipe_has_no_conditions(tmp_path):
    config = dataset_config("zinc-subset", TrainConfig())
    config = replace(config, model=replace(config.model, conditions=3))
    architecture = recipe_of(config, tmp_path).architecture
    assert dataset_config("zinc-subset", TrainConfig(), None, architecture).model.conditions == 0


def test_the_root_is_the_argument_before_the_variable_before_a_folder_here(monkeypatch):
    monkeypatch.setenv(ROOT_VARIABLE, "/of/the/variable")
    assert data_root("/named") == Path("/named")
    assert data_root(None) == Path("/of/the/variable")
    monkeypatch.setenv(ROOT_VARIABLE, "")
    assert data_root(None) == Path("datasets")
    monkeypatch.delenv(ROOT_VARIABLE)
    assert data_root(None) == Path("datasets")


def test_the_cache_is_the_environment_variable_or_the_users_cache(monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, "/of/the/variable")
    assert cache_root() == Path("/of/the/variable")
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("HOME", "/home/of/someone")
    assert cache_root() == Path("/home/of/someone/.cache/graphormer_sepnorm")
