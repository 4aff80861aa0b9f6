"""Fine-tuning: a new last layer on pretrained weights, with the first blocks optionally frozen."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from graphormer_sepnorm.chem.features import FEATURIZERS, prepared_name
from graphormer_sepnorm.config import Config, ModelConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import Network, Trunk
from graphormer_sepnorm.predict.forward import Output, batches_for, rows_of_molecules
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.arrays import check_has_weights
from graphormer_sepnorm.runs.checkpoint import check_names, check_tensors, load_tensors
from graphormer_sepnorm.runs.folder import weights_file
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.tasks.kinds import Task
from graphormer_sepnorm.training.settings import differences

FIRST = "head.0.weight"
FRESH = ("head.2.", "atom_values.")  # what of a model is not taken from a checkpoint
PENALTIES = np.logspace(-3, 5, 17)
FEWEST = 8  # labels of a target for its regression
MOST = 10_000  # molecules that the regression learns from


def start_from(model: Network, path: Path, frozen_layers: int = 0) -> None:
    """Copies all weights of a checkpoint but those of the last layer and of conditions; freezes the first blocks."""
    check_frozen_layers(frozen_layers, model.config)
    path = weights_file(path)
    kept = {name: tensor for name, tensor in load_tensors(path)[0].items() if not name.startswith(FRESH)}
    fresh = {name: tensor for name, tensor in model.state_dict().items() if name.startswith(FRESH)}
    if FIRST in kept and kept[FIRST].ndim == 2:
        width = model.readout.parts * model.config.width
        kept[FIRST] = torch.cat([kept[FIRST][:, :width], model.state_dict()[FIRST][:, width:].cpu()], dim=1)
    check_tensors(kept | fresh, model.state_dict(), path)
    model.load_state_dict(kept | fresh)
    if frozen_layers:
        first = (model.embedding, model.encodings, model.bias_network, model.layers[:frozen_layers])
        for frozen in (*first, model.cls, model.cls_bias):
            frozen.requires_grad_(False)


def start_head(model: Network, data: MoleculeDataset, task: Task) -> None:
    """Sets the last layer to the ridge regression of the labels. Source: Kumar et al., ICLR 2022."""
    last = cast(nn.Linear, model.head[2])
    inputs: list[Tensor] = []
    hook = last.register_forward_pre_hook(lambda _, values: inputs.append(values[0]))

    def hidden(batch: GraphBatch, trunk: Trunk) -> Tensor:
        model.embed_and_predict(batch, trunk)
        return inputs.pop().float()

    model.eval()
    batches = [chosen for batch in batches_for(model, data) if len(chosen := batch[batch < MOST])]
    features = rows_of_molecules([Output(model, last.in_features, hidden)], data, batches)[0][:MOST]
    hook.remove()
    for place, wanted in enumerate(task.output_of(torch.from_numpy(data.y[:MOST])).numpy().T):
        rows = np.flatnonzero(~np.isnan(wanted))
        if len(rows) >= FEWEST:
            weight, bias = ridge(features[rows].astype(np.float64), wanted[rows].astype(np.float64))
            with torch.no_grad():
                last.weight[place] = torch.from_numpy(weight)
                last.bias[place] = bias


def ridge(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights [D] and bias on standardized x [M, D], with the penalty of the smallest leave-one-out error."""
    mean, std = x.mean(axis=0), x.std(axis=0) + 1e-6
    left, singular, right = np.linalg.svd((x - mean) / std, full_matrices=False)
    along = left.T @ (y - y.mean())
    shrunk = singular**2 / (singular**2 + PENALTIES[:, None])  # [penalties, D]
    leverage = shrunk @ (left**2).T + 1 / len(y)
    errors = (y - y.mean() - (shrunk * along) @ left.T) / np.maximum(1 - leverage, 1e-6)
    best = (errors**2).mean(axis=1).argmin()
    weight = right.T @ (shrunk[best] / np.maximum(singular, 1e-12) * along) / std
    return weight, float(y.mean() - mean @ weight)


def check_frozen_layers(frozen_layers: int, config: ModelConfig) -> None:
    if frozen_layers > config.layers:
        raise InputError(f"cannot freeze {frozen_layers} layers, the model has {config.layers}")


def starting_from(config: Config, source: str, frozen_layers: int | None = None) -> Config:
    """The run with the checkpoint's architecture and featurizer, but its own dropout, and preparation of either."""
    path = resolve_model(source)
    check_has_weights(path, source, why="training cannot start from it")
    _, checkpoint_config, _ = checkpoint.load_tensors(weights_file(path))
    if frozen_layers is None:
        frozen_layers = min(config.train.frozen_layers, checkpoint_config.model.local_layers)
    check_frozen_layers(frozen_layers, checkpoint_config.model)
    check_names(checkpoint_config, source)
    preparation = FEATURIZERS[config.featurizer].preparation or FEATURIZERS[checkpoint_config.featurizer].preparation
    own = {name: getattr(config.model, name) for name in ("num_tasks", "conditions", "dropout", "attention_dropout")}
    return replace(
        config,
        featurizer=prepared_name(checkpoint_config.featurizer, preparation),
        model=replace(checkpoint_config.model, **own),
        train=replace(config.train, start_from=source, frozen_layers=frozen_layers),
    )


def from_weights(
    config: Config, named: str | None, frozen_layers: int | None, options: tuple[str, str] = ("--freeze", "--from")
) -> Config:
    """As ``starting_from``, from ``config.train.start_from`` if any; without options, its layers stay frozen."""
    if config.train.start_from is None:
        if frozen_layers:
            raise InputError("{} needs {}: only layers of a trained model can keep their weights".format(*options))
        return config
    kept = config.train.frozen_layers if named is None and frozen_layers is None else frozen_layers
    return starting_from(config, config.train.start_from, kept)


def check_start(config: Config) -> None:
    """Raises InputError if a run starts from a model with another config than its own, which settings can cause."""
    if (start := config.train.start_from) is None:
        return
    wanted = starting_from(config, start, config.train.frozen_layers).model
    if fields := "; ".join(differences(asdict(wanted), asdict(config.model))):
        raise InputError(f"training starts from {start}, whose model is another one ({fields}): leave these fields out")
