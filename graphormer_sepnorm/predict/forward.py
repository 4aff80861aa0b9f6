"""Predictions and embeddings of prepared molecules."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import BODY, TRUNK, Network, Trunk
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.tasks import Task

ATOMS_PER_BATCH = 1536
# For GPUs, where launching a batch takes the same time for any size.
DEVICE_ATOMS, DEVICE_PAIRS = 16_384, 2_097_152


def size_sorted_batches(num_atoms: np.ndarray, is_gpu: bool = False) -> list[np.ndarray]:
    """Indices of molecules sorted by size, in batches of about so many atoms, or pairs; for evaluation mode only."""
    order = np.argsort(num_atoms, kind="stable")
    n = num_atoms[order]
    filled = n / DEVICE_ATOMS + n.astype(float) ** 2 / DEVICE_PAIRS
    batch = np.floor(np.cumsum(filled)) if is_gpu else np.cumsum(n) // ATOMS_PER_BATCH
    return np.split(order, np.flatnonzero(np.diff(batch)) + 1)


def batches_for(model: Network, dataset: MoleculeDataset) -> list[np.ndarray]:
    return size_sorted_batches(dataset.num_atoms, on_gpu(model))


@dataclass(frozen=True)
class Output:
    """An output that one model computes for molecules."""

    model: Network  # with whose encodings the molecules are prepared
    width: int
    compute: Callable[[GraphBatch, Trunk], Tensor]  # from a batch and the model's trunk of it to [B, width]


def prediction_of(model: Network, task: Task) -> Output:
    """The predictions of a model in evaluation mode."""

    def predict(batch: GraphBatch, trunk: Trunk) -> Tensor:
        return task.predict(model.embed_and_predict(batch, trunk)[1].float())

    return Output(model, model.config.num_tasks, predict)


def embedding_of(model: Network) -> Output:
    """The final embeddings of the CLS tokens."""
    return Output(model, model.config.width, lambda batch, trunk: model.encode_cls(batch, trunk).float())


def embedding_and_prediction_of(model: Network, task: Task) -> Output:
    """The embedding of the CLS, concatenated with the prediction, by one pass."""

    def both(batch: GraphBatch, trunk: Trunk) -> Tensor:
        cls, output = model.embed_and_predict(batch, trunk)
        return torch.cat([cls.float(), task.predict(output.float())], dim=1)

    return Output(model, model.config.width + model.config.num_tasks, both)


def compute_dataset(output: Output, dataset: MoleculeDataset) -> np.ndarray:
    """An output [M, width] in dataset order, all in this process."""
    return rows_of_molecules([output], dataset, batches_for(output.model, dataset))[0]


def predict_dataset(model: Network, dataset: MoleculeDataset, task: Task) -> np.ndarray:
    """Predictions [M, tasks] in dataset order, by a model in evaluation mode, all in this process."""
    return compute_dataset(prediction_of(model, task), dataset)


def embed_dataset(model: Network, dataset: MoleculeDataset) -> np.ndarray:
    """Final embeddings of the CLS tokens [M, D] in dataset order, by a model in evaluation mode."""
    return compute_dataset(embedding_of(model), dataset)


def predict_together(model: Network, dataset: MoleculeDataset, task: Task) -> np.ndarray:
    """As ``predict_dataset``, shared among all torchrun processes; each of them calls this and gets all predictions."""
    batches = distributed.share(batches_for(model, dataset))
    return distributed.add_up(rows_of_molecules([prediction_of(model, task)], dataset, batches)[0])


@torch.inference_mode()
def rows_of_molecules(
    outputs: Sequence[Output], dataset: MoleculeDataset, batches: Iterable[np.ndarray]
) -> list[np.ndarray]:
    """Outputs for the molecules in ``batches``, 0 for others: float32 [M, width] each, in dataset order.

    A trunk that several models share is computed once per batch.
    """
    batches = list(batches)
    computed: list[list[Tensor]] = [[] for _ in outputs]
    if batches:
        with current().arithmetic():
            for batch in dataset.batches(batches, outputs[0].model.cls.device):
                trunks: dict[nn.Module, Trunk] = {}
                for output, parts in zip(outputs, computed, strict=True):
                    shared = output.model.local_blocks
                    if shared not in trunks:
                        trunks[shared] = output.model.run_trunk(batch)
                    parts.append(output.compute(batch, trunks[shared]))
    rows = [np.zeros((len(dataset), output.width), np.float32) for output in outputs]
    for parts, values in zip(computed, rows, strict=True):
        if parts:
            values[np.concatenate(batches)] = torch.cat(parts).cpu().numpy()
    return rows


def share_trunks(models: Sequence[Network]) -> None:
    """Replaces the trunk of a model, or all but its head, by those of an earlier one with the same weights."""
    for place, model in enumerate(models):
        for names in (TRUNK, BODY):
            twin = next((other for other in models[:place] if have_same(names, model, other)), None)
            if twin is not None:
                for name in names:
                    setattr(model, name, getattr(twin, name))


def have_same(names: Sequence[str], one: Network, other: Network) -> bool:
    """Whether the modules with these names of two models in evaluation mode compute the same for every molecule."""
    differing = ("num_tasks", "conditions", "dropout", "attention_dropout")
    if replace(one.config, **{name: getattr(other.config, name) for name in differing}) != other.config:
        return False
    tensors = other.state_dict()
    named = ((name, tensor) for name, tensor in one.state_dict().items() if name.partition(".")[0] in names)
    return all(torch.equal(tensor, tensors[name]) for name, tensor in named)


def on_gpu(model: Network) -> bool:
    """Whether a model is on a GPU, where launching a small batch takes longer than computing it."""
    return model.cls.device.type != "cpu"
