"""Several processes, started by torchrun; on its own a process is rank 0 of 1 and nothing here has an effect.

Training gives each process its share of every batch, evaluation its share of the molecules. Gradients, losses and the
statistics of BatchNorm are put together so that all processes do what one process would do alone.
"""

import atexit
import contextlib
import datetime
import os
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Items = TypeVar("Items", list, np.ndarray)
TIMEOUT = datetime.timedelta(seconds=60)
PREPARATION_TIMEOUT = datetime.timedelta(days=1)


def from_torchrun(variable: str, default: int) -> int:
    return int(os.environ[variable]) if dist.is_torchelastic_launched() else default


def rank() -> int:
    """The number of this process among all."""
    return from_torchrun("RANK", 0)


def num_processes() -> int:
    """The number of processes on all machines."""
    return from_torchrun("WORLD_SIZE", 1)


def join() -> None:
    """Connects this process to the others, once; afterwards a lost one ends the rest within ``TIMEOUT``."""
    if num_processes() > 1 and not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=TIMEOUT)
        atexit.register(dist.destroy_process_group)


def wait_for_all() -> None:
    """Returns when all processes have come here, however long their preparation of molecules takes."""
    if num_processes() > 1:
        join()
        patient = dist.new_group(backend="gloo", timeout=PREPARATION_TIMEOUT)
        dist.barrier(patient)
        dist.destroy_process_group(patient)


def make_fabric() -> "Fabric":
    """Lightning Fabric on one device, or on the device of this process beside the others.

    In its own precision, float32: its others rebuild batches to convert them; ``autocast`` needs no conversion.
    Imported here because it takes longer to import than all else together, and only training needs it.
    """
    from lightning_fabric import Fabric
    from lightning_fabric.strategies import DDPStrategy

    if num_processes() == 1:
        return Fabric(accelerator="auto", devices=1)
    join()
    devices = from_torchrun("LOCAL_WORLD_SIZE", 1)
    fabric = Fabric(
        accelerator="auto",
        devices=devices,
        num_nodes=num_processes() // devices,
        strategy=DDPStrategy(timeout=TIMEOUT, broadcast_buffers=False),
    )
    fabric.launch()
    return fabric


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager:
    """Within it a model computes in a precision of ``TrainConfig``; its weights stay float32."""
    if precision == "32-true":
        return contextlib.nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def share(items: Items) -> Items:
    """This process's part of ``items``."""
    return items[rank() :: num_processes()]


def add_up(rows: np.ndarray) -> np.ndarray:
    """The sum of an array over all processes."""
    if num_processes() == 1:
        return rows
    join()
    total = torch.from_numpy(rows)
    dist.all_reduce(total)
    return total.numpy()


def mean(value: Tensor) -> Tensor:
    """The mean of a scalar over all processes."""
    if num_processes() == 1:
        return value
    value = value.detach().clone()
    dist.all_reduce(value)
    return value / num_processes()


def best_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
