"""Updates of a GPU, on the CPU and on PyTorch's meta device, where any wait for a value raises."""

import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from graphormer_sepnorm import kernels
from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.load import load_split
from graphormer_sepnorm.datasets.on_device import DeviceDataset
from graphormer_sepnorm.inference import forward
from graphormer_sepnorm.recipes import RECIPES
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import autocast
from graphormer_sepnorm.training import resume
from graphormer_sepnorm.training.device_step import DeviceStep, Pairs, change, large_molecules, limited
from graphormer_sepnorm.training.optimizers import OPTIMIZERS, BatchedMuon, Part, PartedAdamW
from graphormer_sepnorm.training.run_writer import Recorder
from graphormer_sepnorm.training.step import HostStep
from graphormer_sepnorm.training.trainer import Trainer
from tests.robustness.tiny_run import tiny_config

META = torch.device("meta")


class Elsewhere:
    """What stands for Lightning Fabric on a device that it does not know."""

    device = META

    def setup(self, model: nn.Module, *optimizers: torch.optim.Optimizer) -> tuple:
        torch.__future__.set_swap_module_params_on_conversion(True)
        model.to(self.device)
        torch.__future__.set_swap_module_params_on_conversion(False)
        return model, *optimizers


@pytest.fixture
def on_meta(monkeypatch) -> None:
    """A device that refuses to tell any value; the fused AdamW believes that it is a GPU."""
    monkeypatch.setattr(distributed, "make_fabric", Elsewhere)

    def fused(*lists: list[Tensor], lr: Tensor, **options: object) -> None:
        assert {tensor.device for some in lists for tensor in some} | {lr.device} == {META}

    adam = sys.modules["torch.optim.adam"]
    monkeypatch.setattr(adam, "_device_dtype_check_for_fused", lambda *arguments, **options: None)
    monkeypatch.setattr(torch, "_fused_adamw_", fused)


def config_of(recipe: str, optimizer: str | None = None, precision: str = "32-true") -> Config:
    """A recipe of three narrow layers, on the tiny dataset."""
    tiny, found = tiny_config(epochs=1), RECIPES[recipe]
    shape = found.architecture(tiny.model.atom_sizes, tiny.model.bond_sizes, 2)
    train = replace(tiny.train, optimizer=optimizer or found.train.optimizer, precision=precision)
    attention = shape.attention_layers and 2
    model = replace(shape, layers=3, width=32, ffn_width=32, heads=4, attention_layers=attention)
    return replace(tiny, model=model, train=train)


def trainer_of(config: Config) -> Trainer:
    return Trainer(config, *(load_split("tiny", split, config.model.encodings) for split in ("train", "val")))


@pytest.mark.parametrize("recipe", RECIPES)
def test_updates_wait_for_no_value_and_leave_no_tensor_on_the_host(on_meta, recipe):
    trainer = trainer_of(config_of(recipe))
    trainer.model.train()
    for molecules in (np.arange(8), np.arange(8, 15)):
        found = trainer.step(molecules, 1e-3)
        assert found.device == META and found.shape == (2,)
    assert {p.grad.device for p in trainer.model.parameters() if p.grad is not None} == {META}
    states = [value for o in trainer.optimizers for state in o.state.values() for value in state.values()]
    assert {value.device for value in states} == {META}


@pytest.mark.parametrize("recipe", RECIPES)
def test_evaluations_wait_for_no_value_and_leave_no_tensor_on_the_host(on_meta, recipe):
    trainer = trainer_of(config_of(recipe))
    model = trainer.evaluated.eval()
    assert isinstance(trainer.validated, DeviceDataset)
    batches = list(forward.batches_for(model, trainer.val))
    with torch.inference_mode():
        for compute, width in ((lambda b: trainer.task.predict(model(b).float()), 2), (model.encode_cls, 32)):
            rows = forward.rows_on_device(model, trainer.validated, compute, batches)
            assert rows.device == META and rows.shape == (len(trainer.val), width)


def test_statistics_are_estimated_anew_without_a_wait(on_meta):
    trainer = trainer_of(config_of("slim"))
    with autocast("32-true", META):
        for batch in trainer.reestimation_batches(1):
            assert batch.shape == trainer.step.shape and batch.x.device == META
            trainer.evaluated.train()
            trainer.evaluated.encode(batch)


