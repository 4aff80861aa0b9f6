import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeCV
from torch import Tensor, nn

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.config import ADAPTER, Config, TaskConfig, TrainConfig
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.datasets.store import in_memory
from graphormer_sepnorm.encodings.shipped import Resistance
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers.batch_norm import SyncedBatchNorm
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import predict_dataset
from graphormer_sepnorm.recipes import RECIPES, dataset_config
from graphormer_sepnorm.runs.checkpoint import save_model
from graphormer_sepnorm.runs.folder import WEIGHTS, RunFolder
from graphormer_sepnorm.tasks import make_task
from graphormer_sepnorm.training import experiment
from graphormer_sepnorm.training.experiment import Scores, evaluate_run, train_run
from graphormer_sepnorm.training.finetune import (
    PENALTIES,
    ridge,
    start_from,
    start_head,
    starting_from,
)
from graphormer_sepnorm.training.optimizers import muon
from graphormer_sepnorm.training.settings import ELSEWHERE, field_names, with_given, with_settings
from graphormer_sepnorm.training.sweep import check_config, paired_by_seed, swept_config
from graphormer_sepnorm.training.trainer import fitted_epochs
from tests.robustness.tiny_run import tiny_config
from tests.tiny import save_tiny, tiny_model
from tests.unit.training.test_trainer import trainer_of


