"""ogbg-molhiv by a published recipe: random forests that see several fingerprints side by side, and Graphormers.

Twelve random forests (scikit-learn's) that differ in their seeds see FCFP4, ECFP4, MACCS and atom pairs, 4,263 bits,
and try a fifth of them at each split. Their prediction is the mean of the ranks that each gives the molecules. The
mean rank of several Graphormers is added with a weight chosen on validation. OGB's evaluator scores them:

    python train.py --dataset ogbg-molhiv --root ROOT --out RUN
    python examples/published_forests.py RUN --root ROOT --keep FOLDER

RUN is as in ``fingerprints.py``. What forests predict is kept in FOLDER: the same command again, with other runs, takes
it from there. Source: Bugaud, "Multi-RF Fusion with Multi-GNN Blending for Molecular Property Prediction", 2026, for
what the forests see, their number and ``max_features``. How many of the bits each fingerprint has is a guess, and the
rest of the forests' settings is that of ``fingerprints.py``.
"""

import argparse

import numpy as np
from fingerprints import (
    SCORED,
    Predicted,
    load_mols,
    maccs,
    morgan,
    predicted_by_forest,
    predicted_by_network,
    print_scores,
    random_forest,
    score,
    table_of,
    together,
)
from joblib import Memory
from rdkit import Chem, RDLogger
from rdkit.Chem.rdFingerprintGenerator import GetAtomPairGenerator
from scipy.sparse import csc_matrix
from tqdm import tqdm

from graphormer_sepnorm.runs.zoo import resolve_model

FORESTS = 12
WEIGHTS = np.linspace(0, 1, 26)
GENERATORS = (
    morgan(2, features=True, size=2048),
    morgan(2, size=1024),
    GetAtomPairGenerator(fpSize=1024),
)


def side_by_side(mol: Chem.Mol) -> np.ndarray:
    """The bits of all fingerprints, uint8 [4263]."""
    return np.concatenate([*(generator.GetFingerprintAsNumPy(mol) for generator in GENERATORS), maccs(mol)])


def forest(table: csc_matrix, y: np.ndarray, index: dict[str, np.ndarray], trees: int, seed: int) -> Predicted:
    """The predictions of the forest with this seed; its table has 4,263 bits, arguments as ``predicted_by_forest``."""
    return predicted_by_forest(random_forest(trees, seed, max_features=0.2), table, y, index)


def best_weight(y: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """The share of ``second`` in a weighted mean of two ranks [M] that scores best for the labels [M]."""
    return float(max(WEIGHTS, key=lambda weight: score(y, (1 - weight) * first + weight * second)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="+")
    parser.add_argument("--root")
    parser.add_argument("--keep", required=True, help="folder in which the predictions of the forests are kept")
    parser.add_argument("--trees", type=int, default=40, help="of each forest")
    options = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")

    runs = [resolve_model(run) for run in options.run]
    mols, y, index = load_mols(options.root)
    labels = {split: y[index[split]] for split in SCORED}
    table = table_of(side_by_side, mols)
    kept = Memory(options.keep, verbose=0).cache(forest)
    predicted = [kept(table, y, index, options.trees, seed) for seed in tqdm(range(FORESTS), unit=" forests")]

    by_forests = together(predicted)
    by_networks = together([predicted_by_network(run, options.root) for run in runs])
    weight = best_weight(labels["val"], by_forests["val"], by_networks["val"])
    both = {split: (1 - weight) * by_forests[split] + weight * by_networks[split] for split in SCORED}
    models = {
        f"{FORESTS} forests": by_forests,
        f"Graphormer, {len(runs)} of them": by_networks,
        f"both, the latter counting {weight:.2f}": both,
    }
    print_scores(labels, models)


if __name__ == "__main__":
    main()
