"""Supervised training on the labels of molecules."""

import numpy as np
import torch
from torch import Tensor

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import predict_together
from graphormer_sepnorm.tasks import make_task


class LabelObjective:
    """Learns the labels of the training split; the score is the task's metric on the validation split."""

    def __init__(self, task: TaskConfig, train: MoleculeDataset, val: MoleculeDataset, device: torch.device):
        unfitted = make_task(task)
        unfitted.check_learnable(train.y)
        unfitted.check_scorable(val.y, "validation")
        self.task = unfitted.fitted(train.y, train.per_molecule.get("weight"))
        self.train, self.val = train, val
        self.here = make_task(self.task, device)
        self.on_host = make_task(self.task)

    def loss(self, network: Network, batch: GraphBatch) -> Tensor:
        return self.here.loss(network(batch).float(), labels(batch), batch.bounds, batch.weight)

    def counts(self, molecules: np.ndarray) -> Tensor:
        return self.on_host.counts(*self.train.labels(molecules), self.train.of_molecules("weight", molecules))

    def score(self, network: Network) -> float:
        prediction = predict_together(network, self.val, self.here)
        wrong = np.flatnonzero(~np.isfinite(prediction).all(axis=1))
        if len(wrong):
            raise InputError(f"the predictions for validation molecules {wrong[:10].tolist()} are not finite")
        return self.here.metric(self.val.y, prediction)

    def improves(self, score: float, best: float | None) -> bool:
        return self.here.metric.improves(score, best)


def labels(batch: GraphBatch) -> Tensor:
    """The targets [B, T] of a batch of a prepared split."""
    assert batch.y is not None
    return batch.y
