"""Checkpoints: safetensors with the run's config as JSON in the header, never pickle."""

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.config import Config, ModelConfig, config_from_json, config_to_json
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.runs.folder import weights_file
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tasks import TASKS, make_task

HEAD = ("head.", "atom_values.")
CHECKSUM = "sha256"
METADATA = "__metadata__"
MAX_HEADER = 10_000_000
MAX_TENSORS = 10_000
MAX_FILE = 4_000_000_000
Kind = TypeVar("Kind", bound=Network)


def save_tensors(path: Path, tensors: dict[str, Tensor], config: Config, facts: dict) -> None:
    """Writes tensors, the config and JSON facts to one file, atomically; raises InputError if it cannot be written."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_with_texts(path, contiguous, {"config": config_to_json(config), "facts": json.dumps(facts)})


def save_with_texts(path: Path, tensors: dict[str, Tensor], texts: dict[str, str]) -> None:
    content = save(tensors, {**texts, CHECKSUM: checksum(tensors, texts)})
    write_atomically(path, with_sorted_metadata(content))


def with_sorted_metadata(content: bytes) -> bytes:
    """The content of a safetensors file with sorted metadata, so that equal checkpoints are equal bytes."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header[METADATA] = dict(sorted(header[METADATA].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors start at a multiple of 8
    return len(text).to_bytes(8, "little") + text + content[end:]


def checksum(tensors: dict[str, Tensor], texts: dict[str, str]) -> str:
    """SHA-256 of contiguous tensors with their names, types and shapes, and of texts with their names."""
    digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_safetensors(path: Path, *texts: str) -> tuple[dict[str, Tensor], dict[str, str], dict]:
    """The tensors, metadata and facts of a file with a checksum; raises as ``read_header``, and if it is damaged.

    A file without one of the ``texts`` in its metadata is no checkpoint.
    """
    read_header(path)
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a dict
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise InputError(f"{path} is not a readable safetensors file: {error}") from None
    if not metadata.keys() >= {*texts}:
        raise InputError(f"{path} has no config in its header, so it is not a checkpoint of graphormer_sepnorm")
    if metadata.pop(CHECKSUM, None) != checksum(tensors, metadata):
        raise InputError(f"{path} is damaged: its content does not match its checksum")
    return tensors, metadata, read_facts(metadata.get("facts", ""), path)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], Config, dict]:
    tensors, texts, facts = read_safetensors(path, "config", "facts")
    config = config_from_json(texts["config"], str(path))
    check_usable(config, path)
    wanted, present = num_parameters(config.model), sum(tensor.numel() for tensor in tensors.values())
    if wanted > present:  # before any is allocated
        raise InputError(f"{path}: its config asks for {wanted:,} parameters, its tensors have {present:,}")
    return tensors, config, facts


def read_facts(text: str, path: Path) -> dict:
    if (facts := json_object(text)) is None:
        raise InputError(f"{path}: the facts in its header are not a JSON object")
    return facts


def json_object(text: str | bytes) -> dict | None:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def read_header(path: Path) -> dict[str, Any]:
    """The metadata of a safetensors file, for which no tensor is read."""
    if not path.is_file():
        raise InputError(f"{path} {'is not a file' if path.exists() else 'does not exist'}")
    if path.stat().st_size > MAX_FILE:
        raise InputError(f"{path} has {path.stat().st_size:,} bytes; checkpoints of up to {MAX_FILE:,} are read")
    try:
        with open(path, "rb") as file:
            start = file.read(8)
            size = int.from_bytes(start, "little")
            header = file.read(size) if size <= MAX_HEADER else b""
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    if start.startswith(b"PK\x03\x04"):
        how = "read it as in docs/for-developers/python.md"
        raise InputError(f"{path} is no safetensors file but one of torch.save: {how}")
    if size > MAX_HEADER:
        raise InputError(f"{path} is not a weights file, which would begin with the size of its header")
    if (count := header.count(b'"dtype"')) > MAX_TENSORS:
        raise InputError(f"{path} has {count:,} tensors; files with up to {MAX_TENSORS:,} are read")
    metadata = None if (content := json_object(header)) is None else content.get(METADATA, {})
    if not isinstance(metadata, dict):
        raise InputError(f"{path} is not a readable safetensors file: its header is not a JSON object")
    return metadata


