import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeCV

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.config import ADAPTER, Config, TrainConfig
from graphormer_sepnorm.datasets.store import in_memory
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import predict_dataset
from graphormer_sepnorm.recipes import RECIPES, dataset_config
from graphormer_sepnorm.runs.checkpoint import save_model
from graphormer_sepnorm.runs.folder import WEIGHTS
from graphormer_sepnorm.tasks import make_task
from graphormer_sepnorm.training.finetune import (
    PENALTIES,
    ridge,
    start_from,
    start_head,
    starting_from,
)
from graphormer_sepnorm.training.settings import ELSEWHERE, field_names, with_given, with_settings
from tests.tiny import save_tiny, tiny_model


def test_a_run_takes_over_the_featurizer_and_keeps_its_task(tmp_path):
    save_tiny(tmp_path, featurizer="ogb", targets=("a",))
    _, config = tiny_model(featurizer="zinc", targets=("x", "y"))
    found = starting_from(config, str(tmp_path), frozen_layers=1)
    assert (found.featurizer, found.model.num_tasks, found.task) == ("ogb", 2, config.task)
    assert (found.train.start_from, found.train.frozen_layers) == (str(tmp_path), 1)
    assert isinstance(found, Config) and found.train.lr == TrainConfig().lr


def test_a_run_that_strips_salts_keeps_doing_so_with_a_checkpoint(tmp_path):
    save_tiny(tmp_path, featurizer="ogb")
    _, config = tiny_model(featurizer="mol-without-salts")
    assert starting_from(config, str(tmp_path)).featurizer == "ogb-without-salts"


def test_all_weights_but_those_of_the_last_layer_come_from_the_checkpoint(tmp_path):
    save_tiny(tmp_path, seed=0)
    saved, _ = tiny_model(seed=0)
    model, _ = tiny_model(seed=1)
    last = {name: tensor.clone() for name, tensor in model.state_dict().items() if name.startswith("head.2.")}
    start_from(model, tmp_path)
    assert last
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, last.get(name, saved.state_dict()[name])), name
    learning = {name for name, parameter in saved.named_parameters() if parameter.requires_grad}
    assert {name for name, parameter in model.named_parameters() if parameter.requires_grad} == learning > last.keys()


def test_ridge_regression_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 6)) * [1, 10, 0.1, 1, 1, 1] + 3
    y = x @ [1, 0.1, 5, 0, 0, -1] + 0.5 * rng.normal(size=40)
    scaled = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-6)
    known = RidgeCV(PENALTIES).fit(scaled, y)
    weight, bias = ridge(x, y)
    np.testing.assert_allclose(x @ weight + bias, known.predict(scaled), rtol=1e-5)


def test_the_head_starts_as_a_regression_of_the_labels(smiles):
    """The number of atoms, which a model with random weights knows; a target with few labels keeps its weights."""
    model, config = tiny_model("mol", ("atoms", "few"))
    graphs = FEATURIZERS["mol"].pack([FEATURIZERS["mol"].graph(text) for text in smiles[:60]])
    y = np.stack([graphs.num_atoms, np.full(60, np.nan)], axis=1).astype(np.float32)
    y[:3, 1] = [1, 2, 3]
    data = in_memory(graphs.with_targets(y), config.model.encodings)
    task = make_task(make_task(replace(config.task, kind="regression", metric="mae")).fitted(y))
    few = model.head[2].weight[1].clone()
    start_head(model, data, task)
    found = predict_dataset(model, data, task)[:, 0]
    assert np.corrcoef(found, y[:, 0])[0, 1] > 0.7 and abs(found.mean() - y[:, 0].mean()) < 1
    assert torch.equal(model.head[2].weight[1], few)


@pytest.mark.parametrize("earlier", [0, 3])
def test_weights_of_conditions_stay_fresh(tmp_path, earlier):
    _, config = tiny_model()
    saved = Network(replace(config.model, conditions=earlier))
    save_model(tmp_path / WEIGHTS, saved, replace(config, model=saved.config), {})
    assert starting_from(config, str(tmp_path)).model.conditions == 0
    model = Network(replace(config.model, conditions=2))
    fresh = model.head[0].weight[:, 16:].clone()
    start_from(model, tmp_path)
    assert torch.equal(model.head[0].weight[:, :16], saved.head[0].weight[:, :16])
    assert torch.equal(model.head[0].weight[:, 16:], fresh)


def learning_parts(model: Network) -> set[str]:
    names = (name for name, parameter in model.named_parameters() if parameter.requires_grad)
    return {".".join(name.split(".")[:2]) for name in names}


def test_local_blocks_freeze_first_and_values_of_atoms_belong_to_the_head(tmp_path):
    _, config = tiny_model()
    config = replace(config, model=replace(config.model, layers=3, messages=True, attention_layers=1, atom_values=True))
    save_model(tmp_path / WEIGHTS, Network(config.model), config, {})
    model = Network(config.model)
    fresh = {name: tensor.clone() for name, tensor in model.atom_values.state_dict().items()}
    start_from(model, tmp_path, frozen_layers=1)
    assert all(torch.equal(tensor, fresh[name]) for name, tensor in model.atom_values.state_dict().items())
    atom_values = {"atom_values.hidden", "atom_values.out"}
    assert learning_parts(model) == {"local_blocks.1", "blocks.0", "head.0", "head.2"} | atom_values


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


def test_options_that_are_not_given_are_left_to_the_recipe_and_given_epochs_are_exact():
    recipe = TrainConfig(epochs=7, batch_size=16, lr=0.5, seed=3, min_updates=400)
    found = with_given(recipe, {"epochs": None, "seed": 0, "lr": 0.25})
    assert (found.epochs, found.batch_size, found.lr, found.seed, found.min_updates) == (7, 16, 0.25, 0, 400)
    assert with_given(recipe, {"epochs": 2}).min_updates == 0
    assert with_given(recipe, {"epochs": 2, "min_updates": 30}).min_updates == 30