@pytest.mark.parametrize("wait", [lambda x: x.item(), lambda x: x.nonzero(), lambda x: x[x > 0], lambda x: bool(x)])
def test_the_device_of_these_tests_refuses_to_wait(wait):
    with pytest.raises((RuntimeError, NotImplementedError)):
        wait(torch.zeros((), device=META) if wait is not None else None)


def steps_on_cpu(trainer: Trainer) -> DeviceStep:
    optimizers = [getattr(optimizer, "optimizer", optimizer) for optimizer in trainer.optimizers]  # without Fabric
    return DeviceStep(trainer.model, trainer.task, trainer.train, trainer.config.train, optimizers, trainer.average)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("recipe", ["paper", "best", "local", "slim"])
def test_a_step_of_the_device_path_is_that_of_the_host(monkeypatch, recipe, optimizer):
    """Losses and norms of three updates with batches of two sizes; norms are clipped."""
    config = config_of(recipe, optimizer)
    config = replace(config, model=replace(config.model, dropout=0.0, attention_dropout=0.0))
    batches = [np.arange(8), np.arange(8, 15), np.arange(15, 23)]
    found = []
    for there in (False, True):
        trainer = trainer_of(config)
        trainer.model.train()
        if there:
            monkeypatch.setattr(kernels, "on_accelerator", lambda tensor: True)
            trainer.step = steps_on_cpu(trainer)
        found.append(torch.stack([trainer.step(batch, 1e-3).double() for batch in batches]))
    torch.testing.assert_close(found[1], found[0], rtol=2e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_step_is_one_graph_forward_and_backward(monkeypatch, recipe):
    """In bfloat16, from the numbers of molecules to the loss, and from gradients to limited ones."""
    monkeypatch.setattr(kernels, "on_accelerator", lambda tensor: True)
    torch._dynamo.reset()
    config = config_of(recipe, precision="bf16-mixed")
    trainer = trainer_of(replace(config, model=replace(config.model, dropout=0.0, attention_dropout=0.0)))
    trainer.model.train()
    step = steps_on_cpu(trainer)
    numbers = step.data.numbers(np.arange(7), 8)
    expected = step.find_loss_of_numbers_(numbers)
    compiled = torch.compile(step.find_loss_of_numbers_, fullgraph=True, dynamic=False, backend="aot_eager")
    loss = compiled(numbers)
    torch.testing.assert_close(loss, expected, rtol=2e-2, atol=1e-3)
    loss.backward()
    gradients = [parameter.grad for parameter in trainer.model.parameters() if parameter.grad is not None]
    limit = torch.compile(partial(limited, most=1e-3), fullgraph=True, dynamic=False, backend="aot_eager")
    less, norm, finite = limit(gradients, loss.detach())
    assert finite and torch.nn.utils.get_total_norm(less) == pytest.approx(1e-3, rel=1e-3) and norm > 1e-3


@pytest.mark.slow
def test_compiled_to_machine_code_a_step_gives_the_same(monkeypatch):
    monkeypatch.setattr(kernels, "on_accelerator", lambda tensor: True)
    torch._dynamo.reset()
    config = config_of("best")
    trainer = trainer_of(replace(config, model=replace(config.model, attention_dropout=0.0)))
    trainer.model.train()
    step = steps_on_cpu(trainer)
    found = []
    compiled = torch.compile(step.find_loss_of_numbers_, fullgraph=True, dynamic=False)
    for function in (step.find_loss_of_numbers_, compiled):
        trainer.model.zero_grad()
        losses = [function(step.data.numbers(molecules, 8)) for molecules in (np.arange(8), np.arange(9, 16))]
        sum(losses).backward()
        gradients = [p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None]
        found.append((torch.stack(losses).detach(), torch.cat(gradients)))
    torch.testing.assert_close(found[1][0], found[0][0], rtol=1e-4, atol=1e-5)
    assert (found[1][1] - found[0][1]).norm() < 1e-3 * found[0][1].norm()


class FromNumbers(nn.Module):
    """A model as a function of the numbers of its molecules, as export wants it."""

    def __init__(self, trainer: Trainer):
        super().__init__()
        step = steps_on_cpu(trainer)
        self.model, self.data, self.shape, self.task = trainer.model.eval(), step.data, step.shape, trainer.task

    def forward(self, numbers: Tensor) -> Tensor:
        return self.task.predict(self.model(self.data.batch(numbers, self.shape)))


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["paper", "best"])
def test_inference_is_exported_as_one_program(monkeypatch, recipe):
    monkeypatch.setattr(kernels, "on_accelerator", lambda tensor: True)
    module = FromNumbers(trainer_of(config_of(recipe)))
    batches = [module.data.numbers(molecules, 8) for molecules in (np.arange(8), np.arange(20, 25))]
    with torch.no_grad():
        program = torch.export.export(module, (batches[0],)).module()
        for numbers in batches:
            torch.testing.assert_close(program(numbers), module(numbers), rtol=1e-5, atol=1e-6)


