import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.optim import Optimizer

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.checkpoint import load_model, load_tensors
from graphormer_sepnorm.runs.folder import STATE, WEIGHTS, RunFolder
from graphormer_sepnorm.system.signals import Interrupted
from graphormer_sepnorm.training import run_writer as module
from graphormer_sepnorm.training.optimizers import OPTIMIZERS
from graphormer_sepnorm.training.run_writer import (
    SECONDS_BETWEEN_SAVES,
    RunWriter,
    epoch_words,
    restore,
    state_of,
    training_alone,
)
from graphormer_sepnorm.training.trainer import Share, Trainer
from tests import tiny
from tests.robustness.tiny_run import tiny_config


@pytest.fixture
def recorder(tmp_path) -> RunWriter:
    config = tiny_config(epochs=2)
    splits = (load_split("tiny", split, config.model.encodings) for split in ("train", "val"))
    return RunWriter(Trainer(config, *splits), RunFolder(tmp_path / "run"))


def test_an_epoch_is_on_the_disk_when_it_is_yielded(recorder, capsys):
    for number, epoch in enumerate(recorder.epochs(), 1):
        assert [line["epoch"] for line in recorder.run.read_metrics()] == list(range(1, number + 1))
        assert recorder.run.read_metrics()[-1]["val_metric"] == epoch.val_metric
        assert recorder.run.state.exists()
        assert capsys.readouterr().err == epoch_words(epoch, recorder.trainer.config) + "\n"


@pytest.mark.slow
def test_the_facts_are_those_of_the_best_epoch_and_its_weights(recorder):
    facts = recorder.train()
    values = {line["epoch"]: line["val_metric"] for line in recorder.run.read_metrics()}
    assert facts == {"epoch": min(values, key=values.get), "val_metric": min(values.values())}
    _, _, saved = load_model(recorder.run.path)
    assert {name: saved[name] for name in facts} == facts
    assert recorder.run.curves.stat().st_size > 1000


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "on_gpu", lambda model: True)
    return clock


def on_disk(run: RunFolder) -> tuple[int, int, int]:
    """The last epochs of the state and of the metrics, and the epoch of the weights."""
    lines = run.read_metrics()
    assert [line["epoch"] for line in lines] == list(range(1, len(lines) + 1))
    return load_tensors(run.state)[2]["epoch"], len(lines), load_tensors(run.weights)[2]["epoch"]


@pytest.mark.slow
def test_on_a_gpu_epochs_are_written_after_some_seconds_and_at_the_end(recorder, clock, monkeypatch):
    """Validation metrics 5, 4, 3, ...: every epoch is the best so far."""
    recorder.trainer.config = replace(recorder.trainer.config, train=replace(recorder.trainer.config.train, epochs=6))
    monkeypatch.setattr(Trainer, "evaluate", lambda trainer, epoch: 6.0 - epoch)
    seen, weights = [], []
    for _ in recorder.epochs():
        seen.append(on_disk(recorder.run))
        weights.append(recorder.trainer.evaluated.cls.detach().clone())
        clock.now += SECONDS_BETWEEN_SAVES * 0.4
    assert seen == [(1, 1, 1)] * 3 + [(4, 4, 4)] * 3
    assert on_disk(recorder.run) == (6, 6, 6)
    assert load_tensors(recorder.run.weights)[0]["cls"].equal(weights[-1])


@pytest.mark.slow
def test_on_a_gpu_the_best_weights_are_those_of_their_epoch_when_they_are_written(recorder, clock, monkeypatch):
    recorder.trainer.config = replace(recorder.trainer.config, train=replace(recorder.trainer.config.train, epochs=4))
    monkeypatch.setattr(Trainer, "evaluate", lambda trainer, epoch: {1: 3.0, 2: 1.0, 3: 2.0, 4: 4.0}[epoch])
    weights = [recorder.trainer.evaluated.cls.detach().clone() for _ in recorder.epochs()]
    assert on_disk(recorder.run) == (4, 4, 2)
    assert load_tensors(recorder.run.weights)[0]["cls"].equal(weights[1])


