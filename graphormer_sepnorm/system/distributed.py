"""Several processes, started by torchrun, with the result of one; in a single one, these functions do nothing."""

import atexit
import datetime
from typing import TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous

from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.system.signals import local_rank, num_processes, rank

Items = TypeVar("Items", list, np.ndarray)
TIMEOUT = datetime.timedelta(seconds=60)
PREPARATION_TIMEOUT = datetime.timedelta(days=1)


def join() -> None:
    """Connects this process to the others, once, however long some prepare molecules."""
    if num_processes() > 1 and not dist.is_initialized():
        backend = "gloo"
        if current().device.type == "cuda":
            backend = "cpu:gloo,cuda:nccl"
            torch.cuda.set_device(local_rank())
        store, number, count = next(rendezvous("env://", timeout=PREPARATION_TIMEOUT))
        store.set(f"ready/{number}", "")
        store.wait([f"ready/{each}" for each in range(count)], PREPARATION_TIMEOUT)
        store.set_timeout(TIMEOUT)
        group = dist.PrefixStore("default_pg", store)
        dist.init_process_group(backend, timeout=TIMEOUT, world_size=count, rank=number, store=group)
        atexit.register(dist.destroy_process_group)


def wait_for_all() -> None:
    """Returns when all processes have called it, however long they take to prepare molecules."""
    if num_processes() > 1:
        join()
        patient = cast(dist.ProcessGroup, dist.new_group(backend="gloo", timeout=PREPARATION_TIMEOUT))
        dist.barrier(patient)
        dist.destroy_process_group(patient)


def share(items: Items) -> Items:
    return items[rank() :: num_processes()]


def take_from_first(x: Tensor) -> None:
    if num_processes() > 1:
        join()
        dist.broadcast(x, src=0)


def all_reduce(x: Tensor) -> None:
    """Replaces a contiguous tensor by its sum over all processes."""
    if num_processes() > 1:
        join()
        dist.all_reduce(x)


def add_up(rows: np.ndarray) -> np.ndarray:
    """The sum of an array over all processes, in its place."""
    all_reduce(torch.from_numpy(rows))
    return rows


def mean(value: Tensor) -> Tensor:
    if num_processes() == 1:
        return value
    value = value.detach().clone()
    all_reduce(value)
    return value / num_processes()


def gather(row: Tensor) -> Tensor:
    """The rows [n] of all processes: [processes, n], the same in each process."""
    rows = row.new_zeros(num_processes(), len(row))
    rows[rank()] = row
    all_reduce(rows)
    return rows


def average_gradients(model: nn.Module) -> None:
    """Averages the gradients of a model over all processes; they are sent as one tensor."""
    if num_processes() == 1:
        return
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    whole = torch.cat([gradient.flatten() for gradient in gradients])
    all_reduce(whole)
    parts = (whole / num_processes()).split([gradient.numel() for gradient in gradients])
    torch._foreach_copy_(gradients, [part.view_as(g) for part, g in zip(parts, gradients, strict=True)])
