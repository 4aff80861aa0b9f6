"""Names of models: shipped weights, shipped table models and paths."""

import hashlib
import os
import re
import tarfile
import tempfile
from difflib import get_close_matches
from importlib import resources
from pathlib import Path

from graphormer_sepnorm.errors import InputError, did_you_mean
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.cache import mark_used
from graphormer_sepnorm.system.files import cache_root

RESOURCES = "graphormer_sepnorm.resources"
ARCHIVE = ".tar.xz"


def resolve_model(name: str | os.PathLike) -> Path:
    """The run folder or weights file for a path or the name of a shipped model.

    Raises:
        InputError: there is no such path and no such name.
    """
    path = Path(name)
    if path.exists():
        return path
    shipped, tables = shipped_models(), shipped_tables()
    if str(name) in tables:
        return unpacked(tables[str(name)])
    if str(name) not in shipped:
        names = sorted(shipped | tables)
        near = did_you_mean(str(name), [*names, *similar_runs(path)])
        known = f"neither a run folder, nor a weights file, nor a shipped model ({', '.join(names)})"
        raise InputError(f"{name} is {known}{near}")
    return shipped[str(name)]


def similar_runs(path: Path) -> list[str]:
    """The run folder in the same folder as a path with the most similar name; empty if there is none."""
    try:
        folders = [RunFolder(folder) for folder in path.parent.iterdir()]
        names = [run.path.name for run in folders if run.stack.exists() or run.weights.exists()]
    except OSError:
        return []
    return [str(path.parent / name) for name in get_close_matches(path.name, names, n=1)]


def shipped_models() -> dict[str, Path]:
    """The weights that come with the package, by name."""
    return {file.stem: file for file in resource_files() if file.suffix == ".safetensors"}


def shipped_tables() -> dict[str, Path]:
    """The table models that come with the package, by name: archives of their folders."""
    return {file.name.removesuffix(ARCHIVE): file for file in resource_files() if file.name.endswith(ARCHIVE)}


def card_facts(name: str) -> dict[str, str]:
    """The training data and the licence of a shipped table model, from its card; empty for any other model."""
    archive = shipped_tables().get(name)
    if archive is None or Path(name).exists():
        return {}
    card = " ".join(archive.with_name(f"{name}.md").read_text(encoding="utf-8").split())
    points = dict(re.findall(r"- \*\*([^*]+)\*\*: (.+?)(?= - \*\*|$)", card))
    return {"training_data": points["Training data"], "licence": points["Licence"]}


def resource_files() -> list[Path]:
    return [Path(str(entry)) for entry in resources.files(RESOURCES).iterdir()]


def unpacked(archive: Path) -> Path:
    """The folder of a shipped table model, unpacked into the cache by the first process that needs it."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    folder = cache_root() / f"{archive.name.removesuffix(ARCHIVE)}-{digest}"
    if not folder.is_dir():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as elsewhere:
                whole = Path(elsewhere) / "model"
                with tarfile.open(archive) as content:
                    content.extractall(whole, filter="data")
                whole.rename(folder)
        except OSError as error:
            if not folder.is_dir():  # another process was not faster
                raise InputError(f"cannot unpack {archive.name} into {folder}: {error.strerror or error}") from None
    mark_used(folder)
    return folder