@pytest.mark.slow
def test_on_a_gpu_the_last_epoch_is_on_the_disk_however_a_run_ends(recorder, clock, monkeypatch):
    """During the fourth epoch, when weights have changed."""
    config, update = recorder.trainer.config, Trainer.update
    recorder.trainer.config = replace(config, train=replace(config.train, epochs=6))
    states = []

    def interrupted(trainer: Trainer, share: Share, lr: float) -> Tensor:
        if recorder.trainer.progress.epoch == 3:
            states.append({name: tensor.clone() for name, tensor in state_of(recorder.trainer)[0].items()})
            if len(states) == 3:
                raise Interrupted(2)
        return update(trainer, share, lr)

    monkeypatch.setattr(Trainer, "update", interrupted)
    with pytest.raises(Interrupted):
        recorder.train()
    assert on_disk(recorder.run)[:2] == (3, 3)
    saved = load_tensors(recorder.run.state)[0]
    assert saved.keys() == states[0].keys() and all(saved[name].equal(states[0][name]) for name in saved)
    assert not saved["model.cls"].equal(states[2]["model.cls"])


def test_one_run_trains_in_a_folder_at_a_time(tmp_path):
    with training_alone(RunFolder(tmp_path), resume=False):
        second = training_alone(RunFolder(tmp_path), resume=False)
        with pytest.raises(InputError, match="another process is training"):
            second.__enter__()
    with training_alone(RunFolder(tmp_path), resume=False):
        pass


