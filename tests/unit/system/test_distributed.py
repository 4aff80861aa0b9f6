import numpy as np
import pytest
import torch
from torch import nn

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import Compute, computing
from graphormer_sepnorm.system.replicas import run_together


@pytest.fixture
def second_of_three(monkeypatch):
    """What torchrun tells the second of three processes."""
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


def test_shares_are_everything_once(monkeypatch, second_of_three):
    shares = []
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        shares += distributed.share(list(range(10)))
    assert sorted(shares) == list(range(10))


def test_replicas_are_processes_like_those_of_torchrun():
    def found() -> tuple:
        rank = distributed.rank()
        rows = distributed.gather(torch.tensor([float(rank), 1.0]))
        values = distributed.mean(torch.tensor(float(rank))).item()
        distributed.wait_for_all()
        return rank, distributed.num_processes(), rows.tolist(), values, distributed.share([1, 2, 3, 4])

    assert run_together(3, found) == (0, 3, [[0, 1], [1, 1], [2, 1]], 1.0, [1, 4])
    assert (distributed.rank(), distributed.num_processes()) == (0, 1)


def test_replicas_have_the_mean_of_their_gradients():
    def gradients() -> list:
        model = nn.Linear(2, 1)
        frozen = nn.Linear(1, 1).requires_grad_(False)
        rank = distributed.rank()
        model.weight.grad = torch.tensor([[1.0, 10.0]]) * (rank + 1)
        model.bias.grad = torch.tensor([float(rank)])
        distributed.average_gradients(nn.Sequential(model, frozen))
        return [model.weight.grad.tolist(), model.bias.grad.tolist(), frozen.weight.grad]

    assert run_together(2, gradients) == [[[1.5, 15.0]], [0.5], None]


def test_gradients_of_one_process_stay(monkeypatch):
    model = nn.Linear(1, 1)
    gradient = model.weight.grad = torch.ones(1, 1)
    distributed.average_gradients(model)
    assert model.weight.grad is gradient


def test_where_there_can_be_none_several_replicas_are_refused(monkeypatch, second_of_three):
    distributed.check_replicas(1)
    with pytest.raises(InputError, match="--processes 2 is for a run without torchrun"):
        distributed.check_replicas(2)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    with computing(Compute(torch.device("cuda", 0))), pytest.raises(InputError, match="machines without a GPU"):
        distributed.check_replicas(2)
    monkeypatch.setattr("sys.platform", "darwin")
    with computing(Compute(torch.device("cpu"))), pytest.raises(InputError, match="is for Linux"):
        distributed.check_replicas(2)


@pytest.mark.parametrize("size, computed", [(1, 4), (2, 2), (3, 2)])
def test_replicas_compute_shares_of_rows(size, computed):
    rows = torch.arange(8.0).view(4, 2)
    seen = []

    def negated(share: torch.Tensor) -> torch.Tensor:
        seen.append(len(share))
        return -share

    found, lengths = run_together(size, lambda: (distributed.map_shares(negated, rows), seen))
    assert torch.equal(found, -rows) and lengths == [computed]
