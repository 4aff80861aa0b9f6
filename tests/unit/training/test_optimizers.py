"""The contract of an optimizer, over all of them, and Muon's iteration."""

from collections import Counter

import pytest
import torch
from torch import nn

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.training.optimizers import OPTIMIZERS, orthogonalized, parameter_groups
from tests.tiny import tiny_model

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_parameter_is_updated_by_one_optimizer_and_matrices_alone_decay(name):
    model, _ = tiny_model()
    optimizers = OPTIMIZERS[name](model, TrainConfig(lr=0.5, weight_decay=0.25))
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    assert Counter(id(p) for group in groups for p in group["params"]) == Counter(id(p) for p in model.parameters())
    matrices = {id(module.weight) for module in model.modules() if isinstance(module, nn.Linear)}
    for group in groups:
        assert group["lr"] == 0.5
        for parameter in group["params"]:
            assert group["weight_decay"] == (0.25 if id(parameter) in matrices else 0.0)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_goes_against_the_gradient(name):
    model, _ = tiny_model()
    weight = next(module.weight for module in model.blocks.modules() if isinstance(module, nn.Linear))
    before = weight.detach().clone()
    for optimizer in OPTIMIZERS[name](model, TrainConfig(lr=0.01, weight_decay=0.0)):
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        weight.grad = torch.eye(*weight.shape)
        optimizer.step()
    change = (weight.detach() - before).diagonal()
    assert (change < 0).all()


def test_groups_by_hand():
    model = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Embedding(4, 3))
    decay, rest = parameter_groups(model, 0.1)
    assert [tuple(p.shape) for p in decay["params"]] == [(3, 2)] and decay["weight_decay"] == 0.1
    assert [tuple(p.shape) for p in rest["params"]] == [(3,), (3,), (3,), (4, 3)] and rest["weight_decay"] == 0.0


@pytest.mark.parametrize("shape", [(2, 6, 4), (2, 4, 6), (1, 5, 5)])
def test_orthogonalized_matrices_keep_their_directions_at_lengths_near_one(shape):
    torch.manual_seed(0)
    matrices = torch.randn(shape)
    found = orthogonalized(matrices, COEFFICIENTS, 8, 1e-7)
    values = torch.linalg.svdvals(found)
    assert found.shape == shape and values.min() > 0.6 and values.max() < 1.3
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    inner = u.mT @ found @ v.mT
    assert (inner - torch.diag_embed(inner.diagonal(dim1=1, dim2=2))).abs().max() < 1e-3
