"""Several processes, started by torchrun; on its own a process is rank 0 of 1 and nothing here has an effect.

Training gives each process its share of every batch, evaluation its share of the molecules. Gradients, losses and the
statistics of BatchNorm are put together so that all processes do what one process would do alone.
"""

import atexit
import datetime
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.system.torchrun import num_local_processes, num_processes, rank

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Items = TypeVar("Items", list, np.ndarray)
TIMEOUT = datetime.timedelta(seconds=60)
PREPARATION_TIMEOUT = datetime.timedelta(days=1)


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
    """Lightning Fabric on the device of ``device.current``, or on that of this process beside the others.

    In its own precision, float32: its others rebuild batches to convert them; ``device.autocast`` needs no conversion.
    Imported here because it takes longer to import than all else together, and only training needs it.
    """
    from lightning_fabric import Fabric
    from lightning_fabric.strategies import DDPStrategy

    device = current().device
    if num_processes() == 1:
        return Fabric(accelerator=device.type, devices=[device.index] if device.type == "cuda" else 1)
    join()
    devices = num_local_processes()
    fabric = Fabric(
        accelerator=device.type,
        devices=devices,
        num_nodes=num_processes() // devices,
        strategy=DDPStrategy(timeout=TIMEOUT, broadcast_buffers=False),
    )
    fabric.launch()
    return fabric


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