def recorded_checksum(path: Path) -> str:
    """The checksum that a file of tensors records of itself, which loading compares with its content."""
    if path.suffix != ".safetensors":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return str(read_header(path).get(CHECKSUM))


def check_usable(config: Config, path: Path) -> None:
    """Raises InputError if predictions for this config could not be scaled back, or as ``check_names``."""
    check_names(config, str(path))
    if not make_task(config.task).is_fitted:
        raise InputError(f"{path}: its config has no scale for its targets")


def check_names(config: Config, path: str) -> None:
    """Raises InputError for an unknown featurizer, a metric that does not suit the task, or another vocabulary."""
    if config.featurizer not in FEATURIZERS:
        raise InputError(f"{path}: unknown featurizer {config.featurizer!r}, there are {', '.join(FEATURIZERS)}")
    kind = TASKS[config.task.kind]
    metrics = dict.fromkeys((*kind.metrics, *kind.reported, kind.curve_metric))
    if config.task.metric not in metrics:
        problem = f"metric {config.task.metric!r} does not score a {kind.kind}"
        raise InputError(f"{path}: {problem}, choose one of {', '.join(metrics)}")
    ours, theirs = ((each.atom_sizes, each.bond_sizes) for each in (config.model, FEATURIZERS[config.featurizer]))
    if ours != theirs:
        of = f"the featurizer {config.featurizer!r}, {theirs[0]} and {theirs[1]}"
        raise InputError(f"{path}: its vocabularies {ours[0]} and {ours[1]} are not those of {of}")


@lru_cache  # the networks of a table model have the same config
def num_parameters(config: ModelConfig) -> int:
    return sum(parameter.numel() for parameter in skeleton(config).parameters())


class NoInitialization(TorchFunctionMode):
    """Leaves parameters that will be loaded uninitialized; on the meta device, initialization imports a compiler."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_, Tensor.normal_, Tensor.uniform_):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def skeleton(config: ModelConfig) -> Network:
    """The model of a config without memory for its parameters, only names and shapes."""
    with torch.device("meta"), NoInitialization():
        return Network(config)


def digest_parts(model: nn.Module) -> Iterator[bytes]:
    """The names, parameters and buffers of a model, as digests take them."""
    for name, tensor in model.state_dict().items():
        yield name.encode() + tensor.cpu().numpy().tobytes()


def save_model(path: Path, model: Network, config: Config, facts: dict) -> None:
    save_tensors(path, model.state_dict(), config, facts)


def load_model(path: Path) -> tuple[Network, Config, dict]:
    """Loads a model in evaluation mode from a run folder or a weights file."""
    return load_as(Network, path)


def load_as(kind: type[Kind], path: Path) -> tuple[Kind, Config, dict]:
    """The same, as a class of network that takes only a model config."""
    path = weights_file(path)
    tensors, config, facts = load_tensors(path)
    with NoInitialization():
        model = kind(config.model)
    check_tensors(tensors, model.state_dict(), path)
    model.load_state_dict(tensors)
    return model.eval(), config, facts


def check_tensors(tensors: dict[str, Tensor], expected: dict[str, Tensor], path: Path) -> None:
    """Raises InputError unless names, shapes and types are those of ``expected`` and all values are finite."""
    for name in sorted(expected.keys() ^ tensors.keys()):
        raise InputError(f"{path}: tensor {name} is {'missing' if name in expected else 'not part of the model'}")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape or tensor.dtype != expected[name].dtype:
            actual, wanted = (f"{each.dtype} {list(each.shape)}" for each in (tensor, expected[name]))
            raise InputError(f"{path}: tensor {name} is {actual}, the config asks for {wanted}")
        if not tensor.isfinite().all():
            raise InputError(f"{path}: tensor {name} has values that are not finite")
