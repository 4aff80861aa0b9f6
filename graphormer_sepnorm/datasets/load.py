"""Loads the prepared molecules of a split of a named dataset."""

import functools
import hashlib
import os
from pathlib import Path

from graphormer_sepnorm.dataset import SPLITS, Dataset, cache_root, data_root
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.datasets.mirror import read_alone
from graphormer_sepnorm.datasets.store import MoleculeDataset, open_or_write
from graphormer_sepnorm.encodings import PRECOMPUTE_VERSION
from graphormer_sepnorm.encodings.base import Encoding
from graphormer_sepnorm.errors import known
from graphormer_sepnorm.tables.prepared_table import TABLE, table_dataset


def find_dataset(name: str) -> Dataset:
    """The dataset with this name, or the prepared table at this path; raises InputError if there is none."""
    if Path(name).name == TABLE and Path(name).is_file():
        return table_dataset(Path(name))
    return DATASETS[known("dataset", name, DATASETS)]


def load_split(
    name: str, split: str, encodings: tuple[Encoding, ...], root: str | os.PathLike | None = None
) -> MoleculeDataset:
    """A split of a named dataset with the arrays of ``encodings``, from the cache if possible.

    Args:
        name: in ``DATASETS``, or the path of a prepared table.
        split: "train", "val" or "test".
        encodings: encodings in the model's config.
        root: folder of the downloaded datasets, see ``data_root``.

    Raises:
        InputError: unknown name or split, or data that is neither in the root nor can be downloaded.
    """
    dataset = find_dataset(name)
    known("split", split, SPLITS)
    folder = data_root(root)

    source = dataset.source(folder)
    label = name if name in DATASETS else f"table-{source[:16]}"
    key = f"{label}/{split}/{dataset.featurizer}/{encodings!r}/{PRECOMPUTE_VERSION}/{source}"
    place = folder.resolve() if dataset.folder else label
    digest = hashlib.sha256(f"{place} {encodings!r}".encode()).hexdigest()[:16]
    return open_or_write(
        cache_root() / f"{label}-{split}-{digest}",
        functools.partial(read_alone, name, dataset, split, folder, source),
        encodings,
        key,
        f"preparing {label} {split}",
    )
