"""ogbg-molhiv with Morgan fingerprints: a random forest that sees them, a trained Graphormer, and the two together.

The forest (scikit-learn's) sees counts of the 2,048 hashed environments of radius 2. Together the two are the weighted
mean of the ranks that they give the molecules; the weight is the best one on the validation molecules. OGB's evaluator
scores all three:

    python train.py --dataset ogbg-molhiv --root ROOT --out RUN
    python examples/fingerprints.py RUN --root ROOT

RUN is a run folder, a weights file, or the name of shipped weights, ``ogbg-molhiv``.
"""

import argparse

import numpy as np
import pandas as pd
from rdkit import Chem, RDLogger
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from scipy.stats import rankdata
from sklearn.ensemble import RandomForestClassifier

from graphormer_sepnorm.data.dataset import data_root
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training import experiment

ROC_AUC = METRICS["rocauc"]
MORGAN = GetMorganGenerator(radius=2, fpSize=2048)


def fingerprint(smiles: str) -> np.ndarray:
    """Counts [2048], at most 255; zeros for the few molecules whose valences today's RDKit refuses."""
    mol = Chem.MolFromSmiles(smiles)
    if mol is None:
        return np.zeros(2048, np.uint8)
    return MORGAN.GetCountFingerprintAsNumPy(mol).clip(max=255).astype(np.uint8)


def together(first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
    """Weighted mean of the ranks of two predictions [M]."""
    return weight * rankdata(first) + (1 - weight) * rankdata(second)


def score(y: np.ndarray, prediction: np.ndarray) -> float:
    return ROC_AUC(y[:, None], prediction[:, None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--root")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")

    run, folder = resolve_model(options.run), data_root(options.root) / "ogbg_molhiv"
    by_network = {
        split: experiment.score_runs([run], split, options.root).prediction[:, 0] for split in ("val", "test")
    }
    table = pd.read_csv(folder / "mapping" / "mol.csv.gz")
    counts, y = np.stack([fingerprint(smiles) for smiles in table.smiles]), table.HIV_active.to_numpy()
    files = {"train": "train", "val": "valid", "test": "test"}
    index = {
        split: pd.read_csv(folder / "split" / "scaffold" / f"{name}.csv.gz", header=None)[0]
        for split, name in files.items()
    }
    forest = RandomForestClassifier(options.trees, min_samples_leaf=2, n_jobs=-1, random_state=options.seed)
    forest.fit(counts[index["train"]], y[index["train"]])
    labels = {split: y[index[split]] for split in by_network}
    by_forest = {split: forest.predict_proba(counts[index[split]])[:, 1] for split in by_network}
    weights = np.linspace(0, 1, 11)
    weight = max(weights, key=lambda w: score(labels["val"], together(by_forest["val"], by_network["val"], w)))

    both = {split: together(by_forest[split], by_network[split], weight) for split in by_network}
    print(f"{'model':40} validation  test")
    for name, predictions in (
        ("random forest on fingerprints", by_forest),
        ("Graphormer", by_network),
        (f"both, {weight:.0%} of it the forest", both),
    ):
        val, test = (score(labels[split], predictions[split]) for split in ("val", "test"))
        print(f"{name:40} {val:.4f}      {test:.4f}")


if __name__ == "__main__":
    main()
