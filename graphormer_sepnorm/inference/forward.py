"""Predictions and embeddings of prepared molecules."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.tasks import Task

ATOMS_PER_BATCH = 1536
# For GPUs, where launching a batch takes the same time for any size.
DEVICE_ATOMS, DEVICE_PAIRS = 16_384, 2_097_152


def size_sorted_batches(num_atoms: np.ndarray) -> Iterator[np.ndarray]:
    """Indices of molecules sorted by size, in batches of about ``ATOMS_PER_BATCH`` atoms; each molecule once.

    Only for models in evaluation mode: training batches must be random.
    """
    return in_order_of_size(num_atoms, lambda sizes: np.cumsum(sizes) // ATOMS_PER_BATCH)


def device_batches(num_atoms: np.ndarray) -> Iterator[np.ndarray]:
    """The same for a GPU: batches of at most about ``DEVICE_ATOMS`` atoms and ``DEVICE_PAIRS`` atom pairs."""
    return in_order_of_size(
        num_atoms, lambda n: np.floor(np.cumsum(n / DEVICE_ATOMS + n.astype(float) ** 2 / DEVICE_PAIRS))
    )


def in_order_of_size(num_atoms: np.ndarray, batch_of: Callable[[np.ndarray], np.ndarray]) -> Iterator[np.ndarray]:
    """Indices of molecules sorted by size, split where ``batch_of``, a function of the sorted sizes, changes."""
    order = np.argsort(num_atoms, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(batch_of(num_atoms[order]))) + 1)


def batches_for(model: Network, dataset: MoleculeDataset) -> Iterator[np.ndarray]:
    """Batches for the device of the model."""
    return (device_batches if on_gpu(model) else size_sorted_batches)(dataset.num_atoms)


def predict_dataset(model: Network, dataset: MoleculeDataset, task: Task) -> np.ndarray:
    """Predictions [M, tasks] in dataset order, by a model in evaluation mode, all in this process."""
    return predict_batches(model, dataset, task, batches_for(model, dataset))


def predict_together(model: Network, dataset: MoleculeDataset, task: Task) -> np.ndarray:
    """The same, distributed over all torchrun processes; each of them calls this and gets all predictions."""
    batches = distributed.share(list(batches_for(model, dataset)))
    return distributed.add_up(predict_batches(model, dataset, task, batches))


def predict_batches(model: Network, dataset: MoleculeDataset, task: Task, batches: Iterable[np.ndarray]) -> np.ndarray:
    def predict(batch: GraphBatch) -> Tensor:
        return task.predict(model(batch).float())

    return rows_of_molecules(model, dataset, model.config.num_tasks, predict, batches)


def embed_and_predict_dataset(model: Network, dataset: MoleculeDataset, task: Task) -> np.ndarray:
    """Embeddings of the CLS, and next to them predictions: [M, D + tasks] in dataset order, by one pass."""

    def both(batch: GraphBatch) -> Tensor:
        cls, output = model.embed_and_predict(batch)
        return torch.cat([cls.float(), task.predict(output.float())], dim=1)

    width = model.config.width + model.config.num_tasks
    return rows_of_molecules(model, dataset, width, both, batches_for(model, dataset))


def embed_dataset(model: Network, dataset: MoleculeDataset) -> np.ndarray:
    """Final embeddings of the CLS tokens [M, D] in dataset order, by a model in evaluation mode."""
    batches = batches_for(model, dataset)
    return rows_of_molecules(model, dataset, model.config.width, lambda batch: model.encode_cls(batch).float(), batches)


@torch.inference_mode()
def rows_of_molecules(
    model: Network,
    dataset: MoleculeDataset,
    width: int,
    compute: Callable[[GraphBatch], Tensor],
    batches: Iterable[np.ndarray],
) -> np.ndarray:
    """Results of ``compute`` for the molecules in ``batches``, 0 for others: float32 [M, width] in dataset order.

    Computes on the device of the model, in the precision of ``device.current``, and copies the results at the end.
    """
    rows = np.zeros((len(dataset), width), np.float32)
    batches = list(batches)
    if batches:
        with current().arithmetic():
            found = [compute(batch) for batch in dataset.batches(batches, model.cls.device)]
        rows[np.concatenate(batches)] = torch.cat(found).cpu().numpy()
    return rows


def on_gpu(model: Network) -> bool:
    """Whether a model is on a GPU, where launching a small batch takes longer than computing it."""
    return model.cls.device.type != "cpu"
