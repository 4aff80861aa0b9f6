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
from graphormer_sepnorm.features import FEATURIZERS
from graphormer_sepnorm.graphs import PackedGraphs, bond_types
from graphormer_sepnorm.pickles import tensors_only
from graphormer_sepnorm.store import LabelledGraphs, MoleculeDataset, locked, open_or_write

SPLITS = ("train", "val", "test")
TABLE = "table.csv"
TARGET = "target "
ROOT_VARIABLE = "GRAPHORMER_SEPNORM_ROOT"
CACHE_VARIABLE = "GRAPHORMER_SEPNORM_CACHE"
FULL_ZINC_TRAIN = 200_000

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
    """

    task: TaskConfig
    featurizer: str
    read: Callable[[str, Path], LabelledGraphs]
    source: Callable[[Path], str]


def data_root(root: str | os.PathLike | None) -> Path:
    """The folder of the downloaded datasets: the argument, the environment variable, or ``datasets`` here."""
    return Path(root or os.environ.get(ROOT_VARIABLE) or "datasets")


def cache_root() -> Path:
    """The folder of prepared molecules: the environment variable, or the user's cache."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "graphormer_sepnorm")


def unpack(dataset: InMemoryDataset, bond_sizes: tuple[int, ...]) -> LabelledGraphs:
    """Reads the packed tensors that a PyG dataset holds."""
    data, slices = dataset._data, dataset.slices
    atom_ptr = slices["x"]
    graphs = PackedGraphs(
        x=data.x.view(len(data.x), -1).numpy(),
        atom_ptr=atom_ptr.numpy(),
        edge_index=data.edge_index.numpy(),
        edge_ptr=slices["edge_index"].numpy(),
        bond=bond_types(data.edge_attr.view(len(data.edge_attr), -1).numpy(), bond_sizes),
    )
    return LabelledGraphs(graphs, data.y.view(len(graphs), -1).float().numpy())


@contextlib.contextmanager
def explained_download(name: str, root: Path) -> Iterator[None]:
    """Turns a failed download into one sentence."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except pickle.UnpicklingError as error:
        raise InputError(f"a file of {name} in {root} is not a dataset and was not loaded: {error}") from None
    except (OSError, RuntimeError, EOFError, SystemExit) as error:
        raise InputError(
            f"{name} is not in {root} and could not be downloaded or unpacked ({type(error).__name__}): name the "
            f"folder that holds it with --root or {ROOT_VARIABLE}, or run once on a machine with internet access"
        ) from None


def read_zinc(split: str, root: Path, subset: bool) -> LabelledGraphs:
    """ZINC as PyG lays it out; Dwivedi et al., "Benchmarking Graph Neural Networks", JMLR 2023."""
    name = "zinc-subset" if subset else "zinc"
    with explained_download(name, root), tensors_only():
        dataset = ZINC(str(root / "ZINC"), subset=subset, split=split)
    molecules = unpack(dataset, FEATURIZERS["zinc"].bond_sizes)
    if not subset and split == "train" and len(molecules) < FULL_ZINC_TRAIN:
        raise InputError(
            f"{root} holds the subset of ZINC alone ({len(molecules)} training molecules): "
            "use --dataset zinc-subset, or name a --root with the full set"
        )
    return molecules


@functools.lru_cache(maxsize=1)
def load_molhiv(root: Path) -> tuple[LabelledGraphs, dict[str, np.ndarray]]:
    """OGB's molecules and split; Hu et al., "Open Graph Benchmark", NeurIPS 2020."""
    from ogb.graphproppred import PygGraphPropPredDataset  # its import takes seconds

    with explained_download("ogbg-molhiv", root), tensors_only():
        dataset = PygGraphPropPredDataset("ogbg-molhiv", root=str(root))
        split = dataset.get_idx_split()
    molecules = unpack(dataset, FEATURIZERS["ogb"].bond_sizes)
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
    "zinc-subset": Dataset(MAE, "zinc", functools.partial(read_zinc, subset=True), state_of_files("ZINC/raw")),
    "zinc": Dataset(MAE, "zinc", functools.partial(read_zinc, subset=False), state_of_files("ZINC/raw")),
    "ogbg-molhiv": Dataset(HIV, "ogb", read_molhiv, state_of_files("ogbg_molhiv/raw", "ogbg_molhiv/split/scaffold")),
}


def read_alone(dataset: Dataset, split: str, root: Path, source: str) -> LabelledGraphs:
    """Reads a split while no other process reads below this root: PyG and OGB write files of their own there.

    Where they may not, they work on a mirror below the cache.
    """
    mirror = cache_root() / f"mirror-{hashlib.sha256(f'{root.resolve()} {source}'.encode()).hexdigest()[:16]}"
    with locked(mirror):
        if root.exists() and not os.access(root, os.W_OK):
            link_files(root, mirror)
            return dataset.read(split, mirror)
        return dataset.read(split, root)


def link_files(root: Path, mirror: Path) -> None:
    """Repeats the folders below ``root`` below ``mirror``, with symbolic links to the files."""
    for folder, _, names in os.walk(root, followlinks=True):
        place = mirror / Path(folder).relative_to(root)
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not (place / name).exists():
                (place / name).symlink_to((Path(folder) / name).resolve())


def table_dataset(path: Path) -> Dataset:
    """The prepared table of a run: ``smiles``, ``split``, ``target NAME`` ..., beside a JSON file with the task."""
    facts = json.loads(path.with_suffix(".json").read_bytes())
    task = TypeAdapter(TaskConfig).validate_json(json.dumps(facts["task"]))
    read = functools.partial(read_table, path, task, facts["featurizer"])
    return Dataset(task, facts["featurizer"], read, functools.partial(table_source, path))


def read_table(path: Path, task: TaskConfig, featurizer: str, split: str, root: Path) -> LabelledGraphs:
    table = pd.read_csv(path)
    part = table[table.split == split]
    found = FEATURIZERS[featurizer]
    graphs = found.pack([found.graph(smiles) for smiles in part.smiles])
    return LabelledGraphs(graphs, part[[TARGET + name for name in task.targets]].to_numpy(np.float32))


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
    digest = hashlib.sha256(f"{folder.resolve()} {encodings!r}".encode()).hexdigest()[:16]
    return open_or_write(
        cache_root() / f"{label}-{split}-{digest}",
        functools.partial(read_alone, dataset, split, folder, source),
        encodings,
        key,
        f"preparing {label} {split}",
    )
