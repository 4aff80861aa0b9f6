"""Contrastive learning of molecules with one norm for all tokens and with separate norms: how well the CLS is read.

Two views of a molecule are its graph with a fifth of its atoms masked, each time others. A small Graphormer learns, by
the NT-Xent loss (Chen et al., ICML 2020) on the CLS embeddings, which views belong together. Then its CLS is read, on
molecules that it was not trained on: uniformity and alignment (Wang & Isola, ICML 2020), how often the other view is
the nearest, and a linear probe of the dataset's target:

    python examples/contrastive.py
    python examples/contrastive.py --dataset zinc-subset --root ROOT --seeds 3 --models scratch foundation

``foundation`` starts from the shipped weights of that name. ``--tables FOLDER`` probes tables too: every CSV there has
``smiles`` and then the target, and ``split_0``, ``split_1``, ...: "train", "val" or "test" for each seed.

Axis letters: B molecules, D width, F columns of atom features.
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from comparison import NORMS, SHARE, Parts, arguments, compare, linear_probe, positive
from rdkit import Chem
from sklearn.metrics import get_scorer
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize
from tqdm import tqdm

from graphormer_sepnorm import Graphormer, reestimate_batch_norm
from graphormer_sepnorm.chem.features import (
    BOND_ORDERS,
    FEATURIZERS,
    FOR_TABLES,
    ZINC_ATOM_TYPES,
    read_graphs,
    read_molecules,
)
from graphormer_sepnorm.config import ModelConfig
from graphormer_sepnorm.dataset import SPLITS, data_root
from graphormer_sepnorm.datasets.benchmarks import read_zinc, sample_table
from graphormer_sepnorm.datasets.store import MoleculeDataset, in_memory
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.cls_geometry import alignment, uniformity
from graphormer_sepnorm.graphs import GraphBatch, Graphs
from graphormer_sepnorm.interfaces.guard import guarded
from graphormer_sepnorm.predict.forward import embed_dataset
from graphormer_sepnorm.recipes import slim

BATCH = 64
MEASURED = 1000  # molecules whose views are compared, at most
BONDS = {index + 1: kind for kind, index in BOND_ORDERS.items()}  # types of bonds start at 1, features at 0
SCRATCH = dict(zip(NORMS, ("sharenorm", "sepnorm", "sepnorm-layernorm"), strict=True))
FOUNDATION = dict(zip(NORMS, ("sharenorm-batchnorm", "sepnorm-batchnorm", "sepnorm-layernorm-batchnorm"), strict=True))
MODELS = {"scratch": SCRATCH, "foundation": FOUNDATION}
"""Model -> name of a norm here -> its name in configs; the atoms of the foundation have BatchNorm."""


@dataclass(frozen=True)
class Table:
    """SMILES with a target, and the part that each is in; one column of parts per seed."""

    smiles: list[str]
    y: np.ndarray
    parts: list[np.ndarray]

    def of_seed(self, seed: int) -> np.ndarray:
        return self.parts[seed % len(self.parts)]


def make_model(start: str, norm: str) -> Graphormer:
    """A Graphormer of 4 layers with random weights, or the foundation, whose atoms' norm becomes that of all tokens."""
    name = MODELS[start][norm]
    if start == "scratch":
        featurizer = FEATURIZERS[FOR_TABLES]
        return Graphormer(replace(slim(featurizer.atom_sizes, featurizer.bond_sizes), layers=4, norm=name))
    trained = Graphormer.from_pretrained("foundation")
    model = Graphormer(replace(trained.config, norm=name))
    weights = trained.state_dict()
    if norm == SHARE:
        weights = {key.replace("tok_norm_layer", "norm_layer"): value for key, value in weights.items()}
    model.load_state_dict({key: value for key, value in weights.items() if key in model.state_dict()}, strict=False)
    return model


def view(molecules: GraphBatch) -> GraphBatch:
    """The molecules with all that is known of a fifth of their atoms replaced by zeros."""
    masked = torch.rand(len(molecules.x), 1) < 0.2
    return replace(molecules, x=molecules.x.masked_fill(masked, 0))


def embed(model: Graphormer, molecules: GraphBatch) -> Tensor:
    return model.encode(molecules)[0]


def nt_xent(x: Tensor, y: Tensor, temperature: float = 0.1) -> Tensor:
    """NT-Xent loss of the embeddings [B, D] of two views: each one's other view against all other embeddings."""
    z = normalize(torch.cat([x, y]), dim=1)
    similarity = (z @ z.T / temperature).fill_diagonal_(-torch.inf)
    partner = torch.arange(len(z)).roll(len(x))
    return cross_entropy(similarity, partner)


