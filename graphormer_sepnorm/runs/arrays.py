"""Arrays with JSON facts in one safetensors file, with a checksum: never pickle."""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.checkpoint import CHECKSUM, checksum, read_facts, read_safetensors, with_sorted_metadata
from graphormer_sepnorm.system.files import write_atomically


def save_arrays(path: Path, arrays: dict[str, np.ndarray], facts: dict) -> None:
    """Writes arrays and JSON facts, atomically; equal content makes equal bytes.

    Raises:
        InputError: the file cannot be written.
    """
    tensors = as_tensors(arrays)
    texts = {"facts": json.dumps(facts, sort_keys=True)}
    write_atomically(path, with_sorted_metadata(save(tensors, {**texts, CHECKSUM: checksum(tensors, texts)})))


def as_tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.array(array, order="C")) for name, array in arrays.items()}


def array_digest(arrays: dict[str, np.ndarray], facts: dict) -> str:
    """A digest of arrays with JSON facts."""
    return checksum(as_tensors(arrays), {"facts": json.dumps(facts, sort_keys=True)})


def load_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict]:
    """Reads what ``save_arrays`` wrote.

    Raises:
        InputError: no such file, too large, damaged, or not such a file.
    """
    tensors, metadata = read_safetensors(path)
    recorded = metadata.pop(CHECKSUM, None)
    if "facts" not in metadata or recorded != checksum(tensors, metadata):
        raise InputError(f"{path} is damaged: its content does not match its checksum")
    return {name: tensor.numpy() for name, tensor in tensors.items()}, read_facts(metadata["facts"], path)


def checked_array(arrays: dict[str, np.ndarray], name: str, dtype: type, ndim: int, path: Path) -> np.ndarray:
    """The array of that name; raises InputError unless it is there and has that type and number of axes."""
    array = arrays.get(name)
    if array is None or array.dtype != dtype or array.ndim != ndim:
        raise InputError(f"{path} is not what it should be: it has no {np.dtype(dtype)} array {name} of {ndim} axes")
    return array