def test_batches_that_do_not_fit_are_computed_packed():
    trainer = trainer_of(tiny_config())
    step = steps_on_cpu(trainer)
    assert step.batch(np.arange(8)).shape == step.shape
    step.shape = replace(step.shape, length=16)
    assert step.batch(np.arange(8)).shape is None
    assert step(np.arange(8), 1e-3).isfinite().all()


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_run_goes_on_there_as_here_and_the_other_way_round(tmp_path, optimizer):
    """Losses of a second epoch, from the state of a first one that was computed on either."""
    config = tiny_config(epochs=2, dropout=0.0, optimizer=optimizer)
    found = {}
    for paths in itertools.product((False, True), repeat=2):
        for on_device in paths:
            trainer = trainer_of(config)
            if on_device:
                trainer.step = steps_on_cpu(trainer)
            recorder = Recorder(trainer, RunFolder(tmp_path / str(paths)), verbose=False)
            recorder.resume()
            found[paths] = next(recorder.epochs())
        assert found[paths].epoch == 2
        assert (found[paths].train_loss, found[paths].val_metric) == pytest.approx(
            (found[False, False].train_loss, found[False, False].val_metric), rel=1e-3
        )


def test_an_optimizer_without_parts_updates_on_a_gpu_as_elsewhere(on_meta, monkeypatch):
    monkeypatch.setitem(OPTIMIZERS, "sgd", lambda model, train: [torch.optim.SGD(model.parameters(), lr=train.lr)])
    trainer = trainer_of(config_of("best", "sgd"))
    assert isinstance(trainer.step, HostStep) and not isinstance(trainer.validated, DeviceDataset)


def test_large_molecules_are_told_of():
    assert large_molecules(np.array([3, 7]), 8) == ""
    words = "1 of 2 training molecules have 8 atoms or more, the largest 8: their batches are computed operation"
    assert large_molecules(np.array([3, 8]), 8).startswith(words)


def test_a_step_whose_loss_is_not_finite_changes_no_weight():
    trainer = trainer_of(replace(tiny_config(), train=replace(tiny_config().train, averaging=0.0)))
    trainer.step = steps_on_cpu(trainer)
    trainer.model.train()
    trainer.step(np.arange(8), 1e-3)
    before = [p.detach().clone() for p in trainer.model.parameters()]
    trainer.step.data.y[3] = torch.inf
    loss, _ = trainer.step(np.arange(8), 1e-3).tolist()
    assert not np.isfinite(loss)
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))


