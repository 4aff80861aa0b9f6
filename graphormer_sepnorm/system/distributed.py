"""Several processes, started by torchrun or as replicas; on its own a process is rank 0 of 1, and nothing here acts.

Training gives each process its share of every batch, evaluation its share of the molecules. Gradients, losses and the
statistics of BatchNorm are put together so that all processes do what one process would do alone.
"""

import atexit
import datetime
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system import replicas, torchrun
from graphormer_sepnorm.system.device import current

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Items = TypeVar("Items", list, np.ndarray)
TIMEOUT = datetime.timedelta(seconds=60)
PREPARATION_TIMEOUT = datetime.timedelta(days=1)


def rank() -> int:
    """The number of this process among all."""
    replica = replicas.current()
    return torchrun.rank() if replica is None else replica.rank


def num_processes() -> int:
    """The number of processes on all machines."""
    replica = replicas.current()
    return torchrun.num_processes() if replica is None else replica.size


def check_replicas(asked: int) -> None:
    """Raises InputError if several replicas are asked for where there can be none."""
    if asked > 1 and why_alone():
        raise InputError(f"--processes {asked} {why_alone()}")


def why_alone() -> str:
    """What keeps this process from having replicas; "" if nothing does."""
    if torchrun.num_processes() > 1:
        return "is for a run without torchrun, which has started its own: leave --processes out"
    if current().device.type != "cpu" or torch.cuda.is_available():
        return "is for machines without a GPU: start a process for each GPU with torchrun"
    if sys.platform != "linux":
        return "is for Linux: start several processes with torchrun"
    return ""


def join() -> None:
    """Connects this process to the others, once; afterwards a lost one ends the rest within ``TIMEOUT``."""
    if torchrun.num_processes() > 1 and not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=TIMEOUT)
        atexit.register(dist.destroy_process_group)


def has_time_limit() -> bool:
    """Whether a process that others wait for longer than ``TIMEOUT`` ends them, other than in ``wait_for_all``."""
    return replicas.current() is None and torchrun.num_processes() > 1


def wait_for_all() -> None:
    """Returns when all processes have come here, however long their preparation of molecules takes."""
    replica = replicas.current()
    if replica is not None:
        replica.meet()
    elif torchrun.num_processes() > 1:
        join()
        patient = dist.new_group(backend="gloo", timeout=PREPARATION_TIMEOUT)
        dist.barrier(patient)
        dist.destroy_process_group(patient)


def make_fabric() -> "Fabric":
    """Lightning Fabric on the device of ``device.current``, or on that of this process beside the others.

    In its own precision, float32: its others rebuild batches to convert them; ``device.autocast`` needs no conversion.
    Imported here because it takes longer to import than all else together, and only training needs it.
    """
    from lightning_fabric import Fabric
    from lightning_fabric.strategies import DDPStrategy

    device = current().device
    if torchrun.num_processes() == 1:
        return Fabric(accelerator=device.type, devices=[device.index] if device.type == "cuda" else 1)
    join()
    devices = torchrun.num_local_processes()
    fabric = Fabric(
        accelerator=device.type,
        devices=devices,
        num_nodes=torchrun.num_processes() // devices,
        strategy=DDPStrategy(timeout=TIMEOUT, broadcast_buffers=False),
    )
    fabric.launch()
    return fabric


def share(items: Items) -> Items:
    """This process's part of ``items``."""
    return items[rank() :: num_processes()]


def all_reduce(x: Tensor) -> None:
    """Replaces a contiguous tensor by its sum over all processes."""
    replica = replicas.current()
    if replica is not None:
        replica.add_up(x)
    elif torchrun.num_processes() > 1:
        join()
        dist.all_reduce(x)


def add_up(rows: np.ndarray) -> np.ndarray:
    """The sum of an array over all processes."""
    if num_processes() == 1:
        return rows
    total = torch.from_numpy(rows)
    all_reduce(total)
    return total.numpy()


def mean(value: Tensor) -> Tensor:
    """The mean of a scalar over all processes."""
    if num_processes() == 1:
        return value
    value = value.detach().clone()
    all_reduce(value)
    return value / num_processes()


def gather(row: Tensor) -> Tensor:
    """The rows [n] of all processes: [processes, n], the same in each."""
    rows = row.new_zeros(num_processes(), len(row))
    rows[rank()] = row
    all_reduce(rows)
    return rows


def average_gradients(model: nn.Module) -> None:
    """Gives the parameters of a model the mean of the gradients of all replicas, put together in one tensor.

    Between processes of torchrun Fabric does that, in the backward pass.
    """
    replica = replicas.current()
    if replica is None:
        return
    parameters = [parameter for parameter in model.parameters() if parameter.grad is not None]
    whole = torch.cat([cast(Tensor, parameter.grad).flatten() for parameter in parameters])
    replica.add_up(whole)
    whole /= replica.size
    for parameter, part in zip(parameters, whole.split([p.numel() for p in parameters]), strict=True):
        parameter.grad = part.view_as(parameter)


def map_shares(function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """What ``function`` makes of rows [M, ...], each for itself, in the same shape; each replica computes its share.

    While ``torch.compile`` looks on, this process computes all.
    """
    replica = None if torch.compiler.is_compiling() else replicas.current()
    if replica is None:
        return function(rows)
    whole = torch.zeros_like(rows)
    whole[replica.rank :: replica.size] = function(rows[replica.rank :: replica.size])
    replica.add_up(whole)
    return whole
