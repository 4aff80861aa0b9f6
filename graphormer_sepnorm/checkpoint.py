"""Checkpoints: safetensors with the run's config as JSON in the header, never pickle.

A run folder holds ``model.safetensors`` (the best weights), ``state.safetensors`` (everything that training goes on
from) and ``config.json`` (the config again, for people).
"""

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from graphormer_sepnorm.config import Config, config_from_json, config_to_json
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.files import write_atomically
from graphormer_sepnorm.model import Graphormer

WEIGHTS = "model.safetensors"
STATE = "state.safetensors"
CONFIG = "config.json"
HEAD = "head."


def save_tensors(path: Path, tensors: dict[str, Tensor], config: Config, facts: dict) -> None:
    """Writes tensors, the config and JSON facts in one file, atomically; raises InputError if it cannot be written."""
    metadata = {"config": config_to_json(config), "facts": json.dumps(facts)}
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(contiguous, metadata))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], Config, dict]:
    """Reads what ``save_tensors`` wrote; raises InputError with the reason if it is not that."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} is not a readable safetensors file: {error}") from None
    if "config" not in metadata or "facts" not in metadata:
        raise InputError(f"{path} has no config in its header, so it is not a checkpoint of graphormer_sepnorm")
    return tensors, config_from_json(metadata["config"], str(path)), json.loads(metadata["facts"])


def save_model(path: Path, model: Graphormer, config: Config, facts: dict) -> None:
    """Writes a model's weights with the config that rebuilds it and facts such as the epoch and the metric."""
    save_tensors(path, model.state_dict(), config, facts)


def load_model(path: Path) -> tuple[Graphormer, Config, dict]:
    """Rebuilds a model in evaluation mode from a run folder or a weights file.

    Raises:
        InputError: the file is missing, damaged, of a newer format, or its tensors do not fit its config.
    """
    path = weights_file(path)
    tensors, config, facts = load_tensors(path)
    model = Graphormer(config.model)
    load_into(model, tensors, path)
    return model.eval(), config, facts


def weights_file(path: Path) -> Path:
    """The weights in a run folder, or the file itself; raises InputError for a folder without weights."""
    if path.is_dir():
        if not (path / WEIGHTS).exists():
            raise InputError(f"{path} is not a run folder: it has no {WEIGHTS}")
        return path / WEIGHTS
    return path


def start_from(model: Graphormer, path: Path, frozen_layers: int = 0) -> None:
    """Gives a model the weights of a checkpoint, all but the head's, which stay fresh, and freezes the first blocks.

    With frozen blocks the embeddings before them are frozen too. BatchNorm's statistics are no weights: training
    estimates them anew on its own molecules in frozen blocks as well.

    Args:
        model: of the checkpoint's architecture; ``num_tasks`` may differ.
        path: run folder or weights file.
        frozen_layers: number of blocks, counted from the input.

    Raises:
        InputError: as ``load_model``, another architecture, or more frozen layers than the model has.
    """
    if frozen_layers > len(model.blocks):
        raise InputError(f"cannot freeze {frozen_layers} layers, the model has {len(model.blocks)}")
    path = weights_file(path)
    tensors, _, _ = load_tensors(path)
    body = {name: tensor for name, tensor in tensors.items() if not name.startswith(HEAD)}
    head = {name: tensor for name, tensor in model.state_dict().items() if name.startswith(HEAD)}
    load_into(model, body | head, path)
    if frozen_layers:
        for frozen in (model.embedding, model.encodings, model.blocks[:frozen_layers]):
            frozen.requires_grad_(False)
        model.cls.requires_grad_(False)
        model.cls_bias.requires_grad_(False)


def load_into(model: Graphormer, tensors: dict[str, Tensor], path: Path) -> None:
    """Copies tensors into a model; raises InputError unless names, shapes and types all fit."""
    expected = model.state_dict()
    for name in sorted(expected.keys() ^ tensors.keys()):
        raise InputError(f"{path}: tensor {name} is {'missing' if name in expected else 'not part of the model'}")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape or tensor.dtype != expected[name].dtype:
            raise InputError(
                f"{path}: tensor {name} is {tensor.dtype} {list(tensor.shape)}, "
                f"the config asks for {expected[name].dtype} {list(expected[name].shape)}"
            )
    model.load_state_dict(tensors)
