"""From a model and prepared molecules to predictions."""

from collections.abc import Iterator

import numpy as np
import torch

from graphormer_sepnorm.model import Graphormer
from graphormer_sepnorm.store import MoleculeDataset
from graphormer_sepnorm.tasks import Task

ATOMS_PER_BATCH = 6144


def size_sorted_batches(num_atoms: np.ndarray, atoms_per_batch: int = ATOMS_PER_BATCH) -> Iterator[np.ndarray]:
    """Numbers of molecules of similar size, in batches of about ``atoms_per_batch`` atoms; each molecule once.

    Only for models in evaluation mode: training batches must be random.
    """
    order = np.argsort(num_atoms, kind="stable")
    batch_of = np.cumsum(num_atoms[order]) // atoms_per_batch
    yield from np.split(order, np.flatnonzero(np.diff(batch_of)) + 1)


@torch.inference_mode()
def predict_dataset(model: Graphormer, dataset: MoleculeDataset, task: Task) -> np.ndarray:
    """Predictions [M, tasks] in the dataset's order, by a model in evaluation mode."""
    device = model.cls.device
    predictions = np.empty((len(dataset), model.config.num_tasks), np.float32)
    for molecules in size_sorted_batches(dataset.num_atoms):
        batch = dataset.batch(molecules).to(device)
        predictions[molecules] = task.predict(model(batch).float()).cpu().numpy()
    return predictions
