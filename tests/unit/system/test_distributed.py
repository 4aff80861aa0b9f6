import numpy as np
import pytest
import torch
from torch import nn

from graphormer_sepnorm.system import distributed


@pytest.fixture
def second_of_three(monkeypatch):
    """The environment that torchrun gives to the second of three processes."""
    for name, value in {"TORCHELASTIC_RUN_ID": "run", "RANK": "1", "WORLD_SIZE": "3"}.items():
        monkeypatch.setenv(name, value)


def test_a_process_on_its_own_is_the_first_of_one(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setenv("RANK", "5")  # another launcher's, not for us
    assert (distributed.rank(), distributed.num_processes()) == (0, 1)
    rows = np.array([[1.0, 2.0]], np.float32)
    assert distributed.add_up(rows) is rows
    assert distributed.mean(torch.tensor(3.0)).item() == 3.0
    assert distributed.share([4, 5, 6]) == [4, 5, 6]


def test_a_process_of_several_has_its_share(second_of_three):
    assert (distributed.rank(), distributed.num_processes()) == (1, 3)
    assert distributed.share(list(range(8))) == [1, 4, 7]
    assert distributed.share(np.arange(8)).tolist() == [1, 4, 7]
    assert distributed.share([0]) == []


def test_gradients_are_averaged_over_processes(monkeypatch, second_of_three):
    """The others have 2 and 4 times the gradients of this one; frozen parameters have none."""
    monkeypatch.setattr(distributed, "all_reduce", lambda whole: whole.mul_(1 + 2 + 4))
    model, frozen = nn.Linear(2, 1), nn.Linear(1, 1).requires_grad_(False)
    model.weight.grad, model.bias.grad = torch.tensor([[3.0, 30.0]]), torch.tensor([6.0])
    distributed.average_gradients(nn.Sequential(model, frozen))
    assert (model.weight.grad.tolist(), model.bias.grad.tolist()) == ([[7.0, 70.0]], [14.0])
    assert frozen.weight.grad is None
