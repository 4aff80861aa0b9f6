"""ogbg-molhiv with fingerprints: forests and a kernel that see them, trained Graphormers, and all of them together.

Two forests (scikit-learn's), one random and one of extremely randomized trees, see each of five kinds of fingerprint;
the kernel is the mean similarity by four kinds, in ridge regression of the labels. Several models together are the
mean of the ranks that each gives the molecules: first the forests and the Graphormers among themselves, then forests,
kernel and Graphormers, which count the same. OGB's evaluator scores all of them:

    python train.py --dataset ogbg-molhiv --root ROOT --out RUN
    python examples/fingerprints.py RUN --root ROOT

RUN is a run folder, a weights file, or the name of shipped weights, ``ogbg-molhiv``; several seeds are several of them.
The kernel takes 7 GB of memory. Sources: the fingerprint rows of OGB's leaderboard of ogbg-molhiv for forests on
fingerprints and their mean; Ralaivola et al., "Graph kernels for chemical informatics", Neural Networks 2005, for the
min-max kernel.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from rdkit import Chem, RDLogger
from rdkit.Chem.MACCSkeys import GenMACCSKeys
from rdkit.Chem.rdFingerprintGenerator import (
    FingerprintGenerator64,
    GetAtomPairGenerator,
    GetMorganFeatureAtomInvGen,
    GetMorganGenerator,
    GetTopologicalTorsionGenerator,
)
from rdkit.DataStructs import ConvertToNumpyArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_matrix, csr_matrix, hstack
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.dataset import data_root
from graphormer_sepnorm.datasets.benchmarks import load_molhiv
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training import experiment

ROC_AUC = METRICS["rocauc"]
SCORED = ("val", "test")
SIZE = 2048
Fingerprint = Callable[[Chem.Mol], np.ndarray]
Forest = RandomForestClassifier | ExtraTreesClassifier
Predicted = dict[str, np.ndarray]  # of the molecules [M] of each of the splits that are scored


def morgan(radius: int, *, features: bool = False, size: int = SIZE) -> FingerprintGenerator64:
    """Circular environments of atoms (ECFP), or of what they do, such as to accept a hydrogen bond (FCFP)."""
    kinds = GetMorganFeatureAtomInvGen() if features else None
    return GetMorganGenerator(radius=radius, fpSize=size, atomInvariantsGenerator=kinds)


def counts(generator: FingerprintGenerator64) -> Fingerprint:
    """How often each place is hit, uint8 [SIZE], at most 255."""
    return lambda mol: generator.GetCountFingerprintAsNumPy(mol).clip(max=255).astype(np.uint8)


def maccs(mol: Chem.Mol) -> np.ndarray:
    """Which of the 166 structural keys it has, uint8 [167]; the first place is empty."""
    bits = np.zeros(0, np.uint8)
    ConvertToNumpyArray(GenMACCSKeys(mol), bits)
    return bits


FINGERPRINTS: dict[str, Fingerprint] = {
    "ECFP4": counts(morgan(2)),
    "ECFP6": counts(morgan(3)),
    "FCFP4": counts(morgan(2, features=True)),
    "atom pairs": GetAtomPairGenerator(fpSize=SIZE).GetFingerprintAsNumPy,
    "torsions": GetTopologicalTorsionGenerator(fpSize=SIZE).GetFingerprintAsNumPy,
    "MACCS": maccs,
}
OF_FORESTS = ("ECFP4", "ECFP6", "FCFP4", "atom pairs", "torsions")
OF_KERNEL = ("ECFP4", "atom pairs", "torsions", "MACCS")
LARGEST_COUNT = 3
RIDGE = 1.0
ROWS = 2048  # of the kernel that are computed at a time


def load_mols(root: str | None) -> tuple[list[Chem.Mol], np.ndarray, dict[str, np.ndarray]]:
    """The molecules, their labels [M], and the numbers of those of each split."""
    folder = data_root(root)
    graphs, index = load_molhiv(folder)
    table = pd.read_csv(folder / "ogbg_molhiv" / "mapping" / "mol.csv.gz")
    return [read_smiles(smiles) for smiles in table.smiles], graphs.y[:, 0].astype(int), index


def table_of(fingerprint: Fingerprint, mols: list[Chem.Mol]) -> csc_matrix:
    """The fingerprints of all molecules, float32 [M, F], by columns, as forests of sparse tables read them."""
    return csc_matrix(np.stack([fingerprint(mol) for mol in mols]).astype(np.float32))


def at_least(table: csc_matrix) -> csr_matrix:
    """Counts [M, F] as bits: at least 1, 2, ... up to ``LARGEST_COUNT``, without those that no molecule has."""
    bits = hstack([(table >= count).astype(np.float32) for count in range(1, LARGEST_COUNT + 1)]).tocsc()
    return bits[:, bits.getnnz(axis=0) > 0].tocsr()


def similarity(tables: list[csr_matrix], rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """How alike molecules are, float32 [R, C]: Tanimoto's similarity of bits, 0 where there are none, mean over tables.

    Of the bits of ``at_least`` it is the min-max kernel: the sum of the smaller counts over that of the larger ones.

    Args:
        tables: bits [M, F] of all molecules by several fingerprints.
        rows, columns: numbers of molecules.
    """
    kernel = np.zeros((len(rows), len(columns)), np.float32)
    for bits in tables:
        numbers = np.asarray(bits.sum(axis=1)).ravel()
        others = bits[columns].toarray().T
        for start in range(0, len(rows), ROWS):
            some = rows[start : start + ROWS]
            common = bits[some].toarray() @ others
            kernel[start : start + ROWS] += common / (numbers[some, None] + numbers[columns] - common).clip(min=1)
    kernel /= len(tables)
    return kernel


def ridge_regression(kernel: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The weights [C] of training molecules with the labels y [C]; their kernel [C, C] is overwritten."""
    kernel[np.diag_indices_from(kernel)] += RIDGE
    return cho_solve(cho_factor(kernel.T, lower=True, overwrite_a=True), (y - y.mean()).astype(np.float32))


