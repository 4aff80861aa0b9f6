"""ogbg-molhiv with fingerprints: twelve random forests that see them, trained Graphormers, and all of them together.

Every forest (scikit-learn's) sees one kind of fingerprint. Several models together are the mean of the ranks that each
gives the molecules; forests and Graphormers together are the weighted mean of these two, with the weight that is best
on the validation molecules. OGB's evaluator scores all of them:

    python train.py --dataset ogbg-molhiv --root ROOT --out RUN
    python examples/fingerprints.py RUN --root ROOT

RUN is a run folder, a weights file, or the name of shipped weights, ``ogbg-molhiv``; several seeds are several of them.
Source of the forests and their mean: the fingerprint rows of OGB's leaderboard of ogbg-molhiv.
"""

import argparse
from collections.abc import Callable

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
from scipy.sparse import csc_matrix
from scipy.stats import rankdata
from sklearn.ensemble import RandomForestClassifier

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.data.dataset import data_root
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training import experiment

ROC_AUC = METRICS["rocauc"]
SIZE = 2048
Fingerprint = Callable[[Chem.Mol], np.ndarray]


def morgan(radius: int, *, features: bool = False) -> FingerprintGenerator64:
    """Circular environments of atoms (ECFP), or of what they do, such as to accept a hydrogen bond (FCFP)."""
    kinds = GetMorganFeatureAtomInvGen() if features else None
    return GetMorganGenerator(radius=radius, fpSize=SIZE, atomInvariantsGenerator=kinds)


def counts(generator: FingerprintGenerator64) -> Fingerprint:
    """How often each place is hit, uint8 [SIZE], at most 255."""
    return lambda mol: generator.GetCountFingerprintAsNumPy(mol).clip(max=255).astype(np.uint8)


def maccs(mol: Chem.Mol) -> np.ndarray:
    """Which of the 166 structural keys it has, uint8 [167]; the first place is empty."""
    bits = np.zeros(0, np.uint8)
    ConvertToNumpyArray(GenMACCSKeys(mol), bits)
    return bits


FINGERPRINTS: dict[str, Fingerprint] = {
    "ECFP4": morgan(2).GetFingerprintAsNumPy,
    "ECFP6": morgan(3).GetFingerprintAsNumPy,
    "ECFP2, counts": counts(morgan(1)),
    "ECFP4, counts": counts(morgan(2)),
    "ECFP6, counts": counts(morgan(3)),
    "FCFP4": morgan(2, features=True).GetFingerprintAsNumPy,
    "FCFP6": morgan(3, features=True).GetFingerprintAsNumPy,
    "FCFP2, counts": counts(morgan(1, features=True)),
    "FCFP4, counts": counts(morgan(2, features=True)),
    "MACCS": maccs,
    "atom pairs": GetAtomPairGenerator(fpSize=SIZE).GetFingerprintAsNumPy,
    "torsions": GetTopologicalTorsionGenerator(fpSize=SIZE).GetFingerprintAsNumPy,
}


def table_of(fingerprint: Fingerprint, mols: list[Chem.Mol]) -> csc_matrix:
    """The fingerprints of all molecules, float32 [M, F], by columns, as forests of sparse tables read them."""
    return csc_matrix(np.stack([fingerprint(mol) for mol in mols]).astype(np.float32))


def mean_rank(predictions: list[np.ndarray]) -> np.ndarray:
    """Of several models' predictions [M] of the same molecules."""
    return np.mean([rankdata(prediction) for prediction in predictions], axis=0)


def together(first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
    """Weighted mean of the ranks of two predictions [M]."""
    return weight * rankdata(first) + (1 - weight) * rankdata(second)


def score(y: np.ndarray, prediction: np.ndarray) -> float:
    return ROC_AUC(y[:, None], prediction[:, None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="+")
    parser.add_argument("--root")
    parser.add_argument("--trees", type=int, default=200, help="of each forest")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")

    folder = data_root(options.root) / "ogbg_molhiv"
    table = pd.read_csv(folder / "mapping" / "mol.csv.gz")
    mols, y = [read_smiles(smiles) for smiles in table.smiles], table.HIV_active.to_numpy()
    files = {"train": "train", "val": "valid", "test": "test"}
    index = {
        split: pd.read_csv(folder / "split" / "scaffold" / f"{name}.csv.gz", header=None)[0]
        for split, name in files.items()
    }
    scored = ("val", "test")
    labels = {split: y[index[split]] for split in scored}

    forests: dict[str, list[np.ndarray]] = {split: [] for split in scored}
    for name, fingerprint in FINGERPRINTS.items():
        bits = table_of(fingerprint, mols)
        forest = RandomForestClassifier(
            options.trees, max_features=0.2, min_samples_leaf=2, n_jobs=-1, random_state=options.seed
        )
        forest.fit(bits[index["train"]], y[index["train"]])
        for split in scored:
            forests[split].append(forest.predict_proba(bits[index[split]])[:, 1])
        print(f"forest on {name}: validation {score(labels['val'], forests['val'][-1]):.4f}")

    runs = [resolve_model(run) for run in options.run]
    by_forests = {split: mean_rank(forests[split]) for split in scored}
    by_networks = {
        split: mean_rank([experiment.score_runs([run], split, options.root).prediction[:, 0] for run in runs])
        for split in scored
    }
    weights = np.linspace(0, 1, 11)
    weight = max(weights, key=lambda w: score(labels["val"], together(by_forests["val"], by_networks["val"], w)))
    both = {split: together(by_forests[split], by_networks[split], weight) for split in scored}

    print(f"\n{'model':40} validation  test")
    for name, predictions in (
        (f"{len(FINGERPRINTS)} random forests", by_forests),
        (f"Graphormer, {len(runs)} of them", by_networks),
        (f"all, {weight:.0%} of it the forests", both),
    ):
        val, test = (score(labels[split], predictions[split]) for split in scored)
        print(f"{name:40} {val:.4f}      {test:.4f}")


if __name__ == "__main__":
    main()
