"""Arrays and JSON facts in one safetensors file with a checksum; never pickle."""

import json
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.checkpoint import checksum, read_facts, read_header, read_safetensors, save_with_texts
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.files import cache_root

NO_EMBEDDING = "it has no single embedding"


@dataclass(frozen=True)
class Stored:
    """Metadata in the type of a dataclass field that is an array in a file."""

    dtype: type
    ndim: int
    finite: bool = True


def save_arrays(path: Path, arrays: dict[str, np.ndarray], facts: dict) -> None:
    """Writes arrays and JSON facts atomically; equal content gives equal bytes."""
    save_with_texts(path, as_tensors(arrays), {"facts": json.dumps(facts, sort_keys=True)})


def as_tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.array(array, order="C")) for name, array in arrays.items()}


def array_digest(arrays: dict[str, np.ndarray], facts: dict) -> str:
    return checksum(as_tensors(arrays), {"facts": json.dumps(facts, sort_keys=True)})


def load_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict]:
    tensors, _, facts = read_safetensors(path)
    return {name: tensor.numpy() for name, tensor in tensors.items()}, facts


def stored_facts(path: Path) -> dict:
    """The facts of a file written by ``save_arrays``, read without its arrays; raises as ``read_header``."""
    return read_facts(str(read_header(path).get("facts")), path)


def load_format(path: Path, number: int) -> tuple[dict[str, np.ndarray], dict]:
    """As ``load_arrays``; raises InputError too for a file whose facts name another format."""
    arrays, facts = load_arrays(path)
    if (version := facts.get("format")) != number:
        newer = isinstance(version, int) and version > number
        advice = "install a newer graphormer_sepnorm" if newer else "train the model again"
        raise InputError(f"{path} has format {version!r}, this release reads format {number}: {advice}")
    return arrays, facts


def checked_array(
    arrays: dict[str, np.ndarray], name: str, dtype: type, ndim: int, path: Path, finite: bool = True
) -> np.ndarray:
    array = arrays.get(name)
    if array is None or array.dtype != dtype or array.ndim != ndim:
        raise InputError(f"{path} is damaged: it has no {np.dtype(dtype)} array {name} of {ndim} axes")
    if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"{path} is damaged: its array {name} has values that are not finite")
    return array


def part_arrays(name: str, part: Any) -> dict[str, np.ndarray]:
    return {f"{name}.{field.name}": getattr(part, field.name) for field in fields(part)}


def read_part(kind: type, name: str, arrays: dict[str, np.ndarray], path: Path) -> Any:
    """The dataclass with the arrays ``NAME.FIELD`` of a file, whose fields are ``Stored``; None if there are none."""
    if not any(each.startswith(f"{name}.") for each in arrays):
        return None
    hints, values = get_type_hints(kind, include_extras=True), {}
    for field in fields(kind):
        key = f"{name}.{field.name}"
        if field.default_factory is MISSING or key in arrays:
            (stored,) = hints[field.name].__metadata__
            values[field.name] = checked_array(arrays, key, stored.dtype, stored.ndim, path, stored.finite)
    return kind(**values)


def check_one_network(path: Path, name: str, predict: str = "", why: str = NO_EMBEDDING) -> None:
    """Raises InputError for a run folder that predicts with more than one network."""
    run = RunFolder(path)
    members = [member.path for member in run.members()]
    if not members and not run.stack.exists():
        return
    names = stored_facts(run.stack).get("members", []) if run.stack.exists() else ["networks"]
    networks = [f"{len(members)} network{'s' * (len(members) > 1)}"] if members and "networks" in names else []
    combined = ", ".join([*networks, *(f"a {each}" for each in names if each != "networks")])
    # the folder of a shipped model has another name in the next version
    others = [] if path.is_relative_to(cache_root()) else members[:1]
    otherwise = f"predict with {predict}, or " if predict else ""
    choice = f"choose one network, such as {' or '.join([*map(str, others), 'foundation'])}"
    raise InputError(f"{name} combines {combined}, so {why}: {otherwise}{choice}")


def check_has_weights(path: Path, name: str, predict: str = "", why: str = NO_EMBEDDING) -> None:
    """As ``check_one_network``, unless the folder has the weights of a network of its own."""
    if not RunFolder(path).weights.exists():
        check_one_network(path, name, predict, why)