def test_a_model_of_other_features_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="the model reads 'ogb' features, sample has 'zinc' ones"):
        train_run(replace(tiny_model(featurizer="ogb")[1], dataset="sample"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_evaluator_of_a_benchmark_is_for_its_own_metric(tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "sample", replace(DATASETS["sample"], evaluate=lambda y, prediction: -1.0))
    model, config = tiny_model(featurizer="zinc")
    for metric in ("mae", "rmse"):
        changed = replace(config, task=replace(config.task, metric=metric))
        save_model(tmp_path / metric / WEIGHTS, model, changed, {"epoch": 3})
    assert evaluate_run(tmp_path / "mae", "val")["value"] == -1
    result = evaluate_run(tmp_path / "rmse", "val")
    assert (result["dataset"], result["split"], result["metric"], result["n"]) == ("sample", "val", "rmse", 500)
    assert result["value"] == pytest.approx(result["scores"]["rmse"]) and result["epoch"] == 3
    assert json.loads(json.dumps(result)) == result


def test_predictions_of_a_named_dataset_are_counted(tmp_path):
    task = TaskConfig("regression", "mae", ("a", "b"))
    y, prediction = np.array([[0.5, float("nan")], [2.0, 1.0]], np.float32), np.array([[0.25, 3.0], [2.5, 1.0]])
    assert Scores({"split": "test"}, task, y, prediction, prediction[None]).lines() == [
        ["row", "smiles", "split", "a", "b", "a_predicted", "b_predicted"],
        [1, "", "test", "0.5", "", "0.25", "3"],
        [2, "", "test", "2.0", "1.0", "2.5", "1"],
    ]


def test_two_norms_are_compared_seed_by_seed():
    """Differences 1, 2, 3: mean 2, standard error 1 / sqrt(3), Student's t with two degrees of freedom 4.302653."""
    difference = paired_by_seed({"norm": "a", "test": [2.0, 4.0, 6.0]}, {"norm": "b", "test": [1.0, 2.0, 3.0]})
    assert (difference["norm"], difference["minus"], difference["mean"]) == ("a", "b", 2.0)
    assert difference["low"] == pytest.approx(2 - 4.302653 / math.sqrt(3), abs=1e-6)
    assert difference["high"] == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-6)
    assert {type(difference[name]) for name in ("mean", "low", "high")} == {float}  # of NumPy, it is printed otherwise


def test_a_recipe_that_starts_from_weights_of_other_molecules_is_refused():
    with pytest.raises(InputError, match="training starts from foundation, whose model is another one"):
        swept_config("sample", "sepnorm", 0, RECIPES["foundation"], [])


def test_a_run_with_more_epochs_for_its_molecules_is_continued(tmp_path):
    """2,000 molecules in batches of 64 are 32 updates, so 2,000 updates are 63 epochs."""

    def config_of(epochs: int):
        settings = ["train.min_updates=2000", f"train.epochs={epochs}", "train.batch_size=64"]
        return swept_config("sample", "sepnorm", 0, RECIPES["slim"], settings)

    config = config_of(2)
    fitted = replace(config, train=fitted_epochs(config.train, 2000))
    assert fitted.train.epochs == 63
    RunFolder(tmp_path).begin(fitted)
    check_config(tmp_path, config)
    with pytest.raises(InputError, match="holds a run of another recipe"):
        check_config(tmp_path, config_of(64))


def test_muon_updates_the_weight_matrices_of_all_blocks_and_adamw_the_rest():
    config = replace(tiny_config().model, layers=3)
    model = Network(config)
    moved, rest = muon(model, TrainConfig())
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    matrices = {names[id(parameter)] for group in moved.param_groups for parameter in group["params"]}
    linear = ("attention.qkv", "attention.out", "ffn.up", "ffn.down")
    assert matrices == {f"blocks.{block}.{name}.weight" for block in range(3) for name in linear}
    others = [names[id(parameter)] for group in rest.param_groups for parameter in group["params"]]
    assert sorted([*matrices, *others]) == sorted(names.values())


def test_an_unknown_optimizer_ends_a_run_before_any_molecule_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "load_split", lambda *arguments: pytest.fail("read"))
    with pytest.raises(InputError, match="unknown optimizer 'sgd', choose one of adamw, muon"):
        experiment.train_run(tiny_config(optimizer="sgd"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def config_of(precision: str, optimizer: str = "adamw", epochs: int = 2) -> Config:
    config = tiny_config(epochs=epochs, dropout=0.0, optimizer=optimizer)
    return replace(config, train=replace(config.train, precision=precision, warmup=0.0, averaging=0.0))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_the_loss_falls_in_bfloat16(optimizer):
    """With LayerNorms, because statistics of batches of four are too noisy for two epochs."""
    config = config_of("bf16-mixed", optimizer)
    model, train = replace(config.model, norm="sepnorm-layernorm"), replace(config.train, batch_size=4, lr=1e-3)
    trainer = trainer_of(replace(config, model=model, train=train))
    first, second = trainer.epochs()
    assert second.train_loss < first.train_loss
    assert second.val_metric < first.val_metric
    assert all(parameter.dtype == torch.float32 for parameter in trainer.model.parameters())


@pytest.mark.parametrize(("precision", "kind"), [("bf16-mixed", torch.bfloat16), ("32-true", torch.float32)])
def test_training_and_evaluation_compute_in_the_precision_of_the_run(precision, kind):
    trainer, seen = trainer_of(config_of(precision, epochs=1)), {True: set(), False: set()}

    def look(linear: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        seen[linear.training].add(output.dtype)

    trainer.model.head[2].register_forward_hook(look)
    (epoch,) = trainer.epochs()
    assert seen == {True: {kind}, False: {kind}}
    assert isinstance(epoch.val_metric, float)


@pytest.mark.slow
def test_in_bfloat16_norms_residuals_softmax_and_the_optimizer_stay_in_float32(monkeypatch):
    config = config_of("bf16-mixed", epochs=1)
    encodings = (*config.model.encodings, Resistance(multiplies=True))
    trainer = trainer_of(replace(config, model=replace(config.model, encodings=encodings, messages=True)))
    seen, softmax = set(), Tensor.softmax

    def look(norm: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        seen.update((inputs[0].dtype, output.dtype))

    def look_at_softmax(scores: Tensor, *arguments, **options) -> Tensor:
        seen.add((weights := softmax(scores, *arguments, **options)).dtype)
        return weights

    monkeypatch.setattr(Tensor, "softmax", look_at_softmax)
    for module in trainer.model.modules():
        if isinstance(module, nn.LayerNorm | nn.BatchNorm1d):
            module.register_forward_hook(look)
    list(trainer.epochs())
    assert seen == {torch.float32}
    (optimizer,) = trainer.optimizers
    kept = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]
    assert kept and {value.dtype for value in kept} == {torch.float32}


def test_synchronized_statistics_of_many_bfloat16_rows_are_exact():
    """257 rows: bfloat16 cannot represent this number."""
    torch.manual_seed(0)
    norm, plain = SyncedBatchNorm(4), nn.BatchNorm1d(4)
    x = torch.randn(257, 4).bfloat16()
    torch.testing.assert_close(norm(x), plain(x.float()), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(norm.running_var, plain.running_var)
    torch.testing.assert_close(norm.running_mean, plain.running_mean)


def test_a_run_takes_over_the_featurizer_and_keeps_its_task(tmp_path):
    save_tiny(tmp_path, featurizer="ogb", targets=("a",))
    _, config = tiny_model(featurizer="zinc", targets=("x", "y"))
    found = starting_from(config, str(tmp_path), frozen_layers=1)
    assert (found.featurizer, found.model.num_tasks, found.task) == ("ogb", 2, config.task)
    assert (found.train.start_from, found.train.frozen_layers) == (str(tmp_path), 1)
    assert isinstance(found, Config) and found.train.lr == TrainConfig().lr
    _, config = tiny_model(featurizer="mol-without-salts")
    assert starting_from(config, str(tmp_path)).featurizer == "ogb-without-salts", "which keeps stripping salts"


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


@pytest.mark.slow
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


def test_local_blocks_freeze_first_and_values_of_atoms_belong_to_the_head(tmp_path):
    _, config = tiny_model()
    config = replace(config, model=replace(config.model, layers=3, messages=True, attention_layers=1, atom_values=True))
    save_model(tmp_path / WEIGHTS, Network(config.model), config, {})
    model = Network(config.model)
    fresh = {name: tensor.clone() for name, tensor in model.atom_values.state_dict().items()}
    start_from(model, tmp_path, frozen_layers=1)
    assert all(torch.equal(tensor, fresh[name]) for name, tensor in model.atom_values.state_dict().items())
    learning = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    atom_values = {"atom_values.hidden", "atom_values.out"}
    expected = {"local_blocks.1", "blocks.0", "head.0", "head.2"} | atom_values
    assert {".".join(name.split(".")[:2]) for name in learning} == expected


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
