"""A resumed run continues as if uninterrupted, whatever the state of its optimizer."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch.optim import Optimizer

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import STATE, WEIGHTS, RunFolder
from graphormer_sepnorm.training.optimizers import OPTIMIZERS
from graphormer_sepnorm.training.run_writer import restore
from tests.recorded import recorder
from tests.robustness.tiny_run import tiny_config


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
    """Registered with one line, like any other."""
    monkeypatch.setitem(OPTIMIZERS, "odd", lambda model, train: [Odd(model.parameters())])
    monkeypatch.setitem(OPTIMIZERS, "lists", lambda model, train: [Lists(model.parameters())])


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    encodings = tiny_config().model.encodings
    return load_split("tiny", "train", encodings), load_split("tiny", "val", encodings)


def config_of(optimizer: str, epochs: int = 3) -> Config:
    return tiny_config(epochs=epochs, optimizer=optimizer)


@pytest.mark.parametrize(("averaging", "until"), [pytest.param(0.0, 1.0, marks=pytest.mark.slow), (0.9, 0.5)])
@pytest.mark.parametrize("optimizer", [*OPTIMIZERS, "odd"])
def test_a_run_in_three_parts_equals_one_in_one(tmp_path, splits, optimizer, averaging, until):
    config = config_of(optimizer)
    config = replace(config, train=replace(config.train, averaging=averaging, statistics_until=until))
    recorder(config, *splits, tmp_path / "whole").train()
    next(recorder(config, *splits, tmp_path / "parts").epochs())
    for _ in range(2):
        part = recorder(config, *splits, tmp_path / "parts")
        restore(part.trainer, part.run)
        next(part.epochs())
    for name in (WEIGHTS, STATE):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    for run in ("whole", "parts"):
        assert [line["epoch"] for line in RunFolder(tmp_path / run).read_metrics()] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_resumed_run_also_unfreezes_the_body_after_its_frozen_epochs(tmp_path, splits, optimizer):
    recorder(config_of(optimizer, epochs=1), *splits, tmp_path / "source").train()
    config = config_of(optimizer, epochs=4)
    config = replace(config, train=replace(config.train, start_from=str(tmp_path / "source"), frozen_epochs=2, seed=9))
    whole = recorder(config, *splits, tmp_path / "whole")
    before = {name: tensor.clone() for name, tensor in whole.trainer.model.named_parameters()}
    head = {name for name in before if name.startswith("head.")}
    for epoch in whole.epochs():
        changed = {name for name, tensor in whole.trainer.model.named_parameters() if not tensor.equal(before[name])}
        assert changed > head | {"cls"} if epoch.epoch > 2 else changed == head
    for _ in range(4):
        part = recorder(config, *splits, tmp_path / "parts")
        restore(part.trainer, part.run)
        next(part.epochs())
    for name in (WEIGHTS, STATE):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_everything_that_an_optimizer_keeps_is_in_the_state(tmp_path, splits):
    list(itertools.islice(recorder(config_of("odd"), *splits, tmp_path).epochs(), 1))
    tensors, _, facts = checkpoint.load_tensors(tmp_path / STATE)
    assert tensors["optimizer.cls.counts"].tolist() == [0, 5, 10]  # batches of 8 of 37 molecules
    assert tensors["optimizer.cls.exact"].dtype == torch.float64
    assert tensors["optimizer.0.group.0.seen"].tolist() == [0.625, 0.625]
    assert tensors["optimizer.cls.late"].shape == tensors["model.cls"].shape
    kept = facts["optimizer"]
    assert kept["0.group.0.updates"] == kept["cls.steps"] == 5
    assert kept["cls.phase"] == "odd" and kept["cls.warm"] is True and kept["cls.rate"] == pytest.approx(0.97**5)


@pytest.mark.parametrize(
    ("optimizer", "changed", "message"),
    [
        ("adamw", {"optimizer.cls.exp_avg": None}, r"cls\.exp_avg is missing"),
        ("adamw", {"optimizer.cls.exp_avg": torch.zeros(2)}, r"cls\.exp_avg is torch\.float32 \[2\]"),
        ("adamw", {"optimizer.nobody.exp_avg": torch.zeros(2)}, r"nobody\.exp_avg is not part of the model"),
        ("adamw", {"average.module.cls": torch.zeros(2)}, r"average\.module\.cls is torch\.float32 \[2\]"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(tmp_path, splits, optimizer, changed, message):
    config = config_of(optimizer)
    next(recorder(config, *splits, tmp_path).epochs())
    tensors, found, facts = checkpoint.load_tensors(tmp_path / STATE)
    tensors = {name: tensor for name, tensor in (tensors | changed).items() if tensor is not None}
    checkpoint.save_tensors(tmp_path / STATE, tensors, found, facts)
    with pytest.raises(InputError, match=message):
        recorder(config, *splits, tmp_path).train(resume=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cls.steps": "many"}, r"cls\.steps is 'many', not a number"),
        ({"cls.steps": [1]}, r"optimizer\.cls\.steps"),
        ({"nobody.steps": 1}, r"nobody\.steps is not kept by the optimizer"),
        ({"0.group.7.updates": 1}, r"0\.group\.7\.updates is not kept by the optimizer"),
    ],
)
def test_scalars_that_do_not_fit_are_refused(tmp_path, splits, changed, message):
    next(recorder(config_of("odd"), *splits, tmp_path).epochs())
    tensors, found, facts = checkpoint.load_tensors(tmp_path / STATE)
    facts["optimizer"] |= changed
    checkpoint.save_tensors(tmp_path / STATE, tensors, found, facts)
    with pytest.raises(InputError, match=message):
        recorder(config_of("odd"), *splits, tmp_path).train(resume=True)


def test_an_optimizer_whose_state_cannot_be_saved_is_refused(tmp_path, splits):
    with pytest.raises(TypeError, match="keeps 'history' of cls, a list"):
        next(recorder(config_of("lists"), *splits, tmp_path).epochs())