def batches(count: int) -> list[Tensor]:
    """Random batches of all molecules but the last few; one of all if there are few."""
    return list(torch.randperm(count)[: max(count // BATCH, 1) * BATCH].split(BATCH))


def train(model: Graphormer, data: MoleculeDataset, epochs: int) -> None:
    """Trains on a dataset, and takes the BatchNorm statistics of the final weights."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    model.train()
    for _ in range(epochs):
        for rows in tqdm(batches(len(data)), "contrasting", leave=False):
            molecules = data.batch(rows)
            optimizer.zero_grad()
            nt_xent(embed(model, view(molecules)), embed(model, view(molecules))).backward()
            optimizer.step()
    reestimate_batch_norm(model, model.encode, [data.batch(rows) for rows in batches(len(data))[:100]])


@torch.no_grad()
def geometry(model: Graphormer, data: MoleculeDataset) -> dict[str, float]:
    """Uniformity, alignment, and the share of molecules whose other view is the nearest of all other views."""
    molecules = data.batch(range(min(len(data), MEASURED)))
    x, y = embed(model, view(molecules)), embed(model, view(molecules))
    nearest = (normalize(x, dim=1) @ normalize(y, dim=1).T).argmax(dim=1)
    found = (nearest == torch.arange(len(x))).float().mean().item()
    return {"uniformity": uniformity(x), "alignment": alignment(x, y), "found": found}


def probe(parts: Parts) -> dict[str, float]:
    """Test score of a linear probe of features [B, D]: mean absolute error of numbers, ROC-AUC of two classes."""
    if np.issubdtype(parts["train"][1].dtype, np.integer):
        return {"ROC-AUC": get_scorer("roc_auc")(linear_probe(parts, "roc_auc"), *parts["test"])}
    score = "neg_mean_absolute_error"
    return {"MAE": -get_scorer(score)(linear_probe(parts, score), *parts["test"])}


def smiles_of(graphs: Graphs) -> list[str]:
    """SMILES of ZINC's graphs, which say nothing of stereochemistry."""
    return [smiles_of_one(graphs, molecule) for molecule in range(len(graphs))]


def smiles_of_one(graphs: Graphs, molecule: int) -> str:
    mol = Chem.RWMol()
    for (kind,) in graphs.x[slice(*graphs.atom_ptr[molecule : molecule + 2])].tolist():
        symbol, *rest = ZINC_ATOM_TYPES[kind].split()
        atom = Chem.Atom(symbol)
        atom.SetFormalCharge(rest.count("+") - rest.count("-"))
        atom.SetNumExplicitHs(sum(int(part[1:]) for part in rest if part.startswith("H")))
        atom.SetNoImplicit(bool(rest))
        mol.AddAtom(atom)
    bonds = slice(*graphs.edge_ptr[molecule : molecule + 2])
    for (first, second), kind in zip(graphs.edge_index[:, bonds].T.tolist(), graphs.bond[bonds].tolist(), strict=True):
        if first < second:
            mol.AddBond(first, second, BONDS[kind])
    Chem.SanitizeMol(mol)
    return Chem.MolToSmiles(mol)


def read_dataset(name: str, root: str | None, most: int | None) -> dict[str, tuple[list[str], np.ndarray]]:
    """SMILES and target of each split, of the training split at most so many."""
    if name == "sample":
        table = sample_table()
        parts = {split: table[table.split == split] for split in SPLITS}
        found = {split: (part.smiles.tolist(), part.penalized_logp.to_numpy()) for split, part in parts.items()}
    else:
        graphs = {split: read_zinc(split, data_root(root), subset=True) for split in SPLITS}
        found = {split: (smiles_of(part), part.y[:, 0]) for split, part in graphs.items()}
    smiles, y = found["train"]
    return found | {"train": (smiles[:most], y[:most])}


def read_table(path: Path) -> Table:
    """A table of ``--tables``; raises InputError if it has not the columns."""
    table = pd.read_csv(path)
    splits = [name for name in table.columns if name.startswith("split_")]
    if table.columns[0] != "smiles" or not splits or table.columns[1] in splits:
        raise InputError(f"{path} must have the columns smiles, the target, split_0, split_1, ...")
    known = table.smiles.map(lambda smiles: not read_molecules(FOR_TABLES, [smiles]).errors[0])
    table = table[known]
    return Table(table.smiles.tolist(), table.iloc[:, 1].to_numpy(), [table[name].to_numpy() for name in splits])


def main() -> None:
    parser = arguments(__doc__, "runs/contrastive", seeds=2)
    parser.add_argument("--dataset", choices=["sample", "zinc-subset"], default="sample")
    parser.add_argument("--root", help="folder of the downloaded datasets")
    parser.add_argument("--molecules", type=positive, help="largest number of training molecules; default: all")
    parser.add_argument("--epochs", type=positive, default=3)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=["scratch"])
    parser.add_argument("--tables", type=Path, help="folder of tables to probe")
    options = parser.parse_args()
    if options.molecules == 1:
        raise InputError("--molecules 1: a contrastive loss needs at least 2 molecules")
    splits = read_dataset(options.dataset, options.root, options.molecules)
    tables = {path.stem: read_table(path) for path in sorted(options.tables.glob("*.csv"))} if options.tables else {}
    if options.tables and not tables:
        raise InputError(f"--tables {options.tables} holds no CSV")

    @cache
    def prepared(name: str, shape: ModelConfig) -> MoleculeDataset:
        smiles = tables[name].smiles if name in tables else splits[name][0]
        return in_memory(read_graphs(FOR_TABLES, smiles), shape.encodings)

    def measure(start: str, norm: str, seed: int) -> dict[str, float]:
        torch.manual_seed(seed)
        model = make_model(start, norm)
        shape = replace(model.config, norm=SCRATCH[SHARE])
        train(model, prepared("train", shape), options.epochs)
        parts = {split: (embed_dataset(model, prepared(split, shape)), y) for split, (_, y) in splits.items()}
        scores = geometry(model, prepared("test", shape))
        scores |= {f"target, {name}": value for name, value in probe(parts).items()}
        for name, table in tables.items():
            x, part_of = embed_dataset(model, prepared(name, shape)), table.of_seed(seed)
            found = probe({part: (x[part_of == part], table.y[part_of == part]) for part in SPLITS})
            scores |= {f"{name}, {score}": value for score, value in found.items()}
        return scores

    setting = {name: value for name, value in vars(options).items() if name not in ("seeds", "out", "models", "root")}
    setting["tables"] = sorted(tables)
    compare(options.out, setting, options.models, options.seeds, measure)


if __name__ == "__main__":
    guarded(main)
