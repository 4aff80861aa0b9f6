"""Reads raw data with the loaders of PyG and OGB, with exclusive access, clear errors and an unchanged root."""

import contextlib
import hashlib
import io
import os
import pickle
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

from graphormer_sepnorm.dataset import ROOT_VARIABLE, Dataset, cache_root
from graphormer_sepnorm.datasets.store import locked, remove
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import Graphs

PROCESSED = "processed"


@contextlib.contextmanager
def explained_download(name: str, root: Path) -> Iterator[None]:
    """Context manager: a failed download is explained in one sentence, and a root that it created is removed."""
    existed = root.exists()
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except pickle.UnpicklingError as error:
        raise InputError(f"a file of {name} in {root} is not a dataset and was not loaded: {error}") from None
    except (OSError, RuntimeError, EOFError, SystemExit) as error:
        if not existed:
            shutil.rmtree(root, ignore_errors=True)
        raise InputError(
            f"{name} is not in {root} and could not be downloaded or unpacked ({type(error).__name__}): name the "
            f"folder that holds it with --root or {ROOT_VARIABLE}, or run once on a machine with internet access"
        ) from None


def read_alone(name: str, dataset: Dataset, split: str, root: Path, source: str) -> Graphs:
    """Reads a split with a lock on its raw data, because the loaders of PyG and OGB also write files.

    They write to a mirror in the cache, so the root stays unchanged except for downloads. A damaged file of theirs, in
    the mirror or in the root, is created again from the raw files.
    """
    mirror = cache_root() / f"mirror-{hashlib.sha256(f'{root.resolve()} {source}'.encode()).hexdigest()[:16]}"
    with locked(mirror), explained_download(name, root):
        if dataset.folder is None or not (root / dataset.folder).exists():
            return dataset.read(split, root)
        try:
            link_files(root / dataset.folder, mirror / dataset.folder)
            return dataset.read(split, mirror)
        except (RuntimeError, EOFError):
            remove(mirror)
            link_files(root / dataset.folder, mirror / dataset.folder, without=PROCESSED)
            return dataset.read(split, mirror)


def link_files(source: Path, mirror: Path, without: str = "") -> None:
    """Copies the folder structure of ``source``, except folders named ``without``, to ``mirror``, linking the files."""
    for folder, below, names in os.walk(source, followlinks=True):
        below[:] = [name for name in below if name != without]
        place = mirror / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not (place / name).exists():
                (place / name).symlink_to((Path(folder) / name).resolve())