def kept_after(config: Config, compiler: Callable[[Callable], Callable]) -> dict[str, Tensor]:
    """What four changes of the weights by random gradients give and leave; the last has a learning rate of 0."""
    trainer = trainer_of(config)
    step = steps_on_cpu(trainer)
    step.change = compiler(step.change)
    generator = torch.Generator().manual_seed(0)
    results = []
    for lr in (1e-3, 2e-3, 1e-3, 0.0):
        for parameter in trainer.model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
        results.append(step.update(torch.tensor(0.5), lr))
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))
    tensors, scalars = resume.kept(trainer.optimizers, trainer.model)
    assert scalars["0.group.0.lr"] == 0.0
    return {"results": torch.stack(results)} | resume.weights(trainer) | tensors


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_compiled_change_of_the_weights_is_the_one_operation_by_operation(optimizer):
    """One graph, compiled once, of limiting, optimizers and averaging."""
    torch._dynamo.reset()
    config = config_of("best", optimizer)
    assert config.train.averaging
    expected = kept_after(config, lambda function: function)
    with torch._dynamo.config.patch(error_on_recompile=True):
        found = kept_after(config, partial(torch.compile, fullgraph=True, dynamic=False, backend="aot_eager"))
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(
            found[name], tensor, rtol=1e-4, atol=1e-6, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.slow
def test_compiled_to_machine_code_a_change_of_the_weights_gives_the_same():
    """Of two matrices, two vectors and their averages."""
    torch._dynamo.reset()
    found = []
    for compiler in (lambda function: function, partial(torch.compile, fullgraph=True, dynamic=False)):
        generator = torch.Generator().manual_seed(0)
        shapes = [(4, 8), (4, 8), (8,), (2,)]
        weights, averages = ([nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes] for _ in "ab")
        optimizers = [BatchedMuon(weights[:2], weight_decay=0.5), PartedAdamW(weights[2:], fused=True)]
        pairs = Pairs(averages, weights, [], [])
        function = compiler(partial(change, most=1.0))
        for loss in (1.0, 2.0, float("inf")):
            for weight in weights:
                weight.grad = torch.randn(weight.shape, generator=generator)
            parts = [part for optimizer in optimizers for part in optimizer.parts()]
            with torch.no_grad():
                result = function(parts, pairs, torch.tensor(loss), torch.tensor(0.1), torch.tensor(0.5))
        found.append([result, *pairs.averages, *pairs.weights])
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def descend(rate: Tensor, parameters: list[Tensor], gradients: list[Tensor]) -> None:
    torch._foreach_sub_(parameters, torch._foreach_mul(gradients, rate))


def test_a_change_by_hand():
    """A gradient (3, 4) limited to the norm 1, at half of it, and an average that goes a quarter of the way."""
    weights, averages, buffers, copies = ([torch.tensor(row)] for row in ([1.0, 2.0], [0.0, 0.0], [9], [0]))
    parts = [Part(descend, weights, [torch.tensor([3.0, 4.0])], [])]
    pairs = Pairs(averages, weights, copies, buffers)
    rate, pull = torch.tensor(0.5), torch.tensor(0.25)
    assert change(parts, pairs, torch.tensor(2.0), rate, pull, most=1.0).tolist() == [2.0, 5.0]
    torch.testing.assert_close(weights[0], torch.tensor([0.7, 1.6]))
    torch.testing.assert_close(averages[0], torch.tensor([0.175, 0.4]))
    assert copies[0].tolist() == [9]
    before = weights[0].clone()
    assert not change(parts, pairs, torch.tensor(torch.inf), rate, pull, most=1.0).isfinite().all()
    assert weights[0].equal(before)


def test_averages_follow_there_as_here():
    trainer = trainer_of(tiny_config())
    trainer.step = steps_on_cpu(trainer)
    trainer.model.train()
    trainer.step(np.arange(8), 1e-3)
    first = trainer.model.cls.detach().clone()
    torch.testing.assert_close(trainer.evaluated.cls.detach(), first)
    trainer.step(np.arange(8, 15), 1e-3)
    torch.testing.assert_close(trainer.evaluated.cls.detach(), 0.9 * first + 0.1 * trainer.model.cls.detach())


def test_gradients_are_limited_by_hand():
    gradients, norm, finite = limited([torch.tensor([3.0]), torch.tensor([4.0])], torch.tensor(1.0), most=1.0)
    torch.testing.assert_close(torch.cat(gradients), torch.tensor([0.6, 0.8]))
    assert (norm.item(), finite.item()) == (5.0, True)
    gradients, _, finite = limited([torch.tensor([torch.nan]), torch.tensor([4.0])], torch.tensor(1.0), most=1.0)
    assert torch.cat(gradients).tolist() == [0.0, 0.0] and not finite
