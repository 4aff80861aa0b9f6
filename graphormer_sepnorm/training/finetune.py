"""Fine-tuning: a new head on pretrained weights, with the first blocks optionally frozen."""

from dataclasses import replace
from pathlib import Path

from torch import nn

from graphormer_sepnorm.chem.features import FEATURIZERS, prepared
from graphormer_sepnorm.config import Config, ModelConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.checkpoint import HEAD, check_names, load_into, load_tensors
from graphormer_sepnorm.runs.folder import weights_file
from graphormer_sepnorm.runs.zoo import resolve_model


def start_from(model: Network, path: Path, frozen_layers: int = 0) -> None:
    """Copies the weights of a checkpoint, except for the head's, into a model, and freezes the first blocks.

    The embeddings and the bias network before frozen blocks are frozen too. BatchNorm statistics are not weights:
    training estimates them on its own molecules, also in frozen blocks.

    Args:
        model: a model with the checkpoint's architecture; ``num_tasks`` may differ.
        path: run folder or weights file.
        frozen_layers: number of frozen blocks, counted from the input.

    Raises:
        InputError: as ``load_model``, another architecture, or more frozen layers than the model has.
    """
    check_frozen_layers(frozen_layers, model.config)
    path = weights_file(path)
    tensors, _, _ = load_tensors(path)
    body = {name: tensor for name, tensor in tensors.items() if not name.startswith(HEAD)}
    head = {name: tensor for name, tensor in model.state_dict().items() if name.startswith(HEAD)}
    load_into(model, body | head, path)
    if frozen_layers:
        for frozen in (model.embedding, model.encodings, model.bias_network, model.layers[:frozen_layers]):
            frozen.requires_grad_(False)
        model.cls.requires_grad_(False)
        model.cls_bias.requires_grad_(False)


def learning_body(model: Network) -> list[nn.Parameter]:
    """The trainable parameters before the head."""
    return [p for name, p in model.named_parameters() if p.requires_grad and not name.startswith(HEAD)]


def check_frozen_layers(frozen_layers: int, config: ModelConfig) -> None:
    """Raises InputError if ``frozen_layers`` exceeds the number of layers of the model."""
    if frozen_layers > config.layers:
        raise InputError(f"cannot freeze {frozen_layers} layers, the model has {config.layers}")


def starting_from(config: Config, source: str, frozen_layers: int = 0) -> Config:
    """The run with the architecture and the featurizer of the checkpoint that it starts from.

    Dropout is no part of the architecture here: it stays the run's.

    If the run prepares molecules, it does so before what the checkpoint's featurizer reads.

    Args:
        config: the run; its number of tasks is kept.
        source: run folder, weights file or name of shipped weights.
        frozen_layers: number of first blocks to freeze.

    Raises:
        InputError: not a checkpoint, or more frozen layers than it has.
    """
    _, found, _ = checkpoint.load_tensors(weights_file(resolve_model(source)))
    check_frozen_layers(frozen_layers, found.model)
    check_names(found, source)
    preparation = FEATURIZERS[config.featurizer].preparation or FEATURIZERS[found.featurizer].preparation
    return replace(
        config,
        featurizer=prepared(found.featurizer, preparation),
        model=replace(
            found.model,
            num_tasks=config.model.num_tasks,
            dropout=config.model.dropout,
            attention_dropout=config.model.attention_dropout,
        ),
        train=replace(config.train, start_from=source, frozen_layers=frozen_layers),
    )
