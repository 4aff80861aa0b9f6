"""From a model and prepared molecules to predictions."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from graphormer_sepnorm.data.store import MoleculeDataset
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.tasks import Task

ATOMS_PER_BATCH = 1024


def size_sorted_batches(num_atoms: np.ndarray, atoms_per_batch: int = ATOMS_PER_BATCH) -> Iterator[np.ndarray]:
    """Numbers of molecules of similar size, in batches of about ``atoms_per_batch`` atoms; each molecule once.

    Only for models in evaluation mode: training batches must be random.
    """
    order = np.argsort(num_atoms, kind="stable")
    batch_of = np.cumsum(num_atoms[order]) // atoms_per_batch
    yield from np.split(order, np.flatnonzero(np.diff(batch_of)) + 1)


def predict_dataset(model: Network, dataset: MoleculeDataset, task: Task) -> np.ndarray:
    """Predictions [M, tasks] in the dataset's order, by a model in evaluation mode, all of them in this process."""
    return predict_batches(model, dataset, task, size_sorted_batches(dataset.num_atoms))


def predict_together(model: Network, dataset: MoleculeDataset, task: Task) -> np.ndarray:
    """The same, by all processes that torchrun started, each of which calls this and gets all predictions."""
    batches = distributed.share(list(size_sorted_batches(dataset.num_atoms)))
    return distributed.add_up(predict_batches(model, dataset, task, batches))


def predict_batches(model: Network, dataset: MoleculeDataset, task: Task, batches: Iterable[np.ndarray]) -> np.ndarray:
    def predict(batch: GraphBatch) -> Tensor:
        return task.predict(model(batch).float())

    return rows_of_molecules(model, dataset, model.config.num_tasks, predict, batches)


def embed_dataset(model: Network, dataset: MoleculeDataset) -> np.ndarray:
    """Final embeddings of the CLS tokens [M, D] in the dataset's order, by a model in evaluation mode."""
    batches = size_sorted_batches(dataset.num_atoms)
    return rows_of_molecules(model, dataset, model.config.width, lambda batch: model.encode_cls(batch).float(), batches)


@torch.inference_mode()
def rows_of_molecules(
    model: Network,
    dataset: MoleculeDataset,
    width: int,
    compute: Callable[[GraphBatch], Tensor],
    batches: Iterable[np.ndarray],
) -> np.ndarray:
    """What ``compute`` gives for the molecules in ``batches``, 0 for others: float32 [M, width] in dataset order.

    It is computed where the model lies, in the precision of ``device.current``.
    """
    rows = np.zeros((len(dataset), width), np.float32)
    with current().arithmetic():
        for molecules in batches:
            rows[molecules] = compute(dataset.batch(molecules).to(model.cls.device)).cpu().numpy()
    return rows
