"""Names of models: shipped weights and paths."""

import os
from importlib import resources
from pathlib import Path

from graphormer_sepnorm.errors import InputError

RESOURCES = "graphormer_sepnorm.resources"


def resolve_model(name: str | os.PathLike) -> Path:
    """The run folder or weights file for a path or the name of shipped weights.

    Raises:
        InputError: there is no such path and no such name.
    """
    path = Path(name)
    if path.exists():
        return path
    shipped = shipped_models()
    if str(name) not in shipped:
        raise InputError(
            f"{name} is neither a run folder, nor a weights file, nor a shipped model ({', '.join(sorted(shipped))})"
        )
    return shipped[str(name)]


def shipped_models() -> dict[str, Path]:
    """The weights that come with the package, by name."""
    files = (Path(str(entry)) for entry in resources.files(RESOURCES).iterdir())
    return {file.stem: file for file in files if file.suffix == ".safetensors"}
