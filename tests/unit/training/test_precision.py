"""Training and evaluation in mixed precision, on the CPU."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.encodings.shipped import Resistance
from graphormer_sepnorm.layers.batch_norm import SyncedBatchNorm
from graphormer_sepnorm.training.trainer import Trainer
from tests.robustness.tiny_run import tiny_config


def config_of(precision: str, optimizer: str = "adamw", epochs: int = 2) -> Config:
    config = tiny_config(epochs=epochs, dropout=0.0, optimizer=optimizer)
    return replace(config, train=replace(config.train, precision=precision, warmup=0.0, averaging=0.0))


def trainer_of(config: Config) -> Trainer:
    return Trainer(config, *(load_split("tiny", split, config.model.encodings) for split in ("train", "val")))


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
