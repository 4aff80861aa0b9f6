import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.config import Config, TrainConfig
from graphormer_sepnorm.datasets import store
from graphormer_sepnorm.datasets.benchmarks import MAE, sample_table
from graphormer_sepnorm.encodings.shipped import Centrality, EdgePath, RandomWalk, Spatial
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.forward import predict_dataset
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import WEIGHTS
from graphormer_sepnorm.tasks import make_task
from graphormer_sepnorm.training import trainer
from graphormer_sepnorm.training.optimizers import OPTIMIZERS, BatchedMuon
from graphormer_sepnorm.training.trainer import Share, Trainer, epoch_batches, learning_rate
from tests.robustness.tiny_run import update as update_by
from tests.tiny import recorder


@pytest.fixture
def run_config(config) -> Config:
    featurizer = FEATURIZERS["zinc"]
    sizes = {"atom_sizes": featurizer.atom_sizes, "bond_sizes": featurizer.bond_sizes}
    model = replace(config, **sizes, encodings=(Centrality(), Spatial(), EdgePath()), attention_dropout=0.1)
    train = TrainConfig(epochs=4, batch_size=8, lr=3e-3, averaging=0.9)
    return Config(dataset="sample", featurizer="zinc", task=MAE, model=model, train=train)


def molecules(count, config, skip=0):
    table = sample_table().iloc[skip : skip + count]
    featurizer = FEATURIZERS["zinc"]
    graphs = featurizer.pack([featurizer.graph(smiles) for smiles in table.smiles])
    y = table[["penalized_logp"]].to_numpy(np.float32)
    return store.in_memory(graphs.with_targets(y), config.model.encodings)


@pytest.mark.slow
def test_batch_norm_statistics_are_those_of_the_training_split_alone(run_config):
    one, other = molecules(40, run_config), molecules(40, run_config, skip=40)
    found = []
    for train, val in ((one, other), (one, molecules(20, run_config, skip=80)), (other, one)):
        trainer = Trainer(run_config, train, val)
        trainer.evaluate(1)
        found.append(statistics_of(trainer.evaluated))
    assert found[0] == found[1] != found[2]


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "keep", "kept_epoch"), [("mae", "best", 2), ("r2", "best", 3), ("mae", "last", 4)])
def test_the_best_or_the_last_epoch_is_kept(run_config, tmp_path, monkeypatch, metric, keep, kept_epoch):
    task, train = replace(run_config.task, metric=metric), replace(run_config.train, keep=keep)
    config = replace(run_config, task=task, train=train)
    run = recorder(config, molecules(16, config), molecules(16, config, skip=40), tmp_path)
    trainer = run.trainer
    scores = {1: 0.5, 2: 0.3, 3: 0.8, 4: 0.4}
    seen = {}

    def evaluate(epoch: int) -> float:
        seen[epoch] = {name: value.clone() for name, value in trainer.evaluated.state_dict().items()}
        return scores[epoch]

    monkeypatch.setattr(trainer, "evaluate", evaluate)
    assert run.train() == {"epoch": kept_epoch, "val_metric": scores[kept_epoch]}
    kept, _, facts = checkpoint.load_tensors(tmp_path / WEIGHTS)
    assert facts == {"epoch": kept_epoch, "val_metric": scores[kept_epoch]}
    for epoch, weights in seen.items():
        assert all(torch.equal(kept[name], value) for name, value in weights.items()) is (epoch == kept_epoch)
    assert trainer.evaluated.cls.equal(kept["cls"]) is (keep == "last")


@pytest.mark.slow
def test_the_averaged_weights_are_evaluated_and_kept(run_config, tmp_path, monkeypatch):
    """Averages by hand: those of the first update, then nine parts before and one part now."""
    train, val = molecules(40, run_config), molecules(20, run_config, skip=40)
    run = recorder(run_config, train, val, tmp_path)
    trainer = run.trainer
    update, average = Trainer.update, {}

    def recording(trainer: Trainer, share: Share, lr: float) -> torch.Tensor:
        done = update(trainer, share, lr)
        for name, value in trainer.model.named_parameters():
            now = value.detach().clone()
            average[name] = 0.9 * average[name] + 0.1 * now if name in average else now
        return done

    monkeypatch.setattr(Trainer, "update", recording)
    next(run.epochs())
    kept, config, facts = checkpoint.load_model(tmp_path)
    for name, value in kept.named_parameters():
        torch.testing.assert_close(value, average[name])
    task = make_task(config.task)
    assert facts["val_metric"] == pytest.approx(task.metric(val.y, predict_dataset(kept, val, task)), abs=1e-6)
    assert not all(torch.allclose(average[name], value) for name, value in trainer.model.named_parameters())


