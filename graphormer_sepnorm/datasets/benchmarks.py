"""The named datasets, read by the loaders of PyG and OGB, which must not change the root, and cached once prepared."""

import collections
import contextlib
import functools
import hashlib
import io
import os
import pickle
import shutil
import warnings
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import torch

from graphormer_sepnorm.chem.features import FEATURIZERS, Featurizer, read_graphs
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.dataset import ROOT_VARIABLE, SPLITS, Dataset, data_root
from graphormer_sepnorm.datasets.store import MoleculeDataset, locked_folder, open_or_write, remove
from graphormer_sepnorm.encodings import cache_key, code_key
from graphormer_sepnorm.encodings.base import Encoding
from graphormer_sepnorm.errors import InputError, one_of
from graphormer_sepnorm.graphs import Graphs, check_features, checked_graphs
from graphormer_sepnorm.system.files import cache_root
from graphormer_sepnorm.tables.prepared_table import TABLE, table_dataset

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import InMemoryDataset

ZINC_SUBSET = {"train": 10_000, "val": 1_000, "test": 1_000}
MAE = TaskConfig(kind="regression", metric="mae", targets=("penalized_logp",))
HIV = TaskConfig(kind="classification", metric="rocauc", targets=("HIV_active",))
SAMPLE = resources.files("graphormer_sepnorm.resources") / "sample.csv.gz"
PROCESSED = "processed"  # folders of PyG, also made with filters and transforms that only its notes tell


class TensorUnpickler(pickle.Unpickler):
    """Reads lists and dicts of tensors without executing anything; raises UnpicklingError for anything else."""

    known = {  # noqa: RUF012, constant
        ("collections", "OrderedDict"): collections.OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): torch._utils._rebuild_tensor_v2,
        ("torch.storage", "_load_from_bytes"): lambda content: torch.load(io.BytesIO(content), weights_only=True),
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.known:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed in a dataset")
        return self.known[module, name]


def pyg_classes() -> list[Any]:
    from torch_geometric.data import data, storage  # its import takes seconds

    edges_and_nodes = [data.DataEdgeAttr, data.DataTensorAttr, storage.NodeStorage, storage.EdgeStorage]
    return [data.Data, storage.GlobalStorage, *edges_and_nodes]


@contextlib.contextmanager
def tensors_only() -> Iterator[None]:
    """Within it, PyG's ZINC and ``torch.load`` read only tensors and PyG's classes, never plain pickle."""
    reader = SimpleNamespace(load=lambda file: TensorUnpickler(file).load())
    with (
        torch.serialization.safe_globals(pyg_classes()),
        mock.patch.dict(os.environ, {"TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1"}),
        mock.patch("torch_geometric.datasets.zinc.pickle", reader),
    ):
        yield


def unpack(dataset: "InMemoryDataset", featurizer: Featurizer) -> Graphs:
    """Reads the packed tensors of a PyG dataset; raises InputError unless they are features of a featurizer."""
    data, slices = dataset._data, dataset.slices
    x, edge_attr = (each.view(len(each), -1) for each in (data.x, data.edge_attr))
    check_features("x", x, featurizer.atom_sizes, slices["x"])
    places = {"atom_ptr": slices["x"], "edge_index": data.edge_index, "edge_ptr": slices["edge_index"]}
    graphs = checked_graphs(x=x, **places, edge_attr=edge_attr, bond_sizes=featurizer.bond_sizes)
    return graphs.with_targets(data.y.view(len(graphs), -1).float().numpy())


def read_zinc(split: str, root: Path, subset: bool) -> Graphs:
    """ZINC in the layout of PyG; Dwivedi et al., "Benchmarking Graph Neural Networks", JMLR 2023."""
    from torch_geometric.datasets import ZINC  # its import takes seconds

    with tensors_only():
        dataset = ZINC(str(root / "ZINC"), subset=subset, split=split)
    molecules = unpack(dataset, FEATURIZERS["zinc"])
    if not subset and len(molecules) <= ZINC_SUBSET[split]:
        advice = f"name one with the full set by --root or {ROOT_VARIABLE}, or choose zinc-subset"
        raise InputError(f"the root holds only the subset of ZINC ({len(molecules)} {split} molecules): {advice}")
    return molecules


@functools.lru_cache(maxsize=1)
def load_molhiv(root: Path) -> tuple[Graphs, dict[str, np.ndarray]]:
    """OGB's molecules and split; Hu et al., "Open Graph Benchmark", NeurIPS 2020."""
    from ogb.graphproppred import PygGraphPropPredDataset  # its import takes seconds

    with tensors_only():
        dataset = PygGraphPropPredDataset("ogbg-molhiv", root=str(root))
        split = dataset.get_idx_split()
    molecules = unpack(dataset, FEATURIZERS["ogb"])
    return molecules, {name: split["valid" if name == "val" else name].numpy() for name in SPLITS}


def read_molhiv(split: str, root: Path) -> Graphs:
    molecules, index = load_molhiv(root)
    return molecules.take(index[split])