class Odd(Optimizer):
    """Signed gradients times a factor that depends on its whole state: tensors and scalars of all kinds."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.0, "updates": 0, "betas": (0.9, 0.99)})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            group["updates"] += 1
            group["seen"] = group.get("seen", torch.zeros(2)) + 0.125
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state |= {
                        "counts": torch.zeros(3, dtype=torch.int64),
                        "exact": torch.zeros((), dtype=torch.float64),
                    }
                    state |= {"rate": 1.0, "steps": 0, "phase": "first", "warm": False, "last": None}
                state["counts"] += torch.arange(3)
                state["exact"] += 1 / 3
                state["rate"] *= 0.97
                state["steps"] += 1
                state["phase"] = "even" if state["steps"] % 2 == 0 else "odd"
                state["warm"] = state["steps"] > 3
                state["last"] = float(parameter.grad.norm()) if state["warm"] else None
                if state["warm"]:  # exists only from the fourth update on
                    state["late"] = state.get("late", torch.zeros_like(parameter)) + parameter.grad.sign()
                size = state["rate"] + float(state["exact"] + state["counts"].sum() + group["seen"].sum())
                size += group["updates"] + 0.5 * (state["phase"] == "even") + (state["last"] or 0.0)
                parameter -= 1e-3 * group["lr"] * size * (parameter.grad.sign() + state.get("late", 0.0))


class Lists(Odd):
    @torch.no_grad()
    def step(self) -> None:
        for parameter in self.param_groups[0]["params"]:
            self.state[parameter]["history"] = [1.0]


@pytest.fixture(autouse=True)
def more_optimizers(monkeypatch):
    monkeypatch.setitem(OPTIMIZERS, "odd", lambda model, train: [Odd(model.parameters())])
    monkeypatch.setitem(OPTIMIZERS, "lists", lambda model, train: [Lists(model.parameters())])


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    encodings = tiny_config().model.encodings
    return load_split("tiny", "train", encodings), load_split("tiny", "val", encodings)


def config_of(optimizer: str, epochs: int = 3) -> Config:
    return tiny_config(epochs=epochs, optimizer=optimizer)


@pytest.mark.slow
@pytest.mark.parametrize(("averaging", "until"), [(0.0, 1.0), (0.9, 0.5)])
@pytest.mark.parametrize("optimizer", [*OPTIMIZERS, "odd"])
def test_a_run_in_three_parts_equals_one_in_one(tmp_path, splits, optimizer, averaging, until):
    config = config_of(optimizer)
    config = replace(config, train=replace(config.train, averaging=averaging, statistics_until=until))
    tiny.recorder(config, *splits, tmp_path / "whole").train()
    next(tiny.recorder(config, *splits, tmp_path / "parts").epochs())
    for _ in range(2):
        part = tiny.recorder(config, *splits, tmp_path / "parts")
        restore(part.trainer, part.run)
        next(part.epochs())
    for name in (WEIGHTS, STATE):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    for run in ("whole", "parts"):
        assert [line["epoch"] for line in RunFolder(tmp_path / run).read_metrics()] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_resumed_run_also_unfreezes_the_body_after_its_frozen_epochs(tmp_path, splits, optimizer):
    tiny.recorder(config_of(optimizer, epochs=1), *splits, tmp_path / "source").train()
    config = config_of(optimizer, epochs=4)
    config = replace(config, train=replace(config.train, start_from=str(tmp_path / "source"), frozen_epochs=2, seed=9))
    whole = tiny.recorder(config, *splits, tmp_path / "whole")
    before = {name: tensor.clone() for name, tensor in whole.trainer.model.named_parameters()}
    head = {name for name in before if name.startswith("head.")}
    for epoch in whole.epochs():
        changed = {name for name, tensor in whole.trainer.model.named_parameters() if not tensor.equal(before[name])}
        assert changed > head | {"cls"} if epoch.epoch > 2 else changed == head
    for _ in range(4):
        part = tiny.recorder(config, *splits, tmp_path / "parts")
        restore(part.trainer, part.run)
        next(part.epochs())
    for name in (WEIGHTS, STATE):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_everything_that_an_optimizer_keeps_is_in_the_state(tmp_path, splits):
    list(itertools.islice(tiny.recorder(config_of("odd"), *splits, tmp_path).epochs(), 1))
    tensors, _, facts = checkpoint.load_tensors(tmp_path / STATE)
    assert tensors["optimizer.cls.counts"].tolist() == [0, 5, 10]  # batches of 8 of 37 molecules
    assert tensors["optimizer.cls.exact"].dtype == torch.float64
    assert tensors["optimizer.0.group.0.seen"].tolist() == [0.625, 0.625]
    assert tensors["optimizer.cls.late"].shape == tensors["model.cls"].shape
    kept = facts["optimizer"]
    assert kept["0.group.0.updates"] == kept["cls.steps"] == 5
    assert kept["cls.phase"] == "odd" and kept["cls.warm"] is True and kept["cls.rate"] == pytest.approx(0.97**5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tensors", "scalars", "message"),
    [
        ({"optimizer.cls.counts": None}, {}, r"cls\.counts is missing"),
        ({"optimizer.cls.counts": torch.zeros(2)}, {}, r"cls\.counts is torch\.float32 \[2\]"),
        ({"optimizer.nobody.counts": torch.zeros(2)}, {}, r"nobody\.counts is not part of the model"),
        ({"average.module.cls": torch.zeros(2)}, {}, r"average\.module\.cls is torch\.float32 \[2\]"),
        ({}, {"cls.steps": "many"}, r"cls\.steps is 'many', not a number"),
        ({}, {"cls.steps": [1]}, r"optimizer\.cls\.steps"),
        ({}, {"nobody.steps": 1}, r"nobody\.steps is not kept by the optimizer"),
        ({}, {"0.group.7.updates": 1}, r"0\.group\.7\.updates is not kept by the optimizer"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(tmp_path, splits, tensors, scalars, message):
    next(tiny.recorder(config_of("odd"), *splits, tmp_path).epochs())
    kept, found, facts = checkpoint.load_tensors(tmp_path / STATE)
    facts["optimizer"] |= scalars
    kept = {name: tensor for name, tensor in (kept | tensors).items() if tensor is not None}
    checkpoint.save_tensors(tmp_path / STATE, kept, found, facts)
    with pytest.raises(InputError, match=message):
        tiny.recorder(config_of("odd"), *splits, tmp_path).train(resume=True)


def test_an_optimizer_whose_state_cannot_be_saved_is_refused(tmp_path, splits):
    with pytest.raises(TypeError, match="keeps 'history' of cls, a list"):
        next(tiny.recorder(config_of("lists"), *splits, tmp_path).epochs())
