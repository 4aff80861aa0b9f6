"""The named datasets: where each comes from, its splits, its task and its vocabularies.

A new one is a function that reads its splits and a line in ``DATASETS``.
"""

import contextlib
import functools
import hashlib
import io
import json
import os
import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import TypeAdapter
from torch_geometric.data import InMemoryDataset
from torch_geometric.datasets import ZINC

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.encodings import PRECOMPUTE_VERSION, Encoding
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.features import FEATURIZERS, Featurizer
from graphormer_sepnorm.graphs import check_features, checked_graphs
from graphormer_sepnorm.pickles import tensors_only
from graphormer_sepnorm.store import LabelledGraphs, MoleculeDataset, locked, open_or_write, remove

SPLITS = ("train", "val", "test")
TABLE = "table.csv"
TARGET = "target "
PROCESSED = "processed"
ROOT_VARIABLE = "GRAPHORMER_SEPNORM_ROOT"
CACHE_VARIABLE = "GRAPHORMER_SEPNORM_CACHE"
ZINC_SUBSET = {"train": 10_000, "val": 1_000, "test": 1_000}

MAE = TaskConfig(kind="regression", metric="mae", targets=("penalized_logp",))
HIV = TaskConfig(kind="classification", metric="rocauc", targets=("HIV_active",))


@dataclass(frozen=True)
class Dataset:
    """A named dataset.

    Attributes:
        task: what is predicted; its scale is left to the training split.
        featurizer: name in ``FEATURIZERS``.
        read: split and root folder to molecules with targets.
        source: root folder to a text that changes when the raw data does.
        folder: folder below the root that holds the raw data; None for data that does not lie there.
    """

    task: TaskConfig
    featurizer: str
    read: Callable[[str, Path], LabelledGraphs]
    source: Callable[[Path], str]
    folder: str | None = None


def data_root(root: str | os.PathLike | None) -> Path:
    """The folder of the downloaded datasets: the argument, the environment variable, or ``datasets`` here."""
    return Path(root or os.environ.get(ROOT_VARIABLE) or "datasets")


def cache_root() -> Path:
    """The folder of prepared molecules: the environment variable, or the user's cache."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "graphormer_sepnorm")


def unpack(dataset: InMemoryDataset, featurizer: Featurizer) -> LabelledGraphs:
    """Reads the packed tensors that a PyG dataset holds; raises InputError unless they are features of a featurizer."""
    data, slices = dataset._data, dataset.slices
    x = data.x.view(len(data.x), -1)
    check_features("x", x, featurizer.atom_sizes, slices["x"])
    graphs = checked_graphs(
        x=x,
        atom_ptr=slices["x"],
        edge_index=data.edge_index,
        edge_ptr=slices["edge_index"],
        edge_attr=data.edge_attr.view(len(data.edge_attr), -1),
        bond_sizes=featurizer.bond_sizes,
    )
    return LabelledGraphs(graphs, data.y.view(len(graphs), -1).float().numpy())


@contextlib.contextmanager
def explained_download(name: str, root: Path) -> Iterator[None]:
    """Turns a failed download into one sentence, and removes a root that it has made."""
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


def read_zinc(split: str, root: Path, subset: bool) -> LabelledGraphs:
    """ZINC as PyG lays it out; Dwivedi et al., "Benchmarking Graph Neural Networks", JMLR 2023."""
    with tensors_only():
        dataset = ZINC(str(root / "ZINC"), subset=subset, split=split)
    molecules = unpack(dataset, FEATURIZERS["zinc"])
    if not subset and len(molecules) <= ZINC_SUBSET[split]:
        raise InputError(
            f"the root holds the subset of ZINC alone ({len(molecules)} {split} molecules): "
            "use --dataset zinc-subset, or name a --root with the full set"
        )
    return molecules


@functools.lru_cache(maxsize=1)
def load_molhiv(root: Path) -> tuple[LabelledGraphs, dict[str, np.ndarray]]:
    """OGB's molecules and split; Hu et al., "Open Graph Benchmark", NeurIPS 2020."""
    from ogb.graphproppred import PygGraphPropPredDataset  # its import takes seconds

    with tensors_only():
        dataset = PygGraphPropPredDataset("ogbg-molhiv", root=str(root))
        split = dataset.get_idx_split()
    molecules = unpack(dataset, FEATURIZERS["ogb"])
    return molecules, {name: split["valid" if name == "val" else name].numpy() for name in SPLITS}


def read_molhiv(split: str, root: Path) -> LabelledGraphs:
    molecules, index = load_molhiv(root)
    return molecules.take(index[split])