def at_each_step(trainer: Trainer, look) -> list:
    """What ``look(optimizer)`` gives right before each step of each optimizer, from now on."""
    seen = []
    for optimizer in trainer.optimizers:
        optimizer.register_step_pre_hook(lambda inner, *arguments: seen.append(look(inner)))
    return seen


@pytest.mark.parametrize("warmup", [0.0, 0.5])
def test_the_learning_rate_changes_with_every_update(run_config, warmup):
    train = replace(run_config.train, epochs=2, warmup=warmup)
    data = molecules(32, run_config)
    trainer = Trainer(replace(run_config, train=train), data, data)
    rates = at_each_step(trainer, lambda optimizer: [group["lr"] for group in optimizer.param_groups])
    list(trainer.epochs())
    expected = [learning_rate(train, update, 8) for update in range(8)]
    assert rates == [[pytest.approx(rate)] * 2 for rate in expected]
    assert len(set(expected)) >= 7 and min(expected) > 0


def test_patience_counts_from_the_first_epoch_in_which_the_body_learns(run_config, tmp_path, monkeypatch):
    """Every epoch is worse than the one before it; of four frozen ones and patience 2, six are trained."""
    data = molecules(16, run_config)
    list(recorder(replace(run_config, train=replace(run_config.train, epochs=1)), data, data, tmp_path).epochs())
    train = replace(run_config.train, epochs=10, start_from=str(tmp_path), frozen_epochs=4, patience=2)
    trainer = Trainer(replace(run_config, train=train), data, data)
    monkeypatch.setattr(Trainer, "evaluate", lambda self, epoch: float(epoch))
    assert [epoch.val_metric for epoch in trainer.epochs()] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_gradients_are_clipped(run_config, optimizer):
    train = replace(run_config.train, clip_norm=1e-3, optimizer=optimizer)
    data = molecules(16, run_config)
    trainer = Trainer(replace(run_config, train=train), data, data)

    def squared_norm(inner: torch.optim.Optimizer) -> float:
        gradients = (parameter.grad for group in inner.param_groups for parameter in group["params"])
        return sum(float(gradient.double().square().sum()) for gradient in gradients if gradient is not None)

    seen = at_each_step(trainer, squared_norm)
    update_by(trainer, np.arange(16))
    assert sum(seen) ** 0.5 == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_parameter_is_updated_once_and_only_weight_matrices_decay(run_config, name):
    """Without a gradient, by 1 - 0.1 * 0.5."""
    model = trainer.Network(run_config.model)
    before = {key: value.detach().clone() for key, value in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    updated = []
    for optimizer in OPTIMIZERS[name](model, replace(run_config.train, lr=0.1, weight_decay=0.5)):
        optimizer.step()
        updated += [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    assert sorted(updated) == sorted(map(id, model.parameters()))
    matrices = {f"{key}.weight" for key, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    assert any(key.startswith("blocks") for key in matrices) and any(key.startswith("head") for key in matrices)
    for key, value in model.named_parameters():
        torch.testing.assert_close(value.detach(), before[key] * (0.95 if key in matrices else 1))


@pytest.mark.parametrize(("until", "dropping"), [(1.0, [1, 2, 3, 4]), (0.5, [1, 2]), (0.7, [1, 2]), (0.0, [])])
def test_nothing_is_dropped_after_a_fraction_of_the_epochs(run_config, monkeypatch, until, dropping):
    train = replace(run_config.train, epochs=4, dropout_until=until)
    config = replace(run_config, model=replace(run_config.model, attention_dropout=0.5, dropout=0.5), train=train)
    data = molecules(16, config)
    seen = {}

    def train_epoch(trainer, epoch):
        seen[epoch] = trainer.model.blocks[0].dropout.p
        return 0.0, 0.0

    monkeypatch.setattr(Trainer, "train_epoch", train_epoch)
    for _ in Trainer(config, data, data).epochs():
        pass
    assert seen == {epoch: 0.5 if epoch in dropping else 0.0 for epoch in (1, 2, 3, 4)}


def test_batch_norm_keeps_its_statistics_after_a_fraction_of_the_epochs(run_config, monkeypatch):
    """From then on, the loss of training is that of evaluation."""
    train = replace(run_config.train, epochs=4, statistics_until=0.5, averaging=0.5)
    norm = "sepnorm-layernorm-batchnorm"
    config = replace(run_config, model=replace(run_config.model, norm=norm, attention_dropout=0.0), train=train)
    data = molecules(16, config)
    run = Trainer(config, data, data)
    losses: list[bool] = []
    find_loss = trainer.find_loss

    def compared(model, objective, precision, batch):
        loss = find_loss(model, objective, precision, batch)
        evaluated = find_loss(copy.deepcopy(model).eval(), objective, precision, batch)
        losses.append(bool(torch.isclose(loss, evaluated)))
        return loss

    monkeypatch.setattr(trainer, "find_loss", compared)
    found = []
    for _ in run.epochs():
        found.append([losses[-1], statistics_of(run.model), statistics_of(run.evaluated)])
    assert [same for same, _, _ in found] == [False, False, True, True]
    _, second, third, fourth = (before for _, before, _ in found)
    assert third == fourth == found[2][2] == found[3][2] and second != third


def statistics_of(model) -> dict[str, list[float]]:
    return {name: value.tolist() for name, value in model.named_buffers() if "running_" in name}


def test_muon_in_batches_equals_that_of_pytorch():
    generator = torch.Generator().manual_seed(0)
    shapes = [(48, 16), (16, 16), (48, 16), (16, 32)]
    ours, theirs = ([torch.nn.Parameter(torch.ones(shape)) for shape in shapes] for _ in range(2))
    optimizers = (
        BatchedMuon(ours, lr=0.1, weight_decay=0.5),
        torch.optim.Muon(theirs, lr=0.1, weight_decay=0.5, adjust_lr_fn="match_rms_adamw"),
    )
    for _ in range(3):
        for mine, other in zip(ours, theirs, strict=True):
            mine.grad = other.grad = torch.randn(mine.shape, generator=generator)
        for optimizer in optimizers:
            optimizer.step()
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine - other).norm() < 2**-7 * (mine - 1).norm()  # bfloat16 has 8 bits


@pytest.mark.parametrize("norm", ["sepnorm", "sharenorm-batchnorm"])
def test_the_molecules_whose_own_loss_is_not_finite_are_named_alone(run_config, norm):
    """Features that are no numbers in two of the 16 molecules of one batch; nothing has moved then."""
    model = replace(run_config.model, encodings=(RandomWalk(),), norm=norm)
    config = replace(run_config, model=model, train=replace(run_config.train, batch_size=16))
    data = molecules(16, config)
    trainer = Trainer(config, data, data)
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    for molecule in (5, 11):
        data.shards[0].arrays["rrwp"][data.shards[0].rows("pair", molecule)] = np.nan
    with pytest.raises(InputError, match=r"epoch 1, step 1, molecules \[(5, 11|11, 5)\] of the training split"):
        trainer.run_epoch(1)
    assert all(torch.equal(*pair) for pair in zip(before, trainer.model.parameters(), strict=True))


def test_losses_that_are_read_in_groups_are_those_of_each_update(run_config):
    """Of 4 updates of an epoch in groups of 3, as on a GPU; only the last one has a feature that is no number."""
    model = replace(run_config.model, encodings=(RandomWalk(),))
    config = replace(run_config, model=model, train=replace(run_config.train, batch_size=4))
    data = molecules(16, config)
    single, grouped = Trainer(config, data, data), Trainer(config, data, data)
    grouped.updates_per_reading = 3
    assert single.run_epoch(1).train_loss == grouped.run_epoch(1).train_loss
    last = int(epoch_batches(16, 4, config.train.seed, 2)[3][0])
    data.shards[0].arrays["rrwp"][data.shards[0].rows("pair", last)] = np.nan
    for training in (single, grouped):
        with pytest.raises(InputError, match=rf"epoch 2, step 4, molecules \[{last}\]"):
            training.run_epoch(2)
