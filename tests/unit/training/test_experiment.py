import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from graphormer_sepnorm.config import Config, TaskConfig, TrainConfig
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.encodings.random_walk import Resistance
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers.batch_norm import SyncedBatchNorm
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.recipes import RECIPES
from graphormer_sepnorm.runs.checkpoint import save_model
from graphormer_sepnorm.runs.folder import WEIGHTS, RunFolder
from graphormer_sepnorm.training import experiment
from graphormer_sepnorm.training.experiment import Scores, evaluate_run, train_run
from graphormer_sepnorm.training.optimizers import muon
from graphormer_sepnorm.training.sweep import check_config, paired_difference, swept_config
from graphormer_sepnorm.training.trainer import fitted_epochs
from tests.robustness.tiny_run import tiny_config
from tests.tiny import save_tiny, tiny_model
from tests.unit.training.test_trainer import trainer_of


def test_a_model_of_other_features_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="the model reads 'ogb' features, sample has 'zinc' ones"):
        train_run(replace(tiny_model(featurizer="ogb")[1], dataset="sample"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_score_describes_the_run(tmp_path):
    result = evaluate_run(save_tiny(tmp_path, featurizer="zinc"), "val")
    assert (result["dataset"], result["split"], result["metric"], result["n"]) == ("sample", "val", "mae", 500)
    assert result["value"] == result["scores"]["mae"] > 0 and result["epoch"] == 3
    assert json.loads(json.dumps(result)) == result


def test_the_evaluator_of_a_benchmark_is_for_its_own_metric(tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "sample", replace(DATASETS["sample"], evaluate=lambda y, prediction: -1.0))
    model, config = tiny_model(featurizer="zinc")
    for metric in ("mae", "rmse"):
        changed = replace(config, task=replace(config.task, metric=metric))
        save_model(tmp_path / metric / WEIGHTS, model, changed, {"epoch": 3})
    assert evaluate_run(tmp_path / "mae", "val")["value"] == -1
    result = evaluate_run(tmp_path / "rmse", "val")
    assert result["metric"] == "rmse" and result["value"] == pytest.approx(result["scores"]["rmse"])


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
    difference = paired_difference({"norm": "a", "test": [2.0, 4.0, 6.0]}, {"norm": "b", "test": [1.0, 2.0, 3.0]})
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


UNKNOWN = "unknown optimizer 'sgd', choose one of adamw, muon"


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
    with pytest.raises(InputError, match=UNKNOWN):
        experiment.train_run(tiny_config(optimizer="sgd"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def config_of(precision: str, optimizer: str = "adamw", epochs: int = 2) -> Config:
    config = tiny_config(epochs=epochs, dropout=0.0, optimizer=optimizer)
    return replace(config, train=replace(config.train, precision=precision, warmup=0.0, averaging=0.0))


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