def sample_table() -> pd.DataFrame:
    """The embedded sample: ``smiles``, ``split`` and ``penalized_logp`` of a few thousand molecules."""
    with resources.as_file(resources.files("graphormer_sepnorm.resources") / "sample.csv.gz") as path:
        return pd.read_csv(path)


def read_sample(split: str, root: Path) -> LabelledGraphs:
    table = sample_table()
    part = table[table.split == split]
    featurizer = FEATURIZERS["zinc"]
    graphs = featurizer.pack([featurizer.graph(smiles) for smiles in part.smiles])
    return LabelledGraphs(graphs, part[["penalized_logp"]].to_numpy(np.float32))


def state_of_files(*names: str) -> Callable[[Path], str]:
    """Names, sizes and dates of the raw files below a root."""

    def source(root: Path) -> str:
        states = []
        for name in names:
            for path in sorted((root / name).glob("*")):
                state = path.stat()
                states.append(f"{path.name}:{state.st_size}:{state.st_mtime_ns}")
        return " ".join(states)

    return source


def sample_source(root: Path) -> str:
    return hashlib.sha256((resources.files("graphormer_sepnorm.resources") / "sample.csv.gz").read_bytes()).hexdigest()


DATASETS: dict[str, Dataset] = {
    "sample": Dataset(MAE, "zinc", read_sample, sample_source),
    "zinc-subset": Dataset(MAE, "zinc", functools.partial(read_zinc, subset=True), state_of_files("ZINC/raw"), "ZINC"),
    "zinc": Dataset(MAE, "zinc", functools.partial(read_zinc, subset=False), state_of_files("ZINC/raw"), "ZINC"),
    "ogbg-molhiv": Dataset(
        HIV, "ogb", read_molhiv, state_of_files("ogbg_molhiv/raw", "ogbg_molhiv/split/scaffold"), "ogbg_molhiv"
    ),
}


def read_alone(name: str, dataset: Dataset, split: str, root: Path, source: str) -> LabelledGraphs:
    """Reads a split while no other process reads this data: PyG and OGB write files of their own beside it.

    They do so in a mirror below the cache, so that the root stays as it is, except for what they download. A file of
    theirs that is damaged, here or in the root, is made anew from the raw files.
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
    """Repeats the folders in ``source`` but those named ``without`` in ``mirror``, with symbolic links to the files."""
    for folder, below, names in os.walk(source, followlinks=True):
        below[:] = [name for name in below if name != without]
        place = mirror / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not (place / name).exists():
                (place / name).symlink_to((Path(folder) / name).resolve())


def table_dataset(path: Path) -> Dataset:
    """The prepared table of a run: ``smiles``, ``split``, ``target NAME`` ..., beside a JSON file with the task."""
    facts = path.with_suffix(".json")
    try:
        known = json.loads(facts.read_bytes())
        task = TypeAdapter(TaskConfig).validate_json(json.dumps(known["task"]))
        featurizer = FEATURIZERS[known["featurizer"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{facts} is missing or damaged: without it the table of this run cannot be read") from None
    read = functools.partial(read_table, path, task, featurizer)
    return Dataset(task, known["featurizer"], read, functools.partial(table_source, path))


def read_table(path: Path, task: TaskConfig, featurizer: Featurizer, split: str, root: Path) -> LabelledGraphs:
    try:
        table = pd.read_csv(path)
        part = table[table.split == split]
        smiles, y = part.smiles, part[[TARGET + name for name in task.targets]].to_numpy(np.float32)
    except (ValueError, KeyError, AttributeError):
        raise InputError(f"{path} is damaged: it is not the table that this run was trained on") from None
    return LabelledGraphs(featurizer.pack([featurizer.graph(text) for text in smiles]), y)


def table_source(path: Path, root: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def find_dataset(name: str) -> Dataset:
    """The dataset of that name, or the prepared table at that path; raises InputError if there is none."""
    if Path(name).name == TABLE and Path(name).is_file():
        return table_dataset(Path(name))
    if name not in DATASETS:
        raise InputError(f"unknown dataset {name!r}, choose one of {', '.join(DATASETS)}")
    return DATASETS[name]


def load_split(
    name: str, split: str, encodings: tuple[Encoding, ...], root: str | os.PathLike | None = None
) -> MoleculeDataset:
    """A split of a named dataset with the arrays of ``encodings``, from the cache where it is there.

    Args:
        name: in ``DATASETS``, or the path of a prepared table.
        split: "train", "val" or "test".
        encodings: of the model's config.
        root: folder of the downloaded datasets, see ``data_root``.

    Raises:
        InputError: unknown name or split, or data that is neither there nor can be downloaded.
    """
    dataset = find_dataset(name)
    if split not in SPLITS:
        raise InputError(f"unknown split {split!r}, choose one of {', '.join(SPLITS)}")
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
