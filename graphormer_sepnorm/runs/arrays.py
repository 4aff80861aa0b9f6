"""Arrays and JSON facts in one safetensors file with a checksum; never pickle."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch
from safetensors.torch import save

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.checkpoint import CHECKSUM, checksum, read_facts, read_safetensors, with_sorted_metadata
from graphormer_sepnorm.system.files import write_atomically


@dataclass(frozen=True)
class Stored:
    """Metadata in the type of a dataclass field that is an array in a file: its type and number of axes."""

    dtype: type
    ndim: int


def save_arrays(path: Path, arrays: dict[str, np.ndarray], facts: dict) -> None:
    """Writes arrays and JSON facts atomically; equal content gives equal bytes.

    Raises:
        InputError: the file cannot be written.
    """
    tensors = as_tensors(arrays)
    texts = {"facts": json.dumps(facts, sort_keys=True)}
    write_atomically(path, with_sorted_metadata(save(tensors, {**texts, CHECKSUM: checksum(tensors, texts)})))


def as_tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.array(array, order="C")) for name, array in arrays.items()}


def array_digest(arrays: dict[str, np.ndarray], facts: dict) -> str:
    """A digest of arrays and JSON facts."""
    return checksum(as_tensors(arrays), {"facts": json.dumps(facts, sort_keys=True)})


def load_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict]:
    """Reads a file written by ``save_arrays``.

    Raises:
        InputError: the file does not exist, is too large, damaged or of another kind.
    """
    tensors, metadata = read_safetensors(path)
    recorded = metadata.pop(CHECKSUM, None)
    if "facts" not in metadata or recorded != checksum(tensors, metadata):
        raise InputError(f"{path} is damaged: its content does not match its checksum")
    return {name: tensor.numpy() for name, tensor in tensors.items()}, read_facts(metadata["facts"], path)


def load_format(path: Path, number: int) -> tuple[dict[str, np.ndarray], dict]:
    """As ``load_arrays``; raises InputError too for a file whose facts name another format."""
    arrays, facts = load_arrays(path)
    if facts.get("format") != number:
        raise InputError(f"{path} has format {facts.get('format')!r}; this release reads format {number}")
    return arrays, facts


def checked_array(arrays: dict[str, np.ndarray], name: str, dtype: type, ndim: int, path: Path) -> np.ndarray:
    """The array with this name; raises InputError if it is missing or has another type or number of axes."""
    array = arrays.get(name)
    if array is None or array.dtype != dtype or array.ndim != ndim:
        raise InputError(f"{path} is damaged: it has no {np.dtype(dtype)} array {name} of {ndim} axes")
    return array


def part_arrays(name: str, part: Any) -> dict[str, np.ndarray]:
    """The arrays of a dataclass, named ``NAME.FIELD``."""
    return {f"{name}.{field.name}": getattr(part, field.name) for field in fields(part)}


def read_part(kind: type, name: str, arrays: dict[str, np.ndarray], path: Path) -> Any:
    """The dataclass with the arrays ``NAME.FIELD`` of a file, whose fields are ``Stored``; None if there are none.

    Raises:
        InputError: an array is missing, or of another type or number of axes.
    """
    if not any(each.startswith(f"{name}.") for each in arrays):
        return None
    hints = get_type_hints(kind, include_extras=True)
    stored: dict[str, Stored] = {field.name: hints[field.name].__metadata__[0] for field in fields(kind)}
    return kind(*(checked_array(arrays, f"{name}.{field}", s.dtype, s.ndim, path) for field, s in stored.items()))
