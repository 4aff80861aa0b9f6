"""The named datasets: source, splits, task and vocabularies of each."""

import functools
import hashlib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphormer_sepnorm.chem.features import FEATURIZERS, Featurizer, read_graphs
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.dataset import ROOT_VARIABLE, SPLITS, Dataset
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import Graphs, check_features, checked_graphs

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import InMemoryDataset

ZINC_SUBSET = {"train": 10_000, "val": 1_000, "test": 1_000}
MAE = TaskConfig(kind="regression", metric="mae", targets=("penalized_logp",))
HIV = TaskConfig(kind="classification", metric="rocauc", targets=("HIV_active",))


def unpack(dataset: "InMemoryDataset", featurizer: Featurizer) -> Graphs:
    """Reads the packed tensors of a PyG dataset; raises InputError unless they are features of a featurizer."""
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
    return graphs.with_targets(data.y.view(len(graphs), -1).float().numpy())


def read_zinc(split: str, root: Path, subset: bool) -> Graphs:
    """ZINC in the layout of PyG; Dwivedi et al., "Benchmarking Graph Neural Networks", JMLR 2023."""
    from torch_geometric.datasets import ZINC  # its import takes seconds

    from graphormer_sepnorm.datasets.pickles import tensors_only

    with tensors_only():
        dataset = ZINC(str(root / "ZINC"), subset=subset, split=split)
    molecules = unpack(dataset, FEATURIZERS["zinc"])
    if not subset and len(molecules) <= ZINC_SUBSET[split]:
        raise InputError(
            f"the root holds only the subset of ZINC ({len(molecules)} {split} molecules): name one with the full set "
            f"by --root or {ROOT_VARIABLE}, or choose zinc-subset"
        )
    return molecules


@functools.lru_cache(maxsize=1)
def load_molhiv(root: Path) -> tuple[Graphs, dict[str, np.ndarray]]:
    """OGB's molecules and split; Hu et al., "Open Graph Benchmark", NeurIPS 2020."""
    from ogb.graphproppred import PygGraphPropPredDataset  # its import takes seconds

    from graphormer_sepnorm.datasets.pickles import tensors_only

    with tensors_only():
        dataset = PygGraphPropPredDataset("ogbg-molhiv", root=str(root))
        split = dataset.get_idx_split()
    molecules = unpack(dataset, FEATURIZERS["ogb"])
    return molecules, {name: split["valid" if name == "val" else name].numpy() for name in SPLITS}


def read_molhiv(split: str, root: Path) -> Graphs:
    molecules, index = load_molhiv(root)
    return molecules.take(index[split])


def mae_by_ogb(y: np.ndarray, prediction: np.ndarray) -> float:
    """MAE of predictions [M, 1] for labels [M, 1], by OGB's evaluator of PCQM4Mv2."""
    from ogb.lsc import PCQM4Mv2Evaluator  # its import takes seconds

    return float(PCQM4Mv2Evaluator().eval({"y_true": y[:, 0], "y_pred": prediction[:, 0]})["mae"])


def roc_auc_by_ogb(y: np.ndarray, prediction: np.ndarray) -> float:
    """ROC-AUC of predictions [M, 1] for labels [M, 1], by OGB's evaluator of ogbg-molhiv."""
    from ogb.graphproppred import Evaluator  # its import takes seconds

    return float(Evaluator("ogbg-molhiv").eval({"y_true": y, "y_pred": prediction})["rocauc"])


def sample_table() -> "pd.DataFrame":
    """The sample that ships with the package: ``smiles``, ``split`` and ``penalized_logp`` of a few thousand rows."""
    import pandas as pd  # its import takes a while

    with resources.as_file(resources.files("graphormer_sepnorm.resources") / "sample.csv.gz") as path:
        return pd.read_csv(path)


def read_sample(split: str, root: Path) -> Graphs:
    part = sample_table().query("split == @split")
    return read_graphs("zinc", part.smiles.tolist()).with_targets(part[["penalized_logp"]].to_numpy(np.float32))


def state_of_files(*names: str) -> Callable[[Path], str]:
    """Names, sizes and modification times of the raw files below a root."""

    def source(root: Path) -> str:
        paths = [path for name in names for path in sorted((root / name).glob("*"))]
        return " ".join(f"{path.name}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in paths)

    return source


def sample_source(root: Path) -> str:
    return hashlib.sha256((resources.files("graphormer_sepnorm.resources") / "sample.csv.gz").read_bytes()).hexdigest()


def zinc(subset: bool) -> Dataset:
    read = functools.partial(read_zinc, subset=subset)
    return Dataset(MAE, "zinc", read, state_of_files("ZINC/raw"), folder="ZINC", evaluate=mae_by_ogb)


HIV_FILES = state_of_files("ogbg_molhiv/raw", "ogbg_molhiv/split/scaffold")
DATASETS: dict[str, Dataset] = {
    "sample": Dataset(MAE, "zinc", read_sample, sample_source),
    "zinc-subset": zinc(subset=True),
    "zinc": zinc(subset=False),
    "ogbg-molhiv": Dataset(HIV, "ogb", read_molhiv, HIV_FILES, folder="ogbg_molhiv", evaluate=roc_auc_by_ogb),
}