def random_forest(trees: int, seed: int, max_features: float | Literal["sqrt"] = "sqrt") -> RandomForestClassifier:
    """One in which the few actives weigh more."""
    return RandomForestClassifier(
        trees,
        criterion="entropy",
        max_features=max_features,
        min_samples_leaf=2,
        class_weight={0: 1, 1: 10},
        n_jobs=-1,
        random_state=seed,
    )


def make_forests(trees: int, seed: int) -> list[Forest]:
    """A random forest and one of extremely randomized trees."""
    return [
        random_forest(trees, seed),
        ExtraTreesClassifier(trees, max_features=0.1, min_samples_leaf=2, n_jobs=-1, random_state=seed),
    ]


def predicted_by_forest(forest: Forest, table: csc_matrix, y: np.ndarray, index: dict[str, np.ndarray]) -> Predicted:
    """The predictions of a forest that was trained on the training molecules.

    Args:
        table: fingerprints [M, F] of all molecules.
        y: [M] labels.
        index: numbers of the molecules of each split.
    """
    forest.fit(table[index["train"]], y[index["train"]])
    return {split: forest.predict_proba(table[index[split]])[:, 1] for split in SCORED}


def predicted_by_network(run: Path, root: str | None) -> Predicted:
    """The predictions of a Graphormer."""
    return {split: experiment.score_runs([run], split, root).prediction[:, 0] for split in SCORED}


def mean_rank(predictions: list[np.ndarray]) -> np.ndarray:
    """Of several models' predictions [M] of the same molecules."""
    return np.mean([rankdata(prediction) for prediction in predictions], axis=0)


def together(models: list[Predicted]) -> Predicted:
    """The mean rank by several models, in each split."""
    return {split: mean_rank([predicted[split] for predicted in models]) for split in SCORED}


def score(y: np.ndarray, prediction: np.ndarray) -> float:
    return ROC_AUC(y[:, None], prediction[:, None])


def print_scores(labels: Predicted, models: dict[str, Predicted]) -> None:
    print(f"{'model':40} validation  test")
    for name, predicted in models.items():
        val, test = (score(labels[split], predicted[split]) for split in SCORED)
        print(f"{name:40} {val:.4f}      {test:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="+")
    parser.add_argument("--root")
    parser.add_argument("--trees", type=int, default=200, help="of each forest")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")

    mols, y, index = load_mols(options.root)
    labels = {split: y[index[split]] for split in SCORED}

    tables = {name: table_of(fingerprint, mols) for name, fingerprint in FINGERPRINTS.items()}
    forests: list[Predicted] = []
    for name in OF_FORESTS:
        for forest in make_forests(options.trees, options.seed):
            forests.append(predicted_by_forest(forest, tables[name], y, index))
            print(f"{type(forest).__name__} on {name}: validation {score(labels['val'], forests[-1]['val']):.4f}")

    alike, train = [at_least(tables[name]) for name in OF_KERNEL], index["train"]
    weights = ridge_regression(similarity(alike, train, train), y[train])
    runs = [resolve_model(run) for run in options.run]
    by_forests = together(forests)
    by_kernel = {split: similarity(alike, index[split], train) @ weights for split in SCORED}
    by_networks = together([predicted_by_network(run, options.root) for run in runs])

    print()
    models = {
        f"{len(forests)} forests": by_forests,
        "kernel": by_kernel,
        f"Graphormer, {len(runs)} of them": by_networks,
        "all three": together([by_forests, by_kernel, by_networks]),
    }
    print_scores(labels, models)


if __name__ == "__main__":
    main()
