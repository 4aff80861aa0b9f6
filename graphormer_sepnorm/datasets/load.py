"""Loads the prepared molecules of a named dataset, by the loaders of PyG and OGB, which must not change the root."""

import contextlib
import functools
import hashlib
import io
import os
import pickle
import shutil
import warnings
from collections.abc import Iterator
from itertools import filterfalse
from pathlib import Path

import torch

from graphormer_sepnorm.dataset import ROOT_VARIABLE, SPLITS, Dataset, data_root
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.datasets.store import MoleculeDataset, locked, open_or_write, remove
from graphormer_sepnorm.encodings import cache_key, code_key
from graphormer_sepnorm.encodings.base import Encoding
from graphormer_sepnorm.errors import InputError, known
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.system.files import cache_root
from graphormer_sepnorm.tables.prepared_table import TABLE, table_dataset

PROCESSED = "processed"


def find_dataset(name: str) -> Dataset:
    if Path(name).name == TABLE and Path(name).is_file():
        return table_dataset(Path(name))
    return DATASETS[known("dataset", name, DATASETS)]


def load_split(
    name: str, split: str, encodings: tuple[Encoding, ...], root: str | os.PathLike | None = None
) -> MoleculeDataset:
    """A split of a dataset, or of a prepared table at a path, with the arrays of ``encodings``, if possible cached."""
    dataset = find_dataset(name)
    known("split", split, SPLITS)
    folder = data_root(root)

    source = dataset.source(folder)
    label = name if name in DATASETS else f"table-{source[:16]}"
    key = f"{label}/{split}/{dataset.featurizer}/{cache_key(encodings)}/{source}{code_key([dataset.read])}"
    place = folder.resolve() if dataset.folder else label
    digest = hashlib.sha256(f"{place} {encodings!r}".encode()).hexdigest()[:16]
    return open_or_write(
        cache_root() / f"{label}-{split}-{digest}",
        functools.partial(read_alone, name, dataset, split, folder, source),
        encodings,
        key,
        f"preparing {label} {split}",
    )


def read_alone(name: str, dataset: Dataset, split: str, root: Path, source: str) -> Graphs:
    """Reads a split with a lock on its raw data, because the loaders of PyG and OGB also write files."""
    if dataset.folder is None:
        return dataset.read(split, root)
    mirror = cache_root() / f"mirror-{hashlib.sha256(f'{root.resolve()} {source}'.encode()).hexdigest()[:16]}"
    with locked(mirror), explained_download(name, root, dataset.folder):
        if not (root / dataset.folder).exists():
            return dataset.read(split, root)
        try:
            for folder in filterfalse(is_plain, list(mirror.rglob(PROCESSED))):  # linked by an earlier version
                remove(folder)
            link_files(root / dataset.folder, mirror / dataset.folder)
            return dataset.read(split, mirror)
        except InputError as error:
            raise InputError(f"{root}: {error}") from None
        except (RuntimeError, EOFError):
            remove(mirror)
            link_files(root / dataset.folder, mirror / dataset.folder, without=PROCESSED)
            return dataset.read(split, mirror)


def link_files(source: Path, mirror: Path, without: str = "") -> None:
    """Mirrors ``source`` by links to files, without folders of this name or processed with a transform or filter."""
    for folder, below, names in os.walk(source, followlinks=True):
        below[:] = [name for name in below if name != without and is_plain(Path(folder) / name)]
        place = mirror / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not (place / name).exists():
                (place / name).unlink(missing_ok=True)  # a link to a file that is gone
                (place / name).symlink_to((Path(folder) / name).resolve())


def is_plain(folder: Path) -> bool:
    """Whether a folder is none of PyG's processed files with a ``pre_transform`` or ``pre_filter``, which it notes."""
    notes = [folder / f"{name}.pt" for name in ("pre_transform", "pre_filter")]
    try:
        return all(torch.load(note, weights_only=True) == "None" for note in notes if note.exists())
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError):
        return False


@contextlib.contextmanager
def explained_download(name: str, root: Path, folder: str) -> Iterator[None]:
    """Context manager: a failed download is explained in one sentence, and a ``folder`` that it created is removed."""
    had_root, existed = root.exists(), (root / folder).exists()
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except pickle.UnpicklingError as error:
        raise InputError(f"a file of {name} in {root} is not a dataset and was not loaded: {error}") from None
    except (OSError, RuntimeError, EOFError, SystemExit) as error:
        if not existed:
            shutil.rmtree(root / folder, ignore_errors=True)
            if not had_root:
                with contextlib.suppress(OSError):  # another dataset is there
                    root.rmdir()
        raise InputError(
            f"{name} is not in {root} and could not be downloaded or unpacked ({type(error).__name__}): name the "
            f"folder that holds it with --root or {ROOT_VARIABLE}, or run once on a machine with internet access"
        ) from None