def mae_by_ogb(y: np.ndarray, prediction: np.ndarray) -> float:
    from ogb.lsc import PCQM4Mv2Evaluator  # its import takes seconds

    return float(PCQM4Mv2Evaluator().eval({"y_true": y[:, 0], "y_pred": prediction[:, 0]})["mae"])


def roc_auc_by_ogb(y: np.ndarray, prediction: np.ndarray) -> float:
    from ogb.graphproppred import Evaluator  # its import takes seconds

    return float(Evaluator("ogbg-molhiv").eval({"y_true": y, "y_pred": prediction})["rocauc"])


def sample_table() -> "pd.DataFrame":
    """The sample that ships with the package: ``smiles``, ``split`` and ``penalized_logp`` of a few thousand rows."""
    import pandas as pd  # its import takes a while

    with SAMPLE.open("rb") as file:
        return pd.read_csv(file, compression="gzip")


def read_sample(split: str, root: Path) -> Graphs:
    part = sample_table().query("split == @split")
    return read_graphs("zinc", part.smiles.tolist()).with_targets(part[["penalized_logp"]].to_numpy(np.float32))


def state_of_files(folders: tuple[str, ...], root: Path) -> str:
    """Names, sizes and modification times of the raw files in folders of a root."""
    paths = [path for folder in folders for path in sorted((root / folder).glob("*"))]
    return " ".join(f"{path.name}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in paths)


def sample_source(root: Path) -> str:
    return hashlib.sha256(SAMPLE.read_bytes()).hexdigest()


ZINC_FILES = functools.partial(state_of_files, ("ZINC/raw",))
HIV_FILES = functools.partial(state_of_files, ("ogbg_molhiv/raw", "ogbg_molhiv/split/scaffold"))
SUBSET, WHOLE = (functools.partial(read_zinc, subset=subset) for subset in (True, False))
DATASETS: dict[str, Dataset] = {
    "sample": Dataset(MAE, "zinc", read_sample, sample_source),
    "zinc-subset": Dataset(MAE, "zinc", SUBSET, ZINC_FILES, folder="ZINC", evaluate=mae_by_ogb),
    "zinc": Dataset(MAE, "zinc", WHOLE, ZINC_FILES, folder="ZINC", evaluate=mae_by_ogb),
    "ogbg-molhiv": Dataset(HIV, "ogb", read_molhiv, HIV_FILES, folder="ogbg_molhiv", evaluate=roc_auc_by_ogb),
}


def find_dataset(name: str) -> Dataset:
    if Path(name).name == TABLE and Path(name).is_file():
        return table_dataset(Path(name))
    return DATASETS[one_of("dataset", name, DATASETS)]


def load_split(
    name: str, split: str, encodings: tuple[Encoding, ...], root: str | os.PathLike | None = None
) -> MoleculeDataset:
    """A split of a dataset, or of a prepared table at a path, with the arrays of ``encodings``, if possible cached."""
    dataset, folder = find_dataset(name), data_root(root)
    one_of("split", split, SPLITS)
    source = dataset.source(folder)
    label = name if name in DATASETS else f"table-{source[:16]}"
    key = f"{label}/{split}/{dataset.featurizer}/{cache_key(encodings)}/{source}{code_key([dataset.read])}"
    place = folder.resolve() if dataset.folder else label
    digest = hashlib.sha256(f"{place} {encodings!r}".encode()).hexdigest()[:16]
    read = functools.partial(read_alone, name, dataset, split, folder, source)
    return open_or_write(cache_root() / f"{label}-{split}-{digest}", read, encodings, key, f"preparing {label} {split}")


def read_alone(name: str, dataset: Dataset, split: str, root: Path, source: str) -> Graphs:
    """Reads a split from links to its raw data in a locked folder, as the loaders of PyG and OGB also write files."""
    if dataset.folder is None:
        return dataset.read(split, root)
    mirror = cache_root() / f"mirror-{hashlib.sha256(f'raw {root.resolve()} {source}'.encode()).hexdigest()[:16]}"
    with locked_folder(mirror), explained_download(name, root, dataset.folder):
        if not (root / dataset.folder).exists():
            return dataset.read(split, root)
        link_files(root / dataset.folder, mirror / dataset.folder)
        try:
            return dataset.read(split, mirror)
        except InputError as error:
            raise InputError(f"{root}: {error}") from None
        except (RuntimeError, EOFError):
            remove(mirror)
            link_files(root / dataset.folder, mirror / dataset.folder)
            return dataset.read(split, mirror)


def link_files(source: Path, mirror: Path) -> None:
    """Mirrors ``source`` by links to files that are new, without the folders ``PROCESSED``."""
    for folder, below, names in os.walk(source, followlinks=True):
        below[:] = [name for name in below if name != PROCESSED]
        place = mirror / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for link in (place / name for name in names if not (place / name).exists()):
            link.unlink(missing_ok=True)  # to a file that is gone
            link.symlink_to((Path(folder) / link.name).resolve())


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
        problem = f"{name} is not in {root} and could not be downloaded or unpacked ({type(error).__name__})"
        advice = f"name its folder with --root or {ROOT_VARIABLE}, or run once on a machine with internet access"
        raise InputError(f"{problem}: {advice}") from None
