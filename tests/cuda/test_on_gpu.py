"""On a CUDA GPU: what the meta device and the CPU stand for elsewhere. ``pytest -m cuda``."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.predict.forward import embed_dataset, predict_dataset
from graphormer_sepnorm.recipes import RECIPES
from graphormer_sepnorm.runs.checkpoint import load_tensors
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.device import autocast, choose, computing
from graphormer_sepnorm.training.experiment import evaluate_run, train_run
from graphormer_sepnorm.training.optimizers import OPTIMIZERS
from graphormer_sepnorm.training.run_writer import RunWriter
from tests.robustness.tiny_run import update
from tests.unit.training.test_trainer import config_of, trainer_of

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]


BATCHES = [np.arange(8), np.arange(8, 15), np.arange(15, 23), np.arange(23, 31), np.arange(29, 37)]


@pytest.fixture(autouse=True)
def on_gpu():
    torch._dynamo.reset()
    with computing(choose("cuda")):
        yield


def without_dropout(config: Config) -> Config:
    return replace(config, model=replace(config.model, dropout=0.0, attention_dropout=0.0))


def assert_near(found: Tensor, expected: Tensor, tolerance: float) -> None:
    assert (found - expected).norm() <= tolerance * expected.norm()


@pytest.mark.parametrize("precision, tolerance", [("32-true", 1e-4), ("bf16-mixed", 0.1)])
@pytest.mark.parametrize("recipe", RECIPES)
def test_both_precisions_predict_and_embed_what_the_cpu_does(recipe, precision, tolerance):
    config = config_of(recipe)
    trainer = trainer_of(config)
    model, data = trainer.model.eval(), trainer.val
    with autocast(precision, torch.device("cuda")):
        found = predict_dataset(model, data, trainer.objective.here), embed_dataset(model, data)
    model.cpu()
    expected = predict_dataset(model, data, trainer.objective.here), embed_dataset(model, data)
    for a, b in zip(found, expected, strict=True):
        assert_near(torch.from_numpy(a), torch.from_numpy(b), tolerance)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_updates_do_not_synchronise(recipe, precision):
    """After some that allocate; batches come from another thread, as in training."""
    trainer = trainer_of(config_of(recipe, precision))
    trainer.model.train()
    for share in trainer.shares(BATCHES):
        trainer.update(share, 1e-3)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = [trainer.update(share, 1e-3) for share in trainer.shares(BATCHES)]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.stack(found).isfinite().all()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_updates_are_those_of_the_cpu(recipe, optimizer):
    config = without_dropout(config_of(recipe, optimizer=optimizer))
    losses, averages = [], []
    for device in ("cpu", "cuda"):
        with computing(choose(device)):
            trainer = trainer_of(config)
            trainer.model.train()
            losses.append(torch.stack([update(trainer, batch).cpu() for batch in BATCHES]))
            averages.append(trainer.evaluated.embedding.table.detach().cpu())
    torch.testing.assert_close(losses[1][:1], losses[0][:1], rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-2, atol=1e-4)  # Muon computes in bfloat16 on a GPU
    assert_near(averages[1], averages[0], 1e-2)


def test_a_compiled_model_learns_the_same():
    config = without_dropout(config_of("best", "bf16-mixed"))
    losses = []
    for compiled in (False, True):
        trainer = trainer_of(replace(config, train=replace(config.train, compile=compiled)))
        trainer.model.train()
        losses.append(torch.stack([update(trainer, batch)[0].cpu() for batch in BATCHES[:3]]))
    torch.testing.assert_close(losses[1], losses[0], rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("recipe", ["slim", "best"])
def test_attention_is_fused(recipe, precision):
    """Heads of width 8 and of width 10; the way back, too."""
    config = config_of(recipe, precision)
    trainer = trainer_of(replace(config, model=replace(config.model, width=40)))
    trainer.model.train()
    update(trainer, BATCHES[0])
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        update(trainer, BATCHES[0])
    names = {event.key for event in profile.key_averages()}
    assert "aten::_scaled_dot_product_attention_math" not in names
    assert any(name.startswith("aten::_scaled_dot_product_") and name.endswith("_backward") for name in names)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_update_whose_loss_is_not_finite_changes_no_weight(optimizer, monkeypatch):
    trainer = trainer_of(config_of("best", optimizer=optimizer))
    trainer.model.train()
    update(trainer, BATCHES[0])
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    monkeypatch.setattr(trainer.objective, "loss", lambda network, batch: network(batch).sum() * torch.inf)
    assert not update(trainer, BATCHES[1]).isfinite().all()
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))


def test_a_run_is_saved_after_its_first_epoch_and_at_its_end(tmp_path):
    config = config_of("slim")
    run = RunFolder(tmp_path / "run")
    recorder = RunWriter(trainer_of(replace(config, train=replace(config.train, epochs=3))), run)
    seen = [(epoch.epoch, len(run.read_metrics())) for epoch in recorder.epochs()]
    assert seen == [(1, 1), (2, 1), (3, 1)] and len(run.read_metrics()) == 3
    assert load_tensors(run.state)[2]["epoch"] == 3


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("recipe", ["slim", "best"])
def test_a_run_is_resumed_and_scored(tmp_path, recipe, precision):
    config = config_of(recipe, precision)
    config = replace(config, train=replace(config.train, epochs=2))
    result = train_run(config, tmp_path / "run")
    assert evaluate_run(tmp_path / "run")["value"] == pytest.approx(result["value"], rel=1e-3)
    assert train_run(config, tmp_path / "run", resume=True)["value"] == pytest.approx(result["value"], rel=1e-3)
    assert len(RunFolder(tmp_path / "run").read_metrics()) == 2


def test_a_full_gpu_is_a_sentence(command, tmp_path):
    torch.cuda.set_per_process_memory_fraction(1e-4)
    try:
        code, _, messages = command("train", "--epochs", "1", "--out", tmp_path / "run", "--device", "cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert code == 2 and messages.splitlines()[-1].startswith("error: the GPU is out of memory")
